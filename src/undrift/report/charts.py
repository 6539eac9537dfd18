"""The charts and tables of an adaptation: a title with the finding, a drawing, and the table behind it.

Each chart fits a telephone, and two stand side by side on a desk. A class has one colour on the whole page;
of many classes none has one, and each is named where it is drawn. Black is the adapted classifier; grey is
the baseline, and an expected error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from markupsafe import Markup

from ..errors import count, write_shares
from ..scoring import error_interval
from .content import name_class, write_estimate, write_percent
from .svg import (
    LINE,
    N_COLOURS,
    NARROW,
    Scale,
    bar,
    dot,
    draw_grid,
    drawing,
    find_end,
    horizontal_axis,
    line,
    percent,
    tag,
    text,
    vertical_axis,
    wrap_name,
    write_name,
    write_ticks,
)

RIGHT = NARROW - 22  # edge of the axes
MOST_CLASSES, MOST_TARGETS = 5, 4  # that a chart on the first screen shows
SHORT_NAME = 14  # characters: a class whose name is longer has it on lines of its own
NAME_LINE = 17  # height of such a line


@dataclass(frozen=True)
class Chart:
    """A drawing with its title, what to read from it, and the table behind it."""

    key: str
    title: str
    note: str
    svg: Markup
    columns: Sequence[str]
    rows: list[tuple[Any, ...]]


def adaptation_charts(data: dict[str, Any]) -> dict[str, Any]:
    """Draw all charts of an adaptation's report."""
    last, n_classes = data["coverage"][-1], len(data["classes"])
    return {
        "errors": chart_errors(data),
        "shares": list(chart_shares(data)),
        "all_shares": list(chart_shares(data, n_classes)) if n_classes > MOST_CLASSES else [],
        "has_colours": n_classes <= N_COLOURS,
        "words": chart_words(data) if data["difference"]["terms"] else None,
        "idea": draw_idea(data["idea"]) if data["idea"] else None,
        "coverage": chart_coverage(data["coverage"])
        if last["measured"] or last["expected"] is not None
        else None,
        "files": [(row["file"], row["bytes"], row["sha256"]) for row in data["reproduce"]["files"]],
        "domains": [
            (
                card["name"], card["role"], card["n_rows"], card["n_labelled"],
                "" if card["n_terms"] is None else card["n_terms"],
                "" if card["unseen_share"] is None else f"{card['unseen_share']:.1%}",
            )
            for card in data["domains"]
        ],
    }  # fmt: skip


def colour_of(code: int, n_classes: int) -> str:
    """Return the colour class of a class of labels; with many classes all have the same."""
    return f"s{code}" if n_classes <= N_COLOURS else "soft"


def chart_errors(data: dict[str, Any]) -> Chart | None:
    """Draw how many predictions are wrong, measured or expected, each as a mark with its interval.

    One target has a line for each classifier; of several, each has one line.
    """
    verdict = data["verdict"]
    if verdict["scored"]:
        names = {"adapted": "adapted", "source_only": "baseline"}
        table = [
            (each["name"], kind, each["n_rows"], each[kind]) for each in verdict["scored"] for kind in names
        ]
        how = ", each predicted without its label" if verdict["is_cross_fitted"] else ""
        n_rows, level = verdict["whole"]["n_rows"], 95
        title = f"Measured on {count(n_rows, 'labelled target row')}{how}, with 95% intervals"
    else:
        names, level = {"expected": "expected"}, 90
        table = [
            (card["name"], "expected", card["n_rows"], card["expected_error"])
            for card in data["domains"]
            if card["role"] == "target" and card["expected_error"]
        ]
        title = "Expected, not measured, with 90% intervals"
    if not table:
        return None
    n_targets = len({name for name, *_ in table})
    lanes = [table[i : i + len(names)] for i in range(0, len(table), len(names))][:MOST_TARGETS]
    if n_targets == 1:
        lanes = [[row] for row in table]
    scale = Scale(0.0, min(find_end(error["high"] for *_, error in table), 1.0), 12, RIGHT)
    bottom = 4 + 40 * len(lanes)
    parts = [horizontal_axis(scale, bottom, bottom + 5, ""), line(12, bottom, RIGHT, bottom, "zero")]
    for i, lane in enumerate(lanes):
        first, y = names[lane[0][1]] if n_targets == 1 else lane[0][0], 30 + 40 * i
        says = [_write_error(error, level) for *_, error in lane]
        more = f"; baseline {says[1].split(' ')[0]}" if len(says) > 1 else ""
        said = f": {says[0]}{more}"
        parts.append(write_name(12, y - 13, first, LINE, after=said))
        for (target, kind, _, error), words in reversed(list(zip(lane, says, strict=True))):
            look = "ink" if kind == "adapted" else "soft"
            about = f"{names[kind]}, {target}: {words}"
            parts.append(line(scale(error["low"]), y, scale(error["high"]), y, f"whisker {look}-line"))
            if error["error"] is not None:
                parts.append(dot(scale(error["error"]), y, 6, f"mark {look}", about))
    return Chart(
        "errors",
        title + (f"; {n_targets} targets in the table" if n_targets > MOST_TARGETS else ""),
        f"Intervals are Wilson's, {level}%." if level == 95 else "Intervals hold with a probability of 90%.",
        drawing("How many predictions are wrong", bottom + 24, *parts),
        ("target", "classifier", "rows", "error", "low", "high"),
        [
            (row[0], names[row[1]], row[2], *("" if end is None else f"{end:.2%}" for end in row[3].values()))
            for row in table
        ],
    )


