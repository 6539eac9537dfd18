"""The problems of a co-training round: a classifier with priced weights, and two on disjoint features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Floats = NDArray[np.floating[Any]]
STEEPNESS = 50.0  # slope of the sigmoid that stands for "confidence above the threshold"
N_PENALTY_STEPS = 5  # the constraints' weight is 1, 10, ..., 10^4


def logistic_loss(margins: Floats) -> Floats:
    """``log(1 + exp(-margin))`` of each margin, without overflow."""
    return np.logaddexp(0.0, -margins)


def minimize_priced(
    smooth: Callable[[Floats], tuple[float, Floats]],
    price: Floats,
    start: Floats,
    *,
    max_iter: int,
    tol: float = 1e-6,
) -> Floats:
    """Weights minimising ``smooth(w) + sum(price |w|)``, exactly sparse; `smooth` also returns its gradient.

    Written as ``w = p - q`` with ``p, q >= 0`` the problem is smooth with bounds, which L-BFGS-B solves.
    """
    half = len(start)

    def objective(halves: Floats) -> tuple[float, Floats]:
        value, slope = smooth(halves[:half] - halves[half:])
        total = value + price @ (halves[:half] + halves[half:])
        return float(total), np.concatenate([price + slope, price - slope])

    solution = minimize(
        objective,
        np.concatenate([np.maximum(start, 0), np.maximum(-start, 0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * half),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20},
    )
    weights: Floats = solution.x[:half] - solution.x[half:]
    return weights


def fit_sparse_logistic(X: Any, y: Floats, price: Floats) -> Floats:
    """Weights minimising ``mean(logistic_loss(y X w)) + sum(price |w|)``."""

    def smooth(w: Floats) -> tuple[float, Floats]:
        margins = y * (X @ w)
        return float(logistic_loss(margins).mean()), X.T @ (-y * expit(-margins)) / len(y)

    return minimize_priced(smooth, price, np.zeros(X.shape[1]), max_iter=1000)


def correlation(X: Any, expected: Floats) -> Floats:
    """Pearson correlation of each column of `X` with a random ±1 label of the given expectation per row.

    A known label is its expectation. Columns (or labels) that do not vary correlate with nothing: 0.
    """
    n_rows = X.shape[0]
    mean, square = _column_mean(X), _column_mean(X.multiply(X) if hasattr(X, "multiply") else X * X)
    together = np.asarray(X.T @ expected).ravel() / n_rows - mean * expected.mean()
    spread = np.sqrt(np.maximum(square - mean**2, 0) * max(1 - float(expected.mean()) ** 2, 0))
    varies = spread > 1e-12
    return np.divide(together, spread, out=np.zeros_like(together), where=varies)


def feature_cost(X_labelled: Any, y: Floats, X_unlabelled: Any, w: Floats) -> Floats:
    """Set each feature's cost: ``1 - r_L r_U``, in [0, 2].

    ``r_L`` is its correlation with the labels, ``r_U`` that with labels drawn from the model `w` on the
    unlabelled rows, whose expectation is ``tanh(x'w / 2)``. 0 predicts alike in both, 1 is uninformative
    in one, and beyond 1 the feature changes its sign.
    """
    expected = np.tanh(np.asarray(X_unlabelled @ w).ravel() / 2)
    cost: Floats = 1.0 - correlation(X_labelled, y) * correlation(X_unlabelled, expected)
    return cost


def _column_mean(X: Any) -> Floats:
    return np.asarray(X.mean(axis=0), dtype=np.float64).ravel()


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


def fit_disjoint_views(problem: ViewProblem, start: Floats, n_steps: int = 30) -> Floats:
    """Solve `problem` from `start`: (2, d), each column but the last left to the stronger view."""
    both, price = start.ravel(), np.tile(problem.price, 2)
    for step in range(N_PENALTY_STEPS):
        smooth = partial(problem.smooth_part, weight=10.0**step)
        both = minimize_priced(smooth, price, both, max_iter=n_steps)
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
