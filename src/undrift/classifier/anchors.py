"""Anchors: the rows whose inner products are kept, how they are drawn, and their way through the layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from .._core import Array, FittedLayer, Moments, Rows, array_ops, moments, stack_rows, take_rows
from .._inputs import Place, gather_rows
from .data import UNLABELLED, TrainingRows
from .layers import MeasuredLayer
from .selection import NEED_TARGET, Grid
from .shares import LEAST_ROWS

RULE_ROWS = 2000  # target rows that a selection rule looks at, drawn at random where there are more
ANCHOR_LIMIT = 12_000  # rows of a Gram matrix that has space for target rows
CALIBRATION_ROWS = 8_000  # labelled rows that are scored held out, where there are more
SELF_TRAINING_ROWS = 8_000  # target rows that get pseudo-labels, drawn at random where there are more


@dataclass(frozen=True)
class Anchors:
    """The rows whose inner products are kept: labelled ones first, then target rows where they are needed."""

    X: Rows
    domain: np.ndarray  # (n,) position of each row's domain among the means
    position: np.ndarray  # (n,) row number of each row within its domain; ascending for each domain
    n_labelled: int
    extra: Sequence[Rows] = ()  # the same rows of every set of extra features
    target_codes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))  # of the target anchors


def count_target_anchors(estimator: Any, rows: TrainingRows, grid: Grid, n_labelled: int) -> int:
    """Return how many target anchors a classifier's selection, self-training and safeguard need."""
    for_selection = grid.n_candidates > 1 and estimator.selection in NEED_TARGET
    if estimator.self_training and rows.targets:
        if n_labelled <= CALIBRATION_ROWS < len(rows.y):  # the Gram matrix has a sample of them
            return SELF_TRAINING_ROWS
        return min(max(ANCHOR_LIMIT - n_labelled, RULE_ROWS), SELF_TRAINING_ROWS)
    for_target = (estimator.fallback or estimator.center == "classes") and rows.targets
    return RULE_ROWS if for_selection or for_target else 0


def allot_target_anchors(rows: TrainingRows, n_target: int) -> dict[int, int]:
    """Return how many rows of each target become anchors, of `n_target` needed in all.

    All of a target that is smaller than an equal part, and equal parts of the others. With many targets there
    are more, so that the class shares of each can be estimated, up to `ANCHOR_LIMIT`.
    """
    enough = min(LEAST_ROWS * len(rows.targets), ANCHOR_LIMIT)
    allotted, n_left = {}, max(n_target, enough) if n_target else 0
    sizes = {number: rows.domains[number].shape[0] for number in rows.targets}
    for i, number in enumerate(sorted(sizes, key=lambda number: sizes[number])):
        allotted[number] = min(sizes[number], n_left // (len(sizes) - i))
        n_left -= allotted[number]
    return {number: allotted[number] for number in rows.targets if allotted[number]}


def draw_labelled_rows(codes: np.ndarray, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """Draw n rows at random, two of every class among them where there are two; in ascending order."""
    drawn = random_state.permutation(len(codes))
    rank = np.empty(len(codes), dtype=int)  # how many rows of the same class were drawn before
    for code in np.unique(codes):
        same_class = np.flatnonzero(codes[drawn] == code)
        rank[same_class] = np.arange(len(same_class))
    return np.sort(drawn[np.argsort(rank >= 2, kind="stable")[:n]])


def draw_anchors(
    rows: TrainingRows, labelled: np.ndarray, n_target: int, random_state: np.random.RandomState
) -> Anchors:
    """Take the labelled rows with the given numbers, and draw up to `n_target` target rows.

    Target rows that have a label are always among them.
    """
    index = {number: i for i, number in enumerate(rows.domains)}
    views = (rows, *rows.extra)
    matrices: list[list[Rows]] = [[view.labelled[labelled]] for view in views]
    domain = [np.array([index[number] for number in rows.domain[labelled]])]
    position, codes, allotted = [rows.position[labelled]], [], allot_target_anchors(rows, n_target)
    for number in rows.targets:
        drawn, n_taken = np.arange(rows.domains[number].shape[0]), allotted.get(number, 0)
        target_codes = rows.target_codes.get(number, np.full(len(drawn), UNLABELLED))
        if len(drawn) > n_taken:
            drawn = random_state.choice(len(drawn), n_taken, replace=False) if n_taken else drawn[:0]
            drawn = np.union1d(drawn, np.flatnonzero(target_codes != UNLABELLED))
        if len(drawn) == 0:
            continue
        codes.append(target_codes[drawn])
        for matrix, view in zip(matrices, views, strict=True):
            matrix.append(gather_rows(view.domains[number][drawn]))
        domain.append(np.full(len(drawn), index[number]))
        position.append(drawn)
    X, *extra = map(stack_rows, matrices)
    parts = np.concatenate(domain), np.concatenate(position), len(labelled), extra
    return Anchors(X, *parts, np.concatenate([np.zeros(0, dtype=int), *codes]))


def draw_scored_rows(n_labelled: int, n: int, random_state: np.random.RandomState) -> np.ndarray | None:
    """Draw the anchors that a selection rule looks at: all labelled ones, and `RULE_ROWS` of the others.

    None where there are no more of these.
    """
    if n - n_labelled <= RULE_ROWS:
        return None
    drawn = random_state.choice(n - n_labelled, RULE_ROWS, replace=False)
    return np.concatenate([np.arange(n_labelled), n_labelled + np.sort(drawn)])


@dataclass(frozen=True)
class Propagated:
    """Anchors at a new depth, which may be overwritten, and the moments of domains at that depth."""

    rows: Array  # (n, d)
    moments: dict[int, Moments]  # by position of the domain


# takes the new layer, and the positions of the domains whose moments are needed
Propagate = Callable[[FittedLayer, Collection[int]], Propagated]


def propagate_with_domains(domain: np.ndarray, position: np.ndarray) -> Propagate:
    """Copy the anchors as all rows of their domains pass a new layer: nothing is computed twice.

    Parameters
    ----------
    domain, position : int arrays of shape (n,)
        Each anchor's domain, and its row number there; ascending for each domain.
    """

    def propagate(grown: FittedLayer, needed: Collection[int]) -> Propagated:
        coef = grown.layer.coef
        H, totals = array_ops(coef).empty_like(coef, (len(domain), coef.shape[1])), {}
        for k, blocks in enumerate(cast(list[Iterable[Rows]], grown.domains)):
            places = np.flatnonzero(domain == k)
            if k in needed and not len(places) and isinstance(grown, MeasuredLayer):
                totals[k] = grown.moments[k]
            elif len(places) or k in needed:
                totals[k] = take_rows(blocks, position[places], H, places)
        return Propagated(H, totals)

    return propagate


def propagate_alone(X: Rows, place: Place) -> Propagate:
    """Push the anchors `X` through every layer, where the rows of their domains are elsewhere or a sample."""
    H = place.move_rows(X)

    def propagate(grown: FittedLayer, needed: Collection[int]) -> Propagated:
        nonlocal H
        H = grown.layer(H)
        return Propagated(H + 0, {k: grown.domains[k].total(moments) for k in sorted(needed)})

    return propagate


def stack_domain_means(totals: dict[int, Moments], n_domains: int) -> np.ndarray:
    """Return the means of the domains, of shape (n_domains, d); NaN for those that are not known yet."""
    width = len(next(iter(totals.values())).mean)
    means = np.full((n_domains, width), np.nan)
    for k, total in totals.items():
        means[k] = total.mean
    return means