def _write_error(error: dict[str, Any], level: int) -> str:
    if error["error"] is None:
        return f"not known, {write_percent(error['low'])} to {write_percent(error['high'])}"
    if level == 95:
        return f"{error['error']:.1%} ({error['low']:.1%} to {error['high']:.1%})"
    return "{} ({})".format(*write_estimate(*error.values()))


def chart_shares(data: dict[str, Any], most: int = MOST_CLASSES) -> Iterator[Chart]:
    """Draw the class shares of every target, those of the `most` frequent classes."""
    keys = ("share", "low", "high")
    for i, card in enumerate(card for card in data["domains"] if card["role"] == "target"):
        shares, intervals, measured = (
            card[key] for key in ("target_shares", "target_shares_interval", "labelled_shares")
        )
        rows = [
            {"label": label, "code": code, "predicted": predicted}
            | (dict(zip(keys, (shares[label], *intervals[label]), strict=True)) if shares else {})
            for code, (label, predicted) in enumerate(card["predicted_shares"].items())
        ]
        columns = ["class", *list(rows[0])[2:], *(["of labelled rows"] if measured else [])]
        values = [list(map(itemgetter(name), rows)) for name in list(rows[0])[2:]]
        values += [[measured.get(row["label"], 0.0) for row in rows]] if measured else []
        shown = sorted(rows, key=lambda row: -row.get("share", row["predicted"]))[:most]
        title, note = _say_shares(card, data)
        more = f" All {len(rows)} classes are below." if len(rows) > most else ""
        yield Chart(
            f"shares-{i + 1}",
            title,
            note + more,
            draw_shares(
                f"Class shares of {card['name']}",
                shown if len(rows) > most else sorted(shown, key=lambda row: row["code"]),
                ("given" if card["are_shares_given"] else "estimated") if shares else None,
                len(rows),
            ),
            columns,
            list(zip(card["predicted_shares"], *map(write_shares, values), strict=True)),
        )


def draw_shares(title: str, rows: Sequence[dict[str, Any]], name: str | None, n_classes: int) -> Markup:
    """Draw for each class its share of the predictions as a bar and, called `name`, of the rows as a line."""
    is_long = max(len(row["label"]) for row in rows) > SHORT_NAME
    lines = [wrap_name(row["label"]) if is_long else [] for row in rows]
    left = 12.0 if is_long else 24 + 7.6 * max(len(row["label"]) for row in rows)
    right, edge = 218 if name else 330, 274 if name else 396
    height, top = 30 if name and len(rows) < 4 else 24, 22
    highest = max(value for row in rows for value in (row["predicted"], row.get("high", 0.0)))
    scale = Scale(0.0, highest or 1.0, left, right)
    parts = [
        text(edge, 14, "predicted", "end", "tick"),
        *([text(398, 14, name, "end", "tick")] if name else []),
    ]
    shares = [row["predicted"] for row in rows]
    written = (
        write_shares(shares, int(min(shares) < 0.0995)),
        write_shares((r.get("share", 0) for r in rows), 0),
    )
    y: float = top
    for row, above, predicted, estimated in zip(rows, lines, *written, strict=True):
        is_number = name_class(row["label"]) != row["label"]
        parts += [text(left, y + 14 + NAME_LINE * k, part) for k, part in enumerate(above)]
        y += NAME_LINE * len(above)
        parts += list(draw_grid(scale, y, y + height, 2))
        middle, width = y + height / 2 + 5, max(scale(row["predicted"]) - left, 1.0)
        says = f"{row['label']}: {predicted} of the predictions"
        if not above:
            parts.append(text(left - 8, middle, row["label"], "end", "code" if is_number else None))
        look = f"mark {colour_of(row['code'], n_classes)}"
        parts += [
            bar(left, y + 3, width, height - 19 if name else 16, look, says),
            text(edge, middle, predicted, "end"),
        ]
        if name:
            share, ends = write_estimate(row["share"], row["low"], row["high"])
            says = f"{row['label']}: {name} {share} ({ends}) of the rows"
            between = "" if row["low"] == row["high"] else f" ({100 * row['low']:.0f}–{row['high']:.0%})"
            low = y + height - 10
            parts += [
                line(scale(row["low"]), low, scale(row["high"]), low, "whisker ink-line"),
                bar(scale(row["share"]) - 2, low - 5, 4, 10, "ink", says),
                text(398, middle, f"{estimated}{between}", "end"),
            ]
        y += height
    return drawing(title, y + 22, *parts, write_ticks(scale, y, 2))


