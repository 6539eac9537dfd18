"""Benchmark figures as SVG: inside a report's page, where a telephone gets its own drawing, and as files.

The methods that matter have colours, the same in every figure; where there are many others they are grey.
Squares were measured on a GPU, circles on a CPU, hollow marks were published by others.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from markupsafe import Markup

from .svg import (
    LETTER,
    N_COLOURS,
    NARROW,
    WIDTH,
    Scale,
    bar,
    cover,
    drawing,
    hint,
    horizontal_axis,
    line,
    percent,
    place_names,
    plain,
    read_asset,
    shorten,
    tag,
    text,
    vertical_axis,
)

MATTER = {
    "msda-5": 0,
    "undrift": 1,
    "undrift-pair": 0,
    "svm": 2,
    "labels": 1,
    "asked": 3,
    "updated": 0,
    "updated-asked": 2,
}  # methods, and their colours
MOST_COLOURED = 5  # series that all have colours
CIRCLE, SQUARE = "M-5.5 0A5.5 5.5 0 1 0 5.5 0A5.5 5.5 0 1 0-5.5 0Z", "M-5-5H5V5H-5Z"
Parts = tuple[list[Markup], float]  # of a drawing, and its height


def draw_figure(figure: dict[str, Any]) -> Markup:
    """Draw a figure for a page, once for a desk and once for a telephone."""
    drawings = []
    for width, cls in ((WIDTH, "wide"), (NARROW, "phone")):
        parts, height = _KINDS[figure["kind"]](figure, width)
        drawings.append(drawing(figure["title"], height, *parts, width=width, cls=cls))
    return Markup("").join(drawings)


def standalone_svg(figure: dict[str, Any]) -> str:
    """Draw a figure as an SVG file with its title, its note and the page's styles in light colours."""
    parts, height = _KINDS[figure["kind"]](figure, WIDTH)
    title = textwrap.wrap(figure["title"], 70)
    notes = textwrap.wrap(figure.get("note") or "", 84)
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
    return (
        style + ".drawing { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }\n"
        ".drawing .title { font-size: 15px; font-weight: 600; }\n"
    )


def choose_colours(labels: Sequence[str]) -> list[int]:
    """Choose a colour for each series: its method's, another one, or grey where there are many."""
    distinct = list(dict.fromkeys(labels))
    free = iter([code for code in range(N_COLOURS) if code not in map(MATTER.get, distinct)])
    is_few = len(distinct) <= MOST_COLOURED
    codes = {label: next(free) if is_few else N_COLOURS - 1 for label in distinct if label not in MATTER}
    return [(MATTER | codes)[label] for label in labels]


def _list_series(figure: dict[str, Any]) -> list[dict[str, Any]]:
    """Return our series and the published ones, each with its colour and whether its marks are hollow."""
    ours, published = figure["series"], figure.get("published", [])
    colours = choose_colours([each.get("of", each["label"]) for each in [*ours, *published]])
    return [
        each | {"colour": colour, "is_hollow": i >= len(ours)}
        for i, (each, colour) in enumerate(zip([*ours, *published], colours, strict=True))
    ]


def mark(x: float, y: float, series: dict[str, Any], says: str) -> Markup:
    """Draw one value of a series."""
    cls = f"mark s{series['colour']}" + (" hollow" if series.get("is_hollow") else "")
    shape = SQUARE if series.get("device") == "GPU" else CIRCLE
    return tag("path", hint(says), d=shape, transform=f"translate({x:.1f} {y:.1f})", cls=cls)


def _value(figure: dict[str, Any], value: float) -> str:
    return f"{value:.1%}" if figure.get("percent") else plain(value)


def split_label(label: str, length: int) -> list[str]:
    """Return a label in two lines, what stands in brackets in the second, where one would be too long."""
    name, _, origin = label.partition(" (")
    parts = [name, f"({origin}"] if origin and len(label) > length else [label]
    return [shorten(part, length) for part in parts]


