"""Fit the classifier to its targets without their labels: align, self-train, and say what to expect.

With ``center="classes"`` every target is aligned by itself: its class shares are estimated from scores
(`shares`), its rows are moved until its classes meet on the source's border (`alignment`), pseudo-labels are
chosen within every class (`self_training`), and scores become probabilities for its shares (`calibration`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .alignment import choose_move, move_rows, undo_moves
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
from .self_training import Round, SelfTraining, Trained, train_without_labels
from .shares import PAIR, SEVERAL_DOMAINS, Labelled, Shares, Transfer, estimate_shares


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


@dataclass(frozen=True)
class AlignedFit:
    """A classifier on aligned targets, in terms of the anchors as they were before they were moved."""

    dual: Dual
    trained: Trained  # in terms of the moved anchors
    targets: list[Target]
    moves: np.ndarray  # (n, n_domains) the combination of labelled rows that is added to a domain's rows
    move_scores: np.ndarray  # (n_domains, n_outputs): what moving its rows adds to a domain's scores
    temperature: float
    scores: np.ndarray  # (n_target_anchors, n_outputs) of the target anchors, without a border
    start: Dual  # trained on the source alone
    first_intercept: np.ndarray  # (n_outputs,) its intercept for target rows that are not centred
    first_scores: np.ndarray  # (n_target_anchors, n_outputs) its scores of the target anchors
    gain: float  # what self-training leaves of the errors


def fit_aligned(
    result: SearchResult, held_out: HeldOut, self_training: SelfTraining | None, border: BorderOptions
) -> AlignedFit:
    """Align every target, then train with or without self-training.

    Moves the target anchors in the Gram matrix of `result`, in place.
    """
    chosen, problem = result.chosen, result.spec.problem
    K, n, domain = chosen.K, len(problem.codes), result.spec.anchors.domain
    start = problem.fit(K[:n, :n], np.arange(n), chosen.C)
    groups = list_target_rows(result)
    first, shares, moves, center = _align(result, start, held_out, groups, border)
    move_rows(K, moves, domain)
    temperature = held_out.target_temperature(bool(self_training))

    def choose(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
        return choose_surest(scores, portion, [group - n for group in groups], shares, temperature)

    trained = train_without_labels(
        K, problem, chosen.C, self_training, choose, result.spec.anchors.target_codes
    )
    dual = trained.dual
    has_pseudo_labels = any(r.kept and r.n_labelled for r in trained.rounds)
    if self_training and not has_pseudo_labels:
        temperature = held_out.target_temperature()
    scores = dual.scores(K[n:, : len(dual.coef)])
    gain = expect_gain(trained.rounds, self_training, n)
    targets = [
        describe_target(scores[group - n], temperature, first_scores, held_out, target_shares, border, gain)
        for group, first_scores, target_shares in zip(groups, first, shares, strict=True)
    ]
    move_scores = moves.T @ (dual.scores(K[:n, : len(dual.coef)]) - dual.intercept)
    first_scores = np.zeros(scores.shape)
    for group, group_scores in zip(groups, first, strict=True):
        first_scores[group - n] = group_scores
    return AlignedFit(
        undo_moves(dual, moves, domain[: len(dual.coef)]),
        trained,
        targets,
        moves,
        move_scores,
        temperature,
        scores,
        start,
        start.intercept - center,
        first_scores,
        gain,
    )


def list_target_rows(result: SearchResult) -> list[np.ndarray]:
    """Return the numbers of the anchors of every target."""
    rows, domain = result.spec.rows, result.spec.anchors.domain
    groups = [np.flatnonzero(domain == k) for k, number in enumerate(rows.domains) if number < 0]
    if not all(map(len, groups)):
        raise ValueError(
            f"{len(groups)} targets are too many to align one by one: join small ones, or use "
            'center="domains"'
        )
    return groups


def _align(
    result: SearchResult, dual: Dual, held_out: HeldOut, groups: Sequence[np.ndarray], border: BorderOptions
) -> tuple[list[np.ndarray], list[Shares], np.ndarray, np.ndarray]:
    """Return, for every target, its scores before any centring, its shares, and how its rows are moved.

    Also the score of the sources' mean.
    """
    chosen, problem, domain = result.chosen, result.spec.problem, result.spec.anchors.domain
    K, n, codes = chosen.K, len(problem.codes), problem.codes
    scores_of_means = chosen.mean_products[:n].T @ dual.coef  # type: ignore[index]  # (n_domains, n_outputs)
    center = scores_of_means[domain[:n]].mean(axis=0)
    train_scores = dual.scores(K[:n, :n])
    first, shares, moves = [], [], np.zeros((n, len(result.spec.rows.domains)))
    for group, known in zip(groups, fill_shares(border, result), strict=True):
        k = domain[group[0]]
        offset = scores_of_means[k] - center
        first.append(dual.scores(K[group][:, :n]) + offset)
        labelled = take_labelled(first[-1], result.spec.anchors.target_codes[group - n])
        scores = first[-1], held_out.scores, held_out.codes
        estimate = estimate_shares(*scores, problem.n_classes, known, labelled, held_out.transfer)
        shares.append(estimate)
        moves[:, k] = choose_move(train_scores, codes, problem.n_classes, offset - estimate.midpoint)
    return first, shares, moves, center


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
    return Target(shares, added, prior, expected.scaled(gain))
