"""The paper's method: msda-1, msda-3, msda-5 and other depths, from one stack per noise level."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ..baselines.rows import presence
from ..parts import Part
from .cells import Bench, Cell, FailureLog, Finding, GridPoint, Outcome, group_cells
from .resources import measure_time
from .stacks import Level, RunningGrams, SharedStack
from .svm import SourceProblem, bench_problem, choose_C, predict_targets

Wanted = tuple[str, int]  # source, depth


def depth_of(method: str) -> int:
    """Number of layers of "msda-3" and the like."""
    return int(method.removeprefix("msda-"))


def classify_stacks(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Learn one stack for all tasks; or, with ``fit_on = "pair"``, one for the task."""
    fitted_on = "all" if bench.setting.fit_on == "all" else cells[0].target
    return StackedTasks(bench, tuple(cells), fitted_on).outcomes()


@dataclass(frozen=True)
class StackedTasks:
    """Cells whose rows go through the same stacks; an error of one source leaves the others."""

    bench: Bench
    cells: tuple[Cell, ...]
    fitted_on: str = "all"
    failure_log: FailureLog = field(default_factory=FailureLog)

    def outcomes(self) -> Iterator[Finding]:
        """Choose noise and C for each source and depth; then learn those stacks, and classify."""
        setting = self.bench.setting
        for source, cells in group_cells(self.cells, "source").items():
            self.failure_log.capture(cells, bench_problem, self.bench, source)
        if self.wanted:
            points = [point for point in self.bench.grid if self._is_for_these_cells(point)]
            if len(setting.noise) * len(setting.Cs) > 1:
                for point in self._explore(points):
                    points.append(point)
                    yield point
            yield from self._classify(
                {wanted: self._choose(points, wanted) for wanted in self.wanted}, points
            )
        yield from self.failure_log.failures()

    @cached_property
    def stack(self) -> SharedStack:
        """The stacks, on the rows of all domains."""
        return SharedStack(
            self.bench.corpus,
            first=presence,
            place=self.bench.place,
            activation=self.bench.setting.activation,
            n_pivots=self.bench.setting.n_pivots,
            seed=self.bench.seed,
        )

    @cached_property
    def problems(self) -> dict[str, SourceProblem]:
        """Labelled problem of each source, by its name."""
        return {source: bench_problem(self.bench, source) for source, _ in self.wanted}

    @property
    def wanted(self) -> list[Wanted]:
        """Sources and depths that need a noise level, less those that have failed."""
        left = [cell for cell in self.cells if cell not in self.failure_log]
        return list(dict.fromkeys((cell.source, depth_of(cell.method)) for cell in left))

    def _is_for_these_cells(self, point: GridPoint) -> bool:
        """Tell whether an earlier run scored this for one of these cells, and for a stack like theirs."""
        return point.fitted_on == self.fitted_on and (point.source, point.depth) in self.wanted

    def _explore(self, known: Sequence[GridPoint]) -> Iterator[GridPoint]:
        """Score what is not known yet of the grid, noise level by noise level."""
        known_keys = {(point.noise, point.source, point.depth) for point in known}
        for noise in self.bench.setting.noise:
            missing = [wanted for wanted in self.wanted if (noise, *wanted) not in known_keys]
            if missing:
                yield from self._explore_level(noise, missing)

    def _explore_level(self, noise: float, missing: Sequence[Wanted]) -> Iterator[GridPoint]:
        began, setting = time.perf_counter(), self.bench.setting
        grams = RunningGrams(self.bench.corpus, dict.fromkeys(_within(source) for source, _ in missing))
        by_source = group_cells(self.cells, "source")
        scores: dict[Wanted, tuple[float, float]] = {}
        for level in self.stack.levels(noise, max(depth for _, depth in missing)):
            grams.add(level)
            here = [source for source, depth in missing if depth == level.depth]
            jobs = (
                delayed(self.failure_log.capture)(
                    by_source[source],
                    choose_C,
                    grams[_within(source)],
                    self.problems[source],
                    setting.Cs,
                    True,
                )
                for source in here
            )
            found = Parallel(self.bench.jobs, prefer="threads")(jobs)
            scores |= {
                (source, level.depth): score
                for source, given in zip(here, found, strict=True)
                for score in given
            }
        seconds = time.perf_counter() - began
        for (source, depth), (C, score) in scores.items():
            yield GridPoint(source, self.fitted_on, noise, depth, C, score, seconds)

    def _choose(self, points: Sequence[GridPoint], wanted: Wanted) -> GridPoint:
        """The best noise level, the lowest of several."""
        setting = self.bench.setting
        points = [point for point in points if (point.source, point.depth) == wanted]
        points = [point for point in points if point.noise in setting.noise]
        if not points:
            source, depth = wanted
            return GridPoint(source, self.fitted_on, setting.noise[0], depth, setting.Cs[0], None, 0.0)
        return min(points, key=lambda point: (-(point.score or 0.0), point.noise))

    def _classify(self, chosen: Mapping[Wanted, GridPoint], points: Sequence[GridPoint]) -> Iterator[Outcome]:
        """Learn the stacks that were chosen, noise level by noise level."""
        # each noise level counted once for every time it was explored
        seconds = float(np.sum([*{(point.noise, point.seconds): point.seconds for point in points}.values()]))
        for noise in sorted({point.noise for point in chosen.values()}):
            here = {wanted: point for wanted, point in chosen.items() if point.noise == noise}
            yield from self._classify_level(noise, here, seconds)

    def _cells(self, chosen: Mapping[Wanted, GridPoint]) -> list[Cell]:
        return [cell for cell in self.cells if (cell.source, depth_of(cell.method)) in chosen]

    def _classify_level(
        self, noise: float, chosen: Mapping[Wanted, GridPoint], grid_seconds: float
    ) -> Iterator[Outcome]:
        """Learn one stack and yield, depth by depth, the outcomes of the sources that chose it."""
        cells = self._cells(chosen)
        grams = RunningGrams(self.bench.corpus, _pairs(cells))
        for level in self.stack.levels(noise, max(depth for _, depth in chosen)):
            grams.add(level)
            here = [cell for cell in cells if depth_of(cell.method) == level.depth]
            for source, group in group_cells(here, "source").items():
                point = chosen[source, level.depth]
                arguments = (grams, level, group, point, grid_seconds)
                for outcomes in self.failure_log.capture(group, self._classify_source, *arguments):
                    yield from outcomes

    def _classify_source(
        self, grams: RunningGrams, level: Level, cells: Sequence[Cell], point: GridPoint, grid_seconds: float
    ) -> list[Outcome]:
        problem, tests = self.problems[point.source], {cell.target: grams[_across(cell)] for cell in cells}
        predicted, seconds = measure_time(
            predict_targets, grams[_within(point.source)], problem, point.C, tests
        )
        params = {"noise": point.noise, "n_layers": point.depth, "C": point.C}
        cv_error = None if point.score is None else round(1 - point.score, 6)
        details: dict[str, Any] = {"cv_error": cv_error, **level.cost.memory}
        return [
            Outcome(cell, predicted[cell.target], params, level.seconds, seconds, grid_seconds, details)
            for cell in cells
        ]


def _pairs(cells: Sequence[Cell]) -> list[tuple[Part, Part]]:
    """What the classifiers of some cells need, each once."""
    return list(dict.fromkeys(pair for cell in cells for pair in (_within(cell.source), _across(cell))))


def _within(source: str) -> tuple[Part, Part]:
    return (source, "train"), (source, "train")


def _across(cell: Cell) -> tuple[Part, Part]:
    return (cell.target, "test"), (cell.source, "train")
