"""Keep of a fit what labels of target rows are added to: rows at every layer, their inverse Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from sklearn.utils import check_random_state

from .._core import Rows, hidden_rows, submatrix
from .._inputs import to_host
from .anchors import ANCHOR_LIMIT, draw_labelled_rows
from .data import UNLABELLED
from .readout import Readout, ReadoutOptions
from .search import SearchResult
from .targets import HeldOut, TargetFit, fill_shares
from .updating import UpdateState, invert_gram
from .views import View, list_views

STATE_ROWS = 4_000  # labelled rows, and target rows, where there are too many to keep all


def needs_state(result: SearchResult, options: ReadoutOptions) -> bool:
    """Tell whether an update state is wanted, or needed to learn labels of target rows."""
    has_labels = bool((result.spec.anchors.target_codes != UNLABELLED).any())
    return bool(result.spec.rows.targets) and (options.keeps_state or has_labels)


@dataclass(frozen=True)
class FittedWeights:
    """A classifier as an update state keeps it: by layer, and matrix of extra features."""

    weights: Sequence[np.ndarray]
    first_weights: Sequence[np.ndarray]  # of the classifier trained on the source alone; empty if not aligned
    first_intercept: np.ndarray  # of rows that are centred
    moves: Sequence[np.ndarray] | None  # what is added to the rows of each domain; None if not aligned
    has_learnt_labels: bool = False  # whether labels of target rows are part of it


def draw_state_rows(result: SearchResult, options: ReadoutOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the anchors that are kept, and how many rows each stands for.

    All of them, up to `ANCHOR_LIMIT`; else samples of the labelled rows and of the target rows, in which
    target rows with a label are.
    """
    spec, n = result.spec, len(result.spec.problem.codes)
    target_codes, n_all = spec.anchors.target_codes, len(result.spec.rows.y)
    if n == n_all and n + len(target_codes) <= ANCHOR_LIMIT:
        return np.arange(n + len(target_codes)), np.ones(n + len(target_codes))
    random_state = check_random_state(options.random_state)
    drawn = draw_labelled_rows(spec.problem.codes, min(n, STATE_ROWS), random_state)
    rank = np.where(target_codes == UNLABELLED, random_state.uniform(size=len(target_codes)), -1)
    targets = np.sort(np.argsort(rank)[: max(STATE_ROWS, int((rank < 0).sum()))])
    growth = np.full(len(targets), len(target_codes) / max(len(targets), 1))
    growth[target_codes[targets] != UNLABELLED] = 1.0
    rows = np.concatenate([drawn, n + targets])
    return rows, np.concatenate([np.full(len(drawn), n_all / len(drawn)), growth])


def keep_state(
    result: SearchResult,
    held_out: HeldOut,
    fit: TargetFit,
    fitted: FittedWeights,
    readout: Readout,
    columns: list[Rows],
    drawn: tuple[np.ndarray, np.ndarray],
    options: ReadoutOptions,
) -> UpdateState:
    """Return what labels of target rows are added to, and the labels that there are.

    `drawn` are the anchors that are kept, as `draw_state_rows` returns them, and `columns` their rows.
    """
    spec, chosen, problem, views = result.spec, result.chosen, result.spec.problem, list_views(result)
    (rows, growth), trained, aligned = drawn, fit.trained, fit.alignment
    first_scores, center = (trained.scores, 0.0) if aligned is None else (aligned.scores, aligned.center)
    targets = rows[rows >= len(problem.codes)] - len(problem.codes)
    weight = np.concatenate([problem.weight, trained.weight])[rows] * growth
    means = [m for view in views for m in _layer_means(view, len(spec.rows.domains))]
    shares = [share for view in views for share in view.stack.shares]
    if fitted.moves is not None:  # rows that are moved are rows less a vector that the move is taken from
        means = [mean - move.T for mean, move in zip(means, fitted.moves, strict=True)]
    K = chosen.K if len(rows) == len(chosen.K) else submatrix(chosen.K, rows, rows)
    state = UpdateState(
        columns=columns,
        domain=spec.anchors.domain[rows],
        codes=np.concatenate([problem.codes, trained.codes])[rows],
        weight=weight,
        inverse=invert_gram(K, chosen.C, weight),
        means=means,
        shares=shares,
        C=chosen.C,
        n_classes=problem.n_classes,
        weights=list(fitted.weights),
        intercept=readout.intercept,
        first_weights=list(fitted.first_weights),
        first_intercept=fitted.first_intercept - center,
        scores=trained.scores[targets],
        first_scores=first_scores[targets],
        held_out=held_out if len(targets) == len(first_scores) else replace(held_out),  # nothing of all rows
        target_positions=spec.rows.target_positions,
        temperature=readout.temperature,
        gain=fit.gain,
        is_aligned=aligned is not None,
        is_balanced=options.border.is_balanced,
        known_shares=list(fill_shares(options.border, result)),
        has_learnt_labels=fitted.has_learnt_labels,
    )
    baseline = result.source_only
    if baseline is not None:
        intercept = baseline.intercept - baseline.offset
        state = replace(state, baseline_weights=baseline.weights, baseline_intercept=intercept)
    return state.label_anchors(spec.anchors.target_codes[targets])


def read_columns(view: View, result: SearchResult, rows: np.ndarray) -> list[Rows]:
    """Return some of the anchors at every layer, on the host."""
    X = view.anchors[rows]
    hidden = hidden_rows(view.stack.layers, result.spec.place.move_rows(view.first(X)))
    return [to_host(H) for H in chain([X], hidden)]


def _layer_means(view: View, n_domains: int) -> Sequence[np.ndarray]:
    """Return what is subtracted from the rows of every domain at every layer, zeros without centring."""
    if view.stack.means is not None:
        return view.stack.means
    return [np.zeros((n_domains, width)) for width in view.widths]
