"""Benchmark figures as SVG: inside a report's page, and as separate files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from markupsafe import Markup

from ..bench.figures import series_numbers
from .svg import (
    N_COLOURS,
    WIDTH,
    Scale,
    cover,
    drawing,
    hint,
    horizontal_axis,
    line,
    percent,
    plain,
    read_asset,
    tag,
    text,
    vertical_axis,
)

MOST_TASKS = 40  # that have a row each in a chart; of more, methods have one
LEGEND = 22  # height of a line of the legend
SHAPES = (
    "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0-6 0Z",  # circle
    "M-5.5-5.5H5.5V5.5H-5.5Z",  # square
    "M0-7L6.5 5H-6.5Z",  # triangle
    "M0-7.5L7.5 0L0 7.5L-7.5 0Z",  # diamond
    "M-2-6.5H2V-2H6.5V2H2V6.5H-2V2H-6.5V-2H-2Z",  # plus
    "M0 7L6.5-5H-6.5Z",  # triangle, point down
    "M0-8L2.3-2.6L8-2.2L3.6 1.4L5.2 7L0 3.8L-5.2 7L-3.6 1.4L-8-2.2L-2.3-2.6Z",  # star
    "M-7 0L5-6.5V6.5Z",  # triangle, point left
    "M7 0L-5-6.5V6.5Z",  # triangle, point right
    "M-6-3.5L-3.5-6L0-2.5L3.5-6L6-3.5L2.5 0L6 3.5L3.5 6L0 2.5L-3.5 6L-6 3.5L-2.5 0Z",  # cross
    "M0-7L6.7-2.2L4.1 5.7H-4.1L-6.7-2.2Z",  # pentagon
    "M-3.5-6H3.5L7 0L3.5 6H-3.5L-7 0Z",  # hexagon
)
Parts = tuple[list[Markup], float]  # of a drawing, and its height


def draw_figure(figure: dict[str, Any]) -> Markup:
    """Draw a figure for a page, which has its title and its styles."""
    parts, height = _KINDS[figure["kind"]](figure)
    return drawing(figure["title"], height, *parts)


def standalone_svg(figure: dict[str, Any]) -> str:
    """Draw a figure as an SVG file with its title, its note and the page's styles in light colours."""
    parts, height = _KINDS[figure["kind"]](figure)
    title = textwrap.wrap(figure["title"], 76)
    notes = textwrap.wrap(figure.get("note") or "", 92)
    top = 18 + 20 * len(title)
    whole = top + height + 18 * len(notes) + 10
    return str(
        tag(
            "svg",
            tag("style", Markup(light_style())),
            tag("rect", width=WIDTH, height=whole, fill="#ffffff"),
            *(text(12, 22 + 20 * i, words, cls="title") for i, words in enumerate(title)),
            tag("g", *parts, transform=f"translate(0 {top:g})"),
            *(text(12, top + height + 14 + 18 * i, words, cls="tick") for i, words in enumerate(notes)),
            xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {whole:g}", width=WIDTH,
            height=float(whole), cls="drawing",
        )
        + "\n"
    )  # fmt: skip


def light_style() -> str:
    """Return the style of charts with the light theme's colours in place of variables, for any viewer."""
    colours = dict(re.findall(r"--([\w-]+): ([^;]+);", read_asset("style.css").partition("}")[0]))
    style = re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], read_asset("chart.css"))
    return style + ".drawing text { font-family: sans-serif; }\n.drawing .title { font-size: 16px; }\n"


