"""Explain a classifier: the terms that reconstruct a term, and the weight of each term.

Results are JSON-ready data: lists of terms with numbers. `terms` are the names of the features, and `term` is
one of them; a classifier is a fitted MSDAClassifier or DistilledClassifier.

Examples
--------
>>> import numpy as np
>>> from undrift import MSDAClassifier
>>> from undrift.explain import document_terms, reconstruction, term_weight, top_terms
>>> terms = ["good", "bad", "sturdy", "flimsy"]
>>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
>>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
>>> reconstruction(classifier.representation_, terms, "sturdy", 1)["from"][0][0]
'good'
>>> term_weight(classifier, terms, "sturdy")["outputs"][0]["favours"]
'yes'
>>> [row["term"] for row in top_terms(classifier, terms, only_new=True)]
['flimsy', 'sturdy']
>>> [row["term"] for row in document_terms(classifier, terms, Z[:1])]
['good', 'sturdy']
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TypeAlias, TypedDict

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils.validation import check_is_fitted

from .core import Rows
from .inputs import as_array, check_matrix
from .method import MSDAClassifier, Name, Predictor
from .msda import MSDA

__all__ = ["document_terms", "reconstruction", "term_weight", "top_terms"]


Weighted: TypeAlias = tuple[str, float]  # a term and its weight
Links = TypedDict("Links", {"term": str, "from": list[Weighted], "to": list[Weighted]})
Output = TypedDict(
    "Output", {"class": Name, "weight": float, "favours": Name | None, "direct": float, "rank": int}
)
Strong = TypedDict("Strong", {"class": Name, "term": str, "weight": float, "n_labelled": int | None})


class Weight(TypedDict):
    """The weight of a term."""

    term: str
    n_labelled: int | None
    outputs: list[Output]


class Effect(TypedDict):
    """The effect of a term on one prediction."""

    term: str
    effect: float
    n_labelled: int | None


def reconstruction(stack: MSDA, terms: Sequence[str], term: str, k: int = 10) -> Links:
    """Return the k terms that reconstruct `term` in the first layer, and the k terms that it reconstructs.

    `stack` is a fitted MSDA, such as the ``representation_`` of a classifier. The result has ``term``, and
    ``from`` and ``to``, lists of ``(term, weight)`` by decreasing weight. ``from`` is empty for a term that
    is no pivot.

    Returns
    -------
    dict
    """
    coef, j = stack.layers_[0].coef, position_of(term, terms)
    outputs = getattr(stack, "pivots_", np.arange(len(terms)))
    if coef.shape != (len(terms), len(outputs)):
        raise ValueError(f"a layer of shape {coef.shape} does not map the {len(terms)} terms")
    column, every_term = np.flatnonzero(outputs == j), np.arange(len(terms))
    return {
        "term": term,
        "from": _strongest_terms(coef[:, column[0]], every_term, terms, j, k) if len(column) else [],
        "to": _strongest_terms(coef[j], outputs, terms, j, k),
    }


def position_of(term: str, terms: Sequence[str]) -> int:
    """Return the column of `term`; the error for an unknown one suggests similar terms."""
    try:
        return list(terms).index(term)
    except ValueError:
        near = get_close_matches(term, list(terms), n=3, cutoff=0.75)
        hint = f"; did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
        raise LookupError(f"{term!r} is not among the {len(terms):,} terms of this model{hint}") from None


def _strongest_terms(
    weights: np.ndarray, features: np.ndarray, terms: Sequence[str], excluded: int, k: int
) -> list[Weighted]:
    """Return the k largest weights of `features` with their terms, without the term `excluded`."""
    order = [i for i in np.argsort(-weights.round(5), kind="stable")[: k + 1] if features[i] != excluded]
    return [(terms[features[i]], round(float(weights[i]), 6)) for i in order[:k]]


def effective_weights(classifier: Predictor) -> np.ndarray:
    """Return the weight of every feature through all layers, of shape (d, n_outputs).

    It is the slope of the score at the mean target row: positive favours the second of two classes, or the
    output's class. A feature that no labelled source row has gets its weight from the features that it
    reconstructs.
    """
    check_is_fitted(classifier)
    if isinstance(classifier, MSDAClassifier):
        return _slopes_at_mean(classifier)[0]
    return classifier.model_.coef[0].astype(np.float64)


def _slopes_at_mean(classifier: MSDAClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes of the outputs at the mean row of the first target, (d, n_outputs): whole and direct.

    The direct ones are those of the input block alone.
    """
    n_classes, names = len(classifier.classes_), classifier.target_names_
    toward = np.array([[-1.0, 1.0]]) if n_classes == 2 else np.eye(n_classes)
    rows = np.tile(classifier.input_mean_, (len(toward), 1))
    H = _list_hidden(classifier, rows)
    slope = _differentiate_scores(classifier, H, toward, names[0] if names else None)
    return _backpropagate(classifier, H, slope).T, (slope @ classifier.model_.coef[0].T).T


