"""Least squares on a Gram matrix, cross-validated in closed form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import blas, lapack

from .array import NotPositiveDefinite
from .numpy_ops import spd_inverse


def held_out_predictions(
    K: np.ndarray, Y: np.ndarray, shift: np.ndarray, parts: Sequence[np.ndarray]
) -> np.ndarray:
    """Predict `Y`, of shape (n, k), each row by a least-squares classifier fitted without the part it is in.

    In the dual, ``M a = y - b`` with ``M = K + diag(shift)`` and a free intercept b. Bordered for it,
    ``P = M^-1 - M^-1 1 1'M^-1 / 1'M^-1 1``, the classifier trained without the rows t gives these
    ``y_t - P_tt^-1 (P y)_t``. One inverse, of n^3 flops, serves all parts.
    """
    inverse = _shifted_inverse(K, shift)
    both = _product(inverse, np.column_stack([np.ones(len(Y)), Y])).astype(np.float64)
    ones, solved = both[:, 0], both[:, 1:]  # M^-1 1, M^-1 Y
    dual = solved - np.outer(ones, solved.sum(axis=0) / ones.sum())
    predicted = np.empty(Y.shape)
    for rows in map(np.sort, parts):  # ascending, so that lower triangles are cut from the lower triangle
        P = inverse.take(rows, axis=0).take(rows, axis=1) - np.outer(ones[rows], ones[rows]) / ones.sum()
        predicted[rows] = Y[rows] - _solve(P, dual[rows])
    return predicted


def _shifted_inverse(K: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Lower triangle of ``(K + diag(shift))^-1``; in float64 where the precision of `K` is too coarse."""
    for dtype in dict.fromkeys((K.dtype, np.dtype(np.float64))):
        M = np.array(K, dtype)
        M[np.diag_indices_from(M)] += shift.astype(dtype)
        try:
            return spd_inverse(M, full=False)
        except NotPositiveDefinite as error:
            failed = error
    raise failed


# SciPy's BLAS, from which the inverse comes: the threads of NumPy's would have to wait for its threads


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    symm = blas.get_blas_funcs("symm", (A,))
    return np.asarray(symm(1.0, A.T, B.astype(A.dtype), lower=0))  # the transposed view is in Fortran order


def _solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    _, X, info = lapack.dposv(A, B, lower=1)
    if info:
        raise NotPositiveDefinite(info - 1)
    return np.asarray(X)
