"""Self-training: the most confident target rows join the training set with pseudo-labels.

Assumes that the classes come apart on the target, so that confident predictions are mostly right. It
makes no assumption about how frequent the classes are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from .._core import Array
from .._inputs import check_count, check_positive
from .data import UNLABELLED
from .linear import Dual, confidence, least_squares, mean_auc, predict_codes, signs
from .selection import Problem

# scores of target anchors and a portion of them -> their pseudo-labels, and the rows that are to have them
ChoosePseudoLabels = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]

LEAST_RETAINED = 0.65  # of the source's area under the ROC curve above chance, after the round trip
LABEL_WEIGHT = 1.0  # of a target row with a label during the rounds, against a labelled source row


@dataclass(frozen=True)
class SelfTraining:
    """How far self-training goes; a value of `self_training`.

    Parameters
    ----------
    n_rounds : int, default=5
        Rounds.
    share : float, default=0.9
        Share of target rows with a pseudo-label in the last round; share / n_rounds in the first.
    weight : float, default=0.5
        Weight of a row with a pseudo-label, against one with a label.

    Examples
    --------
    >>> from undrift import SelfTraining, text_classifier
    >>> text_classifier(self_training=SelfTraining(n_rounds=3)).self_training.n_rounds
    3
    """

    n_rounds: int = 5
    share: float = 0.9
    weight: float = 0.5

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
    round_trip: float  # area under the ROC curve on the source, of a classifier trained on the target alone
    changed: float  # share of target rows whose prediction is not what it was at the start
    kept: bool


def choose_most_confident(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
    """Label target rows as predicted; choose the portion of all of them that is most confident."""
    n_chosen = round(portion * len(scores))
    return predict_codes(scores), np.argsort(-confidence(scores), kind="stable")[:n_chosen]


@dataclass(frozen=True)
class Trained:
    """A classifier, and what the target anchors contributed to its training set."""

    dual: Dual  # over all anchors, or over the labelled ones
    rounds: list[Round]  # the first entry is the start
    codes: np.ndarray  # (n_target,) pseudo-labels of the target anchors
    weight: np.ndarray  # (n_target,) theirs, 0 for rows without a pseudo-label


def fit_dual(
    K: Array,
    problem: Problem,
    C: float,
    self_training: SelfTraining | None,
    choose: ChoosePseudoLabels = choose_most_confident,
    target_codes: np.ndarray | None = None,
) -> Trained:
    """Train the classifier of a Gram matrix, labelled rows first, with or without self-training.

    `target_codes` are the known classes of target anchors, `UNLABELLED` for the others. The classifier has
    learnt from them only where self-training took place.
    """
    n, n_target = len(problem.codes), len(K) - len(problem.codes)
    if self_training is not None and n_target:
        return self_train(K, problem, C, self_training, choose, target_codes)
    dual = problem.fit(K[:n, :n], np.arange(n), C)
    return Trained(dual, [], np.zeros(n_target, dtype=int), np.zeros(n_target))


def train_without_labels(
    K: Array,
    problem: Problem,
    C: float,
    self_training: SelfTraining | None,
    choose: ChoosePseudoLabels = choose_most_confident,
    target_codes: np.ndarray | None = None,
) -> Trained:
    """Train as `fit_dual`, then take the known classes of target rows out again, but not what they improved.

    With pseudo-labels that target labels helped to find, but without these labels: `updating` adds them. A
    solver that is not least squares keeps them, since nothing can be added to it.
    """
    trained = fit_dual(K, problem, C, self_training, choose, target_codes)
    if target_codes is None or (target_codes == UNLABELLED).all():
        return trained
    codes, weight = np.concatenate([problem.codes, trained.codes]), problem.weight
    if problem.solver is not least_squares:
        is_known = target_codes != UNLABELLED
        codes[len(weight) :][is_known] = target_codes[is_known]
        weight = np.concatenate([weight, trained.weight + LABEL_WEIGHT * is_known])
    elif trained.weight.any():
        weight = np.concatenate([weight, trained.weight])
    else:
        return trained
    return replace(trained, dual=problem.solver(K, signs(codes, problem.n_classes), C, weight))


def self_train(
    K: Array,
    problem: Problem,
    C: float,
    options: SelfTraining,
    choose: ChoosePseudoLabels = choose_most_confident,
    target_codes: np.ndarray | None = None,
) -> Trained:
    """Train on the labelled rows, then in rounds on them and ever more target rows with pseudo-labels.

    A round is kept if its *round trip* succeeds: see :func:`retained_auc`. If that fails at the start, there
    are no pseudo-labels. Target rows whose class is known have their label in every round, and no
    pseudo-label.
    """
    n, n_target = len(problem.codes), len(K) - len(problem.codes)
    dual = problem.fit(K[:n, :n], np.arange(n), C)
    train_auc = mean_auc(dual.scores(K[:n, :n]), problem.codes)
    target_codes = np.full(n_target, UNLABELLED) if target_codes is None else target_codes
    is_known, no_weight = target_codes != UNLABELLED, np.zeros(n_target)
    padded = Dual(np.pad(dual.coef, ((0, n_target), (0, 0))), dual.intercept)
    if is_known.any():
        codes = np.concatenate([problem.codes, np.where(is_known, target_codes, 0)])
        weight = np.concatenate([problem.weight, LABEL_WEIGHT * is_known])
        dual = problem.solver(K, signs(codes, problem.n_classes), C, weight)
        scores = dual.scores(K[n:])
    else:
        scores = dual.scores(K[n:, :n])
    start = choose(scores, 1.0)[0]
    best = Trained(padded, [], start, no_weight)

    def evaluate(n_labelled: int) -> Round:
        trip = round_trip_auc(K, problem, C, scores)
        is_kept = retained_auc(trip, train_auc) >= LEAST_RETAINED
        return Round(n_labelled, trip, float(np.mean(choose(scores, 1.0)[0] != start)), is_kept)

    rounds = [evaluate(0)]
    for r in range(1, options.n_rounds + 1):
        if not rounds[-1].kept:
            break
        pseudo_labels, chosen = choose(scores, options.share * r / options.n_rounds)
        target_weight = no_weight.copy()  # rows that are not chosen have no weight
        target_weight[chosen] = options.weight
        target_weight[is_known] = 0.0
        codes = np.concatenate([problem.codes, np.where(is_known, target_codes, pseudo_labels)])
        weight = np.concatenate([problem.weight, target_weight + LABEL_WEIGHT * is_known])
        dual = problem.solver(K, signs(codes, problem.n_classes), C, weight)
        scores = dual.scores(K[n:])
        rounds.append(evaluate(len(chosen)))
        if rounds[-1].kept:
            best = Trained(dual, [], pseudo_labels, target_weight)
    return replace(best, rounds=rounds)


def round_trip_auc(K: Array, problem: Problem, C: float, scores: np.ndarray) -> float:
    """Area under the ROC curve on the labelled source of a classifier trained on the target's predictions.

    Target rows are labelled by the sign, or the largest, of their `scores`; all classes count alike, so that
    the classes' shares do not matter. 0.5, chance, if all of them get one label.
    """
    n, pseudo_labels = len(problem.codes), predict_codes(scores)
    if len(np.unique(pseudo_labels)) == 1:
        return 0.5
    Y, weight = signs(pseudo_labels, problem.n_classes), compute_sample_weight("balanced", pseudo_labels)
    return mean_auc(problem.solver(K[n:, n:], Y, C, weight).scores(K[:n, n:]), problem.codes)


def retained_auc(trip_auc: float, train_auc: float) -> float:
    """Share of the source's area under the ROC curve above chance that is left after a round trip."""
    return (trip_auc - 0.5) / (train_auc - 0.5) if train_auc > 0.5 else 0.0