def look(number: int) -> tuple[str, str]:
    """Return the shape and the colour class of a series."""
    return SHAPES[number % len(SHAPES)], str((number + number // len(SHAPES)) % N_COLOURS)


def marker(x: float, y: float, number: int, says: str, cls: str = "") -> Markup:
    """Draw a mark whose shape and colour both tell the series."""
    shape, colour = look(number)
    return tag(
        "path", hint(says), d=shape, transform=f"translate({x:.1f} {y:.1f})",
        cls=f"mark s{colour} {cls}".strip(),
    )  # fmt: skip


def _all_series(figure: dict[str, Any]) -> tuple[list[dict[str, Any]], list[int], list[str]]:
    """Return our series and the published ones, the number of each, and how its marks differ."""
    ours, published = figure["series"], figure.get("published", [])
    numbers = series_numbers([each["label"] for each in [*ours, *published]])
    series = [*ours, *published]
    numbered = [numbers[each.get("of", each["label"])] for each in series]
    return series, numbered, ["hollow" if "of" in each else "" for each in series]


def _legend(labels: Sequence[str], numbers: Sequence[int], styles: Sequence[str]) -> Parts:
    """Name the series above a chart."""
    parts, x, y = [], 12.0, 14.0
    for label, number, cls in zip(labels, numbers, styles, strict=True):
        width = 34 + 7.4 * len(label)
        if x + width > WIDTH and x > 12:
            x, y = 12.0, y + LEGEND
        parts += [marker(x, y - 4, number, label, cls), text(x + 13, y, label)]
        x += width
    return parts, y + 14


def _groups(series: Sequence[dict[str, Any]], marks: Sequence[Sequence[str]]) -> list[Markup]:
    """Keep the marks of a series together, so that the script can hide them."""
    return [tag("g", *group, data_series=each["label"]) for each, group in zip(series, marks, strict=True)]


def _value(figure: dict[str, Any], value: float) -> str:
    return f"{value:.1%}" if figure.get("percent") else plain(value)


def _draw_points(figure: dict[str, Any]) -> Parts:
    """Draw one row a task, one mark a method; of many tasks, one row a method and a mark a task."""
    tasks, (series, numbers, styles) = figure["x"], _all_series(figure)
    by_task = len(tasks) <= MOST_TASKS
    names = tasks if by_task else [each["label"] for each in series]
    key, top = _legend([each["label"] for each in series], numbers, styles) if by_task else ([], 14.0)
    left, row = 20 + 7.4 * max(map(len, names), default=0), 26 if by_task else 44
    scale = Scale(*cover([y for each in series for y in each["y"] if y is not None]), left, WIDTH - 20)
    bottom = top + row * len(names)
    shown = percent if figure.get("percent") else plain
    frame = [horizontal_axis(scale, top, bottom, figure["y_label"], shown)]
    for i, name in enumerate(names):
        y = top + row * (i + 0.5)
        frame += [line(left, y, WIDTH - 20, y, "grid"), text(left - 8, y + 5, name, "end")]
    frame.append(line(scale(0.0), top, scale(0.0), bottom, "zero"))
    marks = []
    for i, each in enumerate(series):
        known = [(t, y) for t, y in enumerate(each["y"]) if y is not None]
        marks.append(
            [
                marker(
                    scale(y),
                    # in a row of many tasks a fixed pattern sets the marks apart
                    top + row * ((t if by_task else i + 0.5 * (37 * t % 101) / 100 - 0.25) + 0.5),
                    numbers[i],
                    f"{each['label']}, {tasks[t]}: {_value(figure, y)}",
                )
                for t, y in known
            ]
        )
        if known and not by_task:
            x = scale(median(y for _, y in known))
            marks[-1].append(line(x, top + row * (i + 0.12), x, top + row * (i + 0.88), "zero"))
    return [*key, *frame, *_groups(series, marks)], bottom + 52


def _draw_curves(figure: dict[str, Any]) -> Parts:
    """Draw the points of every series against numbers, joined where the figure is of lines."""
    series, numbers, styles = _all_series(figure)
    labels = [each["label"] for each in series]
    has_direct_labels = bool(figure.get("has_direct_labels"))
    key, top = ([], 0.0) if has_direct_labels else _legend(labels, numbers, styles)
    right = WIDTH - 40 - (7.4 * max(map(len, labels)) if has_direct_labels else 0.0)
    pairs = [
        [(x, y) for x, y in zip(each["x"], each["y"], strict=True) if x is not None and y is not None]
        for each in series
    ]
    across = _scale([x for points in pairs for x, _ in points], 90, right, bool(figure.get("x_log")))
    ys = [y for points in pairs for _, y in points]
    up = _scale(ys, top + 330, top + 40, bool(figure.get("y_log")), figure.get("y_from"))
    frame = [
        horizontal_axis(across, top + 40, top + 330, figure["x_label"]),
        vertical_axis(up, 90, right, figure["y_label"]),
    ]
    if has_direct_labels:
        ends = {label: up(max(points)[1]) for label, points in zip(labels, pairs, strict=True) if points}
        for label, y in _set_apart(ends, top + 330).items():
            number = numbers[labels.index(label)]
            frame += [marker(right + 16, y, number, label), text(right + 27, y + 5, label)]
    for i, mark in enumerate(figure.get("marks", [])):
        if across.low <= mark["x"] <= across.high:
            x = across(mark["x"])
            frame += [
                line(x, top + 40, x, top + 330, "diagonal"),
                text(min(x, WIDTH - 100), top + 56 + 18 * i, mark["label"], "middle", "tick halo"),
            ]
    marks = []
    for points, label, number, cls in zip(pairs, labels, numbers, styles, strict=True):
        places = [(across(x), up(y), f"{label}: {plain(y)} at {plain(x)}") for x, y in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        joined = [tag("polyline", points=path, cls=f"curve t{look(number)[1]}")]
        has_line = figure["kind"] == "lines" and len(places) > 1
        marks.append([*(joined if has_line else []), *(marker(x, y, number, s, cls) for x, y, s in places)])
    return [*key, *frame, *_groups(series, marks)], top + 382


def _set_apart(heights: dict[str, float], lowest: float, gap: float = 18.0) -> dict[str, float]:
    """Move labels at the ends of lines until none covers another, and none is below `lowest`."""
    labels = sorted(heights, key=lambda label: heights[label])
    places = [heights[label] for label in labels]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    for i in reversed(range(len(places))):
        places[i] = min(places[i], lowest - gap * (len(places) - 1 - i))
    return dict(zip(labels, places, strict=True))


def _scale(
    values: Sequence[float], start: float, end: float, log: bool, lowest: float | None = None
) -> Scale:
    if log:
        known = [value for value in values if value > 0] or [1.0]
        return Scale(min(known) / 2, max(known) * 2, start, end, log=True)
    low, high = cover(values, zero=False, margin=0.1)
    return Scale(low if lowest is None else lowest, high, start, end)


def _draw_pairs(figure: dict[str, Any]) -> Parts:
    """Draw a point for each pair of domains, before against after, with its intervals."""
    points = figure["points"]
    ends = [end for p in points for name in ("x_interval", "y_interval") for end in p.get(name, [])]
    low, high = cover([p[name] for p in points for name in ("x", "y")] + ends, zero=False)
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
    return parts, WIDTH - 18


def _draw_intervals(figure: dict[str, Any]) -> Parts:
    """Draw a row for each label: a point and its interval."""
    points, row, top = figure["points"], 26, 14
    left = 20 + 7.4 * max(len(p["label"]) for p in points)
    scale = Scale(*cover([end for p in points for end in p["x_interval"]]), left, WIDTH - 20)
    bottom = top + row * len(points)
    shown = percent if figure.get("percent") else plain
    parts = [horizontal_axis(scale, top, bottom, figure["x_label"], shown)]
    parts.append(line(scale(0.0), top, scale(0.0), bottom, "zero"))
    for i, p in enumerate(points):
        y, (low, high) = top + row * (i + 0.5), p["x_interval"]
        says = f"{p['label']}: {_value(figure, p['x'])} ({_value(figure, low)} to {_value(figure, high)})"
        parts += [
            text(left - 8, y + 5, p["label"], "end"),
            line(scale(low), y, scale(high), y, "whisker ink-line"),
            marker(scale(p["x"]), y, 0, says),
        ]
    return parts, bottom + 52


def _draw_heat_map(figure: dict[str, Any]) -> Parts:
    """Draw a matrix of errors: the fainter the better."""
    columns, rows, values = figure["x"], figure["y"], figure["values"]
    known = [value for row in values for value in row if value is not None]
    best, worst = figure.get("range") or (min(known), max(known))
    left = 24 + 7.4 * max(map(len, rows))
    size = min(90.0, (WIDTH - left - 10) / len(columns))
    height, top = min(36.0, max(size, 24.0)), 40 + 5.2 * max(map(len, columns))
    parts = [text(4, 18, f"{figure['y_label']} (rows), {figure['x_label']} (columns)", "start", "axis")]
    for i, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = top + height * i
        parts.append(text(left - 8, y + height / 2 + 5, name, "end"))
        for j, value in enumerate(row):
            if value is None:
                continue
            step = round(6 * (value - best) / (worst - best)) if worst > best else 0
            x, says = left + size * j, f"{name} to {columns[j]}: {_value(figure, value)}"
            parts.append(
                tag(
                    "rect", hint(says), x=x + 1, y=y + 1, width=size - 2, height=height - 2,
                    cls=f"mark heat{step}",
                )
            )  # fmt: skip
            if size >= 38:
                number = f"{100 * value:.1f}"
                parts.append(text(x + size / 2, y + height / 2 + 5, number, "middle", f"on-heat{step}"))
    for j, name in enumerate(columns):
        x = left + size * (j + 0.5)
        parts.append(
            tag("text", name, x=0, y=0, transform=f"translate({x + 4:.1f} {top - 6:.1f}) rotate(-40)")
        )
    return parts, top + height * len(rows) + 12


_KINDS: dict[str, Callable[[dict[str, Any]], Parts]] = {
    "points": _draw_points,
    "scatter": _draw_curves,
    "lines": _draw_curves,
    "pairs": _draw_pairs,
    "heatmap": _draw_heat_map,
    "intervals": _draw_intervals,
}