def find_most_frequent(card: dict[str, Any]) -> dict[str, Any] | None:
    """Return the most frequent class of a target, its share, and whether it clearly is.

    Labelled rows are believed before estimates; the interval is then of 95%.
    """
    shares, intervals = card["labelled_shares"], card["target_shares_interval"]
    if shares:
        intervals = {label: error_interval(share, card["n_labelled"]) for label, share in shares.items()}
    shares = shares or card["target_shares"]
    if not shares:
        return None
    label = max(shares, key=shares.get)
    low, high = intervals[label]
    margin = 0.0 if card["labelled_shares"] else 0.01
    others = [(shares[other], intervals[other][1]) for other in shares if other != label]
    is_clear = all(shares[label] > share and low > end + margin for share, end in others)
    return {"label": label, "share": shares[label], "low": low, "high": high, "is_clear": is_clear}


def _say_shares(card: dict[str, Any], data: dict[str, Any]) -> tuple[str, str]:
    """Return a title with the most frequent class, and a note on how sure that is."""
    top, name = find_most_frequent(card), card["name"]
    if top is None:
        note = "Shares among the predictions. Shares among the rows were not estimated."
        return f"Predicted class shares of {name}", note
    if card["are_shares_given"]:
        note = "Given, not estimated. Predictions are made for these shares."
        return f"Class shares of {name}, as given", note
    share, interval = write_estimate(top["share"], top["low"], top["high"])
    has, note = f"about {share} of its rows ({interval})", "Lines: estimates with 90% intervals."
    if card["labelled_shares"]:
        has = f"{write_percent(top['share'])} of its {count(card['n_labelled'], 'labelled row')}"
        note = "Lines: estimates without these labels, with 90% intervals."
    label = name_class(top["label"])
    if top["is_clear"]:
        return f"{label} is the most frequent class of {name}: {has}", note
    return f"No class of {name} is clearly the most frequent: {has} are {label}", note


def chart_words(data: dict[str, Any]) -> Chart:
    """Draw a bar for each term that moved predictions, in the colour of the class it moves them to."""
    rows, share = data["difference"]["terms"][:14], data["difference"]["new_share"]
    n_classes = len(data["classes"])
    is_named = n_classes > N_COLOURS  # beside each term, on a line of its own
    left, height, top = 12.0 if is_named else 148.0, 24, 4
    scale = Scale(0.0, find_end(row["push"] for row in rows), left, RIGHT - 50)
    parts, y = [], float(top)
    for row in rows:
        seen = count(row["n_labelled"], "labelled row") if row["n_labelled"] else "no labelled row"
        says = f"{row['term']}: {percent(row['push'])}, toward {row['class']}; in {seen}"
        term, width = ("", "☆ ", "★ ")[row["rarity"]] + row["term"], max(scale(row["push"]) - left, 1.0)
        for part in wrap_name(f"{term} → {row['class']}") if is_named else ():
            y += NAME_LINE
            parts.append(text(left, y, part))
        if not is_named:
            parts.append(write_name(left - 8, y + 17, term, 16, "end"))
        parts += [
            line(left, y + 2, left, y + height, "zero"),
            bar(left, y + 4, width, height - 8, f"mark {colour_of(row['code'], n_classes)}", says),
            text(left + width + 6, y + 17, f"{row['push']:.2%}", "start", "tick"),
        ]
        y += height
    bottom = y
    parts.append(text(left, bottom + 20, "share of the whole effect", "start", "axis"))
    title = f"Words rare in labelled rows made {share:.0%} of the difference"
    return Chart(
        "words",
        title if share >= 0.05 else "Words frequent in labelled rows made the difference",
        "Terms that moved changed predictions most, beyond what they do in the baseline. ★ is in no labelled "
        "row, ☆ in few.",
        drawing("Terms by their part in the changed predictions", bottom + 30, *parts),
        ("term", "moves toward", "share of effect", "labelled rows", "source rows", "target rows"),
        [
            (
                r["term"],
                r["class"],
                f"{r['push']:.2%}",
                r["n_labelled"],
                *(f"{r[name]:.2%}" for name in ("source", "target")),
            )
            for r in rows
        ],
    )


