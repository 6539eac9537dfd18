"""Tell whether new rows are like the rows that a model was adapted to.

Two numbers of every row are compared. The first is the share of its terms that the vocabulary lacks. The
second is its position along the difference of the batch and the fit: half of the batch gives the direction,
and the other half is compared. Rows of the fit are measured as if they were new, without the terms that they
alone contain and without their part of the mean. So they are exchangeable with new rows of the same kind, and
a rank test (Mann and Whitney) keeps its level. What tells the classes apart, as far as the model knows it, is
left out of the difference, since predictions follow another mix of classes. A large change of it is noticed.
`lab/scripts/drift.py` measures false alarms, and how often other domains are noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from scipy import sparse, stats
from sklearn.preprocessing import normalize

from ..core import Rows as Matrix
from ..results import Drift, Measure
from ..text import DistilledText, TextAdapter

TextModel = TextAdapter | DistilledText
LEVEL = 0.005  # probability that a test rejects by chance; there are two
LEAST_UNSEEN = 0.01  # difference of the shares of unknown terms that counts
N_REFERENCE = 500  # rows of the fit that are kept as a reference
N_BATCH = 2000  # rows of a batch that are tested


class Reference(TypedDict):
    """What a model file keeps of the target of a fit, to compare a batch with."""

    n: int
    mean: np.ndarray
    is_known: np.ndarray
    rows: sparse.csr_array
    squares: np.ndarray  # products of these rows with themselves in the mean
    unseen_terms: np.ndarray


def describe_target(model: TextModel, documents: Sequence[str]) -> Reference:
    """Return the reference that a later check needs of a target, from documents of it.

    Terms count as known from `least` documents on: so many that all such terms are in the vocabulary. For a
    document of the fit that means one document more, its own.
    """
    frequency = np.rint((1 + len(documents)) / np.exp(model.vectorizer_.idf_ - 1) - 1)
    frequency = getattr(model.vectorizer_, "document_frequency_", frequency)
    least = int(frequency.min()) + 1
    chosen = np.random.default_rng(0).permutation(len(documents))[:N_REFERENCE]
    X = sparse.csr_array(model.vectorizer_.transform(documents))
    rows, held_out = keep_terms(X, frequency >= least), keep_terms(X[chosen], frequency > least)
    squares = np.asarray(held_out.multiply(rows[chosen]).sum(axis=1)).ravel()
    terms = np.array(model.terms_, dtype=object)
    unseen = measure_unseen(model, [documents[i] for i in chosen], terms[frequency > least])
    return {
        "n": len(documents),
        "mean": np.asarray(rows.sum(axis=0)).ravel().astype(np.float32) / len(documents),
        "is_known": frequency >= least,
        "rows": held_out.astype(np.float32),
        "squares": squares.astype(np.float32),
        "unseen_terms": unseen[~np.isnan(unseen)],
    }


def keep_terms(X: Matrix, is_kept: np.ndarray) -> sparse.csr_array:
    """Return rows of length 1 with some of the terms alone."""
    kept = sparse.csr_array(X) @ sparse.diags_array(is_kept.astype(X.dtype), format="csr")
    return sparse.csr_array(normalize(kept))


def measure_unseen(model: TextModel, documents: Sequence[str], terms: Sequence[str]) -> np.ndarray:
    """Return the share of terms that are not among `terms`, of every document; NaN without any term."""
    known = set(terms)
    analyse = model.vectorizer_.build_analyzer()
    lists = [analyse(document) for document in documents]
    shares = [sum(term not in known for term in each) / len(each) if each else np.nan for each in lists]
    return np.array(shares, dtype=np.float32)


def find_reference(model: TextModel, target: str) -> Reference:
    """Return the reference of a target that a model holds."""
    reference = model.facts_.get("references", {}).get(target)
    if reference is None:
        raise ValueError(
            "--check compares with the rows of the fit, and the model holds none of them: save it with "
            "`undrift adapt --model`"
        )
    return reference


def find_class_directions(model: TextModel, reference: Reference, target: str) -> np.ndarray:
    """Return orthonormal directions along which the classes differ in the fit: (n_terms, n_classes - 1).

    Classes are those that the model predicts for the rows of the reference, by their probabilities.
    """
    length = getattr(model.vectorizer_, "length", 1.0)
    rows = reference["rows"]
    p = model.classifier_.predict_proba(sparse.csr_array(rows * np.float32(length)), target=target)
    return span_classes(rows, p)


def span_classes(rows: sparse.csr_array, p: np.ndarray) -> np.ndarray:
    """Return orthonormal directions along which rows of class probabilities `p` differ by class."""
    return np.linalg.qr(rows.T @ (p - p.mean(axis=0))[:, 1:])[0]


def check_drift(
    model: TextModel, reference: Reference, documents: Sequence[str], directions: np.ndarray | None = None
) -> Drift:
    """Compare documents, a sample of a batch, with the fit.

    Differences along `directions`, those of the classes, do not count.
    """
    documents = [documents[i] for i in np.random.default_rng(0).permutation(len(documents))]
    is_known, fitted = reference["is_known"], reference["unseen_terms"]
    unseen = measure_unseen(model, documents, np.array(model.terms_, dtype=object)[is_known])
    unseen = unseen[~np.isnan(unseen)]
    batch, fit = _mean(unseen), _mean(fitted)
    p = _compare(unseen, fitted)
    unknown = Measure(batch, fit, p, drifted=p < LEVEL and batch - fit >= LEAST_UNSEEN)
    rows = keep_terms(model.vectorizer_.transform(documents), is_known).astype(np.float32)
    if directions is None:
        directions = np.zeros((rows.shape[1], 0))
    first, second = _project(rows, reference, directions)
    p, beyond = _compare(first, second), _mean(first > np.median(second))
    return Drift({"unseen_terms": unknown, "difference": Measure(beyond, 0.5, p, drifted=p < LEVEL)})


def _project(rows: sparse.csr_array, fit: Reference, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of half of the rows, and of the reference, along the other half's difference.

    The difference is orthogonal to the directions.
    """
    centre = np.asarray(rows[::2].mean(axis=0)).ravel()
    along = directions @ (directions.T @ (centre - fit["mean"]))
    others = (fit["n"] * (fit["rows"] @ fit["mean"]) - fit["squares"]) / max(fit["n"] - 1, 1)
    return rows[1::2] @ (centre - fit["mean"] - along), fit["rows"] @ (centre - along) - others


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def _compare(batch: np.ndarray, fit: np.ndarray) -> float:
    """Return the p-value of the test that values of the batch are not above those of the fit."""
    if not len(batch) or not len(fit):
        return 1.0
    return float(stats.mannwhitneyu(batch, fit, alternative="greater").pvalue)
