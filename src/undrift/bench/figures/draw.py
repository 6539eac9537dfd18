"""Figures drawn with matplotlib (extra `plot`): SVG and PNG, for print and for the colour-blind.

Every method has a colour and a marker of its own, wherever it appears; no figure needs colour alone.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ..._files import replace_file, write_text_atomically
from .data import Figure

# Okabe and Ito's palette; the depths of mSDA are shades of one blue
STYLES = {
    "svm": ("#000000", "o"),
    "svm-tfidf": ("#7f7f7f", "s"),
    "pca": ("#56B4E9", "^"),
    "scl": ("#E69F00", "v"),
    "coda": ("#CC79A7", "D"),
    "sda": ("#D55E00", "P"),
    "msda-1": ("#9ecae1", "<"),
    "msda-3": ("#4292c6", ">"),
    "msda-5": ("#08519c", "*"),
    "undrift": ("#009E73", "X"),
}
# depths of mSDA that the contract does not name, between those that it does
DEPTHS = {"msda-2": ("#6baed6", "h"), "msda-4": ("#2171b5", "p")}
MOST_TASKS = 20  # that figure 1 has room to name
OTHERS: tuple[tuple[str, Any], ...] = (
    ("#0072B2", "8"),
    ("#b2182b", "d"),
    ("#117733", "H"),
    ("#5e3c99", (4, 1, 0)),  # stars of so many points
    ("#8c6d1f", (6, 1, 0)),
    ("#525252", (3, 1, 0)),
    ("#e7298a", "p"),
)
FORMATS = ("svg", "png", "json")
SAVED: dict[str, dict[str, Any]] = {
    ".svg": {"metadata": {"Date": None, "Creator": None}},
    ".png": {"dpi": 200},
}
PUBLISHED = "+x1"  # marks of others' numbers
BIGGER = {"*": 1.5, "X": 1.15, "P": 1.15}  # that have less area for their size
EDGE = {"markeredgecolor": "white", "markeredgewidth": 0.5}  # tells markers apart that overlap
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "undrift",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw(figure: Figure, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure as SVG, PNG and JSON (its data) into `folder`; return the files.

    The same figure gives the same SVG, byte for byte, under the same version of matplotlib.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {own: folder / f"{figure['name']}.{own}" for own in formats}
    images = [path for own, path in paths.items() if own != "json"]
    if images:
        _draw(figure, images)
    if "json" in paths:
        write_text_atomically(paths["json"], json.dumps(figure, indent=1, ensure_ascii=False) + "\n")
    return list(paths.values())


def _draw(figure: Figure, paths: Sequence[Path]) -> None:
    """Write a figure to files whose endings say how."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise ImportError("drawing figures needs the `plot` extra: pip install 'undrift[plot]'") from None
    with matplotlib.rc_context(SETTINGS):
        canvas = Canvas(figsize=_size(figure), layout="constrained")
        axes = canvas.subplots()
        axes.set_title(figure["title"], loc="left", fontsize=11)
        axes.set_xlabel(figure["x_label"])
        axes.set_ylabel(figure["y_label"])
        _KINDS[figure["kind"]](figure, axes)
        if figure.get("note"):
            wrapped = textwrap.fill(figure["note"], int(15 * _size(figure)[0]))
            canvas.supxlabel(wrapped, x=0.01, ha="left", fontsize=7, color="#555555")
        for path in paths:
            with replace_file(path) as new:
                canvas.savefig(new, **SAVED[path.suffix])


def _size(figure: Figure) -> tuple[float, float]:
    if figure["kind"] == "points" and len(figure["x"]) <= MOST_TASKS:
        n = len(figure["series"]) + len(figure["published"])
        return max(7.0, 2.5 + max(0.7, 0.06 * n) * len(figure["x"])), 4.8
    if figure["kind"] == "heatmap":
        side = 2.4 + 0.55 * len(figure["x"])
        return side + 0.9, side
    if figure["kind"] == "intervals":
        return 7.5, 1.4 + 0.28 * len(figure["points"])
    return (6.0, 5.6) if figure["kind"] == "pairs" else (7.5, 4.6)


