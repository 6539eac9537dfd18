"""The charts of an adaptation, as SVG: each fits a telephone, and two stand side by side on a desk.

A class has one colour on the whole page; black is the adapted classifier, grey the baseline and what is only
expected. A diamond is a term that no labelled row contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from .shares import write_estimate, write_percent
from .svg import (
    LETTER,
    N_COLOURS,
    NARROW,
    Scale,
    cover,
    drawing,
    hint,
    horizontal_axis,
    legend,
    line,
    percent,
    shorten,
    tag,
    text,
    vertical_axis,
)

DIAMOND = "M0-6L6 0L0 6L-6 0Z"
RIGHT = NARROW - 22  # edge of the axes
EDGE, FLOOR = 148, 312  # of the map, beyond which terms stand that one side never contains


@dataclass(frozen=True)
class Chart:
    """A drawing with its title, what to read from it, and the table behind it."""

    key: str
    title: str
    note: str
    svg: Markup
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def colour_of(code: int) -> str:
    """Return the colour class of a class of labels; the last colour is of all that have none left."""
    return f"s{min(code, N_COLOURS - 1)}"


def class_legend(classes: Sequence[str], y: float, x: float = 12) -> Markup:
    """Name the colours of the first classes, as many as fit in a line."""
    entries, width = [], float(x)
    for code, name in enumerate(classes[:N_COLOURS]):
        shown = shorten(name, 14)
        width += 36 + LETTER * len(shown)
        if width < NARROW + 20:
            entries.append((f"mark {colour_of(code)}", shown))
    return legend(entries, x, y)


def interval_chart(title: str, rows: Sequence[dict[str, Any]]) -> Markup:
    """Draw an error for each row, as a mark with its interval; rows hold label, kind, error, low, high."""
    height = 42
    scale = Scale(0.0, min(cover([row["high"] for row in rows])[1], 1.0), 12, RIGHT)
    bottom = 2 + height * len(rows)
    parts = [horizontal_axis(scale, 2, bottom, "", percent)]
    for i, row in enumerate(rows):
        x, y, is_baseline = scale(row["error"]), 30 + height * i, row["kind"] == "source_only"
        says = f"{row['label']}: {row['error']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        look = "soft" if is_baseline else "ink"
        parts += [
            text(12, y - 13, says, "start", "halo"),
            line(scale(row["low"]), y, scale(row["high"]), y, f"whisker {look}-line"),
            tag("circle", hint(says), cx=x, cy=y, r=6, cls=f"mark {look}")
            if is_baseline
            else tag("rect", hint(says), x=x - 6, y=y - 6, width=12, height=12, cls=f"mark {look}"),
        ]
    return drawing(title, bottom + 24, *parts, width=NARROW)


def share_chart(title: str, rows: Sequence[dict[str, Any]], name: str | None) -> Markup:
    """Draw for each class its share of the predictions as a bar, and its share of the rows as a line.

    Rows hold label, code, predicted, and share, low and high where they are known; `name` says what the lines
    are.
    """
    height, parts = 58 if name else 40, []
    highest = max(value for row in rows for value in (row["predicted"], row.get("high", 0.0)))
    scale = Scale(0.0, highest or 1.0, 12, RIGHT)
    for i, row in enumerate(rows):
        y, predicted = height * i, write_percent(row["predicted"])
        says = f"{shorten(row['label'], 22)}: {predicted} of the predictions"
        width = max(scale(row["predicted"]) - 12, 1.0)
        parts += [
            text(12, y + 14, says),
            tag(
                "rect",
                hint(says),
                x=12,
                y=y + 20,
                width=width,
                height=12,
                cls=f"mark {colour_of(row['code'])}",
            ),
        ]
        if name:
            share, interval = write_estimate(row["share"], row["low"], row["high"])
            shown = share if row["low"] == row["high"] else f"{share} ({interval})"
            says = f"{row['label']}: {shown} of the rows, {name}"
            parts += [
                line(scale(row["low"]), y + 40, scale(row["high"]), y + 40, "whisker ink-line"),
                tag("rect", hint(says), x=scale(row["share"]) - 2, y=y + 34, width=4, height=12, cls="ink"),
                text(12, y + 54, f"{name}: {shown}", "start", "tick"),
            ]
    return drawing(title, height * len(rows) + (6 if name else 0), *parts, width=NARROW)


def word_chart(title: str, rows: Sequence[dict[str, Any]], classes: Sequence[str]) -> Markup:
    """Draw a bar for each term, in the colour of the class it moves predictions to."""
    left, height, top = 148, 24, 32
    scale = Scale(*cover([row["push"] for row in rows]), left, RIGHT - 44)
    bottom = top + height * len(rows)
    parts = [
        class_legend(classes, 16),
        horizontal_axis(scale, top, bottom, "share of the whole effect", percent, 3),
    ]
    for i, row in enumerate(rows):
        y, width = top + height * i, max(scale(row["push"]) - left, 1.0)
        seen = f"in {row['n_labelled']:,} labelled rows" if row["n_labelled"] else "in no labelled row"
        says = f"{row['term']}: {percent(row['push'])}, toward {row['class']}; {seen}"
        parts += [
            text(left - 8, y + 17, ("", "☆ ", "★ ")[row["rarity"]] + shorten(row["term"], 14), "end"),
            tag(
                "rect", hint(says), x=left, y=y + 4, width=width, height=height - 8,
                cls=f"mark {colour_of(row['code'])}",
            ),
            text(left + width + 6, y + 17, percent(row["push"]), "start", "tick"),
        ]  # fmt: skip
    return drawing(title, bottom + 46, *parts, width=NARROW)


def term_map(
    title: str, points: Sequence[dict[str, Any]], source: str, target: str, classes: Sequence[str]
) -> Markup:
    """Draw terms by the share of documents that contain them, in the source and in the target, both log.

    Terms that one side never contains stand in a strip of their own, apart from the axis. Names are given to
    the first points, wherever they cover nothing.
    """
    lowest = min((share for p in points for share in (p["source"], p["target"]) if share > 0), default=0.001)
    across = Scale(lowest / 1.3, 1.0, EDGE + 8, RIGHT, log=True)
    up = Scale(lowest / 1.3, 1.0, 300, 62, log=True)
    never_x, never_y = 64, 334
    parts = [
        class_legend(classes, 16),
        horizontal_axis(across, 62, 356, f"share of {shorten(source, 20)} documents (log)", percent, 3),
        vertical_axis(up, 48, RIGHT, f"share of {shorten(target, 20)} documents (log)", percent),
        line(across(lowest), up(lowest), across(1.0), up(1.0), "diagonal"),
        line(EDGE, 62, EDGE, 356, "zero"),
        line(48, FLOOR, RIGHT, FLOOR, "zero"),
        text((48 + EDGE) / 2, 374, "never", "middle", "tick"),
        text(40, never_y + 5, "never", "end", "tick"),
    ]
    places = []
    for i, p in enumerate(points):
        x = across(p["source"]) if p["source"] > 0 else never_x
        y = up(p["target"]) if p["target"] > 0 else never_y
        # terms of equal shares lie on top of one another: a fixed pattern sets them apart
        places.append((x + (i * 7 % 11 - 5) * 0.6, y + (i * 5 % 11 - 5) * 0.6))
    for p, (x, y) in reversed(list(zip(points, places, strict=True))):
        says = (
            f"{p['term']}: {percent(p['source'])} of {source}, {percent(p['target'])} of {target}; speaks "
            f"for {classes[p['code']]}, " + ("in no labelled row" if not p["n_labelled"] else "seen labelled")
        )
        cls = f"dot {colour_of(p['code'])}"
        parts.append(
            tag("circle", hint(says), cx=x, cy=y, r=3.2, cls=cls)
            if p["n_labelled"]
            else tag(
                "path", hint(says), d=DIAMOND, transform=f"translate({x:.1f} {y:.1f}) scale(.8)", cls=cls
            )
        )
    return drawing(title, 408, *parts, *_name_points(points, places), width=NARROW)


def _name_points(points: Sequence[dict[str, Any]], places: Sequence[tuple[float, float]]) -> list[Markup]:
    """Write the names of points, the first ones first, where there is space for them."""
    taken: list[tuple[float, float, float, float]] = []
    names = []
    for p, (x, y) in zip(points, places, strict=True):
        width = 7.6 * len(p["term"])
        if not p["is_named"]:
            break
        for start, base in (
            (x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 8), (x - width / 2, y + 17),
        ):  # fmt: skip
            box = (start - 1, base - 12, start + width + 1, base + 4)
            is_inside = box[0] > 50 and box[2] < NARROW and box[1] > 62 and box[3] < 356
            crosses = box[0] < EDGE < box[2] or box[1] < FLOOR < box[3]
            free = all(box[2] < a[0] or box[0] > a[2] or box[3] < a[1] or box[1] > a[3] for a in taken)
            if is_inside and not crosses and free:
                taken.append(box)
                names.append(text(start, base, p["term"], "start", "name halo"))
                break
        if len(names) == 26:
            break
    return names


def idea_picture(idea: dict[str, Any]) -> Markup:
    """Draw how a new word gets its weight: a labelled word, the words it goes with, the new word."""
    colour, between = colour_of(idea["code"]), idea["between"]
    top, step = 56, 66
    middle = top + step * (len(between) - 1) / 2
    largest = max(row[side] for row in between for side in ("from_labelled", "from_new")) or 1
    parts = [
        text(60, 18, "labelled", "middle", "axis"),
        text(200, 18, "goes with", "middle", "axis"),
        text(336, 18, "new", "middle", "axis"),
    ]
    for i, row in enumerate(between):
        y = top + step * i
        for x, far, key, says in (
            (116, 142, "from_labelled", f"{idea['labelled']['term']} goes with {row['term']}"),
            (284, 258, "from_new", f"{idea['new']['term']} goes with {row['term']}"),
        ):
            width = 1.5 + 5 * max(row[key], 0) / largest
            parts.append(
                tag(
                    "path", hint(f"{says}: weight {row[key]:.3g} in the first layer"), fill="none",
                    d=f"M{x} {middle}C{(x + far) / 2} {middle} {(x + far) / 2} {y} {far} {y}",
                    stroke_width=round(width, 1), cls=f"link t{colour[1]}",
                )
            )  # fmt: skip
        parts += _box(200, y, 116, row["term"], f"{row['n_labelled']:,} labelled rows", "plain")
    labelled, new = idea["labelled"], idea["new"]
    parts += _box(62, middle, 108, labelled["term"], f"{labelled['n_labelled']:,} labelled rows", colour)
    parts += _box(338, middle, 108, "★ " + new["term"], "no labelled row", colour)
    bottom = top + step * (len(between) - 1) + 62
    parts += [
        text(12, bottom, f"learnt: {shorten(idea['class'], 12)}", "start", "tick"),
        text(388, bottom, f"gets: {shorten(idea['class'], 12)}", "end", "tick"),
    ]
    names = ", ".join(row["term"] for row in between)
    title = f"{labelled['term']}, learnt as {idea['class']}, goes with {names}; so does {new['term']}"
    return drawing(title, bottom + 14, *parts, width=NARROW)


def _box(x: float, y: float, width: float, name: str, below: str, cls: str) -> list[Markup]:
    """Draw a word in a box, with a line of smaller text under it."""
    return [
        tag("rect", x=x - width / 2, y=y - 16, width=width, height=32, rx=7, cls=f"box {cls}"),
        text(
            x,
            y + 5,
            shorten(name, 13 if cls == "plain" else 11),
            "middle",
            "on-box" if cls != "plain" else None,
        ),
        text(x, y + 31, below, "middle", "tick"),
    ]


def coverage_chart(title: str, rows: Sequence[dict[str, Any]]) -> Markup:
    """Draw the error among the surest predictions against how many of them are kept."""
    measured = [row for row in rows if row["measured"]]
    highest = max([row["expected"] for row in rows] + [row["measured"]["high"] for row in measured])
    across = Scale(0.0, 1.0, 56, RIGHT)
    up = Scale(0.0, max(1.1 * highest, 0.02), 240, 56)
    parts = [
        vertical_axis(up, 56, RIGHT, "share of those kept that are wrong", percent),
        horizontal_axis(across, 240, 240, "predictions kept, the surest first", percent),
        line(12, 16, 36, 16, "curve dashed soft-line"), text(42, 20, "expected"),
    ]  # fmt: skip
    path = [(across(row["coverage"]), up(row["expected"])) for row in rows]
    if measured:
        band = [(across(row["coverage"]), up(row["measured"]["high"])) for row in measured]
        band += [(across(row["coverage"]), up(row["measured"]["low"])) for row in reversed(measured)]
        known = [(across(row["coverage"]), up(row["measured"]["error"])) for row in measured]
        parts += [
            tag("polygon", points=_path(band), cls="band"),
            tag("polyline", points=_path(known), cls="curve ink-line"),
            line(140, 16, 164, 16, "curve ink-line"), text(170, 20, "measured, 95% interval"),
        ]  # fmt: skip
    parts.append(tag("polyline", points=_path(path), cls="curve dashed soft-line"))
    for row in rows:
        error = row["measured"] or {"error": row["expected"]}
        says = (
            f"the surest {percent(row['coverage'])} (probability from {row['threshold']:.2f}): "
            f"{error['error']:.1%} wrong{'' if row['measured'] else ', expected'}"
        )
        parts.append(
            tag(
                "circle", hint(says), cx=across(row["coverage"]), cy=up(error["error"]), r=3.5, cls="mark ink"
            )
        )
    return drawing(title, 286, *parts, width=NARROW)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def reliability_chart(title: str, rows: Sequence[dict[str, Any]]) -> Markup:
    """Draw the share that is right against the probability, for groups of predictions."""
    low = min(row[key] for row in rows for key in ("probability", "low"))
    low = max(0.0, int(10 * low) / 10)
    across, up = Scale(low, 1.0, 56, RIGHT), Scale(low, 1.0, 240, 56)
    parts = [
        vertical_axis(up, 56, RIGHT, "share of them that is right", percent),
        horizontal_axis(across, 56, 240, "probability of the predicted label", percent),
        line(across(low), up(low), across(1.0), up(1.0), "diagonal"),
        text(12, 20, "on the dashed line, probabilities hold", "start", "tick"),
    ]
    for row in rows:
        x, y = across(row["probability"]), up(row["right"])
        says = (
            f"{row['n_rows']:,} rows of probability {percent(row['probability'])}: {percent(row['right'])} "
            f"right ({percent(row['low'])} to {percent(row['high'])})"
        )
        parts += [
            line(x, up(row["low"]), x, up(row["high"]), "whisker ink-line"),
            tag("rect", hint(says), x=x - 6, y=y - 6, width=12, height=12, cls="mark ink"),
        ]
    return drawing(title, 286, *parts, width=NARROW)


def histogram(title: str, data: dict[str, Any], classes: Sequence[str]) -> Markup:
    """Draw how many predictions have which probability; the classes of a bin stand on one another."""
    edges, counts = data["edges"], data["counts"]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    across = Scale(edges[0], edges[-1], 56, RIGHT)
    up = Scale(0.0, max([1, *totals]) * 1.05, 240, 56)
    parts = [
        class_legend(classes, 20),
        vertical_axis(up, 56, RIGHT, "target rows"),
        horizontal_axis(across, 240, 240, "probability of the predicted label", percent),
    ]
    for b, (start, end) in enumerate(pairwise(edges)):
        floor = 0
        for code, name in enumerate(classes):
            n = counts[code][b]
            if n:
                parts.append(
                    tag(
                        "rect", hint(f"{percent(start)} to {percent(end)}: {n:,} rows, predicted {name}"),
                        x=across(start) + 0.5, y=up(floor + n), height=up(floor) - up(floor + n),
                        width=max(across(end) - across(start) - 1, 0.5), cls=f"mark {colour_of(code)}",
                    )
                )  # fmt: skip
            floor += n
    return drawing(title, 286, *parts, width=NARROW)
