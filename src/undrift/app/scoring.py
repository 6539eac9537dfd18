"""Score a job: count the errors of the baseline and of the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Rows as Matrix
from ..errors import warn
from ..inputs import gather_rows, spell_label
from ..method import predict_codes
from ..scoring import fitted_svm

SAMPLE_ROWS = 4000  # rows that stand for a target, at most


def sample_rows(X: Any) -> Matrix:
    """Draw rows that stand for all, without replacement; those on a cluster are brought here."""
    positions = np.random.default_rng(0).permutation(X.shape[0])[:SAMPLE_ROWS]
    order = np.sort(positions)
    return gather_rows(X[order])[np.searchsorted(order, positions)]


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
    target: str,
    scores: np.ndarray | None = None,
) -> np.ndarray:
    """Sums over the rows of a target that have a label, as `sum_mistakes`; sums of blocks add.

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
        adapted = classifier.predict(X[known], target=target)
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
