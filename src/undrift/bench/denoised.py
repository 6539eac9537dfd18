"""The paper's method: msda-1, msda-3, msda-5 and other depths, from one stack per noise level."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..domains import Corpus
from ..rows import binarized
from .cells import Bench, Cell, GridPoint, Outcome, Unit
from .classify import best_C, predicted
from .stacks import Level, Part, RunningGrams, SharedStack

Wanted = tuple[str, int]  # source, depth


def depth_of(method: str) -> int:
    """Number of layers of "msda-3" and the like."""
    return int(method.removeprefix("msda-"))


def msda_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """One stack for all tasks; or, with ``fit_on = "pair"``, one for each task."""
    if bench.setting.fit_on == "all":
        return [Unit(cells, Stacked(bench, tuple(cells)).outcomes)]
    pairs = dict.fromkeys((cell.source, cell.target) for cell in cells)
    units = []
    for source, target in pairs:
        own = [cell for cell in cells if (cell.source, cell.target) == (source, target)]
        domains = {name: bench.corpus.domains[name] for name in (source, target)}
        alone = replace(bench, corpus=Corpus(bench.corpus.name, domains))
        units.append(Unit(own, Stacked(alone, tuple(own), target).outcomes))
    return units


@dataclass(frozen=True)
class Stacked:
    """Cells whose rows go through the same stacks."""

    bench: Bench
    cells: tuple[Cell, ...]
    fitted_on: str = "all"

    @property
    def wanted(self) -> list[Wanted]:
        """Sources and depths that need a noise level."""
        return list(dict.fromkeys((cell.source, depth_of(cell.method)) for cell in self.cells))

    def outcomes(self) -> Iterator[Outcome | GridPoint]:
        """Choose noise and C for each source and depth; then learn those stacks, and classify."""
        setting = self.bench.setting
        stack = SharedStack(
            self.bench.corpus,
            first=binarized,
            place=self.bench.place,
            activation=setting.activation,
            n_pivots=setting.n_pivots,
            seed=self.bench.seed,
        )
        points = [point for point in self.bench.grid if point.fitted_on == self.fitted_on]
        if len(setting.noise) * len(setting.Cs) > 1:
            for point in self._explored(stack, points):
                points.append(point)
                yield point
        chosen = {wanted: self._chosen(points, wanted) for wanted in self.wanted}
        for noise in sorted({point.noise for point in chosen.values()}):
            own = {wanted: point for wanted, point in chosen.items() if point.noise == noise}
            yield from self._scored(stack, noise, own, _grid_seconds(points))

    def _explored(self, stack: SharedStack, known: Sequence[GridPoint]) -> Iterator[GridPoint]:
        """Score what is not known yet of the grid, noise level by noise level."""
        seen = {(point.noise, point.source, point.depth) for point in known}
        for noise in self.bench.setting.noise:
            missing = [wanted for wanted in self.wanted if (noise, *wanted) not in seen]
            if missing:
                yield from self._explored_level(stack, noise, missing)

    def _explored_level(
        self, stack: SharedStack, noise: float, missing: Sequence[Wanted]
    ) -> Iterator[GridPoint]:
        began, setting = time.perf_counter(), self.bench.setting
        problems = {source: self.bench.problem(source)[0] for source, _ in missing}
        grams = RunningGrams(self.bench.corpus, [_within(source) for source in problems])
        scores = {}
        for level in stack.levels(noise, max(depth for _, depth in missing)):
            grams.add(level)
            for source, depth in missing:
                if depth == level.depth:  # scored by the pool while the next layer is learnt
                    job = partial(best_C, always=True)
                    scores[source, depth] = self.bench.pool.submit(
                        job, grams[_within(source)], problems[source], setting.Cs
                    )
        found = {wanted: future.result() for wanted, future in scores.items()}
        seconds = time.perf_counter() - began
        for (source, depth), (C, score) in found.items():
            yield GridPoint(source, self.fitted_on, noise, depth, C, score, seconds)

    def _chosen(self, points: Sequence[GridPoint], wanted: Wanted) -> GridPoint:
        """The best noise level, the lowest of several."""
        own = [point for point in points if (point.source, point.depth) == wanted]
        own = [point for point in own if point.noise in self.bench.setting.noise]
        if not own:
            only = self.bench.setting
            return GridPoint(wanted[0], self.fitted_on, only.noise[0], wanted[1], only.Cs[0], None, 0.0)
        return min(own, key=lambda point: (-(point.score or 0.0), point.noise))

    def _scored(
        self, stack: SharedStack, noise: float, chosen: dict[Wanted, GridPoint], grid_seconds: float
    ) -> Iterator[Outcome]:
        """Learn one stack and yield, depth by depth, the outcomes of the sources that chose it."""
        cells = [cell for cell in self.cells if (cell.source, depth_of(cell.method)) in chosen]
        pairs = [pair for cell in cells for pair in (_within(cell.source), _across(cell))]
        grams = RunningGrams(self.bench.corpus, dict.fromkeys(pairs))
        for level in stack.levels(noise, max(depth for _, depth in chosen)):
            grams.add(level)
            here = [cell for cell in cells if depth_of(cell.method) == level.depth]
            for source in dict.fromkeys(cell.source for cell in here):
                own = [cell for cell in here if cell.source == source]
                yield from self._classified(grams, level, own, chosen[source, level.depth], grid_seconds)

    def _classified(
        self, grams: RunningGrams, level: Level, cells: Sequence[Cell], point: GridPoint, grid_seconds: float
    ) -> Iterator[Outcome]:
        problem, classes = self.bench.problem(point.source)
        tests = {cell.target: grams[_across(cell)] for cell in cells}
        began = time.perf_counter()
        found = predicted(grams[_within(point.source)], problem, point.C, tests, classes)
        seconds = time.perf_counter() - began
        params = {"noise": point.noise, "n_layers": point.depth, "C": point.C}
        details = {
            "cv_error": None if point.score is None else round(1 - point.score, 6),
            **level.cost.memory,
        }
        for cell in cells:
            yield Outcome(cell, found[cell.target], params, level.seconds, seconds, grid_seconds, details)


def _within(source: str) -> tuple[Part, Part]:
    return (source, "train"), (source, "train")


def _across(cell: Cell) -> tuple[Part, Part]:
    return (cell.target, "test"), (cell.source, "train")


def _grid_seconds(points: Sequence[GridPoint]) -> float:
    """Time of the whole grid, each noise level counted once for every time it was explored."""
    return float(np.sum([*{(point.noise, point.seconds): point.seconds for point in points}.values()]))
