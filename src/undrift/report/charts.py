"""The charts and tables of an adaptation: a title with the finding, a drawing, and the table behind it.

Each chart fits a telephone, and two stand side by side on a desk. A class has one colour on the whole page;
of many classes none has one, and each is named where it is drawn. Black is the adapted classifier; grey is
the baseline, and an expected error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..errors import count, write_shares
from ..results import Score, error_interval
from .content import (
    AdaptationPage,
    CoveragePoint,
    TargetCard,
    name_class,
    write_estimate,
    write_percent,
    write_score,
)
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
    rows: Sequence[tuple[object, ...]]


@dataclass(frozen=True)
class Charts:
    """Charts and tables of a report; of those that it has nothing for, None or empty."""

    errors: Chart | None
    shares: Sequence[Chart]  # of every target
    all_shares: Sequence[Chart]  # with all classes, where `shares` has not
    has_colours: bool
    words: Chart | None
    idea: Markup | None
    coverage: Chart
    files: Sequence[tuple[object, ...]]
    domains: Sequence[tuple[object, ...]]


def adaptation_charts(page: AdaptationPage) -> Charts:
    """Draw all charts of an adaptation's report."""
    n_classes = len(page.classes)
    has_many = n_classes > MOST_CLASSES
    return Charts(
        errors=chart_errors(page),
        shares=[chart_shares(card, i) for i, card in enumerate(page.targets)],
        all_shares=[chart_shares(card, i, n_classes) for i, card in enumerate(page.targets) if has_many],
        has_colours=n_classes <= N_COLOURS,
        words=chart_words(page.difference, n_classes) if page.difference.terms else None,
        idea=draw_idea(page.idea) if page.idea else None,
        coverage=chart_coverage(page.coverage),
        files=[(file.file, file.bytes, file.sha256) for file in page.reproduce.files],
        domains=[
            (
                card.name,
                card.role,
                card.n_rows,
                card.n_labelled,
                "" if card.n_terms is None else card.n_terms,
                "" if card.unseen_share is None else f"{card.unseen_share:.1%}",
            )
            for card in page.domains
        ],
    )


def colour_of(code: int, n_classes: int) -> str:
    """Return the colour class of a class of labels; with many classes all have the same."""
    return f"s{code}" if n_classes <= N_COLOURS else "soft"


def chart_errors(page: AdaptationPage) -> Chart | None:
    """Draw how many predictions are wrong, measured or expected, each as a mark with its interval.

    One target has a line for each classifier; of several, each has one line.
    """
    verdict = page.verdict
    rows: list[tuple[str, str, int, Score]]  # target, classifier, rows, error
    if verdict.whole:
        rows = [
            (each.name, kind, each.errors.n_rows, score)
            for each in verdict.scored
            for kind, score in (("adapted", each.errors.after), ("baseline", each.errors.before))
        ]
        how = ", each predicted without its label" if verdict.is_cross_fitted else ""
        n_rows = count(verdict.whole.errors.n_rows, "labelled target row")
        title, note = f"Measured on {n_rows}{how}, with 95% intervals", "Intervals are Wilson's, 95%."
    else:
        rows = [
            (card.name, "expected", card.n_rows, card.known.expected) for card in page.targets if card.known
        ]
        title = "Expected, not measured, with 90% intervals"
        note = "Intervals hold with a probability of 90%."
    if not rows:
        return None
    n_kinds = len({kind for _, kind, *_ in rows})
    n_targets = len(rows) // n_kinds
    lanes = [rows[i : i + n_kinds] for i in range(0, len(rows), n_kinds)][:MOST_TARGETS]
    if n_targets == 1:
        lanes = [[row] for row in rows]
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
        [(*row[:3], *(f"{end:.2%}" for end in (row[3].error, row[3].low, row[3].high))) for row in rows],
    )


