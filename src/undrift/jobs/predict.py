"""Predictions as columns, and the job that applies a saved model to new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._core import Rows as Matrix
from ..classifier import predict_codes
from ..errors import warn
from ..tables import NumberColumns, Table, with_added, write_table
from ..text import TextAdapter
from .inputs import AddedColumns, read_texts, read_vectors, refuse_overwriting
from .tasks import is_rating


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of some rows of a target."""

    classes: Sequence[Any]
    codes: np.ndarray  # (n,) of the predicted classes
    score: np.ndarray  # (n,)
    probabilities: Any  # array of shape (n, n_classes); None in models of an early version
    n_known: np.ndarray  # (n,) terms of every row that the model knows

    @property
    def labels(self) -> list[Any]:
        """Predicted labels, those of doubtful rows among them."""
        return [self.classes[code] for code in self.codes]

    @property
    def probability(self) -> np.ndarray:
        """Probability of the predicted label, of shape (n,)."""
        return np.take_along_axis(self.probabilities, self.codes[:, None], axis=1)[:, 0]

    def is_doubtful(self, min_confidence: float | None) -> np.ndarray:
        """Tell which predictions are less probable than they should be; none of them without a limit."""
        if min_confidence is None:
            return np.zeros(len(self.codes), dtype=bool)
        return self.probability < min_confidence

    def columns(self, added: AddedColumns, domain: str | None = None) -> dict[str, list[Any]]:
        """Return the columns to add to the rows, doubtful predictions left empty."""
        is_empty = self.is_doubtful(added.min_confidence)
        if added.needs_known_terms:
            is_empty = is_empty | (self.n_known == 0)
        labels = zip(self.labels, is_empty.tolist(), strict=True)
        values = [[None if empty else label for label, empty in labels], self.score.tolist()]
        values += [self.probability.tolist()] if added.has_probability else []
        values += self.probabilities.T.tolist() if added.has_probabilities else []
        values += [[domain] * len(self.codes)] if added.has_domain else []
        values += [self.n_known.tolist()] if added.has_known_terms else []
        return dict(zip(added.kinds, values, strict=True))

    def count(self, min_confidence: float | None = None) -> np.ndarray:
        """Count the rows of every predicted class, then the doubtful ones.

        Last come the sums of the probability that a prediction is wrong, and of its square.
        """
        per_class = np.bincount(self.codes, minlength=len(self.classes))
        doubt = np.zeros(1) if self.probabilities is None else 1 - self.probability
        return np.array([*per_class, self.is_doubtful(min_confidence).sum(), doubt.sum(), (doubt**2).sum()])


@dataclass(frozen=True, eq=False)
class RatingPredictions(Predictions):
    """Predicted numbers; `codes` say which value of the scale each is nearest to."""

    @property
    def labels(self) -> list[float]:
        """Predicted numbers."""
        return self.score.tolist()


@dataclass(frozen=True, eq=False)
class TagPredictions(Predictions):
    """Predicted tags: `codes` has a column for each tag, 1 where it is predicted."""

    separator: str = "|"

    @property
    def labels(self) -> list[str]:
        """Predicted tags, joined by the separator; empty where there are none."""
        return [self.separator.join(np.array(self.classes)[row > 0].tolist()) for row in self.codes]

    @property
    def probability(self) -> np.ndarray:
        """Probability that all tags of a row are right, if they do not depend on each other."""
        return np.round(np.where(self.codes > 0, self.probabilities, 1 - self.probabilities).prod(axis=1), 6)

    def count(self, min_confidence: float | None = None) -> np.ndarray:
        """Count the rows of every predicted tag; the rest as for classes."""
        doubt = 1 - self.probability
        sums = [self.is_doubtful(min_confidence).sum(), doubt.sum(), (doubt**2).sum()]
        return np.array([*self.codes.sum(axis=0), *sums])


def score_rows(
    classifier: Any, X: Matrix, number: int | None = None, vectors: np.ndarray | None = None
) -> np.ndarray:
    """Scores of rows of the target `number`, as `decision_function` or, for ratings, `predict` has them."""
    score = classifier.predict if is_rating(classifier) else classifier.decision_function
    return np.asarray(score(X, sample_domain=number, **({} if vectors is None else {"extra": vectors})))


def predict_rows(
    adapter: TextAdapter,
    X: Matrix,
    number: int | None = None,
    vectors: np.ndarray | None = None,
    scores: np.ndarray | None = None,
) -> Predictions:
    """Predict rows of the target `number`, in one pass through the layers; numbers have six digits.

    `scores` are those of `score_rows`, if they are known.
    """
    classifier = adapter.classifier_
    scores = score_rows(classifier, X, number, vectors) if scores is None else scores
    if is_rating(classifier):
        score, scale = np.round(scores, 6), adapter.classes_
        codes = np.abs(score[:, None] - scale).argmin(axis=1)
        return RatingPredictions(scale.tolist(), codes, score, None, np.diff(X.indptr))
    probabilities = None
    if has_probabilities(adapter):
        probabilities = np.round(classifier.scores_to_proba(scores, number), 6)
    if getattr(classifier, "multilabel_", False):
        codes, score = (scores > 0).astype(int), np.round(scores.max(axis=1), 6)
        tags, separator = adapter.classes_.tolist(), getattr(adapter, "separator_", "|")
        return TagPredictions(tags, codes, score, probabilities, np.diff(X.indptr), separator)
    scores = scores.reshape(X.shape[0], -1)
    labels, score = classifier.classes_.tolist(), np.round(scores.max(axis=1), 6)
    return Predictions(labels, predict_codes(scores), score, probabilities, np.diff(X.indptr))