def _draw_points(figure: dict[str, Any], width: float) -> Parts:
    """Draw a row for each method, the best mean first: a mark for each task, a line at the mean."""
    series = _list_series(figure)
    for each in series:
        each["points"] = [(t, y) for t, y in enumerate(each["y"]) if y is not None]
    series = [each for each in series if each["points"]]
    series.sort(key=lambda each: fmean(y for _, y in each["points"]))
    length, height, top = 30 if width == WIDTH else 13, 34, 22
    labels = [split_label(each["label"], length) for each in series]
    left = 16 + LETTER * max((len(part) for parts in labels for part in parts), default=0)
    scale = Scale(*cover([y for each in series for _, y in each["points"]]), left, width - 64)
    bottom = top + height * len(series)
    shown = percent if figure.get("percent") else plain
    parts = [
        horizontal_axis(scale, top, bottom, figure["y_label"], shown),
        text(width - 4, 14, "mean", "end", "tick"),
        line(scale(0.0), top, scale(0.0), bottom, "zero"),
    ]
    for i, each in enumerate(series):
        y, mean = top + height * (i + 0.5), fmean(value for _, value in each["points"])
        marks = [line(scale(mean), y - 14, scale(mean), y + 14, "mean")]
        for t, value in each["points"]:
            says = f"{each['label']}, {figure['x'][t]}: {_value(figure, value)}"
            # a fixed pattern sets the marks of a row apart
            marks.append(mark(scale(value), y + (37 * t % 101) / 7 - 7, each, says))
        for k, part in enumerate(labels[i]):
            base = y + 15 * k + (5 if len(labels[i]) == 1 else -3)
            parts.append(text(left - 8, base, part, "end", "tick" if k else None))
        parts += [
            tag("g", *marks, data_series=each["label"]),
            text(width - 4, y + 5, _value(figure, mean), "end"),
        ]
    return parts, bottom + 48


