"""Choose rows to label: those that decide between readings, that change predictions, or that measure."""

from __future__ import annotations

import numpy as np

from ..core import Rows
from ..inputs import as_array
from .jury import measure_information

N_QUESTIONS = 5  # labels that settle which reading is right
_AMONG = 20  # most telling rows, of which questions are drawn
_STRENGTH = 2.0  # precision of a label, against a label of the source


def choose_questions(
    votes: np.ndarray, p: np.ndarray, doubt: float, n: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw n rows among those whose labels tell most about which reading is right."""
    information = measure_information(votes, p, doubt)
    telling = np.argsort(-information, kind="stable")[: max(_AMONG, n)]
    return random_state.permutation(telling)[:n]


def choose_for_predictions(X: Rows, p: np.ndarray, n: int, chosen: np.ndarray) -> np.ndarray:
    """Choose n rows, one after another, beside those already `chosen`: their labels would change most.

    The worth of a label of row x is the square of the change of scores that is expected of it, summed over
    all rows z by how undecided they are: ``sum_z undecided_z S(z, x)^2 / (S(x, x) + noise)``, where S are the
    inner products. Once a row is chosen its label counts as known, and S shrinks around it.
    """
    S = as_array(X @ X.T).astype(np.float64)
    S /= S.diagonal().mean() or 1.0
    undecided, is_free, rows = 1 - (p**2).sum(axis=1), np.ones(len(p), dtype=bool), list[int]()

    def learn(x: int) -> None:
        nonlocal S
        is_free[x] = False
        S = S - np.outer(S[:, x], S[x]) / (max(S[x, x], 0.0) + 1 / _STRENGTH)

    for x in chosen.tolist():
        learn(x)
    while len(rows) < n and is_free.any():
        worth = undecided @ S**2 / (np.maximum(S.diagonal(), 0) + 1 / _STRENGTH)
        rows.append(int(np.argmax(np.where(is_free, worth, -np.inf))))
        learn(rows[-1])
    return np.array(rows, dtype=int)


def choose_for_estimate(
    is_changed: np.ndarray | None, counts: np.ndarray, n: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows at random, half of them among changed predictions, and return their weights.

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
