"""Rows of an adapt job on this machine: fitted, scored and written with their predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Rows as Matrix
from ..core import stack_rows
from ..errors import warn
from ..inputs import gather_rows, spell_label
from ..method import predict_codes
from ..scoring import fitted_svm
from ..text import TermVectorizer, TextAdapter, interleave
from .domains import read_domains
from .job import Job, ShowStage
from .predict import Predictions, predict_rows
from .tables import write_table


class LocalRows:
    """The rows of a job on this machine: files read whole, one matrix for each domain."""

    baseline: Any = None  # once a target is scored

    def __init__(self, job: Job, show_stage: ShowStage) -> None:
        self.job, self.show_stage = job, show_stage
        self.predictions: list[Predictions] = []  # of every target, once they are written
        self.cross_fitted: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}  # see `DomainRows`
        self._scores: dict[int, np.ndarray] = {}  # of a target's rows, by its position
        self.read()

    def read(self) -> None:
        """Read the files of every domain."""
        given = self.job.reading, self.job.text
        self.sources = read_domains(self.job.sources, *given, self.job.label, self.show_stage)
        self.targets = read_domains(self.job.targets, *given, self.job.target_label, self.show_stage)

    def fit(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on all domains; `labels` are those of the source rows, None where there is none."""
        self.show_stage("counting terms", None)
        vectorizer = self.count_terms(adapter)
        self.show_stage("learning", None)
        sizes = [source.n_rows for source in self.sources]
        domain = np.repeat(np.arange(len(sizes)), sizes) if len(sizes) > 1 else None
        targets = {target.name: X for target, X in zip(self.targets, self.target_rows, strict=True)}
        options: dict[str, Any] = {"sample_domain": domain, "keeps_state": self.job.needs_state}
        for name in self.targets[0].teacher:
            options[name] = {target.name: target.teacher[name] for target in self.targets}
        source = (self.source_rows, labels) if self.sources else (None, None)
        adapter.fit_rows(vectorizer, *source, targets, **options)

    def count_terms(self, adapter: TextAdapter) -> TermVectorizer:
        """Choose the vocabulary, and make the rows of every domain."""
        documents = [domain.documents for domain in (*self.sources, *self.targets)]
        vectorizer = adapter.new_vectorizer().fit(interleave(documents))
        self.X = [vectorizer.transform(each) for each in documents]
        return vectorizer

    @cached_property
    def source_rows(self) -> Any:
        """Rows of all sources, after `fit`; without a source, of all targets, which a teacher labelled."""
        return stack_rows(self.X[: len(self.sources)] or self.X)

    @property
    def target_rows(self) -> list[Any]:
        """Rows of each target, after `fit`."""
        return self.X[len(self.sources) :]

    def count_mistakes(self, i: int, baseline: Any, classifier: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong."""
        target, scores = self.targets[i], self._add_teacher(classifier, i)
        return count_mistakes(self.target_rows[i], target.truth, baseline, classifier, target.name, scores)

    def _find_scores(self, classifier: Any, i: int) -> np.ndarray:
        """Return the scores of a target's rows: those that the fit left, or else computed once."""
        fitted = classifier.target_scores_
        if fitted is not None and fitted[i] is not None:
            return fitted[i]
        if i not in self._scores:
            X, name = self.target_rows[i], self.targets[i].name
            self._scores[i] = np.asarray(classifier.decision_function(X, target=name))
        return self._scores[i]

    def _add_teacher(self, classifier: Any, i: int) -> np.ndarray:
        """Return the scores of student and teacher together; without a teacher, those of the model."""
        target = self.targets[i]
        if not target.teacher:
            return self._find_scores(classifier, i)
        return classifier.decision_function(self.target_rows[i], target=target.name, **target.teacher)

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, kinds: dict[str, Any], added: Sequence[str]
    ) -> Iterator[list[np.ndarray]]:
        """Write predictions, put in place when the context ends, and give the counts of every target.

        `kinds` are all columns of the output, and `added` are those that are not in the files.
        """
        classifier, limit = adapter.classifier_, self.job.min_confidence
        for i, (target, X) in enumerate(zip(self.targets, self.target_rows, strict=True)):
            predicted = predict_rows(classifier, X, target.name, self._add_teacher(classifier, i))
            if target.teacher:
                student = predict_rows(classifier, X, target.name, self._find_scores(classifier, i)).labels
                pairs = zip(target.teacher["teacher"], student, strict=True)
                disagrees = [None if label is None else label != answer for label, answer in pairs]
                predicted = replace(predicted, student=student, disagrees=disagrees)
            self.predictions.append(predicted)
        with write_table(self.job.out, kinds) as write:
            for target, predicted in zip(self.targets, self.predictions, strict=True):
                self.show_stage("writing predictions", None)
                assert target.frame is not None
                write(target.frame.assign(**predicted.columns(added, limit, target.name)))
            yield [predicted.count(limit) for predicted in self.predictions]


