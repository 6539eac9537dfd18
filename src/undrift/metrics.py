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

from ._core import stack_rows

__all__ = [
    "DistanceInterval",
    "gram_distance_interval",
    "proxy_a_distance",
    "proxy_a_distance_interval",
    "transfer_error",
    "transfer_loss",
    "transfer_ratio",
]

C_GRID = tuple(10.0**k for k in range(-5, 5))


def transfer_error(y_true: Any, y_pred: Any) -> float:
    """Share of the target's rows that a classifier gets wrong, e(S, T).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels of the target's test rows.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> transfer_error([1, -1, 1, 1], [1, 1, 1, 1])
    0.25
    """
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

    Parameters
    ----------
    error : float or array
        Transfer error e(S, T), in [0, 1].
    baseline_error : float or array
        Error e_b(T, T) of the *baseline*, a linear SVM on bags of words trained in the target domain.

    Returns
    -------
    float or array
        Negative where the transferred classifier beats the in-domain baseline.

    Examples
    --------
    >>> transfer_loss(0.25, 0.125)
    0.125
    """
    error, baseline_error = _check_errors(error=error, baseline_error=baseline_error)
    return _unwrap(error - baseline_error)


def transfer_ratio(error: Any, baseline_error: Any) -> Any:
    """Transfer error over the baseline's in-domain error, e(S, T) / e_b(T, T).

    Ratios, unlike losses, may be averaged over tasks (section 5).

    Parameters
    ----------
    error, baseline_error : float or array
        As for `transfer_loss`.

    Returns
    -------
    float or array
        Infinite where the baseline makes no error and the transferred classifier does, NaN where neither
        does: such a task has no ratio.

    Examples
    --------
    >>> transfer_ratio(0.25, 0.125)
    2.0
    """
    error, baseline_error = _check_errors(error=error, baseline_error=baseline_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _unwrap(error / baseline_error)


def proxy_a_distance(
    A: Any,
    B: Any,
    *,
    C: float | Sequence[float] = C_GRID,
    selection: str = "nested",
    n_folds: int = 5,
    clip: bool = False,
    random_state: Any = None,
) -> float:
    """Proxy A-distance between two sets of rows: how easily a linear SVM tells them apart.

    Defined as ``2 (1 - 2 ε)``, with ``ε`` the held-out error of a linear SVM trained to separate `A` from
    `B` (section 5.2; [1]_). 0 is indistinguishable, 2 is separable. The larger set is subsampled to the
    size of the smaller; one half of each, taken at random, trains the SVM and the other gives ``ε``.

    Parameters
    ----------
    A, B : {array, sparse matrix} of shape (n_a, d) and (n_b, d)
        Rows of each domain, in the same feature space.
    C : float or sequence of float, default=1e-5, 1e-4, ..., 1e4
        Values of the SVM's C to choose from.
    selection : {"nested", "test_min"}, default="nested"
        "nested" chooses C by cross-validation inside the training half. "test_min" takes the lowest error
        on the held-out half, which is optimistic; it is for comparison with earlier work ([2]_).
    n_folds : int, default=5
        Folds of the nested cross-validation.
    clip : bool, default=False
        Return 0 instead of a negative distance (held-out error above one half).
    random_state : int, RandomState or None, default=None
        Seed of the subsample, the halves and the folds.

    Returns
    -------
    float
        In [0, 2] up to sampling error; in [-2, 2] unless clipped.

    See Also
    --------
    proxy_a_distance_interval : The same with a bootstrap interval.
    transfer_ratio : What the distance is meant to predict.

    References
    ----------
    .. [1] Ben-David et al., "Analysis of representations for domain adaptation", 2007.
    .. [2] Ganin et al., "Domain-adversarial training of neural networks", 2016.

    Examples
    --------
    >>> import numpy as np
    >>> A, B = np.zeros((40, 1)), np.ones((40, 1))
    >>> proxy_a_distance(A, B, random_state=0)
    2.0
    """
    mistakes = _held_out_mistakes(A, B, C, selection, n_folds, check_random_state(random_state))
    return max(_distance(mistakes), 0.0) if clip else _distance(mistakes)


@dataclass(frozen=True)
class DistanceInterval:
    """A proxy A-distance and the bounds of its bootstrap interval.

    Parameters
    ----------
    distance, low, high : float
        The distance, and the interval around it.

    Examples
    --------
    >>> from undrift.metrics import DistanceInterval
    >>> DistanceInterval(1.5, low=1.25, high=1.75).distance
    1.5
    """

    distance: float
    low: float
    high: float


def proxy_a_distance_interval(
    A: Any,
    B: Any,
    *,
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    C: float | Sequence[float] = C_GRID,
    random_state: Any = None,
) -> DistanceInterval:
    """Proxy A-distance with a percentile bootstrap interval.

    The held-out rows of each domain are drawn with replacement `n_bootstrap` times. The SVM is not
    trained again, so the interval covers the error on the held-out half, not how much another
    training half would change it.

    Parameters
    ----------
    A, B, C, random_state
        As for `proxy_a_distance`, which gives the same distance for the same seed.
    confidence : float, default=0.95
        Share of the resampled distances inside the interval.
    n_bootstrap : int, default=1000

    Returns
    -------
    DistanceInterval

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.metrics import proxy_a_distance_interval
    >>> proxy_a_distance_interval(np.zeros((40, 1)), np.ones((40, 1)), random_state=0)
    DistanceInterval(distance=2.0, low=2.0, high=2.0)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1.")
    if n_bootstrap < 1:
        raise ValueError(f"n_bootstrap is {n_bootstrap}; give at least 1.")
    random = check_random_state(random_state)
    mistakes = _held_out_mistakes(A, B, C, "nested", 5, random)
    half = mistakes.shape[1] // 2  # the held-out rows of A come first, then as many of B
    draws = []
    for _ in range(n_bootstrap):
        drawn = random.randint([[0], [half]], [[half], [2 * half]], size=(2, half))
        draws.append(_distance(mistakes[:, drawn.ravel()]))
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return DistanceInterval(_distance(mistakes), float(low), float(high))


