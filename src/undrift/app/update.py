"""Update a saved model: by labels of target rows, or by a new batch without labels."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from ..errors import count, warn
from ..method import N_QUESTIONS, MSDAClassifier
from ..persist import save_model
from ..results import Comparison, Score, Target, list_shares, name_winner
from ..text import TextAdapter
from .domains import open_rows, read_domains, refuse_overwriting
from .drift import describe_target
from .job import ShowStage, Summary, UpdateJob, ignore_stage
from .labels import (
    ESTIMATE,
    FEW_MEASURED,
    PREDICTIONS,
    GivenLabel,
    TrainingLabels,
    cross_fit,
    key_rows,
    learn_labels,
    read_labels,
)
from .models import load_updatable, open_model, suggest
from .tables import TableError
from .terminal import describe_file

FEW_KNOWN = 0.5  # share of rows with a known term below which a batch is not like the target


def run_update(
    job: UpdateJob, show_stage: ShowStage = ignore_stage, *, measures_error: bool = True
) -> Summary:
    """Update a model by labels, or by a new batch, and save it.

    Measuring the error takes five times as long as learning the labels.
    """
    adapter, target, text = open_model(job, job.rows, load_updatable)
    refuse_overwriting(job.out, [job.rows])
    if job.labels is None:
        taken = _take_batch(adapter, target, text, job, show_stage)
    else:
        taken = _take_labels(adapter, target, text, job, show_stage, measures_error=measures_error)
    show_stage("saving the model", None)
    save_model(adapter, job.out, updatable=True)
    known = Target.of(adapter.classifier_, target)
    facts = {"model": str(job.model), "out": str(job.out), "bytes": job.out.stat().st_size}
    winner = name_winner(known.readings) if job.labels else ""
    lines = [
        *taken.lines,
        f"Class shares: {list_shares(known.shares, known.intervals)}.",
        *filter(None, [winner]),
        f"Wrote {describe_file(str(job.out))}.",
        "Next: predict with it:",
        suggest("predict", job, job.out, "NEW.csv", "--out", "predicted.csv"),
    ]
    return Summary({**facts, **taken.facts, **known.to_dict()}, lines)


def _take_labels(
    adapter: TextAdapter,
    target: str,
    text: Sequence[str],
    job: UpdateJob,
    show_stage: ShowStage,
    *,
    measures_error: bool,
) -> Summary:
    """Learn the labels in a file, and measure the error on them by cross-fitting."""
    assert job.labels is not None
    show_stage(f"reading {job.labels.name}", None)
    classifier, merges = adapter.classifier_, adapter.facts_.get("merges")
    given = read_labels(
        open_rows(job.labels, job.reading), text, [job.label], adapter.classes_.tolist(), merges
    )
    X = adapter.vectorizer_.transform([label.text for label in given.values()])
    if not X.nnz:
        raise TableError(f"{job.labels}: no labelled text has a word that the model knows")
    labels = TrainingLabels.of_target(target, X, given)
    classifier.recall()  # so that its copies read no row again
    before = classifier
    if len(classifier.list_labelled(target)[1]):  # it may have learnt these labels before
        before = copy.copy(classifier).update(X, np.full(X.shape[0], None), target=target)
    expected = Target.of(before, target).expected  # `before` may be the classifier that learns below
    show_stage("measuring the error", None)
    errors = _measure_error(before, labels, list(given.values())) if measures_error else None
    show_stage("learning the labels", None)
    rows = classifier.list_rows(target)
    known = set(key_rows(rows, rows.dtype))
    n_unmatched = sum(key not in known for key in key_rows(X, rows.dtype))
    old = classifier.predict(rows, target=target)
    learn_labels(classifier, labels)
    n_changed = int((classifier.predict_kept(target)[: len(old)] != old).sum())  # new rows come last
    scores = (errors.before, errors.after) if errors else (None, None)
    measured_before, measured = (score and {"rows": score.n_rows, **score.to_dict()} for score in scores)
    facts = {
        "labels": str(job.labels),
        "n_labels": len(given),
        "n_unmatched": n_unmatched,
        "expected_error_before": expected.to_dict() | {"known": True},
        "measured_before": measured_before,
        "measured": measured,
        "difference": errors and asdict(errors.gain),
        "changed": {"predictions": n_changed, "rows": rows.shape[0]},
    }
    verb = "is" if n_unmatched == 1 else "are"
    unmatched = f"; {n_unmatched:,} of their texts {verb} not among the rows of the model"
    line = f"Learnt {count(len(given), 'label')}{unmatched if n_unmatched else ''}. "
    line += f"{n_changed:,} of {rows.shape[0]:,} predictions changed."
    return Summary(facts, [line, describe_measured(errors, expected)])


def _measure_error(
    before: MSDAClassifier, labels: TrainingLabels, given: Sequence[GivenLabel]
) -> Comparison | None:
    """Compare a model with the one after labels, on rows drawn or not asked for; None if they are too few."""
    has_drawn = any(label.sampled == ESTIMATE for label in given)
    chosen = [
        i
        for i, label in enumerate(given)
        if label.weight > 0 and (label.sampled == ESTIMATE if has_drawn else label.sampled != PREDICTIONS)
    ]
    if len(chosen) < FEW_MEASURED:
        return None
    first = before.predict(labels.X[chosen], target=labels.names[0]).tolist()
    second = cross_fit(before, labels)[chosen].tolist()
    return Comparison.of_labels(labels.y[chosen].tolist(), labels.weights[chosen], first, second)


def describe_measured(errors: Comparison | None, expected: Score) -> str:
    """Say how many predictions are wrong by the labels, and where they contradict the expectation."""
    if errors is None:
        return (
            f"The error is not measured: that takes {FEW_MEASURED} labels of rows drawn at random "
            f"(undrift ask --n {FEW_MEASURED + N_QUESTIONS})."
        )
    before, after = errors.before, errors.after
    line = f"{after.say()}, measured on {after.n_rows:,} labels, each predicted without its own. "
    line += errors.gain.say()
    if not before.low <= expected.error <= before.high:
        line += f" Trust this, not the {expected.error:.0%} that was expected before."
    return line


def _take_batch(
    adapter: TextAdapter, target: str, text: Sequence[str], job: UpdateJob, show_stage: ShowStage
) -> Summary:
    """Take a new batch of the target, and the reference of later checks."""
    before = Target.of(adapter.classifier_, target).expected
    (batch,) = read_domains([job.rows], job.reading, text, show_stage)
    show_stage("taking the batch", None)
    X = adapter.vectorizer_.transform(batch.documents)
    known = float(np.mean(np.diff(X.indptr) > 0))
    again = "run `undrift adapt` with these rows as the target"
    if not known:
        raise TableError(f"{job.input}: no row has a term that the model knows: {again}")
    if known < FEW_KNOWN:
        warn(f"{job.input}: only {known:.0%} of the rows have a term that the model knows: {again}")
    adapter.classifier_.update_target(X, target=target)
    references = adapter.facts_.get("references", {})
    adapter.remember(references={**references, target: describe_target(adapter, batch.documents)})
    expected = Target.of(adapter.classifier_, target).expected
    facts = {
        "target": str(job.input),
        "rows": batch.n_rows,
        "bad_rows": batch.n_bad,
        "expected_error_before": before.to_dict() | {"known": True},
    }
    lines = [
        f"Took {count(batch.n_rows, 'row')} of {job.input} as the new batch.",
        f"{expected.say().capitalize()}, expected.",
    ]
    return Summary(facts, lines)
