"""The linear classifier on a chosen stack, as weights of every layer, so that prediction is one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._core import Rows, array_ops, domain_centred_gram, hidden_rows, primal_weights, submatrix
from .._inputs import to_host
from ..representation import MSDA
from .data import TrainingRows
from .extra_features import Branch, as_given
from .linear import Dual, fitted_temperature, signs, winners
from .primal import beside, fit_primal, layer_rows
from .safeguard import Signals, SourceOnly, caution, compared, retained, seen_of
from .search import Search, some_of_every_class
from .selection import folds, held_out_scores
from .self_training import Round, SelfTraining, round_trip, self_trained

CALIBRATION_ROWS = 4_000  # labelled rows that the temperature is fitted on, where there are more


@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows whose domain's mean has been subtracted."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs): the score of each domain's mean
    rounds: list[Round]  # of self-training
    block_weights: list[np.ndarray]  # of every extra block
    labelled_counts: np.ndarray  # (d,) in how many labelled rows each feature is not zero
    caution: dict[str, Any] | None = None  # with a target: what speaks against adapting, and what was done


def read_out(
    search: Search,
    codes: np.ndarray,
    weight: np.ndarray,
    loss: str,
    self_training: SelfTraining | None,
    memory_budget: float,
    fallback: bool = False,
) -> Readout:
    """Solve for the classifier of the chosen stack: on inner products, or in the primal where rows are many.

    Parameters
    ----------
    codes, weight : arrays of shape (n_labelled,)
        Class codes and weights of all labelled rows, of which the anchors may be a sample.
    loss : {"least-squares", "hinge"}
        For the primal; the solver on inner products is `search.problem.solver`.
    fallback : bool
        Whether a grave reason against adapting leaves the source-only classifier.
    """
    found, problem = search.found, search.problem
    rounds: list[Round] = []
    C, n = found.candidate.C / found.scale, len(problem.codes)
    labelled, without = search.rows.labelled, None
    counts = to_host(array_ops(labelled).nonzero_counts(labelled))
    signals = seen_of([search.rows.domains[number] for number in search.rows.targets], counts)
    if n < len(codes):
        weights, intercept = _primal(search, signs(codes, problem.n_classes), C, weight, loss, memory_budget)
    else:
        if self_training is not None and len(found.K) > n:
            dual, rounds = self_trained(found.K, problem, C, self_training)
        else:
            dual = problem.fitted(found.K[:n, :n], np.arange(n), C)
        without = search.without.get(found.candidate.C)
        if signals is not None and without is not None:
            signals = _measured(signals, search, dual, rounds, without)
        weights, intercept = [_layer_weights(view, search, dual) for view in _views(search)], dual.intercept
    of_blocks = [w for (w,) in weights[1:]]
    readout = Readout(weights[0], intercept, _offsets(search, weights), rounds, of_blocks, counts)
    if signals is None:
        return readout
    told = caution(signals, fallback and without is not None, is_all=not search.rows.blocks)
    readout = replace(readout, caution=told)
    return _unadapted(readout, search, without) if told["fell_back"] and without else readout


def _offsets(search: Search, weights: list[list[np.ndarray]]) -> np.ndarray:
    """Subtracting a domain's mean from its rows is subtracting one number from its scores."""
    offsets = np.zeros((len(search.rows.domains), weights[0][0].shape[1]))
    for view, own in zip(_views(search), weights, strict=True):
        for means, w in zip(view.branch.means or [], own, strict=False):
            offsets += means @ w
    return offsets


def _measured(
    signals: Signals, search: Search, dual: Dual, rounds: list[Round], without: SourceOnly
) -> Signals:
    """Add how the adapted classifier fares on the target anchors, against the source-only one."""
    found, problem = search.found, search.problem
    n, C = len(problem.codes), found.candidate.C / found.scale
    scores = dual.scores(found.K[:, : len(dual.coef)])
    kept = [own.round_trip for own in rounds if own.kept] or [own.round_trip for own in rounds[:1]]
    trip = kept[-1] if kept else round_trip(found.K, problem, C, winners(scores[n:]))
    return compared(signals, scores[n:], retained(trip, problem.accuracy(scores[:n]), problem), without)


def _unadapted(readout: Readout, search: Search, without: SourceOnly) -> Readout:
    """Return the source-only classifier in the same form: only the input counts; one target offset."""
    weights = [without.weights, *(np.zeros_like(own) for own in readout.weights[1:])]
    blocks = [np.zeros_like(block) for block in readout.block_weights]
    offsets = _offsets(search, [weights, *([block] for block in blocks)])
    offsets[[i for i, number in enumerate(search.rows.domains) if number < 0]] = without.offset
    return replace(
        readout, weights=weights, block_weights=blocks, intercept=without.intercept, offsets=offsets
    )


