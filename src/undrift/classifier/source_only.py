"""The source-only classifier: trained on the labelled input rows, with no part for the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core import Array, Rows, array_ops, primal_weights
from .linear import mean_auc
from .selection import Problem
from .self_training import retained_auc, round_trip_auc


@dataclass(frozen=True)
class SourceOnly:
    """A classifier of the input alone, which no target row has touched, and how it does on the target."""

    weights: np.ndarray  # (d, n_outputs)
    intercept: np.ndarray  # (n_outputs,) of rows whose domain's mean has been subtracted
    offset: np.ndarray  # (n_outputs,) score of the sources' mean, which target rows are centred on as well
    scores: np.ndarray  # (n_target_anchors, n_outputs)
    retained: float  # of the area under the ROC curve above chance, after the round trip
    C: float  # as solvers take it, for inner products that are not scaled


def fit_source_only(
    K: Array, problem: Problem, C: float, X: Rows, means: np.ndarray | None, domain: np.ndarray, share: float
) -> SourceOnly:
    """Train on the labelled rows as they are.

    Subtracting a mean from all training rows moves the intercept and nothing else, so that with one
    source this equals training on rows that are not centred. Target rows are centred on the sources' mean.

    Parameters
    ----------
    K : array of shape (n_anchors, n_anchors)
        `share` times the inner products of the anchors `X`, domains centred on `means` if given.
    domain : int array of shape (n_anchors,)
        Row of `means` that belongs to each anchor.
    """
    n = len(problem.codes)
    C = C / (float(K.diagonal()[:n].mean()) or 1.0)
    dual = problem.fit(K[:n, :n], np.arange(n), C)
    weights = primal_weights(X[:n], means, domain[:n], dual.coef * share)
    offset = np.zeros(weights.shape[1]) if means is None else (means @ weights)[domain[:n]].mean(axis=0)
    ops = array_ops(X)
    scores = ops.to_numpy(X[n:] @ ops.like(weights, X)) - offset + dual.intercept
    train_auc = mean_auc(dual.scores(K[:n, :n]), problem.codes)
    retained = retained_auc(round_trip_auc(K, problem, C, scores), train_auc)
    return SourceOnly(weights, dual.intercept, offset, scores, retained, C)
