"""The report of new rows that a saved model predicted: what is known of every batch, beside the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..method import is_open
from ..results import Score, Target, list_shares, write_share
from .charts import MOST_CLASSES, ShareRow, draw_shares
from .content import Run, TargetReadings, say_expected, tell_readings, write_percent, write_score

UNKNOWN = "–"


@dataclass(frozen=True)
class Part:
    """Rows that were aligned together: a batch, or its rows with one value of a column."""

    name: str
    reason: str | None  # why it is predicted as fitted; then the rest is empty
    shares: Mapping[str, float]
    intervals: Mapping[str, Sequence[float]]
    error: Score | None  # None too where the rows are not like those of the fit
    by_class: Mapping[str, Mapping[str, object]]  # likewise
    readings: TargetReadings

    @classmethod
    def of(cls, name: str, known: Target, reason: str | None, *, is_foreign: bool) -> Part:
        """Return what may be said of rows."""
        if reason is not None:
            return cls(name, reason, {}, {}, None, {}, TargetReadings(name, [], differ=False))
        told = replace(tell_readings(name, known.readings), differ=is_open(known.readings))
        error, by_class = (None, {}) if is_foreign else (known.expected, known.by_class)
        return cls(name, None, known.shares, known.intervals, error, by_class, told)


@dataclass(frozen=True)
class Batch:
    """What was read and predicted of a batch, and what a check found."""

    name: str
    n_rows: int
    n_bad: int
    n_unknown: int  # without a known word
    n_doubtful: int | None  # None without --min-confidence
    predicted_shares: Mapping[str, float]
    differences: Sequence[str] | None  # from the rows of the fit; None if nothing was checked
    parts: Sequence[Part]

    @property
    def is_foreign(self) -> bool:
        """Tell whether the rows are not like those of the fit."""
        return bool(self.differences)


@dataclass(frozen=True)
class PredictPage:
    """Everything that the report of `predict` shows."""

    title: str
    fit_name: str
    fit: Target
    batches: Sequence[Batch]
    reproduce: Run
    kind: str = "predict"

    @property
    def basis(self) -> str:
        """What the headline rests on."""
        return "expected" if any(part.error for batch in self.batches for part in batch.parts) else "no error"

    @property
    def headline(self) -> str:
        """Say how many predictions are wrong, as far as that can be said."""
        parts = [part for batch in self.batches for part in batch.parts]
        errors = sorted((part.error for part in parts if part.error), key=lambda score: score.error)
        n_foreign = sum(batch.is_foreign for batch in self.batches)
        if len(self.batches) == 1 and n_foreign:
            return f"These rows are not like those of {self.fit_name}: how many are wrong is not known."
        if len(parts) == 1:
            return say_expected(errors[0]) if errors else "Predicted as fitted: the error is not estimated."
        of = f"{len(parts)} {'files' if len(self.batches) > 1 else 'groups'}"
        said = f"{of}: no error is stated"
        if errors:
            ends = dict.fromkeys(write_percent(score.error) for score in (errors[0], errors[-1]))
            known = f"{of}:" if len(errors) == len(parts) else f"In {len(errors)} of {of}"
            said = f"{known} about {' to '.join(ends)} of the predictions are expected to be wrong"
        verb = "is" if n_foreign == 1 else "are"
        foreign = f"; {n_foreign} {verb} not like {self.fit_name}" if n_foreign else ""
        return f"{said}{foreign}."


@dataclass(frozen=True)
class PredictCharts:
    """The drawings and tables of a report on batches."""

    batches: Sequence[tuple[object, ...]]  # a row for each part
    shares: Sequence[str]  # a drawing for each batch
    classes: Sequence[Sequence[Sequence[tuple[object, ...]]]]  # a table for each part of each batch


def chart_batches(page: PredictPage) -> PredictCharts:
    """Draw the class shares of every batch, and fill the tables."""
    return PredictCharts(
        [_sum_up(batch, part) for batch in page.batches for part in batch.parts],
        [_draw_batch(batch) for batch in page.batches],
        [[_list_classes(page, batch, part) for part in batch.parts] for batch in page.batches],
    )


def _sum_up(batch: Batch, part: Part) -> tuple[object, ...]:
    """Return the row of a file or, of groups of rows, without their number."""
    is_whole = len(batch.parts) == 1
    error = "unknown: not like the fit" if batch.is_foreign else "unknown: as fitted"
    if part.error:
        error = "{} ({})".format(*write_score(part.error))
    shares = UNKNOWN
    if part.shares:
        shares = list_shares(part.shares, part.intervals)
    elif is_whole:
        shares = f"predicted: {list_shares(batch.predicted_shares)}"
    return (part.name, *([batch.n_rows] if is_whole else []), error, shares)


def _draw_batch(batch: Batch) -> str:
    part = batch.parts[0] if len(batch.parts) == 1 and batch.parts[0].shares else None
    rows = [
        ShareRow(name, code, share, *((part.shares[name], *part.intervals[name]) if part else ()))
        for code, (name, share) in enumerate(batch.predicted_shares.items())
    ]
    shown = sorted(rows, key=lambda row: -(row.predicted if row.share is None else row.share))[:MOST_CLASSES]
    shown.sort(key=lambda row: row.code)
    return draw_shares(f"Class shares of {batch.name}", shown, "estimated" if part else None, len(rows))


def _list_classes(page: PredictPage, batch: Batch, part: Part) -> list[tuple[object, ...]]:
    is_whole = len(batch.parts) == 1
    rows: list[tuple[object, ...]] = []
    for name, predicted in batch.predicted_shares.items():
        rates = part.by_class.get(name, {})
        rows.append(
            (
                name,
                write_percent(predicted) if is_whole else UNKNOWN,
                write_share(part.shares[name], part.intervals[name]) if part.shares else UNKNOWN,
                write_share(page.fit.shares[name], page.fit.intervals[name]),
                *(rates.get(kind) for kind in ("recall", "precision") if part.by_class),
            )
        )
    return rows
