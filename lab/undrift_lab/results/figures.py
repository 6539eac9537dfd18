"""The paper's figures and ours as data: what to draw, not how; `draw.py` draws them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from ..catalogue import WITH_LABELS, split_label_method
from .evidence import PARTS, list_estimates, list_parts, list_settings
from .frame import (
    LARGER_CLASS,
    add_larger_class,
    average_tasks,
    list_hardware,
    make_frame,
    mean_over_tasks,
    rank_method,
)
from .published import AMAZON, PAPER, SAME_ROWS, has_same_rows
from .records import Record
from .tables import (
    PEERS_PLAN,
    TRUST_PLAN,
    average_complete,
    find_package,
    group_methods,
    varies_shares,
)

Figure = dict[str, Any]

ON_CPU = ("svm", "svm-tfidf", "pca", "scl", "coda")  # whatever the device of a run
THE_PAPERS = "the paper's times are of twelve cores at 2.66 GHz"
OURS_AND_SVM = ("undrift", "undrift-pair", "svm-tfidf", LARGER_CLASS)
MEAN_ERROR = "mean error over the tasks (%)"


def make_figure(kind: str, name: str, title: str, x_label: str, y_label: str, **data: Any) -> Figure:
    """Return a figure: its kind, name, words, and what the kind draws."""
    return {"name": name, "kind": kind, "title": title, "x_label": x_label, "y_label": y_label, **data}


def all_figures(records: Sequence[Record]) -> list[Figure]:
    """Every figure that the records have something for."""
    figures: list[Figure] = []
    frame = make_frame(records)
    for plan, group in frame.groupby("plan", sort=False):
        if group["n_target_labels"].nunique() > 1:
            figures += label_figures(group)
        elif plan == TRUST_PLAN:
            continue  # its figures are those of all plans
        elif varies_shares(group):
            figures += share_figures(group, field=plan == PEERS_PLAN)
        elif group["n_features"].nunique() > 1:
            in_domain = [r for r in records if r.get("kind") == "in-domain" and r.get("plan") == plan]
            figures.append(figure_3_left(group, in_domain))
        else:
            for _, own in group.groupby("variant", sort=False):
                figures += [figure_1(own), figure_2(own)]
    whole = [draw(frame) for draw in (corpus_figure, expected_figure, parts_figure) if len(frame)]
    figures += [figure for figure in whole if figure.get("series") or figure.get("points")]
    distances = [r for r in records if r.get("kind") == "distance"]
    settings = dict.fromkeys((r["plan"], r["variant"]) for r in distances)
    return figures + [
        figure_3_right([r for r in distances if (r["plan"], r["variant"]) == setting]) for setting in settings
    ]


def choose_figures(records: Sequence[Record], patterns: Sequence[str] | None = None) -> list[Figure]:
    """Return the figures of records whose name fits one of the patterns; without any, all."""
    return [
        each
        for each in all_figures(records)
        if patterns is None or any(fnmatchcase(each["name"], pattern) for pattern in patterns)
    ]


def share_figures(frame: pd.DataFrame, *, field: bool = False) -> list[Figure]:
    """Mean error against the share of positives in the target, a line a method; one for each corpus.

    All methods; or, of a `field` of many, ours, the SVM, and the best of every package.
    """
    figures, frame = [], add_larger_class(frame)
    for corpus, own in frame.groupby("corpus"):
        shown = choose_field(own) if field else own["method"].unique()
        series = []
        for method in sorted(shown, key=rank_method):
            groups = own[own["method"] == method].groupby("target_share")
            means = {share: mean_over_tasks(group) for share, group in groups}
            line = {"x": [100 * share for share in means], "y": [100 * mean for mean in means.values()]}
            series.append({"label": method, **line})
        name = f"{own['plan'].iloc[0]}-{corpus}-error-by-share"
        title = f"Error against the target's class shares \N{EN DASH} {corpus}"
        words = title, "share of positives in the target (%)", MEAN_ERROR
        figures.append(make_figure("lines", name, *words, series=series, y_from=0.0))
    return figures


def choose_field(frame: pd.DataFrame) -> list[str]:
    """Return ours, the tf-idf SVM, the larger class and every package's best, where all columns are."""
    means = average_complete(frame).mean(axis=1, skipna=False).dropna().sort_values()
    best: dict[str, str] = {}
    for method in means.index:
        package = find_package(method)
        if method in OURS_AND_SVM or package != "undrift":
            best.setdefault(method if method in OURS_AND_SVM else package, method)
    return list(best.values())


