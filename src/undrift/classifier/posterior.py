"""Least squares as a Gaussian process: what labels change, how sure a score is, how much a label counts.

Training minimises ``|w|^2 / 2 + C / 2 sum_i weight_i (y_i - f(x_i))^2``. That is the posterior mean of a
Gaussian process with the Gram matrix as covariance and noise of variance ``1 / (C weight_i)``. With
``P = (K + diag(1 / (C weight)))^-1`` over the training rows, ``k_x`` the inner products of a row with them
and the intercept free, the posterior covariance of the scores of two rows is

    S(x, z) = k(x, z) - k_x' P k_z + (1 - 1'P k_x) (1 - 1'P k_z) / 1'P 1

Labels of rows J are learnt by their log loss, to second order at the scores that they had: as in least
squares, where scores are off by ``residual`` with a precision ``p``. They change all scores by ``S(x, J) g``
with ``g = (S(J, J) + diag(1 / p))^-1 residual``: no other row is solved for again.

Target labels also say what is particular to targets: their scores have a second part, of which no other row
says anything, and whose covariance is `TARGET_PART` times the Gram matrix (the feature augmentation of Daume,
2007). For labels of target rows S is then ``S(x, z) + TARGET_PART k(x, z)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._core import Array, array_ops
from .calibration import class_probabilities
from .linear import Dual

# of the label of an undecided target row, against a labelled source row; the first is taken unless another is
# clearly better
LABEL_WEIGHTS = (4.0, 0.0, 1.0, 2.0, 8.0)
LEAST_VARIANCE = 0.01  # of the class of a row, for labels of rows that seem decided
TARGET_PART = 0.15  # variance of what is particular to targets, over that of what all domains share
FEW_LABELS = 25  # below which labels only correct shares and borders


@dataclass(frozen=True)
class Posterior:
    """Training rows by the inverse ``P`` of their Gram matrix with noise."""

    inverse: Array  # (n, n)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """``P B``."""
        return array_ops(self.inverse).to_numpy(self.inverse @ array_ops(self.inverse).like(B, self.inverse))

    def condition(self, products: np.ndarray) -> Conditioned:
        """Take rows whose inner products with the training rows are the columns of `products`."""
        both = self.solve(np.column_stack([products, np.ones(len(products))])).astype(np.float64)
        solved, ones = both[:, :-1], both[:, -1]  # one pass over P, which is large
        return Conditioned(products, solved, ones, 1 - solved.sum(axis=0), float(ones.sum()))


@dataclass(frozen=True)
class Conditioned:
    """Rows as the training rows see them."""

    products: np.ndarray  # (n, m) inner products with the training rows
    solved: np.ndarray  # (n, m) P times these
    ones: np.ndarray  # (n,) P 1
    slack: np.ndarray  # (m,) 1 - 1'P k
    total: float  # 1'P 1

    def covariance(self, other: Conditioned, K: np.ndarray) -> np.ndarray:
        """Posterior covariance with other rows, whose inner products with these are `K`."""
        return K - self.products.T @ other.solved + np.outer(self.slack, other.slack) / self.total

    def spread_change(self, g: np.ndarray) -> Dual:
        """Return how the training rows' dual coefficients, and the intercept, change with those of these."""
        intercept = self.slack @ g / self.total
        return Dual(-(self.solved @ g + np.outer(self.ones, intercept)), intercept)


