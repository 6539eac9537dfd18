"""Apply a saved model to new rows: every file is a target, with its class shares and threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ..core import Rows as Matrix
from ..errors import count, warn
from ..method import MSDAClassifier, Readings, is_open
from ..persist import load_text_model
from ..results import (
    MOST_TOLD,
    Batch,
    Counts,
    Target,
    describe_readings,
    list_shares,
    spell_readings,
    tabulate_shares,
)
from ..text import LEAST_KNOWN
from .domains import name_domains, open_rows, refuse_overwriting
from .drift import N_BATCH, check_drift, find_class_directions, find_reference
from .job import PredictJob, ShowStage, Summary, ignore_stage
from .labels import key_rows
from .models import TextModel, open_model, suggest
from .predictions import Classifier, list_added, predict_rows
from .tables import (
    Style,
    Table,
    check_file,
    common_delimiter,
    is_pattern,
    join_kinds,
    list_texts,
    shard_paths,
    with_added,
    write_table,
)
from .terminal import describe_file

N_SAMPLED = 1500  # rows that stand for a file
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
    tables = [open_rows(path, job.reading, text) for path in shard_paths(job.input)]
    names = name_domains([table.path for table in tables])
    files = {job.input.name: tables} if job.together else dict(zip(names, ([t] for t in tables), strict=True))
    added = list_added(job, model.classes_.tolist(), has_file=is_pattern(job.input), has_known_terms=True)
    kinds = with_added(job.input, join_kinds(table.kinds for table in tables), added)
    predictor = Predictor(job, model, target, text, list(added), show_stage)
    style = Style(common_delimiter(table.delimiter for table in tables), job.reading.safe_cells)
    with write_table(job.out, kinds, style) as write:
        batches = [predictor.predict_batch(name, batch, write) for name, batch in files.items()]
        if not any(batch.counts.rows for batch in batches):
            tables[0].require_rows()
    if job.report is not None:
        from ..report import report_batches  # brings jinja2, which takes longer than a small job

        show_stage("writing the report", None)
        fit = Target.of(model.classifier_, target)
        report_batches(job.input.name, target, fit, batches, job.command).save(job.report)
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

    def predict_batch(self, name: str, tables: Sequence[Table], write: Write) -> Batch:
        """Write the rows of a batch with their predictions."""
        job, model, sample = self.job, self.model, Sample(N_BATCH)
        classifier, known, reason = self.align(tables)
        counts = Counts.none(model.classes_.tolist(), job.min_confidence)
        files = name_domains([table.path for table in tables]) if len(tables) > 1 else [name]
        for table, file in zip(tables, files, strict=True):
            for frame in table:
                documents = list_texts(frame, self.text)
                predictions = predict_rows(classifier, model.vectorizer_.transform(documents), self.target)
                if self.reference is not None:
                    sample.add(documents)
                write(frame.assign(**predictions.columns(self.added, job.min_confidence, file=file)))
                counts += predictions.count(job.min_confidence)
                self.show_stage(f"predicting {table.path.name}", table.share_read)
        counts = replace(counts, bad_rows=sum(table.n_bad for table in tables))
        check = None
        if self.reference is not None and sample.documents:
            check = check_drift(model, self.reference, sample.documents, self.directions)
        return Batch(name, counts, known, reason, check)

    def align(self, tables: Sequence[Table]) -> tuple[Classifier, Target, str | None]:
        """Return the classifier of a batch, what is known of its rows, and why it is that of the fit, if so.

        Reads the files once.
        """
        fitted, target = self.model.classifier_, self.target
        known = Target.of(fitted, target)
        if self.job.as_fitted:
            return fitted, known, AS_FITTED
        sample = Sample(N_SAMPLED)
        for table in tables:
            for frame in table:
                sample.add(list_texts(frame, self.text))
                self.show_stage(f"estimating class shares of {table.path.name}", table.share_read)
        if not sample.n_rows:
            return fitted, known, "there is no row"
        X = self.model.vectorizer_.transform(sample.documents)
        rows = np.flatnonzero(np.diff(X.indptr) > 0)
        n_known = round(len(rows) / len(sample.documents) * sample.n_rows)
        if n_known < LEAST_KNOWN:
            verb = "row has" if n_known == 1 else "rows have"
            return fitted, known, f"{n_known:,} {verb} a known word, and {LEAST_KNOWN} are needed"
        if self.holds_labelled(X, len(sample.documents) / sample.n_rows):
            return fitted, known, "labels of its rows were learnt, and have set the threshold"
        aligned = fitted.align(X[rows], target=target)
        readings: Readings = []
        if isinstance(aligned, MSDAClassifier):  # a distilled model is one reading
            no_labels = np.full(len(rows), None, dtype=object)
            readings = spell_readings(aligned.weigh(X[rows], no_labels, target=target))
        return aligned, replace(Target.of(aligned, target), readings=readings), None

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


def describe_predict(
    job: PredictJob, target: str, text: Sequence[str], counts: Counts, batches: Sequence[Batch]
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
        shares, known = batch.counts.predicted_shares, batch.known
        rows = "" if is_one else f"{batch.name}: {count(batch.counts.rows, 'row')}; "
        said = f"{rows}{'P' if is_one else 'p'}redicted: {list_shares(shares)}."
        error = f"{batch.error.say()}, expected" if batch.error else ""
        if batch.reason is not None:
            yield f"{said} As fitted{'' if batch.reason == AS_FITTED else f': {batch.reason}'}."
            continue
        if len(shares) > MOST_TOLD and is_one:
            yield "Class shares of these rows, predicted and estimated:"
            yield from tabulate_shares(shares, known.shares, known.intervals)
            yield from [f"Predictions: {error}."] if error else []
        else:
            estimated = list_shares(known.shares, known.intervals)
            yield f"{said} Class shares of these rows: {estimated}{error and f'; {error}'}."
        yield from describe_readings(known.readings, batch.name, target)
    yield f"Wrote {', '.join(describe_file(str(path)) for path in (job.out, job.report) if path)}."
    if is_one and batches[0].reason is None and is_open(batches[0].known.readings):
        yield "Next: answer five questions, which decide between the readings:"
        yield suggest("label", job, job.model, job.input)
    if job.check:
        foreign = [batch.name for batch in batches if batch.is_foreign]
        which = "the rows" if is_one else f"the rows of {', '.join(foreign)}"
        same = "No drift: the rows are like those that the model was adapted to."
        yield f"Drift: {which} are not what the model was adapted to." if foreign else same
