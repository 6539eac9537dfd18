"""Rows written out in a few features, and least squares on them by `lstsq`: no inner product is formed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from undrift.method.least_squares import Gram


@dataclass(frozen=True)
class ExplicitRows:
    """Labelled rows, target rows and the centres of the domains, each a row of features."""

    labelled: np.ndarray  # (n, d)
    targets: np.ndarray  # (m, d)
    centres: np.ndarray  # (n_domains, d)
    domain: np.ndarray  # (n + m,)
    codes: np.ndarray  # (n,)
    n_classes: int
    weight: np.ndarray  # (n,)
    C: float = 0.7

    @property
    def gram(self) -> Gram:
        """The inner products of all rows."""
        rows = np.vstack([self.labelled, self.targets, self.centres])
        return Gram(rows @ rows.T, len(self.labelled), self.domain)

    @property
    def groups(self) -> list[np.ndarray]:
        """Numbers of the rows of every target."""
        own = self.domain[len(self.labelled) :]
        return [np.flatnonzero(own == k) for k in np.unique(own)]

    @property
    def wanted(self) -> np.ndarray:
        """Scores of 1 and -1 that are wanted of the labelled rows."""
        return to_signs(self.codes, self.n_classes)

    @property
    def class_means(self) -> np.ndarray:
        """The mean of the labelled rows of each class less the mean of these means."""
        means = np.array([self.labelled[self.codes == k].mean(axis=0) for k in range(self.n_classes)])
        return means - means.mean(axis=0)

    def move(self, moves: np.ndarray) -> np.ndarray:
        """Return the target rows, moved by centres and class means: (n_directions, n_targets)."""
        directions = np.vstack([self.centres, self.class_means])
        moved = self.targets.copy()
        for group, own in zip(self.groups, moves.T, strict=True):
            moved[group] += own @ directions
        return moved


def to_signs(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One column for two classes, else one for each class."""
    columns = [1] if n_classes == 2 else list(range(n_classes))
    return np.column_stack([np.where(codes == k, 1.0, -1.0) for k in columns])


def draw_rows(
    rng: np.random.Generator, n_classes: int, n_targets: int = 1, n_sources: int = 1
) -> ExplicitRows:
    """Draw rows of a few features whose classes come apart in the first ones."""
    n, m, d = 20 * n_classes, 16 * n_targets, 6
    codes = rng.permutation(np.arange(n) % n_classes)
    domain = np.concatenate([np.arange(n) % n_sources, n_sources + np.arange(m) % n_targets])
    rows = rng.normal(size=(n + m, d))
    rows[np.arange(n), codes] += 1.5
    rows[np.arange(n, n + m), rng.integers(n_classes, size=m)] += 1.2
    centres = 0.5 * rng.normal(size=(n_sources + n_targets, d))
    weight = rng.uniform(0.3, 2.0, n)
    return ExplicitRows(rows[:n], rows[n:], centres, domain, codes, n_classes, weight)


def solve(H: np.ndarray, Y: np.ndarray, C: float, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minimise ``|w|^2 / 2 + C / 2 sum weight (y - h.w - b)^2``; return w and b."""
    root = np.sqrt(C * weight)[:, None]
    penalty = np.eye(H.shape[1], H.shape[1] + 1)  # none on the intercept
    A = np.vstack([root * np.column_stack([H, np.ones(len(H))]), penalty])
    solution = np.linalg.lstsq(A, np.vstack([root * Y, np.zeros((H.shape[1], Y.shape[1]))]), rcond=None)[0]
    return solution[:-1], solution[-1]
