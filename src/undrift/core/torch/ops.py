"""Array operations for dense torch tensors, on any device: what :mod:`..numpy_ops` says of each holds here.

Symmetric matrices are stored in their *lower triangle*, as in :mod:`..numpy_ops`; values above the diagonal
are unspecified. Nothing waits for the device except :func:`to_numpy`, :func:`is_sparse` and :func:`factor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock

import numpy as np
import torch
from numpy.typing import DTypeLike

from ..array import Array, NotPositiveDefinite

float64 = torch.float64
SUMMED = 64  # float32 rows added in float32


class _Precision:
    """The precision of float32 products, a setting of the whole process, as all threads together need it."""

    def __init__(self) -> None:
        self._lock, self._asked, self._before = Lock(), list[str](), ""

    @contextmanager
    def ask(self, name: str) -> Iterator[None]:
        """Let float32 products round their operands to 11 bits ("high"), or not ("highest"), inside.

        Where several ask at the same time, "highest" wins. After the last of them all is as before the first.
        """
        with self._lock:
            if not self._asked:
                self._before = torch.get_float32_matmul_precision()
            self._asked.append(name)
            self._set()
        try:
            yield
        finally:
            with self._lock:
                self._asked.remove(name)
                self._set()

    def _set(self) -> None:
        wanted = "highest" if "highest" in self._asked else [self._before, *self._asked][-1]
        torch.set_float32_matmul_precision(wanted)


precision = _Precision().ask
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


def column_energies(X: torch.Tensor) -> torch.Tensor:
    return column_sums(X.square())


def is_sparse(X: torch.Tensor) -> bool:
    """Tell whether most entries are 0: such rows are CSR on the host."""
    return bool(torch.count_nonzero(X) < X.numel() / 2)


def nonzero_counts(X: torch.Tensor) -> torch.Tensor:
    return torch.count_nonzero(X, dim=0)


def gram(X: torch.Tensor) -> torch.Tensor:
    return X.T @ X


def cross(X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    return X.T @ Z


def cast(A: torch.Tensor, dtype: torch.dtype | DTypeLike) -> torch.Tensor:
    """Return `A` in `dtype`, one of torch or of NumPy; itself if it already is."""
    return A.to(dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name))


def stack(blocks: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat(list(blocks))


def empty_like(A: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> torch.Tensor:
    return A.new_empty(shape, dtype=dtype)


def to_numpy(A: torch.Tensor) -> np.ndarray:
    array: np.ndarray = A.detach().contiguous().cpu().numpy()
    return array


def factor(A: torch.Tensor) -> torch.Tensor:
    """Return the lower Cholesky factor of a matrix given by its lower triangle."""
    lower, info = torch.linalg.cholesky_ex(A)
    least = 8 * len(A) * torch.finfo(A.dtype).eps * A.diagonal()
    lost = ~(lower.diagonal().square() > least)
    first = torch.where(lost.any(), lost.int().argmax(), len(A))
    column = int(torch.where(info > 0, first.minimum(info - 1), first))  # waits for the device
    if column < len(A):
        raise NotPositiveDefinite(column)
    return lower


def inverse(factor: torch.Tensor) -> torch.Tensor:
    return torch.cholesky_inverse(factor)


def solve(factor: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.cholesky_solve(B, factor)


def like(A: np.ndarray, X: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(A, dtype=X.dtype, device=X.device)


def inner_products(H: torch.Tensor) -> torch.Tensor:
    return H @ H.T


def fold(K: torch.Tensor) -> torch.Tensor:
    """Return `K` itself: torch has no packed form."""
    return K


def add_inner_products(packed: torch.Tensor, H: torch.Tensor, share: float) -> torch.Tensor:
    return packed.addmm_(H, H.T, alpha=share)


def unfold(packed: torch.Tensor) -> torch.Tensor:
    return packed.clone()  # more may be added to it


def scale_columns(X: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return X * scale.to(X.dtype)


def subtract(X: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    return torch.add(X, mean, alpha=-1, out=torch.empty_like(X))


def times(B: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    return B @ Z


def times_transposed(X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    return X @ Z.T


def affine(X: torch.Tensor, coef: Array, intercept: torch.Tensor) -> torch.Tensor:
    if not isinstance(coef, torch.Tensor):
        coef = coef.suit(len(X))
    if not isinstance(coef, torch.Tensor):
        product: torch.Tensor = coef.multiply(X)
        return product.add_(intercept)
    dtype = torch.promote_types(X.dtype, coef.dtype)
    result: torch.Tensor = torch.addmm(intercept.to(dtype), X.to(dtype), coef.to(dtype))
    return result


_SQUASH: dict[str, Callable[[torch.Tensor], object]] = {
    "tanh": torch.Tensor.tanh_,
    "sigmoid": torch.Tensor.sigmoid_,
    "relu": torch.Tensor.relu_,
    "identity": lambda H: H,
}


def squash(H: torch.Tensor, activation: str) -> torch.Tensor:
    _SQUASH[activation](H)
    return H
