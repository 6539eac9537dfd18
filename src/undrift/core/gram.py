"""Running Gram matrices: the inner products of ``[h^0, h^1, ..., h^l]``, which is never built.

A linear classifier only needs inner products, and those of a concatenation add:
``K_l = sum_t h^t h^t'`` (section 3.4's representation). One pass over the layers therefore
gives the Gram matrix of every depth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from .array import Array, NotPositiveDefinite, Rows, array_ops
from .blocks import row_slices
from .denoise import Layer
from .stack import hidden_rows

CENTRED_ENTRIES = 2**22  # entries of the rows that are centred at once, in place


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


def add_domain_centred_gram(
    K: Array, H: Array, means: np.ndarray, domain: np.ndarray, share: float = 1.0
) -> Array:
    """`K` plus `share` times :func:`domain_centred_gram` of dense rows, in the memory of `K`.

    The rows are centred in place: `H` is overwritten.
    """
    ops = array_ops(H)
    means_like_H = ops.like(means, H)
    for rows in row_slices(len(H), H.shape[1], CENTRED_ENTRIES):
        H[rows] -= means_like_H[domain[rows]]
    return ops.add_inner_products(K, H, share)


def submatrix(K: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """``K[rows][:, columns]`` for index arrays."""
    if isinstance(K, np.ndarray):  # row by row: a fifth of the time of indexing both at once
        return K.take(rows, axis=0).take(columns, axis=1)
    return K[rows][:, columns]


def shifted_inverse(K: Array, shift: np.ndarray) -> Array:
    """``(K + diag(shift))^-1`` of a positive semidefinite `K`, in float64 if its precision is too coarse."""
    ops, diagonal = array_ops(K), np.arange(len(K))
    for dtype in dict.fromkeys((K.dtype, ops.float64)):
        M = ops.cast(K + 0, dtype)
        M[diagonal, diagonal] += ops.like(shift, M)
        try:
            with ops.full_precision():
                return ops.spd_inverse(M)
        except NotPositiveDefinite as error:
            failed = error
    raise failed


def primal_weights(H: Rows, means: np.ndarray, domain: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """``w = sum_i dual_i (h_i - mean_domain(i))``, of shape (d, n_outputs)."""
    ops = array_ops(H)
    weights = ops.to_numpy(H.T @ ops.like(dual, H))
    by_domain = np.zeros((len(means), dual.shape[1]))
    np.add.at(by_domain, domain, dual)
    return weights - (means.T @ by_domain).astype(weights.dtype)


def decision_scores(X: Rows, layers: Sequence[Layer], weights: Sequence[Array]) -> np.ndarray:
    """``sum_t h^t w_t`` in one forward pass."""
    ops = array_ops(X)
    scores = ops.to_numpy(X @ weights[0])
    for H, w in zip(hidden_rows(layers, X), weights[1:], strict=True):
        scores = scores + ops.to_numpy(H @ w)
    return scores
