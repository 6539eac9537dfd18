"""Apply a saved model to new rows: every file is a target, with its class shares and threshold."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from ..core import Rows as Matrix
from ..errors import count, warn
from ..method import MSDAClassifier, Readings, is_open, list_row_keys
from ..persist import load_text_model
from ..results import MOST_TOLD, Target, list_shares, spell_readings, tabulate_shares
from ..text import DistilledText, TextAdapter
from .domains import find_text, name_domains, open_rows, refuse_overwriting, style_of
from .drift import N_BATCH, Drift, check_drift, find_class_directions, find_reference
from .job import ModelJob, PredictJob, ShowStage, ignore_stage
from .predictions import Classifier, Counts, Predictions, join_predictions, list_added, predict_rows
from .stories import tell_stories
from .tables import (
    Table,
    TableError,
    check_file,
    is_pattern,
    is_table,
    join_kinds,
    list_texts,
    shard_paths,
    with_added,
    write_table,
)
from .terminal import describe_file

if TYPE_CHECKING:  # a report imports jinja2, which takes longer than a small job
    from ..report import Report

LEAST_KNOWN = 200  # rows with a known term from which a file is aligned
N_SAMPLED = 1500  # rows that stand for a file
MOST_GROUPS = 200
MANY_UNKNOWN = 0.5  # share of rows without a known word from which that is said
AS_FITTED = "--as-fitted"
MOST_LABELLED = 0.5  # of the rows with a label, from which a file is the one that they are of

TextModel = TextAdapter | DistilledText
AnyModel = TypeVar("AnyModel", TextAdapter, TextModel)


def open_model(
    job: ModelJob, path: Path, load: Callable[[Path], AnyModel]
) -> tuple[AnyModel, str, tuple[str, ...]]:
    """Load the model of a job; return it, the name of its target, and the columns of the text of a file."""
    refuse_table(job.model)
    model = load(job.model)
    if job.device is not None and "device" in model.classifier_.get_params():  # not if it is distilled
        model.classifier_.set_params(device=job.device)
    names = model.classifier_.target_names_
    listed = ", ".join(map(str, names))
    if job.domain is None and len(names) != 1:
        raise ValueError(f"the model has {len(names)} target domains: choose one with --domain: {listed}")
    if job.domain is not None and job.domain not in names:
        raise ValueError(f"the model has no target domain {job.domain!r}: its target domains are {listed}")
    return model, job.domain or str(names[0]), choose_text(model, job, path)


def refuse_table(model: Path) -> None:
    """Refuse a file of rows where a model is needed; the files of a command were probably exchanged."""
    if is_table(model):
        raise TableError(f"{model} is a file of rows, not a model: give the model first, then the rows")


def choose_text(model: TextModel, job: ModelJob, path: Path) -> tuple[str, ...]:
    """Return the columns of the text: those given, those of the model, or the only one in the file."""
    return tuple(job.text or model.facts_.get("text_columns", ())) or find_text(path, job.reading, ())


def run_predict(job: PredictJob, show_stage: ShowStage = ignore_stage) -> PredictSummary:
    """Predict every batch of the job block by block, into one file."""
    model, target, text = open_model(job, job.input, load_text_model)
    refuse_overwriting(job.out, [job.input, job.model])
    if job.report is not None:
        refuse_overwriting(job.report, [job.input, job.model, job.out])
        check_file(job.report)
    batches = open_batches(job, text)
    added = list_added(job, model.classes_.tolist(), has_file=is_pattern(job.input), has_known_terms=True)
    kinds = with_added(job.input, join_kinds(table.kinds for b in batches for table in b.tables), added)
    predictor = Predictor(job, model, target, text, list(added), show_stage)
    style = style_of(job.reading, [table for batch in batches for table in batch.tables])
    with write_table(job.out, kinds, style) as write:
        results = [predictor.predict_batch(batch, write) for batch in batches]
        if not any(result.counts.rows for result in results):
            batches[0].tables[0].require_rows()
    summary = PredictSummary(job, text, results)
    if job.report is not None:
        show_stage("writing the report", None)
        report_batches(summary, target, Target.of(model.classifier_, target)).save(job.report)
    for reason in summary.reasons:
        warn(reason)
    n_unknown, n_rows = summary.counts.unknown_rows, summary.counts.rows
    if n_unknown > MANY_UNKNOWN * n_rows:
        what = f"{job.input}: {n_unknown:,} of {count(n_rows, 'row')} have no word that the model knows"
        warn(f"{what}: is {' + '.join(text)} the text? Else name it with --text COL")
    return summary


@dataclass(frozen=True)
class Batch:
    """Files that are aligned together: one, or all of a pattern."""

    name: str
    tables: Sequence[Table]


def open_batches(job: PredictJob, text: Sequence[str]) -> list[Batch]:
    """Open the files of the input: each as a batch, or with --together or --by all as one."""
    by = [] if job.by is None else [job.by]
    tables = [open_rows(path, job.reading, text, by) for path in shard_paths(job.input)]
    if job.together or job.by is not None:
        return [Batch(job.input.name, tables)]
    names = name_domains([table.path for table in tables])
    return [Batch(name, [table]) for name, table in zip(names, tables, strict=True)]


@dataclass(frozen=True)
class Group:
    """The classifier of a batch, or of its rows with one value of a column, and what is known of them."""

    classifier: Classifier
    known: Target
    reason: str | None = None  # why it predicts as fitted; None where it was aligned

    def to_dict(self, *, is_foreign: bool) -> dict[str, object]:
        """Return class shares and expected error, ready for JSON."""
        aligned = {"aligned": self.reason is None, "as_fitted_because": self.reason}
        return aligned | self.known.to_dict(is_foreign=is_foreign)


@dataclass(frozen=True)
class BatchResult:
    """What was predicted of a batch, and by which classifiers."""

    name: str
    counts: Counts
    bad_rows: int
    group: Group
    groups: dict[str, Group]  # with --by: of every value
    check: Drift | None = None

    @property
    def is_foreign(self) -> bool:
        """Tell whether the check found rows that are not like those of the fit."""
        return self.check is not None and self.check.drifted

    def to_dict(self) -> dict[str, object]:
        """Return what is known of the rows, ready for JSON."""
        made = self.group.to_dict(is_foreign=self.is_foreign)
        if self.groups:
            made["groups"] = {
                name: group.to_dict(is_foreign=self.is_foreign) for name, group in self.groups.items()
            }
            made["aligned"] = any(group.reason is None for group in self.groups.values())
        return made | ({"check": self.check.to_dict()} if self.check else {})


@dataclass(frozen=True)
class PredictSummary:
    """What was read, predicted and written."""

    job: PredictJob
    text: Sequence[str]  # columns
    batches: Sequence[BatchResult]

    @property
    def counts(self) -> Counts:
        """Counts over all batches."""
        return reduce(add, (batch.counts for batch in self.batches))

    @property
    def bad_rows(self) -> int:
        """Rows that could not be read."""
        return sum(batch.bad_rows for batch in self.batches)

    @property
    def is_foreign(self) -> bool:
        """Tell whether any batch is not like the rows of the fit."""
        return any(batch.is_foreign for batch in self.batches)

    @property
    def reasons(self) -> list[str]:
        """Return what the checks found, with the batch where there are several."""
        found = [(batch.name, why) for batch in self.batches if batch.check for why in batch.check.reasons]
        return [f"{name}: {why}" if len(self.batches) > 1 else why for name, why in found]

    def to_dict(self) -> dict[str, object]:
        """Return the summary, ready for JSON; `files` has every batch where there are several."""
        made: dict[str, object] = {"input": str(self.job.input), "out": str(self.job.out)}
        made |= {"report": self.job.report and str(self.job.report)}
        made |= {"text": list(self.text), **self._count(self.counts, self.bad_rows)}
        if len(self.batches) == 1:
            return made | self.batches[0].to_dict()
        made["files"] = {
            batch.name: self._count(batch.counts, batch.bad_rows) | batch.to_dict() for batch in self.batches
        }
        check = {"check": {"drifted": self.is_foreign, "reasons": self.reasons}} if self.job.check else {}
        return made | check

    def _count(self, counts: Counts, bad_rows: int) -> dict[str, object]:
        """Return counts, ready for JSON."""
        doubtful = {} if self.job.min_confidence is None else {"n_doubtful": counts.n_doubtful}
        numbers = {"rows": counts.rows, "bad_rows": bad_rows, "unknown_rows": counts.unknown_rows}
        return {**numbers, **doubtful, "predicted_shares": counts.predicted_shares}


class Predictor:
    """Predicts the batches of a job by one model."""

    def __init__(
        self,
        job: PredictJob,
        model: TextModel,
        target: str,
        text: Sequence[str],
        added: Sequence[str],  # columns
        show_stage: ShowStage,
    ) -> None:
        self.job, self.model, self.target, self.text = job, model, target, text
        self.added, self.show_stage = added, show_stage
        self.reference = find_reference(model, target) if job.check else None
        self.directions = (
            None if self.reference is None else find_class_directions(model, self.reference, target)
        )

    def predict_batch(self, batch: Batch, write: Callable[[pd.DataFrame], None]) -> BatchResult:
        """Write the rows of a batch with their predictions."""
        job, model, groups, sample = self.job, self.model, self.align(batch), Sample(N_BATCH)
        counts = Counts.none(model.classes_.tolist())
        for table, name in zip(batch.tables, name_domains([t.path for t in batch.tables]), strict=True):
            for frame in table:
                documents = list_texts(frame, self.text)
                X = model.vectorizer_.transform(documents)
                predictions = _predict_groups(groups, _name_groups(job, frame), X, self.target)
                if self.reference is not None:
                    sample.add(documents)
                file = name if len(batch.tables) > 1 else batch.name
                columns = predictions.columns(self.added, job.min_confidence, file=file)
                write(frame.assign(**columns))
                counts += predictions.count(job.min_confidence)
                self.show_stage(f"predicting {table.path.name}", table.share_read)
        check = None
        if self.reference is not None and sample.documents:
            check = check_drift(model, self.reference, sample.documents, self.directions)
        named = {name: group for name, group in groups.items() if name is not None}
        n_bad = sum(table.n_bad for table in batch.tables)
        return BatchResult(batch.name, counts, n_bad, groups[None], named, check)

    def align(self, batch: Batch) -> dict[str | None, Group]:
        """Return the classifier of a batch, and of every group of its rows if a column makes groups.

        Reads the files once. The classifier of the name None is that of the whole batch.
        """
        job, model = self.job, self.model
        known = Target.of(model.classifier_, self.target)
        as_fitted = Group(model.classifier_, known, AS_FITTED)
        if job.as_fitted:
            return {None: as_fitted}
        samples: dict[str | None, Sample] = {}
        for table in batch.tables:
            for frame in table:
                names = np.array(_name_groups(job, frame), dtype=object)
                documents = np.array(list_texts(frame, self.text), dtype=object)
                for name in dict.fromkeys(names.tolist()):
                    samples.setdefault(name, Sample(N_SAMPLED)).add(documents[names == name].tolist())
                if len(samples) > MOST_GROUPS:
                    many = f"column {job.by!r} has over {MOST_GROUPS} different values"
                    raise TableError(f"{table.path}: {many}: is it the column of groups?")
                self.show_stage(f"estimating class shares of {table.path.name}", table.share_read)
        groups = {name: self.align_sample(sample, as_fitted) for name, sample in samples.items()}
        if not samples:
            return {None: replace(as_fitted, reason="there is no row")}
        return {None: as_fitted, **groups}

    def align_sample(self, sample: Sample, as_fitted: Group) -> Group:
        """Return the classifier that follows a sample of rows, or the one of the fit and a reason."""
        fitted, target = self.model.classifier_, self.target
        X = self.model.vectorizer_.transform(sample.documents)
        known = np.flatnonzero(np.diff(X.indptr) > 0)
        n_known = round(len(known) / max(len(sample.documents), 1) * sample.n_rows)
        if n_known < LEAST_KNOWN:
            verb = "row has" if n_known == 1 else "rows have"
            reason = f"{n_known:,} {verb} a known word, and {LEAST_KNOWN} are needed"
            return replace(as_fitted, reason=reason)
        if _holds_labelled(fitted, target, X, len(sample.documents) / sample.n_rows):
            reason = "labels of its rows were learnt, and have set the threshold"
            return replace(as_fitted, reason=reason)
        aligned = fitted.align(X[known], target=target)
        readings: Readings = []
        if isinstance(aligned, MSDAClassifier):  # a distilled model is one reading
            no_labels = np.full(len(known), None, dtype=object)
            readings = spell_readings(aligned.weigh(X[known], no_labels, target=target))
        return Group(aligned, replace(Target.of(aligned, target), readings=readings))


class Sample:
    """A random sample of documents, of bounded size."""

    def __init__(self, size: int) -> None:
        self.documents: list[str] = []
        self.n_rows, self._size = 0, size
        self._rng = np.random.default_rng(0)

    def add(self, documents: Sequence[str]) -> None:
        """Add documents; each has the same chance to stay."""
        for document in documents:
            self.n_rows += 1
            if len(self.documents) < self._size:
                self.documents.append(document)
            elif (place := int(self._rng.integers(self.n_rows))) < self._size:
                self.documents[place] = document


def _name_groups(job: PredictJob, frame: pd.DataFrame) -> Sequence[str | None]:
    """Return the name of every row's group: its cell of the column that makes groups, else None."""
    return list_texts(frame, job.by) if job.by else [None] * len(frame)


