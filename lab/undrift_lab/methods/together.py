"""Fit the classifiers of several tasks on the same domains, whose layers are learnt once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from sklearn.base import clone

from undrift.core import FittedLayer, Moments, PivotSplit, mean_square, moments
from undrift.method import MSDAClassifier, check_domains
from undrift.method.calibrate import HeldOut, score_held_out
from undrift.method.layers import LayerFitter
from undrift.method.teacher import add_words

from .resources import measure_time

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class MeasuredLayer(FittedLayer):
    """A new layer, and the moments of every domain after it."""

    moments: Sequence[Moments]


class SharedLayers:
    """Layers that the fits of several tasks need, each learnt once, by the first that asks for it.

    The tasks have the same rows in the same domains, and their classifiers the same noise. Domain k has the
    number k in tasks where it is a source, and -1 - k where it is the target. Fits should proceed layer by
    layer together: rows of a depth that has passed are computed again.
    """

    def __init__(self) -> None:
        self.seconds = [0.0]  # from the rows to each depth, 0 included
        self._layers: list[MeasuredLayer] = []
        self._fitter: LayerFitter | None = None
        self._fits: Iterator[FittedLayer] = iter(())
        self._names: list[int] = []
        self._noise: float | None = None

    def join(self, numbers: Sequence[Any], make_fitter: Callable[[], LayerFitter]) -> SharedFitter:
        """Return the layers for a task whose domains have these numbers, in this order."""
        names = [number if number >= 0 else -1 - number for number in numbers]
        if self._fitter is None:
            self._fitter, seconds = measure_time(make_fitter)
            self.seconds, self._names = [seconds], names
        return SharedFitter(self, self._fitter, [self._names.index(name) for name in names])

    def fit(self, noise: float, n_layers: int) -> Iterator[MeasuredLayer]:
        """Yield the layers, learning those that no fit has asked for yet."""
        assert self._fitter is not None
        if self._noise is None:
            self._noise, self._fits = noise, self._fitter.fit(noise, sys.maxsize)
        if noise != self._noise:
            raise ValueError(f"fits that share layers have one noise, but got {self._noise} and {noise}")
        for t in range(n_layers):
            if t == len(self._layers):
                layer, seconds = measure_time(self._learn_next)
                self._layers.append(layer)
                self.seconds.append(self.seconds[-1] + seconds)
            yield self._layers[t]

    def _learn_next(self) -> MeasuredLayer:
        fitted = next(self._fits)
        totals = [blocks.total(moments) for blocks in fitted.domains]
        mean_square(totals, False)  # a number: whatever the device, the rows have arrived
        return MeasuredLayer(fitted.layer, fitted.domains, totals)


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
    """A fitted classifier, the time from the rows to its layers, which other tasks share, and its own."""

    classifier: MSDAClassifier
    held_out: HeldOut  # scores of labelled rows by classifiers that have not seen them
    layer_seconds: float
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
        began, learning = time.perf_counter(), self._shared.seconds[-1]
        with self._search.place.set_precision():
            is_done = next(self._steps, self) is self
            if is_done:
                with keep_held_out() as seen:
                    self._classifier._adapt(self._search.result(), keeps_state=self._keeps_state)
        self._seconds += time.perf_counter() - began - (self._shared.seconds[-1] - learning)
        if not is_done:
            return None
        return FittedTask(self._classifier, seen[0], self._shared.seconds[-1], self._seconds)


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
