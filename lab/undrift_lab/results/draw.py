"""Draw the figures of `figures.py` as SVG with matplotlib.

The methods that matter have colours, the same in every figure; where there are many others they are grey.
Squares were measured on a GPU, circles on a CPU, hollow marks were published by others.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from undrift.files import write_text_atomically

COLOURS = ("#2a6fbb", "#c2410c", "#3f7d4e", "#8b4fb3", "#b8860b")
GREY = "#8a8f98"
MATTER = {"msda-5": 0, "undrift": 1, "undrift-pair": 0, "svm": 2, "sda": 3}
N_COLUMNS = 5  # of small panels
MOST_COLOURED = 5  # series that all have colours
STYLE: Any = {
    "svg.hashsalt": "undrift", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
}  # fmt: skip

Draw = Callable[[Axes, dict[str, Any]], None]


def write_figure(figure: dict[str, Any], folder: str | Path) -> Path:
    """Write a figure as an SVG file into a folder, which is made where it does not exist."""
    path = Path(folder) / f"{figure['name']}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, draw_svg(figure))
    return path


def draw_svg(figure: dict[str, Any]) -> str:
    """Return a figure as SVG, with its title and its note; the same data give the same text."""
    draw, size = KINDS[figure["kind"]]
    n_rows = len(figure.get("points", ())) + len(figure.get("series", ())) + len(figure.get("published", ()))
    height = {"points": 1.8 + 0.32 * n_rows, "multiples": 1.2 + 1.75 * _count_rows(figure)}.get(
        figure["kind"], size
    )
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(8.2, height), layout="constrained")
        if figure["kind"] == "multiples":
            _draw_multiples(canvas, figure)
        else:
            draw(canvas.subplots(), figure)
        title = "\n".join(textwrap.wrap(figure["title"], 80))
        canvas.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
        if figure.get("note"):
            note = "\n".join(textwrap.wrap(figure["note"], 105))
            canvas.supxlabel(note, fontsize=8, color="#555555", x=0.01, ha="left")
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def choose_colours(labels: Sequence[str]) -> list[str]:
    """Choose a colour for each series: its method's, another one, or grey where there are many."""
    distinct = list(dict.fromkeys(labels))
    free = iter([code for code in range(len(COLOURS)) if code not in map(MATTER.get, distinct)])
    is_few = len(distinct) <= MOST_COLOURED
    others = [label for label in distinct if label not in MATTER]
    colours = {label: COLOURS[code] for label, code in MATTER.items()}
    colours |= {label: COLOURS[next(free)] if is_few else GREY for label in others}
    return [colours[label] for label in labels]


def _list_series(figure: dict[str, Any]) -> list[dict[str, Any]]:
    """Return our series and the published ones, each with the look of its marks."""
    ours, published = figure["series"], figure.get("published", [])
    colours = choose_colours([each.get("of", each["label"]) for each in [*ours, *published]])
    return [
        {
            **each,
            "look": {
                "color": colour,
                "marker": "s" if each.get("device") == "GPU" else "o",
                "markerfacecolor": "none" if i >= len(ours) else colour,
            },
        }
        for i, (each, colour) in enumerate(zip([*ours, *published], colours, strict=True))
    ]


def _draw_points(axes: Axes, figure: dict[str, Any]) -> None:
    """Draw a row for each method, the best mean first: a mark for each task, a line at the mean."""
    series = [(each, [y for y in each["y"] if y is not None]) for each in _list_series(figure)]
    series = [(each, ys) for each, ys in series if ys]
    order = None if figure.get("keeps_order") else lambda item: -fmean(item[1])
    series = series[::-1] if order is None else sorted(series, key=order)
    scale = 100 if figure.get("percent") else 1
    for row, (each, ys) in enumerate(series):
        heights = [
            row + (37 * i % 101) / 250 - 0.2 for i in range(len(ys))
        ]  # a fixed pattern sets them apart
        axes.plot([scale * y for y in ys], heights, linestyle="none", alpha=0.7, markersize=5, **each["look"])
        axes.plot([scale * fmean(ys)] * 2, [row - 0.4, row + 0.4], color="black", linewidth=1.5)
    labels = [f"{each['label']}  {scale * fmean(ys):.1f}" for each, ys in series]
    axes.set_yticks(range(len(series)), labels)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel(f"{figure['y_label']}; beside the names: the mean")


