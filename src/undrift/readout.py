"""The linear classifier on a chosen stack, as weights of every layer, so that prediction is one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core.array import Rows
from ._core.gram import primal_weights, submatrix
from ._core.stack import hidden
from .estimators import MSDA
from .extra_blocks import Branch, as_given
from .linear import Dual, fitted_temperature, signs
from .primal import beside, fit_primal, layer_rows
from .search import Search
from .selection import Problem
from .self_training import Round, SelfTraining, self_trained
from .training import TrainingRows


@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows whose domain's mean has been subtracted."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs): the score of each domain's mean
    rounds: list[Round]  # of self-training
    block_weights: list[list[np.ndarray]]  # of every extra block and its own layers


def read_out(
    search: Search,
    codes: np.ndarray,
    weight: np.ndarray,
    loss: str,
    self_training: SelfTraining | None,
    memory_budget: float,
) -> Readout:
    """Solve for the classifier of the chosen stack: on inner products, or in the primal where rows are many.

    Parameters
    ----------
    codes, weight : arrays of shape (n_labelled,)
        Class codes and weights of all labelled rows, of which the anchors may be a sample.
    loss : {"least-squares", "hinge"}
        For the primal; the solver on inner products is `search.problem.solver`.
    """
    found, problem = search.found, search.problem
    rounds: list[Round] = []
    C, n = found.candidate.C / found.scale, len(problem.codes)
    if n < len(codes):
        weights, intercept = _primal(search, signs(codes, problem.n_classes), C, weight, loss, memory_budget)
    else:
        if self_training is not None and len(found.K) > n:
            dual, rounds = self_trained(found.K, problem, C, self_training)
        else:
            dual = problem.fitted(found.K[:n, :n], np.arange(n), C)
        weights, intercept = [_layer_weights(view, search, dual) for view in _views(search)], dual.intercept
    # subtracting a domain's mean from its rows is subtracting one number from its scores
    offsets = np.zeros((len(search.rows.domains), len(intercept)))
    for view, own in zip(_views(search), weights, strict=True):
        for means, w in zip(view.branch.means or [], own, strict=False):
            offsets += means @ w
    return Readout(weights[0], intercept, offsets, rounds, weights[1:])


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
    rows = hidden(branch.layers, search.place.rows(view.first(X)))
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
            [search.place.fetched(layer) for layer in view.branch.layers],
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
    msda.layers_ = [search.place.fetched(layer) for layer in search.found.layers]
    msda.n_features_in_ = classifier.n_features_in_
    if hasattr(classifier, "feature_names_in_"):
        msda.feature_names_in_ = classifier.feature_names_in_
    if search.split is not None:
        msda.pivots_, msda.parts_ = search.split.pivots, search.split.parts
    return msda


def calibrated_temperature(search: Search) -> float:
    """Temperature at which out-of-fold scores of the source are best as log odds."""
    found, problem = search.found, search.problem
    n, C = len(problem.codes), found.candidate.C / found.scale
    return fitted_temperature(_out_of_fold(found.K[:n, :n], problem, C), problem.codes)


def _out_of_fold(K: Any, problem: Problem, C: float) -> np.ndarray:
    scores = np.empty((len(problem.codes), signs(problem.codes[:1], problem.n_classes).shape[1]))
    for train, test in problem.folds:
        dual = problem.fitted(submatrix(K, train, train), train, C)
        scores[test] = dual.scores(submatrix(K, test, train))
    return scores
