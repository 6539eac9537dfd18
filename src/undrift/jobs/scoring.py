"""How a job is scored: distance of the domains, errors of the baseline and of the predictions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import Rows as Matrix
from .._inputs import gather_rows, spell_label
from ..baselines import fitted_svm
from ..errors import UndriftWarning
from ..metrics import proxy_a_distance

DISTANCE_ROWS = 4000  # rows of each side that the proxy A-distance is taken from, at most


def sample_rows(X: Any) -> Matrix:
    """Draw rows for a distance, without replacement; those on a cluster are brought here."""
    positions = np.random.default_rng(0).permutation(X.shape[0])[:DISTANCE_ROWS]
    order = np.sort(positions)
    return gather_rows(X[order])[np.searchsorted(order, positions)]


def measure_distance(A: Matrix, B: Matrix) -> float | None:
    """Return the proxy A-distance of two samples, None where one has fewer than ten rows."""
    return None if min(A.shape[0], B.shape[0]) < 10 else proxy_a_distance(A, B, random_state=0)


def fit_baseline(X: Any, labels: Sequence[Any]) -> Any:
    """Fit the baseline: a linear SVM on the labelled source rows, its C chosen by cross-validation."""
    is_labelled = np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    return fitted_svm(gather_rows(X[is_labelled]), y)


def count_mistakes(X: Matrix, truth: np.ndarray, *models: Any, options: list[dict[str, Any]]) -> np.ndarray:
    """Count the rows that have a label, and those of them that each model gets wrong.

    Counts of row blocks add. `options` are those of each model's `predict`.
    """
    known = np.array([label is not None for label in truth], dtype=bool)
    if not known.any():
        return np.zeros(1 + len(models), dtype=np.int64)
    y = [spell_label(label) for label in truth[known].tolist()]
    wrong = [
        sum(
            spell_label(label) != true
            for label, true in zip(model.predict(X[known], **option).tolist(), y, strict=True)
        )
        for model, option in zip(models, options, strict=True)
    ]
    return np.array([len(y), *wrong], dtype=np.int64)


def warn_of_other_labels(truth: Sequence[Any], classes: Sequence[Any]) -> None:
    """Warn where no label of the target is a label of the source."""
    labels = sorted({spell_label(label) for label in truth if label is not None})
    names = [spell_label(label) for label in classes]
    if labels and not set(labels) & set(names):
        warnings.warn(
            f"none of the target's labels ({_list_some(labels)}) is one of the source's "
            f"({_list_some(names)}): every prediction counts as wrong",
            UndriftWarning,
            stacklevel=2,
        )


def _list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
