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

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.linalg import blas, lapack

from ..machine import count_processors
from .array import Array, NotPositiveDefinite, Rows

float64 = np.float64
full_precision = nullcontext  # products are never rounded here
# the limit of BLAS counts here too, so that several processes can share a machine
_ALLOWED = os.environ.get("OMP_NUM_THREADS", "")
N_THREADS = min(int(_ALLOWED) if _ALLOWED.isdigit() and int(_ALLOWED) else 1024, count_processors())
STRIPE = 512  # columns (or rows) of a d-wide matrix processed at once: with d = 5,000 they fit a shared cache
FULL = 0.05  # of the rows: a column with more entries is multiplied faster as a dense one
STRIPE_ENTRIES = 2**21  # entries of a dense matrix that sparse rows are multiplied by at once, for the same


def stripes(n: int, size: int = STRIPE) -> list[slice]:
    """Cut ``range(n)`` into slices of at most `size`."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def in_threads(task: Callable[[slice], object], jobs: Iterable[slice], n_threads: int = N_THREADS) -> None:
    """Run `task` on every job. SciPy's and NumPy's loops release the interpreter's lock."""
    jobs = list(jobs)
    if n_threads == 1 or len(jobs) <= 1:
        for job in jobs:
            task(job)
        return
    with ThreadPoolExecutor(min(n_threads, len(jobs))) as pool:
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


def column_energies(X: Rows) -> np.ndarray:
    """Sum the squares of each column in float64; return shape (d,)."""
    if sp.issparse(X):
        return np.bincount(X.indices, X.data.astype(np.float64) ** 2, minlength=X.shape[1])
    total = np.zeros(X.shape[1])
    for rows in stripes(len(X), 64):
        total += np.square(X[rows], dtype=np.float64).sum(axis=0)
    return total


def is_sparse(X: Rows) -> bool:
    """Tell whether the rows are CSR."""
    return bool(sp.issparse(X))


def nonzero_counts(X: Rows) -> np.ndarray:
    """Count the rows in which each feature is not zero."""
    if sp.issparse(X):
        return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    return np.count_nonzero(X, axis=0)


def gram(X: Rows) -> np.ndarray:
    """Lower triangle of ``X'X``, of shape (d, d), in the dtype of `X`."""
    if sp.issparse(X):
        return _add_sparse_gram(np.zeros((X.shape[1], X.shape[1]), X.dtype), X)
    # NumPy sees that both are one matrix and calls syrk. SciPy's would do it too, but its BLAS has other
    # threads, which have to wait for those of the product before and cost 15% of the rate
    return np.asarray(np.matmul(X.T, X))


def _add_sparse_gram(G: np.ndarray, X: sp.csr_matrix) -> np.ndarray:
    """Add ``X'X`` in place, sparse by sparse, a stripe of the result at a time, up to the diagonal only."""
    Xt = X.T.tocsr()

    def add(stripe: slice) -> None:
        G[stripe, : stripe.stop] += (Xt[stripe] @ X[:, : stripe.stop]).toarray()

    in_threads(add, stripes(len(G)))
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