def gram_distance_interval(
    K: np.ndarray, n: int, *, C: float | Sequence[float] = C_GRID, random_state: Any = None
) -> DistanceInterval:
    """Proxy A-distance of the first `n` rows from the others, given the inner products of all rows.

    A linear SVM depends on the rows through these alone, so any coordinates that have them will do. They are
    scaled to a mean square norm of 1, so that one grid of C suits every representation.

    Parameters
    ----------
    K : array of shape (n_rows, n_rows)
        Inner products.
    n : int
        Rows of the first set.
    C, random_state
        As for `proxy_a_distance`.

    Returns
    -------
    DistanceInterval

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.metrics import gram_distance_interval
    >>> rows = np.repeat([[-1.0], [1.0]], 40, axis=0)
    >>> gram_distance_interval(rows @ rows.T, 40, random_state=0)
    DistanceInterval(distance=2.0, low=2.0, high=2.0)
    """
    values, vectors = linalg.eigh(K.astype(np.float64))
    positive = values > values[-1] * 1e-7
    positive[-1] = True  # one coordinate, of zeros, where all inner products are 0
    rows = vectors[:, positive] * np.sqrt(values[positive].clip(0))
    rows /= np.sqrt(np.mean(np.sum(rows**2, axis=1))) or 1.0
    return proxy_a_distance_interval(rows[:n], rows[n:], C=C, random_state=random_state)


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
    """``2 (1 - 2 ε)`` of the best candidate; `mistakes` is (candidates, held-out rows)."""
    return float(2 * (1 - 2 * mistakes.mean(axis=1).min()))


def _held_out_mistakes(
    A: Any, B: Any, C: float | Sequence[float], selection: str, n_folds: int, random: np.random.RandomState
) -> np.ndarray:
    """Mark the held-out rows that each candidate C gets wrong, of shape (candidates, rows).

    Nested selection leaves one candidate. Rows of `A` come first, then as many of `B`.
    """
    A, B, candidates = _check_arguments(A, B, C, selection, n_folds)
    n = min(A.shape[0], B.shape[0])
    rows = _row_coordinates(
        _shorten_indices(stack_rows([X[random.permutation(X.shape[0])[:n]] for X in (A, B)]))
    )
    from_b = np.repeat([0, 1], n)
    held_out = np.tile(np.arange(n) >= n // 2, 2)
    seed = int(random.randint(2**31 - 1))
    train, test = (rows[~held_out], from_b[~held_out]), (rows[held_out], from_b[held_out])
    if selection == "nested" and len(candidates) > 1:
        candidates = [_choose_C(*train, candidates, n_folds, seed)]
    return np.array([_mark_mistakes(train, test, c, seed) for c in candidates])


def _check_arguments(
    A: Any, B: Any, C: float | Sequence[float], selection: str, n_folds: int
) -> tuple[Any, Any, list[float]]:
    """Validate the arguments of the distance; rows come back as arrays or CSR."""
    A, B = (check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]) for X in (A, B))
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"A has {A.shape[1]} columns and B has {B.shape[1]}; they must share one feature space."
        )
    if selection not in ("nested", "test_min"):
        raise ValueError(f"selection is {selection!r}; choose 'nested' or 'test_min'.")
    candidates = [float(c) for c in np.atleast_1d(np.asarray(C, dtype=np.float64))]
    if not candidates or min(candidates) <= 0:
        raise ValueError(f"C is {C}; give one or more positive values.")
    n = min(A.shape[0], B.shape[0])
    if n_folds < 2 or n // 2 < (n_folds if selection == "nested" and len(candidates) > 1 else 1):
        raise ValueError(
            f"{n} rows a domain are too few for halves and {n_folds} folds; give {2 * n_folds} or more."
        )
    return A, B, candidates


def _shorten_indices(X: Any) -> Any:
    """Give sparse rows 32-bit indices where they fit: liblinear takes no others."""
    if sparse.issparse(X) and X.nnz < 2**31:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _row_coordinates(rows: Any) -> Any:
    """Replace dense rows wider than they are many by their coordinates in the space that they span.

    With ``X' = Q R``, the rows of ``R'`` have the inner products of those of `X`, and a linear SVM sees
    nothing else: the same answer from (n, n) instead of (n, d).
    """
    if sparse.issparse(rows) or rows.shape[1] <= rows.shape[0]:
        return rows
    return linalg.qr(rows.T, mode="r", check_finite=False)[0][: rows.shape[0]].T


def _choose_C(X: Any, y: np.ndarray, candidates: list[float], n_folds: int, seed: int) -> float:
    """Choose the candidate with the lowest cross-validated error, the smallest of several."""
    candidates = sorted(candidates)
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y))
    n_wrong = [
        sum(_mark_mistakes((X[fit], y[fit]), (X[check], y[check]), c, seed).sum() for fit, check in folds)
        for c in candidates
    ]
    return candidates[int(np.argmin(n_wrong))]


def _mark_mistakes(
    train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], C: float, seed: int
) -> np.ndarray:
    """Mark the test rows that a linear SVM fitted on the train rows gets wrong."""
    with warnings.catch_warnings():
        # a large C may stop before it converges: its held-out error is valid all the same
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LinearSVC(C=C, dual="auto", random_state=seed).fit(*train)
    return fitted.predict(test[0]) != test[1]
