"""The paper's figures as data: what to draw and no word of how; `undrift.report` draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from statistics import fmean
from typing import Any

from ..catalogue import PEERS
from .measures import (
    LARGER_CLASS,
    PEERS_PLAN,
    REFERENCE,
    Difference,
    Where,
    by_task,
    differences,
    group_by_labels,
    group_by_share,
    list_hardware,
    mean_of,
    mean_over_tasks,
    mean_peer_errors,
    mean_ratio,
    peak_gigabytes,
    places,
    sort_places,
    task,
    varies_labels,
    varies_shares,
    where,
)
from .published import AMAZON, HIGH_DIMENSION, PAPER, SAME_ROWS, same_test_rows
from .records import Record

Figure = dict[str, Any]

ON_CPU = ("svm", "svm-tfidf", "pca", "scl", "coda")  # whatever the device of a run
THE_PAPERS = "the paper's times are of twelve cores at 2.66 GHz"
OTHER_SETTING = {"processed_acl": "not the paper's exact setting: processed_acl has no unlabelled part"}
OURS_AND_SVM = ("undrift", "undrift-pair", "svm-tfidf")
MEAN_ERROR = "mean error over the tasks (%)"


def make_figure(kind: str, name: str, title: str, x_label: str, y_label: str, **data: Any) -> Figure:
    """Return a figure: its kind, name, words, and what the kind draws."""
    return {"name": name, "kind": kind, "title": title, "x_label": x_label, "y_label": y_label, **data}


def all_figures(records: Sequence[Record]) -> list[Figure]:
    """Every figure that the records have something for."""
    figures: list[Figure] = []
    for plan in dict.fromkeys(place.plan for place in places(records)):
        group = [record for record in records if record.get("plan") == plan]
        if varies_labels(group):
            figures += label_figures(group)
        elif plan == PEERS_PLAN:
            by_corpus = [[r for r in group if r.get("corpus") == name] for name in _corpora(group)]
            figures += [each for some in by_corpus for each in share_figures(some, choose_field(some))]
        elif varies_shares(group):
            figures += share_figures(group)
        elif len({record.get("n_features") for record in group if "transfer_error" in record}) > 1:
            figures += [figure_3_left(group), dimension_times(group)]
            figures += [figure for figure in [dimension_memory(group)] if figure["series"]]
        else:
            # variants of an ablation have one figure together
            compared = {each.where.variant for each in differences(group, plan)}
            for variant in dict.fromkeys(place.variant for place in places(group)):
                ours = _of(group, plan, variant)
                if variant not in compared:
                    figures += [figure_1(ours), *([] if compared else [figure_2(ours)]), *task_matrices(ours)]
    distances = dict.fromkeys((r["plan"], r["variant"]) for r in records if r.get("kind") == "distance")
    figures += [figure_3_right(_of(records, *setting)) for setting in distances]
    return figures + training_losses(records)


def choose_figures(figures: Sequence[Figure], patterns: Sequence[str] | None) -> list[Figure]:
    """Figures whose name fits one of the patterns; without any, all."""
    if patterns is None:
        return list(figures)
    return [figure for figure in figures if any(fnmatchcase(figure["name"], p) for p in patterns)]


def training_losses(records: Sequence[Record]) -> list[Figure]:
    """Loss of each epoch where a representation was trained by gradient descent, a line for each variant."""
    curves: dict[tuple[str, str, int], dict[tuple[float, ...], str]] = {}
    for record in records:
        for depth, losses in enumerate(record.get("losses", []), start=1):
            by_losses = curves.setdefault((record["plan"], record["method"], depth), {})
            by_losses.setdefault(tuple(losses), record["variant"])  # tasks and variants may share a run
    return [
        make_figure(
            "lines", f"{plan}-training-loss-{method}-{depth}",
            f"Loss of {method}, layer {depth} \N{EN DASH} {plan}", "epoch", "mean loss of a row",
            series=[
                {"label": f"{method}, {variant}", "x": list(range(1, len(losses) + 1)), "y": list(losses)}
                for losses, variant in by_losses.items()
            ],
        )
        for (plan, method, depth), by_losses in curves.items()
    ]  # fmt: skip


def ablation_figures(records: Sequence[Record]) -> list[Figure]:
    """Variants of each ablation plan against its variant "all": mean difference and interval."""
    plans = dict.fromkeys(place.plan for place in places(records))
    compared = {plan: differences(records, plan) for plan in plans}
    return [_ablation(plan, given) for plan, given in compared.items() if given]


def _ablation(plan: str, compared: Sequence[Difference]) -> Figure:
    several = len({each.where.method for each in compared}) > 1
    points = [
        {
            "label": f"{each.where.variant}, {each.where.method}" if several else each.where.variant,
            "x": each.mean,
            "x_interval": [each.low, each.high],
        }
        for each in sorted(compared, key=lambda each: each.mean)
    ]
    words = f"What each part buys: {plan}", f"error above that of {REFERENCE!r} (points; 95% intervals)"
    return make_figure("intervals", f"{plan}-ablation", *words, "variant", points=points, percent=True)


def share_figures(records: Sequence[Record], shown: Sequence[str] = ()) -> list[Figure]:
    """Mean error against the share of positives in the target, a line a method; one for each corpus.

    All methods, or those to be `shown`.
    """
    figures = []
    for corpus, methods in group_by_share(records).items():
        series = [
            {
                "label": method,
                "x": [100 * share for share in sorted(groups)],
                "y": [100 * mean_over_tasks(groups[share]) for share in sorted(groups)],
            }
            for method, groups in methods.items()
            if not shown or method in shown
        ]
        name = f"{records[0]['plan']}-{corpus}-error-by-share"
        title = f"Error against the target's class shares \N{EN DASH} {corpus}"
        words = title, "share of positives in the target (%)", MEAN_ERROR
        figures.append(make_figure("lines", name, *words, series=series, y_from=0.0))
    return figures


def label_figures(records: Sequence[Record]) -> list[Figure]:
    """Mean error against the number of target labels, a line a method; one for each corpus and share."""
    figures = []
    for (corpus, share), methods in group_by_labels(records).items():
        none = methods.get("none", {})
        series = []
        for method, by_number in methods.items():
            points = by_number if method in ("augmented", "target-only") else {**none, **by_number}
            if method == "none":  # a level line
                points = {n: none[0] for n in {0, *(n for other in methods.values() for n in other)}}
            errors = [100 * mean_over_tasks(points[n]) for n in sorted(points)]
            series.append({"label": method, "x": sorted(points), "y": errors})
        name = f"{records[0]['plan']}-{corpus}-{round(100 * share)}-error-by-labels"
        title = f"Error against target labels \N{EN DASH} {corpus}, {share:.0%} positive"
        words = title, "labelled target rows", MEAN_ERROR
        figures.append(make_figure("lines", name, *words, series=series, y_from=0.0))
    return figures


def _corpora(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(record["corpus"] for record in records if "transfer_error" in record))


def choose_field(records: Sequence[Record]) -> list[str]:
    """Return `undrift`, the tf-idf SVM, the larger class and every package's best, where all columns are."""
    means = mean_peer_errors(records)
    columns = {place.variant for place in places(records)}
    complete = [method for method, errors in means.items() if len(errors) == len(columns)]
    best = {LARGER_CLASS: LARGER_CLASS}
    for method in sorted(complete, key=lambda method: fmean(means[method].values())):
        if method in PEERS or method in OURS_AND_SVM:
            package = PEERS[method].package.partition(".")[0] if method in PEERS else method
            best.setdefault(package, method)
    return list(best.values())


