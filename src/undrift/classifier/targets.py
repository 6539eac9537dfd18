"""Fit the classifier to its targets without their labels: align, self-train, and say what to expect.

With ``center="classes"`` every target is aligned by itself: its class shares are estimated from scores
(`shares`), its rows are moved until its classes meet on the source's border (`alignment`), pseudo-labels are
chosen within every class (`self_training`), and scores become probabilities for its shares (`calibration`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .alignment import choose_move, move_rows
from .calibration import (
    LEAST_SHARE,
    ExpectedError,
    class_probabilities,
    expect_error,
    find_border,
    fit_temperature,
    self_training_gain,
)
from .data import UNLABELLED
from .linear import Dual, predict_codes
from .search import SearchResult
from .self_training import ChoosePseudoLabels, Round, SelfTraining, Trained, choose_most_confident, fit_dual
from .shares import PAIR, SEVERAL_DOMAINS, Grid, Labelled, Shares, Transfer, estimate_shares


@dataclass(frozen=True)
class HeldOut:
    """Scores of labelled rows by classifiers that have not seen them."""

    scores: np.ndarray  # (n, n_outputs)
    codes: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    n_domains: int = 3  # that the layers were learnt from

    @cached_property
    def temperature(self) -> float:
        """What these scores are divided by to become log odds."""
        return fit_temperature(self.scores, self.codes, self.weight)

    @cached_property
    def grids(self) -> dict[Any, dict[Any, Grid]]:
        """What was computed of the shares of every target, by its position."""
        return {}

    @property
    def transfer(self) -> Transfer:
        """What another domain does to scores."""
        return PAIR if self.n_domains <= 2 else SEVERAL_DOMAINS

    def target_temperature(self, has_pseudo_labels: bool = False) -> float:
        """Return the temperature of target rows, before or after self-training."""
        transfer = self.transfer
        factor = transfer.after_self_training if has_pseudo_labels else transfer.before_self_training
        return self.temperature * factor


@dataclass(frozen=True)
class Target:
    """What a fit knows of one target domain."""

    shares: Shares
    shift: np.ndarray  # (n_outputs,) added to its scores for predictions
    prior: np.ndarray  # (n_outputs,) log shares that border="balanced" ignores, for probabilities
    expected_error: ExpectedError | None  # None where there are too few rows to say


@dataclass(frozen=True)
class BorderOptions:
    """Which error predictions should minimise, overall or the mean over classes; shares that are known."""

    is_balanced: bool = False
    known_shares: Sequence[Sequence[float] | None] = ()  # of every target, in class order; None to estimate

    def split(
        self, border: np.ndarray, temperature: float, shares: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the shift of scores for predictions, and the further shift for probabilities."""
        prior = temperature * np.log(np.maximum(shares, LEAST_SHARE))
        prior = prior[1:] - prior[:1] if len(border) == 1 else prior - prior.mean()
        return (border - prior, prior) if self.is_balanced else (border, np.zeros_like(border))


class Trainer(Protocol):
    """Trains on the labelled rows, then on target anchors with pseudo-labels as well."""

    start: Any  # the classifier of the labelled rows alone: a `Dual` or a `Primal`
    labelled_scores: np.ndarray  # (n, n_outputs) of the labelled anchors, by it

    def score_targets(self) -> np.ndarray:
        """Scores of the target anchors by `start`."""

    def score_means(self) -> np.ndarray:
        """Scores by `start` of what is subtracted from the rows of every domain: (n_domains, n_outputs)."""

    def move(self, moves: np.ndarray) -> None:
        """Add a combination of labelled anchors to the rows of every domain: (n, n_domains)."""

    def train(self, self_training: SelfTraining | None, choose: ChoosePseudoLabels) -> Trained:
        """Train with or without self-training."""

    def score_labelled(self, model: Any) -> np.ndarray:
        """Scores of the labelled anchors, by a classifier that `train` returned."""


