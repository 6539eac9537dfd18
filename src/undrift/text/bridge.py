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

A student of the labels cannot see mistakes that the vectors repeat. So the labels come with an error. That of
the vectors is their error on held-out texts of the source, times their doubt of the target over their doubt
of the source. The stories change a share of their labels. If every change is right, the error is less by that
share; if a change is as often wrong as right, it is the same. The error to expect is in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from ..core import Rows
from ..errors import UndriftError, warn
from ..inputs import missing_mask
from ..method import Given
from .languages import LANGUAGES, check_language, encode_texts
from .terms import TermVectorizer

ShowStage = Callable[[str, float | None], None]  # takes the name of a stage, and the share of it that is done

BETWEEN = "vectors and terms"
STORIES = {
    "vectors": "A sentence means the same in both languages. The mix of classes follows from it.",
    BETWEEN: "The truth is between the two other stories.",
    "vectors and terms, same mix": "The mix of classes is as in the source.",
}
MIX_PART = 1 / 3  # of the answer with means removed, in the story between
N_FOLDS = 5  # of the source, for the error of its vectors
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
    error: float  # of held-out texts, by their vectors
    doubt: float  # of logistic regression about these

    @property
    def shares(self) -> np.ndarray:
        """Share of every class."""
        return np.bincount(self.codes, minlength=len(self.classes)) / len(self.codes)


@dataclass(frozen=True, eq=False)
class Crossing:
    """What a source in another language says of every target, by the names of the targets."""

    vectorizer: TermVectorizer  # of the targets' terms
    rows: dict[str, Rows]
    teacher: dict[str, dict[str, Given]]  # labels under every story, None where a text is empty
    shares: dict[Any, float]  # of the classes in the source
    source_language: str
    languages: dict[str, str]  # of the targets

    def list_labels(self) -> dict[str, np.ndarray]:
        """Return the labels of one story for every target, that between the others where there is one."""
        return {name: told.get(BETWEEN, [*told.values()][-1]).labels for name, told in self.teacher.items()}

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that a model keeps of it."""
        return {"source_language": self.source_language, "languages": dict(self.languages)}


def cross_languages(
    documents: Sequence[str],
    y: Any,
    targets: Mapping[str, Sequence[str]],
    vectorizer: TermVectorizer,
    title: str = "the source",
    show_stage: ShowStage | None = None,
) -> Crossing:
    """Fit a vectoriser to the texts of the targets, and ask a source in another language about them.

    `title` names the source in messages.
    """
    languages = {name: check_language(texts, name) for name, texts in targets.items()}
    if show_stage is not None:
        show_stage("counting terms", None)
    rows = dict(zip(targets, vectorizer.fit_domains([*targets.values()])[0], strict=True))
    source = read_source(documents, y, title, show_stage)
    teacher: dict[str, dict[str, Given]] = {}
    for name, texts in targets.items():
        vectors = encode_texts(texts, _name_stage(name, show_stage))
        if languages[name] == source.language:
            warn(
                f"{title} and {name} are both in {source.language}: without a bridge words carry over too, "
                "often better",
                code="same-language",
            )
        stories = tell_stories(source, vectors, rows[name])
        labels = choose_labels(stories, source.classes, name, title)
        error = expect_error(source, [*stories.values()])
        teacher[name] = {
            story: Given(told, story=STORIES[story], error=error) for story, told in labels.items()
        }
    shares = dict(zip(source.classes.tolist(), source.shares.tolist(), strict=True))
    return Crossing(vectorizer, rows, teacher, shares, source.language, languages)


def expect_error(source: Source, stories: Sequence[np.ndarray]) -> float:
    """Return the error to expect of the stories' labels, from their probabilities, those of vectors first.

    Labels that differ from others with an error e on a share c of the rows err on |e - c| at least. They err
    on e where a change is as often wrong as right. This is the middle.
    """
    vectors, *_ = read = [p[~np.isnan(p[:, 0])] for p in stories]
    error = source.error * float(1 - vectors.max(axis=1).mean()) / source.doubt
    changed = [np.mean(p.argmax(axis=1) != vectors.argmax(axis=1)) for p in read]
    least = abs(error - float(np.mean(changed)))
    return min((error + least) / 2, 1 - 1 / len(source.classes))


def choose_labels(
    stories: Mapping[str, np.ndarray], classes: np.ndarray, name: str, title: str
) -> dict[str, np.ndarray]:
    """Return the labels of every story, None where a text is empty.

    A story under which every text is of one class is left out; where that is all of them, it is refused.
    """
    chosen = {}
    for story, p in stories.items():
        labels = classes.astype(object)[np.nan_to_num(p).argmax(axis=1)]
        labels[np.isnan(p[:, 0])] = None
        said = set(labels.tolist()) - {None}
        if len(said) > 1:
            chosen[story] = labels
    if not chosen:
        raise UndriftError(
            f"by its sentence vectors every text of {name} is {said.pop()!r}: either the labels of {title} "
            "are not about such texts, or the encoder does not know their language (it knows "
            f"{', '.join(LANGUAGES)})"
        )
    return chosen


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
    return Source(vectors[is_read], codes, classes, language, *hold_out(vectors[is_read], codes))


def hold_out(vectors: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Return error and doubt of logistic regression on held-out rows; 0 and 1 where a class is too small."""
    n_folds = min(N_FOLDS, int(np.bincount(codes).min()))
    if n_folds < 2:
        return 0.0, 1.0
    p = cross_val_predict(new_learner(), vectors, codes, cv=n_folds, method="predict_proba")
    return float(np.mean(p.argmax(axis=1) != codes)), float(1 - p.max(axis=1).mean())