def label_figures(frame: pd.DataFrame) -> list[Figure]:
    """Mean error against the number of target labels, a line a method; one for each corpus and share."""
    figures = []
    for (corpus, share), own in frame[frame["n_target_labels"].notna()].groupby(["corpus", "target_share"]):
        kinds = own["method"].map(lambda method: split_label_method(method)[0])
        means = {
            (kind, int(n)): 100 * mean_over_tasks(group)
            for (kind, n), group in own.groupby(
                [kinds.where(own["n_target_labels"] > 0, "none"), "n_target_labels"]
            )
        }
        numbers, series = sorted({n for _, n in means}), []
        for kind in [kind for kind in ("none", *WITH_LABELS) if any(kind == name for name, _ in means)]:
            points = {n: means[kind, n] for n in numbers if (kind, n) in means}
            if kind == "none":  # a level line
                points = dict.fromkeys(numbers, means["none", 0])
            elif kind not in ("augmented", "target-only") and ("none", 0) in means:
                points = {0: means["none", 0], **points}
            series.append({"label": kind, "x": list(points), "y": list(points.values())})
        name = f"{own['plan'].iloc[0]}-{corpus}-{round(100 * share)}-error-by-labels"
        title = f"Error against target labels \N{EN DASH} {corpus}, {share:.0%} positive"
        words = title, "labelled target rows", MEAN_ERROR
        figures.append(make_figure("lines", name, *words, series=series, y_from=0.0))
    return figures


def corpus_figure(frame: pd.DataFrame) -> Figure:
    """Every task's error less that of the strongest baseline, a row a setting."""
    series = []
    for setting in list_settings(frame):
        best, ours = setting.find_best(setting.baselines), setting.ours
        if best is None or ours.empty:
            continue
        gaps = (average_tasks(ours) - average_tasks(setting.of(best))).dropna()
        seen = "" if setting.is_seen else ", unseen rows"
        label = f"{setting.plan}: {setting.name}{seen}, less {best}"
        series.append({"label": label, "of": setting.plan, "y": list(gaps)})
    title = "undrift with two files less the strongest baseline, every task a point"
    words = title, "task", "difference in points"
    data: dict[str, Any] = {"x": [], "series": series, "percent": True, "keeps_order": True}
    return make_figure("points", "error-by-corpus", *words, **data)


def expected_figure(frame: pd.DataFrame) -> Figure:
    """Expected against measured error, every task a point; with its interval where the record has one."""
    points = [
        {
            "label": f"{plan}: {name}{'' if seen else ', unseen rows'}",
            "x": r.transfer_error,
            "y": (r.expected_low + r.expected_high) / 2 if pd.isna(r.expected_error) else r.expected_error,
            "y_interval": None if pd.isna(r.expected_low) else [r.expected_low, r.expected_high],
            "is_known": not pd.isna(r.expected_error),
        }
        for plan, name, seen, own in list_estimates(frame)
        for r in own.itertuples()
    ]
    words = "Expected against measured error, every task a point", "measured error (%)", "expected error (%)"
    note = "vertical lines: 90% intervals; hollow: not known, the middle of the bounds is drawn"
    return make_figure("estimates", "expected-error", *words, points=points, note=note)


def parts_figure(frame: pd.DataFrame) -> Figure:
    """Mean error with some parts, a row for the parts and class shares, a mark for a plan and corpus."""
    groups, series = list(list_parts(frame)), []
    for shares in ("equal", "uneven"):
        for part, says in PARTS.items():
            errors = [means[part] for _, _, own, _, means in groups if own == shares and part in means]
            if errors:
                series.append({"label": f"{shares} classes: {says}", "of": shares, "y": errors})
    words = "Mean error with each part, a mark for each plan and corpus", "", "mean error (%)"
    data: dict[str, Any] = {"x": [], "series": series, "percent": True, "keeps_order": True}
    note = "rows have different marks where records are missing: compare with the table"
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
        for theirs in (each for each in AMAZON if each.protocol == SAME_ROWS):
            losses = [
                theirs.errors[task] - baseline[task.split("->")[1]] if task in theirs.errors else None
                for task in tasks
            ]
            overlay.append({"label": f"{theirs.label} ({theirs.reference})", "y": losses})
    title = _titled(frame, "Transfer loss: error above that of the in-domain baseline")
    words = title, "task", "transfer loss (points of error)"
    data: dict[str, Any] = {"x": tasks, "series": series, "published": overlay, "percent": True}
    return make_figure("points", _name(frame, "figure-1"), *words, **data)


