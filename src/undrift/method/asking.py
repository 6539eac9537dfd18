"""Choose rows to label: those that decide between readings, and those that teach and measure."""

from __future__ import annotations

import numpy as np

from .jury import measure_information

N_QUESTIONS = 5  # labels that settle which reading is right
_AMONG = 20  # most telling rows, of which questions are drawn
_QUESTIONED = 1_000  # rows that are compared for that
_FLOOR = 0.5  # part of the draws that takes every row alike; the rest follows the doubt


def choose_questions(
    votes: np.ndarray, p: np.ndarray, doubt: float, n: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw n rows among those whose labels tell most about which reading is right."""
    information = measure_information(votes, p, doubt)
    telling = np.argsort(-information, kind="stable")[: max(_AMONG, n)]
    return random_state.permutation(telling)[:n]


def find_doubts(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the probability that a prediction is wrong, of every row: (n,)."""
    return 1 - np.take_along_axis(p, codes[:, None], axis=1)[:, 0]


def list_chances(doubts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the chance of every row to be drawn next; they sum to 1.

    Half of it is alike for all rows, the rest goes with the standard deviation of a mistake. `counts` says
    how many rows of a file equal a row. A drawn row counts by the inverse of its chance, so that the measured
    error has no bias (Zrnic and Candès, 2024).
    """
    worth = counts * np.sqrt(doubts * (1 - doubts))
    total = worth.sum()
    return _FLOOR * counts / counts.sum() + (1 - _FLOOR) * (worth / total if total else counts / counts.sum())


def weigh_draws(weights: np.ndarray, n_left: int) -> np.ndarray:
    """Return how much rows count that were drawn one after another, in their order, where `n_left` are left.

    `weights` are the chance that any of the rows left had, over that of the drawn one. The fewer rows are
    left, the more alike drawn ones count (Farquhar, Gal and Rainforth, 2021).
    """
    n = len(weights)
    if not n_left:
        return np.ones(n)
    return np.maximum(1 + n_left / (n + n_left - np.arange(1, n + 1)) * (weights - 1), 1e-6)


def draw_rows(
    chances: np.ndarray, n: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows at once, and return the probability that each of them had to be among them.

    It is n times the chance, or 1 where that is more. The draw is systematic, in random order.
    """
    n = min(n, len(chances))
    probability, is_sure = n * chances, np.zeros(len(chances), dtype=bool)
    while (probability[~is_sure] > 1).any():
        is_sure |= probability >= 1
        rest = chances[~is_sure].sum()
        probability = np.where(is_sure, 1.0, chances * (n - is_sure.sum()) / (rest or 1.0))
    order = random_state.permutation(len(chances))
    steps = np.cumsum(probability[order])
    places = np.searchsorted(steps, random_state.uniform() + np.arange(n), side="right")
    rows = order[np.minimum(places, len(order) - 1)]
    return rows, probability[rows]


def choose_for_predictions(
    votes: np.ndarray,
    p: np.ndarray,
    doubts: np.ndarray,
    counts: np.ndarray,
    doubt: float,
    n: int,
    n_questions: int,
    random_state: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose questions, then draw rows; return them, and how many rows each stands for, 0 for questions.

    `p` are the readings' probabilities and `counts` how many rows equal a row.
    """
    among = np.sort(random_state.permutation(len(counts))[:_QUESTIONED])
    questions = among[choose_questions(votes, p[:, among], doubt, n_questions, random_state)]
    left = np.setdiff1d(np.arange(len(counts)), questions)
    chances = list_chances(doubts[left], counts[left])
    drawn, probability = draw_rows(chances, n - len(questions), random_state)
    weights = np.concatenate([np.zeros(len(questions)), counts[left][drawn] / probability])
    return np.concatenate([questions, left[drawn]]), weights


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