def _draw_tasks(axes: Axes, figure: dict[str, Any]) -> None:
    """Draw a row for each task, with a mark for each method."""
    scale, tasks, shapes = 100 if figure.get("percent") else 1, figure["tasks"], cycle("sD^v<>Pph*")
    for each in _list_series(figure):
        pairs = [(y, row) for row, y in enumerate(each["y"]) if y is not None]
        if pairs:
            is_grey = each["look"]["color"] == GREY
            shape = {"marker": next(shapes), "markersize": 5} if is_grey else {"markersize": 7}
            look = {**each["look"], **shape}
            xs, rows = [scale * y for y, _ in pairs], [row for _, row in pairs]
            axes.plot(xs, rows, linestyle="none", label=each["label"], **look)
    axes.set_yticks(range(len(tasks)), [task.replace("->", " \N{RIGHTWARDS ARROW} ") for task in tasks])
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel(figure["y_label"])
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_rows(axes: Axes, figure: dict[str, Any]) -> None:
    """Draw a row for each name, with a mark for each series."""
    names = list(dict.fromkeys(name for each in figure["series"] for name in each["rows"]))
    for each in _list_series(figure):
        rows = [names.index(name) for name in each["rows"]]
        axes.plot(each["x"], rows, linestyle="none", markersize=6, label=each["label"], **each["look"])
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(figure["x_label"])
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.1), ncols=2)


def _draw_curves(axes: Axes, figure: dict[str, Any]) -> None:
    """Draw the points of every series against numbers, joined in a figure of lines; names beside them."""
    is_line = figure["kind"] == "lines"
    axes.set_xscale("log" if figure.get("x_log") else "linear")
    axes.set_yscale("log" if figure.get("y_log") else "linear")
    for mark in figure.get("marks", []):
        axes.axvline(mark["x"], color=GREY, linestyle=":")
        look: dict[str, Any] = {"rotation": 90, "va": "top", "ha": "right", "fontsize": 8, "color": GREY}
        axes.annotate(mark["label"], (mark["x"], 0.98), xycoords=("data", "axes fraction"), **look)
    ends = []
    for level in figure.get("levels", []):
        axes.axhline(level["y"], color=GREY, linestyle=":", zorder=0)
    for each in _list_series(figure):
        pairs = zip(each["x"], each["y"], strict=True)
        points = sorted((x, y) for x, y in pairs if x is not None and y is not None)
        points = [point for point in points if point[0] > 0 or not figure.get("x_log")]
        if not points:
            continue
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, linestyle="-" if is_line else "none", markersize=5, **each["look"])
        ends.append((xs[-1], ys[-1], each["label"], each["look"]["color"]))
    if is_line and figure.get("y_from") is not None:
        axes.set_ylim(bottom=figure["y_from"])
    if figure.get("ticks"):
        names = ["\n".join(textwrap.wrap(name, 16)) for name in figure["ticks"]]
        axes.set_xticks(range(len(names)), names, fontsize=8)
    _name_ends(axes, ends, is_line=is_line)
    if figure.get("levels"):
        levels = [(0.0, level["y"], level["label"], GREY) for level in figure["levels"]]
        _name_ends(axes, levels, is_line=True)
    axes.set_xlabel(figure["x_label"])
    axes.set_ylabel(figure["y_label"])


