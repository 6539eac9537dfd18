"""Array operations for NumPy arrays and SciPy sparse rows.

Symmetric matrices are stored in their *lower triangle* (C order); values above the diagonal are
unspecified until :func:`mirror` fills them. BLAS and LAPACK see the transposed view, in Fortran order, so
that nothing is copied.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from .array import NotPositiveDefinite, Rows

float64 = np.float64
full_precision = nullcontext  # products are never rounded here
N_PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# the limit of BLAS counts here too, so that several processes can share a machine
_ALLOWED = os.environ.get("OMP_NUM_THREADS", "")
N_THREADS = min(int(_ALLOWED), N_PROCESSORS) if _ALLOWED.isdigit() and int(_ALLOWED) else N_PROCESSORS
REFINEMENTS = 4  # at most, of a float32 solution; the last one must have changed it by less than
REFINED = 1e-4  # of its norm, so that the error left is about the square of that
STRIPE = 512  # columns (or rows) of a d-wide matrix processed at once: with d = 5,000 they fit a shared cache


def stripes(n: int, size: int = STRIPE) -> list[slice]:
    """Cut ``range(n)`` into slices of at most `size`."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def in_threads(task: Callable[[slice], object], jobs: Iterable[slice]) -> None:
    """Run `task` on every job. SciPy's and NumPy's loops release the interpreter's lock."""
    jobs = list(jobs)
    if N_THREADS == 1 or len(jobs) <= 1:
        for job in jobs:
            task(job)
        return
    with ThreadPoolExecutor(min(N_THREADS, len(jobs))) as pool:
        list(pool.map(task, jobs))


def column_sums(X: Rows) -> np.ndarray:
    """Sum the columns in float64; return shape (d,)."""
    if sp.issparse(X):
        return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1)
    total = np.empty(X.shape[1])

    def fill(stripe: slice) -> None:
        X[:, stripe].sum(axis=0, dtype=np.float64, out=total[stripe])

    in_threads(fill, stripes(X.shape[1]))
    return total


def energy(X: Rows) -> float:
    """Sum of the squares of all entries."""
    if sp.issparse(X):
        return float(np.dot(X.data.astype(np.float64), X.data))
    return float(np.einsum("ij,ij->i", X, X).sum(dtype=np.float64))


def nonzero_counts(X: Rows) -> np.ndarray:
    """Count the rows in which each feature is not zero."""
    if sp.issparse(X):
        return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    return np.count_nonzero(X, axis=0)


def gram(X: Rows) -> np.ndarray:
    """Lower triangle of ``X'X``, of shape (d, d), in the dtype of `X`."""
    if sp.issparse(X):
        return _sparse_gram(X)
    # NumPy sees that both are one matrix and calls syrk. SciPy's would do it too, but its BLAS has other
    # threads, which have to wait for those of the product before and cost 15% of the rate
    return np.asarray(np.matmul(X.T, X))


def _sparse_gram(X: sp.csr_matrix) -> np.ndarray:
    """Multiply sparse by sparse, a stripe of the result at a time, up to the diagonal only."""
    d = X.shape[1]
    G = np.zeros((d, d), dtype=X.dtype)
    Xt = X.T.tocsr()

    def fill(stripe: slice) -> None:
        G[stripe, : stripe.stop] = (Xt[stripe] @ X[:, : stripe.stop]).toarray()

    in_threads(fill, stripes(d))
    return G


def cross(X: Rows, Z: Rows) -> np.ndarray:
    """``X'Z``, dense, of shape (d, r)."""
    if not sp.issparse(X):
        return np.asarray(X.T @ Z)
    C = np.zeros((X.shape[1], Z.shape[1]), dtype=X.dtype)
    Xt = X.T.tocsr()

    def fill(stripe: slice) -> None:
        product = Xt[stripe] @ Z
        C[stripe] = product.toarray() if sp.issparse(product) else product

    in_threads(fill, stripes(X.shape[1]))
    return C


def columns(X: Rows, which: np.ndarray) -> Rows:
    """Take the columns `which` of `X`."""
    return X[:, which]


def diagonal(A: np.ndarray) -> np.ndarray:
    """Diagonal of `A` in float64."""
    return np.diagonal(A).astype(np.float64)


