"""Least squares as a Gaussian process: what labels change, how sure a score is, how much a label counts.

Training minimises ``|w|^2 / 2 + C / 2 sum_i weight_i (y_i - f(x_i))^2``. That is the posterior mean of a
Gaussian process with the Gram matrix as covariance and noise of variance ``1 / (C weight_i)``. With
``P = (K + diag(1 / (C weight)))^-1`` over the training rows, ``k_x`` the inner products of a row with them
and the intercept free, the posterior covariance of the scores of two rows is

    S(x, z) = k(x, z) - k_x' P k_z + (1 - 1'P k_x) (1 - 1'P k_z) / 1'P 1

Rows J that gain a precision ``p`` (lose it, where p is negative) with evidence ``e``, p times their labels,
change all scores by ``S(x, J) g`` with ``g = (I + diag(p) S(J, J))^-1 (e - p f(J))``: no other row is solved
for again.

Target labels also say what is particular to targets: their scores have a second part, of which no other row
says anything, and whose covariance is `TARGET_PART` times the Gram matrix (the feature augmentation of Daume,
2007). For labels of target rows S is then ``S(x, z) + TARGET_PART k(x, z)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._core import Array, array_ops
from .calibration import class_probabilities
from .linear import Dual

# of a target label, against a labelled source row; the first is taken unless another is clearly better
LABEL_WEIGHTS = (4.0, 0.0, 1.0, 2.0, 8.0)
TARGET_PART = 0.05  # variance of what is particular to targets, over that of what all domains share
FEW_LABELS = 25  # below which labels only correct shares and borders


@dataclass(frozen=True)
class Posterior:
    """Training rows by the inverse ``P`` of their Gram matrix with noise."""

    inverse: Array  # (n, n)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """``P B``."""
        return array_ops(self.inverse).to_numpy(self.inverse @ array_ops(self.inverse).like(B, self.inverse))

    @cached_property
    def ones(self) -> np.ndarray:
        """``P 1`` of shape (n,)."""
        return self.solve(np.ones((len(self.inverse), 1)))[:, 0].astype(np.float64)

    def condition(self, products: np.ndarray) -> Conditioned:
        """Take rows whose inner products with the training rows are the columns of `products`."""
        solved = self.solve(products).astype(np.float64)
        return Conditioned(products, solved, 1 - solved.sum(axis=0), float(self.ones.sum()))


@dataclass(frozen=True)
class Conditioned:
    """Rows as the training rows see them."""

    products: np.ndarray  # (n, m) inner products with the training rows
    solved: np.ndarray  # (n, m) P times these
    slack: np.ndarray  # (m,) 1 - 1'P k
    total: float  # 1'P 1

    def covariance(self, other: Conditioned, K: np.ndarray) -> np.ndarray:
        """Posterior covariance with other rows, whose inner products with these are `K`."""
        return K - self.products.T @ other.solved + np.outer(self.slack, other.slack) / self.total

    def spread_change(self, posterior: Posterior, g: np.ndarray) -> Dual:
        """Return how the training rows' dual coefficients, and the intercept, change with those of these."""
        intercept = self.slack @ g / self.total
        return Dual(-(self.solved @ g + np.outer(posterior.ones, intercept)), intercept)


def solve_change(
    covariance: np.ndarray, scores: np.ndarray, precision: np.ndarray, evidence: np.ndarray
) -> np.ndarray:
    """Return `g` of the module's docstring, of shape (n_changed, n_outputs)."""
    system = np.eye(len(precision)) + precision[:, None] * covariance
    return np.linalg.solve(system, evidence - precision[:, None] * scores)


@dataclass(frozen=True)
class Removed:
    """Rows among themselves, once their precision and evidence are removed."""

    covariance: np.ndarray  # (n, n)
    scores: np.ndarray  # (n, n_outputs)
    g: np.ndarray  # (n, n_outputs) what removing them adds to their coefficients
    change: np.ndarray  # (n, n) times coefficients of rows that were removed: what to add for those in place

    def restore(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients in terms of the covariance before, from `g` in terms of the one after."""
        return self.g + g + self.change @ g


def remove_rows(
    covariance: np.ndarray, scores: np.ndarray, precision: np.ndarray, evidence: np.ndarray
) -> Removed:
    """Remove precision and evidence of rows whose covariance and scores among themselves are given."""
    change = solve_change(covariance, covariance, -precision, np.zeros_like(covariance))
    g = solve_change(covariance, scores, -precision, -evidence)
    return Removed(covariance + covariance @ change, scores + covariance @ g, g, change)


def left_out_scores(covariance: np.ndarray, scores: np.ndarray, Y: np.ndarray, noise: float) -> np.ndarray:
    """Score every row as if the labels of all rows but itself had been learnt, in closed form."""
    inverse = np.linalg.inv(covariance + noise * np.eye(len(Y)))
    return Y - inverse @ (Y - scores) / np.diagonal(inverse)[:, None]


def choose_label_weight(
    covariance: np.ndarray,
    scores: np.ndarray,
    Y: np.ndarray,
    codes: np.ndarray,
    C: float,
    border: np.ndarray,
    temperature: float,
    weights: Sequence[float] = LABEL_WEIGHTS,
) -> float:
    """Choose the weight of labels by the log loss of every label under a classifier that has not seen it.

    Fewer than `FEW_LABELS` have no weight: the classifier stays as it is. Else the first weight, unless
    another one is better by more than two standard errors of the difference.

    Parameters
    ----------
    covariance, scores : arrays of shape (n, n) and (n, n_outputs)
        Of the labelled target rows, by the classifier that has seen none of their labels.
    border : array of shape (n, n_outputs)
        What is added to the scores for predictions.
    """
    if len(codes) < FEW_LABELS:
        return 0.0
    rows, losses = np.arange(len(codes)), []
    for weight in weights:
        held_out = left_out_scores(covariance, scores, Y, 1 / (C * weight)) if weight else scores
        p = class_probabilities(held_out + border, temperature)[rows, codes]
        losses.append(-np.log(np.maximum(p, 1e-6)))
    gains = losses[0] - np.array(losses)  # (n_weights, n)
    best = int(np.argmax(gains.mean(axis=1)))
    standard_error = gains[best].std() / np.sqrt(len(codes))
    return weights[best if gains[best].mean() > 2 * standard_error + 1e-9 else 0]  # rounding is no gain