def _name_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]], *, is_line: bool) -> None:
    """Write the names of series: beside their points, or in the margin, where none covers another."""
    low, high = axes.get_ylim()
    if not is_line:
        for k, (x, y, name, colour) in enumerate(sorted(ends, key=lambda end: end[1])):
            look: dict[str, Any] = {"fontsize": 9, "color": colour, "ha": "center"}
            axes.annotate(name, (x, y), (0, 7 if k % 2 else -15), textcoords="offset points", **look)
        axes.margins(x=0.08, y=0.12)
        return
    gap, heights = 0.042, list[float]()
    ends = sorted(ends, key=lambda end: end[1])
    for _, y, _, _ in ends:
        heights.append(max((y - low) / (high - low), heights[-1] + gap if heights else 0.0))
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], 1 - gap * (len(heights) - 1 - i))
    for (_, _, name, colour), height in zip(ends, heights, strict=True):
        axes.annotate(name, (1.02, height), xycoords="axes fraction", fontsize=9, color=colour, va="center")


def _draw_estimates(axes: Axes, figure: dict[str, Any]) -> None:
    """Draw points with their intervals beside the line of equals; a colour a label."""
    points = figure["points"]
    _draw_equals(axes, points, 1)
    for number, label in enumerate(dict.fromkeys(point["label"] for point in points)):
        colour, marker = f"C{number % 10}", "os^Dv"[number // 10 % 5]
        _draw_points_with_intervals(
            axes, [point for point in points if point["label"] == label], 1, color=colour, fmt=marker
        )
        axes.plot([], [], linestyle="none", label=label, color=colour, marker=marker)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_xlabel(figure["x_label"])
    axes.set_ylabel(figure["y_label"])


def _draw_equals(axes: Axes, points: Sequence[dict[str, Any]], scale: float) -> None:
    ends = [scale * point[name] for point in points for name in "xy"]
    axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color=GREY, linestyle=":")


def _draw_points_with_intervals(
    axes: Axes, points: Sequence[dict[str, Any]], scale: float, **look: Any
) -> None:
    for point in points:
        gaps: dict[str, Any] = {
            f"{name}err": [[scale * abs(point[name] - end)] for end in point[f"{name}_interval"]]
            for name in "xy"
            if point.get(f"{name}_interval")
        }
        axes.errorbar(
            scale * point["x"], scale * point["y"], markersize=3, elinewidth=0.6, alpha=0.7, **look, **gaps
        )


def _count_rows(figure: dict[str, Any]) -> int:
    return -(-len(figure.get("panels", ())) // N_COLUMNS)


def _draw_multiples(canvas: Canvas, figure: dict[str, Any]) -> None:
    """Draw a small panel for each group of points, all on the same axes."""
    panels, scale = figure["panels"], 100 if figure.get("percent") else 1
    n_rows = _count_rows(figure)
    grid = canvas.subplots(n_rows, N_COLUMNS, sharex=True, sharey=True, squeeze=False)
    every = [point for panel in panels for point in panel["points"]]
    for number, axes in enumerate(grid.flat):
        if number >= len(panels):
            axes.set_visible(False)
            continue
        _draw_equals(axes, every, scale)
        _draw_points_with_intervals(axes, panels[number]["points"], scale, color=COLOURS[0], fmt="o")
        axes.set_title(panels[number]["title"], fontsize=8)
        if number + N_COLUMNS >= len(panels):
            axes.xaxis.set_tick_params(labelbottom=True)
            axes.set_xlabel(figure["x_label"], fontsize=8)
        if number % N_COLUMNS == 0:
            axes.set_ylabel(figure["y_label"], fontsize=8)


KINDS: dict[str, tuple[Draw, float]] = {
    "points": (_draw_points, 5.0),
    "scatter": (_draw_curves, 5.0),
    "lines": (_draw_curves, 4.8),
    "tasks": (_draw_tasks, 5.2),
    "rows": (_draw_rows, 6.4),
    "estimates": (_draw_estimates, 5.6),
    "multiples": (_draw_estimates, 0.0),
}
