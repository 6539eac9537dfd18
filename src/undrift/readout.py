"""The linear classifier on a chosen stack, as weights of every layer, so that prediction is one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._core.array import arithmetic
from ._core.gram import domain_centred_gram, primal_weights
from ._core.stack import hidden
from .caution import Signals, SourceOnly, accuracy, caution, compared, retained, seen_of
from .linear import Dual, fitted_temperature, signs, winners
from .primal import fit_primal, layer_rows
from .search import Search
from .selection import held_out_scores
from .self_training import Round, SelfTraining, round_trip, self_trained


@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows whose domain's mean has been subtracted."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs): the score of each domain's mean
    rounds: list[Round]  # of self-training
    caution: dict[str, Any] | None  # with a target: what speaks against adapting, and what was done
    labelled_counts: np.ndarray  # (d,) in how many labelled rows each feature is not zero


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
    counts, without = arithmetic(search.rows.labelled).nonzero_counts(search.rows.labelled), None
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
        weights, intercept = _layer_weights(search, dual), dual.intercept
    readout = Readout(weights, intercept, _offsets(search, weights), rounds, None, counts)
    if signals is None:
        return readout
    told = caution(signals, fallback and without is not None)
    readout = replace(readout, caution=told)
    return _unadapted(readout, search, without) if told["fell_back"] and without else readout


def _offsets(search: Search, weights: list[np.ndarray]) -> np.ndarray:
    """Subtracting a domain's mean from its rows is subtracting one number from its scores."""
    offsets = np.zeros((len(search.rows.domains), weights[0].shape[1]))
    for means, own in zip(search.found.means or [], weights, strict=False):
        offsets += means @ own
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
    return compared(signals, scores[n:], retained(trip, accuracy(scores[:n], problem), problem), without)


def _unadapted(readout: Readout, search: Search, without: SourceOnly) -> Readout:
    """Return the source-only classifier in the same form: no layer counts, targets share one offset."""
    weights = [without.weights, *(np.zeros_like(own) for own in readout.weights[1:])]
    offsets = _offsets(search, weights)
    offsets[[i for i, number in enumerate(search.rows.domains) if number < 0]] = without.offset
    return replace(readout, weights=weights, intercept=without.intercept, offsets=offsets)


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


def calibrated_temperature(search: Search, fell_back: bool = False) -> float:
    """Temperature at which out-of-fold scores of the source are best as log odds."""
    found, problem = search.found, search.problem
    n, C, K = len(problem.codes), found.candidate.C / found.scale, found.K
    if fell_back:  # the inner products of the input alone, which the layers' were added to
        X, domain = search.anchors.X[:n], search.anchors.domain[:n]
        K = domain_centred_gram(X, None if found.means is None else found.means[0], domain)
        C = found.candidate.C / (float(K.diagonal().mean()) or 1.0)
    (scores,) = held_out_scores(K, problem, [C])
    return fitted_temperature(scores, problem.codes)