def figure_1(records: Sequence[Record]) -> Figure:
    """Transfer loss per task, one series per method (section 5, figure 1).

    Published errors are turned into losses with our in-domain errors, and only where the test rows
    are the same.
    """
    measured = [record for record in records if "transfer_error" in record]
    tasks = sorted({task(record) for record in measured})
    baseline = {record["target"]: record["baseline_in_domain_error"] for record in measured}
    series = []
    for place in sort_places(places(records)):
        loss = by_task(place.of(records), "transfer_loss")
        series.append({"label": place.method, "y": [loss.get(name) for name in tasks]})
    overlay = []
    if same_test_rows(records):
        for theirs in (each for each in AMAZON if each.protocol == SAME_ROWS):
            losses = [_less(theirs.errors.get(name), baseline[name.split("->")[1]]) for name in tasks]
            overlay.append({"label": f"{theirs.label} ({theirs.reference})", "y": losses})
    title = _titled(records, "Transfer loss: error above that of the in-domain baseline")
    words = title, "task", "transfer loss (points of error)"
    data: dict[str, Any] = {"x": tasks, "series": series, "published": overlay, "percent": True}
    return make_figure("points", _name(records, "figure-1"), *words, **data)


def figure_2(records: Sequence[Record]) -> Figure:
    """Mean transfer ratio against the time to learn a representation (section 5, figure 2)."""
    series = []
    for place in sort_places(places(records)):
        group = place.of(records)
        point = {"x": [mean_of(group, "represent_seconds")], "y": [mean_ratio(group)]}
        series.append({"label": place.method, **point, "device": _device(group)})
    marks = [
        {"label": f"paper: {said.method} {said.value}", "x": said.seconds}
        for said in PAPER
        if said.plan == records[0]["plan"] and said.seconds is not None
    ]
    title = _titled(records, "Transfer ratio against training time")
    words = title, "seconds to learn a representation (CODA: a task), log", "mean transfer ratio"
    note = "; ".join([*_learnt_on(records), *([THE_PAPERS] if marks else [])])
    data: dict[str, Any] = {"x_log": True, "series": series, "marks": marks, "note": note}
    return make_figure("scatter", _name(records, "figure-2"), *words, **data)


