"""Pivot features of structural correspondence learning: which ones, and how the others predict them."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
N_AT_ONCE = 128  # predictors solved together: their margins (n_rows, 128) stay in cache


def document_frequency(B: Any) -> NDArray[np.int64]:
    """In how many rows each column of the 0/1 matrix `B` is present."""
    return np.asarray(B.sum(axis=0), dtype=np.float64).ravel().round().astype(np.int64)


def mutual_information(B: Any, positive: NDArray[np.bool_]) -> Floats:
    """Bits that the presence of each column tells about a yes-or-no label, with one added to every count.

    The added count keeps the logarithm finite in empty cells of the 2 × 2 table.
    """
    n_present, n_both = document_frequency(B), document_frequency(B[positive])
    n_positive, n_rows = int(positive.sum()), len(positive)
    table = np.array(
        [[n_both, n_present - n_both], [n_positive - n_both, n_rows - n_positive - n_present + n_both]],
        dtype=float,
    )
    joint = (table + 1) / (n_rows + 4)  # (presence, label, column)
    independent = joint.sum(axis=0, keepdims=True) * joint.sum(axis=1, keepdims=True)
    information: Floats = (joint * np.log2(joint / independent)).sum(axis=(0, 1))
    return information


def ranked_by_information(B: Any, labels: NDArray[Any], candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Candidates by falling mutual information; beyond two classes one-against-rest rankings take turns."""
    classes = np.unique(labels)
    singled_out = classes[1:] if len(classes) == 2 else classes
    rankings = [
        candidates[np.argsort(-mutual_information(B, labels == c)[candidates], kind="stable")]
        for c in singled_out
    ]
    in_turn = chain.from_iterable(zip_longest(*rankings))
    return np.array(list(dict.fromkeys(in_turn)), dtype=np.intp)


def ridge_predictors(B: Any, pivots: NDArray[np.intp], ridge: float) -> Floats:
    """Least-squares predictors of every pivot's ±1 presence from all columns but its own.

    Minimises ``mean((y - w'x - b)²) + ridge |w|²`` for each pivot. With C the centred scatter and
    ``K = (C + n ridge I)^-1``, the regression of column l on the others is ``-K[:, l] / K[l, l]``, so one
    factorisation serves all pivots although each is masked in its own problem.
    """
    n_rows, n_features = B.shape
    mean = np.asarray(B.mean(axis=0), dtype=np.float64).ravel()
    gram = B.T @ B
    system = np.array(gram.toarray() if hasattr(gram, "toarray") else gram, dtype=np.float64)
    system -= n_rows * np.outer(mean, mean)
    system[np.diag_indices(n_features)] += n_rows * ridge
    units = np.zeros((n_features, len(pivots)))
    own = (pivots, np.arange(len(pivots)))
    units[own] = 1.0
    K = scipy.linalg.solve(system, units, assume_a="pos", overwrite_a=True)
    weights: Floats = -2.0 * K / K[own]  # ±1 is twice as far apart as 0/1
    weights[own] = 0.0
    return weights


def huber_predictors(
    B: Any, pivots: NDArray[np.intp], ridge: float, tol: float = 1e-2, max_iter: int = 100
) -> Floats:
    """Modified-Huber predictors of every pivot's ±1 presence from all columns but its own.

    Minimises ``mean(loss(y (w'x + b))) + ridge |w|²``, where the loss is 0 from 1 on, ``(1 - z)²`` down to
    -1 and ``-4 z`` below, until the gradient has shrunk by `tol` (or `max_iter` steps).
    """
    batches = [pivots[i : i + N_AT_ONCE] for i in range(0, len(pivots), N_AT_ONCE)]
    return np.hstack([_huber_batch(B, batch, ridge, tol, max_iter) for batch in batches])


def _huber_batch(B: Any, pivots: NDArray[np.intp], ridge: float, tol: float, max_iter: int) -> Floats:
    """Preconditioned nonlinear conjugate gradients, one independent problem per column."""
    present = B[:, pivots]
    y = 2 * (present.toarray() if hasattr(present, "toarray") else present) - 1  # (n, m)
    n_rows, own = len(y), (pivots, np.arange(len(pivots)))
    curvature = 2 * (np.append(document_frequency(B) / n_rows, 1.0) + ridge)[:, None].astype(y.dtype)
    penalty = np.append(np.full(B.shape[1], 2 * ridge), 0.0)[:, None].astype(y.dtype)
    # weights, gradient and direction are (d + 1, m): the last row is the intercept, never penalised
    weights = np.zeros((B.shape[1] + 1, len(pivots)), dtype=y.dtype)
    z, direction, previous, first = np.zeros_like(y), np.zeros_like(weights), weights, None
    for _ in range(max_iter):
        pull = -2 * y * np.clip(1 - z, 0, 2) / n_rows
        gradient = np.vstack([B.T @ pull, pull.sum(axis=0)]) + penalty * weights
        gradient[own] = 0.0  # a pivot never predicts itself
        size = np.sum(gradient**2 / curvature, axis=0)
        first = size if first is None else first
        if np.all(size <= tol**2 * first):
            break
        direction = _conjugate(gradient, previous, direction, curvature)
        along = y * (B @ direction[:-1] + direction[-1])
        step = _minimum_along(
            z, along, np.sum(penalty * weights * direction, axis=0), np.sum(penalty * direction**2, axis=0)
        )
        weights, z, previous = weights + step * direction, z + step * along, gradient
    return weights[:-1]


def _conjugate(gradient: Floats, previous: Floats, direction: Floats, curvature: Floats) -> Floats:
    """Polak-Ribière direction of each column, steepest descent where that would not descend."""
    before = np.sum(previous**2 / curvature, axis=0)
    rise = np.sum(gradient * (gradient - previous) / curvature, axis=0)
    beta = np.maximum(0, np.divide(rise, before, out=np.zeros_like(rise), where=before > 0))
    steepest = -gradient / curvature
    conjugate = steepest + beta * direction
    return np.where(np.sum(conjugate * gradient, axis=0) < 0, conjugate, steepest)


def _minimum_along(z: Floats, along: Floats, slope: Floats, bend: Floats, n_steps: int = 5) -> Floats:
    """Where each column's convex objective is least along its line: Newton steps kept inside a bracket.

    The slope at t is piecewise linear and rising: ``mean(along · loss'(z + t along)) + slope + t bend``.
    """
    n_rows = len(z)
    t, low, high = np.zeros_like(slope), np.zeros_like(slope), np.full_like(slope, np.inf)
    for _ in range(n_steps):
        shortfall = 1 - z - t * along
        curved = np.sum(along**2 * ((shortfall > 0) & (shortfall < 2)), axis=0)
        rising = -2 * np.sum(along * np.clip(shortfall, 0, 2), axis=0) / n_rows + slope + t * bend
        low, high = np.where(rising < 0, t, low), np.where(rising < 0, high, t)
        steepness = 2 * curved / n_rows + bend
        newton = t - np.divide(rising, steepness, out=np.zeros_like(t), where=steepness > 0)
        halfway = np.where(np.isinf(high), 2 * low + 1, (low + high) / 2)
        t = np.where((newton >= low) & (newton <= high), newton, halfway)
    return t
