"""Linear classifiers for more labelled rows than a Gram matrix can hold: the primal, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from .._core import Layer, Rows, allocate, hidden_rows, row_slices
from .._inputs import to_host
from .data import TrainingRows


@dataclass(frozen=True)
class LayerRows:
    """Labelled rows of every layer, centred, that fit no Gram matrix: read in row blocks."""

    blocks: list[slice]
    widths: list[int]
    read: Callable[[slice], list[np.ndarray]]  # rows -> [h^0, h^1, ..., h^l]

    def score(self, primal: Primal) -> np.ndarray:
        """Scores of all rows, of shape (n, n_outputs)."""
        return np.concatenate(
            [primal.intercept + sum(map(_product, self.read(block), primal.weights)) for block in self.blocks]
        )


@dataclass(frozen=True)
class Primal:
    """Weights of every layer, and an intercept for each output."""

    weights: list[np.ndarray]  # of shape (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)


def layer_rows(
    rows: TrainingRows,
    first: Callable[[Rows], Rows],
    layers: Sequence[Layer],
    means: Sequence[np.ndarray] | None,
    shares: Sequence[float],
    memory_budget: float,
) -> LayerRows:
    """Compute the labelled rows of every layer once, in memory or in a temporary file.

    Inner products of layer t are to be multiplied by ``shares[t]``: its rows are by the root of that.
    """
    X, position = to_host(rows.labelled), {number: i for i, number in enumerate(rows.domains)}
    domain = np.array([position[number] for number in rows.domain])
    widths = [layer.coef.shape[1] for layer in layers]
    edges = np.cumsum(widths)
    H = allocate((X.shape[0], sum(widths)), X.dtype, memory_budget)
    blocks = row_slices(X.shape[0], max(X.shape[1], *widths, 1))
    for block in blocks if layers else ():
        pieces = list(hidden_rows(layers, first(X[block])))
        if means is not None:
            pieces = [h - mean[domain[block]] for h, mean in zip(pieces, means[1:], strict=True)]
        H[block] = np.concatenate(pieces, axis=1) * np.repeat(np.sqrt(shares[1:]), widths).astype(X.dtype)

    def read(block: slice) -> list[np.ndarray]:
        x = X[block].toarray() if sp.issparse(X) else X[block]
        if means is not None:
            x = x - means[0].astype(x.dtype)[domain[block]]
        pieces = np.split(H[block], edges[:-1], axis=1) if layers else []
        return [x * np.sqrt(shares[0]).astype(x.dtype), *pieces]

    return LayerRows(blocks, [X.shape[1], *widths], read)


def concatenate_columns(parts: Sequence[LayerRows]) -> LayerRows:
    """Put columns of several kinds of the same rows side by side, in the smallest blocks of any."""
    return LayerRows(
        max((part.blocks for part in parts), key=len),
        [width for part in parts for width in part.widths],
        lambda block: [piece for part in parts for piece in part.read(block)],
    )


def _squared_loss(margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half of (1 - m)^2 and its derivative: for labels of +-1 this is least squares."""
    gap = 1 - margin
    return gap * gap / 2, -gap


def _squared_hinge(margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half of max(0, 1 - m)^2 and its derivative: the hinge, smoothed so that blocks can be summed."""
    gap = np.maximum(1 - margin, 0)
    return gap * gap / 2, -gap


LOSSES = {"least-squares": _squared_loss, "hinge": _squared_hinge}


def fit_primal(
    rows: LayerRows, Y: np.ndarray, C: float, weight: np.ndarray, loss: str, max_iterations: int = 500
) -> Primal:
    """Minimise ``|w|^2 / 2 + C sum_i weight_i loss(y_i f(x_i))`` by L-BFGS over row blocks."""
    edges, n_outputs = np.cumsum(rows.widths), Y.shape[1]

    def split(theta: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        matrix = theta.reshape(-1, n_outputs)
        return np.split(matrix[:-1], edges[:-1]), matrix[-1]

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        weights, intercept = split(theta)
        gradient = theta.copy()
        gradient.reshape(-1, n_outputs)[-1] = 0  # the intercept is not penalised
        value, (slopes, slope) = float(gradient @ gradient) / 2, split(gradient)
        for block in rows.blocks:
            pieces = rows.read(block)
            scores = intercept + sum(_product(H, w) for H, w in zip(pieces, weights, strict=True))
            losses, derivative = LOSSES[loss](Y[block] * scores)
            pull = C * weight[block, None] * derivative * Y[block]
            value += C * float(weight[block] @ losses.sum(axis=1))
            slope += pull.sum(axis=0)
            for layer_slope, H in zip(slopes, pieces, strict=True):
                layer_slope += _product(H.T, pull)
        return value, gradient

    start = np.zeros((edges[-1] + 1) * n_outputs)
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iterations})
    weights, intercept = split(best.x)
    return Primal([w.copy() for w in weights], intercept.copy())


def _product(H: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (H @ w.astype(H.dtype)).astype(np.float64)
