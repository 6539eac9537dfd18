"""The closed form in the rows: with fewer rows than features, a matrix of rows by rows is inverted.

With Z the n rows less their mean, and ``keep Z'Z + diag(damping)`` the system of :mod:`.denoise`, the
coefficients that reconstruct any columns Z_t of Z are ::

    coef = diag(1/damping) Z' R Z_t,      R = (I + keep Z diag(1/damping) Z')^-1,      n x n

The answer is the same, to rounding, for n^2 d + n^3 flops instead of n d^2 + d^3. No matrix of d x d is
formed: rows are multiplied by one factor after another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .array import Array, NotPositiveDefinite, Rows, array_ops
from .denoise import Layer, System
from .numpy_ops import stripes
from .scatter import moments

Index: TypeAlias = int | slice | np.ndarray
ROWS_AT_ONCE = 2048  # that are multiplied by the factors


@dataclass(frozen=True)
class CentredRows:
    """Rows less their mean; sparse rows stay as they are, with the mean still to be subtracted."""

    rows: Rows  # (n, d)
    mean: Array | None = None  # (d,), of sparse rows

    @classmethod
    def subtract(cls, X: Rows, mean: Array) -> CentredRows:
        """Subtract a mean from the rows of `X`, in float64, and keep their precision."""
        ops = array_ops(X)
        return cls(X, ops.cast(mean, X.dtype)) if ops.is_sparse(X) else cls(ops.subtract(X, mean))

    def take_columns(self, which: np.ndarray | None) -> CentredRows:
        """Return some of the columns; all of them for None."""
        if which is None:
            return self
        return CentredRows(self.rows[:, which], None if self.mean is None else self.mean[which])

    def to_dense(self, rows: slice = slice(None)) -> Array:
        """Return some of the rows as a dense array."""
        if self.mean is None:
            return self.rows[rows]
        some = self.rows[rows]
        return (some.toarray() if hasattr(some, "toarray") else some) - self.mean

    def inner_products(self, scale: Array) -> Array:
        """``Z diag(scale) Z'``, of shape (n, n)."""
        ops, root = array_ops(self.rows), scale**0.5
        Y = ops.scale_columns(self.rows, root)
        K = ops.inner_products(Y)
        if self.mean is not None:
            mean = ops.cast(root * self.mean, Y.dtype)
            products = Y @ mean - mean @ mean / 2
            K -= products[:, None]
            K -= products
        return K

    def multiply_vector(self, v: Array) -> Array:
        """``Z v`` in float64."""
        ops, off = array_ops(v), 0.0 if self.mean is None else array_ops(v).cast(self.mean, v.dtype) @ v
        parts = stripes(self.rows.shape[0])
        return ops.stack([ops.cast(self.rows[part], v.dtype) @ v for part in parts]) - off

    def multiply_transposed(self, X: Rows) -> Array:
        """``X Z'``, dense, of shape (m, n)."""
        products = array_ops(self.rows).times_transposed(X, self.rows)
        if self.mean is not None:
            products -= (X @ self.mean)[:, None]
        return products

    def multiply(self, B: Array) -> Array:
        """``B Z`` for dense `B` of shape (m, n)."""
        product = array_ops(self.rows).times(B, self.rows)
        if self.mean is not None:
            sums = B.sum(1)
            for part in stripes(len(product), 64):
                product[part] -= sums[part, None] * self.mean
        return product


