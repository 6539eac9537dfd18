"""Fit the linear classifier on a chosen stack, as weights of every layer, so that prediction is one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._core import Rows, array_ops, domain_centred_gram, hidden_rows, primal_weights, submatrix
from .._inputs import to_host
from ..representation import MSDA
from .anchors import draw_labelled_rows
from .data import TrainingRows
from .grams import Stack
from .linear import Dual, fit_temperature, predict_codes, signs
from .prediction import keep_rows
from .primal import concatenate_columns, fit_primal, layer_rows
from .safeguard import Signals, compare_with_source_only, measure_rows, write_caution
from .search import SearchResult
from .selection import draw_folds, held_out_scores
from .self_training import Round, SelfTraining, fit_dual, retained_accuracy, round_trip_accuracy
from .source_only import SourceOnly

CALIBRATION_ROWS = 4_000  # labelled rows that the temperature is fitted on, where there are more


@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows whose domain's mean has been subtracted."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    extra_weights: list[np.ndarray]  # of every matrix of extra features
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs): the score of each domain's mean
    rounds: list[Round]  # of self-training
    labelled_counts: np.ndarray  # (d,) in how many labelled rows each feature is not zero
    caution: dict[str, Any] | None = None  # with a target: what speaks against adapting, and what was done


def fit_readout(
    result: SearchResult,
    codes: np.ndarray,
    weight: np.ndarray,
    loss: str,
    self_training: SelfTraining | None,
    memory_budget: float,
    fallback: bool = False,
) -> Readout:
    """Fit the classifier of the chosen stack: on inner products, or in the primal where rows are many.

    Parameters
    ----------
    codes, weight : arrays of shape (n_labelled,)
        Class codes and weights of all labelled rows, of which the anchors may be a sample.
    loss : {"least-squares", "hinge"}
        For the primal; the solver on inner products is that of the problem.
    fallback : bool
        Whether a blocking reason against adapting leaves the source-only classifier.
    """
    spec, chosen, problem = result.spec, result.chosen, result.spec.problem
    rows, views = spec.rows, _list_views(result)
    rounds: list[Round] = []
    counts = to_host(array_ops(rows.labelled).nonzero_counts(rows.labelled))
    signals = measure_rows([rows.domains[number] for number in rows.targets], counts)
    if len(problem.codes) < len(codes):
        Y = signs(codes, problem.n_classes)
        weights, intercept = _fit_primal(result, views, Y, weight, loss, memory_budget)
    else:
        dual, rounds = fit_dual(chosen.K, problem, chosen.C, self_training)
        if signals is not None and result.source_only is not None:
            signals = _compare(signals, result, dual, rounds, result.source_only)
        weights, intercept = [_layer_weights(view, result, dual) for view in views], dual.intercept
    offsets = _domain_offsets(views, weights)
    readout = Readout(weights[0], [w for (w,) in weights[1:]], intercept, offsets, rounds, counts)
    if signals is None:
        return readout
    can_fall_back = fallback and result.source_only is not None
    caution = write_caution(signals, can_fall_back, has_extra=bool(rows.extra))
    readout = replace(readout, caution=caution)
    if caution["fell_back"] and result.source_only is not None:
        return _replace_by_source_only(readout, result, result.source_only)
    return readout


@dataclass(frozen=True)
class _View:
    """X or extra features: the columns of the anchors and of all rows, and the stack on them."""

    anchors: Rows
    rows: TrainingRows
    stack: Stack
    first: Callable[[Rows], Rows]


def _list_views(result: SearchResult) -> list[_View]:
    """Return X, then the extra features."""
    spec, chosen = result.spec, result.chosen
    X = _View(spec.anchors.X, spec.rows, chosen.stack, spec.first_rows)
    extra = zip(spec.anchors.extra, spec.rows.extra, chosen.extra, strict=True)
    return [X, *(_View(*parts, keep_rows) for parts in extra)]


def _domain_offsets(views: list[_View], weights: list[list[np.ndarray]]) -> np.ndarray:
    """Return the scores of the domains' means: subtracting a mean from rows shifts their scores by these."""
    offsets = np.zeros((len(views[0].rows.domains), weights[0][0].shape[1]))
    for view, view_weights in zip(views, weights, strict=True):
        for means, w in zip(view.stack.means or [], view_weights, strict=False):
            offsets += means @ w
    return offsets


def _compare(
    signals: Signals, result: SearchResult, dual: Dual, rounds: list[Round], source_only: SourceOnly
) -> Signals:
    """Add how the adapted classifier does on the target anchors, against the source-only one."""
    chosen, problem = result.chosen, result.spec.problem
    n, scores = len(problem.codes), dual.scores(chosen.K[:, : len(dual.coef)])
    kept = [r.round_trip for r in rounds if r.kept] or [r.round_trip for r in rounds[:1]]
    accuracy = (
        kept[-1] if kept else round_trip_accuracy(chosen.K, problem, chosen.C, predict_codes(scores[n:]))
    )
    retained = retained_accuracy(accuracy, problem.accuracy(scores[:n]), problem)
    return compare_with_source_only(signals, scores[n:], retained, source_only)