class DualTrainer:
    """Trains on inner products, those of a search's result, which `move` changes in place."""

    def __init__(self, result: SearchResult) -> None:
        self._result, self._n = result, len(result.spec.problem.codes)
        self._K = result.chosen.K
        self.start = result.start
        self.labelled_scores = self.start.scores(self._K[: self._n, : self._n])

    def score_targets(self) -> np.ndarray:
        """Scores of the target anchors by `start`."""
        return self.start.scores(self._K[self._n :, : self._n])

    def score_means(self) -> np.ndarray:
        """Scores by `start` of what is subtracted from the rows of every domain: (n_domains, n_outputs)."""
        products = self._result.chosen.mean_products
        assert products is not None  # nothing is aligned without centring
        return products[: self._n].T @ self.start.coef

    def move(self, moves: np.ndarray) -> None:
        """Add a combination of labelled anchors to the rows of every domain: (n, n_domains)."""
        move_rows(self._K, moves, self._result.spec.anchors.domain)

    def train(self, self_training: SelfTraining | None, choose: ChoosePseudoLabels) -> Trained:
        """Train with or without self-training."""
        spec, C = self._result.spec, self._result.chosen.C
        codes = spec.anchors.target_codes
        return fit_dual(self._K, spec.problem, C, self_training, choose, codes, self.start)

    def score_labelled(self, model: Dual) -> np.ndarray:
        """Scores of the labelled anchors, by a classifier that `train` returned."""
        return model.scores(self._K[: self._n, : len(model.coef)])


@dataclass(frozen=True)
class Alignment:
    """How every target is brought to where the source's classes meet."""

    groups: list[np.ndarray]  # target anchors of every target, counted from the first target anchor
    shares: list[Shares]
    moves: np.ndarray  # (n, n_domains) the combination of labelled anchors that is added to a domain's rows
    center: np.ndarray  # (n_outputs,) score of the sources' mean
    scores: np.ndarray  # (n_target_anchors, n_outputs) before any centring


@dataclass(frozen=True)
class TargetFit:
    """A classifier that was fitted to its targets without their labels."""

    trained: Trained  # in terms of the anchors, moved if they are
    temperature: float
    move_scores: np.ndarray  # (n_domains, n_outputs): what moving its rows adds to a domain's scores
    gain: float = 1.0  # what self-training leaves of the errors
    targets: list[Target] | None = None  # None where they are not aligned
    alignment: Alignment | None = None