def _holds_labelled(classifier: Classifier, target: str, X: Matrix, share: float) -> bool:
    """Tell whether some rows of a file hold their portion of the rows with learnt labels."""
    if not isinstance(classifier, MSDAClassifier) or classifier.memory_ is None:
        return False
    labelled, _ = classifier.list_labelled(target)
    keys = set(list_row_keys(labelled, np.zeros(labelled.shape[0], dtype=int)))
    known = keys & set(list_row_keys(X.astype(labelled.dtype), np.zeros(X.shape[0], dtype=int)))
    return len(keys) > 0 and len(known) > MOST_LABELLED * share * len(keys)


def _predict_groups(
    groups: dict[str | None, Group], names: Sequence[str | None], X: Matrix, target: str
) -> Predictions:
    """Predict rows, each by the classifier of its group."""
    present = list(dict.fromkeys(names)) if len(groups) > 1 else [None]
    if len(present) == 1:
        return predict_rows(groups[present[0]].classifier, X, target)
    of_rows = np.array(names, dtype=object)
    places = [np.flatnonzero(of_rows == name) for name in present]
    parts = [
        predict_rows(groups[name].classifier, X[rows], target)
        for name, rows in zip(present, places, strict=True)
    ]
    return join_predictions(parts, np.argsort(np.concatenate(places)))


