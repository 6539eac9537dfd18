"""Linear classifiers on a Gram matrix: dual coefficients and intercepts from inner products alone.

Both penalise ``|w|^2 / 2`` and weigh the losses with C, on a Gram matrix whose diagonal has mean 1:
C = 1 is then the authors' rule ``1 / mean |x|^2``, and the same C means the same on any data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from .._core import Array, NotPositiveDefinite, array_ops, held_out_predictions, submatrix


@dataclass(frozen=True)
class Dual:
    """A classifier as a combination of training rows: ``score(x) = sum_i coef_i <x_i, x> + intercept``."""

    coef: np.ndarray  # (n, n_outputs)
    intercept: np.ndarray  # (n_outputs,)

    def scores(self, K: Array) -> np.ndarray:
        """Scores of rows whose inner products with the training rows are the rows of `K`."""
        ops = array_ops(K)
        return ops.to_numpy(K @ ops.like(self.coef, K)) + self.intercept


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
    """Area under the ROC curve of every class against the rest, on the mean over the classes."""
    if scores.shape[1] == 1:
        return float(roc_auc_score(codes == 1, scores[:, 0]))
    return float(np.mean([roc_auc_score(codes == code, scores[:, code]) for code in np.unique(codes)]))


def least_squares(K: Array, Y: np.ndarray, C: float, weight: np.ndarray) -> Dual:
    """Least-squares SVM in closed form: minimise ``|w|^2 / 2 + C / 2 sum_i weight_i (y_i - f(x_i))^2``.

    With ``M = K + diag(1 / (C weight))`` the intercept, which is not penalised, is
    ``1'M^-1 y / 1'M^-1 1`` and the dual coefficients ``M^-1 (y - intercept)``: one Cholesky
    factorisation for any number of outputs. Rows of weight 0 are left out, as if they were not there.
    """
    return _solve_least_squares(K, Y, [C], weight)[0]


def _solve_least_squares(K: Array, Y: np.ndarray, Cs: Sequence[float], weight: np.ndarray) -> list[Dual]:
    """Solve :func:`least_squares` for each C: Gram matrices that differ by their diagonals."""
    counted = _find_weighted_rows(weight)
    rows = None if len(counted) == len(weight) else counted
    shifts = [1 / (C * weight[counted]) for C in Cs]
    outputs = np.column_stack([np.ones(len(counted)), Y[counted]])
    duals = []
    try:
        solutions = array_ops(K).shifted_solves(K, shifts, outputs, rows)
    except NotPositiveDefinite:
        raise too_large_error(max(Cs)) from None
    for both in solutions:
        ones, solved = both[:, :1], both[:, 1:]
        intercept, coef = solved.sum(axis=0) / ones.sum(), np.zeros(Y.shape)
        coef[counted] = solved - ones * intercept
        duals.append(Dual(coef, intercept))
    return duals


def held_out_least_squares(
    K: np.ndarray, Y: np.ndarray, C: float, weight: np.ndarray, parts: Sequence[np.ndarray]
) -> np.ndarray:
    """Scores of every row by a classifier of :func:`least_squares` that has not seen the part it is in.

    In closed form. No weight may be 0.
    """
    try:
        return held_out_predictions(K, Y, 1 / (C * weight), parts)
    except NotPositiveDefinite:
        raise too_large_error(C) from None


def too_large_error(C: float) -> ValueError:
    """Return the error of a C for which rounding leaves no solution."""
    return ValueError(f"C={C:g} is too large for inner products of this size; lower C")


def _find_weighted_rows(weight: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows whose weight is not 0."""
    counted = np.flatnonzero(weight)
    if len(counted) == 0:
        raise ValueError(
            "the weights of all labelled rows are zero; give a class in class_weight, or a row in "
            "sample_weight, a weight above 0"
        )
    return counted


def hinge(K: Array, Y: np.ndarray, C: float, weight: np.ndarray) -> Dual:
    """Linear SVM with the hinge loss (the paper's), by scikit-learn's `SVC` on the Gram matrix."""
    coef, intercept = np.zeros(Y.shape), np.zeros(Y.shape[1])
    counted = _find_weighted_rows(weight)
    if len(counted) < len(weight):
        K = submatrix(K, counted, counted)
    K = array_ops(K).to_numpy(K)
    for j, y in enumerate(Y[counted].T):
        if np.ptp(y) == 0:  # no row here is of this class, or all are
            intercept[j] = y[0]
            continue
        svm = SVC(kernel="precomputed", C=C).fit(K, y, sample_weight=weight[counted])
        coef[counted[svm.support_], j] = svm.dual_coef_[0]
        intercept[j] = svm.intercept_[0]
    return Dual(coef, intercept)


Solver = Callable[[Array, np.ndarray, float, np.ndarray], Dual]
SOLVERS: dict[str, Solver] = {"least-squares": least_squares, "hinge": hinge}


def solve_path(
    solver: Solver, K: Array, Y: np.ndarray, Cs: Sequence[float], weight: np.ndarray
) -> list[Dual]:
    """Solve for each C on the same rows, with what they share done once."""
    if solver is least_squares:
        return _solve_least_squares(K, Y, Cs, weight)
    return [solver(K, Y, C, weight) for C in Cs]