def _list_hidden(classifier: MSDAClassifier, rows: np.ndarray) -> list[np.ndarray]:
    """Return rows, and what every layer makes of them."""
    H = [rows]
    for layer in classifier.representation_.layers_:
        H.append(layer(H[-1]))
    return H


def term_weight(classifier: Predictor, terms: Sequence[str], term: str) -> Weight:
    """Return the weight of one term through the layers, its rank, and its number of labelled rows.

    The result has ``term``, ``n_labelled`` (labelled source rows with the term), and for each output its
    ``class``, ``weight``, the class that it ``favours`` (None if it speaks against one of several),
    ``direct`` weight (of the input block alone) and ``rank`` (1 is the strongest for that class).

    Returns
    -------
    dict
    """
    j, weights, labels = position_of(term, terms), effective_weights(classifier), classifier.classes_.tolist()
    direct = _slopes_at_mean(classifier)[1] if isinstance(classifier, MSDAClassifier) else weights
    other = labels[0] if len(labels) == 2 else None
    outputs: list[Output] = [
        {
            "class": label,
            "weight": float(weights[j, o]),
            "favours": label if weights[j, o] >= 0 else other,
            "direct": float(direct[j, o]),
            "rank": int(1 + np.sum(weights[:, o] > weights[j, o])),
        }
        for o, label in enumerate(labels[-weights.shape[1] :])
    ]
    return {"term": term, "n_labelled": _count_labelled(classifier, j), "outputs": outputs}


def _count_labelled(classifier: Predictor, j: int) -> int | None:
    """Return the number of labelled rows with a feature, None where a distilled model does not know."""
    count = int(classifier.labelled_counts_[j])
    return None if count < 0 else count


def top_terms(
    classifier: Predictor, terms: Sequence[str], k: int = 20, *, only_new: bool = False
) -> list[Strong]:
    """List the k terms with the largest weights for each class, through all layers.

    With `only_new`, terms that no labelled row has, without stop words: their weight comes from the layers
    alone. Each entry has ``class``, ``term``, ``weight`` and ``n_labelled`` (labelled rows with the term).

    Returns
    -------
    list of dict
    """
    weights, features = effective_weights(classifier), np.arange(len(terms))
    if weights.shape[1] == 1:
        weights = np.hstack([-weights, weights])
    if only_new:
        unseen = np.flatnonzero(classifier.labelled_counts_ == 0).tolist()
        features = np.array([j for j in unseen if not ENGLISH_STOP_WORDS & {*terms[j].split()}], dtype=int)
    return [
        {
            "class": label,
            "term": terms[j],
            "weight": float(class_weights[j]),
            "n_labelled": _count_labelled(classifier, j),
        }
        for label, class_weights in zip(classifier.classes_.tolist(), weights.T, strict=True)
        for j in features[np.argsort(-class_weights[features].round(5), kind="stable")[:k]]
        if class_weights[j] > 0
    ]


