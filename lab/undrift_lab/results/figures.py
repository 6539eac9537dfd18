"""The paper's figures and ours as data: what to draw, not how; `draw.py` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from .evidence import PARTS, list_estimates, list_parts, list_settings
from .frame import (
    add_larger_class,
    average_tasks,
    compare,
    first_seed,
    frame_distances,
    make_frame,
    mean_over_tasks,
    rank_method,
)
from .published import ERRORS, TIMES, has_same_rows
from .records import Record
from .tables import PEERS_PLAN, TRUST_PLAN, group_methods, varies_shares

Figure = dict[str, Any]

ON_CPU = ("svm", "svm-tfidf", "pca", "scl", "coda")  # whatever the device of a run
RATIO_BY_TIME = {"x": "represent_seconds", "y": "transfer_ratio"}
THE_PAPERS = "the paper's times are of twelve cores at 2.66 GHz"
MEAN_ERROR = "mean error over the tasks (%)"


def make_figure(kind: str, name: str, title: str, x_label: str, y_label: str, **data: Any) -> Figure:
    """Return a figure: its kind, name, words, and what the kind draws."""
    return {"name": name, "kind": kind, "title": title, "x_label": x_label, "y_label": y_label, **data}


def all_figures(records: Sequence[Record]) -> list[Figure]:
    """Every figure that the records have something for."""
    figures: list[Figure] = []
    frame = make_frame(records)
    for plan, group in frame.groupby("plan", sort=False):
        if plan in (PEERS_PLAN, TRUST_PLAN) or group["n_target_labels"].notna().any():
            continue  # tables show them
        elif varies_shares(group):
            figures += share_figures(group)
        elif group["n_features"].nunique() > 1:
            figures.append(figure_3_left(group))
        else:
            for _, own in group.groupby("variant", sort=False):
                figures += [figure_1(own), figure_2(own)]
    whole = [draw(frame) for draw in (corpus_figure, expected_figure, parts_figure) if len(frame)]
    figures += [figure for figure in whole if figure.get("series") or figure.get("points")]
    distances = frame_distances(records).groupby(["plan", "variant"], sort=False)
    return figures + [figure_3_right(own) for _, own in distances]


def choose_figures(records: Sequence[Record], patterns: Sequence[str] | None = None) -> list[Figure]:
    """Return the figures of records whose name fits one of the patterns; without any, all."""
    return [
        each
        for each in all_figures(records)
        if patterns is None or any(fnmatchcase(each["name"], pattern) for pattern in patterns)
    ]


def share_figures(frame: pd.DataFrame) -> list[Figure]:
    """Mean error against the share of positives in the target, a line a method; one for each corpus."""
    figures, frame = [], add_larger_class(frame)
    for corpus, own in frame.groupby("corpus"):
        series = []
        for method in sorted(own["method"].unique(), key=rank_method):
            groups = own[own["method"] == method].groupby("target_share")
            means = {share: mean_over_tasks(group) for share, group in groups}
            line = {"x": [100 * share for share in means], "y": [100 * mean for mean in means.values()]}
            series.append({"label": method, **line})
        name = f"{own['plan'].iloc[0]}-{corpus}-error-by-share"
        title = f"Error against the target's class shares \N{EN DASH} {corpus}"
        words = title, "share of positives in the target (%)", MEAN_ERROR
        figures.append(make_figure("lines", name, *words, series=series, y_from=0.0))
    return figures


def corpus_figure(frame: pd.DataFrame) -> Figure:
    """Every task's error less that of the strongest baseline, a row a setting."""
    series = []
    for setting in list_settings(frame):
        best, ours = setting.find_best(setting.baselines), setting.ours
        compared = compare(ours, best)
        if compared is None:
            continue
        ours, theirs = (average_tasks(rows[rows["seed"].isin(compared.seeds)]) for rows in (ours, best))
        gaps = (ours - theirs).dropna()
        seen = "" if setting.test_rows == "seen" else f", {setting.test_rows}"
        label = f"{setting.plan}: {setting.name}{seen}, less {best['method'].iloc[0]}"
        series.append({"label": label, "of": setting.plan, "y": list(gaps)})
    title = "undrift with two files less the strongest baseline, every task a point"
    words = title, "task", "difference in points"
    data: dict[str, Any] = {"x": [], "series": series, "percent": True, "keeps_order": True}
    return make_figure("points", "error-by-corpus", *words, **data)


