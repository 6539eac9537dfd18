"""Align classes instead of means: move the rows of a target until its classes meet where the source's do.

A source is centred on the mean of its class means, a target on its mean. The mean of a target depends on its
class shares, so that the point midway between its classes is then off the source's decision boundary.
`shares` estimates that point; this module moves all rows of the target along the differences of the source's
class means until it lies on the boundary.
A move adds one combination of labelled rows to every row of the target, so that inner products change by an
update of low rank, and the classifier's weights by a change of dual coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core import Array, array_ops, row_slices
from .calibrate import HeldOut
from .domains import UNLABELLED
from .shares import Labelled, Shares, estimate_shares

if TYPE_CHECKING:
    from .choose import Base
    from .train import Trainer


@dataclass(frozen=True)
class Alignment:
    """Alignment of every target with the source's classes: shares, groups and scores."""

    groups: list[np.ndarray]  # target anchors of every target, counted from the first target anchor
    shares: list[Shares]
    center: np.ndarray  # (n_outputs,) score of the sources' mean
    scores: np.ndarray  # (n_target_anchors, n_outputs) before any centring


def align_targets(
    base: Base,
    trainer: Trainer,
    held_out: HeldOut,
    known_shares: Sequence[Sequence[float] | None],
    unseen: float = 0.0,
) -> Alignment | None:
    """Estimate the class shares that are not known, and move targets; None where nothing is aligned.

    `unseen` is the share of the targets' nonzero entries in features that no labelled row has.
    """
    if not base.is_aligned:
        return None
    anchors, labels, mean_scores = base.anchors, base.labels, trainer.mean_scores
    n, domain, groups = anchors.n_labelled, anchors.domain, anchors.list_target_rows(base.domains)
    center, first = find_first_scores(base, trainer)
    moves, estimates = np.zeros((n, len(mean_scores))), []
    for group, known in zip(groups, known_shares, strict=True):
        k = domain[n + group[0]]
        estimates.append(estimate_target(base, held_out, first, group, unseen, known))
        change = mean_scores[k] - center - estimates[-1].midpoint
        moves[:, k] = choose_move(trainer.labelled_scores, labels.codes, labels.n_classes, change)
    trainer.move(moves)
    return Alignment(groups, estimates, center, first)


def find_first_scores(base: Base, trainer: Trainer) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of the sources' mean, and the scores of target anchors before any centring."""
    n, domain = base.anchors.n_labelled, base.anchors.domain
    center = trainer.mean_scores[domain[:n]].mean(axis=0)
    return center, trainer.target_scores + (trainer.mean_scores - center)[domain[n:]]


def estimate_target(
    base: Base,
    held_out: HeldOut,
    first: np.ndarray,
    group: np.ndarray,
    unseen: float,
    known: Sequence[float] | None = None,
) -> Shares:
    """Estimate the class shares of a target from the first scores of its anchors, and from their labels."""
    codes, n_classes = base.anchors.target_codes, base.labels.n_classes
    known_rows = group[codes[group] != UNLABELLED]
    labelled = Labelled(first[known_rows], codes[known_rows]) if len(known_rows) else None
    grids = held_out.grids.setdefault(int(base.anchors.domain[base.anchors.n_labelled + group[0]]), {})
    seen = first[group], held_out.scores, held_out.codes
    estimate = estimate_shares(*seen, n_classes, known, labelled, held_out.transfer, grids)
    if known is None and labelled is None and base.source_only is not None:
        correlation = correlate_scores(first[group], base.source_only.scores[group])
        estimate = estimate.compare(held_out.class_shares, correlation, unseen)
    return estimate


def correlate_scores(scores: np.ndarray, others: np.ndarray) -> float:
    """Return the mean correlation of two classifiers' scores of the same rows; 1 where one is constant."""
    columns = zip(scores.T, others.T, strict=True)
    found = [np.corrcoef(own, other)[0, 1] for own, other in columns if own.std() > 0 and other.std() > 0]
    return float(np.mean(found)) if found else 1.0


def average_classes(is_class: np.ndarray) -> np.ndarray:
    """Combine rows into the mean of each class that has any: (n, n_classes)."""
    return is_class / np.maximum(is_class.sum(axis=0), 1)


def class_directions(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Combine labelled rows into the mean of each class less the mean of all class means: (n, n_classes)."""
    means = average_classes(codes[:, None] == np.arange(n_classes))
    return means - means.mean(axis=1, keepdims=True)


def combine_midpoints(codes: np.ndarray, domain: np.ndarray, *, counts_alike: bool) -> dict[int, np.ndarray]:
    """Combine labelled rows into the point midway between the classes, for every source: (n,).

    That is the mean of the source's class means. Of a source that lacks a class it is the mean over the
    classes that it has, and from there the way to the mean over all classes in the complete sources, or in
    all together. Unless all classes count alike, they count by their shares there, and only sources that
    lack a class are returned: the others are centred on their means.
    """
    is_class = codes[:, None] == np.arange(codes.max() + 1)
    sources = {k: domain == k for k in np.unique(domain).tolist()}
    has_class = {k: is_class[is_member].any(axis=0) for k, is_member in sources.items()}
    complete = [sources[k] for k, present in has_class.items() if present.all()]
    reference = complete or [np.ones(len(codes), dtype=bool)]
    shares = is_class[np.any(reference, axis=0)].mean(axis=0)
    shares = np.full(len(shares), 1 / len(shares)) if counts_alike else shares
    common = np.zeros(is_class.shape)  # class means of the reference
    if len(complete) < len(sources):
        for is_member in reference:
            common += average_classes(is_class & is_member[:, None]) / len(reference)
    combinations = {}
    for k, is_member in sources.items():
        if counts_alike or not has_class[k].all():
            present = shares * has_class[k] / shares[has_class[k]].sum()
            combinations[k] = average_classes(is_class & is_member[:, None]) @ present
            if not has_class[k].all():
                combinations[k] += common @ (shares - present)
    return combinations


def choose_move(scores: np.ndarray, codes: np.ndarray, n_classes: int, change: np.ndarray) -> np.ndarray:
    """Return the combination of labelled rows, of shape (n,), that changes scores by `change` when added.

    It is the shortest one along the class directions. `scores` are of the labelled rows.
    """
    directions = class_directions(codes, n_classes)
    slopes = scores.T @ directions  # (n_outputs, n_classes); directions sum to 0, so intercepts do not count
    return directions @ np.linalg.lstsq(slopes, change, rcond=1e-6)[0]


def move_rows(K: Array, moves: np.ndarray, domain: np.ndarray) -> None:
    """Update inner products in place after combinations of labelled rows were added to the rows of domains.

    The labelled rows come first in `K`. Columns of `moves`, of shape (n, n_domains), are the combinations.
    """
    ops, n = array_ops(K), len(moves)
    U = ops.like(moves, K)
    with_moves = K[:, :n] @ U  # (n_anchors, n_domains)
    among_moves = U.T @ with_moves[:n]
    for rows in row_slices(len(K), len(K)):
        K[rows] += with_moves[rows][:, domain] + with_moves[:, domain[rows]].T
        K[rows] += among_moves[domain[rows]][:, domain]


def undo_moves(coef: np.ndarray, moves: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Return coefficients of the anchors before they were moved, from those of the moved ones."""
    before = coef.copy()
    for d, move in enumerate(moves.T):
        before[: len(moves)] += np.outer(move, coef[domain == d].sum(axis=0))
    return before