def report_batches(summary: PredictSummary, target: str, fit: Target) -> Report:
    """Return the report of finished batches, beside what is known of the fit's target."""
    from ..report import Batch, Part, PredictPage, Report, record_run

    job = summary.job
    batches = [
        Batch(
            each.name,
            each.counts.rows,
            each.bad_rows,
            each.counts.unknown_rows,
            None if job.min_confidence is None else each.counts.n_doubtful,
            each.counts.predicted_shares,
            each.check.reasons if each.check else None,
            [
                Part.of(name, group.known, group.reason, is_foreign=each.is_foreign)
                for name, group in (each.groups or {each.name: each.group}).items()
            ],
        )
        for each in summary.batches
    ]
    return Report(PredictPage(job.input.name, target, fit, batches, record_run(job.command)))


def describe_predict(summary: PredictSummary) -> Iterator[str]:
    """Say what was read, predicted and written, and what a check found."""
    job, counts, is_one = summary.job, summary.counts, len(summary.batches) == 1
    bad = f", {summary.bad_rows:,} skipped as unreadable" if summary.bad_rows else ""
    files = "" if is_one else f", {len(summary.batches):,} files, each a batch of its own"
    text = f"text = {', '.join(summary.text)}"
    yield f"Read {job.input}: {count(counts.rows, 'row')}{bad}, {text}{files}."
    if counts.unknown_rows:
        yield f"Left empty, as they have no known word: {counts.unknown_rows:,} of {counts.rows:,} rows."
    if job.min_confidence is not None:
        n_empty = f"{counts.n_doubtful:,} of {counts.rows:,} predictions for {job.input}"
        yield f"Left empty as doubtful (--min-confidence): {n_empty}."
    for batch in summary.batches:
        yield from _describe_batch(batch, "" if is_one else f"{batch.name}: ")
    written = [describe_file(str(path)) for path in (job.out, job.report) if path]
    yield f"Wrote {', '.join(written)}."
    first = summary.batches[0].group
    if is_one and first.reason is None and is_open(first.known.readings):
        yield "Next: answer five questions, which decide between the readings:"
        yield f"  {shlex.join(['undrift', 'label', str(job.model), str(job.input)])}"
    if job.check:
        foreign = [batch.name for batch in summary.batches if batch.is_foreign]
        which = "the rows" if is_one else f"the rows of {', '.join(foreign)}"
        same = "No drift: the rows are like those that the model was adapted to."
        yield f"Drift: {which} are not what the model was adapted to." if foreign else same