def _draw_curves(figure: dict[str, Any], width: float) -> Parts:
    """Draw the points of every series against numbers, joined in a figure of lines; names beside them."""
    series, is_line = _list_series(figure), figure["kind"] == "lines"
    pairs = [
        sorted((x, y) for x, y in zip(each["x"], each["y"], strict=True) if x is not None and y is not None)
        for each in series
    ]
    names = [shorten(each["label"], 30 if width == WIDTH else 14) for each in series]
    right = width - 34 - (LETTER * max(map(len, names)) if is_line else 20)
    devices = {each["device"] for each in series if each.get("device")}
    top = 46 if len(devices) > 1 else 26
    ys = [y for points in pairs for _, y in points]
    up = _scale(ys, top + 300, top + 14, bool(figure.get("y_log")), figure.get("y_from"))
    left = 16 + LETTER * max(len(plain(tick)) for tick in up.ticks())
    across = _scale([x for points in pairs for x, _ in points], left, right, bool(figure.get("x_log")))
    parts = [
        horizontal_axis(across, top + 14, top + 300, figure["x_label"]),
        vertical_axis(up, left, right, figure["y_label"]),
    ]
    if len(devices) > 1:
        for place, device in ((12, "CPU"), (92, "GPU")):
            look = {"colour": N_COLOURS - 1, "device": device}
            parts += [mark(place, 12, look, device), text(place + 12, 17, device)]
    named: list[tuple[str, float, float]] = []
    for i, given in enumerate(figure.get("marks", [])):
        if across.low <= given["x"] <= across.high:
            x = across(given["x"])
            parts.append(line(x, top + 14, x, top + 300, "diagonal"))
            named.append((given["label"], x, top + 288.0 - 20 * i))
    ends = {}
    for each, points, name in zip(series, pairs, names, strict=True):
        places = [(across(x), up(y), f"{each['label']}: {plain(y)} at {plain(x)}") for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        curve = [tag("polyline", points=path, cls=f"curve t{each['colour']}")] if is_line and path else []
        parts.append(
            tag("g", *curve, *(mark(x, y, each, says) for x, y, says in places), data_series=each["label"])
        )
        if places:
            ends[name] = (*places[-1], each)
    if is_line:
        for name, y in set_apart({name: end[1] for name, end in ends.items()}, top + 300).items():
            parts.append(line(ends[name][0] + 6, ends[name][1], right + 14, y, "grid"))
            parts += [mark(right + 14, y, ends[name][3], name), text(right + 24, y + 5, name)]
        return parts, top + 350
    named += [(name, end[0], end[1]) for name, end in ends.items()]
    return [*parts, *place_names(named, (left + 2, top, width, top + 298), 14)], top + 350


def set_apart(heights: dict[str, float], lowest: float, gap: float = 18.0) -> dict[str, float]:
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
        return Scale(min(known) / 1.6, max(known) * 1.6, start, end, log=True)
    low, high = cover(values, zero=False, margin=0.1)
    return Scale(low if lowest is None else lowest, high, start, end)


def _draw_pairs(figure: dict[str, Any], width: float) -> Parts:
    """Draw a point for each pair of domains, before against after, with its intervals."""
    points, bottom = figure["points"], min(width, 520)
    ends = [end for p in points for name in ("x_interval", "y_interval") for end in p.get(name, [])]
    low, high = cover([p[name] for p in points for name in ("x", "y")] + ends, zero=False)
    across, up = Scale(low, high, 62, width - 20), Scale(low, high, bottom, 44)
    parts = [
        horizontal_axis(across, 44, bottom, figure["x_label"]),
        vertical_axis(up, 62, width - 20, figure["y_label"]),
        line(across(low), up(low), across(high), up(high), "diagonal"),
    ]
    for p in points:
        x, y = across(p["x"]), up(p["y"])
        if "x_interval" in p:
            x_low, x_high = map(across, p["x_interval"])
            y_low, y_high = map(up, p["y_interval"])
            parts += [line(x_low, y, x_high, y, "thin"), line(x, y_low, x, y_high, "thin")]
        parts.append(mark(x, y, {"colour": 1}, f"{p['label']}: {p['x']:.3f} before, {p['y']:.3f} after"))
    return parts, bottom + 52


def _draw_intervals(figure: dict[str, Any], width: float) -> Parts:
    """Draw a row for each label: a point and its interval."""
    points, row, top, length = figure["points"], 26, 14, 34 if width == WIDTH else 16
    left = 20 + LETTER * max(len(shorten(p["label"], length)) for p in points)
    scale = Scale(*cover([end for p in points for end in p["x_interval"]]), left, width - 20)
    bottom = top + row * len(points)
    shown = percent if figure.get("percent") else plain
    parts = [horizontal_axis(scale, top, bottom, figure["x_label"], shown)]
    parts.append(line(scale(0.0), top, scale(0.0), bottom, "zero"))
    for i, p in enumerate(points):
        y, (low, high) = top + row * (i + 0.5), p["x_interval"]
        says = f"{p['label']}: {_value(figure, p['x'])} ({_value(figure, low)} to {_value(figure, high)})"
        parts += [
            text(left - 8, y + 5, shorten(p["label"], length), "end"),
            line(scale(low), y, scale(high), y, "whisker ink-line"),
            mark(scale(p["x"]), y, {"colour": 1}, says),
        ]
    return parts, bottom + 48


def _draw_heat_map(figure: dict[str, Any], width: float) -> Parts:
    """Draw a matrix of errors: the fainter the better."""
    columns, rows, values = figure["x"], figure["y"], figure["values"]
    known = [value for row in values for value in row if value is not None]
    best, worst = figure.get("range") or (min(known), max(known))
    left = 14 + LETTER * max(len(shorten(name, 12)) for name in rows)
    size = min(90.0, (width - left - 10) / len(columns))
    height, top = min(36.0, max(size, 24.0)), 40 + 5.6 * max(len(shorten(name, 12)) for name in columns)
    parts = [text(4, 18, f"{figure['y_label']} (rows), {figure['x_label']} (columns)", "start", "axis")]
    for i, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = top + height * i
        parts.append(text(left - 8, y + height / 2 + 5, shorten(name, 12), "end"))
        for j, value in enumerate(row):
            if value is None:
                continue
            step = round(6 * (value - best) / (worst - best)) if worst > best else 0
            x, says = left + size * j, f"{name} to {columns[j]}: {_value(figure, value)}"
            parts.append(bar(x + 1, y + 1, size - 2, height - 2, f"mark heat{step}", says))
            if size >= 38:
                number = f"{100 * value:.1f}"
                parts.append(text(x + size / 2, y + height / 2 + 5, number, "middle", f"on-heat{step}"))
    for j, name in enumerate(columns):
        place = f"translate({left + size * (j + 0.5) + 4:.1f} {top - 6:.1f}) rotate(-40)"
        parts.append(tag("text", shorten(name, 12), x=0, y=0, transform=place))
    return parts, top + height * len(rows) + 12


_KINDS: dict[str, Callable[[dict[str, Any], float], Parts]] = {
    "points": _draw_points,
    "scatter": _draw_curves,
    "lines": _draw_curves,
    "pairs": _draw_pairs,
    "heatmap": _draw_heat_map,
    "intervals": _draw_intervals,
}
