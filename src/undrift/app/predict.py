"""Apply a saved model to new rows: every file is a target, with its class shares and threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core import Rows as Matrix
from ..errors import count, warn
from ..method import MSDAClassifier, Readings, is_open
from ..persist import load_text_model
from ..results import MOST_TOLD, Target, list_shares, spell_readings, tabulate_shares
from .domains import name_domains, open_rows, refuse_overwriting, style_of
from .drift import N_BATCH, Drift, check_drift, find_class_directions, find_reference
from .job import PredictJob, ShowStage, Summary, ignore_stage
from .labels import key_rows
from .models import TextModel, open_model, suggest
from .predictions import Classifier, Counts, Predictions, join_predictions, list_added, predict_rows
from .stories import tell_stories
from .tables import (
    Table,
    TableError,
    check_file,
    is_pattern,
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

Write = Callable[[pd.DataFrame], None]


def run_predict(job: PredictJob, show_stage: ShowStage = ignore_stage) -> Summary:
    """Predict every batch of the job block by block, into one file."""
    model, target, text = open_model(job, job.input, load_text_model)
    refuse_overwriting(job.out, [job.input, job.model])
    if job.report is not None:
        refuse_overwriting(job.report, [job.input, job.model, job.out])
        check_file(job.report)
    files = open_batches(job, text)
    tables = [table for batch in files.values() for table in batch]
    added = list_added(job, model.classes_.tolist(), has_file=is_pattern(job.input), has_known_terms=True)
    kinds = with_added(job.input, join_kinds(table.kinds for table in tables), added)
    predictor = Predictor(job, model, target, text, list(added), show_stage)
    with write_table(job.out, kinds, style_of(job.reading, tables)) as write:
        batches = [predictor.predict_batch(name, batch, write) for name, batch in files.items()]
        if not any(batch.counts.rows for batch in batches):
            tables[0].require_rows()
    if job.report is not None:
        show_stage("writing the report", None)
        make_report(job, batches, target, Target.of(model.classifier_, target)).save(job.report)
    none = Counts.none(model.classes_.tolist(), job.min_confidence)
    counts = sum((batch.counts for batch in batches), none)
    reasons = [
        f"{batch.name}: {reason}" if len(batches) > 1 else reason
        for batch in batches
        for reason in (batch.check.reasons if batch.check else [])
    ]
    for reason in reasons:
        warn(reason)
    if counts.unknown_rows > MANY_UNKNOWN * counts.rows:
        n_unknown = f"{counts.unknown_rows:,} of {count(counts.rows, 'row')}"
        what = f"{job.input}: {n_unknown} have no word that the model knows"
        warn(f"{what}: is {' + '.join(text)} the text? Else name it with --text COL")
    written = {name: path and str(path) for name, path in (("out", job.out), ("report", job.report))}
    facts: dict[str, object] = {"input": str(job.input), **written, "text": list(text)}
    if len(batches) == 1:
        facts |= batches[0].to_dict()
    else:
        facts |= counts.to_dict() | {"files": {batch.name: batch.to_dict() for batch in batches}}
        facts |= {"check": {"drifted": bool(reasons), "reasons": reasons}} if job.check else {}
    return Summary(facts, [*describe_predict(job, target, text, counts, batches)])


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


Groups = dict[str | None, Group]  # by the value of a column; that of None is of the whole batch


@dataclass(frozen=True)
class BatchResult:
    """What was predicted of files that are aligned together, and by which classifiers."""

    name: str
    counts: Counts
    groups: Groups
    check: Drift | None = None

    @property
    def is_foreign(self) -> bool:
        """Tell whether the check found rows that are not like those of the fit."""
        return self.check is not None and self.check.drifted

    @property
    def parts(self) -> dict[str, Group]:
        """The groups by name; without a column that makes groups, the batch."""
        named = {name: group for name, group in self.groups.items() if name is not None}
        return named or {self.name: self.groups[None]}

    def to_dict(self) -> dict[str, object]:
        """Return what is known of the rows, ready for JSON."""
        told = {name: group.to_dict(is_foreign=self.is_foreign) for name, group in self.groups.items()}
        made = self.counts.to_dict() | told.pop(None)
        if told:
            made |= {"groups": told, "aligned": any(group["aligned"] for group in told.values())}
        return made | ({"check": self.check.to_dict()} if self.check else {})


def open_batches(job: PredictJob, text: Sequence[str]) -> dict[str, list[Table]]:
    """Open the files of the input by batch: each is one, or with --together or --by all are."""
    by = [] if job.by is None else [job.by]
    tables = [open_rows(path, job.reading, text, by) for path in shard_paths(job.input)]
    if job.together or job.by is not None:
        return {job.input.name: tables}
    names = name_domains([table.path for table in tables])
    return {name: [table] for name, table in zip(names, tables, strict=True)}


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

    def predict_batch(self, name: str, tables: Sequence[Table], write: Write) -> BatchResult:
        """Write the rows of a batch with their predictions."""
        job, model, groups, sample = self.job, self.model, self.align(tables), Sample(N_BATCH)
        counts = Counts.none(model.classes_.tolist(), job.min_confidence)
        files = name_domains([table.path for table in tables]) if len(tables) > 1 else [name]
        for table, file in zip(tables, files, strict=True):
            for frame in table:
                documents = list_texts(frame, self.text)
                predictions = self.predict(groups, self.name_groups(frame), documents)
                if self.reference is not None:
                    sample.add(documents)
                write(frame.assign(**predictions.columns(self.added, job.min_confidence, file=file)))
                counts += predictions.count(job.min_confidence)
                self.show_stage(f"predicting {table.path.name}", table.share_read)
        counts = replace(counts, bad_rows=sum(table.n_bad for table in tables))
        check = None
        if self.reference is not None and sample.documents:
            check = check_drift(model, self.reference, sample.documents, self.directions)
        return BatchResult(name, counts, groups, check)

    def name_groups(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the name of every row's group: its cell of the column that makes groups, else None."""
        names = list_texts(frame, self.job.by) if self.job.by else [None] * len(frame)
        return np.array(names, dtype=object)

    def predict(self, groups: Groups, names: np.ndarray, documents: Sequence[str]) -> Predictions:
        """Predict documents, each by the classifier of its group."""
        X, present = self.model.vectorizer_.transform(documents), dict.fromkeys(names.tolist())
        places = [np.flatnonzero(names == name) for name in present]
        parts = [
            predict_rows(groups[name].classifier, X[rows], self.target)
            for name, rows in zip(present, places, strict=True)
        ]
        return join_predictions(parts, np.argsort(np.concatenate(places)))

    def align(self, tables: Sequence[Table]) -> Groups:
        """Return the classifier of a batch, and of every group of its rows if a column makes groups.

        Reads the files once.
        """
        job, model = self.job, self.model
        as_fitted = Group(model.classifier_, Target.of(model.classifier_, self.target), AS_FITTED)
        if job.as_fitted:
            return {None: as_fitted}
        samples: dict[str | None, Sample] = {}
        for table in tables:
            for frame in table:
                names, documents = self.name_groups(frame), list_texts(frame, self.text)
                for name in dict.fromkeys(names.tolist()):
                    rows = np.flatnonzero(names == name).tolist()
                    samples.setdefault(name, Sample(N_SAMPLED)).add([documents[i] for i in rows])
                if len(samples) > MOST_GROUPS:
                    many = f"column {job.by!r} has over {MOST_GROUPS} different values"
                    raise TableError(f"{table.path}: {many}: is it the column of groups?")
                self.show_stage(f"estimating class shares of {table.path.name}", table.share_read)
        groups = {name: self.align_sample(sample, as_fitted) for name, sample in samples.items()}
        whole = as_fitted if samples else replace(as_fitted, reason="there is no row")
        return {None: whole, **groups}

    def align_sample(self, sample: Sample, as_fitted: Group) -> Group:
        """Return the classifier that follows a sample of rows, or the one of the fit and a reason."""
        fitted, target = self.model.classifier_, self.target
        X = self.model.vectorizer_.transform(sample.documents)
        known = np.flatnonzero(np.diff(X.indptr) > 0)
        n_known = round(len(known) / max(len(sample.documents), 1) * sample.n_rows)
        if n_known < LEAST_KNOWN:
            verb = "row has" if n_known == 1 else "rows have"
            return replace(as_fitted, reason=f"{n_known:,} {verb} a known word, and {LEAST_KNOWN} are needed")
        if self.holds_labelled(X, len(sample.documents) / sample.n_rows):
            return replace(as_fitted, reason="labels of its rows were learnt, and have set the threshold")
        aligned = fitted.align(X[known], target=target)
        readings: Readings = []
        if isinstance(aligned, MSDAClassifier):  # a distilled model is one reading
            no_labels = np.full(len(known), None, dtype=object)
            readings = spell_readings(aligned.weigh(X[known], no_labels, target=target))
        return Group(aligned, replace(Target.of(aligned, target), readings=readings))

    def holds_labelled(self, X: Matrix, share: float) -> bool:
        """Tell whether a sample, that share of a file, holds its portion of the rows with learnt labels."""
        classifier = self.model.classifier_
        if not isinstance(classifier, MSDAClassifier) or classifier.memory_ is None:
            return False
        labelled, _ = classifier.list_labelled(self.target)
        keys = set(key_rows(labelled))
        n_known = len(keys & set(key_rows(X, labelled.dtype)))
        return n_known > MOST_LABELLED * share * len(keys)


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


