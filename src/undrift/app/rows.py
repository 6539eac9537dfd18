"""The rows of an adapt job on this machine: read, counted, fitted, predicted and written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from ..core import Rows as Matrix
from ..core import stack_rows
from ..errors import warn
from ..method import MSDAClassifier, predict_codes
from ..results import Baseline, Comparison, Counts
from ..text import FAR_APART, TermVectorizer, TextAdapter, cross_languages, unseen_share
from .domains import JobDomain, read_domains
from .job import AdaptJob, ShowStage
from .predictions import Predictions, join_predictions, name_said, predict_taught
from .tables import Style, common_delimiter, write_table


class LocalRows:
    """The rows of a job on this machine: files read whole, one matrix for each domain."""

    baseline: Baseline | None = None  # once a target is scored
    crossed: JobDomain | None = None  # the targets' rows with labels from another language

    def __init__(self, job: AdaptJob, show_stage: ShowStage) -> None:
        self.job, self.show_stage = job, show_stage
        self.predictions: list[Predictions] = []  # of every target, for a report or a teacher's summary
        self.X: list[Matrix] = []  # rows of every domain, after `fit`
        self.unseen: list[float | None] = []  # shares of the words of every target, after `fit`
        self._scores: dict[int, np.ndarray] = {}  # of a target's rows, by its position
        self.read()

    def read(self) -> None:
        """Read the files of every domain."""
        job, show = self.job, self.show_stage
        self.sources = read_domains(job.sources, job.reading, job.text, show, job.label)
        columns, option = job.target_labels, "--target-text" if job.sources else "--text"
        self.targets = read_domains(job.targets, job.reading, job.target_text, show, *columns, option=option)

    def fit(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on all domains; `labels` are those of the source rows, None where there is none."""
        if self.job.bridge:
            self._fit_across(adapter, labels)
            return
        self.show_stage("counting terms", None)
        vectorizer = self.count_terms(adapter)
        self.show_stage("learning", None)
        sizes = [source.n_rows for source in self.sources]
        domain = np.repeat(np.arange(len(sizes)), sizes) if len(sizes) > 1 else None
        targets = {target.name: X for target, X in zip(self.targets, self.target_rows, strict=True)}
        said = {
            name: {target.name: target.teacher[name] for target in self.targets}
            for name in self.targets[0].teacher
        }
        adapter.fit_rows(
            vectorizer,
            self.source_rows if self.sources else None,
            labels if self.sources else None,
            targets,
            sample_domain=domain,
            keeps_state=self.job.needs_state,
            teacher=said.get("teacher"),
            teacher_confidence=said.get("teacher_confidence"),
        )

    def _fit_across(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on the targets alone; sentence vectors carry the labels over from the sources."""
        documents = {target.name: target.documents for target in self.targets}
        texts = [document for source in self.sources for document in source.documents]
        title = ", ".join(source.path.name for source in self.sources)
        crossing = cross_languages(texts, labels, documents, adapter.new_vectorizer(), title, self.show_stage)
        self.show_stage("learning", None)
        adapter.fit_crossing(crossing, is_named=True, keeps_state=self.job.needs_state)
        count_terms = crossing.vectorizer.transform
        self.X = [*(count_terms(source.documents) for source in self.sources), *crossing.rows.values()]
        self.unseen = [None] * len(self.targets)
        taught = [label for told in crossing.list_labels().values() for label in told]
        everything = [document for listed in documents.values() for document in listed]
        path = Path(f"{self.sources[0].name} in {crossing.source_language}")
        self.crossed = replace(
            self.sources[0],
            path=path,
            n_rows=len(taught),
            labels=taught,
            documents=everything,
            frame=None,
            weights=None,
        )

    def count_terms(self, adapter: TextAdapter) -> TermVectorizer:
        """Choose the vocabulary, and make the rows of every domain."""
        documents = [domain.documents for domain in (*self.sources, *self.targets)]
        vectorizer = adapter.new_vectorizer()
        self.X, words = vectorizer.fit_domains(documents)
        self.unseen = compare_words(self.targets, words, vectorizer.tokens_)
        return vectorizer

    @cached_property
    def source_rows(self) -> Matrix:
        """Rows of all sources, after `fit`; of all targets where these were labelled from elsewhere."""
        if self.crossed is not None:
            return stack_rows(self.target_rows)
        return stack_rows(self.X[: len(self.sources)] or self.X)

    @property
    def target_rows(self) -> list[Matrix]:
        """Rows of each target, after `fit`."""
        return self.X[len(self.sources) :]

    def count_mistakes(self, i: int, baseline: Baseline, classifier: MSDAClassifier) -> Comparison:
        """Sum the mistakes of both models on the labelled rows of a target."""
        target = self.targets[i]
        scores = None if target.teacher else self._find_scores(classifier, i)
        return count_mistakes(self.target_rows[i], target.truth, baseline, classifier, target.name, scores)

    def _find_scores(self, classifier: MSDAClassifier, i: int) -> np.ndarray:
        """Return the scores of a target's rows, kept from the fit or computed once."""
        fitted = classifier.target_scores_[i]
        if fitted is not None:
            return fitted
        if i not in self._scores:
            X, name = self.target_rows[i], self.targets[i].name
            self._scores[i] = np.asarray(classifier.decision_function(X, target=name))
        return self._scores[i]

    def predict(
        self, classifier: MSDAClassifier
    ) -> Iterator[tuple[int, Predictions, Iterable[pd.DataFrame]]]:
        """Predict all targets in parts; yield a target's position, predictions, and tables of their rows."""
        for i, (target, X) in enumerate(zip(self.targets, self.target_rows, strict=True)):
            scores = self._find_scores(classifier, i)
            assert target.frame is not None
            yield i, predict_taught(X, target.said, classifier, target.name, scores), [target.frame]

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, kinds: Mapping[str, set[Hashable]], added: Sequence[str]
    ) -> Iterator[list[Counts]]:
        """Write predictions, put in place when the context ends, and give the counts of every target.

        `kinds` are all columns of the output, and `added` are those that are not in the files.
        """
        limit, is_kept = self.job.min_confidence, self.job.teacher or self.job.report
        counts = [Counts.none(adapter.classes_.tolist(), limit) for _ in self.targets]
        kept: list[list[Predictions]] = [[] for _ in self.targets]
        style = Style(common_delimiter(t.delimiter for t in self.targets), self.job.reading.safe_cells)
        assert self.job.out is not None  # `check_job` refuses that
        with write_table(self.job.out, kinds, style) as write:
            for i, predicted, frames in self.predict(adapter.classifier_):
                self.show_stage("writing predictions", None)
                counts[i] = counts[i] + predicted.count(limit)
                kept[i] += [predicted] if is_kept else []
                columns, start = predicted.columns(added, limit, domain=self.targets[i].name), 0
                for frame in frames:
                    rows = slice(start, start + len(frame))
                    write(frame.assign(**{name: values[rows] for name, values in columns.items()}))
                    start = rows.stop
            self.predictions = [join_predictions(parts) for parts in kept if parts]
            yield counts