def cast(A: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `A` in `dtype`; itself if it already is."""
    return A.astype(dtype, copy=False)


def stack(blocks: Sequence[Rows]) -> Rows:
    """Stack row blocks, sparse or dense; the result is sparse if any of them is."""
    return sp.vstack(blocks, format="csr") if any(map(sp.issparse, blocks)) else np.concatenate(blocks)


def empty_like(A: np.ndarray, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> np.ndarray:
    """Return an uninitialised array of `shape` in the dtype of `A`, or another one."""
    return np.empty(shape, dtype or A.dtype)


def to_numpy(A: np.ndarray) -> np.ndarray:
    """Return `A` itself."""
    return A


def factor(A: np.ndarray) -> np.ndarray:
    """Return the upper Cholesky factor of a matrix given by its lower triangle, in its memory.

    A pivot lost to rounding counts as not positive, since nothing computed from it could be trusted.
    """
    diagonal = np.diagonal(A).copy()
    upper, info = lapack.get_lapack_funcs("potrf", (A,))(A.T, lower=0, clean=0, overwrite_a=1)
    if info > 0:
        raise NotPositiveDefinite(info - 1)
    pivots = np.diagonal(upper) ** 2
    lost = np.flatnonzero(~(pivots > 8 * len(A) * np.finfo(A.dtype).eps * diagonal))
    if len(lost):
        raise NotPositiveDefinite(int(lost[0]))
    return np.asarray(upper)


def inverse(factor: np.ndarray) -> np.ndarray:
    """Return the inverse of the matrix that was factored, in the memory of its factor."""
    upper, _ = lapack.get_lapack_funcs("potri", (factor,))(factor, lower=0, overwrite_c=1)
    return mirror(upper.T)


def solve(factor: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``A^-1 B`` for the matrix A = U'U that was factored; `B` is overwritten.

    ``X' U' U = B'`` is solved from the right, since B' is the view that BLAS can write to.
    """
    trsm, X = blas.get_blas_funcs("trsm", (factor, B)), B.T
    for trans in (0, 1):
        X = trsm(1.0, factor, X, side=1, lower=0, trans_a=trans, overwrite_b=1)
    return np.asarray(X).T


def mirror(A: np.ndarray) -> np.ndarray:
    """Fill the upper triangle of `A` from its lower one, in place, tile by tile."""
    for stripe in stripes(len(A)):
        A[: stripe.start, stripe] = A[stripe, : stripe.start].T
        tile = np.tril(A[stripe, stripe])
        A[stripe, stripe] = tile + np.tril(tile, -1).T
    return A


def like(A: np.ndarray, X: Rows) -> np.ndarray:
    """Return a NumPy array in the dtype of `X`."""
    return A.astype(X.dtype, copy=False)


def inner_products(H: Rows) -> np.ndarray:
    """``H H'``, dense and full, of shape (n, n); the columns of sparse rows that are fullest become dense."""
    if not sp.issparse(H):
        return np.asarray(H @ H.T)  # of one matrix: half of a product
    is_full = np.bincount(H.indices, minlength=H.shape[1]) > FULL * H.shape[0]
    full = H[:, np.flatnonzero(is_full)].toarray()
    return mirror(_add_sparse_gram(full @ full.T, H[:, np.flatnonzero(~is_full)].T.tocsr()))


def fold(K: np.ndarray) -> np.ndarray:
    """Return the n (n + 1) / 2 numbers of a symmetric matrix in LAPACK's rectangular full packed form."""
    packed, _ = lapack.get_lapack_funcs("trttf", (K,))(K.T, uplo="U")
    return np.asarray(packed)


def add_inner_products(packed: np.ndarray, H: np.ndarray, share: float) -> np.ndarray:
    """``K + share H H'`` for dense rows and a `K` that :func:`fold` packed, which is overwritten."""
    H = np.ascontiguousarray(H)
    sfrk = lapack.get_lapack_funcs("sfrk", (H, packed))
    return np.asarray(sfrk(*H.shape, share, H.T, 1.0, packed, trans="T", uplo="U", overwrite_c=1))


def unfold(packed: np.ndarray) -> np.ndarray:
    """Return the full matrix that :func:`fold` packed."""
    n = int((2 * len(packed)) ** 0.5)
    full, _ = lapack.get_lapack_funcs("tfttr", (packed,))(n, packed, uplo="U")
    return mirror(full.T)


def scale_columns(X: Rows, scale: np.ndarray) -> Rows:
    """``X diag(scale)`` in the dtype of `X`, sparse where `X` is."""
    scale = scale.astype(X.dtype)
    if not sp.issparse(X):
        return X * scale
    X = X.tocsr()
    return type(X)((X.data * scale[X.indices], X.indices, X.indptr), shape=X.shape)


def subtract(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """``X - 1 mean'``, a new matrix in the dtype of `X`, subtracted in the precision of the mean."""
    Z = np.empty_like(X)
    for rows in stripes(len(X), 64):
        Z[rows] = X[rows] - mean
    return Z


def times(B: np.ndarray, Z: Rows) -> np.ndarray:
    """``B Z`` for dense `B`, as a dense matrix."""
    if not sp.issparse(Z):
        return np.asarray(B @ Z)
    out, columns = np.empty((len(B), Z.shape[1]), np.result_type(B, Z)), Z.T.tocsr()

    def fill(rows: slice) -> None:
        out[rows] = (columns @ np.ascontiguousarray(B[rows].T)).T

    in_threads(fill, stripes(len(B), 64))  # those of `B` stay in the cache, as each column reads them anew
    return out


def times_transposed(X: Rows, Z: Rows) -> np.ndarray:
    """``X Z'``, dense, for rows of which either may be sparse."""
    if not sp.issparse(Z):
        return np.asarray(X @ Z.T)
    if not sp.issparse(X):
        return np.asarray((Z @ np.ascontiguousarray(X.T)).T)
    products, Zt = np.empty((X.shape[0], Z.shape[0]), np.result_type(X, Z)), Z.T.tocsr()

    def fill(rows: slice) -> None:
        products[rows] = (X[rows] @ Zt).toarray()

    in_threads(fill, stripes(len(products)))
    return products


def affine(X: Rows, coef: Array, intercept: np.ndarray) -> np.ndarray:
    """``X coef + intercept`` as a dense array; `coef` may be a `RowCoef`."""
    if not isinstance(coef, np.ndarray):
        coef = coef.suit(X.shape[0])
    is_matrix = isinstance(coef, np.ndarray)
    if not (is_matrix and sp.issparse(X)):
        out = X @ coef if is_matrix else coef.multiply(X)
        in_threads(lambda rows: np.add(out[rows], intercept, out=out[rows]), stripes(len(out), 1024))
        return out
    out = np.empty((X.shape[0], coef.shape[1]), np.result_type(X, coef))

    def fill(stripe: slice) -> None:
        # a contiguous stripe of coef stays in the shared cache for all rows
        out[:, stripe] = X @ np.ascontiguousarray(coef[:, stripe])
        out[:, stripe] += intercept[stripe]

    in_threads(fill, stripes(coef.shape[1], max(32, STRIPE_ENTRIES // len(coef))))
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
