"""Self-training: the most confident target rows join the training set with pseudo-labels.

Assumes that the classes come apart on the target, so that confident predictions are mostly right. It
makes no assumption about how frequent the classes are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core import Array
from .._inputs import check_count, check_positive
from .linear import Dual, confidence, predict_codes, signs
from .selection import Problem

LEAST_RETAINED = 0.5  # of the source's accuracy above chance, after the round trip


@dataclass(frozen=True)
class SelfTraining:
    """How far self-training goes."""

    n_rounds: int = 5
    share: float = 0.9  # of target rows with a pseudo-label in the last round; share / n_rounds in the first
    weight: float = 0.5  # of a row with a pseudo-label, against one with a label

    def __post_init__(self) -> None:
        check_count(self.n_rounds, "n_rounds of SelfTraining")
        if check_positive(self.share, "share of SelfTraining") > 1:
            raise ValueError(f"share of SelfTraining={self.share!r} must be at most 1, all target rows")
        check_positive(self.weight, "weight of SelfTraining")


def check_self_training(value: object) -> SelfTraining | None:
    """Return the settings of self-training, or None if there is none."""
    if not isinstance(value, bool | SelfTraining):
        raise TypeError(f"self_training must be True, False or a SelfTraining, got {value!r}")
    return SelfTraining() if value is True else value or None


@dataclass(frozen=True)
class Round:
    """Outcome of one round; `kept` is False for the round that was undone."""

    n_labelled: int  # target rows with a pseudo-label
    round_trip: float  # accuracy on the source of a classifier trained on the target's predictions
    changed: float  # share of target rows whose prediction is not what it was at the start
    kept: bool


def fit_dual(
    K: Array, problem: Problem, C: float, self_training: SelfTraining | None
) -> tuple[Dual, list[Round]]:
    """Train the classifier of a Gram matrix, labelled rows first, with or without self-training."""
    n = len(problem.codes)
    if self_training is not None and len(K) > n:
        return self_train(K, problem, C, self_training)
    return problem.fit(K[:n, :n], np.arange(n), C), []


def self_train(K: Array, problem: Problem, C: float, options: SelfTraining) -> tuple[Dual, list[Round]]:
    """Train on the labelled rows, then in rounds on them and ever more target rows with pseudo-labels.

    A round is kept if its *round trip* succeeds: a classifier trained on nothing but the target's
    predictions must recover at least half of the source's accuracy above chance. If that fails at the
    start, there are no pseudo-labels.

    Returns
    -------
    Dual
        Over all rows of `K`; zero for target rows that were not used.
    list of Round
        The first entry is the start.
    """
    n, n_target = len(problem.codes), len(K) - len(problem.codes)
    dual = problem.fit(K[:n, :n], np.arange(n), C)
    scores = dual.scores(K[n:, :n])
    train_accuracy = problem.accuracy(dual.scores(K[:n, :n]))
    start = predict_codes(scores)
    best = Dual(np.pad(dual.coef, ((0, n_target), (0, 0))), dual.intercept)
    rounds = [_evaluate_round(0, K, problem, C, scores, start, train_accuracy)]
    for r in range(1, options.n_rounds + 1):
        if not rounds[-1].kept:
            break
        n_chosen = round(options.share * r / options.n_rounds * n_target)
        chosen = np.argsort(-confidence(scores), kind="stable")[:n_chosen]
        target_weight = np.zeros(n_target)  # rows that are not chosen have no weight
        target_weight[chosen] = options.weight
        codes = np.concatenate([problem.codes, predict_codes(scores)])
        weight = np.concatenate([problem.weight, target_weight])
        dual = problem.solver(K, signs(codes, problem.n_classes), C, weight)
        scores = dual.scores(K[n:])
        rounds.append(_evaluate_round(n_chosen, K, problem, C, scores, start, train_accuracy))
        if rounds[-1].kept:
            best = dual
    return best, rounds


def _evaluate_round(
    n_labelled: int,
    K: Array,
    problem: Problem,
    C: float,
    scores: np.ndarray,
    start: np.ndarray,
    train_accuracy: float,
) -> Round:
    codes = predict_codes(scores)
    accuracy = round_trip_accuracy(K, problem, C, codes)
    chance = problem.majority_accuracy
    is_kept = accuracy - chance >= LEAST_RETAINED * (train_accuracy - chance)
    return Round(n_labelled, accuracy, float(np.mean(codes != start)), bool(is_kept))


def round_trip_accuracy(K: Array, problem: Problem, C: float, pseudo_labels: np.ndarray) -> float:
    """Accuracy on the labelled source of a classifier trained on target rows with pseudo-labels."""
    n = len(problem.codes)
    if len(np.unique(pseudo_labels)) == 1:
        return float(np.mean(problem.codes == pseudo_labels[0]))
    Y, weight = signs(pseudo_labels, problem.n_classes), np.ones(len(pseudo_labels))
    dual = problem.solver(K[n:, n:], Y, C, weight)
    return problem.accuracy(dual.scores(K[:n, n:]))


def retained_accuracy(accuracy: float, train_accuracy: float, problem: Problem) -> float:
    """Share of the training accuracy above chance that is left after a round trip."""
    chance = problem.majority_accuracy
    return (accuracy - chance) / (train_accuracy - chance) if train_accuracy > chance else 0.0
