"""Second moments of rows: all that a denoiser needs to know of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .array import Array, Rows, array_ops

ROUNDING = 1e-6  # share of the energy; a smaller remainder after centring counts as rounding


@dataclass(frozen=True)
class Moments:
    """Column sums of some rows, and of their squares. Moments of disjoint rows add."""

    n: int
    total: Array  # (d,) float64
    energy: Array  # (d,) float64

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.total + other.total, self.energy + other.energy)

    @property
    def centre(self) -> Array:
        """Column means, where the rows are."""
        return self.total / self.n

    @property
    def mean(self) -> np.ndarray:
        """Column means, on the host."""
        return array_ops(self.total).to_numpy(self.total) / self.n

    def to_host(self) -> Moments:
        """Return the same moments with NumPy arrays."""
        take = array_ops(self.total).to_numpy
        return Moments(self.n, take(self.total), take(self.energy))


@dataclass(frozen=True)
class Scatter:
    """Second moments of some rows: the paper's ``S`` with the constant feature kept apart.

    Scatters of disjoint rows add, so batches, workers and domains are the same sum.
    """

    n: int
    total: Array  # (d,)   column sums, float64
    gram: Array  # (d, d) lower triangle of X'X, not centred

    def __add__(self, other: Scatter) -> Scatter:
        return Scatter(self.n + other.n, self.total + other.total, self.gram + other.gram)

    def __iadd__(self, other: Scatter) -> Scatter:
        """Add into the memory of this scatter's gram matrix."""
        gram = self.gram
        gram += other.gram
        return Scatter(self.n + other.n, self.total + other.total, gram)

    @property
    def moments(self) -> Moments:
        """Sums of the columns; those of squares are the diagonal, the D of ``A = (1-p) C + p D``."""
        ops = array_ops(self.gram)
        return Moments(self.n, self.total, ops.cast(self.gram.diagonal() + 0, ops.float64))

    def to_host(self) -> Scatter:
        """Return the same scatter with NumPy arrays."""
        take = array_ops(self.gram).to_numpy
        return Scatter(self.n, take(self.total), take(self.gram))


@dataclass(frozen=True)
class CrossScatter:
    """A scatter of rows X together with their products with other columns Z of the same rows."""

    scatter: Scatter
    target_total: Array  # (r,)   column sums of Z
    cross: Array  # (d, r) X'Z, not centred

    def __add__(self, other: CrossScatter) -> CrossScatter:
        return CrossScatter(
            self.scatter + other.scatter, self.target_total + other.target_total, self.cross + other.cross
        )

    def __iadd__(self, other: CrossScatter) -> CrossScatter:
        """Add into the memory of this one's matrices."""
        scatter, cross = self.scatter, self.cross
        scatter += other.scatter
        cross += other.cross
        return CrossScatter(scatter, self.target_total + other.target_total, cross)

    @property
    def target_mean(self) -> Array:
        """Column means of Z."""
        return self.target_total / self.scatter.n


def moments(X: Rows) -> Moments:
    """Moments of the rows of `X`."""
    ops = array_ops(X)
    return Moments(X.shape[0], ops.column_sums(X), ops.column_energies(X))


def mean_square(domains: Sequence[Moments], center: bool) -> float:
    """Return the mean square norm of all rows, after subtracting each domain's mean if `center`.

    It is 0 where the rows differ from the means by no more than rounding.
    """
    domains = [domain.to_host() for domain in domains]
    total = energy = float(sum(domain.energy.sum() for domain in domains))
    if center:
        energy -= sum(domain.n * float(domain.mean @ domain.mean) for domain in domains)
    return energy / sum(domain.n for domain in domains) if energy > ROUNDING * total else 0.0


def scatter(X: Rows) -> Scatter:
    """Scatter of the rows of `X`."""
    ops = array_ops(X)
    return Scatter(X.shape[0], ops.column_sums(X), ops.gram(X))


def cross_scatter(X: Rows, part: np.ndarray, pivots: np.ndarray) -> CrossScatter:
    """Scatter of the columns `part` of `X`, with their products with its columns `pivots`."""
    ops = array_ops(X)
    x, z = X[:, part], X[:, pivots]
    return CrossScatter(scatter(x), ops.column_sums(z), ops.cross(x, z))