def draw_idea(idea: dict[str, Any]) -> Markup:
    """Draw how a new word gets its weight: a labelled word, the words it goes with, the new word."""
    colour, between = colour_of(idea["code"], idea["n_classes"]), idea["between"]
    stroke = "soft-line" if colour == "soft" else f"t{colour[1:]}"
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
                    "path", tag("title", f"{says}: weight {row[key]:.3g} in the first layer"), fill="none",
                    d=f"M{x} {middle}C{(x + far) / 2} {middle} {(x + far) / 2} {y} {far} {y}",
                    stroke_width=round(width, 1), cls=f"link {stroke}",
                )
            )  # fmt: skip
        parts += _box(200, y, 116, row["term"], count(row["n_labelled"], "labelled row"), "plain")
    labelled, new = idea["labelled"], idea["new"]
    parts += _box(62, middle, 108, labelled["term"], count(labelled["n_labelled"], "labelled row"), colour)
    parts += _box(338, middle, 108, new["term"], "★ no labelled row", colour)
    bottom = top + step * (len(between) - 1) + 62
    for part in wrap_name(f"both speak for {idea['class']}"):
        parts.append(text(200, bottom, part, "middle", "tick"))
        bottom += NAME_LINE
    names = ", ".join(row["term"] for row in between)
    title = f"{labelled['term']}, learnt as {idea['class']}, goes with {names}; so does {new['term']}"
    return drawing(title, bottom, *parts)


def _box(x: float, y: float, width: float, name: str, below: str, cls: str) -> list[Markup]:
    """Draw a word in a box, with a line of smaller text under it."""
    looks = " ".join((["on-box"] if cls != "plain" else []) + (["tight"] if len(name) > 12 else []))
    return [
        tag("rect", x=x - width / 2, y=y - 16, width=width, height=32, rx=7, cls=f"box {cls}"),
        write_name(x, y + 5, name, 15, "middle", looks or None),
        text(x, y + 31, below, "middle", "tick"),
    ]


def chart_coverage(rows: list[dict[str, Any]]) -> Chart:
    """Draw the error among the surest predictions against how many of them are kept."""
    measured = [row for row in rows if row["measured"]]
    guessed = [row for row in rows if row["expected"] is not None]
    highest = max([row["expected"] for row in guessed] + [row["measured"]["high"] for row in measured])
    across, up = Scale(0.0, 1.0, 56, RIGHT), Scale(0.0, max(1.1 * highest, 0.02), 240, 56)
    parts = [
        vertical_axis(up, 56, RIGHT, "share of those kept that are wrong"),
        horizontal_axis(across, 240, 240, "predictions kept, the surest first"),
    ]
    if guessed:
        parts += [line(12, 16, 36, 16, "curve dashed soft-line"), text(42, 20, "expected")]

    def trace(given: list[dict[str, Any]], key: str) -> str:
        ys = [row["measured"][key] if given is measured else row[key] for row in given]
        return " ".join(f"{across(r['coverage']):.1f},{up(y):.1f}" for r, y in zip(given, ys, strict=True))

    if measured:
        band = " ".join([trace(measured, "high"), *reversed(trace(measured, "low").split(" "))])
        parts += [
            tag("polygon", points=band, cls="band"),
            tag("polyline", points=trace(measured, "error"), cls="curve ink-line"),
            line(140, 16, 164, 16, "curve ink-line"), text(170, 20, "measured, 95% interval"),
        ]  # fmt: skip
    if guessed:
        parts.append(tag("polyline", points=trace(guessed, "expected"), cls="curve dashed soft-line"))
    for row in guessed or measured:
        error, how = (row["measured"]["error"], "") if row["measured"] else (row["expected"], ", expected")
        says = f"the surest {percent(row['coverage'])}: {error:.1%} wrong{how}"
        parts.append(dot(across(row["coverage"]), up(error), 3.5, "mark ink", says))
    row = next((row for row in rows if row["coverage"] >= 0.8 - 1e-9), rows[-1])
    error, how = (
        (row["measured"]["error"], "are") if row["measured"] else (row["expected"], "are expected to be")
    )
    return Chart(
        "coverage",
        f"Of the surest 80%, {write_percent(error)} {how} wrong",
        f"The fewer are kept, the fewer are wrong. --min-confidence {row['threshold']:.2f} keeps these and "
        "leaves the other predictions empty.",
        drawing("Error of the surest predictions, by how many are kept", 286, *parts),
        ("kept", "probability from", "expected error", "measured", "low", "high"),
        [
            (
                f"{r['coverage']:.0%}", f"{r['threshold']:.3f}",
                "" if r["expected"] is None else f"{r['expected']:.1%}",
                *(f"{r['measured'][k]:.1%}" if r["measured"] else "" for k in ("error", "low", "high")),
            )
            for r in rows
        ],
    )  # fmt: skip
