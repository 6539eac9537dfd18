"""Fitting the classifiers of several tasks on the same domains, whose layers are learnt once."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from .estimator import MSDAClassifier
from .layered import PreparedFit
from .layers import SharedLayers

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class FittedTask:
    """A fitted classifier, and what it took.

    `layer_seconds` is the time from the rows to the chosen layers, which other tasks share;
    `search_seconds` that of all layers among which they were chosen; `seconds` that of the task alone.
    """

    classifier: MSDAClassifier
    layer_seconds: float
    search_seconds: float
    seconds: float


def fit_together(
    classifier: MSDAClassifier | Mapping[Key, MSDAClassifier],
    X: Any,
    tasks: Mapping[Key, tuple[np.ndarray, ...]],
    *,
    keeps_state: bool = False,
) -> Iterator[tuple[Key, FittedTask | Exception]]:
    """Fit a classifier for each of several tasks, which differ in what is labelled and what is the target.

    Each is what ``clone(classifier).fit(X, y, sample_domain=sample_domain)`` would be, up to rounding, but
    every layer is learnt once; with `max_upper_rows`, from rows that are drawn once. An error of one task
    leaves the others.

    Parameters
    ----------
    classifier : MSDAClassifier, or a mapping to such
        One for all tasks, or one for each; what layers are learnt by (`noise`, `ridge` and so on) must then
        be the same in all of them.
    X : matrix of shape (n, d)
        Rows of all domains.
    tasks : mapping to pairs (y, sample_domain), or (y, sample_domain, y_target)
        Labels as in `fit`, and the domain of each row: domain k has the number k, or -1 - k as a target.
        `y_target` are labels of target rows, one for each row of X, None or NaN where there is none.
    keeps_state : bool, default=False
        Whether the classifiers can be updated.
    """
    shared, running = SharedLayers(), {}
    for key, labels in tasks.items():
        try:
            running[key] = _TaskFit(
                clone(classifier[key] if isinstance(classifier, Mapping) else classifier),
                shared,
                X,
                *labels,
                keeps_state=keeps_state,
            )
        except Exception as error:
            yield key, error
    while running:
        for key in list(running):
            try:
                fitted = running[key].advance()
            except Exception as error:
                del running[key]
                yield key, error
                continue
            if fitted is not None:
                del running[key]
                yield key, fitted


class TargetUpdates:
    """Updates of one fitted classifier by labels of ever other rows of its target.

    Each is what `update` of these rows makes of it, but inner products are computed once for all of them.

    Parameters
    ----------
    classifier : MSDAClassifier
        With an update state that holds every row of the target in `fit`, of which there is one.
    y : array of shape (n,)
        Labels of these rows, in their order.
    """

    def __init__(self, classifier: MSDAClassifier, y: np.ndarray) -> None:
        self._classifier, self._state = classifier, classifier._check_state()
        known = self._state.label_anchors(np.searchsorted(classifier.classes_, y)).labelled
        assert known is not None
        self._known, self._domain = known, known.domain
        self._covariance: np.ndarray | None = None

    def ask(self, rows: np.ndarray, n: int) -> np.ndarray:
        """Return the n of these rows that `ask` of the classifier chooses."""
        known = self._known
        if self._covariance is None:
            self._covariance = self._state.find_covariance(known.columns, self._domain, known.products)
        domain, classifier = self._domain[rows], self._classifier
        scores = classifier._score_columns([A[rows] for A in known.columns], domain)
        return rows[classifier._choose_rows(self._covariance[np.ix_(rows, rows)], scores, domain, n)]

    def learn(self, rows: np.ndarray) -> MSDAClassifier:
        """Return a copy of the classifier that has learnt the labels of some rows."""
        learnt = copy(self._classifier)
        learnt._keep_learnt(replace(self._state, labelled=self._known.take(rows)))
        return learnt


class _TaskFit:
    """One of the fits, which proceeds layer by layer."""

    def __init__(
        self,
        classifier: MSDAClassifier,
        shared: SharedLayers,
        X: Any,
        y: np.ndarray,
        domain: np.ndarray,
        y_target: np.ndarray | None = None,
        *,
        keeps_state: bool,
    ) -> None:
        began = time.perf_counter()
        self._classifier, self._shared = classifier, shared
        prepared = classifier._prepare(X, y, sample_domain=domain, shared=shared, y_target=y_target)
        self._fit: PreparedFit = replace(prepared, keeps_state=keeps_state)
        self._steps = self._fit.search.steps()
        self._seconds = time.perf_counter() - began

    def advance(self) -> FittedTask | None:
        """Take the next layer; once there is none, solve for the classifier and return it."""
        began, learning = time.perf_counter(), self._shared.total_seconds
        with self._fit.place.set_precision():
            is_done = next(self._steps, self) is self
            if is_done:
                self._classifier._finish(self._fit)
        self._seconds += time.perf_counter() - began - (self._shared.total_seconds - learning)
        if not is_done:
            return None
        best = self._classifier.best_params_
        layer_seconds = self._shared.seconds[best["noise"], int(best["n_layers"])]
        return FittedTask(self._classifier, layer_seconds, self._shared.total_seconds, self._seconds)
