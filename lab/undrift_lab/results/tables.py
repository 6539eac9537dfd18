"""Results as Markdown tables, each made from a data frame of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from ..catalogue import PEERS, find_family
from .frame import (
    Where,
    average_tasks,
    count_harm,
    first_seed,
    mean_over_tasks,
    rank_method,
)
from .published import ERRORS, EXPERIMENTS, TIMES
from .records import Record

MEANS = {  # of records, and how tables name them
    "transfer_error": "mean error, %",
    "transfer_ratio": "mean ratio",
    "represent_seconds": "to learn layers, s",
}
GPU = "NVIDIA"  # in the name of a machine
SOURCE_ONLY = "source-only"
PEERS_PLAN = "peers"
TAUGHT = {
    "undrift": "undrift",
    "minilm-finetuned": "encoder",
    "undrift+teacher": "undrift with the encoder as teacher",
}


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
    """Return versions of undrift, then machines, each once with the dates of its records."""
    frame = frame[frame["machine"].notna()]
    dates = frame.groupby("machine", sort=False)["date"].unique()
    return [*say_versions(frame), *(f"{', '.join(sorted(own))}: {name}." for name, own in dates.items())]


def say_versions(frame: pd.DataFrame) -> list[str]:
    """Say which version of undrift the records of our methods are of; by variant where there are several."""
    is_ours = frame["method"].map(find_family).isin(["undrift", "labels"])
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
    """Mean error, mean ratio and time of every method and setting."""
    rows = []
    for _, variant, method, own in group_methods(frame):
        error, ratio, seconds = (mean_over_tasks(own, name) for name in MEANS)
        cells = [format_points(error, ".2f"), format_number(ratio, "{:.3f}"), format_number(seconds)]
        rows.append([variant, method, str(own["task"].nunique()), *cells])
    names = ["setting", "method", "tasks", *MEANS.values()]
    return write_table(names, rows, 2, *list_stamps(frame), *list_reasons(failed))


def teachers_table(frame: pd.DataFrame) -> str:
    """An encoder alone and as a teacher, by variant: errors, and tasks above the teacher."""
    rows = []
    for variant, own in frame.groupby("variant", sort=False):
        parts = {method: own[own["method"] == method] for method in TAUGHT}
        gaps = average_tasks(parts["undrift+teacher"]) - average_tasks(parts["minilm-finetuned"])
        cells = [format_points(mean_over_tasks(part)) or "no record" for part in parts.values()]
        rows.append([str(variant), str(own["task"].nunique()), *cells, format_points(gaps.max(), "+.1f")])
    names = ["corpus", "tasks", *TAUGHT.values(), "worst task, points"]
    notes = (
        "Errors are means over the tasks, %. The encoder is fine-tuned on the source. Worst task: undrift "
        "with the teacher less the teacher."
    )
    return write_table(names, rows, 1, notes, *list_stamps(frame))


def field_table(frame: pd.DataFrame, failed: Sequence[Record] = ()) -> str:
    """Every method's mean error on each corpus, and the tasks that it made worse."""
    frame = first_seed(frame)
    errors = average_complete(frame)
    corpora = {name: [v for v in errors.columns if v.startswith(name)] for name in ("amazon", "fdu-mtl")}
    means = {name: errors[own].mean(axis=1, skipna=False) for name, own in corpora.items() if own}
    order = sum(means.values()).sort_values(na_position="last").index
    there, rows = frame[frame["method"] == SOURCE_ONLY], []
    for method in order:
        own = frame[frame["method"] == method]
        cells = [format_points(mean.get(method)) for mean in means.values()]
        rows.append([method, find_package(method), *cells, count_harm(own, there)])
    names = ["method", "package", *(f"{name}, %" for name in means), "worse"]
    notes = (
        "Mean errors over 20, 50 and 80% positives. Worse: tasks with an error above that of "
        f"{SOURCE_ONLY} by more than a point."
    )
    reasons = dict.fromkeys(f"Failed: {r['method']} ({r['failed']})." for r in failed)
    return write_table(names, rows, 2, notes, *list_stamps(frame), *reasons)


