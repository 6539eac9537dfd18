"""Self-training: the most confident target rows join the training set with pseudo-labels.

Assumes that the classes come apart on the target, so that confident predictions are mostly right. It
makes no assumption about how frequent the classes are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from .._core import Array
from .._inputs import check_count, check_positive
from .data import UNLABELLED
from .linear import Dual, confidence, least_squares, mean_auc, predict_codes, signs
from .selection import Problem

# scores of target anchors and a portion of them -> their pseudo-labels, and the rows that are to have them
ChoosePseudoLabels = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]
# labels and weights of target anchors -> a model that was trained with them, and its scores of these anchors
Retrain = Callable[[np.ndarray, np.ndarray], tuple[Any, np.ndarray]]

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
    """A model, and what the target anchors contributed to its training set."""

    model: Any  # a `Dual` over all anchors or the labelled ones, or what `Retrain` returns; None: the start's
    scores: np.ndarray  # (n_target, n_outputs) of the target anchors, by this model
    codes: np.ndarray  # (n_target,) pseudo-labels of the target anchors
    weight: np.ndarray  # (n_target,) theirs, 0 for rows without a pseudo-label
    rounds: list[Round]  # the first entry is the start

    @property
    def has_pseudo_labels(self) -> bool:
        """Whether a round with pseudo-labels was kept."""
        return any(r.kept and r.n_labelled for r in self.rounds)


def fit_dual(
    K: Array,
    problem: Problem,
    C: float,
    self_training: SelfTraining | None,
    choose: ChoosePseudoLabels = choose_most_confident,
    target_codes: np.ndarray | None = None,
    start: Dual | None = None,
) -> Trained:
    """Train the classifier of a Gram matrix, labelled rows first, with or without self-training.

    `target_codes` are the known classes of target anchors, `UNLABELLED` for the others. They help to find
    pseudo-labels, and are then taken out again: `updating` adds them. A solver that is not least squares
    keeps them, since nothing can be added to it. `start` is the classifier of the labelled rows, if it is
    known.
    """
    n, n_target = len(problem.codes), len(K) - len(problem.codes)
    if self_training is not None and n_target:
        trained = self_train(K, problem, C, self_training, choose, target_codes, start)
    else:
        dual = problem.fit(K[:n, :n], np.arange(n), C) if start is None else start
        scores, codes = dual.scores(K[n:, :n]), np.zeros(n_target, dtype=int)
        trained = Trained(dual, scores, codes, np.zeros(n_target), [])
    if target_codes is None or (target_codes == UNLABELLED).all():
        return trained
    codes, weight = np.concatenate([problem.codes, trained.codes]), problem.weight
    if problem.solver is not least_squares:
        is_known = target_codes != UNLABELLED
        codes[n:][is_known] = target_codes[is_known]
        weight = np.concatenate([weight, trained.weight + LABEL_WEIGHT * is_known])
    elif trained.weight.any():
        weight = np.concatenate([weight, trained.weight])
    else:
        return trained
    dual = problem.solver(K, signs(codes, problem.n_classes), C, weight)
    return replace(trained, model=dual, scores=dual.scores(K[n:]))


def train_in_rounds(
    start: Trained,
    options: SelfTraining,
    choose: ChoosePseudoLabels,
    retrain: Retrain,
    evaluate: Callable[[np.ndarray, int], Round],
) -> Trained:
    """Train in rounds on ever more target rows with pseudo-labels, until a round does not succeed.

    `evaluate` takes the scores of a round and the number of pseudo-labels that it was trained with.
    """
    kept, scores, rounds = start, start.scores, [evaluate(start.scores, 0)]
    for r in range(1, options.n_rounds + 1):
        if not rounds[-1].kept:
            break
        pseudo_labels, chosen = choose(scores, options.share * r / options.n_rounds)
        weight = np.zeros(len(scores))  # rows that are not chosen have no weight
        weight[chosen] = options.weight
        model, scores = retrain(pseudo_labels, weight)
        rounds.append(evaluate(scores, len(chosen)))
        if rounds[-1].kept:
            kept = Trained(model, scores, pseudo_labels, weight, [])
    return replace(kept, rounds=rounds)


def train_classes_in_rounds(
    K: Array,
    problem: Problem,
    C: float,
    labelled_scores: np.ndarray,
    scores: np.ndarray,
    options: SelfTraining | None,
    choose: ChoosePseudoLabels,
    retrain: Retrain,
    target_codes: np.ndarray,
) -> Trained:
    """Train in rounds, each of which is kept if its *round trip* succeeds: see :func:`retained_auc`.

    If that fails at the start, there are no pseudo-labels. Target rows whose class is known have their label
    in every round, and without self-training too, and no pseudo-label.

    Parameters
    ----------
    labelled_scores, scores : arrays of shape (n, n_outputs) and (n_target, n_outputs)
        Of the labelled and the target rows of `K`, by a classifier of the labelled rows alone.
    """
    is_known, model = target_codes != UNLABELLED, None
    train_auc = mean_auc(labelled_scores, problem.codes)

    def retrain_with_labels(codes: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray]:
        return retrain(np.where(is_known, target_codes, codes), np.where(is_known, LABEL_WEIGHT, weight))

    def evaluate(scores: np.ndarray, n_labelled: int) -> Round:
        trip = round_trip_auc(K, problem, C, scores)
        is_kept = retained_auc(trip, train_auc) >= LEAST_RETAINED
        return Round(n_labelled, trip, float(np.mean(choose(scores, 1.0)[0] != first)), is_kept)

    no_weight = np.zeros(len(scores))
    if is_known.any():
        model, scores = retrain_with_labels(np.zeros(len(scores), dtype=int), no_weight)
    first = choose(scores, 1.0)[0]
    start = Trained(model, scores, first, no_weight, [])
    if options is None:
        return start
    trained = train_in_rounds(start, options, choose, retrain_with_labels, evaluate)
    return replace(trained, weight=np.where(is_known, 0.0, trained.weight))


def self_train(
    K: Array,
    problem: Problem,
    C: float,
    options: SelfTraining,
    choose: ChoosePseudoLabels = choose_most_confident,
    target_codes: np.ndarray | None = None,
    start: Dual | None = None,
) -> Trained:
    """Train on the labelled rows, then in rounds on them and ever more target rows with pseudo-labels.

    `start` is the classifier of the labelled rows, if it is known.
    """
    n, n_target = len(problem.codes), len(K) - len(problem.codes)
    start = problem.fit(K[:n, :n], np.arange(n), C) if start is None else start
    target_codes = np.full(n_target, UNLABELLED) if target_codes is None else target_codes

    def retrain(codes: np.ndarray, weight: np.ndarray) -> tuple[Dual, np.ndarray]:
        Y = signs(np.concatenate([problem.codes, codes]), problem.n_classes)
        dual = problem.solver(K, Y, C, np.concatenate([problem.weight, weight]))
        return dual, dual.scores(K[n:])

    scores = start.scores(K[:n, :n]), start.scores(K[n:, :n])
    trained = train_classes_in_rounds(K, problem, C, *scores, options, choose, retrain, target_codes)
    if trained.has_pseudo_labels:
        return trained
    padded = Dual(np.pad(start.coef, ((0, n_target), (0, 0))), start.intercept)
    return replace(trained, model=padded, scores=scores[1])


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