def figure_2(frame: pd.DataFrame) -> Figure:
    """Mean transfer ratio against the time to learn a representation (section 5, figure 2)."""
    series: list[dict[str, Any]] = []
    learnt: dict[str, list[str]] = {}
    for _, _, method, own in group_methods(frame):
        seconds, hardware = mean_over_tasks(own, "represent_seconds"), list_hardware(own["machine"].iloc[0])
        is_gpu = len(hardware) > 1 and method not in ON_CPU
        point = {
            "x": [seconds],
            "y": [mean_over_tasks(own, "transfer_ratio")],
            "device": "GPU" if is_gpu else "CPU",
        }
        series.append({"label": method, **point})
        if hardware and seconds:
            learnt.setdefault(hardware[-1 if is_gpu else 0], []).append(method)
    marks = [
        {"label": f"paper: {said.method} {said.value}", "x": said.seconds}
        for said in PAPER
        if said.plan == frame["plan"].iloc[0] and said.seconds is not None
    ]
    where = [f"{', '.join(methods)} on {name}" for name, methods in learnt.items()]
    note = "; ".join([*(["learnt: " + "; ".join(where)] if where else []), *([THE_PAPERS] if marks else [])])
    title = _titled(frame, "Transfer ratio against training time")
    words = title, "seconds to learn a representation (CODA: a task), log", "mean transfer ratio"
    data: dict[str, Any] = {"x_log": True, "series": series, "marks": marks, "note": note}
    return make_figure("scatter", _name(frame, "figure-2"), *words, **data)


def figure_3_left(frame: pd.DataFrame, in_domain: Iterable[Record] = ()) -> Figure:
    """Mean transfer ratio against the number of input features (figure 3 left)."""
    variants = {record["variant"] for record in in_domain}
    widths = frame[frame["variant"].isin(variants)]["n_features"].unique()
    # where one variant has the in-domain errors for all
    relative = f", relative to the baseline at {int(widths[0]):,}" if len(widths) == 1 else ""
    series = []
    for method, own in sorted(frame.groupby("method"), key=lambda item: rank_method(item[0])):
        ratios = {int(n): mean_over_tasks(group, "transfer_ratio") for n, group in own.groupby("n_features")}
        series.append({"label": method, "x": list(ratios), "y": list(ratios.values())})
    is_acl = frame["corpus"].iloc[0] == "processed_acl"
    note = "not the paper's exact setting: processed_acl has no unlabelled part" if is_acl else ""
    words = "Transfer ratio against dimensionality", "input features", "mean transfer ratio" + relative
    return make_figure("lines", f"{frame['plan'].iloc[0]}-figure-3-left", *words, series=series, note=note)


def figure_3_right(records: Sequence[Record]) -> Figure:
    """Proxy A-distance before and after mSDA, a point for each pair of domains (figure 3 right)."""
    measured = [record for record in records if "failed" not in record]
    points = [
        {
            "label": f"{r['source']}, {r['target']}",
            "x": r["distance_before"],
            "y": r["distance_after"],
            "x_interval": [r["distance_before_low"], r["distance_before_high"]],
            "y_interval": [r["distance_after_low"], r["distance_after_high"]],
        }
        for r in measured
    ]
    n_grown = sum(point["y"] > point["x"] for point in points)
    title = f"Proxy A-distance grows for {n_grown} of {len(points)} pairs of domains"
    words = title, "proxy A-distance on binary counts", "proxy A-distance after mSDA"
    settings = dict.fromkeys(tuple(sorted((r.get("params") or {}).items())) for r in measured)
    note = "; ".join(
        f"{about['n_rows']:,} rows of each domain; {about['n_layers']} layers at noise {about['noise']:g}, "
        "not chosen; lines are 95% intervals"
        for about in map(dict, settings)
        if about
    )
    name = f"{records[0]['plan']}-{records[0]['variant']}-figure-3-right".replace(" ", "-")
    return make_figure("pairs", name, *words, points=points, note=note)


def _titled(frame: pd.DataFrame, title: str) -> str:
    return f"{title} – {frame['plan'].iloc[0]}, {frame['variant'].iloc[0]}"


def _name(frame: pd.DataFrame, figure: str) -> str:
    return f"{frame['plan'].iloc[0]}-{frame['variant'].iloc[0]}-{figure}".replace(" ", "-")
