"""The linear classifier on a chosen stack, as weights of every layer, so that prediction is one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core.gram import primal_weights
from ._core.stack import hidden
from .linear import Dual, fitted_temperature, signs
from .primal import fit_primal, layer_rows
from .search import Search
from .selection import held_out_scores
from .self_training import Round, SelfTraining, self_trained


@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows whose domain's mean has been subtracted."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs): the score of each domain's mean
    rounds: list[Round]  # of self-training


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
        weights, intercept = _layer_weights(search, dual), dual.intercept
    # subtracting a domain's mean from its rows is subtracting one number from its scores
    offsets = np.zeros((len(search.rows.domains), len(intercept)))
    for means, own in zip(found.means or [], weights, strict=False):
        offsets += means @ own
    return Readout(weights, intercept, offsets, rounds)


def _layer_weights(search: Search, dual: Dual) -> list[np.ndarray]:
    """``w_t = sum_i dual_i h^t(x_i)`` for every layer: prediction needs no training row."""
    found, n = search.found, len(dual.coef)
    X, domain = search.anchors.X[:n], search.anchors.domain[:n]
    means: Any = found.means or (None,) * (len(found.layers) + 1)
    weights = [primal_weights(X, means[0], domain, dual.coef * found.shares[0])]
    rows = hidden(found.layers, search.place.rows(search.first_rows(X)))
    for H, own, share in zip(rows, means[1:], found.shares[1:], strict=True):
        weights.append(primal_weights(H, own, domain, dual.coef * share))
    return weights


def _primal(
    search: Search, Y: np.ndarray, C: float, weight: np.ndarray, loss: str, memory_budget: float
) -> tuple[list[np.ndarray], np.ndarray]:
    """Minimise over all labelled rows, block by block, on the host."""
    found = search.found
    layers = [search.place.fetched(layer) for layer in found.layers]
    rows = layer_rows(search.rows, search.first_rows, layers, found.means, found.shares, memory_budget)
    primal = fit_primal(rows, Y, C, weight, loss)
    scaled = [own * np.sqrt(share) for own, share in zip(primal.weights, found.shares, strict=True)]
    return scaled, primal.intercept


def calibrated_temperature(search: Search) -> float:
    """Temperature at which out-of-fold scores of the source are best as log odds."""
    found, problem = search.found, search.problem
    (scores,) = held_out_scores(found.K, problem, [found.candidate.C / found.scale])
    return fitted_temperature(scores, problem.codes)
