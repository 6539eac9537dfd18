"""A teacher from another language: sentence vectors carry the labels of a source over to a target.

Logistic regression on the vectors of labelled source texts labels every target text. It is asked twice: about
the vectors as they are, and with the mean of each language removed, which assumes the same mix of classes.
Neither answer is right everywhere. So there are three *stories* (:data:`STORIES`): the first answer, one
between both, and the second. Each is a teacher by itself, whose student is a reading of the target. Readings
vote, and a few labels tell which story is right.

In the last two stories two views of the target teach each other (Blum and Mitchell, 1998): the vectors, and
the terms of its texts. Each learns the labels of the other, by least squares, and answers for rows that it
has not learnt. The class shares stay those of the story. The labels are those of both views and of the answer
that they began with. In the first story they would make a frequent class more frequent still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from ..core import Rows
from ..errors import UndriftError, warn
from ..inputs import missing_mask
from .languages import check_language, encode_texts

ShowStage = Callable[[str, float | None], None]  # takes the name of a stage, and the share of it that is done

BETWEEN = "vectors and terms"
STORIES = ("vectors", BETWEEN, "vectors and terms, same mix")
MIX_PART = 1 / 3  # of the answer with means removed, in the story between
C = 1.0  # weight of the errors of logistic regression on vectors of length 1
N_ROUNDS = 2  # in which both views learn from each other
FIRST_PART = 0.5  # of the first answer, against the mean of both views
TERM_RIDGE, VECTOR_RIDGE = 1.0, 0.3  # for inner products of mean square norm 1
SHARPNESS = 4.0  # log odds at one standard deviation of a view's scores
MOST_ROWS = 2_000  # of a target, that the views learn from
BLOCK = 4_096  # rows whose inner products are computed at once
LEAST_SHARE = 1e-3  # of a class in a story


@dataclass(frozen=True, eq=False)
class Source:
    """Vectors of the labelled source texts."""

    vectors: np.ndarray  # (n, 512)
    codes: np.ndarray  # (n,) positions in `classes`
    classes: np.ndarray  # in sorted order
    language: str


@dataclass(frozen=True, eq=False)
class Crossing:
    """What a source in another language says of every target, by the names of the targets."""

    teacher: dict[str, dict[str, np.ndarray]]  # labels under every story, None where a text is empty
    source_language: str
    languages: dict[str, str]  # of the targets

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that a model keeps of it."""
        return {"source_language": self.source_language, "languages": dict(self.languages)}


def cross_languages(
    documents: Sequence[str],
    y: Any,
    targets: Mapping[str, Sequence[str]],
    rows: Mapping[str, Rows],
    title: str = "the source",
    show_stage: ShowStage | None = None,
) -> Crossing:
    """Ask a source in another language about the texts of every target, whose terms are `rows`.

    `title` names the source in messages.
    """
    languages = {name: check_language(texts, name) for name, texts in targets.items()}
    source = read_source(documents, y, title, show_stage)
    teacher: dict[str, dict[str, np.ndarray]] = {}
    for name, texts in targets.items():
        vectors = encode_texts(texts, _name_stage(name, show_stage))
        if languages[name] == source.language:
            warn(
                f"{title} and {name} are both in {source.language}: without a bridge words carry over too, "
                "often better",
                code="same-language",
            )
        stories = tell_stories(source, vectors, rows[name])
        teacher[name] = {story: _choose_labels(p, source.classes) for story, p in stories.items()}
    return Crossing(teacher, source.language, languages)


def _choose_labels(p: np.ndarray, classes: np.ndarray) -> np.ndarray:
    labels = classes.astype(object)[np.nan_to_num(p).argmax(axis=1)]
    labels[np.isnan(p[:, 0])] = None
    return labels


def _name_stage(title: str, show_stage: ShowStage | None) -> Any:
    return None if show_stage is None else partial(show_stage, f"reading {title} across languages")


def read_source(documents: Sequence[str], y: Any, title: str, show_stage: ShowStage | None = None) -> Source:
    """Return the vectors of the labelled texts; refuse texts that cannot be read, or of one class."""
    labels = np.empty(len(documents), dtype=object)
    labels[:] = list(y)
    known = np.flatnonzero(~missing_mask(labels))
    texts = [documents[i] for i in known.tolist()]
    if not texts:
        raise UndriftError(f"{title} has no label: a bridge carries labels from one language to another")
    language = check_language(texts, title)
    vectors = encode_texts(texts, _name_stage(title, show_stage))
    is_read = ~np.isnan(vectors[:, 0])
    classes, codes = np.unique(np.array(labels[known[is_read]].tolist()), return_inverse=True)
    if len(classes) < 2:
        raise UndriftError(f"{title} has labels of one class alone; a bridge needs two at least")
    return Source(vectors[is_read], codes, classes, language)


