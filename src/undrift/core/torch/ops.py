"""Array operations for dense torch tensors, on any device.

Symmetric matrices are stored in their *lower triangle*, as in :mod:`..numpy_ops`; values above the diagonal
are unspecified. Nothing here waits for the device except :func:`to_numpy`, :func:`energy` and the check of
the pivots in :func:`spd_inverse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from ..array import NotPositiveDefinite
from ..numpy_ops import stripes

float64 = torch.float64
SUMMED = 64  # float32 rows added in float32


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Let float32 products round their operands to 11 bits ("high"), or not ("highest"), inside.

    The setting is that of the whole process; it is restored at the end.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


full_precision = partial(precision, "highest")


def column_sums(X: torch.Tensor) -> torch.Tensor:
    """Column sums in float64, of shape (d,); `SUMMED` float32 rows at a time are added in float32."""
    if X.dtype != torch.float32:
        return X.sum(dim=0, dtype=torch.float64)
    whole = len(X) // SUMMED * SUMMED
    total = X[whole:].sum(dim=0, dtype=torch.float64)
    if whole:
        total += X[:whole].unflatten(0, (-1, SUMMED)).sum(dim=1).sum(dim=0, dtype=torch.float64)
    return total


def energy(X: torch.Tensor) -> float:
    """Sum of the squares of all entries; waits for the device."""
    return float(torch.linalg.vector_norm(X, dim=1).square().sum(dtype=torch.float64))


def nonzero_counts(X: torch.Tensor) -> torch.Tensor:
    """Count the rows in which each feature is not zero."""
    return torch.count_nonzero(X, dim=0)


def gram(X: torch.Tensor) -> torch.Tensor:
    """``X'X``, of shape (d, d), in the dtype of `X`."""
    return X.T @ X


def cross(X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    """``X'Z``, of shape (d, r)."""
    return X.T @ Z


def columns(X: torch.Tensor, which: np.ndarray) -> torch.Tensor:
    """Take the columns `which` of `X`."""
    return X[:, torch.as_tensor(which, device=X.device)]


def diagonal(A: torch.Tensor) -> torch.Tensor:
    """Diagonal of `A` in float64."""
    return A.diagonal().to(torch.float64, copy=True)


def cast(A: torch.Tensor, dtype: Any) -> torch.Tensor:
    """Return `A` in `dtype`, one of torch or of NumPy; itself if it already is."""
    return A.to(dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name))


def stack(blocks: Sequence[torch.Tensor]) -> torch.Tensor:
    """Stack row blocks."""
    return torch.cat(list(blocks))


def empty_like(A: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return an uninitialised tensor of `shape` in the dtype and on the device of `A`."""
    return A.new_empty(shape)


def to_numpy(A: torch.Tensor) -> np.ndarray:
    """Return `A` as a NumPy array in C order; waits for the device."""
    array: np.ndarray = A.detach().contiguous().cpu().numpy()
    return array


def centred(C: torch.Tensor, n: int, mean: torch.Tensor, target_mean: torch.Tensor) -> torch.Tensor:
    """``C - n mean target_mean'``, a new matrix in the dtype of `C`, subtracted in float64."""
    return torch.addcmul(C, mean[:, None], target_mean, value=-n, out=torch.empty_like(C))


def denoising_system(
    G: torch.Tensor, n: int, mean: torch.Tensor, keep: float, damping: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Lower triangle of ``A = keep (G - n mean mean') + diag(damping)``, as that of :mod:`..numpy_ops`."""
    A = torch.empty(G.shape, dtype=dtype, device=G.device)
    for stripe in stripes(len(G)):
        left = slice(None, stripe.stop)
        torch.addcmul(G[stripe, left], mean[stripe, None], mean[left], value=-n, out=A[stripe, left])
    A.mul_(keep)
    A.diagonal().add_(damping.to(dtype))
    return A


def spd_inverse(A: torch.Tensor) -> torch.Tensor:
    """Inverse of a symmetric positive definite matrix given by its lower triangle, as a full one."""
    factor, info = torch.linalg.cholesky_ex(A)
    least = 8 * len(A) * torch.finfo(A.dtype).eps * A.diagonal()
    lost = ~(factor.diagonal().square() > least)
    first = torch.where(lost.any(), lost.int().argmax(), len(A))
    column = int(torch.where(info > 0, first.minimum(info - 1), first))  # waits for the device
    if column < len(A):
        raise NotPositiveDefinite(column)
    return torch.cholesky_inverse(factor)


def denoising_coef(inverse: torch.Tensor, keep: float, damping: torch.Tensor) -> torch.Tensor:
    """``(I - A^-1 diag(damping)) / keep``, which is W transposed; overwrites `inverse`."""
    inverse.mul_((-damping / keep).to(inverse.dtype))
    inverse.diagonal().add_(1 / keep)
    return inverse


def like(A: np.ndarray, X: torch.Tensor) -> torch.Tensor:
    """Return a NumPy array as a tensor in the dtype and on the device of `X`."""
    return torch.as_tensor(A, dtype=X.dtype, device=X.device)


def inner_products(H: torch.Tensor) -> torch.Tensor:
    """``H H'``, of shape (n, n)."""
    return H @ H.T


def add_inner_products(K: torch.Tensor, H: torch.Tensor, share: float) -> torch.Tensor:
    """``K + share H H'`` for a symmetric `K`, which is overwritten."""
    return K.addmm_(H, H.T, alpha=share)


def zeros_like(A: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return zeros of `shape` in the dtype and on the device of `A`."""
    return A.new_zeros(shape)


def add_gram(G: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """``G + X'X`` for a symmetric `G`, which is overwritten."""
    return G.addmm_(X.T, X)


def factor_spd(A: torch.Tensor, shift: np.ndarray) -> torch.Tensor:
    """Lower Cholesky factor of ``A + diag(shift)``, given by its lower triangle, which is overwritten."""
    A.diagonal().add_(like(shift, A))
    factor, info = torch.linalg.cholesky_ex(A)
    if int(info):
        raise NotPositiveDefinite(int(info) - 1)
    return factor


def solve_lower(factor: torch.Tensor, rows: torch.Tensor, transposed: bool = False) -> torch.Tensor:
    """``L^-1 r`` for every row r of `rows`; `transposed`, ``L'^-1 r``."""
    triangle = factor.T if transposed else factor
    return torch.linalg.solve_triangular(triangle, rows.T, upper=transposed).T


def shifted_solve(
    K: torch.Tensor, shift: np.ndarray, B: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """``(K + diag(shift))^-1 B`` for a positive semidefinite `K`; with `rows`, for ``K[rows][:, rows]``."""
    K = K.clone() if rows is None else K[rows][:, rows]
    return to_numpy(torch.cholesky_solve(like(B, K), factor_spd(K, shift))).astype(np.float64)


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
