"""The source-only classifier: trained on the labelled input rows, with no part for the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..core import Array, domain_centred_gram, primal_weights
from .calibrate import (
    ExpectedError,
    HeldOut,
    Target,
    expect_chance,
    find_border,
    score_held_out,
    split_border,
)
from .layers import Anchors, Stack, score_centres
from .self_train import retained_auc, round_trip_auc
from .shares import Shares
from .solve import (
    Labels,
    NormalEquations,
    Posterior,
    mean_auc,
    mean_diagonal,
    multiply,
    predict_codes,
    read_layers,
    signs,
)

if TYPE_CHECKING:
    from .choose import Base
    from .train import Fit, Readout


@dataclass(frozen=True)
class SourceOnly:
    """A classifier of the input alone, which no target row has touched, and how it does on the target."""

    weights: np.ndarray  # (d, n_outputs)
    intercept: np.ndarray  # (n_outputs,) of rows whose domain's mean has been subtracted
    offset: np.ndarray  # (n_outputs,) score of the sources' mean, which target rows are centred on as well
    scores: np.ndarray  # (n_target_anchors, n_outputs)
    retained: float  # of the area under the ROC curve above chance, after the round trip
    C: float  # as solvers take it, for inner products that are not scaled


def fit_source_only(K: Array, labels: Labels, anchors: Anchors, stack: Stack, C: float) -> SourceOnly:
    """Train on the labelled rows as they are.

    With one source this equals training on rows that are not centred. Target rows are centred on the sources'
    mean. `K` are the inner products of the anchors at the input, and `stack` is without layers.
    """
    n, X, domain = anchors.n_labelled, anchors.X, anchors.domain[: anchors.n_labelled]
    C = C / mean_diagonal(K, n)
    dual = labels.fit(K, C)
    weights = primal_weights(X[:n], stack.means[0], domain, dual.coef * stack.shares[0])
    offset = (stack.means[0] @ weights)[domain].mean(axis=0)
    scores = multiply(X[n:], weights) - offset + dual.intercept
    train_auc = mean_auc(dual.scores(K[:n, :n]), labels.codes)
    retained = retained_auc(round_trip_auc(K, labels, C, scores), train_auc)
    return SourceOnly(weights, dual.intercept, offset, scores, retained, C)


def fall_back(fit: Fit, readout: Readout, *, keeps_shares: bool) -> Readout:
    """Return the source-only classifier as a readout: layers get weight 0, targets share one offset.

    Its decision threshold is that of the source, with the source's class shares as odds, unless the user
    gave a target's. No score of the target moves it. `lab/scripts/fallback.py` compares the thresholds.
    With `keeps_shares` it is instead where every target gets the source's class shares, and the results say
    the bounds of its error.
    """
    base = fit.base
    source_only, chosen, labels = base.source_only, base.chosen, base.labels
    assert source_only is not None
    if base.anchors.needs_sums:
        source_only = _fit_to_all(base, source_only)
    weights = [source_only.weights, *(np.zeros_like(w) for w in readout.weights[1:])]
    offsets, positions = score_centres(chosen.stack.means, weights), base.domains.target_positions
    offsets[positions] = source_only.offset
    X, domain = base.anchors.X[: len(labels.codes)], base.anchors.domain[: len(labels.codes)]
    K = domain_centred_gram(X, chosen.stack.means[0], domain)
    C = chosen.candidate.C / mean_diagonal(K)
    posterior, scores = Posterior.invert(K, C, labels.weight), labels.fit(K, C).scores(K)
    held_out, targets = score_held_out(posterior, labels, scores, fit.seed), []
    if base.center == "classes":
        targets = _describe_targets(fit, source_only, held_out, keeps_shares)
        offsets[positions] -= [target.shift for target in targets]
    return replace(
        readout,
        weights=weights,
        intercept=source_only.intercept,
        offsets=offsets,
        temperature=held_out.temperature,
        source_temperature=held_out.temperature,
        targets=targets if keeps_shares else None,
    )


def _describe_targets(
    fit: Fit, source_only: SourceOnly, held_out: HeldOut, keeps_shares: bool
) -> list[Target]:
    """Return the decision threshold of every target, and the bounds of its error.

    At best it is as wrong as on held-out rows of the source, and at worst as predictions at random, at the
    shares that are assumed or estimated. Its classes counted alike.
    """
    temperature, source, targets = held_out.temperature, held_out.class_shares, []
    none = np.zeros(source_only.scores.shape[1])
    odds = split_border(none, temperature, source, is_balanced=True)[1]
    aligned = fit.aligned
    assert aligned is not None
    for group, estimate, known in zip(aligned.groups, aligned.shares, fit.known_shares, strict=True):
        scores, shares = source_only.scores[group], np.array(known or source)
        border = odds if known is None and not keeps_shares else find_border(scores, temperature, shares)
        shift, prior = split_border(border, temperature, shares, fit.is_balanced)
        codes = predict_codes(scores + shift)
        chance = max(expect_chance(codes, shares), expect_chance(codes, estimate.mean))
        bounds = ExpectedError(None, min(held_out.error, chance), chance)
        targets.append(Target(Shares(shares[None], none, is_assumed=True), shift, prior, bounds))
    return targets


def _fit_to_all(base: Base, source_only: SourceOnly) -> SourceOnly:
    """Train the source-only classifier on all labelled rows instead of a sample of them."""
    domains, stack = base.domains, base.chosen.stack
    bottom = replace(stack, layers=(), means=stack.means[:1], shares=stack.shares[:1])
    rows = read_layers(domains.labelled, domains.domain, bottom, base.place)
    Y = signs(domains.y, base.labels.n_classes)
    (weights,), intercept = NormalEquations(rows, Y, source_only.C, base.weight).solve()
    return replace(source_only, weights=weights, intercept=intercept)
