"""Linear classifiers for more labelled rows than a Gram matrix can hold: sums over rows, block by block.

Least squares on ``r = [h^0, ..., h^l, 1]`` needs no more of the labelled rows than

    A = sum_i weight_i r_i r_i' + diag(1 / C, ..., 1 / C, 0),    u = sum_i weight_i r_i y_i'

of a size that does not depend on their number, and ``A^-1 u`` are the weights. Target rows T with
pseudo-labels y and weights v, which change from round to round, are then a small problem: with the scores s
that they have before it and ``Q = T A^-1 T'``, computed once,

    e = (Q + diag(1 / v))^-1 (y - s),    weights = A^-1 (u + T'e),    scores of T = s + Q e

so that a round costs as much as a Gram matrix of the target rows alone. Other losses are minimised by L-BFGS,
and so are rows too wide for A.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from .._core import Array, Layer, NotPositiveDefinite, Rows, allocate, array_ops, hidden_rows, row_slices
from .._inputs import Place
from .linear import too_large_error

MOST_COLUMNS = 46_000  # of [h^0, ..., h^l], for which A is summed; its entries are counted in 32 bits


@dataclass(frozen=True)
class LayerRows:
    """Rows of every layer, centred and scaled, that fit no Gram matrix: read in row blocks."""

    blocks: list[slice]
    widths: list[int]
    read: Callable[[slice], list[Array]]  # rows -> [h^0, h^1, ..., h^l]

    def score(self, primal: Primal) -> np.ndarray:
        """Scores of all rows, of shape (n, n_outputs)."""
        scores = [sum(map(_product, self.read(block), primal.weights)) for block in self.blocks]
        return primal.intercept + np.concatenate(scores)

    def combine(self, coef: np.ndarray) -> list[np.ndarray]:
        """Sums of all rows with coefficients of shape (n, k): for every layer, of shape (d_t, k)."""
        sums = [np.zeros((width, coef.shape[1])) for width in self.widths]
        for block in self.blocks:
            for total, H in zip(sums, self.read(block), strict=True):
                total += _product(H.T, coef[block])
        return sums

    def read_joined(self, block: slice) -> Array:
        """Return rows of all layers side by side, and a constant 1."""
        pieces = self.read(block)
        ops, n_rows = array_ops(pieces[0]), pieces[0].shape[0]
        joined = ops.empty_like(pieces[0], (n_rows, sum(self.widths) + 1))
        edges = np.cumsum([0, *self.widths])
        for piece, start, stop in zip(pieces, edges[:-1], edges[1:], strict=True):
            joined[:, start:stop] = piece
        joined[:, -1] = 1
        return joined

    def take_input(self) -> LayerRows:
        """Return the same rows of the input alone."""
        return LayerRows(self.blocks, self.widths[:1], lambda block: self.read(block)[:1])


@dataclass(frozen=True)
class Primal:
    """Weights of every layer, and an intercept for each output."""

    weights: list[np.ndarray]  # of shape (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)


def layer_rows(
    X: Rows,
    domain: np.ndarray,
    first: Callable[[Rows], Rows],
    layers: Sequence[Layer],
    means: Sequence[np.ndarray] | None,
    shares: Sequence[float],
    place: Place,
    memory_budget: float | None = None,
) -> LayerRows:
    """Return rows of every layer, computed again for every pass.

    Inner products of layer t are to be multiplied by ``shares[t]``: its rows are by the root of that. With a
    `memory_budget` hidden rows are computed once, and kept in memory or in a temporary file.

    Parameters
    ----------
    X : rows of shape (n, d)
    domain : int array of shape (n,)
        Row of each of the `means` that is subtracted from each row.
    first : callable
        What the first layer sees of rows.
    """
    layers, widths = place.move_layers(layers), [layer.coef.shape[1] for layer in layers]
    roots = np.sqrt(shares)

    def centre(H: Array, t: int, block: slice) -> Array:
        if means is not None:
            H = H - array_ops(H).like(means[t], H)[domain[block]]
        return H * float(roots[t])

    def read_input(block: slice) -> Array:
        x = place.move_rows(X[block])
        return centre(x.toarray() if sp.issparse(x) else x, 0, block)

    def read(block: slice) -> list[Array]:
        hidden = hidden_rows(layers, place.move_rows(first(X[block])))
        return [read_input(block), *(centre(H, t, block) for t, H in enumerate(hidden, start=1))]

    blocks = row_slices(X.shape[0], max(X.shape[1], *widths, sum(widths) + X.shape[1]))
    rows = LayerRows(blocks, [X.shape[1], *widths], read)
    if memory_budget is None or not layers:
        return rows
    kept, edges = allocate((X.shape[0], sum(widths)), X.dtype, memory_budget), np.cumsum(widths)
    for block in blocks:
        kept[block] = np.concatenate(read(block)[1:], axis=1)
    return replace(rows, read=lambda block: [read_input(block), *np.split(kept[block], edges[:-1], axis=1)])


def concatenate_columns(parts: Sequence[LayerRows]) -> LayerRows:
    """Put columns of several kinds of the same rows side by side, in the smallest blocks of any."""
    return LayerRows(
        max((part.blocks for part in parts), key=len),
        [width for part in parts for width in part.widths],
        lambda block: [piece for part in parts for piece in part.read(block)],
    )


class Training(Protocol):
    """A classifier trained on many labelled rows, to which target rows with pseudo-labels can be added."""

    start: Primal

    def add_rows(self, rows: LayerRows, scores: np.ndarray) -> None:
        """Take target rows, which have no weight yet, and their scores at the start."""

    def retrain(self, Y: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray]:
        """Train with these labels and weights of the target rows: what `finish` takes, and their scores."""

    def finish(self, trained: Any) -> Primal:
        """Return the classifier that `retrain` trained."""


class NormalEquations:
    """Least squares by sums over rows, which are read once; see the top of this module."""

    def __init__(self, rows: LayerRows, Y: np.ndarray, C: float, weight: np.ndarray) -> None:
        self._widths = rows.widths
        A, u = None, np.zeros((sum(rows.widths) + 1, Y.shape[1]))
        for block in rows.blocks:
            joined, root = rows.read_joined(block), np.sqrt(weight[block])[:, None]
            ops = array_ops(joined)
            joined *= ops.like(root, joined)
            u += _product(joined.T, root * Y[block])
            A = ops.zeros_like(joined, (len(u), len(u))) if A is None else A
            A = ops.add_gram(A, joined)
        penalty = np.append(np.full(len(u) - 1, 1 / C), 0.0)
        try:
            self._factor = ops.factor_spd(A, penalty)
        except NotPositiveDefinite:
            raise too_large_error(C) from None
        self._ops, self._half = ops, ops.solve_lower(self._factor, ops.like(u.T, A))  # (n_outputs, D + 1)
        self.start = self._solve(self._half)

    def _solve(self, half: Array) -> Primal:
        """Return the weights from rows that the lower factor has been divided out of."""
        solved = self._ops.to_numpy(self._ops.solve_lower(self._factor, half + 0, transposed=True)).T
        parts = np.split(solved[:-1].astype(float), np.cumsum(self._widths)[:-1])
        return Primal([part.copy() for part in parts], solved[-1].astype(float))

    def add_rows(self, rows: LayerRows, scores: np.ndarray) -> None:
        """Take target rows, which have no weight yet, and their scores at the start."""
        n, ops = rows.blocks[-1].stop, self._ops
        T = ops.empty_like(self._half, (n, self._half.shape[1]))
        for block in rows.blocks:
            T[block] = rows.read_joined(block)
        self._scores = scores
        self._rows = ops.solve_lower(self._factor, T)
        self._Q = ops.inner_products(self._rows)

    def retrain(self, Y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Train with these labels and weights of the target rows: their coefficients, and their scores."""
        counted, coef = np.flatnonzero(weight), np.zeros(Y.shape)
        if len(counted):
            gaps, shift = (Y - self._scores)[counted], 1 / weight[counted]
            coef[counted] = self._ops.shifted_solves(self._Q, [shift], gaps, counted)[0]
        return coef, self._scores + _product(self._Q, coef)

    def finish(self, trained: np.ndarray) -> Primal:
        """Return the classifier of these coefficients of the target rows."""
        change = self._rows.T @ self._ops.like(trained, self._rows)
        return self._solve(self._half + change.T)


