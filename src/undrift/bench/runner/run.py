"""Running a plan: what is left to do, doing it, and one record for each task as it is done."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._inputs import OnHost, Place, check_count, check_place
from ..._processes import WorkerPool
from ...corpora import Corpus
from ..catalogue import LASTING, find_family
from ..corpora import first_columns, load_corpus
from ..methods import (
    Bench,
    Cell,
    Failure,
    Finding,
    GridPoint,
    Memory,
    SharedStack,
    Unit,
    candidate_records,
    domain_pairs,
    file_name,
    here,
    in_domain_error,
    measure_distances,
    points,
    units,
)
from ..plan import Plan, Setting
from ..results import Journal, Unwritable, journal, task
from .machine import description
from .recording import grid_record, stamped, transfer_record
from .resume import Entry, Standing

Progress = Callable[[int, int, str], None]
STOPPED = "undrift: stopped; what is done is kept, and the same command goes on from there"


SECONDS_BETWEEN = 1.0  # two words on work that is under way


class Stopped(Exception):
    """Raised in a thread whose run has been stopped."""


@dataclass(frozen=True)
class Summary:
    """Tasks that a run found done, tasks that it did, and how many of both are recorded as failed."""

    n_before: int
    n_new: int
    n_failed: int


@dataclass(frozen=True)
class Request:
    """What of a plan to run, and where; the defaults are everything, here."""

    data: str | Path | None = None
    methods: Sequence[str] | None = None
    tasks: Sequence[str] | None = None  # patterns such as "books->*"
    jobs: int | None = None
    device: str = "cpu"
    retry_failed: bool = False
    progress: Progress = lambda n_done, n_total, what: None

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_count(self.jobs, "jobs", hint="leave it out for all cores")


def run(plan: Plan, results: str | Path, request: Request | None = None) -> Summary:
    """Run what is left of a plan, appending a record for each task to `results`.

    Stop it at any time and call it again: it goes on where it was. A method that fails leaves records
    that say so, which count as done unless ``retry_failed``. An interrupt is raised at once, without waiting
    for threads that are at work; a program ends without them by `undrift._processes.leave`.

    What SDA learns is kept in a file beside the results until all its tasks in the plan have a result.
    """
    request = request or Request()
    place = check_place(request.device)
    methods = _chosen_methods(plan, request.methods)
    jobs = request.jobs or os.cpu_count() or 1
    with journal(results) as book, WorkerPool(jobs) as pool:
        runner = Runner(plan, replace(request, jobs=jobs), methods, place, pool, book)
        try:
            return runner.run()
        finally:
            runner.stop()


class Runner:
    """One run of a plan over its journal."""

    def __init__(
        self,
        plan: Plan,
        request: Request,
        methods: Sequence[str],
        place: Place,
        pool: WorkerPool,
        book: Journal,
    ) -> None:
        self.plan, self.request, self.methods = plan, request, methods
        self.place, self.pool, self.book = place, pool, book
        self._standing = Standing(plan, book)
        beside = book.path.with_name(f"{book.path.name}.{plan.name}-{plan.seed}")
        self._memory = Memory(beside, _origin(plan, request.device))
        self._stopped, self._told_at = False, -math.inf
        self._n_total = self._n_before = self._n_new = 0

    def run(self) -> Summary:
        """Do what is left, variant by variant."""
        everything = [
            (variant, cell)
            for variant in self.plan.variants
            for cell in self._cells()
            if variant.methods is None or cell.method in variant.methods
        ]
        done = self._standing.done(self.request.retry_failed)
        left = [(variant, cell) for variant, cell in everything if (variant.name, cell) not in done]
        self._n_total, self._n_before = len(everything), len(everything) - len(left)
        self._tell("")
        if left and not isinstance(self.place, OnHost):
            warm_up(self.place)
        for variant in self.plan.variants:
            cells = [cell for own, cell in left if own is variant]
            if cells:
                bench = self._bench(variant)
                steps = {"transfer": self._transfer, "distance": self._distances, "regret": self._regrets}
                steps[self.plan.kind](bench, cells)
        self._forget()
        failed = self._standing.failed()
        n_failed = sum((variant.name, cell) in failed for variant, cell in everything)
        return Summary(self._n_before, self._n_new, n_failed)

    def stop(self) -> None:
        """Let what is still at work in a thread notice, where it tells of its progress, that it is over."""
        self._stopped = True
        self._memory.close()

    @cached_property
    def _corpus(self) -> Corpus:
        widths = [variant.max_features or self.plan.corpus.max_features for variant in self.plan.variants]
        return load_corpus(self.plan.corpus, self.request.data, max(widths))

    def _cells(self) -> list[Cell]:
        """Everything that was asked for, method by method."""
        corpus = self._corpus
        if self.plan.kind == "distance":
            names = domain_pairs(list(corpus.domains))
        else:
            names = [(task.source.name, task.target.name) for task in corpus.tasks()]
        names = [pair for pair in names if _matches("->".join(pair), self.request.tasks)]
        if not names:
            raise ValueError(
                f"no task is like {', '.join(self.request.tasks or [])}; "
                f"the domains are {', '.join(corpus.domains)}, and a task is written as source->target"
            )
        return [Cell(method, *pair) for method in self.methods for pair in names]

    def _bench(self, variant: Setting) -> Bench:
        jobs = self.request.jobs or 1
        return Bench(
            corpus=first_columns(self._corpus, self._width(variant)),
            setting=variant,
            place=self.place,
            device=self.request.device,
            seed=self.plan.seed,
            parameters=self.plan.parameters,
            pool=self.pool,
            jobs=jobs,
            grid=self._standing.grid(variant),
            memory=self._memory,
            apart=self.pool.call_in_subprocess if jobs > 1 else here,
            tell=self._tell_more,
        )

    def _width(self, variant: Setting) -> int:
        return variant.max_features or self.plan.corpus.max_features

    def _forget(self) -> None:
        """Remove the files of representations that no task of the plan will need, tried again or not."""
        done = self._standing.done(retry_failed=True)
        most = next(iter(self._corpus.domains.values())).X.shape[1]
        tasks = [(task.source.name, task.target.name) for task in self._corpus.tasks()]
        for method in set(LASTING).intersection(self.plan.methods):
            wanted: dict[int, set[Entry]] = {}
            for variant in self.plan.variants:
                if variant.methods is None or method in variant.methods:
                    own = wanted.setdefault(min(self._width(variant), most), set())
                    own.update((variant.name, Cell(method, *pair)) for pair in tasks)
            for width, entries in wanted.items():
                if entries <= done:
                    self._memory.forget(file_name(method, width))

    def _transfer(self, bench: Bench, cells: Sequence[Cell]) -> None:
        """Run the cells of one variant, family by family; records are appended as units finish."""
        errors = self._baseline_errors(bench, cells)
        cells = [cell for cell in cells if cell.target in errors]
        families = dict.fromkeys(find_family(cell.method) for cell in cells)
        for family in families:
            own = [cell for cell in cells if find_family(cell.method) == family]
            work = units(family, bench, own)
            futures = {self.pool.submit(_collected, unit): unit for unit in work if unit.parallel}
            for future in as_completed(futures):
                self._keep(bench, futures[future], _awaited(future), errors)
            for unit in work:
                if not unit.parallel:
                    self._keep(bench, unit, unit.run(), errors)

    def _keep(
        self,
        bench: Bench,
        unit: Unit,
        outcomes: Iterator[Finding],
        errors: Mapping[str, float],
    ) -> None:
        """Append what a unit gives; if it fails, say so for the cells it leaves undone."""
        left = dict.fromkeys(unit.cells)
        with self._failures_kept(bench.setting, left):
            for outcome in outcomes:
                if isinstance(outcome, GridPoint):
                    self._append("grid", bench.setting, grid_record(outcome))
                    continue
                if isinstance(outcome, Failure):
                    self._fail(bench.setting, [outcome.cell], outcome.error)
                else:
                    record = transfer_record(bench, outcome, errors[outcome.cell.target])
                    self._append("transfer", bench.setting, record)
                    self._count(outcome.cell)
                del left[outcome.cell]

    @contextmanager
    def _failures_kept(self, variant: Setting, left: Mapping[Cell, Any]) -> Iterator[None]:
        """Record an error as that of the cells that are left then: the other methods go on."""
        try:
            yield
        except Unwritable:  # not the method's fault
            raise
        except Exception as error:
            self._fail(variant, left, error)

    def _fail(self, variant: Setting, left: Iterable[Cell], error: Exception, where: str = "") -> None:
        """Record what stopped the cells that are left, unless that is what their last record says."""
        message = f"{where}{type(error).__name__}: {error}".splitlines()[0]
        before = self._standing.failed()
        for cell in left:
            if before.get((variant.name, cell)) != message:
                self._append(self.plan.kind, variant, {**asdict(cell), "failed": message})
            self._count(cell)

    def _append(self, kind: str, variant: Setting, own: Mapping[str, Any]) -> None:
        self.book.append(stamped(kind, self.plan, variant, own, self.request.device))

    def _count(self, cell: Cell) -> None:
        self._n_new += 1
        self._tell(f"{cell.method} {cell.source}->{cell.target}")

    def _tell(self, what: str) -> None:
        self.request.progress(self._n_before + self._n_new, self._n_total, what)

    def _tell_more(self, what: str) -> None:
        """Tell of work under way in a thread, now and then."""
        if self._stopped:
            raise Stopped
        now = time.monotonic()
        if now - self._told_at >= SECONDS_BETWEEN:
            self._told_at = now
            self._tell(what)

    def _baseline_errors(self, bench: Bench, cells: Sequence[Cell]) -> dict[str, float]:
        """In-domain errors of the baseline, e_b(T, T), of this variant or the one the plan names.

        A target whose baseline fails has none, and its cells fail.
        """
        setting, name = bench.setting, self.plan.baseline_variant or bench.setting.name
        known = self._standing.at_home(name)
        missing = [target for target in dict.fromkeys(cell.target for cell in cells) if target not in known]
        if missing and name != setting.name:
            variant = next(each for each in self.plan.variants if each.name == name)
            bench = self._bench(variant)
        futures = {self.pool.submit(in_domain_error, bench, target): target for target in missing}
        for future in as_completed(futures):
            target = futures[future]
            try:
                known[target] = future.result()
            except Exception as error:  # recorded, not lost: other targets go on
                own = [cell for cell in cells if cell.target == target]
                self._fail(setting, own, error, f"in-domain baseline of {target}: ")
                continue
            record = {"target": target, "method": "svm", "error": known[target]}
            self._append("in-domain", bench.setting, record)
        return known

    def _distances(self, bench: Bench, cells: Sequence[Cell]) -> None:
        for method in dict.fromkeys(cell.method for cell in cells):
            left = {cell: (cell.source, cell.target) for cell in cells if cell.method == method}
            with self._failures_kept(bench.setting, left):
                for found in measure_distances(bench, method, list(left.values())):
                    cell = Cell(method, found["source"], found["target"])
                    self._append("distance", bench.setting, {**asdict(cell), **found})
                    del left[cell]
                    self._count(cell)

    def _regrets(self, bench: Bench, cells: Sequence[Cell]) -> None:
        """Record candidates as they are scored; a task counts as done with its last."""
        known = self._standing.known_points(bench.setting)
        left = {
            cell: set(points([cell], bench.setting.noise, bench.setting.depths)) - known for cell in cells
        }
        with self._failures_kept(bench.setting, left):
            for found in candidate_records(bench, cells, known):
                if isinstance(found, Failure):
                    self._fail(bench.setting, [found.cell], found.error)
                    del left[found.cell]
                    continue
                cell = Cell(found["method"], found["source"], found["target"])
                self._append("regret", bench.setting, found)
                left[cell].remove((cell.source, cell.target, found["noise"], found["n_layers"]))
                if left[cell]:
                    self._tell(f"{task(found)}, noise {found['noise']:g}, depth {found['n_layers']}")
                else:
                    del left[cell]
                    self._count(cell)


def warm_up(place: Place) -> None:
    """Let a device load its libraries before anything is timed."""
    from ...corpora import Domain

    rng = np.random.default_rng(0)
    domain = Domain("warm", X=rng.random((512, 256), dtype=np.float32), y=np.zeros(512))
    for _ in SharedStack(Corpus("warm", {"warm": domain}), place=place).levels(0.5, 2):
        pass


def _collected(unit: Unit) -> tuple[list[Finding], Exception | None]:
    """Outcomes of a unit that runs in a thread, and what stopped it."""
    found: list[Finding] = []
    try:
        for outcome in unit.run():
            found.append(outcome)
    except Exception as error:
        return found, error
    return found, None


def _awaited(
    future: Future[tuple[list[Finding], Exception | None]],
) -> Iterator[Finding]:
    found, error = future.result()
    yield from found
    if error is not None:
        raise error


def _chosen_methods(plan: Plan, wanted: Sequence[str] | None) -> list[str]:
    for name in wanted or []:
        if name not in plan.methods:
            raise ValueError(
                f"method {name!r} is not in plan {plan.name}, which has {', '.join(plan.methods)}"
            )
    return [name for name in plan.methods if wanted is None or name in wanted]


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


def _origin(plan: Plan, device: str) -> str:
    """Say all that decides a lasting representation, and where it is learnt."""
    parameters = {name: dict(plan.parameters.get(name, {})) for name in LASTING}
    decisive = [asdict(plan.corpus), parameters, plan.seed, __version__, description(device)]
    return json.dumps(decisive, sort_keys=True)
