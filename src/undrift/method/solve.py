"""Least squares: from inner products alone, or by sums over rows where they are too many.

It penalises ``|w|^2 / 2`` and weighs the squared errors with C, on a Gram matrix whose diagonal has mean 1:
C = 1 is then the authors' rule ``1 / mean |x|^2``, and the same C means the same on any data.

Least squares is a Gaussian process with the Gram matrix as covariance and noise of variance
``1 / (C weight_i)``. With ``P = (K + diag(1 / (C weight)))^-1`` over the training rows, ``k_x`` the inner
products of a row with them and the intercept free, the posterior covariance of the scores of two rows is

    S(x, z) = k(x, z) - k_x' P k_z + (1 - 1'P k_x) (1 - 1'P k_z) / 1'P 1

Further rows J with labels y, scores s and precisions p change all scores by ``S(x, J) g`` with
``g = (S(J, J) + diag(1 / p))^-1 (y - s)``: no other row is solved for again.

For more labelled rows than a Gram matrix can hold, least squares on ``r = [h^0, ..., h^l, 1]`` needs no more
of them than

    A = C sum_i weight_i r_i r_i' + diag(1, ..., 1, 0),    u = C sum_i weight_i r_i y_i'

of a size that does not depend on their number. ``A^-1 u`` are the weights, and ``S(x, z) = r_x' A^-1 r_z``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from ..core import (
    Array,
    Layer,
    NotPositiveDefinite,
    Rows,
    array_ops,
    decision_scores,
    hidden_rows,
    row_slices,
    shifted_inverse,
    submatrix,
)
from ..inputs import Place, dtype_of
from .constants import N_FOLDS

if TYPE_CHECKING:
    from .layers import Stack

Folds = Sequence[np.ndarray]  # rows that are held out together


@dataclass(frozen=True)
class Dual:
    """A classifier as a combination of training rows: ``score(x) = sum_i coef_i <x_i, x> + intercept``."""

    coef: np.ndarray  # (n, n_outputs)
    intercept: np.ndarray  # (n_outputs,)

    def scores(self, K: Array) -> np.ndarray:
        """Return scores of rows; `K` holds their inner products with the training rows."""
        return multiply(K, self.coef) + self.intercept


@dataclass(frozen=True)
class Labels:
    """Classes and weights of the labelled rows, which come first in a Gram matrix; target rows may follow."""

    codes: np.ndarray  # (n,)
    n_classes: int
    weight: np.ndarray  # (n,) above 0
    first: np.ndarray  # (n,) the first row that equals each

    @property
    def Y(self) -> np.ndarray:
        """Wanted scores, of shape (n, n_outputs)."""
        return signs(self.codes, self.n_classes)

    def fit(self, K: Array, C: float) -> Dual:
        """Train a classifier on the labelled rows of a Gram matrix."""
        n = len(self.codes)
        return least_squares(K[:n, :n], self.Y, C, self.weight)

    def draw_folds(self, random_state: Any) -> Folds | None:
        """Draw stratified folds, fewer where a class is too small for as many; None with a class of one row.

        Equal rows are in one fold, unless all rows of a class are equal.
        """
        for first in (self.first, np.arange(len(self.codes))):
            distinct, row = np.unique(first, return_inverse=True)
            codes = self.codes[distinct]
            smallest = int(np.bincount(codes, minlength=self.n_classes).min())
            if smallest > 1:
                splitter = StratifiedKFold(min(N_FOLDS, smallest), shuffle=True, random_state=random_state)
                fold = np.empty(len(distinct), dtype=int)
                for k, (_, test) in enumerate(splitter.split(codes, codes)):
                    fold[test] = k
                return [np.flatnonzero(fold[row] == k) for k in range(splitter.n_splits)]
        return None


def signs(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Targets of +1 and -1: one column for two classes, else one per class against the rest."""
    if n_classes == 2:
        return np.where(codes[:, None] == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def predict_codes(scores: np.ndarray) -> np.ndarray:
    """Return the class codes that scores of shape (n, n_outputs) stand for."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else np.argmax(scores, axis=1)


def confidence(scores: np.ndarray) -> np.ndarray:
    """Confidence of shape (n,): the size of the one score, or the lead of the first over the second."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0]


def mean_auc(scores: np.ndarray, codes: np.ndarray) -> float:
    """Return the area under the ROC curve of a class against the rest, averaged over classes."""
    if scores.shape[1] == 1:
        return float(roc_auc_score(codes == 1, scores[:, 0]))
    return float(np.mean([roc_auc_score(codes == code, scores[:, code]) for code in np.unique(codes)]))


def multiply(A: Array, B: np.ndarray) -> np.ndarray:
    """``A B``, multiplied where `A` is and in its precision, as float64 on the host."""
    ops = array_ops(A)
    return ops.to_numpy(A @ ops.like(B, A)).astype(np.float64)


def least_squares(K: Array, Y: np.ndarray, C: float, weight: np.ndarray) -> Dual:
    """Least-squares SVM in closed form: minimise ``|w|^2 / 2 + C / 2 sum_i weight_i (y_i - f(x_i))^2``.

    With ``M = K + diag(1 / (C weight))`` the intercept, which is not penalised, is
    ``1'M^-1 y / 1'M^-1 1`` and the dual coefficients ``M^-1 (y - intercept)``: one Cholesky
    factorisation for any number of outputs.
    """
    outputs = np.column_stack([np.ones(len(Y)), Y])
    with _refuse_large(C):
        solved = array_ops(K).shifted_solve(K, 1 / (C * weight), outputs)
    intercept = solved[:, 1:].sum(axis=0) / solved[:, 0].sum()
    return Dual(solved[:, 1:] - solved[:, :1] * intercept, intercept)


@contextmanager
def _refuse_large(C: float) -> Iterator[None]:
    """Raise ValueError for a C for which rounding leaves no solution."""
    try:
        yield
    except NotPositiveDefinite:
        raise ValueError(f"C={C:g} is too large for inner products of this size; lower C") from None


def mean_diagonal(K: Array, n: int | None = None) -> float:
    """Return the mean of the first n entries of the diagonal, or of all; 1 where they are 0."""
    return float(K.diagonal()[:n].mean()) or 1.0


def draw_labelled_rows(codes: np.ndarray, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """Draw n rows at random, two of every class among them where there are two; in ascending order."""
    drawn = random_state.permutation(len(codes))
    rank = np.empty(len(codes), dtype=int)  # how many rows of the same class were drawn before
    for code in np.unique(codes):
        same_class = np.flatnonzero(codes[drawn] == code)
        rank[same_class] = np.arange(len(same_class))
    return np.sort(drawn[np.argsort(rank >= 2, kind="stable")[:n]])


@dataclass(frozen=True)
class Posterior:
    """Training rows by the inverse ``P`` of their Gram matrix with noise; see the top of this module."""

    inverse: Array  # (n, n)

    @classmethod
    def invert(cls, K: Array, C: float, weight: np.ndarray) -> Posterior:
        """Return the posterior of rows with these inner products and weights."""
        with _refuse_large(C):
            return cls(shifted_inverse(K, 1 / (C * weight)))

    def condition(self, products: Array) -> Conditioned:
        """Condition rows on the training rows; columns of `products` are inner products with these."""
        ops, P = array_ops(self.inverse), self.inverse
        ones = ops.to_numpy(P.sum(axis=0)).astype(np.float64)
        solved = P @ ops.like(products, P)
        slack = 1 - ops.to_numpy(solved.sum(axis=0)).astype(np.float64)
        return Conditioned(products, solved, ones, slack, float(ones.sum()))

    def score_held_out(self, Y: np.ndarray, folds: Folds) -> np.ndarray:
        """Score each row by a classifier that has not seen its fold, in closed form.

        With ``H = P - P 1 1'P / 1'P 1`` the classifier trained without the rows t gives them the scores
        ``y_t - H_tt^-1 (H y)_t``.
        """
        both = multiply(self.inverse, np.column_stack([np.ones(len(Y)), Y]))
        ones, solved = both[:, 0], both[:, 1:]
        dual = solved - np.outer(ones, solved.sum(axis=0) / ones.sum())
        scores, ops = np.empty(Y.shape), array_ops(self.inverse)
        for rows in folds:
            H = ops.cast(submatrix(self.inverse, rows, rows), ops.float64)
            H = H - ops.like(np.outer(ones[rows], ones[rows]) / ones.sum(), H)
            scores[rows] = Y[rows] - ops.shifted_solve(H, np.zeros(len(rows)), dual[rows])
        return scores


@dataclass(frozen=True)
class Conditioned:
    """Rows as the training rows see them."""

    products: Array  # (n, m) inner products with the training rows
    solved: Array  # (n, m) P times these
    ones: np.ndarray  # (n,) P 1
    slack: np.ndarray  # (m,) 1 - 1'P k
    total: float  # 1'P 1

    def covariance(self, K: Array) -> Array:
        """Return the posterior covariance of rows; `K` holds their inner products with each other."""
        S = K - self.products.T @ self.solved
        slack = array_ops(S).like(self.slack[:, None] / np.sqrt(self.total), S)
        S += slack * slack.T
        return S

    def spread_change(self, g: np.ndarray) -> Dual:
        """Return how the training rows' dual coefficients, and the intercept, change with those of these."""
        intercept = self.slack @ g / self.total
        return Dual(-(multiply(self.solved, g) + np.outer(self.ones, intercept)), intercept)


def source_cv(K: Array, labels: Labels, folds: Folds, C: float) -> float:
    """Accuracy in cross-validation on the labelled source (section 3.4; the paper's rule)."""
    n = len(labels.codes)
    scores = Posterior.invert(K[:n, :n], C, labels.weight).score_held_out(labels.Y, folds)
    return float(np.mean(predict_codes(scores) == labels.codes))


@dataclass(frozen=True)
class LayerRows:
    """Rows of all layers side by side, centred and scaled, and a constant 1: read in row blocks."""

    blocks: list[slice]
    widths: list[int]  # of the layers
    roots: np.ndarray  # that the rows of every layer are multiplied by
    read: Callable[[slice], Array]


def read_layers(
    X: Rows, domain: np.ndarray, stack: Stack, place: Place, moves: Sequence[np.ndarray] | None = None
) -> LayerRows:
    """Return rows at every layer, computed again for every pass.

    Inner products of layer t are to be multiplied by ``stack.shares[t]``: its rows are by the root of that.
    `moves`, of shape (d_t, n_domains) each, are added to the rows of the domains at every layer.
    """
    layers, roots, centres = place.move_layers(stack.layers), np.sqrt(stack.shares), stack.move_means(moves)
    widths = [centre.shape[1] for centre in centres]

    def read(block: slice) -> Array:
        x = place.move_rows(X[block])
        dense = x.toarray() if sp.issparse(x) else x
        joined = array_ops(dense).empty_like(dense, (dense.shape[0], sum(widths) + 1))
        pieces = chain([dense], hidden_rows(layers, x))
        for H, centre, root, stop in zip(pieces, centres, roots, np.cumsum(widths), strict=True):
            centred = H - array_ops(H).like(centre, H)[domain[block]]
            joined[:, stop - H.shape[1] : stop] = float(root) * centred
        joined[:, -1] = 1
        return joined

    return LayerRows(row_slices(X.shape[0], sum(widths)), widths, roots, read)


class NormalEquations:
    """Least squares by sums over rows, which are read once; see the top of this module."""

    def __init__(self, rows: LayerRows, Y: np.ndarray, C: float, weight: np.ndarray) -> None:
        self._widths, self._roots = rows.widths, rows.roots
        A, u = None, np.zeros((sum(rows.widths) + 1, Y.shape[1]))
        for block in rows.blocks:
            joined, root = rows.read(block), np.sqrt(C * weight[block])[:, None]
            ops = array_ops(joined)
            joined *= ops.like(root, joined)
            u += multiply(joined.T, root * Y[block])
            A = ops.zeros_like(joined, (len(u), len(u))) if A is None else A
            A = ops.add_gram(A, joined)
        with _refuse_large(C):
            self._factor = ops.factor_spd(A, np.append(np.ones(len(u) - 1), 0.0))
        self._ops, self._half = ops, ops.solve_lower(self._factor, ops.like(u.T, A))  # (n_outputs, D + 1)

    def add_rows(self, rows: LayerRows) -> Array:
        """Take target rows, and return their posterior covariance."""
        T = self._ops.empty_like(self._half, (rows.blocks[-1].stop, self._half.shape[1]))
        for block in rows.blocks:
            T[block] = rows.read(block)
        self._rows = self._ops.solve_lower(self._factor, T)
        return self._ops.inner_products(self._rows)

    def solve(self, g: np.ndarray | None = None) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the weights of every layer, of rows that are not scaled, and the intercept.

        `g` are coefficients of the target rows.
        """
        half = self._half + 0  # which is overwritten
        if g is not None:
            half = half + (self._rows.T @ self._ops.like(g, self._rows)).T
        solved = self._ops.solve_lower(self._factor, half, transposed=True)
        solved = self._ops.to_numpy(solved).T.astype(float)
        parts = np.split(solved[:-1], np.cumsum(self._widths)[:-1])
        return [root * part for root, part in zip(self._roots, parts, strict=True)], solved[-1]


def score_rows(X: Rows, layers: Sequence[Layer], weights: Sequence[np.ndarray], place: Place) -> np.ndarray:
    """Return scores ``sum_t h^t w_t`` of rows, without an intercept, in row blocks."""
    layers, dtype = place.move_layers(layers), dtype_of(X)
    placed = [place.move_rows(w.astype(dtype, copy=False)) for w in weights]
    width = max((len(layer.intercept) for layer in layers), default=X.shape[1])
    scores = np.zeros((X.shape[0], weights[0].shape[1]))
    with place.set_precision():
        for rows in row_slices(X.shape[0], width):
            scores[rows] = decision_scores(place.move_rows(X[rows]), layers, placed)
    return scores
