"""Running a plan: what is left to do, doing it, and one record for each task as it is done."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._inputs import OnHost, Place, check_count, check_place
from ..._processes import WorkerPool
from ...corpora import Corpus, Domain
from ..catalogue import LASTING
from ..corpora import CorpusSpec, load_corpus, take_columns
from ..methods import (
    Bench,
    Cell,
    CellRecord,
    Failure,
    Finding,
    GridPoint,
    Outcome,
    RepresentationCache,
    SharedStack,
    Unit,
    call_here,
    cut_into_units,
    domain_pairs,
    file_name,
    in_domain_error,
)
from ..plan import Plan, Setting
from ..results import Journal, Unwritable, journal
from .recording import add_origin, describe_machine, grid_record, transfer_record
from .resume import Entry, Resume

Progress = Callable[[int, int, str], None]
STOPPED = "undrift: stopped; what is done is kept, and the same command goes on from there"
SECONDS_BETWEEN = 1.0  # two reports on work that is under way


class Stopped(Exception):
    """Raised in a thread whose run has been stopped."""


@dataclass(frozen=True)
class Summary:
    """Tasks that were done before a run, tasks that it did, and how many of both are recorded as failed."""

    n_before: int
    n_new: int
    n_failed: int


@dataclass(frozen=True)
class Request:
    """What of a plan to run, and where; the defaults are everything, here."""

    data: str | Path | None = None
    methods: Sequence[str] | None = None
    tasks: Sequence[str] | None = None  # patterns such as "books->*"
    variants: Sequence[str] | None = None  # patterns of their names
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
    for threads that are at work; a program ends without them by `undrift._processes.exit_process`.

    What SDA learns is kept in a file beside the results until all its tasks in the plan have a result.
    """
    request = request or Request()
    place = check_place(request.device)
    methods = _choose_methods(plan, request.methods)
    jobs = request.jobs or os.cpu_count() or 1
    with journal(results) as records, WorkerPool(jobs) as pool:
        runner = Runner(plan, replace(request, jobs=jobs), methods, place, pool, records)
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
        records: Journal,
    ) -> None:
        self.plan, self.request, self.methods = plan, request, methods
        self.place, self.pool, self.records = place, pool, records
        self._resume = Resume(plan, records, methods)
        beside = records.path.with_name(f"{records.path.name}.{plan.name}-{plan.seed}")
        self._representations = RepresentationCache(beside, _origin(plan, request.device))
        self._corpora: list[tuple[tuple[CorpusSpec, bool], Corpus]] = []
        self._is_stopped, self._reported_at = False, -math.inf
        self._n_total = self._n_before = self._n_new = 0

    def run(self) -> Summary:
        """Do what is left, variant by variant."""
        entries = [(variant, cell) for variant in self.plan.variants for cell in self._cells(variant)]
        if not entries:
            self._refuse_tasks()
        done = self._resume.done(self.request.retry_failed)
        left = [(variant, cell) for variant, cell in entries if (variant.name, cell) not in done]
        self._n_total, self._n_before = len(entries), len(entries) - len(left)
        self._report("")
        if left and not isinstance(self.place, OnHost):
            warm_up(self.place)
        for variant in self.plan.variants:
            cells = [cell for its_variant, cell in left if its_variant is variant]
            if cells:
                self._run_variant(variant, cells)
        self._remove_representations()
        failed = self._resume.failed()
        n_failed = sum((variant.name, cell) in failed for variant, cell in entries)
        return Summary(self._n_before, self._n_new, n_failed)

    def stop(self) -> None:
        """Let what is still at work in a thread notice, where it reports its progress, that it is over."""
        self._is_stopped = True
        self._representations.close()

    def _corpus(self, variant: Setting) -> Corpus:
        """Load the corpus of a variant once, as wide as any variant needs it."""
        spec, inductive = key = self.plan.corpus_of(variant), variant.inductive
        known = next((corpus for other, corpus in self._corpora if other == key), None)
        if known is None:
            alike = [v for v in self.plan.variants if (self.plan.corpus_of(v), v.inductive) == key]
            known = load_corpus(spec, self.request.data, max(map(self._width, alike)), inductive)
            self._corpora.append((key, known))
        return known

    def _cells(self, variant: Setting) -> list[Cell]:
        """Everything that was asked for of a variant, method by method."""
        if not _matches(variant.name, self.request.variants):
            return []
        pairs = [pair for pair in self._pairs(variant) if _matches("->".join(pair), self.request.tasks)]
        methods = [name for name in self.methods if variant.methods is None or name in variant.methods]
        return [Cell(method, *pair) for method in methods for pair in pairs]

    def _pairs(self, variant: Setting) -> list[tuple[str, str]]:
        """Pairs of domains that a variant is about."""
        corpus = self._corpus(variant)
        for name in variant.targets or ():
            if name not in corpus.domains:
                domains = ", ".join(corpus.domains)
                raise ValueError(
                    f"targets: {name!r} is not a domain of the corpus; the domains are {domains}"
                )
        if self.plan.kind == "distance":
            return domain_pairs(list(corpus.domains))
        return [
            pair
            for pair in _tasks(corpus)
            if (variant.targets is None or pair[1] in variant.targets)
            and (variant.tasks is None or "->".join(pair) in variant.tasks)
        ]

    def _refuse_tasks(self) -> None:
        if not any(_matches(variant.name, self.request.variants) for variant in self.plan.variants):
            names = ", ".join(variant.name for variant in self.plan.variants)
            raise ValueError(
                f"no variant is like {', '.join(self.request.variants or [])}; there are {names}"
            )
        domains = dict.fromkeys(name for _, corpus in self._corpora for name in corpus.domains)
        raise ValueError(
            f"no task is like {', '.join(self.request.tasks or [])}; "
            f"the domains are {', '.join(domains)}, and a task is written as source->target"
        )

    def _bench(self, variant: Setting) -> Bench:
        jobs = self.request.jobs or 1
        return Bench(
            corpus=take_columns(self._corpus(variant), self._width(variant)),
            setting=variant,
            place=self.place,
            device=self.request.device,
            seed=self.plan.seed,
            parameters=self.plan.parameters,
            pool=self.pool,
            jobs=jobs,
            grid=self._resume.grid(variant),
            known_points=self._resume.known_points(variant),
            representations=self._representations,
            call=self.pool.call_in_subprocess if jobs > 1 else call_here,
            report=self._report_work,
        )

    def _width(self, variant: Setting) -> int:
        return variant.max_features or self.plan.corpus_of(variant).max_features

    def _remove_representations(self) -> None:
        """Remove the files of representations that no task of the plan will need, tried again or not."""
        done = self._resume.done(retry_failed=True)
        for method in set(LASTING).intersection(self.plan.methods):
            needed_by: dict[str, set[Entry]] = {}
            for variant in self.plan.variants:
                if variant.methods is None or method in variant.methods:
                    widest = next(iter(self._corpus(variant).domains.values())).X.shape[1]
                    name = file_name(method, min(self._width(variant), widest), variant.tuned)
                    entries = needed_by.setdefault(name, set())
                    entries.update((variant.name, Cell(method, *pair)) for pair in self._pairs(variant))
            for name, entries in needed_by.items():
                if entries <= done:
                    self._representations.remove(name)

    def _run_variant(self, variant: Setting, cells: Sequence[Cell]) -> None:
        """Run the cells of one variant; records are appended as units finish."""
        bench, errors = self._bench(variant), {}
        if self.plan.kind == "transfer":
            errors = self._baseline_errors(bench, cells)
            cells = [cell for cell in cells if cell.target in errors]
        for units in cut_into_units(self.plan.kind, bench, cells):
            futures = {self.pool.submit(_collect, unit): unit for unit in units if unit.parallel}
            for future in as_completed(futures):
                self._record(bench, futures[future], _replay(future), errors)
            for unit in units:
                if not unit.parallel:
                    self._record(bench, unit, unit.run(), errors)

    def _record(
        self, bench: Bench, unit: Unit, findings: Iterator[Finding], errors: Mapping[str, float]
    ) -> None:
        """Append what a unit gives; if it fails, that is the failure of the cells it leaves undone."""
        left = dict.fromkeys(unit.cells)
        bench = bench if unit.corpus is None else replace(bench, corpus=unit.corpus)
        try:
            for finding in findings:
                if self._record_finding(bench, finding, errors):
                    del left[finding.cell]  # type: ignore[union-attr]
        except Unwritable:  # not the method's fault
            raise
        except Exception as error:  # recorded, not lost: the other methods go on
            self._fail(bench.setting, left, error)

    def _record_finding(self, bench: Bench, finding: Finding, errors: Mapping[str, float]) -> bool:
        """Append one record; return whether its cell is done."""
        if isinstance(finding, GridPoint):
            self._append("grid", bench.setting, grid_record(finding))
            return False
        if isinstance(finding, Failure):
            self._fail(bench.setting, [finding.cell], finding.error)
            return True
        if isinstance(finding, Outcome):
            values = transfer_record(bench, finding, errors[finding.cell.target])
        else:
            values = {**asdict(finding.cell), **finding.values}
        self._append(self.plan.kind, bench.setting, values)
        if isinstance(finding, CellRecord) and finding.progress is not None:
            self._report(finding.progress)
            return False
        self._count(finding.cell)
        return True

    def _fail(self, variant: Setting, left: Iterable[Cell], error: Exception, where: str = "") -> None:
        """Record what stopped the cells that are left, unless that is what their last record says."""
        message = f"{where}{type(error).__name__}: {error}".splitlines()[0]
        before = self._resume.failed()
        for cell in left:
            if before.get((variant.name, cell)) != message:
                self._append(self.plan.kind, variant, {**asdict(cell), "failed": message})
            self._count(cell)

    def _append(self, kind: str, variant: Setting, values: Mapping[str, Any]) -> None:
        self.records.append(add_origin(kind, self.plan, variant, values, self.request.device))

    def _count(self, cell: Cell) -> None:
        self._n_new += 1
        self._report(f"{cell.method} {cell.source}->{cell.target}")

    def _report(self, what: str) -> None:
        self.request.progress(self._n_before + self._n_new, self._n_total, what)

    def _report_work(self, what: str) -> None:
        """Report on work under way in a thread, now and then."""
        if self._is_stopped:
            raise Stopped
        now = time.monotonic()
        if now - self._reported_at >= SECONDS_BETWEEN:
            self._reported_at = now
            self._report(what)

    def _baseline_errors(self, bench: Bench, cells: Sequence[Cell]) -> dict[str, float]:
        """In-domain errors of the baseline, e_b(T, T), of this variant or the one the plan names.

        A target whose baseline fails has none, and its cells fail.
        """
        setting, baseline = bench.setting, self.plan.baseline_of(bench.setting)
        errors = self._resume.in_domain_errors(baseline.name)
        missing = [target for target in dict.fromkeys(cell.target for cell in cells) if target not in errors]
        if missing and baseline is not setting:
            bench = self._bench(baseline)
        futures = {self.pool.submit(in_domain_error, bench, target): target for target in missing}
        for future in as_completed(futures):
            target = futures[future]
            try:
                errors[target] = future.result()
            except Exception as error:  # recorded, not lost: other targets go on
                failed = [cell for cell in cells if cell.target == target]
                self._fail(setting, failed, error, f"in-domain baseline of {target}: ")
                continue
            record = {"target": target, "method": "svm", "error": errors[target]}
            self._append("in-domain", bench.setting, record)
        return errors


