"""Fit the classifiers of several tasks on the same domains, whose layers are learnt once."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone

from undrift.core import FittedLayer, Moments, Rows, StreamedBlocks, moments
from undrift.inputs import Place, choose_place
from undrift.method import (
    Facts,
    Fitted,
    Learning,
    MSDAClassifier,
    Name,
    Problem,
    Settings,
    fit_problem,
    learn_layers,
)

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
    def learn(cls, problem: Problem, settings: Settings, place: Place, seed: int) -> SharedLayers:
        """Learn the layers from the rows of all domains of a task."""
        began, grown = time.perf_counter(), []
        ((noise, layers),) = learn_layers(problem, settings.layers, place, seed).by_noise.items()
        for fitted in layers:
            copies = [[block + 0 for block in cast(Any, domain)] for domain in fitted.domains]
            totals = [_sum_moments(own) for own in copies]
            kept: list[Any] = [StreamedBlocks(own) for own in copies]  # read again for every task
            grown.append(FittedLayer(fitted.layer, kept, fitted.form, totals))
        return cls([_number(name) for name in problem.names], grown, noise, time.perf_counter() - began)

    def check(self, settings: Settings) -> None:
        """Refuse a task with other layers."""
        wanted, own = (settings.layers.noise, settings.layers.n_layers), (self.noise, len(self.grown))
        if wanted != own:
            raise ValueError(f"tasks that share layers have one noise and depth, but got {own} and {wanted}")

    def arrange(self, names: Sequence[Name]) -> Learning:
        """Return the layers with the domains in the order of a task."""
        order, layers = [self.numbers.index(_number(name)) for name in names], []
        for grown in self.grown:
            domains = [grown.domains[i] for i in order]
            totals = None if grown.moments is None else [grown.moments[i] for i in order]
            layers.append(FittedLayer(grown.layer, domains, grown.form, totals))
        return Learning({self.noise: layers})


def _number(name: Name) -> int:
    number = cast(int, name)
    return number if number >= 0 else -1 - number


def _sum_moments(blocks: Sequence[Rows]) -> Moments:
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
            return self.fitted.model.score(X, self.fitted.learnt.level.stack.layers, self.place)

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
            problem, settings = classifier.make_problem(X, y, sample_domain=domain), _fix_layers(classifier)
            place = choose_place(list(problem.rows.values()), classifier.device)
            with place.set_precision():
                spent = 0.0
                if shared is None:
                    given = problem, settings, place, classifier.random_state
                    shared, spent = measure_time(SharedLayers.learn, *given)
            shared.check(settings)
            learning, seed = shared.arrange(problem.names), classifier.random_state
            fitted = fit_problem(problem, settings, place, learning=learning, seed=seed)
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
