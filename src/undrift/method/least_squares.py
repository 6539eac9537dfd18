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
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from ..core import Array, array_ops, shifted_inverse, shifted_solve, submatrix
from .gram import Gram

Folds = Sequence[np.ndarray]  # rows that are held out together


def signs(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Targets of +1 and -1: one column for two classes, else one per class against the rest."""
    if n_classes == 2:
        return np.where(codes[:, None] == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def predict_codes(scores: np.ndarray) -> np.ndarray:
    """Return the class codes that scores of shape (n, n_outputs) stand for."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else np.argmax(scores, axis=1)


def measure_auc(scores: np.ndarray, codes: np.ndarray) -> float:
    """Return the area under the ROC curve of a class against the rest, averaged over classes."""
    if scores.shape[1] == 1:
        return float(roc_auc_score(codes == 1, scores[:, 0]))
    return float(np.mean([roc_auc_score(codes == code, scores[:, code]) for code in np.unique(codes)]))


def multiply(A: Array, B: np.ndarray) -> np.ndarray:
    """``A B``, multiplied where `A` is and in its precision, as float64 on the host."""
    ops = array_ops(A)
    return ops.to_numpy(A @ ops.like(B, A)).astype(np.float64)


def draw_folds(codes: np.ndarray, first: np.ndarray, n_folds: int, seed: object) -> Folds | None:
    """Draw stratified folds, fewer where a class is too small for as many; None with a class of one row.

    `first` is the first row that equals each. Equal rows are in one fold, unless all of a class are equal.
    """
    n_classes = codes.max() + 1
    for groups in (first, np.arange(len(codes))):
        distinct, row = np.unique(groups, return_inverse=True)
        smallest = int(np.bincount(codes[distinct], minlength=n_classes).min())
        if smallest > 1:
            splitter = StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=seed)
            fold = np.empty(len(distinct), dtype=int)
            for k, (_, test) in enumerate(splitter.split(codes[distinct], codes[distinct])):
                fold[test] = k
            return [np.flatnonzero(fold[row] == k) for k in range(splitter.n_splits)]
    return None


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

    def score_held_out(self, folds: Folds) -> np.ndarray:
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
    total: float  # 1'P 1
    n_targets: int
    combined: np.ndarray  # (n, n_directions) directions as combinations of labelled rows

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
            total = float(source.ones.sum())
            root = ops.like(slack[:, None] / np.sqrt(total), S)
            S += root * root.T
        scores = multiply(products.T, source.coef) + constant[:, None] * source.intercept
        return cls(scores, S, solved, slack, total, m, combined)

    @property
    def directions(self) -> slice:
        """Positions of the directions."""
        return slice(self.n_targets, len(self.scores))

    def change_source(self, source: LeastSquares, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the labelled rows' coefficients and the intercept, given those of targets and directions."""
        intercept = self.slack @ e / self.total
        coef = source.coef - multiply(self.solved, e) - np.outer(source.ones, intercept)
        coef += self.combined @ e[len(e) - self.combined.shape[1] :]
        return coef, source.intercept + intercept