def sample_rows(X: Any, n_rows: int) -> Matrix:
    """Draw rows that stand for all, without replacement; those on a cluster are brought here."""
    positions = np.random.default_rng(0).permutation(X.shape[0])[:n_rows]
    order = np.sort(positions)
    return gather_rows(X[order])[np.searchsorted(order, positions)]


def fit_baseline(X: Any, labels: Sequence[Any]) -> Any:
    """Fit the baseline: a linear SVM on the labelled source rows, its C chosen by cross-validation."""
    is_labelled = np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    return fitted_svm(gather_rows(X[is_labelled]), y)


def count_mistakes(
    X: Matrix, truth: np.ndarray, baseline: Any, classifier: Any, target: str, scores: Any = None
) -> np.ndarray:
    """Sum over the rows of a target that have a label, as `sum_mistakes`; sums of blocks add.

    `truth` has the label, None where there is none, and the weight of every row. `scores` are those of the
    classifier for all rows, if they are known.
    """
    known = np.array([label is not None for label in truth[:, 0]], dtype=bool)
    if not known.any():
        return np.zeros(6)
    if scores is None:
        adapted = classifier.predict(X[known], target=target)
    else:
        adapted = classifier.classes_[predict_codes(scores.reshape(len(truth), -1)[known])]
    predicted = baseline.predict(X[known]).tolist(), adapted.tolist()
    return sum_mistakes(truth[known, 0].tolist(), truth[known, 1].astype(float), *predicted)


def sum_mistakes(y: Sequence[Any], weight: np.ndarray, *predicted: Sequence[Any]) -> np.ndarray:
    """Sum over rows with the labels y, and over the mistakes of two models.

    Returns the number of rows; sums of their weights, of the squares of these, of the weights of the first
    model's mistakes, of the second's, and of those of both.
    """
    truth = np.array([spell_label(label) for label in y])
    first, second = (np.array([spell_label(label) for label in labels]) != truth for labels in predicted)
    sums = [weight.sum(), (weight**2).sum(), weight @ first, weight @ second, weight @ (first & second)]
    return np.array([len(truth), *sums])


def share_labels(truth: np.ndarray, classes: Sequence[Any]) -> dict[str, float]:
    """Return the share of every class among the rows with a label, by their weights; `truth` as above.

    Warns where no label of the target is a label of the source.
    """
    sums: dict[str, float] = {}
    for label, weight in truth:
        if label is not None:
            sums[spell_label(label)] = sums.get(spell_label(label), 0.0) + weight
    names = [spell_label(label) for label in classes]
    if not set(sums) & set(names):
        theirs, ours = (", ".join(each[:3]) + ", ..." * (len(each) > 3) for each in (sorted(sums), names))
        which = f"none of the target's labels ({theirs}) is one of the source's ({ours})"
        warn(f"{which}: every prediction counts as wrong")
    return {name: sums.get(name, 0.0) / sum(sums.values()) for name in names}
