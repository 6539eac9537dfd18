"""Explain a classifier: which terms reconstruct which, and the weight of each term.

Everything here is JSON-ready data: lists of terms with numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils.validation import check_is_fitted

from ._core import Layer, Rows, stack_rows
from ._inputs import as_array, binarize_rows, check_matrix
from .classifier import DistilledClassifier, MSDAClassifier, accept_old_names, check_extra
from .representation import MSDA

__all__ = [
    "document_terms",
    "effective_weights",
    "new_terms",
    "reconstruction",
    "score_contributions",
    "term_weight",
    "top_terms",
]

Classifier = MSDAClassifier | DistilledClassifier


def reconstruction(
    layer: Layer | MSDA, terms: Sequence[str], term: str, k: int = 10, *, pivots: np.ndarray | None = None
) -> dict[str, Any]:
    """Return the terms from which `layer` reconstructs `term`, and those that it reconstructs from `term`.

    Parameters
    ----------
    layer : MSDA or Layer
        A fitted stack, such as ``representation_``, whose first layer is meant; or any layer that is square.
    terms : sequence of str
        Names of the features.
    term : str
        One of them.
    k : int, default=10
        How many terms to list each way.
    pivots : int array, optional
        The features that a layer reconstructs, if not all; a stack knows them.

    Returns
    -------
    dict
        ``term``; ``from`` and ``to``, lists of ``[term, weight]`` by decreasing weight. ``from`` is empty
        for a term that is no pivot.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import reconstruction
    >>> terms = ["good", "bad", "sturdy", "flimsy"]
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> result = reconstruction(classifier.representation_, terms, "sturdy", 1)
    >>> [term for term, _ in result["from"]], [term for term, _ in result["to"]]
    (['good'], ['good'])
    """
    if isinstance(layer, MSDA):
        layer, pivots = layer.layers_[0], getattr(layer, "pivots_", None)
    j = position_of(term, terms)
    outputs = np.arange(len(terms)) if pivots is None else np.asarray(pivots)
    if layer.coef.shape != (len(terms), len(outputs)):
        raise ValueError(f"a layer of shape {layer.coef.shape} does not map the {len(terms)} terms")
    column = np.flatnonzero(outputs == j)
    return {
        "term": term,
        "from": _strongest_terms(layer.coef[:, column[0]], np.arange(len(terms)), terms, j, k)
        if len(column)
        else [],
        "to": _strongest_terms(layer.coef[j], outputs, terms, j, k),
    }


def position_of(term: str, terms: Sequence[str]) -> int:
    """Return the column of `term`; the error for an unknown one suggests similar terms."""
    try:
        return list(terms).index(term)
    except ValueError:
        near = get_close_matches(term, list(terms), n=3, cutoff=0.75)
        hint = f"; did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
        raise LookupError(f"{term!r} is not among the {len(terms)} terms of this model{hint}") from None


def _strongest_terms(
    weights: np.ndarray, features: np.ndarray, terms: Sequence[str], excluded: int, k: int
) -> list[list[Any]]:
    """Return the k largest weights of `features` with their terms, without the term `excluded`."""
    order = [i for i in np.argsort(-weights.round(5), kind="stable")[: k + 1] if features[i] != excluded]
    return [[terms[features[i]], round(float(weights[i]), 6)] for i in order[:k]]


def effective_weights(classifier: Classifier) -> np.ndarray:
    """Weight of every input feature through all layers: the slope of the score at the mean target row.

    For one layer without an activation this is ``w_0 + W'w_1`` exactly; a layer with one contributes with the
    slope of the activation. Features that no labelled source row has get their weight from the
    features that they reconstruct.

    Parameters
    ----------
    classifier : MSDAClassifier or DistilledClassifier
        Fitted.

    Returns
    -------
    ndarray of shape (d, n_outputs)
        Positive favours the second of two classes, or the output's class.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import effective_weights
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> effective_weights(classifier).ravel().round(2).tolist()
    [0.85, -0.85, 0.34, -0.34]
    """
    check_is_fitted(classifier)
    if isinstance(classifier, DistilledClassifier):
        return classifier.coef_.astype(np.float64)
    slopes, H = [], classifier.input_mean_[None, :]
    for layer in classifier.representation_.layers_:
        H = layer(H)
        slopes.append(_slope(H[0], layer.activation))
    weights = classifier.coef_[-1].astype(np.float64)
    for t in reversed(range(len(slopes))):
        layer = classifier.representation_.layers_[t]
        weights = classifier.coef_[t] + layer.coef @ (slopes[t][:, None] * weights)
    return weights


def _slope(h: np.ndarray, activation: str) -> np.ndarray:
    """Derivative of an activation, from its value."""
    if activation == "tanh":
        return 1 - h * h
    if activation == "sigmoid":
        return h * (1 - h)
    return (h > 0).astype(h.dtype) if activation == "relu" else np.ones_like(h)


def term_weight(classifier: Classifier, terms: Sequence[str], term: str) -> dict[str, Any]:
    """Weight of one term through the layers, its rank among all, and whether the labelled source had it.

    Parameters
    ----------
    classifier : MSDAClassifier or DistilledClassifier
        Fitted.
    terms : sequence of str
        Names of the features.
    term : str
        One of them.

    Returns
    -------
    dict
        ``term``, ``n_labelled`` (labelled source rows with the term), and for each output its
        ``class``, ``weight``, the class that it ``favours`` (None if it speaks against one of several),
        ``direct`` weight (of the input block alone) and ``rank`` (1 is the strongest for that class).

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import term_weight
    >>> terms = ["good", "bad", "sturdy", "flimsy"]
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> weight = term_weight(classifier, terms, "sturdy")
    >>> weight["n_labelled"], weight["outputs"][0]["favours"], weight["outputs"][0]["rank"]
    (0, 'yes', 2)
    """
    j, weights = position_of(term, terms), effective_weights(classifier)
    direct = weights if isinstance(classifier, DistilledClassifier) else classifier.coef_[0]
    outputs = [
        {
            "class": label,
            "weight": float(weights[j, o]),
            "favours": _name_favoured(classifier, label, weights[j, o]),
            "direct": float(direct[j, o]),
            "rank": int(1 + np.sum(weights[:, o] > weights[j, o])),
        }
        for o, label in enumerate(output_classes(classifier))
    ]
    return {"term": term, "n_labelled": count_labelled(classifier, j), "outputs": outputs}


def _name_favoured(classifier: Classifier, label: Any, weight: float) -> Any:
    """Return the class that a weight of an output speaks for; None if it speaks against one of several."""
    other = _list_classes(classifier)[0] if len(output_classes(classifier)) == 1 else None
    return label if weight >= 0 else other


def count_labelled(classifier: Classifier, j: int) -> int | None:
    """Return in how many labelled rows a feature is not zero, None where a distilled model does not know."""
    count = int(classifier.labelled_counts_[j])
    return None if count < 0 else count


def output_classes(classifier: Classifier) -> list[Any]:
    """Return, for each output, the class that positive scores favour."""
    labels, has_tags = _list_classes(classifier), getattr(classifier, "multilabel_", False)
    return labels[1:] if len(labels) == 2 and not has_tags else labels


def _list_classes(classifier: Classifier) -> list[Any]:
    """Return the labels, or the tags; numbers are lower or higher."""
    labels = getattr(classifier, "classes_", None)
    return ["lower", "higher"] if labels is None else labels.tolist()


def top_terms(classifier: Classifier, terms: Sequence[str], k: int = 20) -> list[dict[str, Any]]:
    """List the terms with the largest weights for each class, through all layers.

    Parameters
    ----------
    classifier : MSDAClassifier or DistilledClassifier
        Fitted.
    terms : sequence of str
        Names of the features.
    k : int, default=20
        How many for each class.

    Returns
    -------
    list of dict
        ``class``, ``term``, ``weight`` and ``n_labelled`` (labelled rows with the term), class by class.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import top_terms
    >>> terms = ["good", "bad", "sturdy", "flimsy"]
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> [(row["class"], row["term"]) for row in top_terms(classifier, terms, 1)]
    [('no', 'bad'), ('yes', 'good')]
    """
    return _top(classifier, terms, np.arange(len(terms)), k)


def new_terms(classifier: Classifier, terms: Sequence[str], k: int = 20) -> list[dict[str, Any]]:
    """List the terms in no labelled row with the largest weights for each class, without stop words.

    Their weight comes from the representation alone: no labelled row contains them.

    Parameters
    ----------
    classifier, terms, k
        As for `top_terms`.

    Returns
    -------
    list of dict
        As of `top_terms`.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import new_terms
    >>> terms = ["good", "bad", "sturdy", "flimsy"]
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> [(row["class"], row["term"]) for row in new_terms(classifier, terms)]
    [('no', 'flimsy'), ('yes', 'sturdy')]
    """
    features = [
        j
        for j in np.flatnonzero(classifier.labelled_counts_ == 0).tolist()
        if not ENGLISH_STOP_WORDS.intersection(terms[j].split())
    ]
    return _top(classifier, terms, np.array(features, dtype=int), k)


def _top(classifier: Classifier, terms: Sequence[str], features: np.ndarray, k: int) -> list[dict[str, Any]]:
    """List, for each class, the k of `features` with the largest positive weights."""
    weights = effective_weights(classifier)
    if weights.shape[1] == 1:
        weights = np.hstack([-weights, weights])
    return [
        {
            "class": label,
            "term": terms[j],
            "weight": float(class_weights[j]),
            "n_labelled": count_labelled(classifier, j),
        }
        for label, class_weights in zip(_list_classes(classifier), weights.T, strict=True)
        for j in features[np.argsort(-class_weights[features].round(5), kind="stable")[:k]]
        if class_weights[j] > 0
    ]


@accept_old_names
def document_terms(
    classifier: Classifier, terms: Sequence[str], x: Rows, k: int = 10, *, extra: Any = None
) -> list[dict[str, Any]]:
    """List the terms with the largest effect on the prediction of one row.

    The effect of a term is exact: the score of the row less its score without the term.

    Parameters
    ----------
    classifier : MSDAClassifier or DistilledClassifier
        Fitted.
    terms : sequence of str
        Names of the features.
    x : row of shape (1, d)
        As given to `predict`.
    k : int, default=10
        How many terms to list.
    extra : matrix, or list of matrices, optional
        Extra features of the row, as given to `predict`; they stay as they are.

    Returns
    -------
    list of dict
        ``term``, ``effect`` on the score of the predicted class, ``n_labelled``; by decreasing size.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import document_terms
    >>> terms = ["good", "bad", "sturdy", "flimsy"]
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> [row["term"] for row in document_terms(classifier, terms, Z[:1])]
    ['good', 'sturdy']
    """
    is_distilled = isinstance(classifier, DistilledClassifier)
    row = as_array(x if is_distilled else check_matrix(classifier, x, reset=False))
    if row.shape[0] != 1:
        raise ValueError(f"one row is explained at a time, got {row.shape[0]}")
    present = np.flatnonzero(row[0])
    if is_distilled:
        effects = row[0, present] * _predicted_class(classifier, row, effective_weights(classifier))[present]
    else:
        effects = _exact_effects(classifier, row, present, extra)
    return [
        {
            "term": terms[present[i]],
            "effect": float(effects[i]),
            "n_labelled": count_labelled(classifier, present[i]),
        }
        for i in np.argsort(-np.abs(effects).round(5), kind="stable")[:k]
    ]


def _predicted_class(classifier: Classifier, row: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return the column of `outputs`, of shape (n, n_outputs), for the class that is predicted."""
    scores = np.reshape(classifier.decision_function(row), -1)
    return outputs[:, int(np.argmax(scores))] if len(scores) > 1 else outputs[:, 0] * np.sign(scores[0])


