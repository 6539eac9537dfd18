"""Ask for labels of target rows, and update a saved model by them or by a new batch."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..core import Rows as Matrix
from ..errors import count, warn
from ..inputs import spell_label
from ..method import N_QUESTIONS, MSDAClassifier, list_row_keys
from ..persist import load_adapter, save_model
from ..results import Comparison, Score, Target, find_suspects, list_shares
from ..text import TextAdapter
from .domains import find_text, open_rows, read_domains, refuse_overwriting
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
from .summary import FileRows
from .tables import Style, TableError, with_added, write_table
from .terminal import describe_file

FEW_KNOWN = 0.5  # share of rows with a known term below which a batch is not like the target
FEW_MEASURED = 20  # labels below which no error is measured


def open_updatable(job: ModelJob, path: Path) -> tuple[TextAdapter, str, tuple[str, ...]]:
    """Load a model that can be updated, as `open_model` does."""
    adapter, target, text = open_model(job, path, load_adapter)
    if adapter.classifier_.memory_ is None:
        raise ValueError(
            f"{job.model} holds no training rows, which `undrift ask` and `undrift update` need: run "
            "`undrift adapt` again with --model and --updatable"
        )
    return adapter, target, text


@dataclass(frozen=True)
class AskSummary:
    """Which rows were chosen to be labelled."""

    model: str
    input: str
    out: str
    rows: int
    asked: int
    questions: int  # rows that decide between readings, among those asked for
    purpose: str
    bad_rows: int
    domain: str | None

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        return asdict(self)


def run_ask(job: AskJob, show_stage: ShowStage = ignore_stage) -> AskSummary:
    """Write the rows that are most worth labelling, with all their columns; returns a summary."""
    refuse_overwriting(job.out, [job.model, job.input])
    if job.purpose == "source":
        return _ask_source(job, show_stage)
    adapter, name, text = open_updatable(job, job.input)
    (target,) = read_domains([job.input], job.reading, text, show_stage)
    assert target.frame is not None
    kinds = with_added(target.path, target.kinds, {"label": {str}, SAMPLED: {str}, WEIGHT: {float}})
    show_stage("choosing rows", None)
    rows, weights = adapter.ask(
        target.documents, job.n, job.purpose, return_weights=True, target=name, random_state=job.seed
    )
    facts = {
        SAMPLED: [ESTIMATE if w else PREDICTIONS for w in weights],
        WEIGHT: [round(float(w), 6) if w else None for w in weights],
    }
    with write_table(job.out, kinds, Style(target.delimiter, job.reading.safe_cells)) as write:
        write(target.frame.iloc[rows].assign(**facts))
    return AskSummary(
        model=str(job.model),
        input=str(job.input),
        out=str(job.out),
        rows=target.n_rows,
        asked=len(rows),
        questions=int(np.sum(weights == 0)),
        purpose=job.purpose,
        bad_rows=target.n_bad,
        domain=job.domain,
    )


def _ask_source(job: AskJob, show_stage: ShowStage) -> AskSummary:
    """Write the rows of the source whose labels the others contradict, the most doubtful first."""
    adapter, _, _ = open_updatable(job, job.input)
    remembered = adapter.facts_.get("source_columns", ())
    text = tuple(job.text or remembered) or find_text(job.input, job.reading, ())
    (source,) = read_domains([job.input], job.reading, text, show_stage)
    assert source.frame is not None
    added: dict[str, set[Hashable]] = {"row": {int}, "learnt_label": {str}, "suggested": {str}}
    added["probability"] = {float}
    kinds = with_added(source.path, source.kinds, added)
    show_stage("comparing labels", None)
    y, p = adapter.predict_held_out(source.documents)
    n_known = sum(label is not None for label in y)
    if not n_known:
        raise TableError(f"{job.input}: no row is a labelled one of the fit: give a file of the source")
    classes = adapter.classes_.tolist()
    rows = find_suspects(y.tolist(), p, classes)[: job.n]
    facts = {
        "row": (rows + 1).tolist(),
        "learnt_label": [spell_label(y[i]) for i in rows],
        "suggested": [spell_label(classes[k]) for k in p[rows].argmax(axis=1)],
        "probability": p[rows].max(axis=1).round(3).tolist(),
    }
    with write_table(job.out, kinds, Style(source.delimiter, job.reading.safe_cells)) as write:
        write(source.frame.iloc[rows].assign(**facts))
    return AskSummary(
        model=str(job.model),
        input=str(job.input),
        out=str(job.out),
        rows=n_known,
        asked=len(rows),
        questions=0,
        purpose=job.purpose,
        bad_rows=source.n_bad,
        domain=job.domain,
    )


def describe_ask(summary: AskSummary) -> Iterator[str]:
    """Say where the rows are, and the command that learns their labels."""
    if summary.purpose == "source":
        what = f"{summary.asked:,} of {count(summary.rows, 'label')} of {summary.input}"
        yield f"Wrote {summary.out}: {what} that the other labels contradict, the most doubtful first."
        yield f"Next: correct those that are wrong in {summary.input}, and run undrift adapt again."
        return
    n_questions, rows = summary.questions, count(summary.rows, "row")
    n_drawn = summary.asked - n_questions
    drawn = "drawn at random to measure the error"
    if n_questions:
        drawn = f"{count(n_questions, 'question')} to decide between readings" + (
            f", and {count(n_drawn, 'row')} {drawn}" if n_drawn else ""
        )
    yield f"Wrote {summary.out}: {summary.asked:,} of {rows} to label, {drawn}."
    path = Path(summary.model)
    command = ["undrift", "update", summary.model, summary.out]
    command += ["--domain", summary.domain] if summary.domain else []
    command += ["--out", str(path.with_stem(f"{path.stem}-updated"))]
    yield "Next: fill in the column `label`, then"
    yield f"  {shlex.join(command)}"


@dataclass(frozen=True)
class Learnt:
    """The labels that a model learnt, what they measured, and the predictions that changed."""

    n_labels: int
    n_unmatched: int  # texts that are not among the rows of the model
    errors: Comparison | None  # before the labels, and with them, each row without its own; None: too few
    n_changed: int  # predictions
    n_rows: int  # of the model

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        scores = (self.errors.before, self.errors.after) if self.errors else (None, None)
        before, after = (score and {"rows": score.n_rows, **score.to_dict()} for score in scores)
        return {
            "n_labels": self.n_labels,
            "n_unmatched": self.n_unmatched,
            "measured_before": before,
            "measured": after,
            "difference": self.errors and asdict(self.errors.gain),
            "changed": {"predictions": self.n_changed, "rows": self.n_rows},
        }


@dataclass(frozen=True)
class UpdateSummary:
    """What a model learnt of its target: from labels, or from a new batch."""

    job: UpdateJob
    result: Learnt | FileRows  # or the rows of the batch
    before: Score  # the error that was expected without the labels, or of the last batch
    known: Target
    bytes: int  # of the model

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        if isinstance(self.result, Learnt):
            result = {"labels": str(self.job.labels), **self.result.to_dict()}
        else:
            rows, bad_rows = self.result.rows, self.result.bad_rows
            result = {"target": str(self.job.input), "rows": rows, "bad_rows": bad_rows}
        return {
            "model": str(self.job.model),
            "out": str(self.job.out),
            "expected_error_before": self.before.to_dict() | {"known": True},
            **result,
            **self.known.to_dict(),
            "bytes": self.bytes,
        }


def run_update(job: UpdateJob, show_stage: ShowStage = ignore_stage) -> UpdateSummary:
    """Update a model by labels, or by a new batch, and save it; returns a summary."""
    path = job.rows
    adapter, name, text = open_updatable(job, path)
    refuse_overwriting(job.out, [path])
    result: Learnt | FileRows
    if job.labels is not None:
        result, before = _learn_labels(adapter, name, text, job, show_stage)
    else:
        before = Target.of(adapter.classifier_, name).expected
        result = _take_batch(adapter, name, text, job, show_stage)
    show_stage("saving the model", None)
    save_model(adapter, job.out, updatable=True)
    known = Target.of(adapter.classifier_, name)
    return UpdateSummary(job, result, before, known, job.out.stat().st_size)


def _learn_labels(
    adapter: TextAdapter, name: str, text: Sequence[str], job: UpdateJob, show_stage: ShowStage
) -> tuple[Learnt, Score]:
    """Learn the labels in a file, and measure the error on them by cross-fitting.

    Returns the error too that was expected without them.
    """
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
    expected = Target.of(without, name).expected  # `without` may be the classifier that learns below
    weights = np.array([label.weight for label in given])
    labels = TrainingLabels(X, y, np.full(len(y), name, dtype=object), list(by_key), weights)
    show_stage("measuring the error", None)
    errors = _measure_error(given, without.predict(X, target=name), cross_fit(without, labels))
    n_unmatched = _count_unmatched(classifier, X, name)
    show_stage("learning the labels", None)
    rows = classifier.list_rows(name)
    old = classifier.predict(rows, target=name)
    learn_labels(classifier, labels)
    n_changed = int((classifier.predict(rows, target=name) != old).sum())
    learnt = Learnt(len(given), n_unmatched, errors, n_changed, rows.shape[0])
    return learnt, expected


def _withdraw_labels(classifier: MSDAClassifier, X: Matrix, name: str) -> MSDAClassifier:
    """Return the classifier without the labels of these rows that it has learnt before."""
    if not len(classifier.list_labelled(name)[1]):
        return classifier
    return copy.copy(classifier).update(X, np.full(X.shape[0], None), target=name)


def _count_unmatched(classifier: MSDAClassifier, X: Matrix, name: str) -> int:
    """Count the rows that are not among those of the target that the model keeps."""
    rows = classifier.list_rows(name)
    known = set(list_row_keys(rows, np.zeros(rows.shape[0], dtype=int)))
    keys = list_row_keys(X.astype(rows.dtype), np.zeros(X.shape[0], dtype=int))
    return sum(key not in known for key in keys)


def _measure_error(given: Sequence[GivenLabel], before: np.ndarray, after: np.ndarray) -> Comparison | None:
    """Compare two models on rows that were drawn or not asked for; None where these are too few."""
    has_drawn = any(label.sampled == ESTIMATE for label in given)
    chosen = [
        i
        for i, label in enumerate(given)
        if label.weight > 0 and (label.sampled == ESTIMATE if has_drawn else label.sampled != PREDICTIONS)
    ]
    if len(chosen) < FEW_MEASURED:
        return None
    truth, weight = [given[i].label for i in chosen], np.array([given[i].weight for i in chosen])
    return Comparison.of_labels(truth, weight, before[chosen].tolist(), after[chosen].tolist())


def _take_batch(
    adapter: TextAdapter, name: str, text: Sequence[str], job: UpdateJob, show_stage: ShowStage
) -> FileRows:
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
    return FileRows.of(target)


def describe_update(summary: UpdateSummary) -> Iterator[str]:
    """Say what was learnt, what that changed, where the model is, and what to do next."""
    job, result, known = summary.job, summary.result, summary.known
    if isinstance(result, Learnt):
        verb = "is" if result.n_unmatched == 1 else "are"
        unmatched = f"; {result.n_unmatched:,} of their texts {verb} not among the rows of the model"
        yield (
            f"Learnt {count(result.n_labels, 'label')}{unmatched if result.n_unmatched else ''}. "
            f"{result.n_changed:,} of {result.n_rows:,} predictions changed."
        )
        yield _describe_measured(result.errors, summary.before)
    else:
        yield f"Took {count(result.rows, 'row')} of {job.input} as the new batch."
        yield f"{known.expected.say().capitalize()}, expected."
    yield f"Class shares: {list_shares(known.shares, known.intervals)}."
    if isinstance(result, Learnt):
        yield name_winner(known.readings)
    yield f"Wrote {describe_file(str(job.out))}."
    yield "Next: predict with it:"
    yield f"  undrift predict {shlex.join([str(job.out)])} NEW.csv --out predicted.csv"


def _describe_measured(errors: Comparison | None, expected: Score) -> str:
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
