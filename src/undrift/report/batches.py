"""The report of new rows that a saved model predicted: what is known of every batch, beside the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..results import Score, Target, list_shares
from .adaptation import record_run, tell_readings
from .charts import draw_shares
from .page import Report
from .verdict import say_expected, write_percent, write_score


@dataclass(frozen=True)
class Part:
    """Rows that were aligned together: a batch, or its rows with one value of a column."""

    name: str
    known: Target
    reason: str | None  # why they are predicted as fitted; then nothing is known of them
    is_foreign: bool  # not like the rows of the fit; then no error is stated

    @property
    def error(self) -> Score | None:
        """The expected error, as far as it can be stated."""
        return None if self.is_foreign or self.reason is not None else self.known.expected

    def to_dict(self) -> dict[str, object]:
        """Return what may be said of the rows, ready for JSON."""
        is_aligned = self.reason is None
        return {
            "name": self.name,
            "reason": self.reason,
            "shares": self.known.shares if is_aligned else {},
            "intervals": self.known.intervals if is_aligned else {},
            "error": self.error,
            "by_class": self.known.by_class if self.error else {},
            "readings": tell_readings(self.name, self.known.readings if is_aligned else []),
        }


@dataclass(frozen=True)
class Batch:
    """What was read and predicted of a batch, and what a check said."""

    name: str
    n_rows: int
    n_bad: int
    n_unknown: int  # without a known word
    n_doubtful: int | None  # None without --min-confidence
    predicted_shares: Mapping[str, float]
    differences: Sequence[str] | None  # from the rows of the fit; None if nothing was checked
    parts: Sequence[Part]


def report_batches(
    title: str, fit_name: str, fit: Target, batches: Sequence[Batch], command: str | None
) -> Report:
    """Return the report of finished batches, beside what is known of the fit's target."""
    parts = [part for batch in batches for part in batch.parts]
    data = {
        "kind": "predict",
        "title": title,
        "basis": "expected" if any(part.error for part in parts) else "no error",
        "headline": _say_batches(fit_name, batches),
        "fit_name": fit_name,
        "fit": fit,
        "batches": batches,
        "reproduce": record_run(command),
    }
    charts = {
        "batches": [_sum_up(batch, part) for batch in batches for part in batch.parts],
        "shares": [_draw_batch(batch) for batch in batches],
    }
    return Report(data, charts)


def _say_batches(fit_name: str, batches: Sequence[Batch]) -> str:
    """Say how many predictions are wrong, as far as that can be said."""
    parts = [part for batch in batches for part in batch.parts]
    errors = sorted((part.error for part in parts if part.error), key=lambda score: score.error)
    n_foreign = sum(bool(batch.differences) for batch in batches)
    if len(batches) == 1 and n_foreign:
        return f"These rows are not like those of {fit_name}: how many are wrong is not known."
    if len(parts) == 1:
        return say_expected(errors[0]) if errors else "Predicted as fitted: the error is not estimated."
    of = f"{len(parts)} {'files' if len(batches) > 1 else 'groups'}"
    said = f"{of}: no error is stated"
    if errors:
        ends = dict.fromkeys(write_percent(score.error) for score in (errors[0], errors[-1]))
        known = f"{of}:" if len(errors) == len(parts) else f"In {len(errors)} of {of}"
        said = f"{known} about {' to '.join(ends)} of the predictions are expected to be wrong"
    verb = "is" if n_foreign == 1 else "are"
    return f"{said}; {n_foreign} {verb} not like {fit_name}." if n_foreign else f"{said}."


def _sum_up(batch: Batch, part: Part) -> tuple[object, ...]:
    """Return the row of a file or, of groups of rows, without their number."""
    is_whole = len(batch.parts) == 1
    error = "unknown: not like the fit" if part.is_foreign else "unknown: as fitted"
    if part.error:
        error = "{} ({})".format(*write_score(part.error))
    shares = "–"
    if part.reason is None:
        shares = list_shares(part.known.shares, part.known.intervals)
    elif is_whole:
        shares = f"predicted: {list_shares(batch.predicted_shares)}"
    return (part.name, *([batch.n_rows] if is_whole else []), error, shares)


def _draw_batch(batch: Batch) -> str:
    known = batch.parts[0].known if len(batch.parts) == 1 and batch.parts[0].reason is None else None
    return draw_shares(f"Class shares of {batch.name}", batch.predicted_shares, known)