def fit_to_targets(
    result: SearchResult,
    trainer: Trainer,
    held_out: HeldOut,
    self_training: SelfTraining | None,
    border: BorderOptions,
) -> TargetFit:
    """Align every target if that is asked for, then train with or without self-training.

    Moves the target anchors in the Gram matrix of `result`, in place.
    """
    spec, scores = result.spec, trainer.score_targets()
    if spec.center != "classes" or not len(scores):
        trained = trainer.train(self_training, choose_most_confident)
        no_moves = np.zeros((len(spec.rows.domains), scores.shape[1]))
        return TargetFit(trained, held_out.temperature, no_moves)
    aligned = _align(result, trainer.score_means(), trainer.labelled_scores, scores, held_out, border)
    trainer.move(aligned.moves)
    temperature = held_out.target_temperature(bool(self_training))

    def choose(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
        return choose_surest(scores, portion, aligned.groups, aligned.shares, temperature)

    trained = trainer.train(self_training, choose)
    if not trained.has_pseudo_labels:
        temperature = held_out.target_temperature()
    gain = expect_gain(trained.rounds, self_training, len(spec.rows.y))
    targets = [
        describe_target(
            trained.scores[group], temperature, aligned.scores[group], held_out, shares, border, gain
        )
        for group, shares in zip(aligned.groups, aligned.shares, strict=True)
    ]
    change = trainer.score_labelled(trained.model) - trained.model.intercept
    return TargetFit(trained, temperature, aligned.moves.T @ change, gain, targets, aligned)


def list_target_rows(result: SearchResult) -> list[np.ndarray]:
    """Return the numbers of the anchors of every target."""
    rows, domain = result.spec.rows, result.spec.anchors.domain
    groups = [np.flatnonzero(domain == k) for k in rows.target_positions]
    if not all(map(len, groups)):
        raise ValueError(
            f"{len(groups)} targets are too many to align one by one: join small ones, or use "
            'center="domains"'
        )
    return groups


def _align(
    result: SearchResult,
    mean_scores: np.ndarray,
    train_scores: np.ndarray,
    scores: np.ndarray,
    held_out: HeldOut,
    border: BorderOptions,
) -> Alignment:
    """Estimate the shares of every target, and how its rows are moved.

    Parameters
    ----------
    mean_scores : array of shape (n_domains, n_outputs)
        Of what is subtracted from the rows of every domain.
    train_scores, scores : arrays of shape (n, n_outputs) and (n_target_anchors, n_outputs)
        Of the labelled and of the target anchors, centred.
    """
    problem, domain = result.spec.problem, result.spec.anchors.domain
    n, target_codes = len(problem.codes), result.spec.anchors.target_codes
    center = mean_scores[domain[:n]].mean(axis=0)
    groups, estimates, first = [group - n for group in list_target_rows(result)], [], np.zeros(scores.shape)
    moves = np.zeros((n, len(mean_scores)))
    for group, known in zip(groups, fill_shares(border, result), strict=True):
        k = domain[n + group[0]]
        offset = mean_scores[k] - center
        first[group] = scores[group] + offset
        labelled = take_labelled(first[group], target_codes[group])
        seen = first[group], held_out.scores, held_out.codes
        grids = held_out.grids.setdefault(int(k), {})
        estimate = estimate_shares(*seen, problem.n_classes, known, labelled, held_out.transfer, grids)
        estimates.append(estimate)
        change = offset - estimate.midpoint
        moves[:, k] = choose_move(train_scores, problem.codes, problem.n_classes, change)
    return Alignment(groups, estimates, moves, center, first)


def expect_gain(rounds: Sequence[Round], self_training: SelfTraining | None, n_labelled: int) -> float:
    """Return what the rounds of self-training that were kept are expected to leave of the errors."""
    n_pseudo = max((r.n_labelled for r in rounds if r.kept), default=0)
    return self_training_gain(n_labelled, self_training.weight * n_pseudo) if self_training else 1.0


def take_labelled(scores: np.ndarray, target_codes: np.ndarray) -> Labelled | None:
    """Return the scores and classes of target anchors whose class is known, None where there are none."""
    has_label = target_codes != UNLABELLED
    return Labelled(scores[has_label], target_codes[has_label]) if has_label.any() else None


def fill_shares(border: BorderOptions, result: SearchResult) -> Sequence[Sequence[float] | None]:
    """Return the shares that are known of every target, None where they are to be estimated."""
    return border.known_shares or [None] * len(result.spec.rows.targets)


def choose_surest(
    scores: np.ndarray,
    portion: float,
    groups: Sequence[np.ndarray],
    shares: Sequence[Shares],
    temperature: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Label target anchors by the borders of their targets; choose the surest portion of every class.

    `groups` are the rows of `scores` that belong to every target.
    """
    codes, rows = np.zeros(len(scores), dtype=int), []
    for group, target_shares in zip(groups, shares, strict=True):
        group_scores = scores[group] + find_border(scores[group], temperature, target_shares.mean)
        codes[group] = predict_codes(group_scores)
        rows.append(group[_surest(group_scores, temperature, portion)])
    return codes, np.concatenate(rows)


def _surest(scores: np.ndarray, temperature: float, portion: float) -> np.ndarray:
    """Return the rows with the largest probabilities: of every predicted class, this portion of its rows."""
    p = class_probabilities(scores, temperature)
    codes, rows = predict_codes(scores), []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        rows.append(members[np.argsort(-p[members, code], kind="stable")[: int(portion * len(members))]])
    return np.concatenate(rows)


def describe_target(
    scores: np.ndarray,
    temperature: float,
    first_scores: np.ndarray,
    held_out: HeldOut,
    shares: Shares,
    border: BorderOptions,
    gain: float = 1.0,
) -> Target:
    """Find the border of a target for its shares, and the error to expect of its predictions.

    The expected error comes from scores *before* self-training, which inflates margins, times the `gain` that
    self-training brought on the benchmark.
    """
    added, prior = border.split(find_border(scores, temperature, shares.mean), temperature, shares.mean)
    first_temperature = held_out.target_temperature()
    first_border = find_border(first_scores, first_temperature, shares.mean)
    first_border, _ = border.split(first_border, first_temperature, shares.mean)
    codes = predict_codes(first_scores + first_border)
    if shares.is_assumed:
        return Target(shares, added, prior, None)
    expected = expect_error(first_scores, first_temperature, shares, codes)
    return Target(shares, added, prior, expected.scale(gain))
