"""Running Gram matrices: the inner products of ``[h^0, h^1, ..., h^l]``, which is never built.

A linear classifier only needs inner products, and those of a concatenation add:
``K_l = sum_t h^t h^t'`` (section 3.4's representation). One pass over the layers therefore
gives the Gram matrix of every depth.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .array import Array, NotPositiveDefinite, Rows, array_ops
from .blocks import row_slices
from .numpy_ops import stripes

CENTRED_ENTRIES = 2**22  # entries of the rows that are centred at once, in place
REFINEMENTS = 4  # at most, of a float32 solution; the last one must have changed it by less than
REFINED = 1e-4  # of its norm, so that the error left is about the square of that


def domain_centred_gram(H: Rows, means: np.ndarray, domain: np.ndarray) -> Array:
    """Return inner products of rows after the mean of each domain, a row of `means`, is subtracted."""
    ops = array_ops(H)
    if not sp.issparse(H):
        return ops.inner_products(H - ops.like(means, H)[domain])
    # sparse rows stay sparse: (x - m)(y - m)' = xy' - xm' - my' + mm'
    K = ops.inner_products(H)
    cross = np.asarray(H @ means.T.astype(H.dtype))  # (n, n_domains): x_i . m_k
    between = (means @ means.T).astype(K.dtype)
    for rows in row_slices(len(K), len(K)):
        K[rows] -= cross[rows][:, domain]
        K[rows] -= cross[:, domain[rows]].T
        K[rows] += between[np.ix_(domain[rows], domain)]
    return K


def domain_centred_cross(
    X: Rows, Z: Rows, means: np.ndarray, domain: np.ndarray, other_domain: np.ndarray | None
) -> Array:
    """Return inner products of the rows of `X` with those of `Z`, as :func:`domain_centred_gram`.

    Rows of `X` are made dense, a block at a time. Those of `Z` are only multiplied; without `other_domain`
    they are centred already.
    """
    dense = X[:0].toarray() if sp.issparse(X) else X[:0]
    ops, centres = array_ops(dense), array_ops(dense).like(means, dense)
    K = ops.empty_like(dense, (X.shape[0], Z.shape[0]))
    for rows in row_slices(X.shape[0], X.shape[1], CENTRED_ENTRIES):
        own = (X[rows].toarray() if sp.issparse(X) else X[rows]) - centres[domain[rows]]
        K[rows] = (Z @ own.T).T
        if other_domain is not None:
            K[rows] -= (own @ centres.T)[:, other_domain]
    return K


def add_domain_centred_gram(
    folded: Array, H: Array, means: np.ndarray, domain: np.ndarray, share: float = 1.0
) -> Array:
    """Add `share` times :func:`domain_centred_gram` of dense rows to a folded matrix, in its memory.

    The rows are centred in place: `H` is overwritten.
    """
    ops = array_ops(H)
    means_like_H = ops.like(means, H)
    for rows in row_slices(len(H), H.shape[1], CENTRED_ENTRIES):
        H[rows] -= means_like_H[domain[rows]]
    return ops.add_inner_products(folded, H, share)


def submatrix(K: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """``K[rows][:, columns]`` for index arrays."""
    if isinstance(K, np.ndarray):  # row by row: a fifth of the time of indexing both at once
        return K.take(rows, axis=0).take(columns, axis=1)
    return K[rows][:, columns]


def shifted_inverse(K: Array, shift: np.ndarray) -> Array:
    """``(K + diag(shift))^-1`` of a positive semidefinite `K`, by float64 if its precision is too coarse."""
    ops, diagonal = array_ops(K), np.arange(len(K))
    for dtype in dict.fromkeys((K.dtype, ops.float64)):
        M = ops.cast(K + 0, dtype)
        M[diagonal, diagonal] += ops.like(shift, M)
        try:
            with ops.full_precision():
                return ops.cast(ops.inverse(ops.factor(M)), K.dtype)
        except NotPositiveDefinite as error:
            failed = error
    raise failed


def shifted_solve(K: Array, shift: np.ndarray, B: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """``(K + diag(shift))^-1 B`` for a positive semidefinite `K`, which is not changed: float64, on the host.

    With `rows`, for ``K[rows][:, rows]``, which is copied only where it is factored. A float32 matrix is
    factored in float32, at half the cost, and the solution refined by residuals in float64.
    """
    ops, n = array_ops(K), len(shift)
    failed, diagonal = NotPositiveDefinite(0), np.arange(n)

    def take(first: slice, second: slice) -> Array:
        return K[first, second] if rows is None else submatrix(K, rows[first], rows[second])

    def solve(B: np.ndarray) -> np.ndarray:
        solved: np.ndarray = ops.to_numpy(ops.solve(factor, ops.like(B, factor) + 0))
        return solved.astype(np.float64)

    for dtype in dict.fromkeys((K.dtype, ops.float64)):
        M = ops.empty_like(K, (n, n), dtype)
        for part in stripes(n):
            left = slice(None, part.stop)
            M[part, left] = take(part, left)
        M[diagonal, diagonal] += ops.like(shift, M)
        try:
            factor = ops.factor(M)
        except NotPositiveDefinite as error:
            failed = error
            continue
        X = solve(B)
        if dtype == ops.float64:
            return X
        for _ in range(REFINEMENTS):
            residual = B - shift[:, None] * X
            for part in stripes(n):
                some = ops.cast(take(part, slice(None)), ops.float64)
                residual[part] -= ops.to_numpy(some @ ops.like(X, some))
            step = solve(residual)
            X += step
            if np.all(np.linalg.norm(step, axis=0) <= REFINED * np.linalg.norm(X, axis=0)):
                return X
    raise failed


def primal_weights(H: Rows, means: np.ndarray | None, domain: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """``w = sum_i dual_i (h_i - mean_domain(i))``, (d, n_outputs); without means of rows that are centred."""
    ops = array_ops(H)
    weights: np.ndarray = ops.to_numpy(H.T @ ops.like(dual, H))
    if means is None:
        return weights
    by_domain = np.zeros((len(means), dual.shape[1]))
    np.add.at(by_domain, domain, dual)
    return weights - (means.T @ by_domain).astype(weights.dtype)
