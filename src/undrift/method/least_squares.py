"""Least squares on inner products: factored once, then asked for scores, held-out scores and covariances.

It penalises ``|w|^2 / 2`` and weighs the squared errors with C, on a Gram matrix whose diagonal has mean 1:
C = 1 is then the authors' rule ``1 / mean |x|^2``, and the same C means the same on any data.

Least squares is a Gaussian process with the Gram matrix as covariance and noise of variance
``1 / (C weight_i)``. With ``P = (K + diag(1 / (C weight)))^-1`` over the labelled rows, ``k_x`` the inner
products of a row with them and the intercept free, the posterior covariance of the scores of two rows is

    S(x, z) = k(x, z) - k_x' P k_z + (a_x - 1'P k_x) (a_z - 1'P k_z) / 1'P 1

where ``a`` is 1 for a row, and 0 for a direction, which has no intercept. Further rows J with labels y,
scores s and precisions p change all scores by ``S(x, J) g`` with ``g = (S(J, J) + diag(1 / p))^-1 (y - s)``:
no other row is solved for again. Moving rows by a direction adds its scores and covariances to theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core import Array, array_ops, shifted_inverse, shifted_solve, submatrix
from ..inputs import dtype_of

_MOST_ROUNDING = 0.1  # of posterior covariances, against the noise of rows


@dataclass(frozen=True)
class Gram:
    """Inner products of labelled anchors, target anchors and centres, in this order. Nothing writes to it."""

    products: Array  # (n, n)
    n_labelled: int
    domain: np.ndarray  # (n_anchors,) position of each anchor's domain

    @property
    def scale(self) -> float:
        """Mean square norm of the labelled anchors."""
        return float(self.products.diagonal()[: self.n_labelled].mean()) or 1.0

    @property
    def n_targets(self) -> int:
        """Number of target anchors."""
        return len(self.domain) - self.n_labelled

    def suit(self, C: float, weight: float) -> Gram:
        """Return the products in float64 where C, and the weight of rows, are too large for float32.

        Least squares adds ``noise = 1 / (C weight)`` to a diagonal of mean 1. Posterior covariances are
        differences of products whose rounding is about ``eps n / noise``, and are used with noise added.
        """
        ops, eps = array_ops(self.products), np.finfo(dtype_of(self.products)).eps
        if eps * len(self.products) * (C * weight) ** 2 <= _MOST_ROUNDING:
            return self
        return replace(self, products=ops.cast(self.products, ops.float64))


def multiply(A: Array, B: np.ndarray) -> np.ndarray:
    """``A B``, multiplied where `A` is and in its precision, as float64 on the host."""
    ops = array_ops(A)
    return ops.to_numpy(A @ ops.like(B, A)).astype(np.float64)


@dataclass(frozen=True)
class LeastSquares:
    """A classifier of labelled rows as a combination of them, and the posterior of any other row's score."""

    inverse: Array  # (n, n) P
    ones: np.ndarray  # (n,) P 1
    coef: np.ndarray  # (n, n_outputs) of the labelled rows
    intercept: np.ndarray  # (n_outputs,)
    Y: np.ndarray  # (n, n_outputs) wanted scores
    noise: np.ndarray  # (n,) variances 1 / (C weight)

    @classmethod
    def fit(cls, K: Array, Y: np.ndarray, C: float, weight: np.ndarray) -> LeastSquares:
        """Minimise ``|w|^2 / 2 + C / 2 sum_i weight_i (y_i - f(x_i))^2`` from the rows' inner products.

        The intercept, which is not penalised, is ``1'P y / 1'P 1``, and the coefficients are
        ``P (y - intercept)``. One step of refinement makes up for the rounding of the inverse.
        """
        noise = 1 / (C * weight)
        inverse = shifted_inverse(K, noise)
        wanted = np.column_stack([np.ones(len(Y)), Y])
        solved = multiply(inverse, wanted)
        solved += multiply(inverse, wanted - multiply(K, solved) - noise[:, None] * solved)
        intercept = solved[:, 1:].sum(axis=0) / solved[:, 0].sum()
        return cls(inverse, solved[:, 0], solved[:, 1:] - solved[:, :1] * intercept, intercept, Y, noise)

    @property
    def scores(self) -> np.ndarray:
        """Scores of the labelled rows, (n, n_outputs): wanted scores less noise times coefficients."""
        return self.Y - self.noise[:, None] * self.coef

    def score(self, products: Array) -> np.ndarray:
        """Return the scores of rows, from their inner products with the labelled rows: (m, n)."""
        return multiply(products, self.coef) + self.intercept

    def score_held_out(self, folds: Sequence[np.ndarray]) -> np.ndarray:
        """Score each row by a classifier that has not seen its fold, in closed form.

        With ``H = P - P 1 1'P / 1'P 1`` the classifier trained without the rows t gives them the scores
        ``y_t - H_tt^-1 (H y)_t``.
        """
        scores, ops = np.empty(self.Y.shape), array_ops(self.inverse)
        for rows in folds:
            H = ops.cast(submatrix(self.inverse, rows, rows), ops.float64)
            H = H - ops.like(np.outer(self.ones[rows], self.ones[rows]) / self.ones.sum(), H)
            scores[rows] = self.Y[rows] - shifted_solve(H, np.zeros(len(rows)), self.coef[rows])
        return scores


