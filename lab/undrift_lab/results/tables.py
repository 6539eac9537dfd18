"""Results as Markdown tables, each made from a data frame of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from ..catalogue import OURS, PEERS, WITH_LABELS, find_family, split_label_method
from .frame import (
    LARGER_CLASS,
    MIN_DOMAINS,
    Difference,
    Where,
    add_larger_class,
    average_tasks,
    compare,
    count_harm,
    first_seed,
    mean_over_tasks,
    rank_method,
)
from .published import ERRORS, TIMES
from .records import Record

MEANS = {  # of records, and how tables name them
    "transfer_error": "mean error, %", "transfer_ratio": "mean ratio", "represent_seconds": "learn, s",
    "grid_seconds": "grid, s", "classify_seconds": "classify, s",
}  # fmt: skip
SOURCE_ONLY = "source-only"
PEERS_PLAN, TRUST_PLAN = "peers", "trust"
# plans of the headline: the variants that may see the test rows, unlabelled, and that may not
HEADLINE = {"small": ("shipped", "inductive"), "multi": ("20000 terms", "inductive")}
ESTIMATES = {
    "undrift": "undrift",
    **{name: f"`uncentred`, {name}" for name, ours in OURS.items() if ours.estimate},
}
ABOUT_INTERVALS = (
    "By target: the least and the greatest mean of a target's tasks. Intervals are those of a bootstrap over "
    f"domains (and seeds, where there are several); with fewer than {MIN_DOMAINS} domains there is none."
)


def table_lines(names: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> list[str]:
    """Lines of a Markdown table whose first columns are words and whose others are numbers."""
    rules = ["---"] * n_left + ["---:"] * (len(names) - n_left)
    lines = [names, rules, *rows]
    if len({len(cells) for cells in lines}) > 1:
        raise ValueError(f"rows of the table {', '.join(names[:3])} ... differ in length from its names")
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def write_table(names: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1, *notes: str) -> str:
    """Return a Markdown table and the notes below it."""
    return "\n".join([*table_lines(names, rows, n_left), "", *notes]).rstrip("\n") + "\n"


def format_number(value: Any, form: str = "{:.3g}") -> str:
    """Write a number, or nothing where there is none."""
    return "" if value is None or pd.isna(value) else form.format(value)


def format_points(fraction: Any, form: str = ".1f") -> str:
    """Write a fraction in per cent, without the sign for it; nothing where there is none."""
    return "" if fraction is None or pd.isna(fraction) else f"{100 * fraction:{form}}"


def list_stamps(frame: pd.DataFrame) -> list[str]:
    """Return versions of undrift, then dates and machines, each once."""
    frame = frame[frame["machine"].notna()]
    stamps = dict.fromkeys(zip(frame["date"], frame["machine"], strict=True))
    return [*say_versions(frame), *(f"{date}: {machine}." for date, machine in stamps)]


def say_versions(frame: pd.DataFrame) -> list[str]:
    """Say which version of undrift the records of our methods are of; by variant where there are several."""
    is_ours = frame["method"].map(find_family).isin(["undrift", "labels"])
    is_ours &= ~frame["method"].str.startswith(("augmented", "target-only"))
    variants = frame[is_ours].groupby("method_version")["variant"].unique()
    if len(variants) < 2:
        return [f"Version {version:g} of undrift." for version in variants.index]
    parts = [f"version {version:g} in {', '.join(names)}" for version, names in variants.items()]
    return [f"Versions of undrift: {'; '.join(parts)}."]


def list_reasons(failed: Sequence[Record]) -> list[str]:
    """Return a line for each task that failed and has not succeeded since."""
    return [f"Failed: {r['method']} on {r['source']}->{r['target']} ({r['failed']})." for r in failed]


def group_methods(frame: pd.DataFrame) -> list[tuple[str, str, str, pd.DataFrame]]:
    """List every method under every setting: plans and variants as they come, methods in their order."""
    keys = frame[["plan", "variant", "method"]].drop_duplicates()
    settings = list(dict.fromkeys(zip(keys["plan"], keys["variant"], strict=True)))
    return [
        (plan, variant, method, Where(plan, variant, method).of(frame))
        for plan, variant in settings
        for method in sorted(
            keys[(keys["plan"] == plan) & (keys["variant"] == variant)]["method"], key=rank_method
        )
    ]


def summarise(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the tasks, a row for every method under every setting."""
    rows = []
    for plan, variant, method, group in group_methods(frame):
        means = {says: mean_over_tasks(group, name) for name, says in MEANS.items()}
        place = {"plan": plan, "variant": variant, "method": method, "tasks": group["task"].nunique()}
        rows.append(place | means)
    return pd.DataFrame(rows, columns=["plan", "variant", "method", "tasks", *MEANS.values()])


