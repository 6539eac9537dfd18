"""How a job is scored: distance of the domains, errors of the baseline and of the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from .._core import Rows as Matrix
from .._core import mean_square, moments
from .._inputs import gather_rows, spell_label
from ..baselines import fitted_svm
from ..classifier import predict_codes
from ..errors import warn
from ..metrics import proxy_a_distance

DISTANCE_ROWS = 4000  # rows of each side that the proxy A-distance is taken from, at most
DISTANCE_C = (0.0025, 0.025, 0.25, 2.5, 25.0)  # of its SVM, for rows of length 1; larger ones change nothing


def sample_rows(X: Any) -> Matrix:
    """Draw rows for a distance, without replacement; those on a cluster are brought here."""
    positions = np.random.default_rng(0).permutation(X.shape[0])[:DISTANCE_ROWS]
    order = np.sort(positions)
    return gather_rows(X[order])[np.searchsorted(order, positions)]


def measure_distance(A: Matrix, B: Matrix) -> float | None:
    """Return the proxy A-distance of two samples, None where one has fewer than ten rows."""
    if min(A.shape[0], B.shape[0]) < 10:
        return None
    square = mean_square([moments(A), moments(B)], center=False) or 1.0
    return proxy_a_distance(A, B, C=[C / square for C in DISTANCE_C], random_state=0)


def fit_baseline(X: Any, labels: Sequence[Any]) -> Any:
    """Fit the baseline: a linear SVM on the labelled source rows, its C chosen by cross-validation."""
    is_labelled = np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    return fitted_svm(gather_rows(X[is_labelled]), y)


def count_mistakes(
    X: Matrix,
    truth: np.ndarray,
    baseline: Any,
    classifier: Any,
    number: int,
    scores: np.ndarray | None = None,
) -> np.ndarray:
    """Sums over the rows of the target `number` that have a label, as `sum_mistakes`; sums of blocks add.

    Parameters
    ----------
    truth : object array of shape (n, 2)
        Label, None where there is none, and weight of every row.
    scores : array of shape (n, n_outputs), optional
        The classifier's scores of all rows, if they are known.
    """
    known = np.array([label is not None for label in truth[:, 0]], dtype=bool)
    if not known.any():
        return np.zeros(6)
    if scores is None:
        adapted = classifier.predict(X[known], sample_domain=number)
    else:
        adapted = classifier.classes_[predict_codes(scores[known])]
    predicted = baseline.predict(X[known]).tolist(), adapted.tolist()
    return sum_mistakes(truth[known, 0].tolist(), truth[known, 1].astype(float), *predicted)


def sum_mistakes(y: Sequence[Any], weight: np.ndarray, *predicted: Sequence[Any]) -> np.ndarray:
    """Sums over rows with the labels y, of the mistakes of two models.

    Returns the number of rows; sums of their weights, of the squares of these, of the weights of the first
    model's mistakes, of the second's, and of those of both.
    """
    truth = np.array([spell_label(label) for label in y])
    first, second = (np.array([spell_label(label) for label in labels]) != truth for labels in predicted)
    sums = [weight.sum(), (weight**2).sum(), weight @ first, weight @ second, weight @ (first & second)]
    return np.array([len(truth), *sums])


def share_labels(truth: np.ndarray, classes: Sequence[Any]) -> dict[str, float]:
    """Return the share of every class among the rows with a label, by their weights; `truth` as above."""
    sums = dict.fromkeys(map(spell_label, classes), 0.0)
    for label, weight in truth:
        if label is not None:
            sums[spell_label(label)] = sums.get(spell_label(label), 0.0) + weight
    total = sum(sums.values())
    return {spell_label(label): sums[spell_label(label)] / total for label in classes}


def find_chance(target: dict[str, Any]) -> dict[str, Any] | None:
    """Return the one answer that is best for all rows of a target, and its error: no more than chance.

    By the class shares of its labelled rows where it has them, else by its estimated ones. None where one
    answer is right for all rows, and where the border is for classes that count alike, at the cost of errors.
    """
    shares = target.get("labelled_shares") or target.get("target_shares")
    if not shares or max(shares.values()) > 1 - 1e-9 or target.get("border") == "balanced":
        return None
    label = max(shares, key=lambda name: shares[name])
    return {"label": label, "error": 1 - shares[label]}


def is_no_better(error: float, chance: dict[str, Any]) -> bool:
    """Tell whether predictions with this error are no better than one answer for all rows."""
    return bool(error > chance["error"] - 1e-9)  # rounding is no gain


def error_interval(error: float, n: float) -> list[float]:
    """95% interval of an error on n rows, by Wilson's method; n need not be whole."""
    z2 = stats.norm.ppf(0.975) ** 2
    middle = (error + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (error * (1 - error) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return [max(float(middle - half), 0.0), min(float(middle + half), 1.0)]


def gain_interval(corrected: float, spoilt: float, n: float) -> list[float]:
    """95% interval of the gain of one model over another on the same rows, after Agresti and Min (2005).

    `corrected` and `spoilt` are the shares of rows on which only the second, or only the first, is right.
    """
    differing = (n * (corrected + spoilt) + 1) / (n + 2)
    middle = n * (corrected - spoilt) / (n + 2)
    half = stats.norm.ppf(0.975) * np.sqrt((differing - middle**2) / (n + 2))
    return [max(float(middle - half), -1.0), min(float(middle + half), 1.0)]


def warn_of_other_labels(truth: Sequence[Any], classes: Sequence[Any]) -> None:
    """Warn where no label of the target is a label of the source."""
    labels = sorted({spell_label(label) for label in truth if label is not None})
    names = [spell_label(label) for label in classes]
    if labels and not set(labels) & set(names):
        warn(
            f"none of the target's labels ({_list_some(labels)}) is one of the source's "
            f"({_list_some(names)}): every prediction counts as wrong",
        )


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