@dataclass(frozen=True)
class Conditioned:
    """Target anchors, then directions, as the labelled rows see them: scores and posterior covariance."""

    scores: np.ndarray  # (m, n_outputs) of target anchors; of directions without an intercept
    covariance: Array  # (m, m)
    solved: Array  # (n, m) P times the inner products with the labelled rows
    slack: np.ndarray  # (m,) a - 1'P k
    n_targets: int
    combined: np.ndarray  # (n, n_directions) directions as combinations of labelled rows
    coef: np.ndarray  # (n, n_outputs) of the labelled rows' classifier
    intercept: np.ndarray  # (n_outputs,) of it
    ones: np.ndarray  # (n,) P 1

    @classmethod
    def of(cls, gram: Gram, source: LeastSquares, combined: np.ndarray) -> Conditioned:
        """Condition everything but the labelled rows on these.

        Directions are the centres of the domains, and then `combined`.
        """
        K, n, m = gram.products, gram.n_labelled, gram.n_targets
        ops = array_ops(K)
        with ops.full_precision():
            extra = ops.like(combined, K)
            with_extra = K[:, :n] @ extra  # (anchors and centres, directions)
            n_others = K.shape[0] - n
            size = n_others + combined.shape[1]
            products = ops.empty_like(K, (n, size))
            products[:, :n_others] = K[:n, n:]
            products[:, n_others:] = with_extra[:n]
            solved = source.inverse @ products
            S = ops.empty_like(K, (size, size))
            S[:n_others, :n_others] = K[n:, n:]
            S[:n_others, n_others:] = with_extra[n:]
            S[n_others:, :n_others] = with_extra[n:].T
            S[n_others:, n_others:] = extra.T @ with_extra[:n]
            S -= products.T @ solved
            constant = np.arange(size) < m
            slack = constant - ops.to_numpy(solved.sum(axis=0)).astype(np.float64)
            root = ops.like(slack[:, None] / np.sqrt(source.ones.sum()), S)
            S += root * root.T
        scores = multiply(products.T, source.coef) + constant[:, None] * source.intercept
        labelled = source.coef, source.intercept, source.ones
        return cls(scores, S, solved, slack, m, combined, *labelled)

    @property
    def directions(self) -> slice:
        """Positions of the directions."""
        return slice(self.n_targets, len(self.scores))

    def score_directions(self, e: np.ndarray) -> np.ndarray:
        """Return the scores of the directions by a classifier with coefficients of targets and directions."""
        return self.scores[self.directions] + multiply(self.covariance[self.directions], e)

    def change_source(self, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the labelled rows' coefficients and the intercept, given those of targets and directions."""
        intercept = self.slack @ e / self.ones.sum()
        coef = self.coef - multiply(self.solved, e) - np.outer(self.ones, intercept)
        coef += self.combined @ e[len(e) - self.combined.shape[1] :]
        return coef, self.intercept + intercept
