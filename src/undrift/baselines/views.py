"""The joint problem of a co-training round: two classifiers on disjoint features, and how they disagree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .logistic import logistic_loss, priced_minimum

Floats = NDArray[np.floating[Any]]
STEEPNESS = 50.0  # slope of the sigmoid that stands for "confidence above the threshold"
N_PENALTY_STEPS = 5  # the constraints' weight is 1, 10, ..., 10^4


@dataclass(frozen=True)
class ViewProblem:
    """One round's problem. Rows are samples; the last column is the constant, common to both views."""

    X_labelled: Any
    y: Floats  # ±1
    X_unlabelled: Any
    price: Floats  # of |u| and of |v|, per column; 0 for the constant
    threshold: float
    expandability: float

    def smooth_part(self, both: Floats, weight: float) -> tuple[float, Floats]:
        """Soft maximum of the two mean losses + `weight` × squared violations of the constraints.

        `both` is u followed by v; returns the value and its gradient. The price is left to the solver.
        """
        views = both.reshape(2, -1)  # (2, d)
        loss, loss_slope = self._larger_loss(views)
        overlap, overlap_slope = self._overlap(views)
        shortage, shortage_slope = self._shortage(views)
        value = loss + weight * (overlap + shortage)
        slope = loss_slope + weight * (overlap_slope + shortage_slope)
        return float(value), slope.ravel()

    def _larger_loss(self, views: Floats) -> tuple[float, Floats]:
        """``log(exp(mean loss of u) + exp(mean loss of v))``: neither view may be bad."""
        signed = self.y[:, None] * (self.X_labelled @ views.T)  # (n, 2)
        losses = logistic_loss(signed).mean(axis=0)
        value = np.logaddexp(*losses)
        share = np.exp(losses - value) / len(self.y)
        return value, (self.X_labelled.T @ (-self.y[:, None] * expit(-signed) * share)).T

    def _overlap(self, views: Floats) -> tuple[float, Floats]:
        """``sum(u² v²)``, 0 when the views are disjoint; the constant may be in both."""
        squares = views**2
        squares[:, -1] = 0.0
        return float(np.sum(squares[0] * squares[1])), 2 * views * squares[::-1]

    def _shortage(self, views: Floats) -> tuple[float, Floats]:
        """Squared lack of unlabelled rows on which exactly one view is confident."""
        margins = self.X_unlabelled @ views.T  # (n, 2)
        confidence = expit(np.abs(margins))
        sure = expit(STEEPNESS * (confidence - self.threshold))
        other = sure[:, ::-1]
        both, neither = sure.prod(axis=1).mean(), (1 - sure).prod(axis=1).mean()
        one = sure.sum(axis=1).mean() - 2 * both
        gap = self.expandability * min(both, neither) - one
        if gap <= 0:
            return 0.0, np.zeros_like(views)
        smaller = other if both <= neither else other - 1
        sure_slope = 2 * gap * (self.expandability * smaller - (1 - 2 * other)) / len(margins)
        margin_slope = STEEPNESS * sure * (1 - sure) * confidence * (1 - confidence) * np.sign(margins)
        return gap**2, (self.X_unlabelled.T @ (sure_slope * margin_slope)).T


def disjoint_views(problem: ViewProblem, start: Floats, n_steps: int, tol: float = 1e-6) -> Floats:
    """Solve `problem` from `start`: (2, d), each column but the last left to the stronger view."""
    both, price = start.ravel(), np.tile(problem.price, 2)
    for step in range(N_PENALTY_STEPS):
        smooth = partial(problem.smooth_part, weight=10.0**step)
        both = priced_minimum(smooth, price, both, tol=tol, max_iter=n_steps)
    views = both.reshape(2, -1)
    weaker = np.abs(views) < np.abs(views[::-1])
    weaker[1] |= np.abs(views[0]) == np.abs(views[1])  # a tie goes to the first view
    weaker[:, -1] = False
    return np.where(weaker, 0.0, views)


def split_at_random(w: Floats, rng: np.random.RandomState) -> Floats:
    """Two views that share out the features of `w` at random; each keeps the constant."""
    first = rng.random_sample(len(w)) < 0.5
    views = np.stack([np.where(first, w, 0.0), np.where(first, 0.0, w)])
    views[:, -1] = w[-1] / 2
    return views