def make_report(job: PredictJob, batches: Sequence[BatchResult], target: str, fit: Target) -> Report:
    """Return the report of finished batches, beside what is known of the fit's target."""
    from ..report import Batch, Part, report_batches

    shown = [
        Batch(
            batch.name,
            batch.counts.rows,
            batch.counts.bad_rows,
            batch.counts.unknown_rows,
            batch.counts.n_doubtful,
            batch.counts.predicted_shares,
            batch.check.reasons if batch.check else None,
            [Part(name, group.known, group.reason, batch.is_foreign) for name, group in batch.parts.items()],
        )
        for batch in batches
    ]
    return report_batches(job.input.name, target, fit, shown, job.command)


def describe_predict(
    job: PredictJob, target: str, text: Sequence[str], counts: Counts, batches: Sequence[BatchResult]
) -> Iterator[str]:
    """Say what was read, predicted and written, and what a check found."""
    is_one = len(batches) == 1
    bad = f", {counts.bad_rows:,} skipped as unreadable" if counts.bad_rows else ""
    files = "" if is_one else f", {len(batches):,} files, each a batch of its own"
    yield f"Read {job.input}: {count(counts.rows, 'row')}{bad}, text = {', '.join(text)}{files}."
    if counts.unknown_rows:
        yield f"Left empty, as they have no known word: {counts.unknown_rows:,} of {counts.rows:,} rows."
    if counts.n_doubtful is not None:
        n_empty = f"{counts.n_doubtful:,} of {counts.rows:,} predictions for {job.input}"
        yield f"Left empty as doubtful (--min-confidence): {n_empty}."
    for batch in batches:
        yield from _describe_batch(batch, target, "" if is_one else f"{batch.name}: ")
    written = [describe_file(str(path)) for path in (job.out, job.report) if path]
    yield f"Wrote {', '.join(written)}."
    first = batches[0].groups[None]
    if is_one and first.reason is None and is_open(first.known.readings):
        yield "Next: answer five questions, which decide between the readings:"
        yield suggest("label", job, job.model, job.input)
    if job.check:
        foreign = [batch.name for batch in batches if batch.is_foreign]
        which = "the rows" if is_one else f"the rows of {', '.join(foreign)}"
        same = "No drift: the rows are like those that the model was adapted to."
        yield f"Drift: {which} are not what the model was adapted to." if foreign else same