def _write_error(score: Score) -> str:
    if score.n_rows:
        return f"{score.error:.1%} ({score.low:.1%} to {score.high:.1%})"
    return "{} ({})".format(*write_score(score))


@dataclass(frozen=True)
class ShareRow:
    """A class, its share of the predictions, and that of the rows with an interval; None if not known."""

    label: str
    code: int
    predicted: float
    share: float | None = None
    low: float = 0.0
    high: float = 0.0


def chart_shares(card: TargetCard, place: int = 0, most: int = MOST_CLASSES) -> Chart:
    """Draw the class shares of a target, those of the `most` frequent classes."""
    known, measured = card.known, card.labelled_shares
    rows = [
        ShareRow(label, code, predicted, *((known.shares[label], *known.intervals[label]) if known else ()))
        for code, (label, predicted) in enumerate(card.predicted_shares.items())
    ]
    columns, values = ["class", "predicted"], [[row.predicted for row in rows]]
    if known:
        columns += ["share", "low", "high"]
        values += [list(known.shares.values()), *map(list, zip(*known.intervals.values(), strict=True))]
    if measured:
        columns.append("of labelled rows")
        values.append([measured.get(row.label, 0.0) for row in rows])
    is_cut = len(rows) > most
    shown = sorted(rows, key=lambda row: -(row.predicted if row.share is None else row.share))[:most]
    title, note = _say_shares(card)
    return Chart(
        f"shares-{place + 1}",
        title,
        f"{note} All {len(rows)} classes are below." if is_cut else note,
        draw_shares(
            f"Class shares of {card.name}",
            shown if is_cut else rows,
            ("given" if card.are_shares_given else "estimated") if known else None,
            len(rows),
        ),
        columns,
        list(zip(card.predicted_shares, *map(write_shares, values), strict=True)),
    )


def draw_shares(title: str, rows: Sequence[ShareRow], name: str | None, n_classes: int) -> Markup:
    """Draw for each class its share of the predictions as a bar and, called `name`, of the rows as a line."""
    longest = max(len(row.label) for row in rows)
    is_long = longest > SHORT_NAME
    lines = [wrap_name(row.label) if is_long else [] for row in rows]
    left = 12.0 if is_long else 24 + 7.6 * longest
    right, edge = 218 if name else 330, 274 if name else 396
    height, top = 30 if name and len(rows) < 4 else 24, 22
    highest = max(value for row in rows for value in (row.predicted, row.high))
    scale = Scale(0.0, highest or 1.0, left, right)
    parts = [
        text(edge, 14, "predicted", "end", "tick"),
        *([text(398, 14, name, "end", "tick")] if name else []),
    ]
    shares = [row.predicted for row in rows]
    written = (
        write_shares(shares, int(min(shares) < 0.0995)),
        write_shares((row.share or 0.0 for row in rows), 0),
    )
    y: float = top
    for row, above, predicted, estimated in zip(rows, lines, *written, strict=True):
        is_number = name_class(row.label) != row.label
        parts += [text(left, y + 14 + NAME_LINE * k, part) for k, part in enumerate(above)]
        y += NAME_LINE * len(above)
        parts += list(draw_grid(scale, y, y + height, 2))
        middle, width = y + height / 2 + 5, max(scale(row.predicted) - left, 1.0)
        says = f"{row.label}: {predicted} of the predictions"
        if not above:
            parts.append(text(left - 8, middle, row.label, "end", "code" if is_number else None))
        look = f"mark {colour_of(row.code, n_classes)}"
        parts += [
            bar(left, y + 3, width, height - 19 if name else 16, look, says),
            text(edge, middle, predicted, "end"),
        ]
        if row.share is not None:
            share, ends = write_estimate(row.share, row.low, row.high)
            says = f"{row.label}: {name} {share} ({ends}) of the rows"
            between = "" if row.low == row.high else f" ({100 * row.low:.0f}–{row.high:.0%})"
            low = y + height - 10
            parts += [
                line(scale(row.low), low, scale(row.high), low, "whisker ink-line"),
                bar(scale(row.share) - 2, low - 5, 4, 10, "ink", says),
                text(398, middle, f"{estimated}{between}", "end"),
            ]
        y += height
    return drawing(title, y + 22, *parts, write_ticks(scale, y, 2))


