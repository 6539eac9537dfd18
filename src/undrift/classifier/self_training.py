"""Self-training: the most confident target rows, labelled as predicted, join the training set.

What it assumes: that the classes come apart on the target, so that confident predictions are mostly
right. It makes no assumption about how frequent the classes are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core import Array
from .._inputs import check_count, check_positive
from .linear import Dual, confidence, signs, winners
from .selection import Problem

LEAST_RETAINED = 0.5  # of what is known of the source's labels, after the round trip


@dataclass(frozen=True)
class SelfTraining:
    """How far self-training goes."""

    n_rounds: int = 5
    share: float = 0.9  # of the target rows, labelled in the last round; the first labels share / n_rounds
    weight: float = 0.5  # of a row labelled as predicted, against one labelled by a person

    def __post_init__(self) -> None:
        check_count(self.n_rounds, "n_rounds of SelfTraining")
        if check_positive(self.share, "share of SelfTraining") > 1:
            raise ValueError(f"share of SelfTraining={self.share!r} must be at most 1: all target rows")
        check_positive(self.weight, "weight of SelfTraining")


def checked_self_training(value: object) -> SelfTraining | None:
    """Return how far self-training is to go, or None for not at all."""
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
    n, n_target = len(problem.codes), len(K) - len(problem.codes)
    dual = problem.fitted(K[:n, :n], np.arange(n), C)
    scores = dual.scores(K[n:, :n])
    knows = problem.accuracy(dual.scores(K[:n, :n]))
    start, best = winners(scores), Dual(np.pad(dual.coef, ((0, n_target), (0, 0))), dual.intercept)
    rounds = [_round(0, K, problem, C, scores, start, knows)]
    for r in range(1, options.n_rounds + 1):
        if not rounds[-1].kept:
            break
        n_chosen = round(options.share * r / options.n_rounds * n_target)
        chosen = np.argsort(-confidence(scores), kind="stable")[:n_chosen]
        own = np.zeros(n_target)  # rows that are not chosen have no weight
        own[chosen] = options.weight
        codes = np.concatenate([problem.codes, winners(scores)])
        weight = np.concatenate([problem.weight, own])
        dual = problem.solver(K, signs(codes, problem.n_classes), C, weight)
        scores = dual.scores(K[n:])
        rounds.append(_round(n_chosen, K, problem, C, scores, start, knows))
        if rounds[-1].kept:
            best = dual
    return best, rounds


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
    kept = trip - problem.guess >= LEAST_RETAINED * (knows - problem.guess)
    return Round(n_labelled, trip, float(np.mean(codes != start)), bool(kept))


def round_trip(K: Array, problem: Problem, C: float, codes: np.ndarray) -> float:
    """Accuracy on the labelled source of a classifier trained on target rows with the given codes."""
    n = len(problem.codes)
    if len(np.unique(codes)) == 1:
        return float(np.mean(problem.codes == codes[0]))
    dual = problem.solver(K[n:, n:], signs(codes, problem.n_classes), C, np.ones(len(codes)))
    return problem.accuracy(dual.scores(K[:n, n:]))