def cast(A: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `A` in `dtype`; itself if it already is."""
    return A.astype(dtype, copy=False)


def stack(blocks: Sequence[Rows]) -> Rows:
    """Stack row blocks, sparse or dense; the result is sparse if any of them is."""
    return sp.vstack(blocks, format="csr") if any(map(sp.issparse, blocks)) else np.concatenate(blocks)


def empty_like(A: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an uninitialised array of `shape` in the dtype of `A`."""
    return np.empty(shape, A.dtype)


def to_numpy(A: np.ndarray) -> np.ndarray:
    """Return `A` itself."""
    return A


def centred(C: np.ndarray, n: int, mean: np.ndarray, target_mean: np.ndarray) -> np.ndarray:
    """``C - n mean target_mean'``, a new matrix in the dtype of `C`, subtracted in float64."""
    out = np.empty_like(C)
    for stripe in stripes(len(C), 64):
        out[stripe] = C[stripe] - n * np.outer(mean[stripe], target_mean)
    return out


def denoising_system(
    G: np.ndarray, n: int, mean: np.ndarray, keep: float, damping: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """Lower triangle of ``A = keep (G - n mean mean') + diag(damping)``, a new matrix.

    The mean is subtracted in float64 and a stripe at a time: in float32 the difference of two
    large numbers would lose the covariance of rare features.
    """
    A = np.empty(G.shape, dtype=dtype)
    for stripe in stripes(len(G), 64):
        left = slice(None, stripe.stop)
        A[stripe, left] = keep * (G[stripe, left] - n * np.outer(mean[stripe], mean[left]))
    A[np.diag_indices_from(A)] += damping.astype(dtype)
    return A


def spd_inverse(A: np.ndarray) -> np.ndarray:
    """Inverse of a symmetric positive definite matrix given by its lower triangle.

    LAPACK potrf and potri, about d^3 flops, in place: `A` is overwritten. A pivot lost to rounding counts as
    not positive, since nothing computed from it could be trusted.
    """
    potrf, potri = lapack.get_lapack_funcs(("potrf", "potri"), (A,))
    diagonal = np.diagonal(A).copy()
    factor, info = potrf(A.T, lower=0, clean=0, overwrite_a=1)
    if info > 0:
        raise NotPositiveDefinite(info - 1)
    pivots = np.diagonal(factor) ** 2
    lost = np.flatnonzero(~(pivots > 8 * len(A) * np.finfo(A.dtype).eps * diagonal))
    if len(lost):
        raise NotPositiveDefinite(int(lost[0]))
    inverse, _ = potri(factor, lower=0, overwrite_c=1)
    return mirror(inverse.T)


def mirror(A: np.ndarray) -> np.ndarray:
    """Fill the upper triangle of `A` from its lower one, in place, tile by tile."""
    for stripe in stripes(len(A)):
        A[: stripe.start, stripe] = A[stripe, : stripe.start].T
        tile = np.tril(A[stripe, stripe])
        A[stripe, stripe] = tile + np.tril(tile, -1).T
    return A


def denoising_coef(inverse: np.ndarray, keep: float, damping: np.ndarray) -> np.ndarray:
    """``(I - A^-1 diag(damping)) / keep``, which is W transposed; overwrites `inverse`."""
    inverse *= (-damping / keep).astype(inverse.dtype)
    inverse[np.diag_indices_from(inverse)] += 1 / keep
    return inverse


def like(A: np.ndarray, X: Rows) -> np.ndarray:
    """Return a NumPy array in the dtype of `X`."""
    return A.astype(X.dtype, copy=False)


def inner_products(H: Rows) -> np.ndarray:
    """``H H'``, dense and full, of shape (n, n)."""
    if sp.issparse(H):  # documents share frequent terms, so a sparse result would be full
        return mirror(gram(H.T.tocsr()))
    H = np.ascontiguousarray(H)
    return mirror(blas.get_blas_funcs("syrk", (H,))(1.0, H.T, trans=1).T)


def add_inner_products(K: np.ndarray, H: np.ndarray, share: float) -> np.ndarray:
    """``K + share H H'`` for dense rows and a symmetric `K`, which is overwritten."""
    H, K = np.ascontiguousarray(H), np.ascontiguousarray(K)
    syrk = blas.get_blas_funcs("syrk", (H, K))
    return mirror(syrk(share, H.T, beta=1.0, c=K.T, trans=1, overwrite_c=1).T)


def zeros_like(A: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return zeros of `shape` in the dtype of `A`; pages that are never written take no memory."""
    return np.zeros(shape, A.dtype)


def add_gram(G: np.ndarray, X: np.ndarray) -> np.ndarray:
    """``G + X'X`` for dense rows and the lower triangle of a symmetric `G`, which is overwritten."""
    syrk = blas.get_blas_funcs("syrk", (X, G))
    return np.asarray(syrk(1.0, np.ascontiguousarray(X).T, beta=1.0, c=G.T, overwrite_c=1)).T


def factor_spd(A: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Lower Cholesky factor of ``A + diag(shift)``, given by its lower triangle, which is overwritten."""
    A[np.diag_indices_from(A)] += shift.astype(A.dtype)
    factor, info = lapack.get_lapack_funcs("potrf", (A,))(A.T, lower=0, clean=0, overwrite_a=1)
    if info > 0:
        raise NotPositiveDefinite(info - 1)
    return np.asarray(factor).T


def solve_lower(factor: np.ndarray, rows: np.ndarray, transposed: bool = False) -> np.ndarray:
    """``L^-1 r`` for every row r of `rows`, which are overwritten; `transposed`, ``L'^-1 r``."""
    trtrs = lapack.get_lapack_funcs("trtrs", (factor, rows))
    solved, _ = trtrs(factor.T, rows.T, lower=0, trans=0 if transposed else 1, overwrite_b=1)
    return np.asarray(solved).T


def shifted_solve(
    K: np.ndarray, shift: np.ndarray, B: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """``(K + diag(shift))^-1 B`` for a positive semidefinite `K`, which is not changed.

    With `rows`, for ``K[rows][:, rows]``, which is copied only where it is factored. A float32
    matrix is factored in float32, at half the cost, and the solution refined by residuals in float64.
    """
    refined = None if K.dtype == np.float64 else _solve_refined(K, shift, B, rows)
    return _solve(_factor(K, shift, rows, np.float64), B) if refined is None else refined


def _solve_refined(
    K: np.ndarray, shift: np.ndarray, B: np.ndarray, rows: np.ndarray | None
) -> np.ndarray | None:
    """Solve with a factor in the precision of `K`, and refine; None where that does not converge."""
    try:
        factor = _factor(K, shift, rows, K.dtype)
    except NotPositiveDefinite:
        return None
    X = _solve(factor, B)
    for _ in range(REFINEMENTS):
        residual = B - shift[:, None] * X
        for stripe in stripes(len(B)):
            residual[stripe] -= _take(K, rows, stripe, slice(None)).astype(np.float64) @ X
        step = _solve(factor, residual)
        X += step
        if np.all(np.linalg.norm(step, axis=0) <= REFINED * np.linalg.norm(X, axis=0)):
            return X
    return None


def _take(K: np.ndarray, rows: np.ndarray | None, first: slice, second: slice) -> np.ndarray:
    """Return a part of ``K[rows][:, rows]``."""
    return K[first, second] if rows is None else K.take(rows[first], axis=0).take(rows[second], axis=1)


def _factor(K: np.ndarray, shift: np.ndarray, rows: np.ndarray | None, dtype: Any) -> np.ndarray:
    """Lower Cholesky factor of ``K[rows][:, rows] + diag(shift)``."""
    M = np.empty((len(shift), len(shift)), dtype)
    for stripe in stripes(len(M)):  # pages above the diagonal are never touched, and take no memory
        left = slice(None, stripe.stop)
        M[stripe, left] = _take(K, rows, stripe, left)
    return factor_spd(M, shift)


def _solve(factor: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve with a lower Cholesky factor; the result is float64."""
    X, _ = lapack.get_lapack_funcs("potrs", (factor,))(factor.T, B.astype(factor.dtype), lower=0)
    return np.asarray(X, dtype=np.float64)


def affine(X: Rows, coef: Any, intercept: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``X coef + intercept`` as a dense array, into `out` if given; `coef` may be a `RowCoef`."""
    if out is None:
        out = np.empty((X.shape[0], coef.shape[1]), dtype=np.result_type(X.dtype, coef.dtype))
    is_matrix = isinstance(coef, np.ndarray)
    if not (is_matrix and sp.issparse(X)):
        _ = np.matmul(X, coef, out=out) if is_matrix else coef.multiply(X, out)
        in_threads(lambda rows: np.add(out[rows], intercept, out=out[rows]), stripes(len(out), 1024))
        return out

    def fill(stripe: slice) -> None:
        # a contiguous stripe of coef stays in the shared cache for all rows
        out[:, stripe] = X @ np.ascontiguousarray(coef[:, stripe])
        out[:, stripe] += intercept[stripe]

    in_threads(fill, stripes(coef.shape[1]))
    return out


def _sigmoid(H: np.ndarray) -> None:
    """Overwrite with 1 / (1 + exp(-h)), through tanh, which does not overflow."""
    H *= 0.5
    np.tanh(H, out=H)
    H += 1
    H *= 0.5


_SQUASH: dict[str, Callable[[np.ndarray], object]] = {
    "tanh": lambda H: np.tanh(H, out=H),
    "sigmoid": _sigmoid,
    "relu": lambda H: np.maximum(H, 0, out=H),
    "identity": lambda H: None,
}
ACTIVATIONS = tuple(_SQUASH)


def squash(H: np.ndarray, activation: str) -> np.ndarray:
    """Apply `activation` to every entry of `H`, in place."""
    in_threads(lambda rows: _SQUASH[activation](H[rows]), stripes(len(H), 1024))
    return H