@dataclass(frozen=True)
class MostFrequent:
    """The most frequent class of a target, its share with an interval, and whether it clearly is."""

    label: str
    share: float
    low: float
    high: float
    is_clear: bool


def find_most_frequent(card: TargetCard) -> MostFrequent | None:
    """Return the most frequent class of a target; labelled rows are believed before estimates.

    Their intervals are of 95%.
    """
    shares, margin = card.labelled_shares, 0.0
    intervals = {label: error_interval(share, card.n_labelled) for label, share in (shares or {}).items()}
    if not shares:
        if card.known is None:
            return None
        shares, intervals, margin = card.known.shares, dict(card.known.intervals), 0.01
    label, share = max(shares.items(), key=lambda item: item[1])
    low, high = intervals[label]
    others = [(shares[other], intervals[other][1]) for other in shares if other != label]
    is_clear = all(share > rest and low > end + margin for rest, end in others)
    return MostFrequent(label, share, low, high, is_clear)


def _say_shares(card: TargetCard) -> tuple[str, str]:
    """Return a title with the most frequent class, and a note on how sure that is."""
    top, name = find_most_frequent(card), card.name
    if top is None:
        note = "Shares among the predictions. Shares among the rows were not estimated."
        return f"Predicted class shares of {name}", note
    if card.are_shares_given:
        note = "Given, not estimated. Predictions are made for these shares."
        return f"Class shares of {name}, as given", note
    share, interval = write_estimate(top.share, top.low, top.high)
    has, note = f"about {share} of its rows ({interval})", "Lines: estimates with 90% intervals."
    if card.labelled_shares:
        has = f"{write_percent(top.share)} of its {count(card.n_labelled, 'labelled row')}"
        note = "Lines: estimates without these labels, with 90% intervals."
    label = name_class(top.label)
    if top.is_clear:
        return f"{label} is the most frequent class of {name}: {has}", note
    return f"No class of {name} is clearly the most frequent: {has} are {label}", note


def chart_words(difference: Difference, n_classes: int) -> Chart:
    """Draw a bar for each term that moved predictions, in the colour of the class it moves them to."""
    rows, share = difference.terms[:14], difference.new_share
    is_named = n_classes > N_COLOURS  # beside each term, on a line of its own
    left, height, top = 12.0 if is_named else 148.0, 24, 4
    scale = Scale(0.0, find_end(row.push for row in rows), left, RIGHT - 50)
    parts, y = [], float(top)
    for row in rows:
        seen = count(row.n_labelled, "labelled row") if row.n_labelled else "no labelled row"
        says = f"{row.term}: {percent(row.push)}, toward {row.class_}; in {seen}"
        term, width = ("", "☆ ", "★ ")[row.rarity] + row.term, max(scale(row.push) - left, 1.0)
        for part in wrap_name(f"{term} → {row.class_}") if is_named else ():
            y += NAME_LINE
            parts.append(text(left, y, part))
        if not is_named:
            parts.append(write_name(left - 8, y + 17, term, 16, "end"))
        parts += [
            line(left, y + 2, left, y + height, "zero"),
            bar(left, y + 4, width, height - 8, f"mark {colour_of(row.code, n_classes)}", says),
            text(left + width + 6, y + 17, f"{row.push:.2%}", "start", "tick"),
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
                r.term,
                r.class_,
                f"{r.push:.2%}",
                r.n_labelled,
                f"{r.source:.2%}",
                f"{r.target:.2%}",
            )
            for r in rows
        ],
    )


