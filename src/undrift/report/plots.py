"""Benchmark figures as SVG: from the same data that `undrift bench figures` draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from .charts import hint
from .svg import (
    WIDTH,
    Scale,
    covering,
    drawing,
    horizontal_axis,
    join,
    line,
    percent,
    plain,
    tag,
    text,
    vertical_axis,
)

MOST_TASKS = 100  # rows of a chart with one row a task
LEGEND = 22  # height of a line of the legend
SHAPES = (
    "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0-6 0Z",  # circle
    "M-5.5-5.5H5.5V5.5H-5.5Z",  # square
    "M0-7L6.5 5H-6.5Z",  # triangle
    "M0-7.5L7.5 0L0 7.5L-7.5 0Z",  # diamond
    "M-2-6.5H2V-2H6.5V2H2V6.5H-2V2H-6.5V-2H-2Z",  # plus
)


def marker(x: float, y: float, series: int, says: str, cls: str = "") -> Markup:
    """Draw a mark whose shape and colour both tell the series."""
    return tag(
        "path", hint(says), d=SHAPES[series % len(SHAPES)], transform=f"translate({x:.1f} {y:.1f})",
        cls=f"mark s{series % 6} {cls}".strip(),
    )  # fmt: skip


def drawn(figure: dict[str, Any]) -> Markup:
    """Draw a figure of whichever kind."""
    return _KINDS[figure["kind"]](figure)


def _legend(labels: Sequence[str]) -> tuple[Markup, float]:
    """Name the series above a chart, and say how much room that takes."""
    parts, x, y = [], 12.0, 14.0
    for i, label in enumerate(labels):
        width = 34 + 7.4 * len(label)
        if x + width > WIDTH and x > 12:
            x, y = 12.0, y + LEGEND
        parts += [marker(x, y - 4, i, label), text(x + 13, y, label)]
        x += width
    return join(parts), y + 14


def _groups(labels: Sequence[str], marks: Sequence[Sequence[str]]) -> list[Markup]:
    """Keep the marks of a series together, so that the script can hide them."""
    return [tag("g", *own, data_series=label) for label, own in zip(labels, marks, strict=True)]


def _points(figure: dict[str, Any]) -> Markup:
    """One row a task, one mark a method."""
    tasks = figure["x"][:MOST_TASKS]
    series = [*figure["series"], *figure.get("published", [])]
    labels = [own["label"] for own in series]
    key, top = _legend(labels)
    left, row = 20 + 7.4 * max(map(len, tasks), default=0), 26
    scale = Scale(*covering([y for own in series for y in own["y"] if y is not None]), left, WIDTH - 20)
    bottom = top + row * len(tasks)
    shown = percent if figure.get("percent") else plain
    frame = [horizontal_axis(scale, top, bottom, figure["y_label"], shown)]
    for t, task in enumerate(tasks):
        y = top + row * (t + 0.5)
        frame += [line(left, y, WIDTH - 20, y, "grid"), text(left - 8, y + 5, task, "end")]
    marks = [
        [
            marker(scale(y), top + row * (t + 0.5), i, f"{own['label']}, {task}: {_value(figure, y)}")
            for t, (task, y) in enumerate(zip(tasks, own["y"], strict=False))
            if y is not None
        ]
        for i, own in enumerate(series)
    ]
    return drawing(figure["title"], bottom + 52, key, *frame, *_groups(labels, marks))


def _value(figure: dict[str, Any], value: float) -> str:
    return f"{value:.1%}" if figure.get("percent") else plain(value)


def _curves(figure: dict[str, Any]) -> Markup:
    """Points of every series against numbers, joined where the figure is of lines."""
    series = [*figure["series"], *figure.get("published", [])]
    labels = [own["label"] for own in series]
    key, top = _legend(labels)
    pairs = [
        [(x, y) for x, y in zip(own["x"], own["y"], strict=True) if x is not None and y is not None]
        for own in series
    ]
    across = _scale([x for own in pairs for x, _ in own], 90, WIDTH - 40, bool(figure.get("x_log")))
    up = _scale([y for own in pairs for _, y in own], top + 330, top + 40, bool(figure.get("y_log")))
    frame = [
        horizontal_axis(across, top + 40, top + 330, figure["x_label"]),
        vertical_axis(up, 90, WIDTH - 40, figure["y_label"]),
    ]
    for i, mark in enumerate(figure.get("marks", [])):
        if across.low <= mark["x"] <= across.high:
            x = across(mark["x"])
            frame += [
                line(x, top + 40, x, top + 330, "diagonal"),
                text(min(x, WIDTH - 100), top + 56 + 18 * i, mark["label"], "middle", "tick halo"),
            ]
    marks = []
    for i, (own, label) in enumerate(zip(pairs, labels, strict=True)):
        places = [(across(x), up(y), f"{label}: {plain(y)} at {plain(x)}") for x, y in sorted(own)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        joined = [tag("polyline", points=path, cls=f"curve t{i % 6}")] if figure["kind"] == "lines" else []
        marks.append([*joined, *(marker(x, y, i, says) for x, y, says in places)])
    return drawing(figure["title"], top + 382, key, *frame, *_groups(labels, marks))


def _scale(values: Sequence[float], start: float, end: float, log: bool) -> Scale:
    if log:
        known = [value for value in values if value > 0] or [1.0]
        return Scale(min(known) / 2, max(known) * 2, start, end, log=True)
    return Scale(*covering(values, zero=False, room=0.1), start, end)


def _pairs(figure: dict[str, Any]) -> Markup:
    """A point for each pair of domains, before against after, with its intervals."""
    points = figure["points"]
    ends = [end for p in points for name in ("x_interval", "y_interval") for end in p.get(name, [])]
    values = [p[name] for p in points for name in ("x", "y")] + ends
    low, high = covering(values, zero=False)
    across, up = Scale(low, high, 84, WIDTH - 20), Scale(low, high, WIDTH - 70, 50)
    parts = [
        horizontal_axis(across, 50, WIDTH - 70, figure["x_label"]),
        vertical_axis(up, 84, WIDTH - 20, figure["y_label"]),
        line(across(low), up(low), across(high), up(high), "diagonal"),
    ]
    for p in points:
        x, y = across(p["x"]), up(p["y"])
        if "x_interval" in p:
            x_low, x_high = map(across, p["x_interval"])
            y_low, y_high = map(up, p["y_interval"])
            parts += [line(x_low, y, x_high, y, "thin"), line(x, y_low, x, y_high, "thin")]
        parts.append(marker(x, y, 1, f"{p['label']}: {p['x']:.3f} before, {p['y']:.3f} after"))
    return drawing(figure["title"], WIDTH - 18, *parts)


def _heat(figure: dict[str, Any]) -> Markup:
    """A matrix of errors: the fainter the better."""
    columns, rows, values = figure["x"], figure["y"], figure["values"]
    known = [value for own in values for value in own if value is not None]
    best, worst = figure.get("range") or (min(known), max(known))
    left = 24 + 7.4 * max(map(len, rows))
    size = min(90.0, (WIDTH - left - 10) / len(columns))
    height, top = min(36.0, max(size, 24.0)), 40 + 5.2 * max(map(len, columns))
    parts = [text(4, 18, f"{figure['y_label']} (rows), {figure['x_label']} (columns)", "start", "axis")]
    for i, (name, own) in enumerate(zip(rows, values, strict=True)):
        y = top + height * i
        parts.append(text(left - 8, y + height / 2 + 5, name, "end"))
        for j, value in enumerate(own):
            if value is None:
                continue
            step = round(6 * (value - best) / (worst - best)) if worst > best else 0
            says = f"{name} to {columns[j]}: {_value(figure, value)}"
            x = left + size * j
            parts.append(
                tag(
                    "rect",
                    hint(says),
                    x=x + 1,
                    y=y + 1,
                    width=size - 2,
                    height=height - 2,
                    cls=f"mark heat{step}",
                )
            )
            if size >= 38:
                parts.append(
                    text(x + size / 2, y + height / 2 + 5, f"{100 * value:.1f}", "middle", f"on-heat{step}")
                )
    for j, name in enumerate(columns):
        x = left + size * (j + 0.5)
        label = tag("text", name, x=0, y=0, transform=f"translate({x + 4:.1f} {top - 6:.1f}) rotate(-40)")
        parts.append(label)
    return drawing(figure["title"], top + height * len(rows) + 12, *parts)


_KINDS = {"points": _points, "scatter": _curves, "lines": _curves, "pairs": _pairs, "heatmap": _heat}
