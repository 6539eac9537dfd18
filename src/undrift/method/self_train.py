"""Self-training: the most confident target rows join the training set with pseudo-labels.

Assumes that the classes come apart on the target, so that confident predictions are mostly right. It
makes no assumption about how frequent the classes are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from ..core import Array
from .align import Alignment
from .calibrate import HeldOut, class_probabilities, find_border
from .constants import LABEL_WEIGHT, LEAST_RETAINED, N_ROUNDS, PSEUDO_SHARE, PSEUDO_WEIGHT
from .domains import UNLABELLED
from .solve import Labels, confidence, least_squares, mean_auc, predict_codes, signs

if TYPE_CHECKING:
    from .choose import Base
    from .teacher import Lessons
    from .train import Trainer

# scores of target anchors and a portion of them -> their pseudo-labels, and the rows that are to have them
ChoosePseudoLabels = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Plan:
    """Rounds of pseudo-labels."""

    portions: tuple[float, ...]  # of the target rows that have a pseudo-label in each round
    weight: float  # of a pseudo-label, against a label
    start: np.ndarray | None = None  # (n_target, n_outputs) scores to start from; None: the source's
    needs_round_trip: bool = True  # whether a round must make it to be kept


PLAN = Plan(tuple(PSEUDO_SHARE * r / N_ROUNDS for r in range(1, N_ROUNDS + 1)), PSEUDO_WEIGHT)


@dataclass(frozen=True)
class Round:
    """Outcome of one round; `kept` is False for the round that was undone."""

    n_labelled: int  # target rows with a pseudo-label
    round_trip: float | None  # area under the ROC curve on the source, by the target alone; None if taught
    changed: float  # share of target rows whose prediction is not that of the start
    kept: bool


@dataclass(frozen=True)
class Trained:
    """A classifier, by the target anchors' part of it and of its training set."""

    coef: np.ndarray  # (n_target, n_outputs) of the target anchors; 0 without pseudo-labels
    scores: np.ndarray  # (n_target, n_outputs) of the target anchors
    codes: np.ndarray  # (n_target,) pseudo-labels of the target anchors
    weight: np.ndarray  # (n_target,) theirs, 0 for rows without a pseudo-label
    rounds: list[Round]  # the first entry is the start; empty without self-training

    @property
    def n_pseudo_labels(self) -> int:
        """Pseudo-labels of the last round that was kept."""
        return max((r.n_labelled for r in self.rounds if r.kept), default=0)


def keep_start(trainer: Trainer) -> Trained:
    """Return the classifier of the labelled rows alone."""
    scores = trainer.target_scores
    n = len(scores)
    return Trained(np.zeros(scores.shape), scores, np.zeros(n, dtype=int), np.zeros(n), [])


def self_train(base: Base, trainer: Trainer, choose: ChoosePseudoLabels, plan: Plan) -> Trained:
    """Train in rounds on ever more target rows with pseudo-labels, until a round trip fails.

    A round is kept if its *round trip* succeeds, see :func:`retained_auc`. Target rows whose class is known
    have their label in every round, and no pseudo-label. Their labels help to find pseudo-labels, and are
    then taken out again: `learn_labels` adds them.
    """
    start, labels, target_codes = keep_start(trainer), base.labels, base.anchors.target_codes
    if not len(start.scores):
        return start
    scores, is_known = start.scores if plan.start is None else plan.start, target_codes != UNLABELLED
    train_auc = mean_auc(trainer.labelled_scores, labels.codes)

    def retrain(codes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return trainer.retrain(
            np.where(is_known, target_codes, codes), np.where(is_known, LABEL_WEIGHT, weight)
        )

    if is_known.any() and plan.start is None:
        scores = retrain(start.codes, start.weight)[1]
    first = choose(scores, 1.0)[0]

    def evaluate(scores: np.ndarray, n_labelled: int) -> Round:
        changed = float(np.mean(choose(scores, 1.0)[0] != first))
        if not plan.needs_round_trip:
            return Round(n_labelled, None, changed, True)
        trip = round_trip_auc(base.chosen.K, labels, base.chosen.C, scores)
        return Round(n_labelled, trip, changed, retained_auc(trip, train_auc) >= LEAST_RETAINED)

    kept, rounds = start, [evaluate(scores, 0)]
    for portion in plan.portions:
        if not rounds[-1].kept:
            break
        pseudo_labels, chosen = choose(scores, portion)
        weight = np.zeros(len(scores))  # rows that are not chosen have no weight
        weight[chosen] = plan.weight
        coef, scores = retrain(pseudo_labels, weight)
        rounds.append(evaluate(scores, len(chosen)))
        if rounds[-1].kept:
            kept = Trained(coef, scores, pseudo_labels, weight, [])
    kept = replace(kept, weight=np.where(is_known, 0.0, kept.weight), rounds=rounds)
    if not is_known.any() or not kept.weight.any():
        return kept
    coef, scores = trainer.retrain(kept.codes, kept.weight)
    return replace(kept, coef=coef, scores=scores)


def make_rule(
    held_out: HeldOut, aligned: Alignment | None, lessons: Lessons | None = None
) -> ChoosePseudoLabels:
    """Return the rule for pseudo-labels: by class and target where targets are aligned, or have a teacher.

    Target anchors are then labelled by the thresholds of their targets and by the teacher together, and the
    surest portion of every class of every target is chosen.
    """
    if aligned is None and lessons is None:
        return choose_most_confident
    temperature = held_out.target_temperature(has_pseudo_labels=True)

    def choose(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
        both, groups = scores.copy(), []
        if aligned is not None:
            groups = aligned.groups
            for group, shares in zip(groups, aligned.shares, strict=True):
                both[group] += find_border(both[group], temperature, shares.mean)
        if lessons is not None:
            groups = lessons.groups
            lessons.add_words(both)
        rows = [group[_surest(both[group], temperature, portion)] for group in groups]
        return predict_codes(both), np.concatenate(rows)

    return choose


def choose_most_confident(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
    """Label target rows as predicted; choose the portion of all of them that is most confident."""
    n_chosen = round(portion * len(scores))
    return predict_codes(scores), np.argsort(-confidence(scores), kind="stable")[:n_chosen]


def _surest(scores: np.ndarray, temperature: float, portion: float) -> np.ndarray:
    """Return the rows with the largest probabilities: of every predicted class, this portion of its rows."""
    p = class_probabilities(scores, temperature)
    codes, rows = predict_codes(scores), []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        rows.append(members[np.argsort(-p[members, code], kind="stable")[: int(portion * len(members))]])
    return np.concatenate(rows)


def round_trip_auc(K: Array, labels: Labels, C: float, scores: np.ndarray) -> float:
    """Train on the target's predictions; return the area under the ROC curve on the labelled source.

    Target rows are labelled by the sign, or the largest, of their `scores`; all classes count alike, so that
    the classes' shares do not matter. 0.5, chance, if all of them get one label.
    """
    n, pseudo_labels = len(labels.codes), predict_codes(scores)
    if len(np.unique(pseudo_labels)) == 1:
        return 0.5
    Y, weight = signs(pseudo_labels, labels.n_classes), compute_sample_weight("balanced", pseudo_labels)
    return mean_auc(least_squares(K[n:, n:], Y, C, weight).scores(K[:n, n:]), labels.codes)


def retained_auc(trip_auc: float, train_auc: float) -> float:
    """Return the share of the source's area under the ROC curve above chance that a round trip keeps."""
    return (trip_auc - 0.5) / (train_auc - 0.5) if train_auc > 0.5 else 0.0
