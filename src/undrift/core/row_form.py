"""The closed form in the rows: with fewer rows than features, a matrix of rows by rows is inverted.

With Z the n rows less their mean, and ``share Z'Z + diag(damping)`` the system of :mod:`.denoise`, the
coefficients that reconstruct any columns Z_t of Z are ::

    coef = diag(1/damping) Z' R Z_t,      R = (I + share Z diag(1/damping) Z')^-1,      n x n

The answer is the same, to rounding, for n^2 d + n^3 flops instead of n d^2 + d^3. No matrix of d x d is
formed: rows are multiplied by one factor after another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp

from .array import NotPositiveDefinite, Rows
from .denoise import Layer, Noise, System, find_system
from .numpy_ops import column_sums, in_threads, inner_products, mirror, spd_inverse, squash, stripes
from .scatter import ColumnMoments

SPARSE_COST = 20  # a multiplication of sparse rows takes as long as this many of dense ones
ROWS_AT_ONCE = 2048  # that are multiplied by the factors


def prefers_rows(n: int, d: int, n_targets: int, density: float) -> bool:
    """Tell whether n rows of d features are fitted in the rows: with no more flops, and no larger a layer.

    `density` is the share of entries that are stored. With fewer targets than features, the other form has
    as many parts as section 4 gives it.
    """
    data_cost = min(1.0, SPARSE_COST * density)
    in_rows = n**3 + data_cost * n**2 * (d + 2 * n_targets)
    n_parts = ceil(d / n_targets)
    width = d / n_parts
    in_columns = d * (width**2 + data_cost * n * (width + 2 * n_targets))
    if n_parts > 1:
        in_columns += d * n_targets * (2 * width + data_cost * n)
    return n**2 + density * n * d <= d * n_targets and in_rows <= in_columns


@dataclass(frozen=True)
class CentredRows:
    """Rows less their mean; sparse rows stay sparse, with the mean still to be subtracted."""

    rows: Rows  # (n, d)
    mean: np.ndarray | None = None  # (d,), of sparse rows

    @classmethod
    def subtract(cls, X: Rows, mean: np.ndarray) -> CentredRows:
        """Subtract a mean from the rows of `X`, in float64, and keep their precision."""
        if sp.issparse(X):
            return cls(X, mean.astype(X.dtype))
        Z = np.empty_like(X)
        for rows in stripes(len(X), 64):
            Z[rows] = X[rows] - mean
        return cls(Z)

    def take_columns(self, which: np.ndarray | None) -> CentredRows:
        """Return some of the columns; all of them for None."""
        if which is None:
            return self
        return CentredRows(self.rows[:, which], None if self.mean is None else self.mean[which])

    def to_dense(self, rows: slice = slice(None)) -> np.ndarray:
        """Return some of the rows as a dense array."""
        if self.mean is None:
            return np.asarray(self.rows[rows])
        return np.asarray(self.rows[rows].toarray() - self.mean)

    def inner_products(self, scale: np.ndarray) -> np.ndarray:
        """``Z diag(scale) Z'``, of shape (n, n)."""
        Y = scale_columns(self.rows, np.sqrt(scale).astype(self.rows.dtype))
        if self.mean is None:
            return np.asarray(Y @ Y.T)
        mean = np.sqrt(scale) * self.mean
        K, products = inner_products(Y), Y @ mean - mean @ mean / 2
        for stripe in stripes(len(K), 64):
            K[stripe] -= np.add.outer(products[stripe], products)
        return K

    def multiply_transposed(self, X: Rows) -> np.ndarray:
        """``X Z'``, dense, of shape (m, n)."""
        products = cross_products(X, self.rows)
        if self.mean is not None:
            products = products - np.asarray(X @ self.mean)[:, None]
        return products

    def multiply(self, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """``B Z`` for dense `B` of shape (m, n); written into `out` if given."""
        if self.mean is None:
            return np.matmul(B, self.rows, out=out)
        if out is None:
            out = np.empty((len(B), self.rows.shape[1]), np.result_type(B.dtype, self.rows.dtype))
        columns, mean = self.rows.T, self.mean

        def fill(stripe: slice) -> None:
            out[stripe] = (columns @ np.ascontiguousarray(B[stripe].T)).T
            out[stripe] -= np.outer(B[stripe].sum(axis=1), mean)

        in_threads(fill, stripes(len(B)))
        return out


def cross_products(X: Rows, Z: Rows) -> np.ndarray:
    """``X Z'``, dense, of shape (m, n), for rows of which either may be sparse."""
    if not sp.issparse(Z):
        return np.asarray(X @ Z.T)
    if not sp.issparse(X):
        return np.asarray((Z @ np.ascontiguousarray(X.T)).T)
    products, Zt = np.empty((X.shape[0], Z.shape[0]), np.result_type(X.dtype, Z.dtype)), Z.T.tocsr()

    def fill(stripe: slice) -> None:
        products[stripe] = (X[stripe] @ Zt).toarray()

    in_threads(fill, stripes(len(products)))
    return products


def column_energies(X: Rows) -> np.ndarray:
    """Sum the squares of each column in float64; return shape (d,)."""
    if sp.issparse(X):
        return np.bincount(X.indices, X.data.astype(np.float64) ** 2, minlength=X.shape[1])
    total = np.zeros(X.shape[1])
    for rows in stripes(len(X), 64):
        total += np.square(X[rows], dtype=np.float64).sum(axis=0)
    return total


def scale_columns(X: Rows, scale: np.ndarray) -> Rows:
    """``X diag(scale)``, sparse where `X` is."""
    if not sp.issparse(X):
        return X * scale
    X = X.tocsr()
    return type(X)((X.data * scale[X.indices], X.indices, X.indptr), shape=X.shape)


@dataclass(frozen=True)
class RowCoef:
    """Coefficients of a layer as factors: ``diag(scale) Z' inverse Z_t``.

    It stands for a matrix of shape (d_in, d_out): it has a shape and a dtype, arrays are multiplied by it
    from either side, its rows and columns are taken by index, and `np.asarray` computes all of it.
    """

    rows: Rows  # (n, d_in) sparse as given, or dense less their mean
    mean: np.ndarray | None  # (d_in,) of sparse rows
    scale: np.ndarray  # (d_in,)
    inverse: np.ndarray  # (n, n)
    targets: np.ndarray | None = None  # the d_out columns that are reconstructed; None for all

    __array_ufunc__ = None  # so that ``array @ coef`` is computed here

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features before and after the layer."""
        d = self.rows.shape[1]
        return d, d if self.targets is None else len(self.targets)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the factors."""
        return self.inverse.dtype

    @property
    def given(self) -> CentredRows:
        """The rows that features are reconstructed from."""
        return CentredRows(self.rows, self.mean)

    @property
    def reconstructed(self) -> CentredRows:
        """The columns of the rows that are reconstructed."""
        return self.given.take_columns(self.targets)

    def multiply(self, X: Rows, out: np.ndarray | None = None) -> np.ndarray:
        """``X coef`` of rows, sparse or dense, written into `out` if given."""
        if out is None:
            out = np.empty((X.shape[0], self.shape[1]), np.result_type(X.dtype, self.dtype))
        given, reconstructed = self.given, self.reconstructed
        for rows in stripes(X.shape[0], ROWS_AT_ONCE):
            products = given.multiply_transposed(scale_columns(X[rows], self.scale))
            reconstructed.multiply(products.astype(out.dtype, copy=False) @ self.inverse, out[rows])
        return out

    def __rmatmul__(self, X: np.ndarray) -> np.ndarray:
        """``X coef`` of rows, or of one row."""
        return self.multiply(X) if X.ndim == 2 else self.multiply(X[None])[0]

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        """``coef V`` of a matrix or a vector."""
        if V.ndim == 1:
            return (self @ V[:, None])[:, 0]
        products = self.reconstructed.multiply_transposed(np.ascontiguousarray(V.T)) @ self.inverse
        return self.given.multiply(products).T * self.scale[:, None]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Take rows, as in ``coef[j]``, columns, as in ``coef[:, j]``, or both."""
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        if isinstance(rows, slice) and rows == slice(None):
            taken = self._take_columns(np.arange(self.shape[1])[columns])
        else:
            taken = self._take_rows(np.arange(self.shape[0])[rows])[..., columns]
        return taken

    def _take_rows(self, which: Any) -> np.ndarray:
        some = np.atleast_1d(which)
        left = self.given.take_columns(some).to_dense() * self.scale[some]
        taken = self.reconstructed.multiply(left.T @ self.inverse)
        return taken if np.ndim(which) else taken[0]

    def _take_columns(self, which: Any) -> np.ndarray:
        right = self.reconstructed.take_columns(np.atleast_1d(which)).to_dense()
        taken = self.given.multiply(right.T @ self.inverse).T * self.scale[:, None]
        return taken if np.ndim(which) else taken[:, 0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Compute all coefficients, of shape (d_in, d_out)."""
        right = self.reconstructed.multiply(self.inverse)
        coef = self.given.multiply(np.ascontiguousarray(right.T)).T * self.scale[:, None]
        return np.ascontiguousarray(coef, dtype=dtype)

    def astype(self, dtype: Any, copy: bool = True) -> RowCoef:
        """Return the same coefficients with dense factors of another precision."""
        rows = self.rows.astype(dtype, copy=copy) if self.mean is None else self.rows
        return replace(self, rows=rows, inverse=self.inverse.astype(dtype, copy=copy))

    @property
    def dense_factors(self) -> list[np.ndarray]:
        """The factors that :meth:`astype` changes."""
        return [self.inverse] if self.mean is not None else [self.inverse, self.rows]

    def shrink(self) -> RowCoef:
        """Return the coefficients as they are saved: the lower triangle of the inverse, row by row."""
        return replace(self, inverse=np.concatenate([row[: i + 1] for i, row in enumerate(self.inverse)]))

    def expand(self) -> RowCoef:
        """Return saved coefficients as they are used, if their factors fit together."""
        n, d = self.rows.shape
        whole = n * (n + 1) // 2
        kinds = {factor.dtype.kind for factor in (*self.dense_factors, self.scale)}
        if self.inverse.shape != (whole,) or self.scale.shape != (d,) or kinds != {"f"}:
            raise ValueError(f"factors of {n} rows and {d} columns that do not fit together")
        if sp.issparse(self.rows) != (self.mean is not None and self.mean.shape == (d,)):
            raise ValueError("sparse rows without a mean, or dense rows with one")
        if self.targets is not None and not set(self.targets.tolist()) <= set(range(d)):
            raise ValueError(f"targets beyond the {d} columns")
        inverse = np.empty((n, n), self.inverse.dtype)
        inverse[np.tril_indices(n)] = self.inverse
        return replace(self, inverse=mirror(inverse))


class NeedsColumns(ArithmeticError):
    """The layer of these rows has to be fitted in the columns."""


def denoise_in_rows(
    X: Rows, noise: Noise, ridge: float = 1e-5, activation: str = "tanh", targets: np.ndarray | None = None
) -> tuple[Layer, np.ndarray]:
    """Fit the layer of :func:`.denoise.denoise`, for all columns or some as targets; return also hidden rows.

    Raises `NeedsColumns` where the other form is more precise, or knows the cause of a singular system.
    """
    stats = ColumnMoments(X.shape[0], column_sums(X), column_energies(X))
    system = find_system(stats, noise, ridge)
    with np.errstate(over="ignore"):
        damping = system.damping.astype(X.dtype)
    is_too_coarse = system.needs_float64 and X.dtype != np.float64
    if is_too_coarse or not (np.isfinite(damping) & (system.damping > 0)).all():
        raise NeedsColumns
    scale = np.where(stats.energy > 0, 1 / system.damping, 0)
    inverse = _invert(X, stats.mean, scale, system)
    given = CentredRows.subtract(X, stats.mean)
    if not isinstance(system.keep, float):
        scale = scale / system.keep
    coef = RowCoef(given.rows, given.mean, scale.astype(X.dtype), inverse, targets)
    right = coef.reconstructed.multiply(inverse)
    mean = stats.mean if targets is None else stats.mean[targets]
    offset = given.multiply_transposed((system.keep * stats.mean * scale)[None])[0].astype(X.dtype) @ right
    layer = Layer(coef, (mean - offset).astype(X.dtype), activation)
    if not isinstance(system.keep, float):
        return layer, layer(X)
    centre = mean + (1 / system.keep - 1) * offset
    return layer, squash(_seen_rows(coef.reconstructed, right, system.share, centre), activation)


def _invert(X: Rows, mean: np.ndarray, scale: np.ndarray, system: System) -> np.ndarray:
    """Return R in the precision of `X`; it is computed in float64 where that is too coarse."""
    for dtype in dict.fromkeys((X.dtype, np.dtype(np.float64))):
        K = CentredRows.subtract(X.astype(dtype, copy=False), mean).inner_products(scale)
        K *= system.share
        K[np.diag_indices_from(K)] += 1
        try:
            return spd_inverse(K).astype(X.dtype, copy=False)
        except NotPositiveDefinite:
            continue
    raise NeedsColumns


def _seen_rows(reconstructed: CentredRows, right: np.ndarray, share: float, centre: np.ndarray) -> np.ndarray:
    """Return rows of the fit after the affine map, in the memory of `right`, which is ``R Z_t``.

    ``Z diag(scale) Z' R = (I - R) / share``: rows of the fit need no further product.
    """
    for rows in stripes(len(right), 64):
        right[rows] = (reconstructed.to_dense(rows) - right[rows]) / share + centre
    return right