def draw_idea(idea: Idea) -> Markup:
    """Draw how a new word gets its weight: a labelled word, the words it goes with, the new word."""
    colour, between = colour_of(idea.code, idea.n_classes), idea.between
    stroke = "soft-line" if colour == "soft" else f"t{colour[1:]}"
    top, step = 56, 66
    middle = top + step * (len(between) - 1) / 2
    largest = max(weight for row in between for weight in (row.from_labelled, row.from_new)) or 1
    labelled, new = idea.labelled, idea.new
    parts = [
        text(60, 18, "labelled", "middle", "axis"),
        text(200, 18, "goes with", "middle", "axis"),
        text(336, 18, "new", "middle", "axis"),
    ]
    for i, row in enumerate(between):
        y = top + step * i
        for x, far, weight, word in (
            (116, 142, row.from_labelled, labelled.term),
            (284, 258, row.from_new, new.term),
        ):
            says = f"{word} goes with {row.term}: weight {weight:.3g} in the first layer"
            curve = f"M{x} {middle}C{(x + far) / 2} {middle} {(x + far) / 2} {y} {far} {y}"
            width = round(1.5 + 5 * max(weight, 0) / largest, 1)
            link = f"link {stroke}"
            parts.append(tag("path", tag("title", says), fill="none", d=curve, stroke_width=width, cls=link))
        parts += _box(200, y, 116, row.term, count(row.n_labelled, "labelled row"), "plain")
    parts += _box(62, middle, 108, labelled.term, count(labelled.n_labelled, "labelled row"), colour)
    parts += _box(338, middle, 108, new.term, "★ no labelled row", colour)
    bottom = top + step * (len(between) - 1) + 62
    for part in wrap_name(f"both speak for {idea.class_}"):
        parts.append(text(200, bottom, part, "middle", "tick"))
        bottom += NAME_LINE
    names = ", ".join(row.term for row in between)
    title = f"{labelled.term}, learnt as {idea.class_}, goes with {names}; so does {new.term}"
    return drawing(title, bottom, *parts)


def _box(x: float, y: float, width: float, name: str, below: str, cls: str) -> list[Markup]:
    """Draw a word in a box, with a line of smaller text under it."""
    looks = " ".join((["on-box"] if cls != "plain" else []) + (["tight"] if len(name) > 12 else []))
    return [
        tag("rect", x=x - width / 2, y=y - 16, width=width, height=32, rx=7, cls=f"box {cls}"),
        write_name(x, y + 5, name, 15, "middle", looks or None),
        text(x, y + 31, below, "middle", "tick"),
    ]


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
        share, how = _known_error(point), "" if point.measured else ", expected"
        says = f"the surest {percent(point.coverage)}: {share:.1%} wrong{how}"
        parts.append(dot(across(point.coverage), up(share), 3.5, "mark ink", says))
    point = next((point for point in points if point.coverage >= 0.8 - 1e-9), points[-1])
    how = "are" if point.measured else "are expected to be"
    return Chart(
        "coverage",
        f"Of the surest 80%, {write_percent(_known_error(point))} {how} wrong",
        f"The fewer are kept, the fewer are wrong. --min-confidence {point.threshold:.2f} keeps these and "
        "leaves the other predictions empty.",
        drawing("Error of the surest predictions, by how many are kept", 286, *parts),
        ("kept", "probability from", "expected error", "measured", "low", "high"),
        [
            (
                f"{point.coverage:.0%}",
                f"{point.threshold:.3f}",
                f"{point.expected:.1%}",
                *(f"{end:.1%}" for end in (score.error, score.low, score.high)),
            )
            if (score := point.measured)
            else (f"{point.coverage:.0%}", f"{point.threshold:.3f}", f"{point.expected:.1%}", "", "", "")
            for point in points
        ],
    )


def _known_error(point: CoveragePoint) -> float:
    """Return the measured error, else the expected one."""
    return point.measured.error if point.measured else point.expected
