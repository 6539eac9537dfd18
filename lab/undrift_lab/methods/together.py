"""Fit the classifiers of several tasks on the same domains, whose layers are learnt once."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from undrift.core import FittedLayer, Rows, choose_pivots, moments
from undrift.inputs import Place, choose_place, place_rows
from undrift.method import Facts, Fitted, MSDAClassifier, Settings, check_problem, fit_level
from undrift.method.anchors import draw_anchors
from undrift.method.layers import LayerFitter, count_pivots, grow_levels
from undrift.method.problem import Name, Problem

from .resources import measure_time

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class SharedLayers:
    """Layers of one noise level, and the rows of every domain after each of them.

    Domain k has the number k in tasks where it is a source, and -1 - k where it is the target.
    """

    numbers: Sequence[int]
    grown: Sequence[FittedLayer]
    noise: float
    seconds: float

    @classmethod
    def learn(
        cls, problem: Problem, settings: Settings, n_pivots: Any, place: Place, seed: int
    ) -> SharedLayers:
        """Learn the layers from the rows of all domains of a task."""
        layers, rows = settings.layers, list(problem.rows.values())
        began, d = time.perf_counter(), rows[0].shape[1]
        n = count_pivots(n_pivots, d, sum(problem.sizes), layers)
        blocks = [place_rows(X, place, n or 0) for X in rows]
        split = None if n is None else choose_pivots(blocks, d, n, check_random_state(seed))
        fitter, grown = LayerFitter(blocks, split, layers.ridge), []
        for fitted in fitter.fit(layers.noise, layers.n_layers, is_last=True):
            kept: list[Any] = [[block + 0 for block in cast(Any, domain)] for domain in fitted.domains]
            totals = [_sum_moments(own) for own in kept]
            grown.append(FittedLayer(fitted.layer, kept, fitted.form, totals))
        numbers, seconds = [_number(name) for name in problem.names], time.perf_counter() - began
        return cls(numbers, grown, layers.noise, seconds)

    def check(self, settings: Settings) -> None:
        """Refuse a task with other layers."""
        wanted, own = (settings.layers.noise, settings.layers.n_layers), (self.noise, len(self.grown))
        if wanted != own:
            raise ValueError(f"tasks that share layers have one noise and depth, but got {own} and {wanted}")

    def arrange(self, names: Sequence[Name]) -> ArrangedLayers:
        """Return the layers with the domains in the order of a task."""
        return ArrangedLayers(self, [self.numbers.index(_number(name)) for name in names])


@dataclass(frozen=True)
class ArrangedLayers:
    """Shared layers as one task sees them, in place of a `LayerFitter`."""

    shared: SharedLayers
    order: Sequence[int]

    def fit(self, noise: float, n_layers: int, *, is_last: bool = False) -> Iterator[FittedLayer]:
        """Yield the layers; their noise was set when they were learnt."""
        for grown in self.shared.grown[:n_layers]:
            domains = [grown.domains[i] for i in self.order]
            totals = None if grown.moments is None else [grown.moments[i] for i in self.order]
            yield FittedLayer(grown.layer, domains, grown.form, totals)


def _number(name: Name) -> int:
    number = cast(int, name)
    return number if number >= 0 else -1 - number


def _sum_moments(blocks: Sequence[Rows]) -> Any:
    """Return the moments of the rows of several blocks."""
    total = moments(blocks[0])
    for block in blocks[1:]:
        total = total + moments(block)
    return total


@dataclass(frozen=True)
class FittedTask:
    """A fit, its classes and targets, the time of the layers, which other tasks share, and its own."""

    fitted: Fitted
    place: Place
    layer_seconds: float
    seconds: float

    @property
    def facts(self) -> Facts:
        """What was known of the task."""
        return self.fitted.memory.facts

    def predict_proba(self, X: Rows, name: Name) -> np.ndarray:
        """Return class probabilities of rows of a domain, by all readings."""
        return self.fitted.model.predict(self._score(X), self._positions(X, name))

    def find_readings(self, X: Rows, name: Name) -> dict[str, np.ndarray]:
        """Return class probabilities of rows of a domain by every reading."""
        p = self.fitted.model.read(self._score(X), self._positions(X, name))
        return dict(zip(self.fitted.model.names, p, strict=True))

    def _score(self, X: Rows) -> np.ndarray:
        with self.place.set_precision():
            return self.fitted.model.score(X, self.fitted.level.stack.layers, self.place)

    def _positions(self, X: Rows, name: Name) -> np.ndarray:
        return np.full(X.shape[0], self.facts.names.index(name))


def fit_together(
    classifiers: Mapping[Key, MSDAClassifier],
    X: Any,
    tasks: Mapping[Key, tuple[np.ndarray, np.ndarray]],
) -> Iterator[tuple[Key, FittedTask | Exception]]:
    """Fit the classifiers of several tasks, which differ in the labels and in the target.

    Each equals ``clone(classifier).fit(X, y, sample_domain=sample_domain)``, up to rounding, but layers are
    learnt once. An error of one task leaves the others. Noise, depth, ridge and pivots must be the same in
    all. Domain k has the number k in `sample_domain`, or -1 - k as a target.
    """
    shared: SharedLayers | None = None
    for key, (y, domain) in tasks.items():
        try:
            began, classifier = time.perf_counter(), clone(classifiers[key])
            problem = check_problem(classifier, X, y, sample_domain=domain, dtype=classifier._dtype)
            settings = _fix_layers(classifier)
            place = choose_place(list(problem.rows.values()), classifier.device)
            with place.set_precision():
                spent = 0.0
                if shared is None:
                    given = settings, classifier.n_pivots, place, classifier.random_state
                    shared, spent = measure_time(SharedLayers.learn, problem, *given)
                shared.check(settings)
                fitted = _fit_task(classifier, problem, settings, shared, place)
            seconds = time.perf_counter() - began - spent
        except Exception as error:
            yield key, error
        else:
            yield key, FittedTask(fitted, place, shared.seconds, seconds)


def _fix_layers(classifier: MSDAClassifier) -> Settings:
    """Return the settings of a classifier with its noise, depth and C, of each of which it must have one."""
    names = ("noise", "n_layers", "C")
    given = {name: getattr(classifier, name) for name in names}
    for name, value in given.items():
        if np.ndim(value):
            raise ValueError(f"tasks that share layers take one value of {name}, got {value!r}")
    settings = classifier.make_settings()
    return replace(settings, layers=replace(settings.layers, **given))


def _fit_task(
    classifier: MSDAClassifier, problem: Problem, settings: Settings, shared: SharedLayers, place: Place
) -> Fitted:
    layers = settings.layers
    fitter: Any = shared.arrange(problem.names)  # has what is needed of a `LayerFitter`
    anchors = draw_anchors(problem, settings.anchors, classifier.random_state)
    facts = classifier.list_facts(problem, anchors)
    given = problem, anchors, fitter, (layers.noise,), (layers.n_layers,), place
    levels = [level for level in grow_levels(*given, keeps_hidden=False) if level is not None]
    return fit_level(anchors, levels[-1], layers.C, facts, settings, place)
