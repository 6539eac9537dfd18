"""The verbs of the array seam for dense torch tensors, on any device.

Symmetric matrices live in their *lower triangle*, as in :mod:`.on_cpu`; what stands above the
diagonal is unspecified. Nothing here waits for the device except :func:`to_numpy` and the one
look at the pivots in :func:`spd_inverse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from .array import NotPositiveDefinite
from .torch_inverse import inverse_factor, lower_product, mirror, stripes

float64 = torch.float64
PRECISIONS = ("high", "highest")


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Multiply float32 matrices with TF32 operands ("high": 11 bits) or in full ("highest") inside.

    The setting belongs to the whole process; it is put back at the end.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def column_sums(X: torch.Tensor) -> torch.Tensor:
    """Column sums in float64, of shape (d,)."""
    return X.sum(dim=0, dtype=torch.float64)


def nonzero_counts(X: torch.Tensor) -> torch.Tensor:
    """Count the rows in which each feature is not zero."""
    return torch.count_nonzero(X, dim=0)


def gram(X: torch.Tensor) -> torch.Tensor:
    """Lower triangle of ``X'X``, of shape (d, d), in the dtype of `X`."""
    return lower_product(X)


def cross(X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    """``X'Z``, of shape (d, r)."""
    return X.T @ Z


def columns(X: torch.Tensor, which: np.ndarray) -> torch.Tensor:
    """Take the columns `which` of `X`."""
    return X[:, torch.as_tensor(which, device=X.device)]


def diagonal(A: torch.Tensor) -> torch.Tensor:
    """Diagonal of `A` in float64."""
    return A.diagonal().to(torch.float64, copy=True)


def cast(A: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return `A` in `dtype`; itself if it already is."""
    return A.to(dtype)


def empty_like(A: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return an uninitialised tensor of `shape` in the dtype and on the device of `A`."""
    return A.new_empty(shape)


def to_numpy(A: torch.Tensor) -> np.ndarray:
    """Return `A` as a NumPy array in C order; waits for the device."""
    array: np.ndarray = A.detach().contiguous().cpu().numpy()
    return array


def centred(C: torch.Tensor, n: int, mean: torch.Tensor, target_mean: torch.Tensor) -> torch.Tensor:
    """``C - n mean target_mean'``, a new matrix in the dtype of `C`, subtracted in float64."""
    out = torch.empty_like(C)
    for stripe in stripes(len(C)):
        out[stripe] = C[stripe] - n * torch.outer(mean[stripe], target_mean)
    return out


def denoising_system(
    G: torch.Tensor, n: int, mean: torch.Tensor, keep: float, damping: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Lower triangle of ``A = keep (G - n mean mean') + diag(damping)``, a new matrix.

    The mean is subtracted in float64 and a stripe at a time: in float32 the difference of two
    large numbers would lose the covariance of rare features.
    """
    A = torch.empty(G.shape, dtype=dtype, device=G.device)
    for stripe in stripes(len(G)):
        left = slice(None, stripe.stop)
        A[stripe, left] = keep * (G[stripe, left] - n * torch.outer(mean[stripe], mean[left]))
    A.diagonal().add_(damping.to(dtype))
    return A


def spd_inverse(A: torch.Tensor) -> torch.Tensor:
    """Inverse of a symmetric positive definite matrix given by its lower triangle, as a full one.

    ``A^-1 = L^-T L^-1``; `A` is used up. A pivot lost to rounding counts as not positive, since
    what would follow is noise.
    """
    least = 8 * len(A) * torch.finfo(A.dtype).eps * A.diagonal()
    factor = inverse_factor(A)
    lost = ~(factor.pivots > least)
    # the one look at the device: the first column that failed, or their number if none did
    column = int(torch.where(lost.any(), lost.int().argmax(), len(A)).minimum(factor.failed))
    if column < len(A):
        raise NotPositiveDefinite(column)
    return mirror(lower_product(factor.inverse, triangular=True))


def denoising_coef(inverse: torch.Tensor, keep: float, damping: torch.Tensor) -> torch.Tensor:
    """``(I - A^-1 diag(damping)) / keep``, which is W transposed; overwrites `inverse`.

    The result is a transposed view: the rows of W are contiguous, the layout that tensor cores
    read TF32 operands in.
    """
    inverse.mul_((-damping / keep).to(inverse.dtype)[:, None])
    inverse.diagonal().add_(1 / keep)
    return inverse.T


def like(A: np.ndarray, X: torch.Tensor) -> torch.Tensor:
    """Return a NumPy array as a tensor in the dtype and on the device of `X`."""
    return torch.as_tensor(A, dtype=X.dtype, device=X.device)


def inner_products(H: torch.Tensor) -> torch.Tensor:
    """``H H'``, of shape (n, n)."""
    return H @ H.T


def shifted_solve(K: torch.Tensor, shift: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``(K + diag(shift))^-1 B`` for a positive semidefinite `K`, which is left alone."""
    M = K.clone()
    M.diagonal().add_(like(shift, K))
    solved = torch.cholesky_solve(like(B, K), torch.linalg.cholesky(M))
    return to_numpy(solved).astype(np.float64)


def affine(
    X: torch.Tensor, coef: torch.Tensor, intercept: torch.Tensor, out: torch.Tensor | None = None
) -> torch.Tensor:
    """``X coef + intercept``, into `out` if given."""
    dtype = torch.promote_types(X.dtype, coef.dtype)
    result: torch.Tensor = torch.addmm(intercept.to(dtype), X.to(dtype), coef.to(dtype), out=out)
    return result


_SQUASH: dict[str, Callable[[torch.Tensor], Any]] = {
    "tanh": torch.Tensor.tanh_,
    "sigmoid": torch.Tensor.sigmoid_,
    "relu": torch.Tensor.relu_,
    "identity": lambda H: H,
}


def squash(H: torch.Tensor, activation: str) -> torch.Tensor:
    """Apply `activation` to every entry of `H`, in place."""
    _SQUASH[activation](H)
    return H