def has_probabilities(adapter: TextAdapter) -> bool:
    """Tell whether a model has probabilities: those of an early version have scores alone."""
    return hasattr(adapter.classifier_, "temperature_")


@dataclass(frozen=True, eq=False)
class WrittenPredictions:
    """What was written for every target."""

    counts: list[np.ndarray]  # sums over its rows, as `Predictions.count` returns them
    predictions: Sequence[dict[str, Any]] = ()  # those that a report needs


class PredictProgress(NamedTuple):
    """How far `run_predict` has come."""

    n_rows: int
    share_read: float
    n_doubtful: int = 0  # predictions left empty


def run_predict(
    adapter: TextAdapter,
    table: Table,
    text: str | Sequence[str],
    out: Path,
    prefix: str = "",
    domain: str | None = None,
    *,
    probabilities: bool = False,
    min_confidence: float | None = None,
    batch: Any = None,
    embedding: str | None = None,
) -> Iterator[PredictProgress]:
    """Predict a table block by block; yields the rows written so far and the share of the table read.

    Rows are predicted as those of the target `domain`. Without it, a model of several targets uses the
    average of their intercepts, and a warning says so. With a `batch` (see `drift`) rows are added to it, and
    predictions of rows without any known term are left empty.
    """
    number, text = find_domain(adapter, domain), choose_columns(adapter, text)
    table.require_column(text)
    check_embedding(adapter, embedding)
    refuse_overwriting(out, [table.path])
    added = _plan_columns(adapter, prefix, probabilities, min_confidence, batch is not None)
    columns = with_added(table.path, table.columns, list(added.kinds))
    n_doubtful = 0
    with write_table(out, columns, kinds={**table.kinds, **added.kinds}) as writer:
        for rows in table:
            documents = read_texts(table, rows, text, writer.n_rows)
            X = adapter.vectorizer_.transform(documents)
            vectors = None if embedding is None else read_vectors(table, rows, embedding, writer.n_rows)
            predictions = predict_rows(adapter, X, number, vectors)
            if batch is not None:
                batch.add(X, documents, predictions)
            writer.write(rows.with_columns(predictions.columns(added)))
            n_doubtful += int(predictions.is_doubtful(min_confidence).sum())
            yield PredictProgress(writer.n_rows, rows.share_read, n_doubtful)


def check_embedding(adapter: TextAdapter, embedding: str | None) -> None:
    """Refuse to go on without the embeddings that a model was fitted with, or with some where it was not."""
    if (embedding is None) == bool(getattr(adapter.classifier_, "n_extra_features_in_", ())):
        need = "was fitted with embeddings: name their column with" if embedding is None else "has none: drop"
        raise ValueError(f"the model {need} --embedding")


def choose_columns(adapter: TextAdapter, text: str | Sequence[str]) -> str | Sequence[str]:
    """Return the columns that a model reads: those of the text, or the numbers that it was learnt from."""
    columns = getattr(adapter.vectorizer_, "columns", None)
    if columns is not None and text:
        raise ValueError("the model was learnt from columns of numbers: drop --text")
    if columns is None and not text:
        raise ValueError("Missing option '--text'")
    return text if columns is None else NumberColumns(columns)


def _plan_columns(
    adapter: TextAdapter, prefix: str, probabilities: bool, min_confidence: float | None, is_checked: bool
) -> AddedColumns:
    """Return the columns to add; a model without probabilities is refused if they are asked for."""
    if is_rating(adapter.classifier_):
        if probabilities or min_confidence is not None:
            raise ValueError("ratings have no probabilities: leave out --probabilities and --min-confidence")
    elif not has_probabilities(adapter):
        lacking = "the model was saved by an earlier version without probabilities"
        if probabilities or min_confidence is not None:
            raise ValueError(f"{lacking}: fit it again, or leave out --probabilities and --min-confidence")
        warn(f"{lacking}: there is no column 'probability'")
    return AddedColumns(
        adapter.classes_.tolist(),
        prefix,
        has_probability=has_probabilities(adapter),
        has_probabilities=probabilities,
        min_confidence=min_confidence,
        has_known_terms=True,
        needs_known_terms=is_checked,
        kind="float" if is_rating(adapter.classifier_) else None,
    )


def find_domain(adapter: TextAdapter, name: str | None) -> int | None:
    """Return the number of the target called `name`; without a name None, and a warning if it matters."""
    names = getattr(adapter, "domain_names_", [])
    if name in names:
        return -1 - names.index(name)
    if name is not None:
        known = f"its target domains are {', '.join(names)}" if names else "it does not name its domains"
        raise ValueError(f"the model has no target domain {name!r}: {known}")
    n_targets = sum(number < 0 for number in adapter.classifier_.domains_)
    if n_targets > 1:
        choice = f"choose one with --domain: {', '.join(names)}" if names else "it does not name them"
        warn(
            f"the model was adapted to {n_targets} target domains, and the rows are predicted with the "
            f"average of their intercepts; {choice}",
        )
    return None
