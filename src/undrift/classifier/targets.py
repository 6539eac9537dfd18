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
    AFTER_SELF_TRAINING,
    BEFORE_SELF_TRAINING,
    LEAST_SHARE,
    SELF_TRAINING_GAIN,
    ExpectedError,
    class_probabilities,
    expect_error,
    find_border,
    fit_temperature,
)
from .linear import Dual, predict_codes
from .search import SearchResult
from .self_training import Round, SelfTraining, fit_dual
from .shares import Shares, estimate_shares


@dataclass(frozen=True)
class HeldOut:
    """Scores of labelled rows by classifiers that have not seen them."""

    scores: np.ndarray  # (n, n_outputs)
    codes: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)

    @cached_property
    def temperature(self) -> float:
        """What these scores are divided by to become log odds."""
        return fit_temperature(self.scores, self.codes, self.weight)


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
    rounds: list[Round]
    targets: list[Target]
    move_scores: np.ndarray  # (n_domains, n_outputs): what moving its rows adds to a domain's scores
    temperature: float
    scores: np.ndarray  # (n_target_anchors, n_outputs) of the target anchors, without a border


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
    if not all(map(len, groups)):
        raise ValueError(
            f"{len(groups)} targets are too many to align one by one: join small ones, or use "
            'center="domains"'
        )
    first, shares, moves = _align(result, start, held_out, groups, border)
    move_rows(K, moves, domain)
    temperature = held_out.temperature * (AFTER_SELF_TRAINING if self_training else BEFORE_SELF_TRAINING)

    def choose(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
        codes, rows = np.zeros(len(scores), dtype=int), []
        for group, target_shares in zip(groups, shares, strict=True):
            group_scores = scores[group - n]
            group_scores = group_scores + find_border(group_scores, temperature, target_shares.mean)
            codes[group - n] = predict_codes(group_scores)
            rows.append(group[_surest(group_scores, temperature, portion)] - n)
        return codes, np.concatenate(rows)

    dual, rounds = fit_dual(K, problem, chosen.C, self_training, choose)
    has_pseudo_labels = any(r.kept and r.n_labelled for r in rounds)
    if self_training and not has_pseudo_labels:
        temperature = held_out.temperature * BEFORE_SELF_TRAINING
    scores = dual.scores(K[n:, : len(dual.coef)])
    gain = SELF_TRAINING_GAIN if has_pseudo_labels else 1.0
    targets = [
        describe_target(scores[group - n], temperature, first_scores, held_out, target_shares, border, gain)
        for group, first_scores, target_shares in zip(groups, first, shares, strict=True)
    ]
    move_scores = moves.T @ (dual.scores(K[:n, : len(dual.coef)]) - dual.intercept)
    dual = undo_moves(dual, moves, domain[: len(dual.coef)])
    return AlignedFit(dual, rounds, targets, move_scores, temperature, scores)


def list_target_rows(result: SearchResult) -> list[np.ndarray]:
    """Return the numbers of the anchors of every target."""
    rows, domain = result.spec.rows, result.spec.anchors.domain
    return [np.flatnonzero(domain == k) for k, number in enumerate(rows.domains) if number < 0]


def _align(
    result: SearchResult, dual: Dual, held_out: HeldOut, groups: Sequence[np.ndarray], border: BorderOptions
) -> tuple[list[np.ndarray], list[Shares], np.ndarray]:
    """Return, for every target, its scores before any centring, its shares, and how its rows are moved."""
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
        estimate = estimate_shares(first[-1], held_out.scores, held_out.codes, problem.n_classes, known)
        shares.append(estimate)
        moves[:, k] = choose_move(train_scores, codes, problem.n_classes, offset - estimate.midpoint)
    return first, shares, moves


def fill_shares(border: BorderOptions, result: SearchResult) -> Sequence[Sequence[float] | None]:
    """Return the shares that are known of every target, None where they are to be estimated."""
    return border.known_shares or [None] * len(result.spec.rows.targets)


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
    first_temperature = held_out.temperature * BEFORE_SELF_TRAINING
    first_border = find_border(first_scores, first_temperature, shares.mean)
    first_border, _ = border.split(first_border, first_temperature, shares.mean)
    codes = predict_codes(first_scores + first_border)
    if shares.is_assumed:
        return Target(shares, added, prior, None)
    expected = expect_error(first_scores, first_temperature, shares, codes)
    return Target(shares, added, prior, expected.scaled(gain))