@dataclass(frozen=True)
class Removed:
    """Rows among themselves, once their precision and evidence are removed."""

    covariance: np.ndarray  # (n, n)
    scores: np.ndarray  # (n, n_outputs)
    g: np.ndarray  # (n, n_outputs) what removing them adds to their coefficients
    lost: np.ndarray  # (n, n): the covariance of two rows grows by S(x, J) lost S(J, z)
    change: np.ndarray  # (n, n) times coefficients of rows that were removed: what to add for those in place

    def restore(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients in terms of the covariance before, from `g` in terms of the one after."""
        return self.g + g + self.change @ g


def remove_rows(
    covariance: np.ndarray, scores: np.ndarray, precision: np.ndarray, evidence: np.ndarray
) -> Removed:
    """Remove precision, and evidence, precision times labels, of rows with given covariance and scores."""
    system = np.eye(len(precision)) - precision[:, None] * covariance
    lost = np.linalg.solve(system, np.diag(precision))
    change, g = lost @ covariance, np.linalg.solve(system, precision[:, None] * scores - evidence)
    return Removed(covariance + covariance @ change, scores + covariance @ g, g, lost, change)


@dataclass(frozen=True)
class Evidence:
    """What labels say of scores, to second order of their log loss, with weight 1."""

    precision: np.ndarray  # (n, n_outputs), C for a row whose class is undecided
    residual: np.ndarray  # (n, n_outputs) what scores should be less what they are


def weigh_evidence(scores: np.ndarray, codes: np.ndarray, temperature: float, C: float) -> Evidence:
    """Return what labels say of scores, which are those at the border of their target."""
    p, k = class_probabilities(scores, temperature), scores.shape[1]
    error = ((codes[:, None] == np.arange(p.shape[1])) - p)[:, -k:]  # of two classes the second
    variance = np.maximum(p * (1 - p), LEAST_VARIANCE)[:, -k:]
    return Evidence(4 * C * variance, temperature * error / variance)


@dataclass(frozen=True)
class Learning:
    """Labels learnt with a weight."""

    g: np.ndarray  # (n, n_outputs) coefficients of the labelled rows
    left_out: np.ndarray  # (n, n_outputs) scores of every row, had the labels of all others been learnt
    inverses: list[np.ndarray]  # of every output: of the covariance with noise; empty without weight


def learn_evidence(covariance: np.ndarray, scores: np.ndarray, evidence: Evidence, weight: float) -> Learning:
    """Learn labels of rows whose covariance and scores without any of them are given."""
    g, left_out, inverses = np.zeros(scores.shape), scores.copy(), []
    for k in range(scores.shape[1] if weight else 0):
        inverse = np.linalg.inv(covariance + np.diag(1 / (weight * evidence.precision[:, k])))
        g[:, k] = inverse @ evidence.residual[:, k]
        left_out[:, k] += evidence.residual[:, k] - g[:, k] / np.diagonal(inverse)
        inverses.append(inverse)
    return Learning(g, left_out, inverses)


@dataclass(frozen=True)
class SourceRows:
    """The first training rows, of the sources, as target labels change their scores.

    A row that is left out is off by its dual coefficient over the diagonal of ``H = P - P 1 1'P / 1'P 1``.
    With ``U = P k_J + P 1 slack' / 1'P 1`` labels of rows J change coefficients by ``-U g``, and H by
    ``U (S(J, J) + diag(1 / p))^-1 U'``.
    """

    Y: np.ndarray  # (n, n_outputs) signs of their classes
    coef: np.ndarray  # (n, n_outputs) their dual coefficients
    diagonal: np.ndarray  # (n,) of H
    U: np.ndarray  # (n, n_labelled)

    def score_left_out(self, removed: Removed, learning: Learning) -> np.ndarray:
        """Score every row by a classifier that has learnt all other labels, of target rows too."""
        off = self.coef - self.U @ removed.restore(learning.g)
        apart = self.U + self.U @ removed.change
        diagonal = self.diagonal - ((self.U @ removed.lost) * self.U).sum(axis=1)
        for k, inverse in enumerate(learning.inverses or [np.zeros(removed.lost.shape)] * off.shape[1]):
            off[:, k] /= diagonal + ((apart @ inverse) * apart).sum(axis=1)
        return self.Y - off


def take_source_rows(posterior: Posterior, rows: Conditioned, Y: np.ndarray, n: int) -> SourceRows:
    """Take the first n training rows; `Y` are the signs of all classes, and `rows` have target labels."""
    ones, solved, P = rows.ones, posterior.solve(Y).astype(np.float64), posterior.inverse
    coef = solved - np.outer(ones, solved.sum(axis=0)) / rows.total
    diagonal = array_ops(P).to_numpy(P.diagonal()) - ones**2 / rows.total
    U = rows.solved + np.outer(ones, rows.slack) / rows.total
    return SourceRows(Y[:n], coef[:n], diagonal[:n], U[:n])


def log_loss(scores: np.ndarray, codes: np.ndarray, temperature: float) -> np.ndarray:
    """Return the log loss of every row."""
    p = class_probabilities(scores, temperature)[np.arange(len(codes)), codes]
    return -np.log(np.maximum(p, 1e-6))


def choose_label_weight(
    measure: Callable[[float], Sequence[np.ndarray]], weights: Sequence[float] = LABEL_WEIGHTS
) -> float:
    """Choose the weight of labels by losses of labelled rows, of the target and of the source, held out.

    The means of both count alike. The first weight is taken unless another one is better by more than two
    standard errors of the difference.

    Parameters
    ----------
    measure : callable
        From a weight to the losses of every row of the target, and of the source.
    """
    losses = [measure(weight) for weight in weights]
    gains = [[first - loss for first, loss in zip(losses[0], each, strict=True)] for each in losses]
    means = [np.mean([gain.mean() for gain in both]) for both in gains]
    best = int(np.argmax(means))
    error = np.sqrt(sum(gain.var() / len(gain) for gain in gains[best])) / len(gains[best])
    return weights[best if means[best] > 2 * error + 1e-9 else 0]  # rounding is no gain