def expected_figure(frame: pd.DataFrame) -> Figure:
    """Expected against measured error, every task a point; with its interval where the record has one."""
    points = [
        {
            "label": f"{plan}: {name}{'' if test_rows == 'seen' else f', {test_rows}'}",
            "x": r.transfer_error,
            "y": (r.expected_low + r.expected_high) / 2 if pd.isna(r.expected_error) else r.expected_error,
            "y_interval": None if pd.isna(r.expected_low) else [r.expected_low, r.expected_high],
            "is_known": not pd.isna(r.expected_error),
        }
        for plan, name, test_rows, _, own in list_estimates(first_seed(frame))
        for r in own.itertuples()
    ]
    words = "Expected against measured error, every task a point", "measured error (%)", "expected error (%)"
    note = "first seed; vertical lines: 90% intervals; hollow: not known, the middle of the bounds is drawn"
    return make_figure("estimates", "expected-error", *words, points=points, note=note, percent=True)


def parts_figure(frame: pd.DataFrame) -> Figure:
    """Mean error with some parts, a row for the parts and class shares, a mark for a plan and corpus."""
    groups, series = list(list_parts(frame)), []
    newest = {tuple(where): means for *where, _, _, means in sorted(groups, key=lambda group: group[3])}
    drawn = [(shares, means) for (*_, shares), means in newest.items()]
    for shares in ("equal", "uneven"):
        for part, says in PARTS.items():
            errors = [means[part] for own, means in drawn if own == shares and part in means]
            if len(errors) == sum(own == shares for own, _ in drawn) > 0:
                series.append({"label": f"{shares} classes: {says}", "of": shares, "y": errors})
    words = "Mean error with each part, a mark for each plan and corpus", "", "mean error (%)"
    data: dict[str, Any] = {"x": [], "series": series, "percent": True, "keeps_order": True}
    note = "newest versions; parts without a record on some corpus are left out; on crisis undrift falls back"
    return make_figure("points", "gain-by-part", *words, note=note, **data)


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
    data: dict[str, Any] = {"x": tasks, "series": series, "published": overlay, "percent": True}
    return make_figure("points", _name(frame, "figure-1"), *words, **data)


def figure_2(frame: pd.DataFrame) -> Figure:
    """Mean transfer ratio against the time to learn a representation (section 5, figure 2)."""
    series = []
    for _, _, method, own in group_methods(frame):
        is_gpu = method not in ON_CPU and "; torch " in str(own["machine"].iloc[0])
        point = {name: [mean_over_tasks(own, measure)] for name, measure in RATIO_BY_TIME.items()}
        series.append({"label": method, "device": "GPU" if is_gpu else "CPU", **point})
    marks = [
        {"label": f"paper: {said.method} {said.value}", "x": said.seconds}
        for said in TIMES
        if said.plan == frame["plan"].iloc[0] and said.seconds is not None
    ]
    note = "squares: learnt on a GPU, circles: on a CPU" + (f"; {THE_PAPERS}" if marks else "")
    title = _titled(frame, "Transfer ratio against training time")
    words = title, "seconds to learn a representation (CODA: a task), log", "mean transfer ratio"
    data: dict[str, Any] = {"x_log": True, "series": series, "marks": marks, "note": note}
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
    title = f"Proxy A-distance grows for {int(distances['grows'].sum())} of {len(points)} pairs of domains"
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
    return f"{title} – {frame['plan'].iloc[0]}, {frame['variant'].iloc[0]}"


def _name(frame: pd.DataFrame, figure: str) -> str:
    return f"{frame['plan'].iloc[0]}-{frame['variant'].iloc[0]}-{figure}".replace(" ", "-")
