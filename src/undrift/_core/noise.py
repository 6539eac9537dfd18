"""Noises by their moments: what a denoiser has to know of a corruption.

A noise is a function of a scatter that returns a :class:`Corruption`. For noise that is independent from
feature to feature, the mean and the variance of a corrupted feature are all that eq. (5) asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .array import Array, array_ops
from .scatter import Scatter


@dataclass(frozen=True)
class Corruption:
    """Moments of corrupted rows whose mean is ``keep * x``, feature by feature."""

    keep: float | Array  # one number, or (d,)
    variance: Array  # (d,) sum over rows of the variance of each feature, float64


@dataclass(frozen=True, eq=False)
class Masking:
    """Each feature is zero with a probability of its own, as in eq. (7) with p_a in place of p."""

    probability: np.ndarray  # (d,) in [0, 1)

    def __call__(self, stats: Scatter) -> Corruption:
        p = array_ops(stats.total).like(self.probability, stats.total)
        return Corruption(1 - p, p * (1 - p) * stats.energy)

    def __str__(self) -> str:
        return "one probability per feature"


@dataclass(frozen=True)
class Gaussian:
    """A normal number of mean 0 is added to each feature: no more than a ridge of ``n scale^2``.

    Parameters
    ----------
    scale : float
        Standard deviation, in the units of the features.
    """

    scale: float

    def __call__(self, stats: Scatter) -> Corruption:
        """Moments of the corrupted rows."""
        return Corruption(1.0, 0 * stats.total + stats.n * self.scale**2)


@dataclass(frozen=True)
class Poisson:
    """Each count x is replaced by a Poisson number of mean x, whose variance is x too."""

    def __call__(self, stats: Scatter) -> Corruption:
        """Moments of the corrupted rows, which must have been non-negative."""
        return Corruption(1.0, stats.total)


Noise: TypeAlias = float | Callable[[Scatter], Corruption]


def select_noise(noise: Noise, features: np.ndarray) -> Noise:
    """Return the noise of some of the features."""
    return Masking(noise.probability[features]) if isinstance(noise, Masking) else noise
