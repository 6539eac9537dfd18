"""The rounds of CODA: fit, label the rows one view is sure of, fit again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from .views import ViewProblem, feature_cost, fit_disjoint_views, fit_sparse_logistic, split_at_random

LEAST_COST = 1e-3  # a feature that agrees perfectly in both domains is cheap, not free
LEAST_PENALTY = 1e-4
THRESHOLD_STEP, LEAST_THRESHOLD = 0.05, 0.65
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Schedule:
    """What the rounds are run with; the names are those of `CODA`'s parameters."""

    penalty: float
    decay: float
    threshold: float
    expandability: float
    n_per_round: int
    max_rounds: int


@dataclass(frozen=True)
class Round:
    """What one round did: with how many labels, how many rows it moved, under which settings."""

    n_labelled: int
    n_unlabelled: int
    n_moved: int
    penalty: float
    threshold: float


@dataclass(frozen=True)
class State:
    """Labels so far (-1, +1, and 0 for none), the classifiers, and the settings of the round at hand."""

    labels: Floats  # (n,)
    views: Floats  # (2, d): u and v; (1, d) where there is one classifier
    cost: Floats  # (d,)
    penalty: float
    threshold: float


def run_rounds(
    X: Any, labels: Floats, schedule: Schedule, rng: np.random.RandomState
) -> tuple[State, list[Round]]:
    """Run all rounds: the last state, and a record of each round. The last column of `X` is the constant.

    Columns are solved for at unit root mean square, which the optimiser likes better and the margins do not
    notice; prices are those of the weights of `X` itself, and the weights returned are too.
    """
    square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    size = np.sqrt(np.where(square > 0, square, 1.0))
    X, record = X @ sp.diags_array(1 / size), list[Round]()
    state = _start(X, size, labels, schedule, rng)
    while np.any(state.labels == 0):
        state = _fit_round(X, size, state, schedule)
        if len(record) == schedule.max_rounds:
            break
        state, moved, new_labels = _choose_confident_rows(X, state, schedule.n_per_round)
        n_unlabelled = int(np.sum(state.labels == 0))
        counts = len(labels) - n_unlabelled, n_unlabelled, len(moved)
        record.append(Round(*counts, state.penalty, state.threshold))
        if not len(moved):
            break
        more_labels = state.labels.copy()
        more_labels[moved] = new_labels
        penalty = max(state.penalty / schedule.decay, LEAST_PENALTY)
        state = replace(state, labels=more_labels, penalty=penalty)
    return replace(state, views=state.views / size), record


def price(cost: Floats, penalty: float, n_labelled: int, size: Floats) -> Floats:
    """Price of each (scaled) weight against the mean loss of the labelled rows; the constant is free."""
    priced = penalty * np.maximum(cost, LEAST_COST) / (n_labelled * size)
    return np.append(priced[:-1], 0.0)


def _start(X: Any, size: Floats, labels: Floats, schedule: Schedule, rng: np.random.RandomState) -> State:
    """Plain L1 logistic regression on the labelled rows, its features dealt to two views."""
    known, cost = labels != 0, np.ones(X.shape[1])
    w = fit_sparse_logistic(X[known], labels[known], price(cost, schedule.penalty, int(known.sum()), size))
    views = w[None, :] if known.all() else split_at_random(w, rng)
    return State(labels, views, cost, schedule.penalty, schedule.threshold)


def _fit_round(X: Any, size: Floats, state: State, schedule: Schedule) -> State:
    """Fit the classifiers to the labels so far, with feature costs from those of the round before."""
    known = state.labels != 0
    L, y, U = X[known], state.labels[known], X[~known]
    cost = feature_cost(L, y, U, state.views.sum(axis=0))
    priced = price(cost, state.penalty, len(y), size)
    problem = ViewProblem(L, y, U, priced, state.threshold, schedule.expandability)
    return replace(state, cost=cost, views=fit_disjoint_views(problem, state.views))


def _choose_confident_rows(X: Any, state: State, n_rows: int) -> tuple[State, NDArray[np.intp], Floats]:
    """Unlabelled rows to label, and their labels; the threshold sinks until there are some."""
    free = np.flatnonzero(state.labels == 0)
    margins = np.asarray(X[free] @ state.views.T)
    while True:
        chosen, labels = choose_most_confident(margins, state.threshold, n_rows)
        lower = state.threshold - THRESHOLD_STEP
        if len(chosen) or lower < LEAST_THRESHOLD - 1e-9:
            return state, free[chosen], labels
        state = replace(state, threshold=lower)


def choose_most_confident(margins: Floats, threshold: float, n_rows: int) -> tuple[NDArray[np.intp], Floats]:
    """Rows on which exactly one view is confident, half of `n_rows` at most in each class, and their labels.

    `margins` is (n, views).
    """
    confidence = expit(np.abs(margins))
    surest = confidence.argmax(axis=1)
    of_surest = (np.arange(len(margins)), surest)
    eligible = (confidence > threshold).sum(axis=1) == 1
    labels = np.where(margins[of_surest] > 0, 1.0, -1.0)
    order = np.argsort(-confidence[of_surest], kind="stable")
    chosen = [order[eligible[order] & (labels[order] == side)][: n_rows // 2] for side in (-1.0, 1.0)]
    rows = np.concatenate(chosen)
    return rows, labels[rows]
