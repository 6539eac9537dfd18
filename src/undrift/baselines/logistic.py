"""Logistic regression with a price on each weight, and what a weight should cost across domains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Floats = NDArray[np.floating[Any]]


def logistic_loss(margins: Floats) -> Floats:
    """``log(1 + exp(-margin))`` of each margin, without overflow."""
    return np.logaddexp(0.0, -margins)


def priced_minimum(
    smooth: Callable[[Floats], tuple[float, Floats]],
    price: Floats,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
) -> Floats:
    """Weights minimising ``smooth(w) + sum(price |w|)``, exactly sparse; `smooth` also returns its gradient.

    Written as ``w = p - q`` with ``p, q >= 0`` the problem is smooth with bounds, which L-BFGS-B solves.
    """
    half = len(start)

    def objective(halves: Floats) -> tuple[float, Floats]:
        value, slope = smooth(halves[:half] - halves[half:])
        total = value + price @ (halves[:half] + halves[half:])
        return float(total), np.concatenate([price + slope, price - slope])

    found = minimize(
        objective,
        np.concatenate([np.maximum(start, 0), np.maximum(-start, 0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * half),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20},
    )
    weights: Floats = found.x[:half] - found.x[half:]
    return weights


def sparse_logistic(
    X: Any, y: Floats, price: Floats, start: Floats | None = None, *, tol: float = 1e-6, max_iter: int = 1000
) -> Floats:
    """Weights minimising ``mean(logistic_loss(y X w)) + sum(price |w|)``."""

    def smooth(w: Floats) -> tuple[float, Floats]:
        margins = y * (X @ w)
        return float(logistic_loss(margins).mean()), X.T @ (-y * expit(-margins)) / len(y)

    start = np.zeros(X.shape[1]) if start is None else start
    return priced_minimum(smooth, price, start, tol=tol, max_iter=max_iter)


def correlation(X: Any, expected: Floats) -> Floats:
    """Pearson correlation of each column of `X` with a random ±1 label of the given expectation per row.

    Known labels are their own expectation. Columns (or labels) that do not vary correlate with nothing: 0.
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
