"""Choose the rows that are most worth labelling: for better predictions, or for an estimate of the error."""

from __future__ import annotations

import numpy as np

PURPOSES = ("predictions", "estimate")
COMPARED = 1000  # rows among which those for predictions are chosen, drawn at random where there are more


def choose_for_predictions(covariance: np.ndarray, p: np.ndarray, noise: float, n: int) -> np.ndarray:
    """Choose n rows, one after another, whose labels would change predictions most.

    A label of row x changes the score of row z by ``S(z, x) (y - f(x)) / (S(x, x) + noise)``, where S is the
    posterior covariance; the variance of ``y - f(x)`` is ``S(x, x) + noise``. The worth of a label is the
    square of that change, as expected, summed over all rows z, each weighted by how undecided it is:
    ``sum_z undecided_z S(z, x)^2 / (S(x, x) + noise)``. Once a row is chosen its label counts as known: S
    shrinks around it, and the next one is chosen elsewhere.

    Parameters
    ----------
    covariance : array of shape (m, m)
    p : array of shape (m, n_classes)
        Probabilities of the classes.
    noise : float
        Variance of the noise of a label.
    """
    S, chosen = covariance.copy(), []
    undecided = 1 - (p**2).sum(axis=1)
    is_free = np.ones(len(p), dtype=bool)
    for _ in range(min(n, len(p))):
        variance = np.maximum(np.diagonal(S), 0) + noise
        worth = undecided @ S**2 / variance
        x = int(np.argmax(np.where(is_free, worth, -np.inf)))
        chosen.append(x)
        is_free[x] = False
        S -= np.outer(S[:, x], S[x]) / variance[x]
    return np.array(chosen, dtype=int)


def choose_for_estimate(
    is_changed: np.ndarray | None, counts: np.ndarray, n: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows at random, half of them among the rows whose prediction changed, and return their weights.

    A weight is how many rows of the same kind a drawn one stands for, where `counts` says how many equal it.
    Without `is_changed` all rows are of one kind.
    """
    n_rows = len(counts)
    strata = [np.arange(n_rows)]
    if is_changed is not None and 0 < is_changed.sum() < n_rows and n > 1:
        strata = [np.flatnonzero(is_changed), np.flatnonzero(~is_changed)]
    n_drawn = [min(n, n_rows)]
    if len(strata) == 2:
        n_changed = min(max(n // 2, n - len(strata[1])), len(strata[0]))
        n_drawn = [n_changed, min(n - n_changed, len(strata[1]))]
    drawn = [random_state.choice(rows, k, replace=False) for rows, k in zip(strata, n_drawn, strict=True)]
    pairs = zip(strata, drawn, strict=True)
    weights = [counts[rows].sum() / max(counts[some].sum(), 1) * counts[some] for rows, some in pairs]
    order = random_state.permutation(sum(n_drawn))
    return np.concatenate(drawn)[order], np.concatenate(weights)[order]
