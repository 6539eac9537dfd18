"""Fit the classifier to its targets where the labelled rows are more than a Gram matrix can hold.

The steps are those of `targets` and `self_training`, on sums over all labelled rows (`primal`). The anchors
are here a sample of the labelled rows, and target rows: held-out scores, moves, round trips and the safeguard
need no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core import Layer, Rows
from .._inputs import OnHost, to_host
from .alignment import choose_move, move_rows
from .data import UNLABELLED, TrainingRows
from .grams import Stack
from .linear import mean_auc, signs
from .primal import (
    LayerRows,
    Primal,
    Training,
    concatenate_columns,
    layer_rows,
    needs_minimisation,
    train_on_rows,
)
from .search import SearchResult
from .self_training import (
    LABEL_WEIGHT,
    LEAST_RETAINED,
    ChoosePseudoLabels,
    Round,
    SelfTraining,
    choose_most_confident,
    retained_auc,
    round_trip_auc,
)
from .shares import Shares, estimate_shares
from .targets import (
    BorderOptions,
    HeldOut,
    Target,
    choose_surest,
    describe_target,
    expect_gain,
    fill_shares,
    list_target_rows,
    take_labelled,
)


@dataclass(frozen=True)
class View:
    """X or extra features: the columns of the anchors and of all rows, and the stack on them."""

    anchors: Rows
    rows: TrainingRows
    stack: Stack
    first: Callable[[Rows], Rows]


class RowReader:
    """Reads labelled rows and anchors at every layer, block by block, where the computation takes place."""

    def __init__(self, views: Sequence[View], result: SearchResult, loss: str, memory_budget: float) -> None:
        self._views, self._result = views, result
        widths = [
            width
            for view in views
            for width in (view.anchors.shape[1], *(layer.coef.shape[1] for layer in view.stack.layers))
        ]
        # what reads rows many times works on the host, and keeps hidden rows
        self._is_on_host = needs_minimisation(loss, widths)
        self._memory_budget = memory_budget if self._is_on_host else None

    def read_labelled(self) -> LayerRows:
        """Return all labelled rows."""
        rows = self._result.spec.rows
        position = {number: k for k, number in enumerate(rows.domains)}
        domain = np.array([position[number] for number in rows.domain])
        return self._read([view.rows.labelled for view in self._views], domain, None, self._memory_budget)

    def read_anchors(self, rows: slice, vectors: Sequence[np.ndarray] | None = None) -> LayerRows:
        """Return some of the anchors; `vectors`, for every layer (d_t, n_domains), are added by domain."""
        domain = self._result.spec.anchors.domain[rows]
        return self._read([view.anchors[rows] for view in self._views], domain, vectors)

    def _read(
        self,
        matrices: Sequence[Any],
        domain: np.ndarray,
        vectors: Sequence[np.ndarray] | None,
        memory_budget: float | None = None,
    ) -> LayerRows:
        place, parts, added = self._result.spec.place, [], iter(vectors or ())
        for X, view in zip(matrices, self._views, strict=True):
            layers: Sequence[Layer] = view.stack.layers
            means: Any = view.stack.means
            if self._is_on_host:
                X, layers = to_host(X), [place.copy_to_host(layer) for layer in layers]
            if vectors is not None:  # rows that are moved are rows less a mean that is moved the other way
                moves = [next(added).T / (np.sqrt(share) or 1.0) for share in view.stack.shares]
                means = [mean - move for mean, move in zip(means or [0.0] * len(moves), moves, strict=True)]
            where = OnHost() if self._is_on_host else place
            parts.append(
                layer_rows(X, domain, view.first, layers, means, view.stack.shares, where, memory_budget)
            )
        return concatenate_columns(parts)

    def split_weights(self, primal: Primal) -> list[list[np.ndarray]]:
        """Return the weights of every layer for rows that are not scaled: for X, then for extra features."""
        parts = iter(primal.weights)
        return [[next(parts) * np.sqrt(share) for share in view.stack.shares] for view in self._views]

    def score_means(self, primal: Primal) -> np.ndarray:
        """Return the scores of what is subtracted from the rows of every domain: (n_domains, n_outputs)."""
        scores = np.zeros((len(self._result.spec.rows.domains), len(primal.intercept)))
        for view, weights in zip(self._views, self.split_weights(primal), strict=True):
            for mean, w in zip(view.stack.means or [], weights, strict=False):
                scores += mean @ w
        return scores


@dataclass(frozen=True)
class ManyRowsFit:
    """A classifier of all labelled rows, and of target anchors with pseudo-labels."""

    primal: Primal
    rounds: list[Round]
    targets: list[Target] | None  # None where they are not aligned
    move_scores: np.ndarray  # (n_domains, n_outputs): what moving its rows adds to a domain's scores
    temperature: float
    scores: np.ndarray  # (n_target_anchors, n_outputs) of the target anchors, without a border
    start: Primal  # trained on the source alone
    codes: np.ndarray  # (n_target_anchors,) labels and pseudo-labels
    weight: np.ndarray  # (n_target_anchors,) 0 for rows that were not trained on
    vectors: list[np.ndarray] | None = (
        None  # what is added to the rows of each domain, as `LayerRows` has them
    )
    center: np.ndarray | None = None  # (n_outputs,) score of the sources' mean by `start`
    first_scores: np.ndarray | None = None  # (n_target_anchors, n_outputs) of `start`, before any centring
    gain: float = 1.0


def fit_many_rows(
    result: SearchResult,
    reader: RowReader,
    Y: np.ndarray,
    weight: np.ndarray,
    held_out: HeldOut,
    loss: str,
    self_training: SelfTraining | None,
    border: BorderOptions,
) -> ManyRowsFit:
    """Train on all labelled rows; align every target; then train with or without self-training.

    Moves the target anchors in the Gram matrix of `result`, in place.

    Parameters
    ----------
    Y, weight : arrays of shape (n, n_outputs) and (n,)
        Of all labelled rows.
    """
    spec, chosen, problem = result.spec, result.chosen, result.spec.problem
    n, n_anchors = len(problem.codes), spec.anchors.X.shape[0]
    training = train_on_rows(reader.read_labelled(), Y, chosen.C, weight, loss)
    labelled = reader.read_anchors(slice(0, n))
    start, labelled_scores = training.start, labelled.score(training.start)
    moves, vectors = np.zeros((n, len(spec.rows.domains))), None
    if n_anchors == n:
        no_moves = np.zeros((moves.shape[1], Y.shape[1]))
        nothing = Y[:0], start, np.zeros(0, dtype=int), np.zeros(0)
        return ManyRowsFit(start, [], None, no_moves, held_out.temperature, *nothing)
    scores = reader.read_anchors(slice(n, n_anchors)).score(start)
    aligned, choose = None, choose_most_confident
    temperature = held_out.temperature
    if spec.center == "classes":
        aligned = _align(result, reader.score_means(start), labelled_scores, scores, held_out, border)
        moves = aligned.moves
        move_rows(chosen.K, moves, spec.anchors.domain)
        vectors = labelled.combine(moves)
        scores = scores + (moves.T @ (labelled_scores - start.intercept))[spec.anchors.domain[n:]]
        temperature = held_out.target_temperature(bool(self_training))

        def choose(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
            return choose_surest(scores, portion, aligned.groups, aligned.shares, temperature)

    primal, rounds = start, list[Round]()
    target_codes, gain = spec.anchors.target_codes, 1.0
    codes, target_weight = target_codes, np.zeros(len(scores))
    if self_training is not None or (target_codes != UNLABELLED).any():
        training.add_rows(reader.read_anchors(slice(n, n_anchors), vectors), scores)
        train_auc = mean_auc(labelled_scores, problem.codes)
        primal, scores, rounds, codes, target_weight = _self_train(
            training, result, scores, train_auc, self_training, choose
        )
    has_pseudo_labels = any(r.kept and r.n_labelled for r in rounds)
    targets = None
    if aligned is not None:
        if not has_pseudo_labels:
            temperature = held_out.target_temperature()
        gain = expect_gain(rounds, self_training, len(weight))
        targets = [
            describe_target(scores[group], temperature, first, held_out, shares, border, gain)
            for group, first, shares in zip(aligned.groups, aligned.first, aligned.shares, strict=True)
        ]
    if primal is not start:
        labelled_scores = labelled.score(primal)
    move_scores = moves.T @ (labelled_scores - primal.intercept)
    trained = scores, start, codes, target_weight
    if aligned is None:
        return ManyRowsFit(primal, rounds, targets, move_scores, temperature, *trained)
    first_scores = np.zeros(scores.shape)
    for group, group_scores in zip(aligned.groups, aligned.first, strict=True):
        first_scores[group] = group_scores
    known = vectors, aligned.center, first_scores, gain
    return ManyRowsFit(primal, rounds, targets, move_scores, temperature, *trained, *known)


@dataclass(frozen=True)
class _Alignment:
    groups: list[np.ndarray]  # target anchors of every target, counted from the first target anchor
    first: list[np.ndarray]  # their scores before any centring
    shares: list[Shares]
    moves: np.ndarray  # (n, n_domains) the combination of labelled anchors that is added to a domain's rows
    center: np.ndarray  # (n_outputs,) score of the sources' mean


def _align(
    result: SearchResult,
    mean_scores: np.ndarray,
    train_scores: np.ndarray,
    scores: np.ndarray,
    held_out: HeldOut,
    border: BorderOptions,
) -> _Alignment:
    """Estimate the shares of every target, and how its rows are moved.

    Parameters
    ----------
    mean_scores : array of shape (n_domains, n_outputs)
        Of what is subtracted from the rows of every domain.
    train_scores, scores : arrays of shape (n, n_outputs) and (n_target_anchors, n_outputs)
        Of the labelled and of the target anchors, centred.
    """
    problem, domain = result.spec.problem, result.spec.anchors.domain
    n = len(problem.codes)
    center = mean_scores[domain[:n]].mean(axis=0)
    groups, first, estimates = [group - n for group in list_target_rows(result)], [], []
    moves = np.zeros((n, len(result.spec.rows.domains)))
    for group, known in zip(groups, fill_shares(border, result), strict=True):
        k = domain[n + group[0]]
        offset = mean_scores[k] - center
        first.append(scores[group] + offset)
        labelled_rows = take_labelled(first[-1], result.spec.anchors.target_codes[group])
        seen = first[-1], held_out.scores, held_out.codes
        estimate = estimate_shares(*seen, problem.n_classes, known, labelled_rows, held_out.transfer)
        estimates.append(estimate)
        change = offset - estimate.midpoint
        moves[:, k] = choose_move(train_scores, problem.codes, problem.n_classes, change)
    return _Alignment(groups, first, estimates, moves, center)


def _self_train(
    training: Training,
    result: SearchResult,
    scores: np.ndarray,
    train_auc: float,
    options: SelfTraining | None,
    choose: ChoosePseudoLabels,
) -> tuple[Primal, np.ndarray, list[Round], np.ndarray, np.ndarray]:
    """Train in rounds as `self_training.self_train` does.

    Return the classifier, scores, rounds, and labels and weights of the target rows that it was trained with.

    Target rows whose class is known have their label in every round, and without self-training too.
    """
    problem, K, C = result.spec.problem, result.chosen.K, result.chosen.C
    target_codes = result.spec.anchors.target_codes
    is_known, start = target_codes != UNLABELLED, choose(scores, 1.0)[0]

    def retrain(codes: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        codes = np.where(is_known, target_codes, codes)
        weight = np.where(is_known, LABEL_WEIGHT, weight)
        return *training.retrain(signs(codes, problem.n_classes), weight), codes, weight

    def evaluate(n_labelled: int) -> Round:
        trip = round_trip_auc(K, problem, C, scores)
        is_kept = retained_auc(trip, train_auc) >= LEAST_RETAINED
        return Round(n_labelled, trip, float(np.mean(choose(scores, 1.0)[0] != start)), is_kept)

    kept: tuple[Any, np.ndarray, np.ndarray, np.ndarray] = None, scores, start, np.zeros(len(scores))
    if is_known.any():
        kept = retrain(start, np.zeros(len(scores)))
        scores = kept[1]
    rounds = [] if options is None else [evaluate(0)]
    for r in range(1, options.n_rounds + 1 if options else 1):
        if options is None or not rounds[-1].kept:
            break
        pseudo_labels, chosen = choose(scores, options.share * r / options.n_rounds)
        weight = np.zeros(len(scores))
        weight[chosen] = options.weight
        retrained = retrain(pseudo_labels, weight)
        scores = retrained[1]
        rounds.append(evaluate(len(chosen)))
        if rounds[-1].kept:
            kept = retrained
    primal = training.start if kept[0] is None else training.finish(kept[0])
    return primal, kept[1], rounds, kept[2], kept[3]
