"""Benchmark results as plain data, and the charts and tables of their report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

from ..bench.results import (
    Where,
    all_figures,
    by_task,
    failures,
    mean_of,
    mean_ratio,
    places,
    published_rows,
    read,
    task,
)
from .charts import Chart
from .figures import draw_figure

MOST_RECORDS = 2_500  # rows of the table of all records
BASELINES = ("svm", "svm-tfidf")
RECORD = (
    "plan", "variant", "method", "source", "target", "transfer_error", "transfer_loss", "transfer_ratio",
    "represent_seconds", "classify_seconds", "n_train", "n_test",
)  # fmt: skip


def benchmark_data(results: Any) -> dict[str, Any]:
    """Gather everything that a report of benchmark results shows.

    Parameters
    ----------
    results : path, list of paths, or records
        Files of JSON lines, or what they hold.
    """
    records = _records(results)
    if not any("transfer_error" in record or "distance_after" in record for record in records):
        raise ValueError("no result to report on: the records hold neither errors nor distances")
    settings = dict.fromkeys((place.plan, place.variant) for place in places(records))
    measured = [r for r in records if "transfer_error" in r]
    return {
        "kind": "benchmark",
        "title": "Benchmark: " + ", ".join(dict.fromkeys(str(r["plan"]) for r in records)),
        "verdict": [_verdict(records, *setting) for setting in settings],
        "standings": [_standing(records, place) for place in places(records)],
        "figures": all_figures(records),
        "published": published_rows(records),
        "n_records": len(measured),
        "records": [{name: r.get(name) for name in RECORD} for r in measured[:MOST_RECORDS]],
        "failures": [
            {"method": r["method"], "task": task(r), "why": str(r["failed"])} for r in failures(records)
        ],
        "machines": list(dict.fromkeys(str(r["machine"]) for r in records if r.get("machine"))),
        "versions": list(dict.fromkeys(str(r["version"]) for r in records if r.get("version"))),
        "dates": sorted({str(r["date"]) for r in records if r.get("date")}),
        "seeds": sorted({str(r["seed"]) for r in records if r.get("seed") is not None}),
    }


def _records(results: Any) -> list[dict[str, Any]]:
    """Read records, and give those that only keep to the contract the place that figures ask for."""
    if isinstance(results, str | Path):
        results = [results]
    records: list[dict[str, Any]] = []
    for result in results:
        records += [dict(result)] if isinstance(result, Mapping) else read(result, "transfer")
    return [
        {"plan": record.get("corpus", "results"), "variant": "default", "kind": "transfer"} | record
        for record in records
    ]


def _standing(records: Sequence[Mapping[str, Any]], place: Where) -> dict[str, Any]:
    group = place.of(records)
    seconds = {name: mean_of(group, name) for name in ("represent_seconds", "classify_seconds")}
    named = {"plan": place.plan, "variant": place.variant, "method": place.method}
    errors = {"error": mean_of(group, "transfer_error"), "ratio": mean_ratio(group)}
    return {**named, "n_tasks": len(by_task(group)), **errors, **seconds}


def _verdict(records: Sequence[Mapping[str, Any]], plan: str, variant: str) -> dict[str, Any]:
    """Name the method with the lowest mean error, and compare it with the baseline task by task."""
    errors = {
        place.method: by_task(place.of(records))
        for place in places(records)
        if (place.plan, place.variant) == (plan, variant)
    }
    most = max(map(len, errors.values()))
    means = {name: fmean(given.values()) for name, given in errors.items() if len(given) == most}
    best = min(means, key=lambda name: means[name])
    base = next((name for name in BASELINES if name in means and name != best), None)
    verdict = {"plan": plan, "variant": variant, "best": best, "error": means[best], "n_tasks": most}
    if base is None:
        return verdict | {"baseline": None}
    shared = [name for name in errors[best] if name in errors[base]]
    gains = np.array([errors[base][name] - errors[best][name] for name in shared])
    p = float(stats.wilcoxon(gains).pvalue) if np.any(gains) and len(gains) > 1 else 1.0
    return verdict | {
        "baseline": base, "baseline_error": means[base], "n_better": int((gains > 0).sum()), "p": p,
    }  # fmt: skip


def benchmark_charts(data: dict[str, Any]) -> dict[str, Any]:
    """Charts and tables of the report."""
    figures = [figure for figure in data["figures"] if _has_values(figure)]
    matrices = [figure for figure in figures if figure["kind"] == "heatmap"]
    known = [value for figure in matrices for row in figure["values"] for value in row if value is not None]
    return {
        "figures": [_chart(figure) for figure in figures if figure["kind"] != "heatmap"],
        # one scale for all, so that a matrix can be compared with the next
        "matrices": [_chart(figure | {"range": (min(known), max(known))}) for figure in matrices],
        "standings": [_write_row(standing) for standing in data["standings"]],
        "records": [_write_row(record) for record in data["records"]],
    }


def _write_row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Write the cells of a table: errors in per cent, ratios and seconds with three digits."""
    writers = {"error": _percent, "loss": _percent, "ratio": _number, "seconds": _number}
    ends = [name.rsplit("_")[-1] for name in row]
    return tuple(
        writers.get(end, lambda value: "" if value is None else value)(value)
        for end, value in zip(ends, row.values(), strict=True)
    )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _has_values(figure: dict[str, Any]) -> bool:
    if figure["kind"] == "heatmap":
        return any(value is not None for row in figure["values"] for value in row)
    if figure["kind"] == "pairs":
        return bool(figure["points"])
    return any(y is not None for series in figure["series"] for y in series["y"])


def _chart(figure: dict[str, Any]) -> Chart:
    columns, rows = _table(figure)
    title, more = figure["title"], figure.get("note") or ""
    if figure["kind"] == "heatmap":
        known = [100 * value for row in figure["values"] for value in row if value is not None]
        title += f": {min(known):.1f} to {max(known):.1f}, mean {np.mean(known):.1f}"
    note = NOTES[figure["kind"]] + (f" {more[0].upper()}{more[1:]}." if more else "")
    return Chart(figure["name"], title, note, draw_figure(figure), columns, rows)


NOTES = {
    "points": "A mark for each task, a line at the mean; to the left is better, below 0 better than the "
    "baseline trained in the target.",
    "scatter": "Down and to the left is better: less error in less time.",
    "lines": "Lower is better.",
    "pairs": "Above the diagonal, domains lie farther apart afterwards. Lines are 95% intervals.",
    "heatmap": "The fainter the better, on one scale for all matrices.",
}


def _table(figure: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the numbers behind a figure."""
    if figure["kind"] == "heatmap":
        rows = [
            (name, *(_percent(value) for value in row))
            for name, row in zip(figure["y"], figure["values"], strict=True)
        ]
        return ("source", *figure["x"]), rows
    if figure["kind"] == "pairs":
        return ("domains", "before", "after"), [
            (p["label"], f"{p['x']:.3f}", f"{p['y']:.3f}") for p in figure["points"]
        ]
    if figure["kind"] == "points":
        series = [*figure["series"], *figure.get("published", [])]
        shown = _percent if figure.get("percent") else _number
        cells = zip(figure["x"], *(map(shown, each["y"]) for each in series), strict=True)
        return ("task", *(each["label"] for each in series)), list(cells)
    return ("series", figure["x_label"], figure["y_label"]), [
        (each["label"], _number(x), _number(y))
        for each in [*figure["series"], *figure.get("published", [])]
        for x, y in zip(each["x"], each["y"], strict=True)
    ]