def tell_stories(source: Source, vectors: np.ndarray, rows: Rows) -> dict[str, np.ndarray]:
    """Return the probabilities of every story for the texts of a target, NaN where they are empty.

    `rows` are the terms of the same texts.
    """
    is_read = np.flatnonzero(~np.isnan(vectors[:, 0]))
    V, T = vectors[is_read], rows[is_read]
    views = [View.learn(T, TERM_RIDGE), View.learn(V, VECTOR_RIDGE)]
    meaning, mix = ask_vectors(source, V)
    between = teach_each_other(views, MIX_PART * mix + (1 - MIX_PART) * meaning)
    stories = {}
    for name, p in zip(STORIES, (meaning, between, teach_each_other(views, mix)), strict=True):
        stories[name] = np.full((len(vectors), len(source.classes)), np.nan)
        stories[name][is_read] = p
    return stories


def ask_vectors(source: Source, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of target texts by their vectors, as they are and with means removed."""
    centred = source.vectors - source.vectors.mean(axis=0), vectors - vectors.mean(axis=0)
    model = LogisticRegression(C=C, max_iter=300)
    meaning = model.fit(source.vectors, source.codes).predict_proba(vectors)
    return meaning, model.fit(centred[0], source.codes).predict_proba(centred[1])


@dataclass(frozen=True, eq=False)
class View:
    """Least squares on one description of the rows; scores of a row are by the labels of the others."""

    drawn: np.ndarray  # the rows that are learnt from
    inverse: np.ndarray  # (n_drawn, n_drawn) of their inner products, with the ridge on the diagonal
    X: Any
    scale: float

    @classmethod
    def learn(cls, X: Any, ridge: float) -> View:
        """Prepare the least squares of any labels."""
        n = X.shape[0]
        drawn = np.arange(n)
        if n > MOST_ROWS:
            drawn = np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])
        K = _multiply(X[drawn], X[drawn])
        scale = float(np.mean(np.diag(K))) or 1.0
        return cls(drawn, np.linalg.inv(K / scale + ridge * np.eye(len(K))), X, scale)

    def score(self, labels: np.ndarray) -> np.ndarray:
        """Score all rows by labels of shape (n, n_classes); scores have the mean square 1."""
        weights = self.inverse @ labels[self.drawn]
        scores = np.empty(labels.shape)
        for start in range(0, len(scores), BLOCK):
            part = slice(start, start + BLOCK)
            scores[part] = _multiply(self.X[part], self.X[self.drawn]) @ weights / self.scale
        scores[self.drawn] = labels[self.drawn] - weights / np.diag(self.inverse)[:, None]
        return _scale(scores)


def _multiply(A: Any, B: Any) -> np.ndarray:
    product = A @ B.T
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)


def teach_each_other(views: Sequence[View], p: np.ndarray) -> np.ndarray:
    """Return the probabilities of both views after rounds in which each learns the labels of the other."""
    n_classes, first = p.shape[1], _scale(np.log(np.maximum(p, LEAST_SHARE)))
    shares = np.maximum(np.bincount(p.argmax(axis=1), minlength=n_classes) / len(p), LEAST_SHARE)
    for _ in range(N_ROUNDS):
        said = []
        for view in views:
            labels = np.eye(n_classes)[p.argmax(axis=1)] - 1 / n_classes
            said.append(view.score(labels))
            p = match_shares(said[-1], shares / shares.sum())
        both = (said[0] + said[1]) / 2 + FIRST_PART * first
        p = match_shares(both, shares / shares.sum())
    return p


def _scale(scores: np.ndarray) -> np.ndarray:
    """Return scores without their mean over classes, of mean square 1."""
    scores = scores - scores.mean(axis=1, keepdims=True)
    return scores / (np.sqrt(np.mean(scores**2)) or 1.0)


def match_shares(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return probabilities that rise with the scores, and whose means are the shares."""
    offset = np.log(shares)
    for _ in range(100):
        p = softmax(SHARPNESS * scores + offset, axis=1)
        step = np.log(shares) - np.log(np.maximum(p.mean(axis=0), 1e-9))
        offset += step
        if np.abs(step).max() < 1e-3:
            break
    return p