def new_learner() -> LogisticRegression:
    """Return logistic regression on vectors; without equal weights a frequent class would be the only one."""
    return LogisticRegression(C=C, max_iter=300, class_weight="balanced")


def tell_stories(source: Source, vectors: np.ndarray, rows: Rows) -> dict[str, np.ndarray]:
    """Return the probabilities of every story for the texts of a target, NaN where they are empty.

    `rows` are the terms of the same texts.
    """
    is_read = np.flatnonzero(~np.isnan(vectors[:, 0]))
    V, T = vectors[is_read], rows[is_read]
    views = [View.learn(T, TERM_RIDGE), View.learn(V, VECTOR_RIDGE)]
    meaning, mix = ask_vectors(source, V)
    source_mix = match_shares(np.log(np.maximum(mix, 1e-12)), source.shares, 1.0)
    between = teach_each_other(views, MIX_PART * source_mix + (1 - MIX_PART) * meaning)
    same_mix = teach_each_other(views, mix, source.shares)
    stories = {}
    for name, p in zip(STORIES, (meaning, between, same_mix), strict=True):
        stories[name] = np.full((len(vectors), len(source.classes)), np.nan)
        stories[name][is_read] = p
    return stories


def ask_vectors(source: Source, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of target texts by their vectors, as they are and with means removed.

    All classes of the source count alike.
    """
    centred = source.vectors - source.vectors.mean(axis=0), vectors - vectors.mean(axis=0)
    model = new_learner()
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


def teach_each_other(views: Sequence[View], p: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
    """Return the probabilities of both views after rounds in which each learns the labels of the other.

    `shares` are those of the classes, to which `p` is made to fit; by default those of the labels of `p`.
    """
    n_classes, first = p.shape[1], _scale(np.log(np.maximum(p, LEAST_SHARE)))
    if shares is None:
        shares = np.bincount(p.argmax(axis=1), minlength=n_classes) / len(p)
    else:
        p = match_shares(first, shares)
    shares = np.maximum(shares, LEAST_SHARE)
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


def match_shares(scores: np.ndarray, shares: np.ndarray, sharpness: float = SHARPNESS) -> np.ndarray:
    """Return probabilities that rise with the scores, and whose means are the shares."""
    offset = np.log(shares)
    for _ in range(100):
        p = softmax(sharpness * scores + offset, axis=1)
        step = np.log(shares) - np.log(np.maximum(p.mean(axis=0), 1e-9))
        offset += step
        if np.abs(step).max() < 1e-3:
            break
    return p
