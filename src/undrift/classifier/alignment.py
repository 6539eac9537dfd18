"""Align classes instead of means: move the rows of a target until its classes meet where the source's do.

A source is centred on the mean of its class means, a target on its mean. The mean of a target depends on its
class shares, so that the point midway between its classes is then off the source's decision boundary.
`shares` estimates that point; this module moves all rows of the target along the differences of the source's
class means until it lies on the boundary.
A move adds one combination of labelled rows to every row of the target, so that inner products change by an
update of low rank, and the classifier's weights by a change of dual coefficients.
"""

from __future__ import annotations

import numpy as np

from .._core import Array, Rows, array_ops, row_slices
from .linear import Dual


def class_directions(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Combine labelled rows into the mean of each class less the mean of all class means: (n, n_classes)."""
    is_class = (codes[:, None] == np.arange(n_classes)).astype(float)
    means = is_class / np.maximum(is_class.sum(axis=0), 1)
    return means - means.mean(axis=1, keepdims=True)


def class_midpoints(
    rows: Rows, codes: np.ndarray, n_classes: int, domain: np.ndarray
) -> dict[int, np.ndarray]:
    """Return the mean of the class means of every domain that has labelled rows of all classes.

    Parameters
    ----------
    rows : rows of shape (n or more, d)
        The first n are the labelled ones.
    domain : int array of shape (n,)
        Domain of each labelled row.
    """
    ops = array_ops(rows)
    return {
        k: ops.to_numpy(rows[: len(codes)].T @ ops.like(average, rows)).astype(float)
        for k, average in combine_midpoints(codes, n_classes, domain).items()
    }


def combine_midpoints(codes: np.ndarray, n_classes: int, domain: np.ndarray) -> dict[int, np.ndarray]:
    """Combine labelled rows into the mean of the class means of every domain that has all classes: (n,)."""
    combinations = {}
    for k in np.unique(domain).tolist():
        is_class = (codes[:, None] == np.arange(n_classes)) & (domain == k)[:, None]
        counts = is_class.sum(axis=0)
        if counts.all():
            combinations[k] = (is_class / (counts * n_classes)).sum(axis=1)
    return combinations


def choose_move(scores: np.ndarray, codes: np.ndarray, n_classes: int, change: np.ndarray) -> np.ndarray:
    """Return the combination of labelled rows, of shape (n,), that changes scores by `change` when added.

    The shortest one along the class directions.

    Parameters
    ----------
    scores : array of shape (n, n_outputs)
        Of the labelled rows.
    change : array of shape (n_outputs,)
    """
    directions = class_directions(codes, n_classes)
    slopes = scores.T @ directions  # (n_outputs, n_classes); directions sum to 0, so intercepts do not count
    return directions @ np.linalg.lstsq(slopes, change, rcond=1e-6)[0]


def move_rows(K: Array, moves: np.ndarray, domain: np.ndarray) -> None:
    """Update inner products in place after combinations of labelled rows were added to the rows of domains.

    Parameters
    ----------
    K : array of shape (n_anchors, n_anchors)
        The labelled rows come first.
    moves : array of shape (n, n_domains)
        For each domain, the combination of the n labelled rows that is added to its rows.
    domain : int array of shape (n_anchors,)
        Domain of each anchor.
    """
    ops, n = array_ops(K), len(moves)
    U = ops.like(moves, K)
    with_moves = K[:, :n] @ U  # (n_anchors, n_domains)
    among_moves = U.T @ with_moves[:n]
    for rows in row_slices(len(K), len(K)):
        K[rows] += with_moves[rows][:, domain] + with_moves[:, domain[rows]].T
        K[rows] += among_moves[domain[rows]][:, domain]


def undo_moves(dual: Dual, moves: np.ndarray, domain: np.ndarray) -> Dual:
    """Return the same classifier as a combination of the anchors before they were moved."""
    coef = dual.coef.copy()
    for d, move in enumerate(moves.T):
        coef[: len(moves)] += np.outer(move, dual.coef[domain == d].sum(axis=0))
    return Dual(coef, dual.intercept)
