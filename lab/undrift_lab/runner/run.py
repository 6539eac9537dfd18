"""Running a plan: what is left to do, doing it, and one record for each task as it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from undrift.inputs import Place, check_place

from ..corpora.corpus import Corpus, Domain
from ..methods import (
    Bench,
    Cell,
    CellRecord,
    Failure,
    Finding,
    GridPoint,
    Outcome,
    SharedStack,
    TwoFiles,
    describe_failure,
    domain_pairs,
    find_outcomes,
    in_domain_error,
    solve,
)
from ..parts import load_corpus, load_rows, sample_target, take_columns, take_labelled
from ..plan import CorpusSpec, Plan, Setting
from ..results.records import Journal, Unwritable, journal
from .recording import add_origin, grid_record, transfer_record
from .resume import Resume

Progress = Callable[[int, int, str], None]
STOPPED = "undrift-lab: stopped; what is done is kept, and the same command goes on from there"
PAIR_WIDTH = 5  # columns of the corpus over those that a pair of domains chooses from it


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


def run(plan: Plan, results: str | Path, request: Request | None = None) -> Summary:
    """Run what is left of a plan, appending a record for each task to `results`.

    Stop it at any time and call it again: it goes on where it was. A method that fails leaves records
    that say so, which count as done unless ``retry_failed``.
    """
    request = request or Request()
    # the paper's methods alone: products of SDA are rounded as well
    place = replace(check_place(request.device), precision="high")
    methods = _choose_methods(plan, request.methods)
    jobs = request.jobs or os.cpu_count() or 1
    with journal(results) as records:
        return Runner(plan, replace(request, jobs=jobs), methods, place, records).run()


class Runner:
    """One run of a plan over its journal."""

    def __init__(
        self, plan: Plan, request: Request, methods: Sequence[str], place: Place, records: Journal
    ) -> None:
        self.plan, self.request, self.methods = plan, request, methods
        self.place, self.records = place, records
        self._resume = Resume(plan, records, methods)
        self._corpora: dict[tuple[CorpusSpec, bool], Corpus] = {}
        self._representations: dict[Any, dict] = {}
        self._n_total = self._n_before = self._n_new = 0

    def run(self) -> Summary:
        """Do what is left, variant by variant."""
        entries = [(variant, cell) for variant in self.plan.variants for cell in self._cells(variant)]
        if not entries:
            self._refuse_tasks()
        done = self._resume.done(self.request.retry_failed)
        left = [(variant, cell) for variant, cell in entries if (variant.name, cell) not in done]
        in_files = [(variant, cell) for variant, cell in left if variant.fit_on == "files"]
        left = [(variant, cell) for variant, cell in left if variant.fit_on != "files"]
        self._n_total, self._n_before = len(entries), len(entries) - len(left) - len(in_files)
        self._report("")
        if left and self.place.device is not None:
            warm_up(self.place)
        if in_files:
            self._run_files(in_files)
        for variant in self.plan.variants:
            cells = [cell for its_variant, cell in left if its_variant is variant]
            if cells:
                self._run_variant(variant, cells)
        failed = self._resume.failed()
        n_failed = sum((variant.name, cell) in failed for variant, cell in entries)
        return Summary(self._n_before, self._n_new, n_failed)

    def _corpus(self, variant: Setting) -> Corpus:
        """Load the corpus of a variant once, as wide as any variant needs it."""
        spec, inductive = key = self.plan.corpus_of(variant), variant.inductive
        if key not in self._corpora:
            alike = [v for v in self.plan.variants if (self.plan.corpus_of(v), v.inductive) == key]
            width = max(map(self._width, alike))
            if all(v.fit_on == "files" for v in alike):
                self._corpora[key] = load_rows(spec, self.request.data, width)
            else:
                self._corpora[key] = load_corpus(spec, self.request.data, width, inductive)
        return self._corpora[key]

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
        pairs = [(task.source.name, task.target.name) for task in corpus.tasks()]
        return [
            pair
            for pair in pairs
            if (variant.targets is None or pair[1] in variant.targets)
            and (variant.tasks is None or "->".join(pair) in variant.tasks)
        ]

    def _refuse_tasks(self) -> None:
        if not any(_matches(variant.name, self.request.variants) for variant in self.plan.variants):
            names = ", ".join(variant.name for variant in self.plan.variants)
            raise ValueError(
                f"no variant is like {', '.join(self.request.variants or [])}; there are {names}"
            )
        domains = dict.fromkeys(name for corpus in self._corpora.values() for name in corpus.domains)
        raise ValueError(
            f"no task is like {', '.join(self.request.tasks or [])}; "
            f"the domains are {', '.join(domains)}, and a task is written as source->target"
        )

    def _bench(self, variant: Setting) -> Bench:
        corpus = self._corpus(variant)
        spec = repr((self.plan.corpus_of(variant), variant.inductive))
        return Bench(
            corpus=take_columns(corpus, self._width(variant)),
            setting=variant,
            place=self.place,
            device=self.request.device,
            seed=self.plan.seed,
            parameters=self.plan.parameters,
            jobs=self.request.jobs or 1,
            grid=self._resume.grid(variant),
            representations=self._representations.setdefault(spec, {}),
        )

    def _width(self, variant: Setting) -> int:
        """Return the columns of a variant; those of a pair of domains are chosen from more."""
        width = variant.max_features or self.plan.corpus_of(variant).max_features
        return PAIR_WIDTH * width if variant.fit_on == "pair" and variant.max_features else width

    def _run_files(self, entries: Sequence[tuple[Setting, Cell]]) -> None:
        """Run the tasks on two files, several at once, each in a process with all its methods."""
        variants = {variant.name: variant for variant, _ in entries}
        groups: dict[tuple[str, str, str], list[Cell]] = {}
        for variant, cell in entries:
            groups.setdefault((variant.name, cell.source, cell.target), []).append(cell)
        tasks = ((key, self._take_files(variants[key[0]], group)) for key, group in groups.items())
        work = Parallel(self.request.jobs, return_as="generator_unordered")
        for name, findings in work(delayed(_solve)(key[0], task) for key, task in tasks):
            for finding in findings:
                self._record_file(variants[name], finding)

    def _take_files(self, variant: Setting, cells: Sequence[Cell]) -> TwoFiles:
        """Return the rows of a task on two files."""
        corpus, (source, target) = self._corpus(variant), (cells[0].source, cells[0].target)
        most, seed = variant.max_target_rows, self.plan.seed
        if variant.target_share is not None:
            corpus, _ = sample_target(corpus, target, variant.target_share, most, seed)
        rows = take_labelled(corpus.domains[source], "train", most)
        files = *rows, *take_labelled(corpus.domains[target], "all", most)
        return TwoFiles(tuple(cells), *files, self._width(variant), self.request.device, seed)

    def _record_file(self, variant: Setting, finding: Finding) -> None:
        if isinstance(finding, Failure):
            self._fail(variant, [finding.cell], finding.message)
        elif isinstance(finding, CellRecord):
            self._append(self.plan.kind, variant, {**asdict(finding.cell), **finding.values})
            self._count(finding.cell)

    def _run_variant(self, variant: Setting, cells: Sequence[Cell]) -> None:
        """Run the cells of one variant; records are appended as they are found."""
        bench, errors = self._bench(variant), {}
        if self.plan.kind == "transfer":
            errors = self._baseline_errors(bench, cells)
            cells = [cell for cell in cells if cell.target in errors]
        for part, group, findings in find_outcomes(self.plan.kind, bench, cells):
            self._record(part, group, findings, errors)

    def _record(
        self, bench: Bench, cells: Iterable[Cell], findings: Iterator[Finding], errors: Mapping[str, float]
    ) -> None:
        """Append what is found; an error is the failure of the cells that it leaves undone."""
        left = dict.fromkeys(cells)
        try:
            for finding in findings:
                if self._record_finding(bench, finding, errors):
                    del left[finding.cell]  # type: ignore[union-attr]
        except Unwritable:  # not the method's fault
            raise
        except Exception as error:  # recorded, not lost: the other methods go on
            self._fail(bench.setting, left, describe_failure(error))

    def _record_finding(self, bench: Bench, finding: Finding, errors: Mapping[str, float]) -> bool:
        """Append one record; return whether its cell is done."""
        if isinstance(finding, GridPoint):
            self._append("grid", bench.setting, grid_record(finding))
            return False
        if isinstance(finding, Failure):
            self._fail(bench.setting, [finding.cell], finding.message)
            return True
        if isinstance(finding, Outcome):
            values = transfer_record(bench, finding, errors[finding.cell.target])
        else:
            values = {**asdict(finding.cell), **finding.values}
        self._append(self.plan.kind, bench.setting, values)
        self._count(finding.cell)
        return True

    def _fail(self, variant: Setting, left: Iterable[Cell], message: str) -> None:
        """Record what stopped the cells that are left, unless that is what their last record says."""
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

    def _baseline_errors(self, bench: Bench, cells: Sequence[Cell]) -> dict[str, float]:
        """In-domain errors of the baseline, e_b(T, T), of this variant or the one the plan names.

        A target whose baseline fails has none, and its cells fail.
        """
        setting, baseline = bench.setting, self.plan.baseline_of(bench.setting)
        errors = self._resume.in_domain_errors(baseline.name)
        missing = [target for target in dict.fromkeys(cell.target for cell in cells) if target not in errors]
        if missing and baseline is not setting:
            bench = self._bench(baseline)
        found = Parallel(bench.jobs, prefer="threads")(
            delayed(_attempt_baseline)(bench, target) for target in missing
        )
        for target, error in zip(missing, found, strict=True):
            if isinstance(error, str):
                failed = [cell for cell in cells if cell.target == target]
                self._fail(setting, failed, f"in-domain baseline of {target}: {error}")
                continue
            errors[target] = error
            self._append("in-domain", bench.setting, {"target": target, "method": "svm", "error": error})
        return errors


def _solve(variant: str, task: TwoFiles) -> tuple[str, list[Finding]]:
    """Solve a task in a process of its own, and say of which variant it was."""
    return variant, solve(task)


def _attempt_baseline(bench: Bench, target: str) -> float | str:
    """Return the in-domain error of a target, or what stopped it."""
    try:
        return in_domain_error(bench, target)
    except Exception as error:  # recorded, not lost: other targets go on
        return describe_failure(error)


def warm_up(place: Place) -> None:
    """Let a device load its libraries before anything is timed."""
    rng = np.random.default_rng(0)
    domain = Domain("warm", X=rng.random((512, 256), dtype=np.float32), y=np.zeros(512))
    for _ in SharedStack(Corpus("warm", {"warm": domain}), place=place).levels(0.5, 2):
        pass


def _choose_methods(plan: Plan, wanted: Sequence[str] | None) -> list[str]:
    for name in wanted or []:
        if name not in plan.methods:
            raise ValueError(
                f"method {name!r} is not in plan {plan.name}, which has {', '.join(plan.methods)}"
            )
    return [name for name in plan.methods if wanted is None or name in wanted]


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)
