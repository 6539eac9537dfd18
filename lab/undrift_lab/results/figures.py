"""The paper's figures and ours as data: what to draw, not how; `draw.py` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from ..corpora import FAMILIES
from .frame import (
    average_tasks,
    frame_distances,
    make_frame,
    mean_over_tasks,
    rank_method,
)
from .kinds import PLAN as KINDS
from .kinds import Tasks, group_tasks, list_by_share, name_family
from .published import ERRORS, has_same_rows
from .records import Record
from .tables import GPU, group_methods, say_grown

Figure = dict[str, Any]

ON_CPU = ("svm", "svm-tfidf", "pca", "scl", "coda")  # whatever the device of a run
DIMENSIONS = "dimensions"  # plan of figure 3, left
MOST_TASKS = 12  # that figure 1 shows one by one
PARTS = {  # readings of undrift, and undrift
    "source only": "the source alone",
    "unmoved": "words kept their meaning",
    "same mix": "the mix of classes is the same",
    "undrift": "undrift: all readings vote",
}
MEAN_ERROR = "mean error over the tasks (%)"


def make_figure(kind: str, name: str, title: str, x_label: str, y_label: str, **data: Any) -> Figure:
    """Return a figure: its kind, name, words, and what the kind draws."""
    return {"name": name, "kind": kind, "title": title, "x_label": x_label, "y_label": y_label, **data}


def all_figures(records: Sequence[Record]) -> list[Figure]:
    """Every figure that the records have something for."""
    figures: list[Figure] = []
    frame = make_frame(records)
    for plan, group in frame.groupby("plan", sort=False):
        if plan == KINDS:
            figures += kinds_figures(group_tasks(group))
        elif plan == DIMENSIONS:
            figures.append(figure_3_left(group))
        else:
            for _, own in group.groupby("variant", sort=False):
                if own["n_features"].nunique() == 1:  # one representation of all tasks
                    figures += [figure_1(own), figure_2(own)]
    distances = frame_distances(records).groupby(["plan", "variant"], sort=False)
    return figures + [figure_3_right(own) for _, own in distances]


def choose_figures(records: Sequence[Record], patterns: Sequence[str] | None = None) -> list[Figure]:
    """Return the figures of records whose name fits one of the patterns; without any, all."""
    return [
        each
        for each in all_figures(records)
        if patterns is None or any(fnmatchcase(each["name"], pattern) for pattern in patterns)
    ]


def kinds_figures(tasks: Tasks) -> list[Figure]:
    """Figures of plan kinds: by family against simple methods, parts, class shares, and expected errors."""
    figures = [families_figure(tasks), parts_figure(tasks), share_figure(tasks), expected_figure(tasks)]
    return [figure for figure in figures if figure.get("series") or figure.get("panels")]


def families_figure(tasks: Tasks) -> Figure:
    """Every task's error less that of the better of SVM and logistic regression, a row a family."""
    gaps = (tasks.take("undrift") - tasks.simple).dropna()
    series = [
        {"label": name_family(family), "of": "undrift", "y": list(own)}
        for family, own in gaps.groupby(tasks.about.loc[gaps.index, "family"])
    ]
    words = "undrift less the better of SVM and logistic regression, every task a point", "task"
    note = "left of zero: undrift makes fewer errors; black bars: means"
    return make_figure(
        "points", KINDS, *words, "difference in points", series=series, percent=True, note=note
    )


def parts_figure(tasks: Tasks) -> Figure:
    """Mean error of the readings and of undrift, a row a family."""
    ours = tasks.records[tasks.records["method"] == "undrift"].set_index("task_of_variant")
    given = ours["readings"].dropna() if "readings" in ours else pd.Series(dtype=object)
    errors = pd.DataFrame(given.tolist(), index=given.index).assign(undrift=ours["transfer_error"])
    families, series = tasks.about["family"].reindex(errors.index), []
    for name in (name for name in PARTS if name in errors):
        means = 100 * errors[name].groupby(families).mean()
        series.append(
            {"label": PARTS[name], "of": name, "x": list(means), "rows": list(map(name_family, means.index))}
        )
    words = "Error of each reading and of undrift", "mean error over the tasks (%)", ""
    return make_figure("rows", "gain-by-part", *words, series=series if len(given) else [])


def share_figure(tasks: Tasks) -> Figure:
    """Mean error against the share of positives in the target, a line a method."""
    lines: dict[str, dict[str, list[float]]] = {}
    for share, (_, means) in list_by_share(tasks).items():
        for says, mean in means.items():
            if mean == mean:  # no record otherwise
                line = lines.setdefault(says, {"x": [], "y": []})
                line["x"].append(100 * share)
                line["y"].append(100 * mean)
    series = [{"label": says, **line} for says, line in lines.items()]
    words = "Error against the target's class shares, reviews", "share of positives in the target (%)"
    note = "the same eight pairs at every share but 50%, which has twelve others"
    return make_figure("lines", "uneven", *words, MEAN_ERROR, series=series, y_from=0.0, note=note)