def compare_words(
    targets: Sequence[JobDomain], words: Sequence[Counter[str]], tokens: str
) -> list[float | None]:
    """Return the share of each target's words that the source lacks; warn where it lacks most.

    `words` are those of every source, and then of every target; without a source nothing is compared.
    """
    n_sources = len(words) - len(targets)
    if n_sources < 1:
        return [None] * len(targets)
    known = set().union(*words[:n_sources])
    shares = [unseen_share(counts, known) for counts in words[n_sources:]]
    for target, share in zip(targets, shares, strict=True):
        if share > FAR_APART:
            warn(
                f"{share:.0%} of the {tokens} of {target.path.name} never occur in the source (overlap "
                f"{1 - share:.0%}): with so few {tokens} in common, expect little from adaptation; add "
                "--bridge if they are in different languages",
                code="far-apart",
            )
    return [None if share != share else share for share in shares]


def count_mistakes(
    X: Matrix,
    truth: np.ndarray,
    baseline: Baseline,
    classifier: MSDAClassifier,
    target: str,
    scores: np.ndarray | None = None,
) -> Comparison:
    """Compare two models on the labelled rows of a target.

    `truth` is that of a `JobDomain`. `scores` are those of the classifier for all rows, if they are known.
    """
    known = np.array([label is not None for label in truth[:, 0]], dtype=bool)
    if not known.any():
        return Comparison()
    if scores is None:
        adapted = classifier.predict(X[known], target=target, **name_said(truth[known, 2:]))
    else:
        adapted = classifier.classes_[predict_codes(scores.reshape(len(truth), -1)[known])]
    labels, weight = truth[known, 0].tolist(), truth[known, 1].astype(float)
    return Comparison.of_labels(labels, weight, baseline.predict(X[known]).tolist(), adapted.tolist())
