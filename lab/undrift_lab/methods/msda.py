"""The paper's method: msda-1, msda-3, msda-5 and other depths, from one stack per noise level."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed

from ..baselines.rows import presence
from ..parts import Part
from .cells import Bench, Cell, Finding, GridPoint, Outcome, attempt, group_cells
from .resources import measure_time
from .stacks import Level, RunningGrams, SharedStack
from .svm import SourceProblem, bench_problem, choose_C, predict_targets

Wanted = tuple[str, int]  # source, depth


def depth_of(method: str) -> int:
    """Number of layers of "msda-3" and the like."""
    return int(method.removeprefix("msda-"))


def classify_stacks(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Learn one stack for all tasks; or, with ``fit_on = "pair"``, one for the task."""
    problems: dict[str, SourceProblem] = {}
    for source, group in group_cells(cells, "source").items():
        try:
            problems[source] = bench_problem(bench, source)
        except ValueError as error:
            yield from attempt(group, error)
    left = tuple(cell for cell in cells if cell.source in problems)
    if left:
        fitted_on = "all" if bench.setting.fit_on == "all" else cells[0].target
        yield from StackedTasks(bench, left, problems, fitted_on).outcomes()


@dataclass(frozen=True)
class StackedTasks:
    """Cells whose rows go through the same stacks, and the labelled problem of each source."""

    bench: Bench
    cells: tuple[Cell, ...]
    problems: Mapping[str, SourceProblem]
    fitted_on: str

    def outcomes(self) -> Iterator[Finding]:
        """Choose noise and C for each source and depth; then learn those stacks, and classify."""
        setting = self.bench.setting
        points = [point for point in self.bench.grid if self._is_for_these_cells(point)]
        if len(setting.noise) * len(setting.Cs) > 1:
            for point in self._explore(points):
                points.append(point)
                yield point
        chosen = {wanted: self._choose(points, wanted) for wanted in self.wanted}
        # each noise level counted once for every time it was explored
        seconds = float(np.sum([*{(point.noise, point.seconds): point.seconds for point in points}.values()]))
        for noise in sorted({point.noise for point in chosen.values()}):
            here = {wanted: point for wanted, point in chosen.items() if point.noise == noise}
            yield from self._classify(noise, here, seconds)

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
            inductive=self.bench.setting.inductive,
        )

    @property
    def wanted(self) -> list[Wanted]:
        """Sources and depths that need a noise level."""
        return list(dict.fromkeys((cell.source, depth_of(cell.method)) for cell in self.cells))

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
        began, Cs = time.perf_counter(), self.bench.setting.Cs
        grams = RunningGrams(self.bench.corpus, dict.fromkeys(_within(source) for source, _ in missing))
        scores: dict[Wanted, tuple[float, float]] = {}
        for level in self.stack.levels(noise, max(depth for _, depth in missing)):
            grams.add(level)
            here = [source for source, depth in missing if depth == level.depth]
            jobs = (delayed(choose_C)(grams[_within(s)], self.problems[s], Cs, True) for s in here)
            found = Parallel(self.bench.jobs, prefer="threads")(jobs)
            scores |= {(source, level.depth): score for source, score in zip(here, found, strict=True)}
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

    def _classify(
        self, noise: float, chosen: Mapping[Wanted, GridPoint], grid_seconds: float
    ) -> Iterator[Finding]:
        """Learn one stack and yield, depth by depth, the outcomes of the sources that chose it."""
        cells = [cell for cell in self.cells if (cell.source, depth_of(cell.method)) in chosen]
        pairs = dict.fromkeys(pair for cell in cells for pair in (_within(cell.source), _across(cell)))
        grams = RunningGrams(self.bench.corpus, pairs)
        for level in self.stack.levels(noise, max(depth for _, depth in chosen)):
            grams.add(level)
            here = [cell for cell in cells if depth_of(cell.method) == level.depth]
            for source, group in group_cells(here, "source").items():
                point = chosen[source, level.depth]
                yield from attempt(group, self._classify_source, grams, level, group, point, grid_seconds)

    def _classify_source(
        self, grams: RunningGrams, level: Level, cells: Sequence[Cell], point: GridPoint, grid_seconds: float
    ) -> Iterator[Outcome]:
        problem, tests = self.problems[point.source], {cell.target: grams[_across(cell)] for cell in cells}
        predicted, seconds = measure_time(
            predict_targets, grams[_within(point.source)], problem, point.C, tests
        )
        params = {"noise": point.noise, "n_layers": point.depth, "C": point.C}
        details = {"cv_error": None if point.score is None else round(1 - point.score, 6)}
        for cell in cells:
            spent = level.seconds, seconds, grid_seconds
            yield Outcome(cell, predicted[cell.target], params, *spent, details)


def _within(source: str) -> tuple[Part, Part]:
    return (source, "train"), (source, "train")


def _across(cell: Cell) -> tuple[Part, Part]:
    return (cell.target, "test"), (cell.source, "train")