@dataclass(frozen=True)
class _View:
    """X or an extra block: the columns of the anchors and of the labelled rows, and the stack on them."""

    anchors: Rows
    rows: TrainingRows
    branch: Branch
    first: Callable[[Rows], Rows]


def _views(search: Search) -> list[_View]:
    """X, then the extra blocks."""
    found, rows = search.found, search.rows
    own = _View(search.anchors.X, rows, Branch(found.layers, found.means, found.shares), search.first_rows)
    blocks = zip(search.anchors.blocks, rows.blocks, found.branches, strict=True)
    return [own, *(_View(*parts, as_given) for parts in blocks)]


def _layer_weights(view: _View, search: Search, dual: Dual) -> list[np.ndarray]:
    """``w_t = sum_i dual_i h^t(x_i)`` for every layer: prediction needs no training row."""
    n, branch = len(dual.coef), view.branch
    X, domain = view.anchors[:n], search.anchors.domain[:n]
    means: Any = branch.means or (None,) * (len(branch.layers) + 1)
    weights = [primal_weights(X, means[0], domain, dual.coef * branch.shares[0])]
    rows = hidden_rows(branch.layers, search.place.move_rows(view.first(X)))
    for H, own, share in zip(rows, means[1:], branch.shares[1:], strict=True):
        weights.append(primal_weights(H, own, domain, dual.coef * share))
    return weights


def _primal(
    search: Search, Y: np.ndarray, C: float, weight: np.ndarray, loss: str, memory_budget: float
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """Minimise over all labelled rows, block by block, on the host."""
    views = _views(search)
    rows = [
        layer_rows(
            view.rows,
            view.first,
            [search.place.copy_to_host(layer) for layer in view.branch.layers],
            view.branch.means,
            view.branch.shares,
            memory_budget,
        )
        for view in views
    ]
    primal = fit_primal(beside(rows), Y, C, weight, loss)
    found = iter(primal.weights)
    weights = [[next(found) * np.sqrt(share) for share in view.branch.shares] for view in views]
    return weights, primal.intercept


def chosen_stack(classifier: Any, search: Search) -> MSDA:
    """Return the chosen stack of a classifier as a fitted MSDA."""
    names = ("ridge", "activation", "n_pivots", "binarize", "max_upper_rows", "device", "precision")
    chosen = search.found.candidate
    msda = MSDA(chosen.n_layers, chosen.noise, **{name: getattr(classifier, name) for name in names})
    msda.layers_ = [search.place.copy_to_host(layer) for layer in search.found.layers]
    msda.n_features_in_ = classifier.n_features_in_
    if hasattr(classifier, "feature_names_in_"):
        msda.feature_names_in_ = classifier.feature_names_in_
    if search.split is not None:
        msda.pivots_, msda.parts_ = search.split.pivots, search.split.parts
    return msda


def calibrated_temperature(classifier: Any, search: Search, fell_back: bool = False) -> float:
    """Temperature at which out-of-fold scores of the source are best as log odds.

    With a class of a single row there are no folds: scores on the training rows take their place.
    """
    found, problem = search.found, search.problem
    n, C, K = len(problem.codes), found.candidate.C / found.scale, found.K
    if fell_back:  # the inner products of the input alone, which the layers' were added to
        X, domain = search.anchors.X[:n], search.anchors.domain[:n]
        K = domain_centred_gram(X, None if found.means is None else found.means[0], domain)
        C = found.candidate.C / (float(K.diagonal().mean()) or 1.0)
    random_state, rows = check_random_state(classifier.random_state), np.arange(n)
    if n > CALIBRATION_ROWS:
        rows = some_of_every_class(problem.codes, CALIBRATION_ROWS, random_state)
        K = submatrix(K, rows, rows)
    codes = problem.codes[rows]
    if np.bincount(codes, minlength=problem.n_classes).min() < 2:
        scores = problem.fitted(K[:n, :n], rows, C).scores(K[:n, :n])
    else:
        drawn = folds(codes, classifier.n_folds, random_state)
        problem = replace(problem, codes=codes, weight=problem.weight[rows], folds=drawn)
        (scores,) = held_out_scores(K, problem, [C])
    return fitted_temperature(scores, codes)