def average_complete(frame: pd.DataFrame, name: str = "transfer_error") -> pd.DataFrame:
    """Return means by method and variant, NaN where a method lacks a task that another one has."""
    by_task = frame.groupby(["method", "variant", "task"])[name].mean()
    groups = by_task.groupby(["method", "variant"])
    n_tasks = groups.size().unstack()
    return groups.mean().unstack().where(n_tasks == n_tasks.max())


def find_package(method: str) -> str:
    """Return the package that a method is of."""
    return PEERS[method].package.partition(".")[0] if method in PEERS else "undrift"


def distance_table(distances: pd.DataFrame, failed: Sequence[Record] = ()) -> str:
    """Distances of the pairs of domains, before and after, and how they were measured."""
    rows = []
    for r in distances.to_dict("records"):
        before, after = (
            f"{r[name]:.3f} ({r[name + '_low']:.3f} to {r[name + '_high']:.3f})"
            for name in ("distance_before", "distance_after")
        )
        is_apart = r["distance_after_low"] > r["distance_before_high"]
        grows = "yes" if is_apart else "yes, intervals overlap" if r["grows"] else "no"
        rows.append([f"{r['source']}, {r['target']}", before, after, grows])
    notes = dict.fromkeys(
        f"Of each domain {about['n_rows']:,} rows, evenly spaced, are told apart: before, by presence of "
        f"terms; after, by that and {about['n_layers']} layers, learnt from all rows at noise "
        f"{about['noise']:g}, not chosen. Intervals are 95%, by bootstrap over the rows held out."
        for about in distances["params"].dropna()
    )
    return write_table(["domains", "before", "after", "grows"], rows, 1, *notes, *list_reasons(failed))


def say_grown(distances: pd.DataFrame) -> str:
    """Say for how many pairs of domains the distance grows, and for how many the intervals are apart."""
    n_apart = int((distances["distance_after_low"] > distances["distance_before_high"]).sum())
    return f"{int(distances['grows'].sum())} of {len(distances)} pairs, beyond the intervals for {n_apart}"


def published_table(frame: pd.DataFrame) -> str:
    """Published numbers beside ours."""
    rows = []
    for said in (*TIMES, *ERRORS):
        here, value = said.find_ours(frame), said.value or f"{said.mean:.2%}"
        seen = "unseen" if said.method == "svm" or said.variant in ("inductive", "published") else "seen"
        rows.append([said.text, said.test_rows, value, here, seen if here and said.errors else ""])
    names = ["published", "test rows", "theirs", "here", "test rows here"]
    notes = "Seen: test rows are among the unlabelled ones."
    return write_table(names, rows, 2, notes)


def experiments_table(frame: pd.DataFrame, distances: pd.DataFrame, methods: Sequence[str] = ()) -> str:
    """The paper's experiments in short: its errors and times beside ours, of some `methods` or all.

    Times are those of learning layers on a GPU; other processors are shared with other work, and their times
    say little. With two files a task there is no time of the layers alone.
    """
    rows = []
    for said in EXPERIMENTS:
        if frame[frame["plan"] == said.plan].empty or (methods and said.method not in methods):
            continue
        own = Where(said.plan, said.variant, said.method).of(frame)
        of_gpu = own[own["machine"].fillna("").str.contains(GPU) & (own["variant"] != "files")]
        seconds = mean_over_tasks(of_gpu, "represent_seconds") or None
        form = "{:.0f} s" if seconds and seconds >= 10 else "{:.2g} s"
        time = format_number(seconds, form) or ("not measured" if said.time else "")
        here = format_points(mean_over_tasks(own)) or "not measured"
        n_tasks = own["task"].nunique()
        here += f" ({n_tasks} of {said.n_tasks} tasks)" if 0 < n_tasks < said.n_tasks else ""
        rows.append([said.text, said.method, format_number(said.error, "{:.1f}"), here, said.time, time])
    if len(distances):
        grown = f"grows for {say_grown(distances)}"
        rows.append(["proxy A-distance", "msda-5", "grows", grown, "", ""])
    return write_table(["experiment", "method", "paper, %", "here, %", "paper, time", "here, time"], rows, 2)