def warm_up(place: Place) -> None:
    """Let a device load its libraries before anything is timed."""
    rng = np.random.default_rng(0)
    domain = Domain("warm", X=rng.random((512, 256), dtype=np.float32), y=np.zeros(512))
    for _ in SharedStack(Corpus("warm", {"warm": domain}), place=place).levels(0.5, 2):
        pass


def _collect(unit: Unit) -> tuple[list[Finding], Exception | None]:
    """Findings of a unit that runs in a thread, and what stopped it."""
    findings: list[Finding] = []
    try:
        for finding in unit.run():
            findings.append(finding)
    except Exception as error:
        return findings, error
    return findings, None


def _replay(future: Future[tuple[list[Finding], Exception | None]]) -> Iterator[Finding]:
    findings, error = future.result()
    yield from findings
    if error is not None:
        raise error


def _choose_methods(plan: Plan, wanted: Sequence[str] | None) -> list[str]:
    for name in wanted or []:
        if name not in plan.methods:
            raise ValueError(
                f"method {name!r} is not in plan {plan.name}, which has {', '.join(plan.methods)}"
            )
    return [name for name in plan.methods if wanted is None or name in wanted]


def _tasks(corpus: Corpus) -> list[tuple[str, str]]:
    return [(task.source.name, task.target.name) for task in corpus.tasks()]


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


def _origin(plan: Plan, device: str) -> str:
    """Say all that decides a lasting representation, and where it is learnt."""
    parameters = {name: dict(plan.parameters.get(name, {})) for name in LASTING}
    decisive = [asdict(plan.corpus), parameters, plan.seed, __version__, describe_machine(device)]
    return json.dumps(decisive, sort_keys=True)
