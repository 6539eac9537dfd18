"""Self-training: the most confident target rows, labelled as predicted, join the training set.

What it assumes: that the classes come apart on the target, so that confident predictions are mostly
right. It makes no assumption about how frequent the classes are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core.array import Array
from ._core.gram import submatrix
from .linear import Dual, confidence, signs, winners
from .selection import Problem


@dataclass(frozen=True)
class SelfTraining:
    """How far self-training goes."""

    n_rounds: int = 5
    share: float = 0.9  # of the target rows, labelled in the last round; the first labels share / n_rounds
    weight: float = 0.5  # of a row labelled as predicted, against one labelled by a person


def checked_self_training(value: Any) -> SelfTraining | None:
    """Return how far self-training goes, from what a user gave; None if he wants none."""
    if not isinstance(value, bool | SelfTraining):
        raise TypeError(f"self_training must be True, False or a SelfTraining, got {value!r}")
    return SelfTraining() if value is True else value or None


@dataclass(frozen=True)
class Round:
    """What one round found; `kept` is False for the round that was undone."""

    n_labelled: int  # target rows labelled as predicted
    round_trip: float  # accuracy on the source of a classifier trained on the target's predictions
    changed: float  # share of target rows whose prediction is not what it was at the start
    kept: bool


def self_trained(K: Array, problem: Problem, C: float, options: SelfTraining) -> tuple[Dual, list[Round]]:
    """Train on the labelled rows, then in rounds on them and ever more of the target rows.

    A round is kept while the *round trip* holds: a classifier trained on nothing but the target's
    predictions must know, of the source's labels, at least half of what the source's own classifier
    knows beyond guessing. If that fails at the start, nothing is self-labelled.

    Returns
    -------
    Dual
        Over all rows of `K`; zero for target rows that were not used.
    list of Round
        The first entry is the start.
    """
    n = len(problem.codes)
    labelled, target = np.arange(n), np.arange(n, len(K))
    dual = problem.fitted(K[:n, :n], labelled, C)
    scores = dual.scores(K[n:, :n])
    knows = float(np.mean(winners(dual.scores(K[:n, :n])) == problem.codes))
    start, best = winners(scores), _over_all(dual, labelled, len(K))
    rounds = [_round(0, K, problem, C, scores, start, knows)]
    for r in range(1, options.n_rounds + 1):
        if not rounds[-1].kept:
            break
        n_chosen = round(options.share * r / options.n_rounds * len(target))
        chosen = target[np.argsort(-confidence(scores), kind="stable")[:n_chosen]]
        rows = np.concatenate([labelled, chosen])
        codes = np.concatenate([problem.codes, winners(scores)[chosen - n]])
        weight = np.concatenate([problem.weight, np.full(n_chosen, options.weight)])
        dual = problem.solver(submatrix(K, rows, rows), signs(codes, problem.n_classes), C, weight)
        scores = dual.scores(K[n:][:, rows])
        rounds.append(_round(n_chosen, K, problem, C, scores, start, knows))
        if rounds[-1].kept:
            best = _over_all(dual, rows, len(K))
    return best, rounds


def _over_all(dual: Dual, rows: np.ndarray, n: int) -> Dual:
    """Return the same classifier with a coefficient for each of n rows."""
    coef = np.zeros((n, dual.coef.shape[1]))
    coef[rows] = dual.coef
    return Dual(coef, dual.intercept)


def _round(
    n_labelled: int,
    K: Array,
    problem: Problem,
    C: float,
    scores: np.ndarray,
    start: np.ndarray,
    knows: float,
) -> Round:
    codes = winners(scores)
    trip = round_trip(K, problem, C, codes)
    guess = float(np.bincount(problem.codes).max() / len(problem.codes))
    kept = trip - guess >= (knows - guess) / 2
    return Round(n_labelled, trip, float(np.mean(codes != start)), bool(kept))


def round_trip(K: Array, problem: Problem, C: float, codes: np.ndarray) -> float:
    """Accuracy on the labelled source of a classifier trained on target rows with the given codes."""
    n = len(problem.codes)
    if len(np.unique(codes)) == 1:
        return float(np.mean(problem.codes == codes[0]))
    dual = problem.solver(K[n:, n:], signs(codes, problem.n_classes), C, np.ones(len(codes)))
    return float(np.mean(winners(dual.scores(K[:n, n:])) == problem.codes))
