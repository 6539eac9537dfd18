"""Fit the linear classifier on a chosen stack, as weights of every layer, so that prediction is one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._core import Array, Rows, array_ops, domain_centred_gram, hidden_rows, primal_weights, submatrix
from .._inputs import to_host
from ..representation import MSDA
from .alignment import undo_moves
from .anchors import CALIBRATION_ROWS, draw_labelled_rows
from .calibration import find_border
from .data import UNLABELLED
from .linear import Dual, least_squares, mean_auc, signs
from .many_rows import ManyRowsTrainer, RowReader, recentre_sources
from .primal import NormalEquations
from .readout import Readout, ReadoutOptions
from .safeguard import FEW_TARGET_ROWS, Signals, compare_with_source_only, decide_fallback, measure_rows
from .search import SearchResult
from .selection import Problem, draw_folds, held_out_scores
from .self_training import Round, retained_auc, round_trip_auc
from .shares import Shares
from .source_only import SourceOnly
from .targets import (
    BorderOptions,
    DualTrainer,
    HeldOut,
    Target,
    TargetFit,
    fill_shares,
    fit_to_targets,
    list_target_rows,
)
from .update_state import FittedWeights, draw_state_rows, keep_state, needs_state, read_columns
from .updating import UpdateState, learn_labels
from .views import View, list_views, score_means


def fit_readout(
    result: SearchResult, codes: np.ndarray, weight: np.ndarray, options: ReadoutOptions
) -> Readout:
    """Fit the classifier of the chosen stack: on inner products, or in the primal where rows are many.

    Parameters
    ----------
    codes, weight : arrays of shape (n_labelled,)
        Class codes and weights of all labelled rows, of which the anchors may be a sample.
    """
    if len(result.spec.problem.codes) < len(codes):
        return _fit_primal_readout(result, codes, weight, options)
    return _fit_dual_readout(result, options)


def _fit_dual_readout(result: SearchResult, options: ReadoutOptions) -> Readout:
    spec, chosen, problem = result.spec, result.chosen, result.spec.problem
    views = list_views(result)
    held_out = score_held_out(chosen.K, chosen.C, problem, options, len(spec.rows.domains))
    fit = fit_to_targets(result, DualTrainer(result), held_out, options.self_training, options.border)
    dual, aligned = fit.trained.model, fit.alignment
    if aligned is not None:
        dual = undo_moves(dual, aligned.moves, spec.anchors.domain[: len(dual.coef)])
    is_kept = needs_state(result, options) and problem.solver is least_squares
    drawn = draw_state_rows(result, options) if is_kept else None
    coefs = [dual.coef] if aligned is None else [dual.coef, result.start.coef, aligned.moves]
    products = [_layer_products(view, result, coefs, drawn and drawn[0]) for view in views]
    weights = [[w[0] for w in layers] for layers, _ in products]
    readout = _build(result, fit, weights, dual.intercept, score_means(views, weights))
    if drawn is not None:
        shares = [share or 1.0 for view in views for share in view.stack.shares]
        parts = list(zip(*(w for layers, _ in products for w in layers), strict=True))
        moves = None if aligned is None else [w / share for w, share in zip(parts[2], shares, strict=True)]
        fitted = FittedWeights(parts[0], [] if aligned is None else parts[1], result.start.intercept, moves)
        columns = [A for _, columns in products for A in columns]
        state = keep_state(result, held_out, fit, fitted, readout, columns, drawn, options)
        readout = _learn(readout, state, options)
    return _guard(readout, result, held_out, fit.trained.scores, options)


def _guard(
    readout: Readout,
    result: SearchResult,
    held_out: HeldOut,
    scores: np.ndarray,
    options: ReadoutOptions,
    refit_source_only: Callable[[], SourceOnly] | None = None,
) -> Readout:
    """Measure what speaks against adapting, and fall back where that is asked for and something blocks.

    `scores` are of the target anchors, without a border. `refit_source_only` trains the classifier of a
    fallback on more rows than the anchors.
    """
    signals, source_only = _measure_signals(result, readout.labelled_counts), result.source_only
    if signals is None:
        return readout
    if source_only is not None:
        signals = _compare(signals, result, readout.rounds, scores, source_only)
    if len(held_out.codes) >= FEW_TARGET_ROWS:
        signals = replace(signals, held_out_auc=mean_auc(held_out.scores, held_out.codes))
    has_target_labels = bool((result.spec.anchors.target_codes != UNLABELLED).any())
    # target labels are evidence that a fallback would ignore
    can_fall_back = options.has_fallback and source_only is not None and not has_target_labels
    has_extra, shares = bool(result.spec.rows.extra), _list_shares(readout.targets)
    caution = decide_fallback(signals, can_fall_back, has_extra=has_extra, shares=shares)
    readout = replace(readout, caution=caution, transfer=held_out.transfer)
    if caution["fell_back"] and source_only is not None:
        source_only = source_only if refit_source_only is None else refit_source_only()
        return _replace_by_source_only(readout, result, source_only, options)
    return readout


def _build(
    result: SearchResult,
    fit: TargetFit | None,
    weights: list[list[np.ndarray]],
    intercept: np.ndarray,
    offsets: np.ndarray,
) -> Readout:
    """Return the classifier, with the moves and the borders of its targets in their offsets."""
    rows, extra = result.spec.rows, [w for (w,) in weights[1:]]
    counts = to_host(array_ops(rows.labelled).nonzero_counts(rows.labelled))
    if fit is None:
        return Readout(weights[0], extra, intercept, offsets, [], counts, 1.0)
    offsets = offsets - fit.move_scores
    if fit.targets is not None:
        offsets[rows.target_positions] -= np.array([target.shift for target in fit.targets])
    rounds = fit.trained.rounds
    return Readout(weights[0], extra, intercept, offsets, rounds, counts, fit.temperature, fit.targets)


def read_out(result: SearchResult, dual: Dual) -> Readout:
    """Return a linear model, of any outputs, as weights of every layer, with doubts that its rows raise."""
    views = list_views(result)
    products = [_layer_products(view, result, [dual.coef]) for view in views]
    weights = [[w[0] for w in layers] for layers, _ in products]
    readout = _build(result, None, weights, dual.intercept, score_means(views, weights))
    signals = _measure_signals(result, readout.labelled_counts)
    if signals is None:
        return readout
    caution = decide_fallback(signals, False, has_extra=bool(result.spec.rows.extra))
    return replace(readout, caution=caution)


def _measure_signals(result: SearchResult, counts: np.ndarray) -> Signals | None:
    rows = result.spec.rows
    return measure_rows([rows.domains[number] for number in rows.targets], counts)


def _list_shares(targets: list[Target] | None) -> list[Shares]:
    return [target.shares for target in targets or []]


def _compare(
    signals: Signals, result: SearchResult, rounds: list[Round], scores: np.ndarray, source_only: SourceOnly
) -> Signals:
    """Add how the adapted classifier does on the target anchors, against the source-only one."""
    chosen, problem = result.chosen, result.spec.problem
    n = len(problem.codes)
    kept = [r.round_trip for r in rounds if r.kept] or [r.round_trip for r in rounds[:1]]
    trip_auc = kept[-1] if kept else round_trip_auc(chosen.K, problem, chosen.C, scores)
    train_auc = mean_auc(result.start.scores(chosen.K[:n, :n]), problem.codes)
    return compare_with_source_only(signals, scores, retained_auc(trip_auc, train_auc), source_only)


def _replace_by_source_only(
    readout: Readout, result: SearchResult, source_only: SourceOnly, options: ReadoutOptions
) -> Readout:
    """Return the source-only classifier in the same form: layers get weight 0, targets share one offset."""
    weights = [source_only.weights, *(np.zeros_like(w) for w in readout.weights[1:])]
    extra = [np.zeros_like(w) for w in readout.extra_weights]
    offsets = score_means(list_views(result), [weights, *([w] for w in extra)])
    positions = result.spec.rows.target_positions
    offsets[positions] = source_only.offset
    spec, problem, means = result.spec, result.spec.problem, result.chosen.stack.means
    X, domain = spec.anchors.X[: len(problem.codes)], spec.anchors.domain[: len(problem.codes)]
    K = domain_centred_gram(X, None if means is None else means[0], domain)
    C = result.chosen.candidate.C / (float(K.diagonal().mean()) or 1.0)
    temperature = score_held_out(K, C, problem, options).temperature
    if spec.center == "classes":
        offsets[positions] -= _source_only_shifts(result, source_only, temperature, options.border)
    return replace(
        readout,
        weights=weights,
        extra_weights=extra,
        intercept=source_only.intercept,
        offsets=offsets,
        temperature=temperature,
        targets=None,
    )


def _source_only_shifts(
    result: SearchResult, source_only: SourceOnly, temperature: float, border: BorderOptions
) -> np.ndarray:
    """Return the shift of every target's scores for the shares that are known, or else for the source's.

    The source-only classifier was trained with classes that count alike.
    """
    problem, n = result.spec.problem, len(result.spec.problem.codes)
    assumed = (np.bincount(problem.codes, minlength=problem.n_classes) / n).tolist()
    shifts = []
    for group, known in zip(list_target_rows(result), fill_shares(border, result), strict=True):
        shares, scores = np.array(known or assumed), source_only.scores[group - n]
        shifts.append(border.split(find_border(scores, temperature, shares), temperature, shares)[0])
    return np.array(shifts)


def _layer_products(
    view: View, result: SearchResult, coefs: Sequence[np.ndarray], kept: np.ndarray | None = None
) -> tuple[list[list[np.ndarray]], list[Rows]]:
    """``w_t = sum_i coef_i h^t(x_i)`` for every layer and each of several matrices of coefficients.

    Prediction then needs no training row. Also return the anchors numbered `kept` at every layer.
    """
    n = max(map(len, coefs)) if kept is None else view.anchors.shape[0]
    X, domain, stack = view.anchors[:n], result.spec.anchors.domain[:n], view.stack
    means: Any = stack.means or (None,) * (len(stack.layers) + 1)
    if result.hidden is not None and stack is result.chosen.stack:
        layers = chain([X], (H[:n] for H in result.hidden))
    else:
        layers = chain([X], hidden_rows(stack.layers, result.spec.place.move_rows(view.first(X))))
    coef = np.hstack([np.pad(c, ((0, n - len(c)), (0, 0))) for c in coefs])
    edges = np.cumsum([c.shape[1] for c in coefs])[:-1]
    weights, columns = [], []
    for H, layer_means, share in zip(layers, means, stack.shares, strict=True):
        weights.append(np.split(primal_weights(H, layer_means, domain, coef * share), edges, axis=1))
        if kept is not None:
            columns.append(to_host(H if len(kept) == n else H[kept]))
    return weights, columns


def _learn(readout: Readout, state: UpdateState, options: ReadoutOptions) -> Readout:
    """Learn the labels of target rows that are in the state of a classifier, and keep the state."""
    readout, n_layers = replace(readout, state=state if options.keeps_state else None), len(readout.weights)
    if state.labelled is None:
        return readout
    learnt = learn_labels(state)
    return replace(
        readout,
        weights=learnt.weights[:n_layers],
        extra_weights=learnt.weights[n_layers:],
        intercept=learnt.intercept,
        offsets=learnt.shifted_offsets(state),
        targets=learnt.targets,
        label_weight=learnt.label_weight,
    )


def _fit_primal_readout(
    result: SearchResult, codes: np.ndarray, weight: np.ndarray, options: ReadoutOptions
) -> Readout:
    """Train on all labelled rows by sums over them; the anchors are a sample of them, and target rows."""
    problem, memory_budget = result.spec.problem, options.memory_budget
    reader = RowReader(list_views(result), result, options.loss, memory_budget)
    centred = recentre_sources(result, reader, codes)  # the state keeps the means that K has
    views = list_views(centred)
    reader = RowReader(views, centred, options.loss, memory_budget)
    n_domains = len(result.spec.rows.domains)
    held_out = score_held_out(result.chosen.K, result.chosen.C, problem, options, n_domains)
    trainer = ManyRowsTrainer(centred, reader, codes, weight, options.loss)
    fit = fit_to_targets(centred, trainer, held_out, options.self_training, options.border)
    primal, start = fit.trained.model, trainer.start
    weights = reader.split_weights(primal)
    readout = _build(result, fit, weights, primal.intercept, score_means(views, weights))
    if needs_state(result, options) and options.loss == "least-squares":
        roots = [np.sqrt(share) or 1.0 for view in views for share in view.stack.shares]
        moves = trainer.vectors and [v / root for v, root in zip(trainer.vectors, roots, strict=True)]
        last, first = (list(chain(*reader.split_weights(model))) for model in (primal, start))
        fitted = FittedWeights(last, first, start.intercept, moves, has_learnt_labels=True)
        drawn = draw_state_rows(result, options)
        columns = [A for view in views for A in read_columns(view, result, drawn[0])]
        state = keep_state(result, held_out, fit, fitted, readout, columns, drawn, options)
        readout = _learn(readout, state, options)
    source_only = result.source_only

    def refit_source_only() -> SourceOnly:
        assert source_only is not None
        return _fit_source_only_to_all(result, source_only, reader, codes, weight)

    return _guard(readout, result, held_out, fit.trained.scores, options, refit_source_only)


def _fit_source_only_to_all(
    result: SearchResult, source_only: SourceOnly, reader: RowReader, codes: np.ndarray, weight: np.ndarray
) -> SourceOnly:
    """Train the source-only classifier on all labelled rows instead of a sample of them."""
    rows, share = reader.read_labelled().take_input(), result.chosen.stack.shares[0]
    primal = NormalEquations(rows, signs(codes, result.spec.problem.n_classes), source_only.C, weight).start
    return replace(source_only, weights=primal.weights[0] * np.sqrt(share), intercept=primal.intercept)


def build_representation(classifier: Any, result: SearchResult) -> MSDA:
    """Return the chosen stack of a classifier as a fitted MSDA."""
    names = ("ridge", "activation", "binarize", "max_upper_rows", "device", "precision")
    candidate, options = result.candidate, {name: getattr(classifier, name) for name in names}
    msda = MSDA(candidate.n_layers, candidate.noise, n_pivots=result.spec.n_pivots, **options)
    msda.layers_ = [result.spec.place.copy_to_host(layer) for layer in result.chosen.stack.layers]
    msda.n_features_in_ = classifier.n_features_in_
    if hasattr(classifier, "feature_names_in_"):
        msda.feature_names_in_ = classifier.feature_names_in_
    if result.split is not None:
        msda.pivots_, msda.parts_ = result.split.pivots, result.split.parts
    return msda


def score_held_out(
    K: Array, C: float, problem: Problem, options: ReadoutOptions, n_domains: int = 3
) -> HeldOut:
    """Score labelled rows, or `CALIBRATION_ROWS` of them, by classifiers that have not seen them.

    With a class of a single row there are no folds: scores on the training rows take their place.
    """
    random_state, rows = check_random_state(options.random_state), np.arange(len(problem.codes))
    if len(rows) > CALIBRATION_ROWS:
        rows = draw_labelled_rows(problem.codes, CALIBRATION_ROWS, random_state)
        K = submatrix(K, rows, rows)
    K = K[: len(rows), : len(rows)]
    codes, weight = problem.codes[rows], problem.weight[rows]
    has_singleton_class = np.bincount(codes, minlength=problem.n_classes).min() < 2
    if has_singleton_class:
        return HeldOut(problem.fit(K, rows, C).scores(K), codes, weight, n_domains)
    folds = draw_folds(codes, options.n_folds, check_random_state(options.random_state))
    (scores,) = held_out_scores(K, problem.take(rows, folds), [C])
    return HeldOut(scores, codes, weight, n_domains)