def _describe_batch(batch: BatchResult, target: str, start: str) -> Iterator[str]:
    """Say which classes the rows of a batch have, and how many predictions are wrong where that is known.

    `target` is that of the fit, and `start` names the batch where there are several.
    """
    shares, has_groups = batch.counts.predicted_shares, len(batch.groups) > 1
    rows = f"{count(batch.counts.rows, 'row')}; p" if start else "P"
    predicted = f"{start}{rows}redicted: {list_shares(shares)}."
    if has_groups:
        yield predicted
    for name, group in batch.parts.items():
        said, known = f"{start}{name}:" if has_groups else predicted, group.known
        error = "" if batch.is_foreign else f"{known.expected.say()}, expected"
        if group.reason is not None:
            yield f"{said} As fitted{'' if group.reason == AS_FITTED else f': {group.reason}'}."
        elif len(shares) > MOST_TOLD and not start and not has_groups:
            yield "Class shares of these rows, predicted and estimated:"
            yield from tabulate_shares(shares, known.shares, known.intervals)
            yield from [f"Predictions: {error}."] if error else []
        else:
            estimated = list_shares(known.shares, known.intervals)
            yield f"{said} Class shares of these rows: {estimated}{error and f'; {error}'}."
        if group.reason is None:
            yield from tell_stories(known.readings, name, target)
