"""One marginalised denoiser: the closed form of the paper's sections 3.1 and 3.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import Array, NotPositiveDefinite, Rows, arithmetic
from .scatter import CrossScatter, Scatter

ACTIVATIONS = ("tanh", "sigmoid", "relu", "identity")

# The scaled system has no eigenvalue below the noise, so float32 is safe until the noise comes
# near its rounding; below this noise the factorisation runs in float64.
FLOAT64_BELOW = 0.01


class SingularSystem(ValueError):
    """No denoiser exists for these rows with this noise and ridge; `features` are the culprits."""

    def __init__(self, cause: str, features: Sequence[Any]) -> None:
        self.cause, self.features = cause, list(features)
        shown = ", ".join(str(feature) for feature in self.features[:10])
        more = f" and {len(self.features) - 10} more" if len(self.features) > 10 else ""
        super().__init__(
            f"Cannot solve for a denoiser: {cause} (features {shown}{more}). "
            "Pass ridge > 0 (the paper uses 1e-5) or a larger noise, or drop these features."
        )

    def renamed(self, names: Sequence[Any]) -> SingularSystem:
        """Return the same complaint with ``names[feature]`` in place of each feature."""
        return SingularSystem(self.cause, [names[feature] for feature in self.features])


@dataclass(frozen=True)
class Layer:
    """An affine map followed by a squashing function: ``h = squash(x coef + intercept)``."""

    coef: Array  # (d_in, d_out)
    intercept: Array  # (d_out,)
    activation: str = "tanh"

    def __call__(self, X: Rows, out: Array | None = None) -> Array:
        """Hidden rows of `X`, of shape (n, d_out); written into `out` if given."""
        ops = arithmetic(self.coef)
        return ops.squash(ops.affine(X, self.coef, self.intercept, out), self.activation)


def denoise(stats: Scatter, noise: float, ridge: float = 1e-5, activation: str = "tanh") -> Layer:
    """Layer minimising eq. (2) in the limit of infinitely many corruptions.

    Eliminating the never-corrupted constant from eq. (7) leaves, with C the centred scatter and
    D the diagonal of the raw one, the system ``A = (1-p) C + p D + ridge/(1-p) I``, and eq. (5)
    becomes ``W = C A^-1 = (I - (p D + ridge/(1-p) I) A^-1) / (1-p)``: one Cholesky factorisation
    and one symmetric inverse, in place.
    """
    ops, keep = arithmetic(stats.gram), 1 - noise
    damping = noise * stats.energy + ridge / keep
    inverse = _inverse(stats, noise, ridge, damping)
    coef = ops.cast(ops.denoising_coef(inverse, keep, damping), stats.gram.dtype)
    return Layer(coef, _intercept(coef, stats.mean, stats.mean, keep), activation)


def denoise_onto(stats: CrossScatter, noise: float, ridge: float = 1e-5, activation: str = "tanh") -> Layer:
    """Layer reconstructing clean columns Z from corrupted columns X of the same rows, eq. (8).

    ``W = C_zx A^-1`` with A as in :func:`denoise`; the factors (1-p) have cancelled.
    """
    x, ops, keep = stats.scatter, arithmetic(stats.cross), 1 - noise
    damping = noise * x.energy + ridge / keep
    inverse = ops.cast(_inverse(x, noise, ridge, damping), stats.cross.dtype)
    coef = inverse @ ops.centred(stats.cross, x.n, x.mean, stats.target_mean)
    return Layer(coef, _intercept(coef, x.mean, stats.target_mean, keep), activation)


def _inverse(stats: Scatter, noise: float, ridge: float, damping: Array) -> Array:
    """``A^-1``, or the features that make A singular."""
    ops, G = arithmetic(stats.gram), stats.gram
    if ridge == 0:
        empty = np.flatnonzero(ops.to_numpy(stats.energy) == 0)
        if len(empty):
            raise SingularSystem(f"with ridge=0, features are zero in all {stats.n} rows", empty.tolist())
    dtype = ops.float64 if noise < FLOAT64_BELOW else G.dtype
    try:
        return ops.spd_inverse(ops.denoising_system(G, stats.n, stats.mean, 1 - noise, damping, dtype))
    except NotPositiveDefinite as error:
        raise _singular(stats, noise, ridge, error.column) from None


def _singular(stats: Scatter, noise: float, ridge: float, column: int) -> SingularSystem:
    """Explain a failed factorisation. With noise > 0 only features of zero energy can cause it."""
    ops = arithmetic(stats.gram)
    energy, mean = ops.to_numpy(stats.energy), ops.to_numpy(stats.mean)
    constant = np.flatnonzero(energy - stats.n * mean**2 <= 1e-12 * energy)
    if len(constant):
        cause = f"with noise={noise:g} and ridge={ridge:g}, features are constant over all {stats.n} rows"
        return SingularSystem(cause, constant.tolist())
    cause = f"with noise={noise:g} and ridge={ridge:g}, a feature is a linear combination of others"
    return SingularSystem(cause, [column])


def _intercept(coef: Array, mean: Array, target_mean: Array, keep: float) -> Array:
    """``b = mean(Z) - (1-p) W mean(X)``."""
    ops = arithmetic(coef)
    return ops.cast(target_mean, coef.dtype) - keep * (ops.cast(mean, coef.dtype) @ coef)