@dataclass(frozen=True)
class RowCoef:
    """Coefficients of a layer as factors: ``diag(scale) Z' inverse Z_t``.

    It stands for a matrix of shape (d_in, d_out): it has a shape and a dtype, arrays are multiplied by it
    from either side, its rows and columns are taken by index, and `np.asarray` computes all of it.
    """

    given: CentredRows  # (n, d_in) that features are reconstructed from
    scale: Array  # (d_in,)
    inverse: Array  # (n, n)
    targets: np.ndarray | None = None  # the d_out columns that are reconstructed; None for all

    __array_ufunc__ = None  # so that ``array @ coef`` is computed here

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features before and after the layer."""
        d = self.given.rows.shape[1]
        return d, d if self.targets is None else len(self.targets)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the factors."""
        return self.inverse.dtype

    @property
    def reconstructed(self) -> CentredRows:
        """The columns of the rows that are reconstructed."""
        return self.given.take_columns(self.targets)

    def multiply(self, X: Rows) -> Array:
        """``X coef`` of rows, sparse or dense, in the precision of the factors."""
        ops, reconstructed = array_ops(self.inverse), self.reconstructed
        out = ops.empty_like(self.inverse, (X.shape[0], self.shape[1]))
        with ops.full_precision():  # the inverse takes away most of the products: no digit may be lost
            for rows in stripes(X.shape[0], ROWS_AT_ONCE):
                scaled = ops.scale_columns(ops.cast(X[rows], self.dtype), self.scale)
                out[rows] = reconstructed.multiply(self.given.multiply_transposed(scaled) @ self.inverse)
        return out

    def suit(self, n_rows: int) -> RowCoef | Array:
        """Return what rows of this number are multiplied by at the least cost: the factors, or one matrix.

        A row costs the factors more than ``n_fitted ** 2`` multiplications. The matrix is computed once, and
        is worth its cost for half as many rows as the fit had.
        """
        n_fitted = len(self.inverse)
        is_many = n_fitted >= self.shape[1] and n_rows >= n_fitted / 2
        return self._matrix if is_many or "_matrix" in vars(self) else self

    @cached_property
    def _matrix(self) -> Array:
        return self.to_matrix()

    def to_matrix(self) -> Array:
        """Compute all coefficients, of shape (d_in, d_out)."""
        ops = array_ops(self.inverse)
        with ops.full_precision():
            right = self.reconstructed.multiply(self.inverse)
            return self.given.multiply(right.T).T * self.scale[:, None]

    def __getstate__(self) -> dict[str, object]:
        """Leave the matrix behind where the factors are copied or sent."""
        return {name: value for name, value in vars(self).items() if name != "_matrix"}

    def __rmatmul__(self, X: np.ndarray) -> np.ndarray:
        """``X coef`` of rows, or of one row."""
        return self.multiply(X) if X.ndim == 2 else self.multiply(X[None])[0]

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        """``coef V`` of a matrix or a vector."""
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        products = self.reconstructed.multiply_transposed(np.ascontiguousarray(V.T)) @ self.inverse
        return self.given.multiply(products).T * self.scale[:, None]

    def __getitem__(self, index: Index | tuple[Index, Index]) -> np.ndarray:
        """Take rows, as in ``coef[j]``, columns, as in ``coef[:, j]``, or both."""
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        which = np.arange(self.shape[1])[columns]
        if isinstance(rows, slice) and rows == slice(None):
            right = self.reconstructed.take_columns(np.atleast_1d(which)).to_dense()
            taken = self.given.multiply(right.T @ self.inverse).T * self.scale[:, None]
            return taken if which.ndim else taken[:, 0]
        some = np.arange(self.shape[0])[rows]
        left = self.given.take_columns(np.atleast_1d(some)).to_dense() * self.scale[np.atleast_1d(some)]
        taken = self.reconstructed.multiply(left.T @ self.inverse)[:, columns]
        return taken if some.ndim else taken[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """Compute all coefficients, of shape (d_in, d_out)."""
        return np.ascontiguousarray(self.to_matrix(), dtype=dtype)


class NeedsColumns(ArithmeticError):
    """The layer of these rows has to be fitted in the columns."""


def denoise_in_rows(
    X: Rows, noise: float, ridge: float = 1e-5, activation: str = "tanh", targets: np.ndarray | None = None
) -> tuple[Layer, Array]:
    """Fit the layer of :func:`.denoise.denoise`, for all columns or some as targets; return also hidden rows.

    Near a noise of 0 or 1 the computation is in float64, and the coefficients are one matrix. Raises
    `NeedsColumns` where the other form knows the cause of a singular system.
    """
    ops, sums = array_ops(X), moments(X)
    system = System.of(sums, noise, ridge)
    with np.errstate(over="ignore"):
        damping = ops.to_numpy(ops.cast(system.damping, X.dtype))
    if not (np.isfinite(damping) & (ops.to_numpy(system.damping) > 0)).all():
        raise NeedsColumns
    if system.needs_float64 and X.dtype != ops.float64:
        layer, hidden = denoise_in_rows(ops.cast(X, ops.float64), noise, ridge, activation, targets)
        coef, intercept = (ops.cast(part, X.dtype) for part in (layer.coef.to_matrix(), layer.intercept))
        return replace(layer, coef=coef, intercept=intercept), ops.cast(hidden, X.dtype)
    with ops.full_precision():
        return _solve_in_rows(X, (sums.energy > 0) / system.damping, system, activation, targets)


def _solve_in_rows(
    X: Rows, scale: Array, system: System, activation: str, targets: np.ndarray | None
) -> tuple[Layer, Array]:
    """Solve a system whose damping has no zeros; `scale` is its inverse, or 0 for columns of zeros."""
    ops, given = array_ops(X), CentredRows.subtract(X, system.centre)
    inverse = _invert(X, given, scale, system)
    coef = RowCoef(given, ops.cast(scale, X.dtype), inverse, targets)
    right = coef.reconstructed.multiply(inverse)
    centre = system.centre if targets is None else system.centre[targets]
    intercept = ops.cast(centre, X.dtype) - system.keep * _map_centre(coef, system, right)
    hidden = see_rows(coef, system, intercept, right)
    return Layer(coef, intercept, activation, system), ops.squash(hidden, activation)


def _invert(X: Rows, given: CentredRows, scale: Array, system: System) -> Array:
    """Return R in the precision of `X`; it is computed in float64 where that is too coarse."""
    ops = array_ops(X)
    for dtype in (X.dtype, ops.float64):
        rows = given if dtype == X.dtype else CentredRows.subtract(ops.cast(X, dtype), system.centre)
        K = rows.inner_products(scale)
        K *= system.keep
        diagonal = np.arange(len(K))
        K[diagonal, diagonal] += 1
        try:
            return ops.cast(ops.inverse(ops.factor(K)), X.dtype)
        except NotPositiveDefinite:
            continue
    raise NeedsColumns


def _map_centre(coef: RowCoef, system: System, right: Array) -> Array:
    """Multiply the mean of the rows of the fit by the coefficients, in float64 up to ``R Z_t``."""
    ops = array_ops(right)
    products = coef.given.multiply_vector(system.centre * ops.cast(coef.scale, ops.float64))
    return ops.cast(products, right.dtype) @ right


def see_rows(coef: RowCoef, system: System, intercept: Array, right: Array | None = None) -> Array:
    """Return rows of the fit after the affine map, in the memory of `right`, which is ``R Z_t``.

    ``Z diag(scale) Z' R = (I - R) / keep``: rows of the fit need no further product.
    """
    hidden = coef.reconstructed.multiply(coef.inverse) if right is None else right
    shift = intercept + _map_centre(coef, system, hidden)
    for part in stripes(len(hidden), 64):
        some = hidden[part]  # a view
        some *= -1
        some += coef.reconstructed.to_dense(part)
        some *= 1 / system.keep
        some += shift
    return hidden
