"""The paper's method: msda-1, msda-3, msda-5 and other depths, from one stack per noise level."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from ..._inputs import binarize_rows
from ...corpora import Corpus
from .cells import Bench, Cell, Finding, GridPoint, Outcome, Unit, by_source
from .classify import best_C, predicted
from .failures import Mishaps, sifted
from .memory import Room, room_for
from .stacks import Level, Part, RunningGrams, SharedStack

Wanted = tuple[str, int]  # source, depth


def depth_of(method: str) -> int:
    """Number of layers of "msda-3" and the like."""
    return int(method.removeprefix("msda-"))


def msda_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """One stack for all tasks; or, with ``fit_on = "pair"``, one for each task."""
    cells, units = sifted(cells, partial(_check, bench, cache(bench.problem), cells))
    if bench.setting.fit_on == "all":
        return [*units, Unit(cells, Stacked(bench, tuple(cells)).outcomes)] if cells else units
    pairs = dict.fromkeys((cell.source, cell.target) for cell in cells)
    for source, target in pairs:
        own = [cell for cell in cells if (cell.source, cell.target) == (source, target)]
        domains = {name: bench.corpus.domains[name] for name in (source, target)}
        alone = replace(bench, corpus=Corpus(bench.corpus.name, domains))
        units.append(Unit(own, Stacked(alone, tuple(own), target).outcomes))
    return units


@dataclass(frozen=True)
class Stacked:
    """Cells whose rows go through the same stacks; an error of one source leaves the others."""

    bench: Bench
    cells: tuple[Cell, ...]
    fitted_on: str = "all"
    mishaps: Mishaps = field(default_factory=Mishaps)

    @cached_property
    def room(self) -> Room:
        """Memory for inner products."""
        return room_for(self.bench.corpus, self.bench.place)

    @property
    def wanted(self) -> list[Wanted]:
        """Sources and depths that need a noise level, less those that have failed."""
        left = [cell for cell in self.cells if cell not in self.mishaps]
        return list(dict.fromkeys((cell.source, depth_of(cell.method)) for cell in left))

    def outcomes(self) -> Iterator[Finding]:
        """Choose noise and C for each source and depth; then learn those stacks, and classify."""
        setting = self.bench.setting
        stack = SharedStack(
            self.bench.corpus,
            first=binarize_rows,
            place=self.bench.place,
            activation=setting.activation,
            n_pivots=setting.n_pivots,
            seed=self.bench.seed,
        )
        points = [point for point in self.bench.grid if self._is_ours(point)]
        if len(setting.noise) * len(setting.Cs) > 1:
            for point in self._explored(stack, points):
                points.append(point)
                yield point
        chosen = {wanted: self._chosen(points, wanted) for wanted in self.wanted}
        for noise in sorted({point.noise for point in chosen.values()}):
            own = {wanted: point for wanted, point in chosen.items() if point.noise == noise}
            for group in self._groups(own):
                yield from self._scored(stack, noise, group, _grid_seconds(points))
        yield from self.mishaps.failures()

    def _is_ours(self, point: GridPoint) -> bool:
        """Tell whether an earlier run scored this for one of our cells, and for a stack like ours."""
        return point.fitted_on == self.fitted_on and (point.source, point.depth) in self.wanted

    def _groups(self, chosen: Mapping[Wanted, GridPoint]) -> Iterator[dict[Wanted, GridPoint]]:
        """Yield choices by sources whose inner products, with all targets, fit together."""
        own = {source: _pairs(cells) for source, cells in by_source(self._cells(chosen)).items()}
        for sources in self.room.groups(own):
            yield {wanted: point for wanted, point in chosen.items() if wanted[0] in sources}

    def _cells(self, chosen: Mapping[Wanted, GridPoint]) -> list[Cell]:
        return [cell for cell in self.cells if (cell.source, depth_of(cell.method)) in chosen]

    def _explored(self, stack: SharedStack, known: Sequence[GridPoint]) -> Iterator[GridPoint]:
        """Score what is not known yet of the grid, noise level by noise level."""
        seen = {(point.noise, point.source, point.depth) for point in known}
        for noise in self.bench.setting.noise:
            missing = [wanted for wanted in self.wanted if (noise, *wanted) not in seen]
            n_copies = 1 + len({depth for _, depth in missing})  # those that wait for the pool
            blocks = {source: [_within(source)] for source, _ in missing}
            for sources in self.room.groups(blocks, n_copies):
                own = [wanted for wanted in missing if wanted[0] in sources]
                yield from self._explored_level(stack, noise, own)

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
        found = {}
        for wanted, future in scores.items():
            with self.mishaps.of(*by_source(self.cells)[wanted[0]]):
                found[wanted] = future.result()
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
        self, stack: SharedStack, noise: float, chosen: Mapping[Wanted, GridPoint], grid_seconds: float
    ) -> Iterator[Outcome]:
        """Learn one stack and yield, depth by depth, the outcomes of the sources that chose it."""
        cells = self._cells(chosen)
        grams = RunningGrams(self.bench.corpus, _pairs(cells))
        for level in stack.levels(noise, max(depth for _, depth in chosen)):
            grams.add(level)
            here = [cell for cell in cells if depth_of(cell.method) == level.depth]
            for source in dict.fromkeys(cell.source for cell in here):
                own = [cell for cell in here if cell.source == source]
                found: list[Outcome] = []
                with self.mishaps.of(*own):
                    point = chosen[source, level.depth]
                    found += list(self._classified(grams, level, own, point, grid_seconds))
                yield from found
            deeper = _pairs([cell for cell in cells if depth_of(cell.method) > level.depth])
            for pair in set(_pairs(here)) - set(deeper):
                grams.forget(pair)

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


def _check(bench: Bench, problem: Callable[[str], Any], cells: Sequence[Cell], cell: Cell) -> None:
    """Refuse a cell whose source is no problem, or has too many rows for its tasks."""
    problem(cell.source)
    together = [own for own in cells if own.source == cell.source]
    pairs = _pairs(together if bench.setting.fit_on == "all" else [cell])
    room_for(bench.corpus, bench.place).check(f"source {cell.source} with itself and its targets", pairs)


def _pairs(cells: Sequence[Cell]) -> list[tuple[Part, Part]]:
    """What the classifiers of some cells need, each once."""
    return list(dict.fromkeys(pair for cell in cells for pair in (_within(cell.source), _across(cell))))


def _within(source: str) -> tuple[Part, Part]:
    return (source, "train"), (source, "train")


def _across(cell: Cell) -> tuple[Part, Part]:
    return (cell.target, "test"), (cell.source, "train")


def _grid_seconds(points: Sequence[GridPoint]) -> float:
    """Time of the whole grid, each noise level counted once for every time it was explored."""
    return float(np.sum([*{(point.noise, point.seconds): point.seconds for point in points}.values()]))
