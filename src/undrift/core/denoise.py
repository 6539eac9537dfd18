"""One marginalised denoiser: the closed form of the paper's sections 3.1 and 3.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..errors import UndriftError
from .array import Array, NotPositiveDefinite, Rows, array_ops
from .scatter import ColumnMoments, CrossScatter, Scatter

# The probability that a feature is missing: one number, or an array of shape (d,) with one for each feature.
Noise: TypeAlias = float | np.ndarray

# The scaled system has no eigenvalue below the noise, so float32 is safe until the noise comes near its
# rounding. Near a noise of 1 the coefficients are small differences of large numbers. Below this noise, and
# this distance from 1, the factorisation runs in float64.
FLOAT64_BELOW = 0.01


REMEDY = "Pass ridge > 0 (the paper uses 1e-5) or a larger noise, or drop these features."


class SingularSystem(UndriftError):
    """No denoiser exists for these rows with this noise and ridge, because of `features`."""

    def __init__(self, cause: str, features: Sequence[Any], remedy: str = REMEDY) -> None:
        self.cause, self.features, self.remedy = cause, list(features), remedy
        shown = ", ".join(str(feature) for feature in self.features[:10])
        more = f" and {len(self.features) - 10} more" if len(self.features) > 10 else ""
        super().__init__(f"Cannot solve for a denoiser: {cause} (features {shown}{more}). {remedy}")

    def with_names(self, names: Sequence[Any]) -> SingularSystem:
        """Return the same error with ``names[feature]`` in place of each feature."""
        return SingularSystem(self.cause, [names[feature] for feature in self.features], self.remedy)


@dataclass(frozen=True)
class Layer:
    """An affine map followed by an activation: ``h = squash(x coef + intercept)``."""

    coef: Array  # (d_in, d_out), or its factors: see :mod:`.row_form`
    intercept: Array  # (d_out,)
    activation: str = "tanh"

    def __call__(self, X: Rows, out: Array | None = None) -> Array:
        """Hidden rows of `X`, of shape (n, d_out); written into `out` if given."""
        ops = array_ops(self.coef)
        return ops.squash(ops.affine(X, self.coef, self.intercept, out), self.activation)


def denoise(stats: Scatter, noise: Noise, ridge: float = 1e-5, activation: str = "tanh") -> Layer:
    """Fit the layer that minimises eq. (2) in the limit of infinitely many corruptions.

    Eliminating the never-corrupted constant from eq. (7) leaves, with C the centred scatter and
    D the diagonal of the raw one, the system ``A = (1-p) C + p D + ridge/(1-p) I``, and eq. (5)
    becomes ``W = C A^-1 = (I - (p D + ridge/(1-p) I) A^-1) / (1-p)``: one Cholesky factorisation
    and one symmetric inverse, in place.

    With one probability for each feature, ``q = 1-p`` and ``v = p q D`` (the variance of the corrupted rows),
    ``A = C + diag(v + ridge) / q^2`` and ``W = (I - diag(v + ridge) / q^2 A^-1) diag(1/q)``.
    """
    ops, system = array_ops(stats.gram), find_system(stats, noise, ridge)
    inverse = _inverse(stats, system)
    coef = ops.cast(ops.denoising_coef(inverse, system.share, system.damping), stats.gram.dtype)
    coef = system.rescale(coef)
    return Layer(coef, _intercept(coef, stats.mean, stats.mean, system.keep), activation)


def denoise_onto(stats: CrossScatter, noise: Noise, ridge: float = 1e-5) -> Layer:
    """Fit the layer that reconstructs clean columns Z from corrupted columns X of the same rows, eq. (8).

    ``W = C_zx A^-1`` with A as in :func:`denoise`; the factors (1-p) have cancelled.
    """
    x, ops = stats.scatter, array_ops(stats.cross)
    system = find_system(x, noise, ridge)
    inverse = ops.cast(_inverse(x, system), stats.cross.dtype)
    coef = system.rescale(inverse @ ops.centred(stats.cross, x.n, x.mean, stats.target_mean))
    return Layer(coef, _intercept(coef, x.mean, stats.target_mean, system.keep))


@dataclass(frozen=True)
class System:
    """``A = share C + diag(damping)``, where the noise leaves `keep` of each feature on average."""

    keep: float | Array
    share: float
    damping: Array
    ridge: float
    needs_float64: bool
    description: str  # of noise and ridge, for messages

    def rescale(self, coef: Array) -> Array:
        """Turn weights on corrupted features divided by `keep` into weights on corrupted features."""
        if isinstance(self.keep, float):
            return coef
        return coef / array_ops(coef).cast(self.keep, coef.dtype)[:, None]


def find_system(stats: Scatter | ColumnMoments, noise: Noise, ridge: float) -> System:
    """Build the linear system of a denoiser from the moments of its rows."""
    if not isinstance(noise, np.ndarray):
        keep, description = 1.0 - noise, f"noise={noise:g} and ridge={ridge:g}"
        damping = noise * stats.energy + ridge / keep
        return System(keep, keep, damping, ridge, min(noise, keep) < FLOAT64_BELOW, description)
    p = array_ops(stats.total).like(noise, stats.total)
    keep = 1 - p
    damping = (p * keep * stats.energy + ridge) / keep**2
    # damping / (damping + C_aa) bounds the scaled system's eigenvalues from below, as the noise does above
    spread = stats.energy - stats.n * stats.mean**2
    needs_float64 = bool(((damping < FLOAT64_BELOW * (damping + spread)) | (keep < FLOAT64_BELOW)).any())
    description = f"one noise per feature and ridge={ridge:g}"
    return System(keep, 1.0, damping, ridge, needs_float64, description)


def select_noise(noise: Noise, features: np.ndarray) -> Noise:
    """Return the noise of some of the features."""
    return noise[features] if isinstance(noise, np.ndarray) else noise


def _inverse(stats: Scatter, system: System) -> Array:
    """``A^-1``, or the features that make A singular."""
    ops, G = array_ops(stats.gram), stats.gram
    if system.ridge == 0:
        empty = np.flatnonzero(ops.to_numpy((stats.energy == 0) & (system.damping == 0)))
        if len(empty):
            raise SingularSystem(f"with ridge=0, features are zero in all {stats.n} rows", empty.tolist())
    dtype = ops.float64 if system.needs_float64 else G.dtype
    try:
        return ops.spd_inverse(
            ops.denoising_system(G, stats.n, stats.mean, system.share, system.damping, dtype)
        )
    except NotPositiveDefinite as error:
        raise _singular(stats, system.description, error.column) from None


def _singular(stats: Scatter, description: str, column: int) -> SingularSystem:
    """Explain a failed factorisation. With noise > 0 only features of zero energy can cause it."""
    ops = array_ops(stats.gram)
    energy, mean = ops.to_numpy(stats.energy), ops.to_numpy(stats.mean)
    overflown = np.flatnonzero(~np.isfinite(energy))
    if len(overflown):
        cause = f"values are so large that sums of squares over {stats.n} rows overflow"
        return SingularSystem(cause, overflown.tolist(), "Divide the columns by their largest values.")
    constant = np.flatnonzero(energy - stats.n * mean**2 <= 1e-12 * energy)
    if len(constant):
        cause = f"with {description}, features are constant over all {stats.n} rows"
        return SingularSystem(cause, constant.tolist())
    return SingularSystem(f"with {description}, a feature is a linear combination of others", [column])


def _intercept(coef: Array, mean: Array, target_mean: Array, keep: float | Array) -> Array:
    """``b = mean(Z) - W (q * mean(X))``."""
    ops = array_ops(coef)
    target = ops.cast(target_mean, coef.dtype)
    if isinstance(keep, float):
        return target - keep * (ops.cast(mean, coef.dtype) @ coef)
    return target - ops.cast(keep * mean, coef.dtype) @ coef