def _learnt_on(records: Sequence[Record]) -> list[str]:
    """Which methods were learnt on which machine: their times share an axis, but not a device."""
    by_machine: dict[str, list[str]] = {}
    for place in sort_places(places(records)):
        group = place.of(records)
        machine = list_hardware(group[0])
        if machine and mean_of(group, "represent_seconds"):
            by_machine.setdefault(machine[0 if place.method in ON_CPU else -1], []).append(place.method)
    learnt = [f"{', '.join(dict.fromkeys(methods))} on {name}" for name, methods in by_machine.items()]
    return ["learnt: " + "; ".join(learnt)] if learnt else []


def _device(group: Sequence[Record]) -> str:
    """Return whether a method learnt on a CPU or on a GPU."""
    return "GPU" if len(list_hardware(group[0])) > 1 and group[0]["method"] not in ON_CPU else "CPU"


def figure_3_left(records: Sequence[Record]) -> Figure:
    """Mean transfer ratio against the number of input features (figure 3 left)."""
    variants = {record["variant"] for record in records if record.get("kind") == "in-domain"}
    numbers = {r["n_features"] for r in records if "transfer_error" in r and r["variant"] in variants}
    # where one variant has the in-domain errors for all
    relative = f", relative to the baseline at {numbers.pop():,}" if len(numbers) == 1 else ""
    title = "Transfer ratio against dimensionality"
    return _by_dimension(records, "figure-3-left", title, "mean transfer ratio" + relative, mean_ratio)