def plan_table(frame: pd.DataFrame, failed: Sequence[Record] = ()) -> str:
    """Mean error, mean ratio and times of every method and setting."""
    table = summarise(frame)
    table["mean error, %"] *= 100
    forms = {"mean error, %": "{:.2f}", "mean ratio": "{:.3f}", "tasks": "{}"}
    rows = [
        [
            value if isinstance(value, str) else format_number(value, forms.get(name, "{:.3g}"))
            for name, value in zip(table, row, strict=True)
        ]
        for row in table.itertuples(index=False)
    ]
    return write_table(list(table), rows, 3, *list_stamps(frame), *list_reasons(failed))


BESIDE_A_DIFFERENCE = ("by target", "95% interval", "worse on")


def difference_cells(each: Difference | None) -> list[str]:
    """Return a difference, its range over targets, its interval, and the tasks that are worse."""
    if each is None:
        return [""] * 4
    mean, *ends = (format_points(v, "+.2f") for v in (each.mean, *each.by_target, each.low, each.high))
    by = f", by up to {format_points(each.worst)}" if each.n_worse else ""
    interval = "{} to {}".format(*ends[2:]) if each.n_domains >= MIN_DOMAINS else ""
    return [mean, "{} to {}".format(*ends[:2]), interval, f"{each.n_worse} of {each.n_tasks}{by}"]


def headline_table(frame: pd.DataFrame) -> str:
    """The tf-idf SVM and undrift, without the test rows and with them; errors with and without duplicates."""
    rows = []
    for plan, variants in HEADLINE.items():
        for protocol, variant in zip(("inductive", "transductive"), reversed(variants), strict=True):
            there = Where(plan, variant, "svm-tfidf").of(frame)
            for method in ("svm-tfidf", "nb-features", "undrift-pair", "undrift"):
                group = Where(plan, variant, method).of(frame)
                if group.empty:
                    continue
                targets = group.drop_duplicates("target")
                compared = compare(group, there) if method != "svm-tfidf" else None
                rows.append([
                    str(group["corpus"].iloc[0]), protocol, method, str(group["task"].nunique()),
                    str(group["seed"].nunique()), format_points(mean_over_tasks(group), ".2f"),
                    format_points(mean_over_tasks(group, "error_without_duplicates"), ".2f"),
                    f"{targets['n_duplicates'].sum() / targets['n_test'].sum():.1%}",
                    *difference_cells(compared),
                ])  # fmt: skip
    names = ["corpus", "protocol", "method", "tasks", "seeds", "mean error, %", "without duplicates, %"]
    names += ["duplicates", "against svm-tfidf, points", *BESIDE_A_DIFFERENCE]
    says = (
        "Inductive: no test row is seen before it is predicted; amazon-bow's columns are given. "
        "Transductive: test rows are among the unlabelled ones. Duplicates are test rows that equal a row of "
        "another part or domain. `undrift-pair` sees the source's labelled rows and those of the target, "
        "`undrift` all rows of all domains too; duplicates of the former are among the rows of two domains. "
        f"{ABOUT_INTERVALS}"
    )
    shown = frame[frame["variant"].isin([name for pair in HEADLINE.values() for name in pair])]
    return write_table(names, rows, 3, says, *say_versions(shown))


def readme_table(frame: pd.DataFrame) -> str | None:
    """Mean errors for the first page of the project; None while a record is missing."""
    small, multi = (Where(plan, HEADLINE[plan][0]) for plan in HEADLINE)
    teachers = Where("teachers", "fdu-mtl")
    rows = {
        "linear SVM on tf-idf, trained on the source": ((small, multi), "svm-tfidf"),
        "undrift": ((small, multi), "undrift-pair"),
        "a small encoder, fine-tuned on the source": ((None, teachers), "minilm-finetuned"),
        "undrift with that encoder as teacher": ((None, teachers), "undrift+teacher"),
    }
    cells = [
        [says, *("" if at is None else f"{100 * at.mean(frame, method):.1f}%" for at in places)]
        for says, (places, method) in rows.items()
    ]
    names = ["", "amazon-bow, 12 pairs", "fdu-mtl, 90 pairs"]
    return None if any("nan%" in row for row in cells) else write_table(names, cells)


