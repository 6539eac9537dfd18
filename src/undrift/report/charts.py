"""The charts of an adaptation, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from .shares import write_estimate, write_percent
from .svg import (
    NARROW,
    TEXT,
    WIDTH,
    Scale,
    cover,
    drawing,
    hint,
    horizontal_axis,
    join,
    legend,
    line,
    percent,
    tag,
    text,
    vertical_axis,
)

ROW = 30  # height of a bar and the space around it


@dataclass(frozen=True)
class Chart:
    """A drawing with its title, what to read from it, and the table behind it."""

    key: str
    title: str
    note: str
    svg: Markup
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def interval_chart(title: str, rows: Sequence[dict[str, Any]]) -> Markup:
    """Draw an error for each row, as a dot with its interval; rows hold label, kind, error, low, high."""
    left = 24 + 7.4 * max(len(row["label"]) for row in rows)
    low, high = cover([row["high"] for row in rows])
    scale, bottom = Scale(low, min(high, 1.0), left, NARROW - 30), 12 + ROW * len(rows)
    parts = [horizontal_axis(scale, 8, bottom, "error: share of target rows predicted wrongly", percent)]
    for i, row in enumerate(rows):
        y = 12 + ROW * (i + 0.5)
        says = f"{row['label']}: {row['error']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        dot = (
            tag("circle", hint(says), cx=scale(row["error"]), cy=y, r=7, cls="mark a")
            if row["kind"] == "source_only"
            else tag(
                "rect", hint(says), x=scale(row["error"]) - 6.5, y=y - 6.5, width=13, height=13, cls="mark b"
            )
        )
        side = "a" if row["kind"] == "source_only" else "b"
        parts += [
            text(left - 12, y + 5, row["label"], "end"),
            line(scale(row["low"]), y, scale(row["high"]), y, f"whisker {side}-line"),
            dot,
        ]
    return drawing(title, bottom + 52, *parts, width=NARROW)


def share_chart(title: str, rows: Sequence[dict[str, Any]], name: str | None) -> Markup:
    """Draw for each class its share of the predictions as a bar, and its share of the rows as a dot.

    Rows hold label, predicted, and share, low and high where they are known; `name` says what the dots are.
    """
    left, top, height = 12.0, 36, 60 if name else 46
    bottom = top + height * len(rows)
    highest = max(value for row in rows for value in (row["predicted"], row.get("high", 0.0)))
    scale = Scale(0.0, min(1.0, 1.05 * highest) or 1.0, left, NARROW - (160 if name else 60))
    parts = [
        horizontal_axis(scale, top, bottom, "share of the target's rows", percent),
        legend([("b", "predicted")], left, 18),
    ]
    if name:
        parts += [
            line(112, 13, 136, 13, "whisker ink-line"),
            tag("circle", cx=124, cy=13, r=6, cls="mark ink"),
            text(144, 18, name),
        ]
    for i, row in enumerate(rows):
        y, end, predicted = top + height * i, scale(row["predicted"]), write_percent(row["predicted"])
        says = f"{row['label']}: {predicted} of the predictions"
        parts += [
            text(left, y + 16, _short(row["label"], 30), "start", "halo"),
            tag("rect", hint(says), x=left, y=y + 22, width=max(end - left, 1.0), height=14, cls="mark b"),
            text(end + 6, y + 34, predicted, "start", "tick"),
        ]
        if name:
            share, interval = write_estimate(row["share"], row["low"], row["high"])
            shown = share if row["low"] == row["high"] else f"{share} ({interval})"
            says = f"{row['label']}: {shown} of the rows, {name}"
            parts += [
                line(scale(row["low"]), y + 46, scale(row["high"]), y + 46, "whisker ink-line"),
                tag("circle", hint(says), cx=scale(row["share"]), cy=y + 46, r=6, cls="mark ink"),
                text(scale(row["high"]) + 12, y + 51, shown, "start", "tick"),
            ]
    return drawing(title, bottom + 52, *parts, width=NARROW)


STARS = {0: "", 1: "☆ ", 2: "★ "}


def push_chart(title: str, rows: Sequence[dict[str, Any]], axis: str) -> Markup:
    """Draw a bar for each term; those that labelled rows never (★) or rarely (☆) have stand out."""
    names = [STARS[row["rarity"]] + _short(row["term"]) for row in rows]
    left = 24 + 7.8 * max(map(len, names))
    scale = Scale(*cover([row["push"] for row in rows]), left, WIDTH - 150)
    bottom = 12 + ROW * len(rows)
    parts = [horizontal_axis(scale, 8, bottom, axis, percent)]
    for i, (row, name) in enumerate(zip(rows, names, strict=True)):
        y, end = 12 + ROW * i, scale(row["push"])
        says = f"{row['term']}: {percent(row['push'])}, toward {row['class']}; {_seen(row['n_labelled'])}"
        parts += [
            text(left - 12, y + 20, name, "end"),
            tag(
                "rect",
                hint(says),
                x=left,
                y=y + 5,
                width=max(end - left, 1.0),
                height=ROW - 10,
                cls=f"mark {('b', 'rare', 'new')[row['rarity']]}",
            ),
            text(end + 6, y + 20, f"→ {_short(row['class'])}", "start", "tick"),
        ]
    return drawing(title, bottom + 52, *parts)


def _seen(n_labelled: int) -> str:
    return f"in {n_labelled:,} labelled rows" if n_labelled else "never seen in the labelled source"


def _short(term: str, length: int = 24) -> str:
    return term if len(term) <= length else term[: length - 1] + "…"


def shift_chart(title: str, points: Sequence[dict[str, Any]], source: str, target: str) -> Markup:
    """Draw terms by the share of documents that contain them, in the source and in the target, both log."""
    floor = min((share for p in points for share in (p["source"], p["target"]) if share > 0), default=0.001)
    edge = floor / 2.2  # the place of "never"
    across = Scale(edge, 1.0, 84, WIDTH - 20, log=True)
    up = Scale(edge, 1.0, WIDTH - 70, 60, log=True)
    bottom, never_x, never_y = WIDTH - 50, across(edge * 1.35), up(edge * 1.35)
    parts = [
        horizontal_axis(across, 60, bottom, f"share of {source} documents with the term (log)", percent),
        vertical_axis(up, 70, WIDTH - 20, f"share of {target} documents with the term (log)", percent),
        line(across(floor), up(floor), across(1.0), up(1.0), "diagonal"),
        text(never_x, bottom + 18, "never", "middle", "tick"),
        text(62, never_y + 5, "never", "end", "tick"),
    ]
    for i, p in enumerate(points):
        x = across(p["source"]) if p["source"] > 0 else never_x
        y = up(p["target"]) if p["target"] > 0 else never_y
        # terms of equal shares lie on top of one another: a fixed pattern sets them apart
        x, y = x + (i * 7 % 11 - 5) * 0.5, y + (i * 5 % 11 - 5) * 0.5
        parts.append(
            tag(
                "circle", hint(shift_hint(p, source, target)), cx=x, cy=y, r=3 if p["n_labelled"] else 3.5,
                cls="dot new" if not p["n_labelled"] else "dot", data_term=p["term"],
            )
        )  # fmt: skip
    names = [("key dot", "seen labelled"), ("key dot new", "never in a labelled source row")]
    parts.append(legend(names, 84, 16))
    return drawing(title, WIDTH, *parts)


def shift_hint(p: dict[str, Any], source: str, target: str) -> str:
    """Say all about one term in a few lines."""
    lines = [
        p["term"] + ("" if p["n_labelled"] else "  ★ never seen in the labelled source"),
        f"{percent(p['source'])} of {source}, {percent(p['target'])} of {target}",
        f"speaks for {p['class']}, weight {p['weight']:.3g}",
        *(f"{name}: {p[name]}" for name in ("in source", "in target") if p.get(name)),
    ]
    return "\n".join(lines)


def heat_map(title: str, grid: dict[str, Any]) -> Markup:
    """Draw what a rule gave to each noise and depth: the fainter the better; the chosen cell has a frame."""
    noises, depths, cells = grid["noise"], grid["n_layers"], grid["cells"]
    left, top, height = 60, 36, 44
    width = min(120.0, (NARROW - left - 10) / len(noises))
    values = [cell["value"] for cell in cells]
    best, worst = (min(values), max(values)) if grid["is_error"] else (max(values), min(values))
    parts = [text(4, 18, "layers", "start", "axis")]
    for cell in cells:
        x = left + width * noises.index(cell["noise"])
        y = top + height * depths.index(cell["n_layers"])
        step = round(6 * (cell["value"] - best) / (worst - best)) if worst != best else 0
        shown = heat_value(grid, cell)
        says = f"noise {cell['noise']:g}, {cell['n_layers']} layers, C {cell['C']:g}: {shown}"
        parts += [
            tag(
                "rect",
                hint(says),
                x=x + 1,
                y=y + 1,
                width=width - 2,
                height=height - 2,
                cls=f"mark heat{step}",
            ),
            text(x + width / 2, y + 27, shown + (" ◆" if cell["chosen"] else ""), "middle", f"on-heat{step}"),
        ]
        if cell["chosen"]:
            parts.append(tag("rect", x=x + 2, y=y + 2, width=width - 4, height=height - 4, cls="chosen"))
    parts += [
        text(left - 12, top + height * (i + 0.62), depth, "end", "tick") for i, depth in enumerate(depths)
    ]
    bottom = top + height * len(depths)
    parts += [
        text(left + width * (i + 0.5), bottom + 20, f"{noise:g}", "middle", "tick")
        for i, noise in enumerate(noises)
    ]
    parts.append(
        text(left + width * len(noises) / 2, bottom + 42, "noise (share of terms hidden)", "middle", "axis")
    )
    return drawing(title, bottom + 54, *parts, width=NARROW)


def heat_value(grid: dict[str, Any], cell: dict[str, Any]) -> str:
    """Write what a rule gave to a cell."""
    return f"{cell['value']:.1%}" if grid["is_error"] else f"{cell['value']:.3g}"


def histogram(title: str, data: dict[str, Any]) -> Markup:
    """Draw how many rows have which score; the series of a bin stand on one another."""
    edges, series = data["edges"], data["series"]
    totals = [sum(column) for column in zip(*(each["counts"] for each in series), strict=True)]
    across = Scale(edges[0], edges[-1], 70, WIDTH - 20)
    up = Scale(0.0, max([1, *totals]) * 1.05, 270, 50)
    parts = [
        vertical_axis(up, 70, WIDTH - 20, "target rows"),
        horizontal_axis(across, 270, 270, data["axis"]),
    ]
    for b, (start, end) in enumerate(pairwise(edges)):
        floor = 0
        for each in series:
            n = each["counts"][b]
            if n:
                says = f"score {start:.2f} to {end:.2f}: {n:,} rows, {each['name']}"
                parts.append(
                    tag(
                        "rect", hint(says), x=across(start) + 0.5, y=up(floor + n),
                        cls=f"mark {each['mark']}", height=up(floor) - up(floor + n),
                        width=max(across(end) - across(start) - 1, 0.5),
                    )
                )  # fmt: skip
            floor += n
    if edges[0] < 0 < edges[-1]:
        parts.append(line(across(0.0), 50, across(0.0), 270, "zero"))
    parts.append(legend([(each["mark"], each["name"]) for each in series], 70, TEXT))
    return drawing(title, 318, *parts)


def label_bar(counts: dict[str, int]) -> Markup:
    """Draw the shares of the labels in one domain, as one bar."""
    total, x, parts = sum(counts.values()) or 1, 0.0, []
    for i, (name, n) in enumerate(counts.items()):
        if n == 0:
            continue
        width = 260 * n / total
        says = f"{name}: {n:,} ({percent(n / total)})"
        parts.append(
            tag("rect", hint(says), x=x, y=0, width=max(width - 1, 0.5), height=12, cls=f"mark s{i % 6}")
        )
        x += width
    shares = ", ".join(f"{name} {n}" for name, n in counts.items())
    return tag(
        "svg",
        join(parts),
        viewBox="0 0 260 12",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"labels: {shares}",
        cls="labels",
    )