def _exact_effects(
    classifier: MSDAClassifier, row: np.ndarray, present: np.ndarray, extra: Any
) -> np.ndarray:
    """Return the score of the predicted class less that without each feature in `present`."""
    without = np.repeat(row, len(present) + 1, axis=0)
    without[np.arange(len(present)), present] = 0  # the last copy stays whole
    matrices = check_extra(extra, 1, dtype=classifier.dtype, widths=classifier.n_extra_features_in_)
    beside = [stack_rows([E] * len(without)) for E in matrices]
    scores = classifier._scores(without, None, False, beside)
    if scores.shape[1] == 1 and hasattr(classifier, "classes_"):
        scores = np.column_stack([-scores, scores])
    winner = scores[:, int(np.argmax(scores[-1]))]
    return winner[-1] - winner[:-1]


def score_contributions(
    classifier: MSDAClassifier,
    X: Rows,
    direction: np.ndarray,
    *,
    sample_domain: np.ndarray | None = None,
    n_nodes: int = 24,
) -> tuple[np.ndarray, np.ndarray]:
    """Divide the scores of a few rows among their features, by integrated gradients from the empty row.

    The gradient of the score is averaged along the straight line from a row of zeros to the row (with
    Gauss-Legendre quadrature), and multiplied by the row [1]_. The contributions of a row and the score of
    the empty row add up to the score of the row, up to the error of the quadrature.

    Parameters
    ----------
    classifier : MSDAClassifier
        Fitted, without extra features.
    X : rows of shape (n, d)
        As given to `predict`.
    direction : array of shape (n, n_outputs)
        Which score of each row: its outputs times this. With two classes there is one output; with more,
        1 for one class and -1 for another is the lead of the first over the second.
    sample_domain : int array of shape (n,), optional
        Domain of each row, as for `predict`.
    n_nodes : int, default=24
        Points along the line.

    Returns
    -------
    base : ndarray of shape (n,)
        Score of the empty row, in the domain of each row.
    contributions : ndarray of shape (n, d)

    References
    ----------
    .. [1] Sundararajan, Taly and Yan, "Axiomatic attribution for deep networks", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> from undrift.explain import score_contributions
    >>> X, Z = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]] * 10), np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 10)
    >>> classifier = MSDAClassifier(1).fit(X, ["yes", "no"] * 10, Z)
    >>> base, contributions = score_contributions(classifier, Z[:1], np.ones((1, 1)))
    >>> bool(np.allclose(base + contributions.sum(axis=1), classifier.decision_function(Z[:1]), atol=1e-5))
    True
    """
    whole = as_array(check_matrix(classifier, X, reset=False))
    empty = classifier.decision_function(np.zeros_like(whole), sample_domain=sample_domain)
    base = (empty.reshape(len(whole), -1) * direction).sum(axis=1)
    first = binarize_rows(whole) if classifier.binarize else whole
    nodes, masses = np.polynomial.legendre.leggauss(n_nodes)
    steps, toward = ((1 + nodes) / 2).astype(whole.dtype), np.asarray(direction, dtype=whole.dtype).T
    H, hidden = (steps[:, None, None] * first).reshape(-1, whole.shape[1]), []
    layers, coef = classifier.representation_.layers_, classifier.coef_
    for layer in layers:
        H = layer(H)
        hidden.append(H)
    gradient = np.zeros_like(H)
    for t in reversed(range(len(layers))):
        gradient = gradient + np.tile((coef[t + 1] @ toward).T, (n_nodes, 1))
        gradient = (_slope(hidden[t], layers[t].activation) * gradient) @ layers[t].coef.T
    mean = np.tensordot(masses / 2, gradient.reshape(n_nodes, *whole.shape), axes=1)
    contributions = whole * (coef[0] @ toward).T + first * mean
    return base, contributions
