"""One marginalised denoiser: the closed form of the paper's sections 3.1 and 3.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import numpy as np

from ..errors import UndriftError
from .array import Array, NotPositiveDefinite, Rows, array_ops
from .numpy_ops import stripes
from .scatter import CrossScatter, Moments, Scatter

# The scaled system has no eigenvalue below the noise, so float32 is safe until the noise comes near its
# rounding. Near a noise of 1 the coefficients are small differences of large numbers. Below this noise, and
# this distance from 1, the factorisation runs in float64.
FLOAT64_BELOW = 0.01

REMEDY = "Pass ridge > 0 (the paper uses 1e-5) or a larger noise, or drop these features."


Feature: TypeAlias = int | str  # a column's number, or its name


class LayerOptions(TypedDict):
    """Parameters of a layer."""

    noise: float
    ridge: float
    activation: str


class SingularSystem(UndriftError):
    """No denoiser exists for these rows with this noise and ridge, because of `features`."""

    def __init__(self, cause: str, features: Sequence[Feature], remedy: str = REMEDY) -> None:
        self.cause, self.features, self.remedy = cause, list(features), remedy
        shown = ", ".join(str(feature) for feature in self.features[:10])
        more = f" and {len(self.features) - 10} more" if len(self.features) > 10 else ""
        super().__init__(f"Cannot solve for a denoiser: {cause} (features {shown}{more}). {remedy}")

    def with_names(self, names: Sequence[Feature] | np.ndarray) -> SingularSystem:
        """Return the same error with ``names[feature]`` in place of each feature, which are numbers."""
        return SingularSystem(self.cause, [names[int(feature)] for feature in self.features], self.remedy)


@dataclass(frozen=True)
class System:
    """``A = keep C + diag(damping)``: C is the centred scatter, and the noise leaves `keep` of a feature.

    Eliminating the never-corrupted constant from eq. (7) gives it, divided by `keep`:
    with D the diagonal of the raw scatter, ``damping = noise D + ridge / keep``.
    """

    keep: float
    damping: Array  # (d,) float64
    ridge: float
    centre: Array  # (d,) float64, the mean of the rows

    @classmethod
    def of(cls, moments: Moments, noise: float, ridge: float) -> System:
        """Return the linear system of a denoiser from the moments of its rows."""
        keep = 1.0 - noise
        return cls(keep, noise * moments.energy + ridge / keep, ridge, moments.centre)

    def fill(self, G: Array, n: int) -> Array:
        """Return the lower triangle of A, a new matrix, from the gram matrix G of n rows."""
        ops = array_ops(G)
        A = centre(G, n, self.centre, self.centre, self.keep, ops.float64 if self.needs_float64 else G.dtype)
        diagonal = np.arange(len(A))
        A[diagonal, diagonal] += ops.cast(self.damping, A.dtype)
        return A

    @property
    def needs_float64(self) -> bool:
        """Tell whether float32 is too coarse."""
        return min(1.0 - self.keep, self.keep) < FLOAT64_BELOW

    def __str__(self) -> str:
        return f"noise={1 - self.keep:g} and ridge={self.ridge:g}"


@dataclass(frozen=True)
class Layer:
    """An affine map followed by an activation: ``h = squash(x coef + intercept)``."""

    coef: Array  # (d_in, d_out), or its factors: see :mod:`.row_form`
    intercept: Array  # (d_out,)
    activation: str = "tanh"
    system: System | None = None  # that it solves, where that is one of all its columns

    def __call__(self, X: Rows) -> Array:
        """Hidden rows of `X`, of shape (n, d_out)."""
        ops = array_ops(self.intercept)
        return ops.squash(ops.affine(X, self.coef, self.intercept), self.activation)


def denoise(stats: Scatter, noise: float, ridge: float = 1e-5, activation: str = "tanh") -> Layer:
    """Fit the layer that minimises eq. (2) in the limit of infinitely many corruptions.

    With the system A, eq. (5) becomes ``W = C A^-1 = (I - diag(damping) A^-1) / keep``: one Cholesky
    factorisation and one symmetric inverse, in place.
    """
    ops, moments = array_ops(stats.gram), stats.moments
    system = System.of(moments, noise, ridge)
    W = ops.inverse(_factor(stats.gram, moments, system))
    W *= ops.cast(-system.damping / system.keep, W.dtype)
    diagonal = np.arange(len(W))
    W[diagonal, diagonal] += 1 / system.keep
    coef = ops.cast(W, stats.gram.dtype)
    return Layer(coef, _intercept(coef, moments.centre, moments.centre, system.keep), activation, system)


def denoise_onto(stats: CrossScatter, noise: float, ridge: float = 1e-5) -> Layer:
    """Fit the layer that reconstructs clean columns Z from corrupted columns X of the same rows, eq. (8).

    ``W = C_zx A^-1`` with A as in :func:`denoise`; the factors `keep` have cancelled.
    """
    x, ops = stats.scatter.moments, array_ops(stats.cross)
    system = System.of(x, noise, ridge)
    factor = _factor(stats.scatter.gram, x, system)
    right = centre(stats.cross, x.n, x.centre, stats.target_mean, 1.0, stats.cross.dtype)
    coef = ops.cast(ops.solve(factor, ops.cast(right, factor.dtype)), stats.cross.dtype)
    return Layer(coef, _intercept(coef, x.centre, stats.target_mean, system.keep))


def centre(C: Array, n: int, mean: Array, target_mean: Array, keep: float, dtype: np.dtype) -> Array:
    """``keep (C - n mean target_mean')``, a new matrix; of a symmetric one the lower triangle.

    The means are subtracted in float64 and a stripe at a time: in float32 the difference of two large numbers
    would lose the covariance of rare features.
    """
    centred = array_ops(C).empty_like(C, C.shape, dtype)
    for rows in stripes(len(C), 64):
        left = slice(None, rows.stop if mean is target_mean else None)
        centred[rows, left] = keep * (C[rows, left] - n * (mean[rows, None] * target_mean[left]))
    return centred


def _factor(G: Array, moments: Moments, system: System) -> Array:
    """Factor A, or name the features that make it singular."""
    ops = array_ops(G)
    if system.ridge == 0:
        empty = np.flatnonzero(ops.to_numpy((moments.energy == 0) & (system.damping == 0)))
        if len(empty):
            raise SingularSystem(f"with ridge=0, features are zero in all {moments.n} rows", empty.tolist())
    try:
        return ops.factor(system.fill(G, moments.n))
    except NotPositiveDefinite as error:
        raise _singular(moments.to_host(), system, error.column) from None


def _singular(moments: Moments, system: System, column: int) -> SingularSystem:
    """Explain a failed factorisation. With noise > 0 only features of zero energy can cause it."""
    overflown = np.flatnonzero(~np.isfinite(moments.energy))
    if len(overflown):
        cause = f"values are so large that sums of squares over {moments.n} rows overflow"
        return SingularSystem(cause, overflown.tolist(), "Divide the columns by their largest values.")
    constant = np.flatnonzero(moments.energy - moments.n * moments.mean**2 <= 1e-12 * moments.energy)
    if len(constant):
        cause = f"with {system}, features are constant over all {moments.n} rows"
        return SingularSystem(cause, constant.tolist())
    return SingularSystem(f"with {system}, a feature is a linear combination of others", [column])


def _intercept(coef: Array, mean: Array, target_mean: Array, keep: float) -> Array:
    """``b = mean(Z) - keep W mean(X)``."""
    ops = array_ops(coef)
    return ops.cast(target_mean, coef.dtype) - keep * (ops.cast(mean, coef.dtype) @ coef)
