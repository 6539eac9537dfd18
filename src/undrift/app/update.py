"""Ask for labels of target rows, and update a saved model by them or by a new batch."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Rows as Matrix
from ..errors import count, warn
from ..inputs import spell_label
from ..method import N_QUESTIONS, list_row_keys
from ..persist import save_model
from ..scoring import (
    describe_expected,
    describe_gain,
    describe_shares,
    list_shares,
    measure_error,
    measure_gain,
)
from ..text import TextAdapter
from .domains import open_rows, read_domains, refuse_overwriting
from .drift import describe_target
from .job import AskJob, ModelJob, ShowStage, UpdateJob, ignore_stage
from .labels import (
    ESTIMATE,
    PREDICTIONS,
    SAMPLED,
    WEIGHT,
    GivenLabel,
    TrainingLabels,
    cross_fit,
    learn_labels,
    read_labels,
)
from .predict import open_model
from .stories import name_winner
from .tables import Style, TableError, with_added, write_table
from .terminal import describe_file

FEW_KNOWN = 0.5  # share of rows with a known term below which a batch is not like the target
FEW_MEASURED = 20  # labels below which no error is measured


def open_updatable(job: ModelJob, path: Path) -> tuple[TextAdapter, str, tuple[str, ...]]:
    """Load a model that can be updated, as `open_model` does."""
    adapter, target, text = open_model(job, path)
    if adapter.classifier_.memory_ is None:
        raise ValueError(
            f"{job.model} holds no training rows, which `undrift ask` and `undrift update` need: run "
            "`undrift adapt` again with --model and --updatable"
        )
    return adapter, target, text


def run_ask(job: AskJob, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Write the rows that are most worth labelling, with all their columns; returns a summary."""
    refuse_overwriting(job.out, [job.model, job.input])
    adapter, name, text = open_updatable(job, job.input)
    (target,) = read_domains([job.input], job.reading, text, show_stage)
    assert target.frame is not None
    kinds = with_added(target.path, target.kinds, {"label": {str}, SAMPLED: {str}, WEIGHT: {float}})
    show_stage("choosing rows", None)
    rows, weights = adapter.ask(
        target.documents, job.n, job.purpose, target=name, return_weights=True, random_state=job.seed
    )
    facts = {
        SAMPLED: [ESTIMATE if w else PREDICTIONS for w in weights],
        WEIGHT: [round(float(w), 6) if w else None for w in weights],
    }
    with write_table(job.out, kinds, Style(target.delimiter, job.reading.safe_cells)) as write:
        write(target.frame.iloc[rows].assign(**facts))
    return {
        "model": str(job.model),
        "input": str(job.input),
        "out": str(job.out),
        "rows": target.n_rows,
        "asked": len(rows),
        "questions": int(np.sum(weights == 0)),
        "purpose": job.purpose,
        "bad_rows": target.n_bad,
        "domain": job.domain,
    }


def describe_ask(summary: dict[str, Any]) -> Iterator[str]:
    """Say where the rows are, and the command that learns their labels."""
    n_questions, rows = summary["questions"], count(summary["rows"], "row")
    n_drawn = summary["asked"] - n_questions
    drawn = "drawn at random to measure the error"
    if n_questions:
        drawn = f"{count(n_questions, 'question')} to decide between readings" + (
            f", and {count(n_drawn, 'row')} {drawn}" if n_drawn else ""
        )
    yield f"Wrote {summary['out']}: {summary['asked']:,} of {rows} to label, {drawn}."
    path = Path(summary["model"])
    command = ["undrift", "update", summary["model"], summary["out"]]
    command += ["--domain", summary["domain"]] if summary["domain"] else []
    command += ["--out", str(path.with_stem(f"{path.stem}-updated"))]
    yield "Next: fill in the column `label`, then"
    yield f"  {shlex.join(command)}"