def _replace_by_source_only(readout: Readout, result: SearchResult, source_only: SourceOnly) -> Readout:
    """Return the source-only classifier in the same form: only the input counts; one target offset."""
    weights = [source_only.weights, *(np.zeros_like(w) for w in readout.weights[1:])]
    extra = [np.zeros_like(w) for w in readout.extra_weights]
    offsets = _domain_offsets(_list_views(result), [weights, *([w] for w in extra)])
    is_target = [number < 0 for number in result.spec.rows.domains]
    offsets[is_target] = source_only.offset
    return replace(
        readout, weights=weights, extra_weights=extra, intercept=source_only.intercept, offsets=offsets
    )


def _layer_weights(view: _View, result: SearchResult, dual: Dual) -> list[np.ndarray]:
    """``w_t = sum_i dual_i h^t(x_i)`` for every layer: prediction needs no training row."""
    n, stack = len(dual.coef), view.stack
    X, domain = view.anchors[:n], result.spec.anchors.domain[:n]
    means: Any = stack.means or (None,) * (len(stack.layers) + 1)
    weights = [primal_weights(X, means[0], domain, dual.coef * stack.shares[0])]
    rows = hidden_rows(stack.layers, result.spec.place.move_rows(view.first(X)))
    for H, layer_means, share in zip(rows, means[1:], stack.shares[1:], strict=True):
        weights.append(primal_weights(H, layer_means, domain, dual.coef * share))
    return weights


def _fit_primal(
    result: SearchResult,
    views: list[_View],
    Y: np.ndarray,
    weight: np.ndarray,
    loss: str,
    memory_budget: float,
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """Minimise over all labelled rows, block by block, on the host."""
    place = result.spec.place
    rows = [
        layer_rows(
            view.rows,
            view.first,
            [place.copy_to_host(layer) for layer in view.stack.layers],
            view.stack.means,
            view.stack.shares,
            memory_budget,
        )
        for view in views
    ]
    primal = fit_primal(concatenate_columns(rows), Y, result.chosen.C, weight, loss)
    parts = iter(primal.weights)
    weights = [[next(parts) * np.sqrt(share) for share in view.stack.shares] for view in views]
    return weights, primal.intercept


def build_representation(classifier: Any, result: SearchResult) -> MSDA:
    """Return the chosen stack of a classifier as a fitted MSDA."""
    names = ("ridge", "activation", "n_pivots", "binarize", "max_upper_rows", "device", "precision")
    candidate = result.candidate
    msda = MSDA(candidate.n_layers, candidate.noise, **{name: getattr(classifier, name) for name in names})
    msda.layers_ = [result.spec.place.copy_to_host(layer) for layer in result.chosen.stack.layers]
    msda.n_features_in_ = classifier.n_features_in_
    if hasattr(classifier, "feature_names_in_"):
        msda.feature_names_in_ = classifier.feature_names_in_
    if result.split is not None:
        msda.pivots_, msda.parts_ = result.split.pivots, result.split.parts
    return msda


def calibrate(classifier: Any, result: SearchResult, fell_back: bool = False) -> float:
    """Return the temperature at which out-of-fold scores of the source are best as log odds.

    With a class of a single row there are no folds: scores on the training rows take their place.
    """
    spec, chosen, problem = result.spec, result.chosen, result.spec.problem
    n, C, K = len(problem.codes), chosen.C, chosen.K
    if fell_back:  # the inner products of the input alone, which the layers' were added to
        X, domain = spec.anchors.X[:n], spec.anchors.domain[:n]
        means = chosen.stack.means
        K = domain_centred_gram(X, None if means is None else means[0], domain)
        C = chosen.candidate.C / (float(K.diagonal().mean()) or 1.0)
    random_state, rows = check_random_state(classifier.random_state), np.arange(n)
    if n > CALIBRATION_ROWS:
        rows = draw_labelled_rows(problem.codes, CALIBRATION_ROWS, random_state)
        K = submatrix(K, rows, rows)
    codes = problem.codes[rows]
    has_singleton_class = np.bincount(codes, minlength=problem.n_classes).min() < 2
    if has_singleton_class:
        scores = problem.fit(K[: len(rows), : len(rows)], rows, C).scores(K[: len(rows), : len(rows)])
    else:
        folds = draw_folds(codes, classifier.n_folds, random_state)
        drawn = replace(problem, codes=codes, weight=problem.weight[rows], folds=folds)
        (scores,) = held_out_scores(K, drawn, [C])
    return fit_temperature(scores, codes)
