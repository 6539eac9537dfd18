"""Tables of the lab's front page: one for each question, all from the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from ..catalogue import METHODS, OURS
from .frame import (
    LARGER_CLASS,
    MIN_DOMAINS,
    SURE,
    add_larger_class,
    average_tasks,
    compare,
    count_harm,
    mean_over_tasks,
)
from .tables import HEADLINE, PEERS_PLAN, TRUST_PLAN, format_points, list_stamps, write_table

PLAIN = ("svm-tfidf", "svm-balanced")  # the stronger of them is the SVM of a setting
EQUAL = 0.05  # a share this close to one half is equal
# parts that are added to tf-idf rows of the source and least squares
PARTS = {
    "source-only": "none",
    "uncentred": "layers",
    "uncentred-em": "layers, EM",
    "uncentred-self": "layers, self-training",
    "uncentred-em-self": "layers, self-training, EM",
    "aligned": "layers, classes aligned",
    "centred": "layers, self-training, domains centred",
    "undrift": "layers, self-training, classes aligned",
}
# variants of the plans `beyond-*`, which leave a part out
LEFT_OUT = {
    "all": "undrift",
    "no centring": "uncentred-self",
    "domains centred": "centred",
    "no self-training": "aligned",
}


@dataclass(frozen=True)
class Setting:
    """Tasks of one corpus under one protocol, and the records of every method on them."""

    plan: str
    name: str
    is_seen: bool  # whether test rows are among the unlabelled ones
    rows: pd.DataFrame

    @property
    def ours(self) -> pd.DataFrame:
        """Records of undrift that has the files of two domains and nothing else."""
        return self.of("undrift" if self.plan == TRUST_PLAN else "undrift-pair")

    def of(self, method: str) -> pd.DataFrame:
        """Return the records of a method."""
        return self.rows[self.rows["method"] == method]

    def find_best(self, methods: list[str]) -> str | None:
        """Return the method of the lowest mean error, of those that have all tasks of undrift."""
        tasks = set((self.ours if len(self.ours) else self.rows)["task"])
        errors = {method: average_tasks(self.of(method)) for method in methods}
        means = {method: e[list(tasks)].mean() for method, e in errors.items() if tasks <= set(e.index)}
        return min(means, key=lambda method: means[method]) if means else None

    @property
    def baselines(self) -> list[str]:
        """Methods that are neither ours nor of the paper."""
        papers = {method for method in METHODS if method not in PLAIN}
        return [
            method
            for method in dict.fromkeys(self.rows["method"])
            if method.removesuffix("-pair") not in {*OURS, *papers}
        ]

    @property
    def cells(self) -> list[str]:
        """Plan, name and protocol, and the number of tasks."""
        n_tasks = (self.ours if len(self.ours) else self.rows)["task"].nunique()
        return [self.plan, self.name, "seen" if self.is_seen else "unseen", self.count(n_tasks)]

    def count(self, n_tasks: int) -> str:
        """Write a number of tasks, and of how many where records are missing."""
        n_all = self.rows["task"].nunique()
        return str(n_tasks) if n_tasks == n_all else f"{n_tasks} of {n_all}"


NAMES = ["plan", "setting", "test rows", "tasks"]


def list_settings(frame: pd.DataFrame) -> list[Setting]:
    """List the settings that undrift and baselines were measured in."""
    frame = add_larger_class(frame)
    chosen = [
        (plan, variant, seen)
        for plan, variants in HEADLINE.items()
        for variant, seen in zip(variants, (True, False), strict=True)
    ]
    for plan in (PEERS_PLAN, TRUST_PLAN):
        chosen += [(plan, variant, True) for variant in sorted(set(frame[frame["plan"] == plan]["variant"]))]
    settings = []
    for plan, variant, seen in chosen:
        rows = frame[(frame["plan"] == plan) & (frame["variant"] == variant)]
        if len(rows):
            name = str(rows["corpus"].iloc[0]) if plan in HEADLINE else variant
            settings.append(Setting(plan, name, seen, rows))
    return settings


def strongest_table(frame: pd.DataFrame) -> str:
    """Undrift against the strongest baseline of every setting."""
    rows = []
    for setting in list_settings(frame):
        best, ours = setting.find_best(setting.baselines), setting.ours
        if best is None or ours.empty:
            continue
        theirs = setting.of(best)
        gap = compare(ours, theirs)
        assert gap is not None
        interval = f"{format_points(gap.low, '+.1f')} to {format_points(gap.high, '+.1f')}"
        wide = setting.of("undrift") if setting.plan != TRUST_PLAN else ours[:0]
        same = theirs[theirs["task"].isin(ours["task"])]
        rows.append([
            *setting.cells, str(len(setting.baselines)), best,
            *(format_points(mean_over_tasks(group)) for group in (same, ours, wide)),
            format_points(gap.mean, "+.1f"), interval if gap.n_domains >= MIN_DOMAINS else "",
        ])  # fmt: skip
    names = [*NAMES, "baselines", "strongest", "its error, %", "undrift, two files, %"]
    names += ["undrift, all domains, %", "two files less baseline, points", "95% interval"]
    says = (
        f"Baselines are all methods without our layers, and *{LARGER_CLASS}*. Intervals come from a "
        f"bootstrap over domains and seeds; with fewer than {MIN_DOMAINS} domains there is none."
    )
    return write_table(names, rows, 3, says)


def harm_table(frame: pd.DataFrame) -> str:
    """Tasks on which undrift errs more than the tf-idf SVM, and by how much."""
    rows = []
    for setting in list_settings(frame):
        svm, ours = setting.find_best([m for m in PLAIN if len(setting.of(m))]), setting.ours
        if svm is None or ours.empty:
            continue
        theirs, larger = setting.of(svm), setting.of(LARGER_CLASS)
        gaps = (average_tasks(ours) - average_tasks(theirs)).dropna()
        wide = setting.of("undrift") if setting.plan != TRUST_PLAN else ours[:0]
        rows.append([
            *setting.cells, svm, count_harm(ours, theirs), count_harm(ours, theirs, by=0.02),
            format_points(gaps.max(), "+.1f"), count_harm(ours, theirs, "balanced_error"),
            count_harm(ours, larger, by=0.0), count_harm(wide, theirs) if len(wide) else "",
        ])  # fmt: skip
    names = [*NAMES, "SVM", "worse by over 1 point", "by over 2", "worst task, points"]
    names += ["balanced error worse by over 1", "above the larger class", "all domains: worse by over 1"]
    says = "Undrift has the files of two domains, but in the last column. An empty cell has no record."
    return write_table(names, rows, 3, says)


def expected_table(frame: pd.DataFrame) -> str:
    """Expected against measured error, and how often the 90% intervals hold the truth."""
    rows = []
    for plan, name, seen, own in list_estimates(frame):
        known = own[own["expected_error"].notna()]
        n_unknown = int((own["expected_error"].isna() & own["expected_low"].notna()).sum())
        says = own[["share_held", "error_held", "is_sure"]].mean()
        rows.append([
            plan, name, "seen" if seen else "unseen", str(own["method"].iloc[0]), str(len(own)),
            *known[["transfer_error", "expected_error", "error_gap"]].mean().map(format_points),
            format_points(known["error_gap"].max()), *says.map(lambda held: format_points(held, ".0f")),
            str(n_unknown),
        ])  # fmt: skip
    names = [
        "plan",
        "setting",
        "test rows",
        "method",
        "runs",
        "error, %",
        "expected, %",
        "off by",
        "at worst",
    ]
    names += ["share intervals that hold, %", "error intervals that hold, %", "confidently wrong, %"]
    says = (
        "Off by: mean absolute error in points. Intervals are of 90%; an empty cell has no record of one. "
        f"Confidently wrong: the error is above the interval by more than {100 * SURE:g} points. "
        "Not known: undrift gives bounds and no number; errors are those of the other runs."
    )
    return write_table([*names, "not known"], rows, 4, says)


def list_estimates(frame: pd.DataFrame) -> Iterator[tuple[str, str, bool, pd.DataFrame]]:
    """Give plan, corpus or variant, protocol and records wherever undrift estimated its error."""
    own = frame[frame["method"].isin(["undrift", "undrift-pair"])]
    own = own[own["expected_error"].notna() | own["expected_low"].notna()]
    is_inductive = own["variant"].str.startswith("inductive")
    is_headline = own["plan"].isin(list(HEADLINE)) & ~own["variant"].isin(["shipped", "20000 terms"])
    own = own[~own["plan"].str.startswith("beyond") & ~(is_headline & ~is_inductive)]
    names = own["variant"].where(own["plan"] == TRUST_PLAN, own["corpus"])
    keys = [own["plan"], names, ~is_inductive[own.index], own["method"]]
    for (plan, name, seen, _), group in own.groupby(keys, sort=False):
        yield str(plan), str(name), bool(seen), group


def parts_table(frame: pd.DataFrame) -> str:
    """Mean errors with and without each part, by plan, corpus and class shares."""
    groups = list(list_parts(frame))
    shown = [part for part in PARTS if any(part in means for *_, means in groups)]
    rows = [
        [plan, corpus, shares, str(n_tasks), *(format_points(means.get(part)) for part in shown)]
        for plan, corpus, shares, n_tasks, means in groups
    ]
    says = "Mean error over the tasks, %. An empty cell has no record."
    return write_table(["plan", "corpus", "classes", "runs", *(PARTS[p] for p in shown)], rows, 3, says)


def list_parts(frame: pd.DataFrame) -> Iterator[tuple[str, str, str, int, dict[str, float]]]:
    """Give plan, corpus, whether classes are equal, number of runs, and the mean error with some parts."""
    is_ablation = frame["plan"].str.startswith("beyond")
    parts = frame["method"].str.removesuffix("-pair").where(~is_ablation, frame["variant"].map(LEFT_OUT))
    is_pair = frame["method"].str.endswith("-pair") | frame["method"].eq("source-only")
    own = frame.assign(part=parts)[parts.isin(list(PARTS)) & (is_pair | (frame["plan"] != PEERS_PLAN))]
    is_equal = (own["target_share"] - 0.5).abs().le(EQUAL) | own["plan"].str.startswith("beyond")
    corpora = own["variant"].where(own["plan"] == TRUST_PLAN, own["corpus"])
    keys = [own["plan"], corpora, is_equal.map({True: "equal", False: "uneven"})]
    for (plan, corpus, shares), group in own.groupby(keys, sort=False):
        tasks = group.groupby(["part", "variant", "task"])["transfer_error"].mean()
        if plan.startswith("beyond"):
            tasks = group.groupby(["part", "task"])["transfer_error"].mean()
        n_runs = tasks.groupby("part").size()
        means = tasks.groupby("part").mean()[n_runs == n_runs.max()]
        if len(means) > 2:
            yield str(plan), str(corpus), str(shares), int(n_runs.max()), means.to_dict()


def trust_table(frame: pd.DataFrame) -> str:
    """Errors of SVMs and undrift, the estimate of the error, harm and F1, a row a corpus."""
    rows = []
    for setting in list_settings(frame):
        ours, svm = setting.ours, setting.find_best([m for m in PLAIN if len(setting.of(m))])
        groups = [*(setting.of(method) for method in PLAIN), ours, setting.of(LARGER_CLASS)]
        tasks = set.intersection(*(set(group["task"]) for group in groups if len(group)))
        groups = [group[group["task"].isin(tasks)] for group in groups]
        known = ours[ours["expected_error"].notna()]
        f1 = [format_points(group["f1"].mean()) or "none" for group in groups[:3] if len(group)]
        rows.append([
            setting.name, setting.count(len(tasks)),
            *(format_points(mean_over_tasks(group)) for group in groups),
            *known[["transfer_error", "expected_error", "error_gap"]].mean().map(format_points),
            *(f"{n} of {len(ours)}" if len(ours) else "" for n in (len(known), _count_fallbacks(ours))),
            format_points(ours["error_held"].mean(), ".0f"),
            count_harm(ours, setting.of(svm), by=0.02) if svm and len(ours) else "",
            " / ".join(f1),
        ])  # fmt: skip
    names = ["corpus", "tasks", "SVM, %", "balanced SVM, %", "undrift, %", "larger class, %"]
    names += ["error where expected is known, %", "expected, %", "off by", "known on", "fell back on"]
    names += ["intervals that hold, %", "worse than the better SVM by over 2 points"]
    names += ["F1 of the rarer class: SVM / balanced / undrift"]
    says = (
        "Means over the tasks that every method of a row has a record of. An empty cell has no record. "
        "Off by: mean absolute error in points. Intervals are of 90%. Where undrift "
        "falls back it predicts by the classifier of the source alone."
    )
    return write_table(names, rows, 1, says, *list_stamps(frame))


def _count_fallbacks(ours: pd.DataFrame) -> int:
    return int(ours["fell_back"].eq(True).sum()) if "fell_back" in ours else 0