def document_terms(
    classifier: Predictor, terms: Sequence[str], x: Rows, k: int = 10, *, target: Name | None = None
) -> list[Effect]:
    """List the k terms with the largest effect on the prediction of one row `x`, of shape (1, d).

    The effect of a term is exact: the score of the row less its score without the term. Each entry has
    ``term``, ``effect`` on the score of the predicted class, and ``n_labelled``. `target` names the row's
    target, where the classifier has several.

    Returns
    -------
    list of dict
    """
    row = as_array(check_matrix(classifier, x, reset=False))
    if row.shape[0] != 1:
        raise ValueError(f"one row is explained at a time, got {row.shape[0]}")
    present = np.flatnonzero(row[0])
    without = np.repeat(row, len(present) + 1, axis=0)
    without[np.arange(len(present)), present] = 0  # the last copy stays whole
    scores = classifier.decision_function(without, target=target).reshape(len(without), -1)
    if scores.shape[1] == 1:
        scores = np.column_stack([-scores, scores])
    winner = scores[:, int(np.argmax(scores[-1]))]
    effects = winner[-1] - winner[:-1]
    return [
        {
            "term": terms[present[i]],
            "effect": float(effects[i]),
            "n_labelled": _count_labelled(classifier, present[i]),
        }
        for i in np.argsort(-np.abs(effects).round(5), kind="stable")[:k]
    ]


def score_contributions(
    classifier: MSDAClassifier,
    X: Rows,
    direction: np.ndarray,
    *,
    target: Name | None = None,
    n_nodes: int = 64,
) -> tuple[np.ndarray, np.ndarray]:
    """Divide the scores of a few rows among their features, by integrated gradients from the empty row.

    The gradient is averaged by Gauss-Legendre quadrature at `n_nodes` points (Sundararajan et al., 2017). The
    score of a row is its outputs times `direction`, of shape (n, n_outputs). Returns the scores of the empty
    row, of shape (n,), and the contributions, of shape (n, d), which add up to the score.
    """
    whole = as_array(check_matrix(classifier, X, reset=False))
    empty = classifier.decision_function(np.zeros_like(whole), target=target)
    base = (empty.reshape(len(whole), -1) * direction).sum(axis=1)
    nodes, masses = np.polynomial.legendre.leggauss(n_nodes)
    steps = ((1 + nodes) / 2).astype(whole.dtype)
    H = _list_hidden(classifier, (steps[:, None, None] * whole).reshape(-1, whole.shape[1]))
    toward = np.tile(
        np.hstack([-direction, direction]) if direction.shape[1] == 1 else direction, (n_nodes, 1)
    )
    slope = _differentiate_scores(classifier, H, toward, target).astype(whole.dtype)
    gradient = _backpropagate(classifier, H, slope)
    mean = np.tensordot(masses / 2, gradient.reshape(n_nodes, *whole.shape), axes=1)
    return base, whole * mean


def _differentiate_scores(
    classifier: MSDAClassifier, H: Sequence[np.ndarray], toward: np.ndarray, target: Name | None
) -> np.ndarray:
    """Return the slopes of ``sum_c toward_c log p_c`` in the readings' scores: (n, n_readings n_outputs).

    `H` are rows at the input and at every layer.
    """
    model, n = classifier.model_, len(toward)
    scores = np.zeros((n, model.coef[0].shape[1]))
    for h, weights in zip(H, model.coef, strict=True):
        scores[:, : weights.shape[1]] += h @ weights
    k = classifier.find_target(target) if classifier.target_names_ else -1
    readings = model.read(scores.reshape(n, -1, model.n_outputs).transpose(1, 0, 2), np.full(n, k))
    votes = model.votes[k]
    pull = toward / np.maximum(np.einsum("r,rnc->nc", votes, readings), 1e-12)
    slopes = readings * (pull - (pull * readings).sum(axis=2, keepdims=True))
    slopes *= (votes / model.temperature)[:, None, None]
    return slopes[:, :, -model.n_outputs :].transpose(1, 0, 2).reshape(n, -1)


def _backpropagate(classifier: MSDAClassifier, H: Sequence[np.ndarray], slope: np.ndarray) -> np.ndarray:
    """Return slopes in the input from slopes in the scores of all readings; `H` as above."""
    layers, coef = classifier.representation_.layers_, classifier.model_.coef
    gradient = np.zeros_like(H[-1])
    for t in reversed(range(len(layers))):
        gradient = gradient + slope[:, : coef[t + 1].shape[1]] @ coef[t + 1].T
        gradient = (layers[t].coef @ ((1 - H[t + 1] ** 2) * gradient).T).T
    return gradient + slope @ coef[0].T