def expected_figure(tasks: Tasks) -> Figure:
    """Expected against measured error, every task a point with its interval, a panel a family."""
    own = tasks.records[(tasks.records["method"] == "undrift") & tasks.records["expected_error"].notna()]
    own = own.assign(family=own["corpus"].map(FAMILIES))
    panels = [
        {
            "title": name_family(family),
            "points": [
                {
                    "x": r.transfer_error,
                    "y": r.expected_error,
                    "y_interval": None if pd.isna(r.expected_low) else [r.expected_low, r.expected_high],
                }
                for r in rows.itertuples()
            ],
        }
        for family, rows in own.groupby("family")
    ]
    words = "Expected against measured error, every task a point", "measured error (%)", "expected error (%)"
    note = "vertical lines: 90% intervals; dotted: equal"
    return make_figure("multiples", "expected-error", *words, panels=panels, note=note, percent=True)


def figure_1(frame: pd.DataFrame) -> Figure:
    """Transfer loss per task, one series per method (section 5, figure 1).

    Published errors are turned into losses with our in-domain errors, and only where the test rows
    are the same.
    """
    tasks = sorted(frame["task"].unique())
    baseline = dict(zip(frame["target"], frame["baseline_in_domain_error"], strict=True))
    series = []
    for _, _, method, own in group_methods(frame):
        losses = average_tasks(own, "transfer_loss")
        series.append({"label": method, "y": [losses.get(task) for task in tasks]})
    overlay = []
    if has_same_rows(frame):
        for theirs in (each for each in ERRORS if each.has_same_rows):
            losses = [
                theirs.errors[task] - baseline[task.split("->")[1]] if task in theirs.errors else None
                for task in tasks
            ]
            overlay.append({"label": theirs.text, "y": losses})
    title = _titled(frame, "Transfer loss: error above that of the in-domain baseline")
    words = title, "task", "transfer loss (points of error)"
    data: dict[str, Any] = {"series": series, "published": overlay, "percent": True}
    if len(tasks) <= MOST_TASKS:
        return make_figure("tasks", _name(frame, "figure-1"), *words, tasks=tasks, **data)
    return make_figure("points", _name(frame, "figure-1"), *words, x=tasks, **data)


def figure_2(frame: pd.DataFrame) -> Figure:
    """Mean transfer ratio against the time to learn a representation (section 5, figure 2)."""
    series, levels = [], []
    for _, _, method, own in group_methods(frame):
        ratio = mean_over_tasks(own, "transfer_ratio")
        if method in ON_CPU:
            levels.append({"label": method, "y": ratio})
        else:
            series.append({"label": method, "x": [mean_over_tasks(own, "represent_seconds")], "y": [ratio]})
    title = _titled(frame, "Transfer ratio against training time")
    is_gpu = frame["machine"].fillna("").str.contains(GPU).any()
    where = "on one GPU" if is_gpu else "on a shared processor"
    note = "dotted: methods that learn no representation" + (", or learn it on a processor" if is_gpu else "")
    words = title, f"seconds to learn a representation {where}, log", "mean transfer ratio"
    data: dict[str, Any] = {"x_log": True, "series": series, "levels": levels, "note": note}
    return make_figure("scatter", _name(frame, "figure-2"), *words, **data)


def figure_3_left(frame: pd.DataFrame) -> Figure:
    """Mean transfer ratio against the number of input features (figure 3 left)."""
    series = []
    for method, own in sorted(frame.groupby("method"), key=lambda item: rank_method(item[0])):
        ratios = {int(n): mean_over_tasks(group, "transfer_ratio") for n, group in own.groupby("n_features")}
        series.append({"label": method, "x": list(ratios), "y": list(ratios.values())})
    note = "ratios are relative to the baseline at 5,000 features; processed_acl has no unlabelled part"
    words = "Transfer ratio against dimensionality", "input features", "mean transfer ratio"
    return make_figure("lines", f"{frame['plan'].iloc[0]}-figure-3-left", *words, series=series, note=note)


def figure_3_right(distances: pd.DataFrame) -> Figure:
    """Proxy A-distance before and after mSDA, a point for each pair of domains (figure 3 right)."""
    points = [
        {
            "label": f"{r.source}, {r.target}",
            "x": r.distance_before,
            "y": r.distance_after,
            "x_interval": [r.distance_before_low, r.distance_before_high],
            "y_interval": [r.distance_after_low, r.distance_after_high],
        }
        for r in distances.itertuples()
    ]
    title = f"Proxy A-distance grows for {say_grown(distances)}"
    words = title, "proxy A-distance on binary counts", "proxy A-distance after mSDA"
    notes = dict.fromkeys(
        f"{about['n_rows']:,} rows of each domain; {about['n_layers']} layers at noise {about['noise']:g}, "
        "not chosen; lines are 95% intervals"
        for about in distances["params"].dropna()
    )
    return make_figure(
        "estimates", _name(distances, "figure-3-right"), *words, points=points, note="; ".join(notes)
    )


def _titled(frame: pd.DataFrame, title: str) -> str:
    place = f"plan {frame['plan'].iloc[0]}, {frame['variant'].iloc[0]}"
    return f"{title}, {frame['task'].nunique()} tasks ({place})"


def _name(frame: pd.DataFrame, figure: str) -> str:
    return f"{frame['plan'].iloc[0]}-{frame['variant'].iloc[0]}-{figure}".replace(" ", "-")
