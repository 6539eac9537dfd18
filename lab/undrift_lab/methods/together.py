"""Fit the classifiers of several tasks on the same domains, whose layers are learnt once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from sklearn.base import clone

from undrift.core import FittedLayer, Moments, PivotSplit, mean_square, moments
from undrift.method import MSDAClassifier, check_domains
from undrift.method.calibrate import HeldOut, score_held_out
from undrift.method.layers import LayerFitter
from undrift.method.teacher import add_words

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class MeasuredLayer(FittedLayer):
    """A new layer, and the moments of every domain after it."""

    moments: Sequence[Moments]


class SharedLayers:
    """Layers that the fits of several tasks need, each learnt once, by the first that asks for it.

    The tasks have the same rows in the same domains, and their classifiers the same parameters. Domain k has
    the number k in tasks where it is a source, and -1 - k where it is the target. Fits should proceed layer
    by layer together: rows of a depth that has passed are computed again.
    """

    def __init__(self) -> None:
        self.seconds: dict[tuple[float, int], float] = {}  # from the rows to each noise and depth
        self._fitter: LayerFitter | None = None
        self._names: list[int] = []
        self.total_seconds = 0.0  # of all layers that were learnt
        self._first_seconds = 0.0
        self._growing: dict[float, _GrowingStack] = {}

    def join(self, numbers: Sequence[Any], make_fitter: Callable[[], LayerFitter]) -> SharedFitter:
        """Return the layers for a task whose domains have these numbers, in this order."""
        names = [number if number >= 0 else -1 - number for number in numbers]
        if self._fitter is None:
            began = time.perf_counter()
            self._fitter, self._names = make_fitter(), names
            self._first_seconds = self.total_seconds = time.perf_counter() - began
        return SharedFitter(self, self._fitter, [self._names.index(name) for name in names])

    def fit(self, noise: float, n_layers: int) -> Iterator[MeasuredLayer]:
        """Yield the layers of one noise level, learning those that no fit has asked for yet."""
        assert self._fitter is not None
        if noise not in self._growing:
            self._growing[noise] = _GrowingStack(self._fitter.fit(noise, sys.maxsize))
        stack = self._growing[noise]
        stack.n_users += 1
        try:
            for t in range(n_layers):
                if t == len(stack.layers):
                    self._learn_next(noise, stack)
                yield stack.layers[t]
        finally:
            stack.n_users -= 1
            if not stack.n_users:
                self._growing.pop(noise, None)

    def _learn_next(self, noise: float, stack: _GrowingStack) -> None:
        began, depth = time.perf_counter(), len(stack.layers)
        fitted = next(stack.fits)
        totals = [blocks.total(moments) for blocks in fitted.domains]
        mean_square(totals, False)  # a number: whatever the device, the rows have arrived
        stack.layers.append(MeasuredLayer(fitted.layer, fitted.domains, totals))
        seconds = time.perf_counter() - began
        self.total_seconds += seconds
        before = self.seconds[noise, depth] if depth else self._first_seconds
        self.seconds[noise, depth + 1] = before + seconds


@dataclass
class _GrowingStack:
    fits: Iterator[FittedLayer]
    layers: list[MeasuredLayer] = field(default_factory=list)
    n_users: int = 0


@dataclass(frozen=True)
class SharedFitter:
    """The shared layers as one task sees them: its domains come in the order of `order`."""

    shared: SharedLayers
    fitter: LayerFitter
    order: list[int]

    @property
    def split(self) -> PivotSplit | None:
        """Pivots of the first layer."""
        return self.fitter.split

    def fit(self, noise: float, n_layers: int, *, is_last: bool = False) -> Iterator[FittedLayer]:
        """Yield the layers of one noise level."""
        for fitted in self.shared.fit(noise, n_layers):
            domains = [fitted.domains[i] for i in self.order]
            yield MeasuredLayer(fitted.layer, domains, [fitted.moments[i] for i in self.order])


@dataclass(frozen=True)
class FittedTask:
    """A fitted classifier, and the time that it took.

    `layer_seconds` is the time from the rows to the chosen layers, which other tasks share;
    `search_seconds` that of all layers among which they were chosen; `seconds` that of the task alone.
    """

    classifier: MSDAClassifier
    held_out: HeldOut  # scores of labelled rows by classifiers that have not seen them
    layer_seconds: float
    search_seconds: float
    seconds: float


def fit_together(
    classifier: MSDAClassifier | Mapping[Key, MSDAClassifier],
    X: Any,
    tasks: Mapping[Key, tuple[np.ndarray, ...]],
    *,
    teachers: Mapping[Key, Mapping[int, np.ndarray]] | None = None,
    keeps_state: bool = False,
) -> Iterator[tuple[Key, FittedTask | Exception]]:
    """Fit a classifier for each of several tasks, which differ in the labels and in the target.

    Each equals ``clone(classifier).fit(X, y, sample_domain=sample_domain)``, up to rounding, but every layer
    is learnt once. An error of one task leaves the others. With a classifier for each task, `noise`, `ridge`
    and `n_pivots` must be the same in all.

    Tasks are pairs (y, sample_domain), or (y, sample_domain, y_target): domain k has the number k, or -1 - k
    as a target, and `y_target` has the labels of target rows, NaN where there is none. `teachers` have for
    some tasks class probabilities of the rows of a target, by its number.
    """
    shared, running = SharedLayers(), {}
    for key, labels in tasks.items():
        model = clone(classifier[key] if isinstance(classifier, Mapping) else classifier)
        try:
            words = (teachers or {}).get(key, {})
            running[key] = TaskFit(model, shared, X, *labels, words=words, keeps_state=keeps_state)
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


class TaskFit:
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
        words: Mapping[int, np.ndarray],
        keeps_state: bool = False,
    ) -> None:
        began = time.perf_counter()
        self._classifier, self._shared, self._keeps_state = classifier, shared, keeps_state
        grid = classifier._check_parameters()
        domains = check_domains(
            classifier, X, y, sample_domain=domain, y_target=y_target, dtype=classifier._dtype
        )
        add_words(domains, {number: (p, None) for number, p in words.items()})
        self._search = classifier._start_search(domains, grid, shared.join)
        self._steps = self._search.steps()
        self._seconds = time.perf_counter() - began

    def advance(self) -> FittedTask | None:
        """Take the next layer; once there is none, solve for the classifier and return it."""
        began, learning = time.perf_counter(), self._shared.total_seconds
        with self._search.place.set_precision():
            is_done = next(self._steps, self) is self
            if is_done:
                with keep_held_out() as seen:
                    self._classifier._adapt(self._search.result(), keeps_state=self._keeps_state)
        self._seconds += time.perf_counter() - began - (self._shared.total_seconds - learning)
        if not is_done:
            return None
        best = self._classifier.best_params_
        layer_seconds = self._shared.seconds[best["noise"], int(best["n_layers"])]
        return FittedTask(self._classifier, seen[0], layer_seconds, self._shared.total_seconds, self._seconds)


@contextmanager
def keep_held_out() -> Iterator[list[HeldOut]]:
    """Keep the held-out scores of a fit, which other estimates start from."""
    from undrift.method import classifier as module

    seen: list[HeldOut] = []

    def score(*arguments: Any) -> HeldOut:
        seen.append(score_held_out(*arguments))
        return seen[-1]

    with patch.object(module, "score_held_out", score):
        yield seen