def _describe_batch(batch: BatchResult, start: str) -> Iterator[str]:
    rows = "" if not start else f"{count(batch.counts.rows, 'row')}; "
    predicted = f"{start}{rows}{'p' if rows else 'P'}redicted: {list_shares(batch.counts.predicted_shares)}."
    if batch.groups:
        yield predicted
    named = batch.groups or {batch.name: batch.group}
    is_long = len(batch.counts.predicted_shares) > MOST_TOLD and not start
    for name, group in named.items():
        if is_long and not batch.groups and group.reason is None:
            yield from _tabulate_batch(batch, group.known)
        else:
            said = f"{start}{name}:" if batch.groups else predicted
            yield f"{said} {_describe_group(group, batch.is_foreign)}"
        if group.reason is None:
            yield from tell_stories(group.known.readings, name)


def _tabulate_batch(batch: BatchResult, known: Target) -> Iterator[str]:
    """Say the same of many classes, one a line."""
    yield "Class shares of these rows, predicted and estimated:"
    yield from tabulate_shares(batch.counts.predicted_shares, known.shares, known.intervals)
    if not batch.is_foreign:
        yield f"Predictions: {known.expected.say()}, expected."


def _describe_group(group: Group, is_foreign: bool) -> str:
    """Say which class shares the rows have, and how many predictions are wrong where the rows are known."""
    if group.reason is not None:
        return "As fitted." if group.reason == AS_FITTED else f"As fitted: {group.reason}."
    shares = list_shares(group.known.shares, group.known.intervals)
    error = "" if is_foreign else f"; {group.known.expected.say()}, expected"
    return f"Class shares of these rows: {shares}{error}."