def share_table(frame: pd.DataFrame) -> str:
    """Errors by method and share of the target, and how good the estimates without target labels are."""
    frame, lines = add_larger_class(frame), []
    for corpus, of_corpus in frame.groupby("corpus"):
        shares, rows = sorted(of_corpus["target_share"].unique()), []
        for method in sorted(of_corpus["method"].unique(), key=rank_method):
            own = of_corpus[of_corpus["method"] == method]
            by_share = {share: own[own["target_share"] == share] for share in shares}
            means, balanced = (
                pd.Series([mean_over_tasks(group, name) for group in by_share.values()])
                for name in ("transfer_error", "balanced_error")
            )
            pairs = zip(means.map(format_points), balanced.map(format_points), strict=True)
            cells = [f"{error} ({other})" if error else "" for error, other in pairs]
            gaps = own[["share_gap", "error_gap", "calibration_error"]].mean().map(format_points)
            over_shares = [
                format_points(means.mean(), ".2f") if means.notna().all() else "",
                count_harm(own, of_corpus[of_corpus["method"] == LARGER_CLASS], by=0.0), *gaps,
            ]  # fmt: skip
            n_tasks = sum(group["task"].nunique() for group in by_share.values())
            is_one = own["method_version"].nunique() < 2
            rows.append([str(corpus), method, str(n_tasks), *cells, *(over_shares if is_one else [""] * 5)])
        names = ["corpus", "method", "tasks", *(f"{share:.0%} positive" for share in shares), "mean"]
        names += ["above larger class", "share off by", "expected error off by", "calibration error"]
        lines += [*table_lines(names, rows, 2), ""]
    says = (
        "Mean error over the tasks, %; in brackets the mean of the two classes' errors. Estimates: in points."
        " Rows of several versions of undrift have no mean over shares."
    )
    return "\n".join([*lines, says, *list_stamps(frame)]) + "\n"


def labels_table(frame: pd.DataFrame) -> str:
    """Errors by method and number of target labels, for every corpus and share of positives."""
    numbers = sorted(int(n) for n in frame["n_target_labels"].dropna().unique() if n)
    rows = []
    for (corpus, share), of_share in frame[frame["n_target_labels"].notna()].groupby(
        ["corpus", "target_share"]
    ):
        kinds = of_share["method"].map(lambda method: split_label_method(method)[0])
        kinds = kinds.where(of_share["n_target_labels"] > 0, "none")
        for kind in sorted(kinds.unique(), key=["none", *WITH_LABELS].index):
            own = of_share[kinds == kind]
            groups = [own if kind == "none" else own[own["n_target_labels"] == n] for n in numbers]
            cells = [format_points(mean_over_tasks(group), ".2f") for group in groups]
            rows.append([str(corpus), f"{share:.0%}", kind, str(own["task"].nunique()), *cells])
    names = ["corpus", "positive", "method", "tasks", *map(str, numbers)]
    says = "Mean error over the tasks and draws, %, by the number of target labels."
    return write_table(names, rows, 3, says, "", *_list_gains(frame), "", *list_stamps(frame))


def _list_gains(frame: pd.DataFrame, n_labels: int = 50) -> list[str]:
    """Lines of the differences that some labels make, with standard errors over the tasks."""
    rows = []
    for (corpus, share), own in frame.groupby(["corpus", "target_share"]):
        errors = {kind: average_tasks(own[own["method"] == f"{kind}-{n_labels}"]) for kind in WITH_LABELS}
        errors["none"] = average_tasks(own[own["method"] == "labels-0"])
        pairs = [(kind, "none") for kind in WITH_LABELS] + [("asked", "labels"), ("labels", "updated")]
        for kind, there in pairs:
            gaps = 100 * (errors[kind] - errors[there]).dropna()
            if len(gaps) > 1:
                error = gaps.sem()
                shows = "yes" if abs(gaps.mean()) > 2 * error else "no"
                numbers = [f"{gaps.mean():+.2f}", f"{error:.2f}", f"{gaps.median():+.2f}", shows]
                rows.append([str(corpus), f"{share:.0%}", kind, there, *numbers])
    names = ["corpus", "positive", "method", "less", "difference", "standard error", "median"]
    says = f"Differences with {n_labels} labels, in points; the standard error is over the tasks."
    return [says, "", *table_lines([*names, "beyond two standard errors"], rows, 4)] if rows else []