class Minimisation:
    """Any loss, or rows too wide for normal equations: L-BFGS over all rows in every round."""

    def __init__(self, rows: LayerRows, Y: np.ndarray, C: float, weight: np.ndarray, loss: str) -> None:
        self._rows, self._Y, self._C, self._weight, self._loss = rows, Y, C, weight, loss
        self.start = self._last = fit_primal(rows, Y, C, weight, loss)

    def add_rows(self, rows: LayerRows, scores: np.ndarray) -> None:
        """Take target rows, which have no weight yet."""
        n, self._added = self._rows.blocks[-1].stop, rows

        def read(block: slice) -> list[Array]:
            is_labelled = block.start < n
            moved = slice(block.start - n, block.stop - n)
            return self._rows.read(block) if is_labelled else rows.read(moved)

        blocks = [*self._rows.blocks, *(slice(b.start + n, b.stop + n) for b in rows.blocks)]
        self._all = LayerRows(blocks, self._rows.widths, read)

    def retrain(self, Y: np.ndarray, weight: np.ndarray) -> tuple[Primal, np.ndarray]:
        """Train with these labels and weights of the target rows: the classifier, and their scores."""
        Y, weight = np.concatenate([self._Y, Y]), np.concatenate([self._weight, weight])
        self._last = fit_primal(self._all, Y, self._C, weight, self._loss, start=self._last)
        return self._last, self._added.score(self._last)

    def finish(self, trained: Primal) -> Primal:
        """Return the classifier."""
        return trained


def needs_minimisation(loss: str, widths: Sequence[int]) -> bool:
    """Tell whether the classifier cannot be had by normal equations."""
    return loss != "least-squares" or sum(widths) > MOST_COLUMNS


def train_on_rows(rows: LayerRows, Y: np.ndarray, C: float, weight: np.ndarray, loss: str) -> Training:
    """Train on the labelled rows, with what fits the loss and the width of the rows."""
    if needs_minimisation(loss, rows.widths):
        return Minimisation(rows, Y, C, weight, loss)
    return NormalEquations(rows, Y, C, weight)


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
    rows: LayerRows, Y: np.ndarray, C: float, weight: np.ndarray, loss: str, start: Primal | None = None
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

    theta = np.zeros((edges[-1] + 1) * n_outputs)
    if start is not None:
        theta = np.vstack([*start.weights, start.intercept]).ravel()
    best = minimize(objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    weights, intercept = split(best.x)
    return Primal([w.copy() for w in weights], intercept.copy())


def _product(H: Array, w: np.ndarray) -> np.ndarray:
    ops = array_ops(H)
    return ops.to_numpy(H @ ops.like(w, H)).astype(np.float64)