def run_update(job: UpdateJob, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Update a model by labels, or by a new batch, and save it; returns a summary."""
    path = job.rows
    adapter, name, text = open_updatable(job, path)
    refuse_overwriting(job.out, [path])
    before = adapter.classifier_.targets_[name]["expected_error"]
    learn = _learn_labels if job.labels is not None else _take_batch
    found = learn(adapter, name, text, job, show_stage)
    show_stage("saving the model", None)
    save_model(adapter, job.out, updatable=True)
    return {
        "model": str(job.model),
        "out": str(job.out),
        "expected_error_before": before,
        **found,
        **describe_shares(adapter.classifier_, name),
        "bytes": job.out.stat().st_size,
    }


def _learn_labels(
    adapter: TextAdapter, name: str, text: Sequence[str], job: UpdateJob, show_stage: ShowStage
) -> dict[str, Any]:
    """Learn the labels in a file, and measure the error on them by cross-fitting."""
    assert job.labels is not None
    show_stage(f"reading {job.labels.name}", None)
    table = open_rows(job.labels, job.reading)
    merges = adapter.facts_.get("merges")
    by_key = read_labels(table, text, [job.label], adapter.classes_.tolist(), merges)
    given, classifier = list(by_key.values()), adapter.classifier_
    X = adapter.vectorizer_.transform([label.text for label in given])
    if not X.nnz:
        raise TableError(f"{job.labels}: no labelled text has a word that the model knows")
    y = np.array([label.label for label in given], dtype=object)
    without = _withdraw_labels(classifier, X, name)
    weights = np.array([label.weight for label in given])
    labels = TrainingLabels(X, y, np.full(len(y), name, dtype=object), list(by_key), weights)
    show_stage("measuring the error", None)
    summary = {
        "labels": str(job.labels),
        "n_labels": len(given),
        "n_unmatched": _count_unmatched(classifier, X, name),
        "expected_error_before": without.targets_[name]["expected_error"],
        **_measure(given, without.predict(X, target=name), cross_fit(without, labels)),
    }
    show_stage("learning the labels", None)
    rows = classifier.list_rows(name)
    old = classifier.predict(rows, target=name)
    learn_labels(classifier, labels)
    n_changed = int((classifier.predict(rows, target=name) != old).sum())
    return summary | {"changed": {"predictions": n_changed, "rows": rows.shape[0]}}


def _withdraw_labels(classifier: Any, X: Matrix, name: str) -> Any:
    """Return the classifier without the labels of these rows that it has learnt before."""
    if not len(classifier.list_labelled(name)[1]):
        return classifier
    return copy.copy(classifier).update(X, [None] * X.shape[0], target=name)


def _count_unmatched(classifier: Any, X: Matrix, name: str) -> int:
    """Count the rows that are not among those of the target that the model keeps."""
    rows = classifier.list_rows(name)
    known = set(list_row_keys(rows, np.zeros(rows.shape[0], dtype=int)))
    keys = list_row_keys(X.astype(rows.dtype), np.zeros(X.shape[0], dtype=int))
    return sum(key not in known for key in keys)


def _measure(given: Sequence[GivenLabel], before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    """Return the errors on rows that were drawn or not asked for, and what labels changed.

    All are None where these rows are too few.
    """
    has_drawn = any(label.sampled == ESTIMATE for label in given)
    chosen = [
        i
        for i, label in enumerate(given)
        if label.weight > 0 and (label.sampled == ESTIMATE if has_drawn else label.sampled != PREDICTIONS)
    ]
    if len(chosen) < FEW_MEASURED:
        return {"measured_before": None, "measured": None, "difference": None}
    weight = np.array([given[i].weight for i in chosen])
    first, second = (
        np.array([spell_label(predicted[i]) != spell_label(given[i].label) for i in chosen])
        for predicted in (before, after)
    )
    return {
        "measured_before": {"rows": len(chosen), **measure_error(first, weight)},
        "measured": {"rows": len(chosen), **measure_error(second, weight)},
        "difference": measure_gain(first, second, weight),
    }


def _take_batch(
    adapter: TextAdapter, name: str, text: Sequence[str], job: UpdateJob, show_stage: ShowStage
) -> dict[str, Any]:
    """Take a new batch of the target, and the reference of later checks."""
    (target,) = read_domains([job.rows], job.reading, text, show_stage)
    show_stage("taking the batch", None)
    X = adapter.vectorizer_.transform(target.documents)
    known = float(np.mean(np.diff(X.indptr) > 0))
    again = "run `undrift adapt` with these rows as the target"
    if not known:
        raise TableError(f"{job.input}: no row has a term that the model knows: {again}")
    if known < FEW_KNOWN:
        warn(f"{job.input}: only {known:.0%} of the rows have a term that the model knows: {again}")
    adapter.classifier_.update_target(X, target=name)
    references = adapter.facts_.get("references", {})
    adapter.remember(references={**references, name: describe_target(adapter, target.documents)})
    return {"target": str(job.input), "rows": target.n_rows, "bad_rows": target.n_bad}


def describe_update(summary: dict[str, Any]) -> Iterator[str]:
    """Say what was learnt, what that changed, where the model is, and what to do next."""
    if "n_labels" in summary:
        unmatched = summary["n_unmatched"]
        verb = "is" if unmatched == 1 else "are"
        more = f"; {unmatched:,} of their texts {verb} not among the rows of the model" if unmatched else ""
        changed = summary["changed"]
        yield (
            f"Learnt {count(summary['n_labels'], 'label')}{more}. "
            f"{changed['predictions']:,} of {changed['rows']:,} predictions changed."
        )
        yield from _describe_measured(summary)
    else:
        yield f"Took {count(summary['rows'], 'row')} of {summary['target']} as the new batch."
        error = describe_expected(summary["expected_error"])
        yield f"{error[0].upper()}{error[1:]}."
    if summary["target_shares"]:
        shares = list_shares(summary["target_shares"], summary["target_shares_interval"])
        yield f"Class shares: {shares}."
    if "n_labels" in summary and summary["readings"]:
        yield name_winner(summary["readings"])
    yield f"Wrote {describe_file(summary['out'])}."
    yield "Next: predict with it:"
    yield f"  undrift predict {shlex.join([summary['out']])} NEW.csv --out predicted.csv"


def _is_contradicted(summary: dict[str, Any]) -> bool:
    """Tell whether the labels rule out the error that was expected."""
    measured, expected = summary.get("measured_before"), summary["expected_error_before"]
    if not measured or not expected or expected["error"] is None:
        return False
    return not measured["low"] <= expected["error"] <= measured["high"]


def _describe_measured(summary: dict[str, Any]) -> Iterator[str]:
    """Say how many predictions are wrong by the labels, and where they contradict the expectation."""
    measured = summary["measured"]
    if measured is None:
        yield (
            f"The error is not measured: that takes {FEW_MEASURED} labels of rows drawn at random "
            f"(undrift ask --n {FEW_MEASURED + N_QUESTIONS})."
        )
        return
    line = "{error:.1%} wrong (95% interval {low:.1%} to {high:.1%}), measured on {rows:,} labels, each "
    line = f"{line.format(**measured)}predicted without its own. {describe_gain(summary['difference'])}"
    if _is_contradicted(summary):
        expected = summary["expected_error_before"]["error"]
        line += f" Trust this, not the {expected:.0%} that was expected before."
    yield line