def dimension_times(records: Sequence[Record]) -> Figure:
    """Time to learn a representation against the number of input features."""
    title, y_label = "Training time against dimensionality", "seconds to learn one representation, log scale"
    measure = partial(mean_of, name="represent_seconds")
    figure = _by_dimension(records, "dimension-times", title, y_label, measure)
    devices = {place.method: _device(place.of(records)) for place in places(records)}
    known = [each | {"device": devices[each["label"]]} for each in figure["series"] if all(each["y"])]
    said = [
        {"label": f"{each.method}, the paper: {each.value}", "of": each.method}
        | {"x": [HIGH_DIMENSION], "y": [each.seconds]}
        for line in known
        for each in PAPER
        if (each.plan, each.method) == (records[0]["plan"], line["label"]) and each.seconds is not None
    ]
    note = "; ".join(filter(None, [figure["note"], *_learnt_on(records), *([THE_PAPERS] if said else [])]))
    return {**figure, "y_log": True, "series": known, "published": said, "note": note}


def dimension_memory(records: Sequence[Record]) -> Figure:
    """Peak of memory while a representation is learnt against the number of input features."""
    title, y_label = "Memory against dimensionality", "peak while learning one representation (GB)"
    figure = _by_dimension(records, "dimension-memory", title, y_label, peak_gigabytes)
    known = [each for each in figure["series"] if all(y is not None for y in each["y"])]
    return {**figure, "y_from": 0, "series": known}


def _by_dimension(
    records: Sequence[Record],
    name: str,
    title: str,
    y_label: str,
    measure: Callable[[Sequence[Record]], float | None],
) -> Figure:
    points: dict[str, list[tuple[int, float | None]]] = {}
    for place in sort_places(places(records)):
        group = place.of(records)
        points.setdefault(place.method, []).append((group[0]["n_features"], measure(group)))
    series = []
    for label, given in points.items():
        xs, ys = zip(*sorted(given), strict=True)
        series.append({"label": label, "x": list(xs), "y": list(ys)})
    name, note = f"{records[0]['plan']}-{name}", OTHER_SETTING.get(records[0].get("corpus", ""), "")
    return make_figure("lines", name, title, "input features", y_label, series=series, note=note)


def figure_3_right(records: Sequence[Record]) -> Figure:
    """Proxy A-distance before and after mSDA, a point for each pair of domains (figure 3 right)."""
    measured = [record for record in records if record.get("kind") == "distance" and "failed" not in record]
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
    note = "; ".join(dict.fromkeys(_describe_measurement(**(r.get("params") or {})) for r in measured))
    return make_figure("pairs", _name(records, "figure-3-right"), *words, points=points, note=note)


def _describe_measurement(n_rows: int = 0, n_layers: int = 0, noise: float = 0.0) -> str:
    layers = f"{n_layers} layers at noise {noise:g}, not chosen; lines are 95% intervals"
    return f"{n_rows:,} rows of each domain; {layers}" if n_rows else ""


def task_matrices(records: Sequence[Record]) -> list[Figure]:
    """Transfer error of every source and target, one heat map per method."""
    return [_task_matrix(records, place) for place in sort_places(places(records))]


def _task_matrix(records: Sequence[Record], place: Where) -> Figure:
    errors = by_task(place.of(records))
    names = sorted({name for pair in errors for name in pair.split("->")})
    values = [[errors.get(f"{source}->{target}") for target in names] for source in names]
    name, title = f"matrix-{place.method}", f"Transfer error of {place.method} (%)"
    data: dict[str, Any] = {"x": names, "y": names, "values": values, "percent": True}
    return make_figure("heatmap", _name(records, name), _titled(records, title), "target", "source", **data)


def _of(records: Iterable[Record], plan: str, variant: str) -> list[Record]:
    return [r for r in records if r.get("plan") == plan and r.get("variant") == variant]


def _titled(records: Sequence[Record], title: str) -> str:
    return f"{title} – {records[0]['plan']}, {records[0]['variant']}"


def _name(records: Sequence[Record], figure: str) -> str:
    place = where({"method": "", **records[0]})
    return f"{place.plan}-{place.variant}-{figure}".replace(" ", "-")


def _less(error: float | None, baseline: float) -> float | None:
    return None if error is None else error - baseline
