"""The paper's figures as data: what to draw and no word of how; see `draw`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import fmean
from typing import Any

from ..results import (
    AMAZON,
    HIGH_DIMENSION,
    PAPER,
    PEERS_PLAN,
    REFERENCE,
    SAME_ROWS,
    Difference,
    Record,
    Where,
    by_task,
    differences,
    errors_by_task,
    group_by_labels,
    group_by_share,
    mean_errors,
    mean_label_error,
    mean_of,
    mean_ratio,
    peak_gigabytes,
    places,
    same_test_rows,
    sort_places,
    task,
    varies_labels,
    varies_shares,
    where,
)

Figure = dict[str, Any]

ON_CPU = ("svm", "svm-tfidf", "pca", "scl", "coda")  # whatever the device of a run
THE_PAPERS = "the paper's times are of twelve cores at 2.66 GHz"
OTHER_SETTING = {"processed_acl": "not the paper's exact setting: processed_acl has no unlabelled part"}


def all_figures(records: Sequence[Record]) -> list[Figure]:
    """Every figure that the records have something for."""
    figures: list[Figure] = []
    for plan in dict.fromkeys(place.plan for place in places(records)):
        group = [record for record in records if record.get("plan") == plan]
        if varies_labels(group):
            figures += label_figures(group)
            continue
        if plan == PEERS_PLAN:
            figures.append(peers_figure(group))
            continue
        if varies_shares(group):
            figures += share_figures(group)
            continue
        if len({record.get("n_features") for record in group if "transfer_error" in record}) > 1:
            figures += [figure_3_left(group), dimension_times(group)]
            figures += [figure for figure in [dimension_memory(group)] if figure["series"]]
            continue
        compared = {each.where.variant for each in differences(group, plan)}  # those have one figure together
        for variant in dict.fromkeys(place.variant for place in places(group)):
            ours = _of(group, plan, variant)
            if not compared:
                figures += [figure_1(ours), figure_2(ours), *task_matrices(ours)]
            elif variant not in compared:
                figures += [figure_1(ours), *task_matrices(ours)]
    for plan, variant in dict.fromkeys(
        (r["plan"], r["variant"]) for r in records if r.get("kind") == "distance"
    ):
        figures.append(figure_3_right(_of(records, plan, variant)))
    return figures + training_losses(records)


def choose_figures(figures: Sequence[Figure], patterns: Sequence[str] | None) -> list[Figure]:
    """Figures whose name fits one of the patterns; without any, all."""
    return [
        figure
        for figure in figures
        if patterns is None or any(fnmatchcase(figure["name"], p) for p in patterns)
    ]


def training_losses(records: Sequence[Record]) -> list[Figure]:
    """Loss of each epoch where a representation was trained by gradient descent, a line for each variant."""
    curves: dict[tuple[str, str, int], dict[str, Sequence[float]]] = {}
    for record in records:
        for depth, losses in enumerate(record.get("losses", []), start=1):
            by_variant = curves.setdefault((record["plan"], record["method"], depth), {})
            by_variant.setdefault(record["variant"], losses)  # one representation serves all tasks
    return [_training_loss(*key, by_variant) for key, by_variant in curves.items()]


def _training_loss(plan: str, method: str, depth: int, curves: dict[str, Sequence[float]]) -> Figure:
    # variants may share a run
    distinct = {tuple(losses): variant for variant, losses in reversed(curves.items())}
    series = [
        {"label": f"{method}, {variant}", "x": list(range(1, len(losses) + 1)), "y": list(losses)}
        for losses, variant in reversed(distinct.items())
    ]
    return {
        "name": f"{plan}-training-loss-{method}-{depth}",
        "kind": "lines",
        "title": f"Loss of {method}, layer {depth} \N{EN DASH} {plan}",
        "x_label": "epoch",
        "y_label": "mean loss of a row",
        "series": series,
    }


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
    return {
        "name": f"{plan}-ablation",
        "kind": "intervals",
        "title": f"What each part buys: {plan}",
        "x_label": f"error above that of {REFERENCE!r} (points; 95% intervals)",
        "y_label": "variant",
        "points": points,
        "percent": True,
    }


def share_figures(records: Sequence[Record]) -> list[Figure]:
    """Mean error against the share of positives in the target, a line a method; one for each corpus."""
    return [
        {
            "name": f"{records[0]['plan']}-{corpus}-error-by-share",
            "kind": "lines",
            "title": f"Error against the target's class shares \N{EN DASH} {corpus}",
            "x_label": "share of positives in the target (%)",
            "y_label": "mean error over the tasks (%)",
            "series": [
                {
                    "label": method,
                    "x": [100 * share for share in sorted(groups)],
                    "y": [100 * fmean(errors_by_task(groups[share]).values()) for share in sorted(groups)],
                }
                for method, groups in methods.items()
            ],
            "y_from": 0.0,
        }
        for corpus, methods in group_by_share(records).items()
    ]


def label_figures(records: Sequence[Record]) -> list[Figure]:
    """Mean error against the number of target labels, a line a method; one for each corpus and share."""
    figures = []
    for (corpus, share), methods in group_by_labels(records).items():
        none = methods.get("none", {})
        series = []
        for method, by_number in methods.items():
            points = by_number if method == "none" else {**none, **by_number}
            if method in ("augmented", "target-only"):
                points = by_number
            if method == "none":  # a level line
                points = {n: none[0] for n in {0, *(n for other in methods.values() for n in other)}}
            numbers = sorted(points)
            errors = [100 * mean_label_error(points[n]) for n in numbers]
            series.append({"label": method, "x": numbers, "y": errors})
        figures.append(
            {
                "name": f"{records[0]['plan']}-{corpus}-{round(100 * share)}-error-by-labels",
                "kind": "lines",
                "title": f"Error against target labels \N{EN DASH} {corpus}, {share:.0%} positive",
                "x_label": "labelled target rows",
                "y_label": "mean error over the tasks (%)",
                "series": series,
                "has_direct_labels": True,
            }
        )
    return figures


def peers_figure(records: Sequence[Record], n_others: int = 10) -> Figure:
    """Mean error of `undrift`, the tf-idf SVM and the best of the other methods, in every column."""
    means = mean_errors(records)
    columns = sorted({place.variant for place in places(records)})
    complete = [method for method, errors in means.items() if len(errors) == len(columns)]
    ranked = sorted(complete, key=lambda method: fmean(means[method].values()))
    fixed = [method for method in ("undrift", "svm-tfidf") if method in complete]
    shown = [*fixed, *[method for method in ranked if method not in fixed][:n_others]]
    return {
        "name": f"{PEERS_PLAN}-errors",
        "kind": "points",
        "title": "Error by corpus and share of positives in the target",
        "x_label": "corpus and share",
        "y_label": "mean error over the tasks (%)",
        "x": columns,
        "hint": "A mark for each column of the table, a line at the mean; to the left is better.",
        "series": [{"label": method, "y": [means[method][name] for name in columns]} for method in shown],
        "published": [],
        "percent": True,
        "note": "a mark for each corpus and share, a line at the mean"
        + (f"; {n_left} methods above these are left out" if (n_left := len(ranked) - len(shown)) else ""),
    }


def figure_1(records: Sequence[Record]) -> Figure:
    """Transfer loss per task, one series per method (section 5, figure 1).

    Published errors are turned into losses with our in-domain errors, and only where the test rows
    are the same.
    """
    tasks = sorted({task(record) for record in records if "transfer_error" in record})
    baseline = {
        record["target"]: record["baseline_in_domain_error"]
        for record in records
        if "transfer_error" in record
    }
    series = []
    for place in sort_places(places(records)):
        loss = by_task(place.of(records), "transfer_loss")
        series.append({"label": place.method, "y": [loss.get(name) for name in tasks]})
    overlay = []
    if same_test_rows(records):
        for theirs in (each for each in AMAZON if each.protocol == SAME_ROWS):
            losses = [_less(theirs.errors.get(name), baseline[name.split("->")[1]]) for name in tasks]
            overlay.append({"label": f"{theirs.label} ({theirs.reference})", "y": losses})
    return {
        "name": _name(records, "figure-1"),
        "kind": "points",
        "title": _titled(records, "Transfer loss: error above that of the in-domain baseline"),
        "x_label": "task",
        "y_label": "transfer loss (points of error)",
        "x": tasks,
        "series": series,
        "published": overlay,
        "percent": True,
    }


def figure_2(records: Sequence[Record]) -> Figure:
    """Mean transfer ratio against the time to learn a representation (section 5, figure 2)."""
    series = []
    for place in sort_places(places(records)):
        group = place.of(records)
        seconds = [mean_of(group, "represent_seconds")]
        series.append(
            {"label": place.method, "x": seconds, "y": [mean_ratio(group)], "device": _device(group)}
        )
    plan = records[0]["plan"]
    marks = [
        {"label": f"paper: {said.method} {said.value}", "x": said.seconds}
        for said in PAPER
        if said.plan == plan and said.seconds is not None
    ]
    return {
        "name": _name(records, "figure-2"),
        "kind": "scatter",
        "title": _titled(records, "Transfer ratio against training time"),
        "x_label": "seconds to learn a representation (CODA: a task), log",
        "y_label": "mean transfer ratio",
        "x_log": True,
        "series": series,
        "marks": marks,
        "note": "; ".join([*_learnt_on(records), *([THE_PAPERS] if marks else [])]),
    }


def _learnt_on(records: Sequence[Record]) -> list[str]:
    """Which methods were learnt on which machine: their times share an axis, but not a device."""
    by_machine: dict[str, list[str]] = {}
    for place in sort_places(places(records)):
        group = place.of(records)
        hardware = _hardware(group[0].get("machine") or "")
        if hardware and mean_of(group, "represent_seconds"):
            by_machine.setdefault(hardware[0 if place.method in ON_CPU else -1], []).append(place.method)
    learnt = [f"{', '.join(dict.fromkeys(methods))} on {name}" for name, methods in by_machine.items()]
    return ["learnt: " + "; ".join(learnt)] if learnt else []


def _device(group: Sequence[Record]) -> str:
    """Return whether a method learnt on a CPU or on a GPU."""
    hardware = _hardware(group[0].get("machine") or "")
    return "GPU" if len(hardware) > 1 and group[0]["method"] not in ON_CPU else "CPU"


def _hardware(machine: str) -> list[str]:
    """Processor and, where a run had one, device: a description less the versions of packages."""
    packages = ("torch ", "numpy ", "scikit-learn ")
    return [part for part in machine.split("; ") if part and not part.startswith(packages)]


def figure_3_left(records: Sequence[Record]) -> Figure:
    """Mean transfer ratio against the number of input features (figure 3 left)."""
    n_features = _baseline_features(records)
    relative = f", relative to the baseline at {n_features:,}" if n_features else ""
    return _by_dimension(
        records,
        "figure-3-left",
        "Transfer ratio against dimensionality",
        "mean transfer ratio" + relative,
        mean_ratio,
    )


def _baseline_features(records: Sequence[Record]) -> int | None:
    """Number of features of the in-domain errors, where one variant has them for all."""
    variants = {record["variant"] for record in records if record.get("kind") == "in-domain"}
    numbers = {r["n_features"] for r in records if "transfer_error" in r and r["variant"] in variants}
    return numbers.pop() if len(numbers) == 1 else None


def dimension_times(records: Sequence[Record]) -> Figure:
    """Time to learn a representation against the number of input features."""
    figure = _by_dimension(
        records,
        "dimension-times",
        "Training time against dimensionality",
        "seconds to learn one representation, log scale",
        lambda group: mean_of(group, "represent_seconds"),
    )
    devices = {place.method: _device(place.of(records)) for place in places(records)}
    known = [
        each | {"device": devices[each["label"]]} for each in figure["series"] if all(y for y in each["y"])
    ]
    said = [
        {
            "label": f"{each.method}, the paper: {each.value}",
            "of": each.method,
            "x": [HIGH_DIMENSION],
            "y": [each.seconds],
        }
        for line in known
        for each in PAPER
        if (each.plan, each.method) == (records[0]["plan"], line["label"]) and each.seconds is not None
    ]
    note = "; ".join(filter(None, [figure["note"], *_learnt_on(records), *([THE_PAPERS] if said else [])]))
    return {**figure, "y_log": True, "series": known, "published": said, "note": note}


def dimension_memory(records: Sequence[Record]) -> Figure:
    """Peak of memory while a representation is learnt against the number of input features."""
    figure = _by_dimension(
        records,
        "dimension-memory",
        "Memory against dimensionality",
        "peak while learning one representation (GB)",
        peak_gigabytes,
    )
    known = [each for each in figure["series"] if all(y is not None for y in each["y"])]
    return {**figure, "y_from": 0, "series": known}


def _by_dimension(
    records: Sequence[Record],
    name: str,
    title: str,
    y_label: str,
    measure: Callable[[Sequence[Record]], float | None],
) -> Figure:
    series: dict[str, list[tuple[int, float | None]]] = {}
    for place in sort_places(places(records)):
        group = place.of(records)
        series.setdefault(place.method, []).append((group[0]["n_features"], measure(group)))
    lines = []
    for label, points in series.items():
        xs, ys = zip(*sorted(points), strict=True)
        lines.append({"label": label, "x": list(xs), "y": list(ys)})
    return {
        "name": f"{records[0]['plan']}-{name}",
        "kind": "lines",
        "title": title,
        "x_label": "input features",
        "y_label": y_label,
        "series": lines,
        "note": "; ".join(note for name, note in OTHER_SETTING.items() if name == records[0].get("corpus")),
    }


def figure_3_right(records: Sequence[Record]) -> Figure:
    """Proxy A-distance before and after mSDA, a point for each pair of domains (figure 3 right)."""
    measured = [record for record in records if record.get("kind") == "distance" and "failed" not in record]
    points = [
        {
            "label": f"{record['source']}, {record['target']}",
            "x": record["distance_before"],
            "y": record["distance_after"],
            "x_interval": [record["distance_before_low"], record["distance_before_high"]],
            "y_interval": [record["distance_after_low"], record["distance_after_high"]],
        }
        for record in measured
    ]
    n_grown = sum(point["y"] > point["x"] for point in points)
    return {
        "name": _name(records, "figure-3-right"),
        "kind": "pairs",
        "title": f"Proxy A-distance grows for {n_grown} of {len(points)} pairs of domains",
        "x_label": "proxy A-distance on binary counts",
        "y_label": "proxy A-distance after mSDA",
        "points": points,
        "note": "; ".join(dict.fromkeys(_measured(record.get("params") or {}) for record in measured)),
    }


def _measured(params: Mapping[str, Any]) -> str:
    if not params:
        return ""
    return (
        f"{params['n_rows']:,} rows of each domain; {params['n_layers']} layers at noise "
        f"{params['noise']:g}, not chosen; lines are 95% intervals"
    )


def task_matrices(records: Sequence[Record]) -> list[Figure]:
    """Transfer error of every source and target, one heat map per method."""
    return [_task_matrix(records, place) for place in sort_places(places(records))]


def _task_matrix(records: Sequence[Record], place: Where) -> Figure:
    errors = errors_by_task(place.of(records))
    names = sorted({name for pair in errors for name in pair.split("->")})
    values = [[errors.get(f"{source}->{target}") for target in names] for source in names]
    return {
        "name": _name(records, f"matrix-{place.method}"),
        "kind": "heatmap",
        "title": _titled(records, f"Transfer error of {place.method} (%)"),
        "x_label": "target",
        "y_label": "source",
        "x": names,
        "y": names,
        "values": values,
        "percent": True,
    }


def _of(records: Iterable[Record], plan: str, variant: str) -> list[Record]:
    return [r for r in records if r.get("plan") == plan and r.get("variant") == variant]


def _titled(records: Sequence[Record], title: str) -> str:
    return f"{title} – {records[0]['plan']}, {records[0]['variant']}"


def _name(records: Sequence[Record], figure: str) -> str:
    place = where({"method": "", **records[0]})
    return f"{place.plan}-{place.variant}-{figure}".replace(" ", "-")


def _less(error: float | None, baseline: float) -> float | None:
    return None if error is None else error - baseline
