"""The paper's method: msda-1, msda-3, msda-5 and other depths, from one stack per noise level."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed

from ..baselines.rows import presence
from .cells import Bench, Cell, Finding, GridPoint, Outcome, attempt, group_cells
from .resources import measure_time
from .stacks import LabelledRows, Level, SharedStack
from .svm import Hyperplanes, SourceProblem, bench_problem, choose_C

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
class Solved:
    """Predictions of the targets of a source at one depth, or what stopped them, and what they took."""

    point: GridPoint
    predicted: Mapping[str, np.ndarray] | Exception
    represent_seconds: float
    classify_seconds: float


@dataclass(frozen=True)
class StackedTasks:
    """Cells whose rows go through the same stacks, and the labelled problem of each source."""

    bench: Bench
    cells: tuple[Cell, ...]
    problems: Mapping[str, SourceProblem]
    fitted_on: str

    def outcomes(self) -> Iterator[Finding]:
        """Predict at every noise level; then choose it, and C, for each source and depth.

        Where a level was explored by an earlier run, its stack is learnt again if it is chosen.
        """
        setting = self.bench.setting
        points = [point for point in self.bench.grid if self._is_for_these_cells(point)]
        solved: dict[tuple[float, Wanted], Solved] = {}
        if len(setting.noise) * len(setting.Cs) > 1:
            for noise in setting.noise:
                known = {(point.source, point.depth) for point in points if point.noise == noise}
                new = self._solve(noise, {wanted: None for wanted in self.wanted if wanted not in known})
                solved |= {(noise, wanted): own for wanted, own in new.items()}
                points += [own.point for own in new.values()]
                yield from (own.point for own in new.values())
        chosen = {wanted: self._choose(points, wanted) for wanted in self.wanted}
        # each noise level counted once for every time it was explored
        seconds = float(np.sum([*{(point.noise, point.seconds): point.seconds for point in points}.values()]))
        for noise in sorted({point.noise for point in chosen.values()}):
            here = {wanted: point for wanted, point in chosen.items() if point.noise == noise}
            left = {wanted: point for wanted, point in here.items() if (noise, wanted) not in solved}
            solved |= {(noise, wanted): own for wanted, own in self._solve(noise, left).items()}
            for wanted in here:
                yield from self._report(wanted, solved[noise, wanted], seconds)

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

    def _solve(self, noise: float, points: Mapping[Wanted, GridPoint | None]) -> dict[Wanted, Solved]:
        """Learn one stack, and predict by it; where no point is given, C is chosen on the source."""
        if not points:
            return {}
        began, cells = time.perf_counter(), [cell for cell in self.cells if _wanted_by(cell) in points]
        rows = LabelledRows(
            self.bench.corpus, (cell.source for cell in cells), (cell.target for cell in cells)
        )
        found: list[Solved] = []
        for level in self.stack.levels(noise, max(depth for _, depth in points)):
            rows.add(level)
            here = [source for source, depth in points if depth == level.depth]
            jobs = (delayed(self._solve_source)(rows, level, noise, s, points[s, level.depth]) for s in here)
            found += Parallel(self.bench.jobs, prefer="threads")(jobs)
        seconds = time.perf_counter() - began
        return {
            (own.point.source, own.point.depth): replace(own, point=replace(own.point, seconds=seconds))
            for own in found
        }

    def _solve_source(
        self, rows: LabelledRows, level: Level, noise: float, source: str, point: GridPoint | None
    ) -> Solved:
        """Train on a source and predict its targets, once C is known."""
        K, problem = rows.gram(source), self.problems[source]
        if point is None:
            C, score = choose_C(K, problem, self.bench.setting.Cs, True)
            point = GridPoint(source, self.fitted_on, noise, level.depth, C, score, 0.0)
        targets = [cell.target for cell in self.cells if _wanted_by(cell) == (source, level.depth)]

        def predict() -> dict[str, np.ndarray]:
            svm = Hyperplanes.fit(K, problem, point.C)
            weights = rows.weigh(source, svm.coef)
            return {target: svm.predict(rows.score(target, weights)) for target in targets}

        try:
            predicted, seconds = measure_time(predict)
        except Exception as error:  # of this source; told with its cells
            return Solved(point, error, level.seconds, 0.0)
        return Solved(point, predicted, level.seconds, seconds)

    def _choose(self, points: Sequence[GridPoint], wanted: Wanted) -> GridPoint:
        """The best noise level, the lowest of several."""
        setting = self.bench.setting
        points = [point for point in points if (point.source, point.depth) == wanted]
        points = [point for point in points if point.noise in setting.noise]
        if not points:
            source, depth = wanted
            return GridPoint(source, self.fitted_on, setting.noise[0], depth, setting.Cs[0], None, 0.0)
        return min(points, key=lambda point: (-(point.score or 0.0), point.noise))

    def _report(self, wanted: Wanted, solved: Solved, grid_seconds: float) -> Iterator[Finding]:
        """Yield the outcomes of a source at one depth."""
        cells = [cell for cell in self.cells if _wanted_by(cell) == wanted]
        if isinstance(solved.predicted, Exception):
            yield from attempt(cells, solved.predicted)
            return
        point = solved.point
        params = {"noise": point.noise, "n_layers": point.depth, "C": point.C}
        details = {"cv_error": None if point.score is None else round(1 - point.score, 6)}
        for cell in cells:
            spent = solved.represent_seconds, solved.classify_seconds, grid_seconds
            yield Outcome(cell, solved.predicted[cell.target], params, *spent, details)


def _wanted_by(cell: Cell) -> Wanted:
    return cell.source, depth_of(cell.method)