def _styles(labels: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Colour and marker of each method; those without their own take what is left, in turn."""
    known = {**STYLES, **DEPTHS}
    others = [label for label in labels if label not in known]
    spare = {label: _other(i) for i, label in enumerate(others)}
    return {label: known.get(label) or spare[label] for label in labels}


def _other(i: int) -> tuple[str, Any]:
    """Look of the i-th without its own; where they are used up, colours meet other markers."""
    n = len(OTHERS)
    return OTHERS[i % n][0], OTHERS[(i + i // n) % n][1]


def _points(figure: Figure, axes: Any) -> None:
    """Tasks side by side, a marker for each method, in slots of their own so that none hides another."""
    series, published = figure["series"], figure["published"]
    if len(figure["x"]) > MOST_TASKS:
        _strips(figure, axes)
        return
    styles, n = _styles([own["label"] for own in series]), len(series) + len(published)
    scale = 100 if figure["percent"] else 1
    for i, own in enumerate([*series, *published]):
        shift = 0.8 * ((i + 0.5) / n - 0.5)
        xs = [x + shift for x, y in enumerate(own["y"]) if y is not None]
        ys = [scale * y for y in own["y"] if y is not None]
        if i < len(series):
            colour, marker = styles[own["label"]]
            axes.vlines(xs, 0, ys, color=colour, linewidth=1, alpha=0.6)
            axes.plot(
                xs,
                ys,
                marker,
                color=colour,
                markersize=5.5 * BIGGER.get(marker, 1),
                label=own["label"],
                **EDGE,
            )
        else:
            mark = PUBLISHED[(i - len(series)) % len(PUBLISHED)]
            axes.plot(xs, ys, mark, color="#444444", markersize=6, label=own["label"])
    axes.axhline(0, color="black", linewidth=0.8)
    for edge in range(1, len(figure["x"])):
        axes.axvline(edge - 0.5, color="#bbbbbb", linewidth=0.6)
    axes.grid(axis="x", visible=False)
    axes.set_xlim(-0.5, len(figure["x"]) - 0.5)
    names = [name.replace("->", "\n→ ") for name in figure["x"]]
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 12 else 0, fontsize=8)
    labels = [own["label"] for own in [*series, *published]]
    ncols = _n_columns([len(label) for label in labels], _size(figure)[0] - 1)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=ncols, fontsize=8)


def _n_columns(lengths: Sequence[int], width: float) -> int:
    """Most columns of a legend, of equal heights as near as may be, that `width` inches have room for."""
    for n in range(min(6, len(lengths)), 1, -1):
        longest = [max(column) for column in np.array_split(lengths, n)]
        if sum(0.5 + 0.065 * own for own in longest) <= width:
            return n
    return 1


def _strips(figure: Figure, axes: Any) -> None:
    """Too many tasks to name: one strip of points for each method, with a bar at the median."""
    styles = _styles([own["label"] for own in figure["series"]])
    scale = 100 if figure["percent"] else 1
    for i, own in enumerate(figure["series"]):
        ys = sorted(scale * y for y in own["y"] if y is not None)
        xs = [i + 0.5 * ((37 * j % 101) / 100 - 0.5) for j in range(len(ys))]  # spread, the same every time
        colour, marker = styles[own["label"]]
        axes.plot(xs, ys, marker, color=colour, markersize=4, alpha=0.7)
        axes.hlines(median(ys), i - 0.35, i + 0.35, color="black", linewidth=1.5)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.grid(axis="x", visible=False)
    axes.set_xticks(range(len(figure["series"])), [own["label"] for own in figure["series"]])
    axes.set_xlabel(f"method (a point for each of {len(figure['x'])} tasks, a bar at the median)")


def _scatter(figure: Figure, axes: Any) -> None:
    """One point for each method; what needs no learning stands at the left edge."""
    styles = _styles([own["label"] for own in figure["series"]])
    known = [own for own in figure["series"] if own["y"][0] is not None]
    least = min([own["x"][0] for own in known if own["x"][0]] or [1.0])
    for own in known:
        colour, marker = styles[own["label"]]
        label = own["label"] if own["x"][0] else f"{own['label']} (nothing to learn)"
        x = own["x"][0] or least / 5
        axes.plot(
            [x], own["y"], marker, color=colour, markersize=9 * BIGGER.get(marker, 1), label=label, **EDGE
        )
    axes.margins(x=0.1)
    if figure.get("x_log"):
        axes.set_xscale("log")
        _few_ticks(axes.xaxis, axes.get_xlim())
    low, high = axes.get_ylim()
    if figure["marks"]:
        high += 0.3 * (high - low)  # room for what the marks say
        axes.set_ylim(low, high)
    for mark in figure["marks"]:
        axes.axvline(mark["x"], color="#888888", linestyle=":", linewidth=1)
        axes.annotate(
            mark["label"], (mark["x"], high), xytext=(-2, -2), textcoords="offset points",
            rotation=90, ha="right", va="top", fontsize=7, color="#555555",
        )  # fmt: skip
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _few_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Name as many values of a log scale as there is room for, as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    decades = math.log10(limits[1] / limits[0])
    axis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, position: f"{value:,.6g}")
    axis.set_minor_formatter(NullFormatter())


def _lines(figure: Figure, axes: Any) -> None:
    """One line for each method."""
    styles = _styles([own["label"] for own in figure["series"]])
    for own in figure["series"]:
        colour, marker = styles[own["label"]]
        axes.plot(
            own["x"], own["y"], marker=marker, color=colour, linewidth=1.5, markersize=6, label=own["label"]
        )
    for own in figure.get("published", []):
        colour, marker = styles.get(own["of"], ("#444444", PUBLISHED[0]))
        axes.plot(
            own["x"], own["y"], linestyle="none", marker=marker, markersize=8, label=own["label"],
            markerfacecolor="none", markeredgecolor=colour,
        )  # fmt: skip
    if figure.get("y_log"):
        axes.set_yscale("log")
        _few_ticks(axes.yaxis, axes.get_ylim())
    if "y_from" in figure:
        axes.set_ylim(bottom=figure["y_from"])
    axes.xaxis.set_major_formatter(lambda x, position: f"{x:,.0f}")
    outside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if figure.get("published") else {}
    axes.legend(fontsize=8, **outside)


def _pairs(figure: Figure, axes: Any) -> None:
    """Before against after, with bootstrap intervals; above the diagonal the distance has grown."""
    points = figure["points"]
    for i, own in enumerate(points):
        colour, marker = [*STYLES.values()][i % len(STYLES)]
        axes.plot(own["x_interval"], [own["y"]] * 2, color=colour, linewidth=0.8, alpha=0.7)
        axes.plot([own["x"]] * 2, own["y_interval"], color=colour, linewidth=0.8, alpha=0.7)
        axes.plot([own["x"]], [own["y"]], marker, color=colour, markersize=7, label=own["label"])
    spans = [edge for own in points for edge in (*own["x_interval"], *own["y_interval"])]
    low, high = min([*spans, 1.9]) - 0.05, max([*spans, 2.0]) + 0.03
    axes.plot([low, high], [low, high], color="black", linewidth=0.8, linestyle="--")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    if len(points) <= 12:
        axes.legend(fontsize=8, loc="lower right")


def _intervals(figure: Figure, axes: Any) -> None:
    """A line for each label: a point and its interval, the lowest at the top."""
    scale = 100 if figure["percent"] else 1
    for i, own in enumerate(figure["points"]):
        axes.plot([scale * edge for edge in own["x_interval"]], [i, i], color="#08519c", linewidth=1.5)
        axes.plot([scale * own["x"]], [i], "o", color="#08519c", markersize=5)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(figure["points"])), [own["label"] for own in figure["points"]])
    axes.set_ylim(len(figure["points"]) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _heatmap(figure: Figure, axes: Any) -> None:
    """Sources down, targets across, the number in each cell."""
    scale = 100 if figure["percent"] else 1
    values = [[float("nan") if v is None else scale * v for v in row] for row in figure["values"]]
    shown = axes.imshow(values, cmap="cividis")
    known = [v for row in values for v in row if v == v]
    middle = (min(known) + max(known)) / 2
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if value == value:
                colour = "white" if value < middle else "black"
                axes.text(j, i, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(figure["x"])), figure["x"], rotation=45, ha="right")
    axes.set_yticks(range(len(figure["y"])), figure["y"])
    axes.grid(visible=False)
    axes.figure.colorbar(shown, ax=axes, shrink=0.8)


_KINDS: dict[str, Callable[[Figure, Any], None]] = {
    "points": _points,
    "scatter": _scatter,
    "lines": _lines,
    "pairs": _pairs,
    "heatmap": _heatmap,
    "intervals": _intervals,
}
