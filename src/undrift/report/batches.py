"""The report of new rows that a saved model predicted: what is known of every batch, beside the fit."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import Batch, Target, list_shares
from .adaptation import record_run, tell_readings
from .charts import draw_shares
from .page import Report
from .verdict import say_expected, write_percent, write_score


def report_batches(
    title: str, fit_name: str, fit: Target, batches: Sequence[Batch], command: str | None
) -> Report:
    """Return the report of finished batches, beside what is known of the fit's target."""
    data = {
        "kind": "predict",
        "title": title,
        "basis": "expected" if any(batch.error for batch in batches) else "no error",
        "headline": _say_batches(fit_name, batches),
        "fit_name": fit_name,
        "fit": fit,
        "batches": [_tell_batch(batch) for batch in batches],
        "reproduce": record_run(command),
    }
    charts = {
        "batches": [_sum_up(batch) for batch in batches],
        "shares": [
            draw_shares(
                f"Class shares of {batch.name}",
                batch.counts.predicted_shares,
                batch.known if batch.reason is None else None,
            )
            for batch in batches
        ],
    }
    return Report(data, charts)


def _tell_batch(batch: Batch) -> dict[str, object]:
    """Return what may be said of the rows, ready for JSON: nothing is known of rows predicted as fitted."""
    is_aligned = batch.reason is None
    return {
        "name": batch.name,
        "n_rows": batch.counts.rows,
        "n_bad": batch.counts.bad_rows,
        "n_unknown": batch.counts.unknown_rows,
        "n_doubtful": batch.counts.n_doubtful,
        "predicted_shares": batch.counts.predicted_shares,
        "differences": batch.check.reasons if batch.check else None,
        "reason": batch.reason,
        "shares": batch.known.shares if is_aligned else {},
        "intervals": batch.known.intervals if is_aligned else {},
        "error": batch.error,
        "by_class": batch.known.by_class if batch.error else {},
        "readings": tell_readings(batch.name, batch.known.readings if is_aligned else []),
    }


def _say_batches(fit_name: str, batches: Sequence[Batch]) -> str:
    """Say how many predictions are wrong, as far as that can be said."""
    errors = sorted((batch.error for batch in batches if batch.error), key=lambda score: score.error)
    n_foreign = sum(batch.is_foreign for batch in batches)
    if len(batches) == 1:
        if n_foreign:
            return f"These rows are not like those of {fit_name}: how many are wrong is not known."
        return say_expected(errors[0]) if errors else "Predicted as fitted: the error is not estimated."
    of = f"{len(batches)} files"
    said = f"{of}: no error is stated"
    if errors:
        ends = dict.fromkeys(write_percent(score.error) for score in (errors[0], errors[-1]))
        known = f"{of}:" if len(errors) == len(batches) else f"In {len(errors)} of {of}"
        said = f"{known} about {' to '.join(ends)} of the predictions are expected to be wrong"
    verb = "is" if n_foreign == 1 else "are"
    return f"{said}; {n_foreign} {verb} not like {fit_name}." if n_foreign else f"{said}."


def _sum_up(batch: Batch) -> tuple[object, ...]:
    """Return the row of a file: its name, number of rows, expected error, and class shares."""
    error = "unknown: not like the fit" if batch.is_foreign else "unknown: as fitted"
    if batch.error:
        error = "{} ({})".format(*write_score(batch.error))
    shares = list_shares(batch.known.shares, batch.known.intervals)
    if batch.reason is not None:
        shares = f"predicted: {list_shares(batch.counts.predicted_shares)}"
    return batch.name, batch.counts.rows, error, shares
