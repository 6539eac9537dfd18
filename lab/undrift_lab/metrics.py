"""How well a classifier transfers, and how far apart two domains are (section 5)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from sklearn.utils import check_array, check_random_state

from undrift.core import stack_rows

C_GRID = tuple(10.0**k for k in range(-5, 5))
N_FOLDS, N_DRAWS, CONFIDENCE = 5, 1000, 0.95


def transfer_error(y_true: Any, y_pred: Any) -> float:
    """Return the share of the target's test rows that a classifier gets wrong, e(S, T)."""
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    if y_true.ndim != 1 or y_true.shape != y_pred.shape or not len(y_true):
        raise ValueError(
            f"y_true has shape {y_true.shape} and y_pred {y_pred.shape}; give one label per row in each."
        )
    for name, y in (("y_true", y_true), ("y_pred", y_pred)):
        if y.dtype.kind == "f" and np.isnan(y).any():
            raise ValueError(
                f"{name} has {np.isnan(y).sum()} unknown labels (NaN); score labelled rows only."
            )
    return float(np.mean(y_true != y_pred))


def transfer_loss(error: Any, baseline_error: Any) -> Any:
    """Transfer error less the baseline's in-domain error, e(S, T) - e_b(T, T).

    The baseline is a linear SVM on bags of words that is trained in the target domain. Errors are fractions,
    numbers or arrays.
    """
    error, baseline_error = _check_errors(error=error, baseline_error=baseline_error)
    return _unwrap(error - baseline_error)


def transfer_ratio(error: Any, baseline_error: Any) -> Any:
    """Transfer error over the baseline's in-domain error, e(S, T) / e_b(T, T).

    Ratios, unlike losses, may be averaged over tasks (section 5). A ratio is infinite where the baseline
    makes no error and the transferred classifier does, NaN where neither does.
    """
    error, baseline_error = _check_errors(error=error, baseline_error=baseline_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _unwrap(error / baseline_error)


def calibration_error(p: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error: confidence less accuracy of predictions, in ten bins of equal width.

    `p` are class probabilities of shape (n, n_classes).
    """
    confidence, is_right = p.max(axis=1), classes[p.argmax(axis=1)] == truth
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, weights=confidence - is_right, minlength=10)
    return float(np.abs(gaps).sum() / len(truth))


@dataclass(frozen=True)
class DistanceInterval:
    """A proxy A-distance and the bounds of its 95% bootstrap interval."""

    distance: float
    low: float
    high: float


def proxy_a_distance(
    A: Any, B: Any, *, C: float | Sequence[float] = C_GRID, random_state: Any = None
) -> DistanceInterval:
    """Proxy A-distance between two sets of rows: how easily a linear SVM tells them apart.

    Defined as ``2 (1 - 2 ε)``, with ``ε`` the held-out error of a linear SVM trained to separate `A` from `B`
    (section 5.2; Ben-David et al. 2007). 0 is indistinguishable, 2 is separable. The larger set is subsampled
    to the size of the smaller; one half of each, taken at random, trains the SVM and the other gives ``ε``.
    Cross-validation inside the training half chooses among the values of `C`. The interval is a percentile
    bootstrap: held-out rows of each domain are drawn with replacement. The SVM is not trained again, so the
    interval covers the error on the held-out half, not how much another training half would change it.
    """
    random = check_random_state(random_state)
    mistakes = _mark_held_out(A, B, C, random)
    half = len(mistakes) // 2  # the held-out rows of A come first, then as many of B
    draws = [
        _distance(mistakes[random.randint([[0], [half]], [[half], [2 * half]], size=(2, half)).ravel()])
        for _ in range(N_DRAWS)
    ]
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return DistanceInterval(_distance(mistakes), float(low), float(high))


def gram_distance(
    K: np.ndarray, n: int, *, C: float | Sequence[float] = C_GRID, random_state: Any = None
) -> DistanceInterval:
    """Proxy A-distance of the first `n` rows from the others, given the inner products of all rows.

    A linear SVM depends on the rows through these alone, so any coordinates that have them will do. They are
    scaled to a mean square norm of 1, so that one grid of C suits every representation.
    """
    values, vectors = linalg.eigh(K.astype(np.float64))
    positive = values > values[-1] * 1e-7
    positive[-1] = True  # one coordinate, of zeros, where all inner products are 0
    rows = vectors[:, positive] * np.sqrt(values[positive].clip(0))
    rows /= np.sqrt(np.mean(np.sum(rows**2, axis=1))) or 1.0
    return proxy_a_distance(rows[:n], rows[n:], C=C, random_state=random_state)


def _check_errors(**given: Any) -> list[np.ndarray]:
    """Return errors as arrays; each must be a fraction."""
    arrays = [np.asarray(values, dtype=np.float64) for values in given.values()]
    for name, array in zip(given, arrays, strict=True):
        if not ((array >= 0) & (array <= 1)).all():
            raise ValueError(f"{name} must lie in [0, 1]: errors are fractions, not percentages.")
    return arrays


def _unwrap(values: np.ndarray) -> Any:
    """Return a float for a scalar, else the array."""
    return float(values) if values.ndim == 0 else values


def _distance(mistakes: np.ndarray) -> float:
    """``2 (1 - 2 ε)``."""
    return float(2 * (1 - 2 * mistakes.mean()))


def _mark_held_out(A: Any, B: Any, C: float | Sequence[float], random: np.random.RandomState) -> np.ndarray:
    """Mark the held-out rows that the SVM gets wrong. Rows of `A` come first, then as many of `B`."""
    A, B = (check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]) for X in (A, B))
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"A has {A.shape[1]} columns and B has {B.shape[1]}; they must share one feature space."
        )
    candidates, n = np.unique(np.asarray(C, dtype=np.float64)), min(A.shape[0], B.shape[0])
    if not len(candidates) or candidates[0] <= 0:
        raise ValueError(f"C is {C}; give one or more positive values.")
    if n < 2 * N_FOLDS:
        raise ValueError(f"{n} rows a domain are too few; give {2 * N_FOLDS} or more.")
    rows = stack_rows([X[random.permutation(X.shape[0])[:n]] for X in (A, B)])
    if sparse.issparse(rows) and rows.nnz < 2**31:  # liblinear takes 32-bit indices alone
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    from_b, held_out = np.repeat([0, 1], n), np.tile(np.arange(n) >= n // 2, 2)
    seed = int(random.randint(2**31 - 1))
    train, test = (rows[~held_out], from_b[~held_out]), (rows[held_out], from_b[held_out])
    best = candidates[0] if len(candidates) == 1 else _choose_C(*train, candidates, seed)
    return _mark_mistakes(train, test, best, seed)


def _choose_C(X: Any, y: np.ndarray, candidates: np.ndarray, seed: int) -> float:
    """Choose the candidate with the lowest cross-validated error, the smallest of several."""
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(y, y))
    n_wrong = [
        sum(_mark_mistakes((X[fit], y[fit]), (X[check], y[check]), C, seed).sum() for fit, check in folds)
        for C in candidates
    ]
    return float(candidates[int(np.argmin(n_wrong))])


def _mark_mistakes(
    train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], C: float, seed: int
) -> np.ndarray:
    """Mark the test rows that a linear SVM fitted on the train rows gets wrong."""
    with warnings.catch_warnings():
        # a large C may stop before it converges: its held-out error is valid all the same
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LinearSVC(C=C, dual="auto", random_state=seed).fit(*train)
    return fitted.predict(test[0]) != test[1]