def field_table(frame: pd.DataFrame, failed: Sequence[Record] = ()) -> str:
    """Every method's error by variant, balanced error, F1, time, and the tasks that it made worse."""
    frame = first_seed(frame[~frame["method"].isin([name for name, ours in OURS.items() if ours.estimate])])
    frame = add_larger_class(frame.assign(seconds=frame["represent_seconds"] + frame["classify_seconds"]))
    errors = average_complete(frame)
    order = errors.notna().sum(axis=1).rsub(0).rename("n").to_frame().assign(total=errors.sum(axis=1))
    there, rows = frame[frame["method"] == SOURCE_ONLY], []
    means = [errors, average_complete(frame, "balanced_error"), average_complete(frame, "f1")]
    for method in order[order["n"] < 0].sort_values(["n", "total"]).index:
        own = frame[frame["method"] == method]
        rows.append([
            method, find_package(method), *(format_points(value) for value in errors.loc[method]),
            *(format_points(table.loc[method].mean(skipna=False), ".2f") for table in means),
            format_number(mean_over_tasks(own, "seconds")),
            count_harm(own, there), count_harm(own, there, "balanced_error"),
        ])  # fmt: skip
    names = ["method", "package", *errors.columns, "mean", "balanced", "F1", "seconds", "harm"]
    says = (
        "Mean error over the tasks, %; balanced: the mean of the two classes' errors; F1 of the rarer class. "
        "Seconds of a task, on the mean, of machines that differ. "
        f"Harm: tasks whose error, or balanced error, is above that of {SOURCE_ONLY} by more than a point. "
        f"The row {LARGER_CLASS} calls every row of the target the more frequent class."
    )
    reasons = dict.fromkeys(f"Failed: {r['method']} ({r['failed']})." for r in failed)
    return write_table([*names, "harm, balanced"], rows, 2, says, *list_stamps(frame), *reasons)


def average_complete(frame: pd.DataFrame, name: str = "transfer_error") -> pd.DataFrame:
    """Return means by method and variant, NaN where a method lacks a task that another one has."""
    by_task = frame.groupby(["method", "variant", "task"])[name].mean()
    groups = by_task.groupby(["method", "variant"])
    n_tasks = groups.size().unstack()
    return groups.mean().unstack().where(n_tasks == n_tasks.max())


def find_package(method: str) -> str:
    """Return the package that a method is of."""
    if method == LARGER_CLASS:
        return ""
    return PEERS[method].package.partition(".")[0] if method in PEERS else "undrift"


def estimates_table(frame: pd.DataFrame) -> str:
    """Absolute errors of estimates of class shares and errors: ours, and others on the same layers."""
    variants, rows = list(dict.fromkeys(frame["variant"])), []
    for name, says in (("share_gap", "class shares"), ("error_gap", "error")):
        table = frame.pivot_table(name, "method", "variant")
        for method, label in ESTIMATES.items():
            if method in table.index and table.loc[method].notna().any():
                cells = table.loc[method].reindex(variants)
                rows.append(
                    [says, label, *map(format_points, cells), format_points(cells.mean(skipna=False))]
                )
    names = ["estimate of", "by", *variants, "mean"]
    return write_table(names, rows, 2, "Absolute errors in points, on the mean over tasks.")


def distance_table(distances: pd.DataFrame, failed: Sequence[Record] = ()) -> str:
    """Distances of the pairs of domains, before and after, and how they were measured."""
    rows = []
    for r in distances.to_dict("records"):
        before, after = (
            f"{r[name]:.3f} ({r[name + '_low']:.3f} to {r[name + '_high']:.3f})"
            for name in ("distance_before", "distance_after")
        )
        rows.append([f"{r['source']}, {r['target']}", before, after, "yes" if r["grows"] else "no"])
    notes = dict.fromkeys(
        f"Of each domain {about['n_rows']:,} rows, evenly spaced, are told apart: before, by presence of "
        f"terms; after, by that and {about['n_layers']} layers, learnt from all rows at noise "
        f"{about['noise']:g}, not chosen. Intervals are 95%, by bootstrap over the rows held out."
        for about in distances["params"].dropna()
    )
    return write_table(["domains", "before", "after", "grows"], rows, 1, *notes, *list_reasons(failed))


def published_table(frame: pd.DataFrame) -> str:
    """Published numbers beside ours."""
    names = ["published", "theirs", "their test rows", "here", "our test rows", "plan, variant, method"]
    rows = []
    for said in (*TIMES, *ERRORS):
        here, value = said.find_ours(frame), said.value or f"{said.mean:.2%}"
        seen = "unseen" if said.method == "svm" or said.variant in ("inductive", "published") else "seen"
        ours = [here, seen if here and said.errors else "", f"{said.plan}, {said.variant}, {said.method}"]
        rows.append([said.text, value, said.test_rows, *ours])
    says = (
        "Test rows are seen where they are among the unlabelled rows (transductive), else unseen (inductive)."
    )
    return write_table(names, rows, 1, says)


def varies_shares(frame: pd.DataFrame) -> bool:
    """Tell whether the same target comes with several class shares that the plan sets."""
    shares = frame[frame["target_share"].notna()].groupby(["corpus", "target"])["target_share"]
    return bool((shares.nunique() > 1).any()) and frame["n_target_labels"].isna().all()
