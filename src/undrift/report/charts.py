"""The charts of a report: a title with the finding, a drawing, and the table behind it.

Each chart fits a telephone, and two stand side by side on a desk. A class has one colour on the whole page;
of many classes none has one, and each is named where it is drawn. Black is the adapted classifier; grey is
the baseline, and an expected error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..errors import count, write_shares
from ..results import Score, Target, error_interval
from .data import PredictedRows
from .evidence import Difference, Idea
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
from .verdict import Verdict, name_class, write_estimate, write_percent, write_score

RIGHT = NARROW - 22  # edge of the axes
MOST_CLASSES, MOST_TARGETS = 5, 4  # that a chart on the first screen shows
SHORT_NAME = 14  # characters: a class whose name is longer has it on lines of its own
NAME_LINE = 17  # height of such a line
MOST_WORDS = 14


@dataclass(frozen=True)
class Chart:
    """A drawing with its title, what to read from it, and the table behind it."""

    key: str
    title: str
    note: str
    svg: Markup
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def colour_of(code: int, n_classes: int) -> str:
    """Return the colour class of a class of labels; with many classes all have the same."""
    return f"s{code}" if n_classes <= N_COLOURS else "soft"


def chart_errors(verdict: Verdict, targets: Sequence[PredictedRows]) -> Chart | None:
    """Draw how many predictions are wrong, measured or expected, each as a mark with its interval.

    One target has a line for each classifier; of several, each has one line.
    """
    rows: list[tuple[str, str, int, Score]]  # target, classifier, rows, error
    if verdict.errors:
        rows = [
            (name, kind, errors.n_rows, score)
            for name, errors in verdict.scored.items()
            for kind, score in (("adapted", errors.after), ("baseline", errors.before))
        ]
        how = ", each predicted without its label" if verdict.is_cross_fitted else ""
        n_rows = count(verdict.errors.n_rows, "labelled target row")
        title, note = f"Measured on {n_rows}{how}, with 95% intervals", "Intervals are Wilson's, 95%."
    else:
        rows = [
            (each.name, "expected", each.rows.size, each.known.expected) for each in targets if each.known
        ]
        title = "Expected, not measured, with 90% intervals"
        note = "Intervals hold with a probability of 90%."
    if not rows:
        return None
    n_kinds = len({kind for _, kind, *_ in rows})
    n_targets = len(rows) // n_kinds
    step = 1 if n_targets == 1 else n_kinds
    lanes = [rows[i : i + step] for i in range(0, len(rows), step)][:MOST_TARGETS]
    scale = Scale(0.0, min(find_end(score.high for *_, score in rows), 1.0), 12, RIGHT)
    bottom = 4 + 40 * len(lanes)
    parts = [horizontal_axis(scale, bottom, bottom + 5, ""), line(12, bottom, RIGHT, bottom, "zero")]
    for i, lane in enumerate(lanes):
        target, kind, *_ = lane[0]
        says, y = [_write_error(score) for *_, score in lane], 30 + 40 * i
        more = f"; baseline {says[1].split(' ')[0]}" if len(says) > 1 else ""
        name = kind if n_targets == 1 else target
        parts.append(write_name(12, y - 13, name, LINE, after=f": {says[0]}{more}"))
        for (target, kind, _, score), words in reversed(list(zip(lane, says, strict=True))):
            look = "ink" if kind == "adapted" else "soft"
            parts.append(line(scale(score.low), y, scale(score.high), y, f"whisker {look}-line"))
            parts.append(dot(scale(score.error), y, 6, f"mark {look}", f"{kind}, {target}: {words}"))
    return Chart(
        "errors",
        title + (f"; {n_targets} targets in the table" if n_targets > MOST_TARGETS else ""),
        note,
        drawing("How many predictions are wrong", bottom + 24, *parts),
        ("target", "classifier", "rows", "error", "low", "high"),
        [(*row, *(f"{end:.2%}" for end in score.to_dict().values())) for *row, score in rows],
    )


def _write_error(score: Score) -> str:
    if score.n_rows:
        return f"{score.error:.1%} ({score.low:.1%} to {score.high:.1%})"
    return "{} ({})".format(*write_score(score))


def chart_shares(target: PredictedRows, place: int = 0, most: int = MOST_CLASSES) -> Chart:
    """Draw the class shares of a target, those of the `most` frequent classes."""
    predicted, known, measured = target.predicted_shares, target.known, target.labelled_shares
    columns, values = ["class", "predicted"], [list(predicted.values())]
    if known:
        columns += ["share", "low", "high"]
        values += [list(known.shares.values()), *map(list, zip(*known.intervals.values(), strict=True))]
    if measured:
        columns.append("of labelled rows")
        values.append(list(measured.values()))
    title, note = _say_shares(target)
    name = "given" if target.are_shares_given else "estimated"
    return Chart(
        f"shares-{place + 1}",
        title,
        f"{note} All {len(predicted)} classes are below." if len(predicted) > most else note,
        draw_shares(f"Class shares of {target.name}", predicted, known, name, most),
        columns,
        list(zip(predicted, *map(write_shares, values), strict=True)),
    )


def draw_shares(
    title: str,
    predicted: Mapping[str, float],
    known: Target | None,
    name: str = "estimated",
    most: int = MOST_CLASSES,
) -> Markup:
    """Draw for each class its share of the predictions as a bar and, called `name`, of the rows as a line.

    Of more than `most` classes the most frequent ones are drawn, in this order.
    """
    labels = list(predicted)
    if len(labels) > most:
        of = known.shares if known else predicted
        labels = sorted(labels, key=lambda label: -of[label])[:most]
    ends = [known.intervals[label] for label in labels] if known else []
    longest = max(map(len, labels))
    is_long = longest > SHORT_NAME
    left = 12.0 if is_long else 24 + 7.6 * longest
    right, edge = (218, 274) if known else (330, 396)
    height = 30 if known and len(labels) < 4 else 24
    highest = max([predicted[label] for label in labels] + [high for _, high in ends])
    scale = Scale(0.0, highest or 1.0, left, right)
    parts = [
        text(edge, 14, "predicted", "end", "tick"),
        *([text(398, 14, name, "end", "tick")] if known else []),
    ]
    shares = [predicted[label] for label in labels]
    written = write_shares(shares, int(min(shares) < 0.0995))
    estimates = write_shares([known.shares[label] for label in labels], 0) if known else []
    y = 22.0
    for i, label in enumerate(labels):
        for part in wrap_name(label) if is_long else ():
            parts.append(text(left, y + 14, part))
            y += NAME_LINE
        parts += draw_grid(scale, y, y + height, 2)
        middle, width = y + height / 2 + 5, max(scale(shares[i]) - left, 1.0)
        if not is_long:
            is_number = name_class(label) != label
            parts.append(text(left - 8, middle, label, "end", "code" if is_number else None))
        says = f"{label}: {written[i]} of the predictions"
        look = f"mark {colour_of(list(predicted).index(label), len(predicted))}"
        parts += [
            bar(left, y + 3, width, height - 19 if known else 16, look, says),
            text(edge, middle, written[i], "end"),
        ]
        if known:
            (low, high), row = ends[i], y + height - 10
            share, interval = write_estimate(known.shares[label], low, high)
            says = f"{label}: {name} {share} ({interval}) of the rows"
            between = "" if low == high else f" ({100 * low:.0f}–{high:.0%})"
            parts += [
                line(scale(low), row, scale(high), row, "whisker ink-line"),
                bar(scale(known.shares[label]) - 2, row - 5, 4, 10, "ink", says),
                text(398, middle, f"{estimates[i]}{between}", "end"),
            ]
        y += height
    return drawing(title, y + 22, *parts, write_ticks(scale, y, 2))


def _say_shares(target: PredictedRows) -> tuple[str, str]:
    """Return a title with the most frequent class, and a note on how sure that is.

    Labelled rows are believed before estimates; their intervals are of 95%. A class is clearly the most
    frequent if its interval lies above those of all others.
    """
    name, n = target.name, target.rows.n_labelled
    if target.known is None and not target.labelled_shares:
        note = "Shares among the predictions. Shares among the rows were not estimated."
        return f"Predicted class shares of {name}", note
    if target.are_shares_given:
        note = "Given, not estimated. Predictions are made for these shares."
        return f"Class shares of {name}, as given", note
    shares: Mapping[str, float] = target.labelled_shares or {}
    intervals: Mapping[str, list[float]] = {
        label: error_interval(share, n) for label, share in shares.items()
    }
    margin = 0.0
    if target.known and not shares:
        shares, intervals, margin = target.known.shares, target.known.intervals, 0.01
    label, share = max(shares.items(), key=lambda item: item[1])
    low, high = intervals[label]
    others = [other for other in shares if other != label]
    is_clear = all(share > shares[other] and low > intervals[other][1] + margin for other in others)
    if target.labelled_shares:
        has = f"{write_percent(share)} of its {count(n, 'labelled row')}"
        note = "Lines: estimates without these labels, with 90% intervals."
    else:
        has = "about {} of its rows ({})".format(*write_estimate(share, low, high))
        note = "Lines: estimates with 90% intervals."
    if is_clear:
        return f"{name_class(label)} is the most frequent class of {name}: {has}", note
    return f"No class of {name} is clearly the most frequent: {has} are {name_class(label)}", note


def chart_words(difference: Difference, classes: Sequence[str]) -> Chart:
    """Draw a bar for each term that moved predictions, in the colour of the class it moves them to."""
    words, share = difference.terms[:MOST_WORDS], difference.new_share
    is_named = len(classes) > N_COLOURS  # beside each term, on a line of its own
    left, height, y = 12.0 if is_named else 148.0, 24, 4.0
    scale = Scale(0.0, find_end(word.effect for word in words), left, RIGHT - 50)
    parts = []
    for word in words:
        toward = classes[word.code]
        seen = count(word.n_labelled, "labelled row") if word.n_labelled else "no labelled row"
        says = f"{word.term}: {percent(word.effect)}, toward {toward}; in {seen}"
        term, width = ("", "☆ ", "★ ")[word.rarity] + word.term, max(scale(word.effect) - left, 1.0)
        for part in wrap_name(f"{term} → {toward}") if is_named else ():
            y += NAME_LINE
            parts.append(text(left, y, part))
        if not is_named:
            parts.append(write_name(left - 8, y + 17, term, 16, "end"))
        parts += [
            line(left, y + 2, left, y + height, "zero"),
            bar(left, y + 4, width, height - 8, f"mark {colour_of(word.code, len(classes))}", says),
            text(left + width + 6, y + 17, f"{word.effect:.2%}", "start", "tick"),
        ]
        y += height
    parts.append(text(left, y + 20, "share of the whole effect", "start", "axis"))
    title = f"Words rare in labelled rows made {share:.0%} of the difference"
    return Chart(
        "words",
        title if share >= 0.05 else "Words frequent in labelled rows made the difference",
        "Terms that moved changed predictions most, beyond what they do in the baseline. ★ is in no labelled "
        "row, ☆ in few.",
        drawing("Terms by their part in the changed predictions", y + 30, *parts),
        ("term", "moves toward", "share of effect", "labelled rows", "source rows", "target rows"),
        [
            (
                word.term,
                classes[word.code],
                f"{word.effect:.2%}",
                word.n_labelled,
                f"{word.source:.2%}",
                f"{word.target:.2%}",
            )
            for word in words
        ],
    )


def draw_idea(idea: Idea, classes: Sequence[str]) -> Markup:
    """Draw how a new word gets its weight: a labelled word, the words it goes with, the new word."""
    colour, name = colour_of(idea.code, len(classes)), classes[idea.code]
    stroke = "soft-line" if colour == "soft" else f"t{colour[1:]}"
    top, step = 56, 66
    middle = top + step * (len(idea.between) - 1) / 2
    largest = max(weight for both in idea.links for weight in both) or 1
    labelled, new = idea.labelled, idea.new
    parts = [
        text(60, 18, "labelled", "middle", "axis"),
        text(200, 18, "goes with", "middle", "axis"),
        text(336, 18, "new", "middle", "axis"),
    ]
    for i, (word, both) in enumerate(zip(idea.between, idea.links, strict=True)):
        y = top + step * i
        for end, weight, x, far in zip((labelled, new), both, (116, 284), (142, 258), strict=True):
            says = f"{end.term} goes with {word.term}: weight {weight:.3g} in the first layer"
            curve = f"M{x} {middle}C{(x + far) / 2} {middle} {(x + far) / 2} {y} {far} {y}"
            width = round(1.5 + 5 * max(weight, 0) / largest, 1)
            link = f"link {stroke}"
            parts.append(tag("path", tag("title", says), fill="none", d=curve, stroke_width=width, cls=link))
        parts += _box(200, y, 116, word.term, count(word.n_labelled, "labelled row"), "plain")
    parts += _box(62, middle, 108, labelled.term, count(labelled.n_labelled, "labelled row"), colour)
    parts += _box(338, middle, 108, new.term, "★ no labelled row", colour)
    bottom = top + step * (len(idea.between) - 1) + 62
    for part in wrap_name(f"both speak for {name}"):
        parts.append(text(200, bottom, part, "middle", "tick"))
        bottom += NAME_LINE
    names = ", ".join(word.term for word in idea.between)
    title = f"{labelled.term}, learnt as {name}, goes with {names}; so does {new.term}"
    return drawing(title, bottom, *parts)


def _box(x: float, y: float, width: float, name: str, below: str, cls: str) -> list[Markup]:
    """Draw a word in a box, with a line of smaller text under it."""
    looks = " ".join((["on-box"] if cls != "plain" else []) + (["tight"] if len(name) > 12 else []))
    return [
        tag("rect", x=x - width / 2, y=y - 16, width=width, height=32, rx=7, cls=f"box {cls}"),
        write_name(x, y + 5, name, 15, "middle", looks or None),
        text(x, y + 31, below, "middle", "tick"),
    ]


@dataclass(frozen=True)
class CoveragePoint:
    """The error among a share of the predictions, the surest."""

    coverage: float
    threshold: float  # probability from which these predictions are kept
    expected: float
    measured: Score | None

    @property
    def error(self) -> float:
        """The measured error, else the expected one."""
        return self.measured.error if self.measured else self.expected


def chart_coverage(points: Sequence[CoveragePoint]) -> Chart:
    """Draw the error among the surest predictions against how many of them are kept."""
    measured = [(point.coverage, point.measured) for point in points if point.measured]
    highest = max([point.expected for point in points] + [score.high for _, score in measured])
    across, up = Scale(0.0, 1.0, 56, RIGHT), Scale(0.0, max(1.1 * highest, 0.02), 240, 56)

    def trace(curve: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{across(coverage):.1f},{up(error):.1f}" for coverage, error in curve)

    parts = [
        vertical_axis(up, 56, RIGHT, "share of those kept that are wrong"),
        horizontal_axis(across, 240, 240, "predictions kept, the surest first"),
        line(12, 16, 36, 16, "curve dashed soft-line"),
        text(42, 20, "expected"),
    ]
    if measured:
        high = [(coverage, score.high) for coverage, score in measured]
        low = [(coverage, score.low) for coverage, score in measured]
        error = [(coverage, score.error) for coverage, score in measured]
        parts += [
            tag("polygon", points=trace([*high, *reversed(low)]), cls="band"),
            tag("polyline", points=trace(error), cls="curve ink-line"),
            line(140, 16, 164, 16, "curve ink-line"),
            text(170, 20, "measured, 95% interval"),
        ]
    expected = [(point.coverage, point.expected) for point in points]
    parts.append(tag("polyline", points=trace(expected), cls="curve dashed soft-line"))
    for point in points:
        how = "" if point.measured else ", expected"
        says = f"the surest {percent(point.coverage)}: {point.error:.1%} wrong{how}"
        parts.append(dot(across(point.coverage), up(point.error), 3.5, "mark ink", says))
    point = next((point for point in points if point.coverage >= 0.8 - 1e-9), points[-1])
    how = "are" if point.measured else "are expected to be"
    return Chart(
        "coverage",
        f"Of the surest 80%, {write_percent(point.error)} {how} wrong",
        f"The fewer are kept, the fewer are wrong. --min-confidence {point.threshold:.2f} keeps these and "
        "leaves the other predictions empty.",
        drawing("Error of the surest predictions, by how many are kept", 286, *parts),
        ("kept", "probability from", "expected error", "measured", "low", "high"),
        [
            (
                f"{point.coverage:.0%}",
                f"{point.threshold:.3f}",
                f"{point.expected:.1%}",
                *(
                    [f"{end:.1%}" for end in point.measured.to_dict().values()]
                    if point.measured
                    else ["", "", ""]
                ),
            )
            for point in points
        ],
    )
