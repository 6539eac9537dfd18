"""Running a plan: what is left to do, doing it, and one record for each task as it is done."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..domains import Corpus
from ..metrics import transfer_error, transfer_loss, transfer_ratio
from ..placement import OnHost, Place, check_place
from .candidates import Point, candidate_records, points
from .cells import Bench, Cell, GridPoint, Outcome, Unit
from .classify import labels
from .corpora import first_columns, load_corpus
from .distances import distances, domain_pairs
from .indomain import in_domain_error
from .machine import description
from .measures import task
from .methods import known_method, units
from .plan import Plan, Setting
from .records import Journal, journal
from .stacks import SharedStack

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Summary:
    """What a run found done, what it did, and what failed."""

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


def run(plan: Plan, results: str | Path, request: Request | None = None) -> Summary:
    """Run what is left of a plan, appending a record for each task to `results`.

    Stop it at any time and call it again: it goes on where it was. A method that fails leaves records
    that say so, which count as done unless ``retry_failed``.
    """
    request = request or Request()
    place = check_place(request.device)
    methods = _chosen_methods(plan, request.methods)
    with ExitStack() as stack:
        book = stack.enter_context(journal(results))
        jobs = request.jobs or os.cpu_count() or 1
        pool = ThreadPoolExecutor(jobs)
        stack.callback(pool.shutdown, cancel_futures=True)  # what has not begun is left when a run is stopped
        _check_same_plan(plan, book)
        return Runner(plan, replace(request, jobs=jobs), methods, place, pool, book).run()


class Runner:
    """One run of a plan over its journal."""

    def __init__(
        self,
        plan: Plan,
        request: Request,
        methods: Sequence[str],
        place: Place,
        pool: Executor,
        book: Journal,
    ) -> None:
        self.plan, self.request, self.methods = plan, request, methods
        self.place, self.pool, self.book = place, pool, book
        self._memory: dict[Any, Any] = {}
        self._n_total = self._n_before = self._n_new = self._n_failed = 0

    def run(self) -> Summary:
        """Do what is left, variant by variant."""
        corpus = self._loaded()
        everything = [
            (variant, cell)
            for variant in self.plan.variants
            for cell in self._cells(corpus)
            if variant.methods is None or cell.method in variant.methods
        ]
        done = self._done()
        left = [(variant, cell) for variant, cell in everything if (variant.name, cell) not in done]
        self._n_total, self._n_before = len(everything), len(everything) - len(left)
        self._tell("")
        if left and not isinstance(self.place, OnHost):
            warm_up(self.place)
        for variant in self.plan.variants:
            cells = [cell for own, cell in left if own is variant]
            if cells:
                bench = self._bench(variant, corpus)
                steps = {"transfer": self._transfer, "distance": self._distances, "regret": self._regrets}
                steps[self.plan.kind](bench, cells)
        return Summary(self._n_before, self._n_new, self._n_failed)

    def _loaded(self) -> Corpus:
        widths = [variant.max_features or self.plan.corpus.max_features for variant in self.plan.variants]
        return load_corpus(self.plan.corpus, self.request.data, max(widths))

    def _cells(self, corpus: Corpus) -> list[Cell]:
        """Everything that was asked for, method by method."""
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

    def _own(self, kind: str, variant: str | None = None) -> list[dict[str, Any]]:
        """Records of this plan at its seed."""
        return [
            record
            for record in self.book.records
            if record.get("kind") == kind
            and record.get("plan") == self.plan.name
            and record.get("seed") == self.plan.seed
            and variant in (None, record.get("variant"))
        ]

    def _done(self) -> set[tuple[str, Cell]]:
        return {
            (record["variant"], Cell(record["method"], record["source"], record["target"]))
            for record in self._own(self.plan.kind)
            if not (self.request.retry_failed and "failed" in record)
            and (self.plan.kind != "regret" or "failed" in record)
        } | self._finished()

    def _finished(self) -> set[tuple[str, Cell]]:
        """Tasks of a plan of regret with all their candidates."""
        return {
            (variant.name, cell)
            for variant in self.plan.variants
            if (known := self._known(variant))
            for cell in {Cell("undrift", *point[:2]) for point in known}
            if known.issuperset(points([cell], variant.noise, variant.depths))
        }

    def _known(self, variant: Setting) -> set[Point]:
        """Points of a plan of regret that are recorded."""
        names = ("source", "target", "noise", "n_layers")
        found = [record for record in self._own("regret", variant.name) if "failed" not in record]
        return {tuple(record[name] for name in names) for record in found}

    def _bench(self, variant: Setting, corpus: Corpus) -> Bench:
        names = [field.name for field in fields(GridPoint)]
        points = [
            GridPoint(**{name: record[name] for name in names}) for record in self._own("grid", variant.name)
        ]
        return Bench(
            first_columns(corpus, variant.max_features or self.plan.corpus.max_features),
            variant,
            self.place,
            self.request.device,
            self.plan.seed,
            self.plan.parameters,
            self.pool,
            self.request.jobs or 1,
            points,
            self._memory,
        )

    def _transfer(self, bench: Bench, cells: Sequence[Cell]) -> None:
        """Run the cells of one variant, family by family."""
        errors = self._baseline_errors(bench, list(dict.fromkeys(cell.target for cell in cells)))
        families = dict.fromkeys(known_method(cell.method).family for cell in cells)
        for family in families:
            own = [cell for cell in cells if known_method(cell.method).family == family]
            work = units(family, bench, own)
            futures = [self.pool.submit(_collected, unit) for unit in work if unit.parallel]
            for unit, future in zip([unit for unit in work if unit.parallel], futures, strict=True):
                self._keep(bench, unit, _awaited(future), errors)
            for unit in work:
                if not unit.parallel:
                    self._keep(bench, unit, unit.run(), errors)

    def _keep(
        self,
        bench: Bench,
        unit: Unit,
        outcomes: Iterator[Outcome | GridPoint],
        errors: Mapping[str, float],
    ) -> None:
        """Append what a unit gives; if it fails, say so for the cells it leaves undone."""
        left = dict.fromkeys(unit.cells)
        try:
            for outcome in outcomes:
                if isinstance(outcome, GridPoint):
                    point = {**asdict(outcome), "score": _finite(outcome.score)}
                    self.book.append(self._stamped("grid", bench.setting, point))
                    continue
                self.book.append(self._record(bench, outcome, errors[outcome.cell.target]))
                del left[outcome.cell]
                self._count(outcome.cell)
        except Exception as error:  # recorded, not lost: the other methods go on
            self._fail(bench.setting, left, error)

    def _fail(self, variant: Setting, left: Iterable[Cell], error: Exception) -> None:
        """Record what stopped the cells that are left."""
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        for cell in left:
            self.book.append(self._stamped(self.plan.kind, variant, {**asdict(cell), "failed": message}))
            self._count(cell, failed=True)

    def _count(self, cell: Cell, failed: bool = False) -> None:
        self._n_new += 1
        self._n_failed += failed
        self._tell(f"{cell.method} {cell.source}->{cell.target}")

    def _tell(self, what: str) -> None:
        self.request.progress(self._n_before + self._n_new, self._n_total, what)

    def _record(self, bench: Bench, outcome: Outcome, baseline_error: float) -> dict[str, Any]:
        cell = outcome.cell
        truth = labels(bench.corpus, cell.target, "test")
        error = transfer_error(truth, outcome.predicted)
        own = {
            **asdict(cell),
            "params": dict(outcome.params),
            "transfer_error": error,
            "baseline_in_domain_error": baseline_error,
            "transfer_loss": transfer_loss(error, baseline_error),
            "transfer_ratio": _finite(transfer_ratio(error, baseline_error)),
            "represent_seconds": round(outcome.represent_seconds, 6),
            "classify_seconds": round(outcome.classify_seconds, 6),
            "grid_seconds": round(outcome.grid_seconds, 6),
            "n_train": len(labels(bench.corpus, cell.source, "train")),
            "n_test": len(truth),
            "n_features": next(iter(bench.corpus.domains.values())).X.shape[1],
            **outcome.details,
        }
        return self._stamped("transfer", bench.setting, own)

    def _stamped(self, kind: str, variant: Setting, own: Mapping[str, Any]) -> dict[str, Any]:
        """Add to a record where it comes from."""
        return {
            "kind": kind,
            "plan": self.plan.name,
            "variant": variant.name,
            "corpus": self.plan.corpus.folder or self.plan.corpus.loader,
            **own,
            "seed": self.plan.seed,
            "version": __version__,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": description(self.request.device),
            "digest": self.plan.digest(variant),
        }

    def _baseline_errors(self, bench: Bench, targets: Sequence[str]) -> dict[str, float]:
        """In-domain errors of the baseline, e_b(T, T), of this variant or the one the plan names."""
        name = self.plan.baseline_variant or bench.setting.name
        known = {record["target"]: record["error"] for record in self._own("in-domain", name)}
        missing = [target for target in targets if target not in known]
        if missing and name != bench.setting.name:
            variant = next(each for each in self.plan.variants if each.name == name)
            bench = replace(self._bench(variant, self._loaded()), pool=self.pool)
        futures = [self.pool.submit(in_domain_error, bench, target) for target in missing]
        for target, future in zip(missing, futures, strict=True):
            own = {"target": target, "method": "svm", "error": future.result()}
            self.book.append(self._stamped("in-domain", bench.setting, own))
            known[target] = own["error"]
        return known

    def _distances(self, bench: Bench, cells: Sequence[Cell]) -> None:
        for method in dict.fromkeys(cell.method for cell in cells):
            own = [cell for cell in cells if cell.method == method]
            left = {(cell.source, cell.target): cell for cell in own}
            try:
                for found in distances(bench, method, list(left)):
                    record = {**asdict(left[found["source"], found["target"]]), **found}
                    self.book.append(self._stamped("distance", bench.setting, record))
                    self._count(left.pop((found["source"], found["target"])))
            except Exception as error:  # as for transfer
                self._fail(bench.setting, left.values(), error)

    def _regrets(self, bench: Bench, cells: Sequence[Cell]) -> None:
        """Record candidates as they are scored; a task counts as done with its last."""
        known = self._known(bench.setting)
        left = {
            cell: set(points([cell], bench.setting.noise, bench.setting.depths)) - known for cell in cells
        }
        try:
            for found in candidate_records(bench, cells, known):
                cell = Cell(found["method"], found["source"], found["target"])
                self.book.append(self._stamped("regret", bench.setting, found))
                left[cell].remove((cell.source, cell.target, found["noise"], found["n_layers"]))
                if left[cell]:
                    self._tell(f"{task(found)}, noise {found['noise']:g}, depth {found['n_layers']}")
                else:
                    del left[cell]
                    self._count(cell)
        except Exception as error:  # as for transfer
            self._fail(bench.setting, left, error)


def warm_up(place: Place) -> None:
    """Let a device load its libraries before anything is timed."""
    from ..domains import Domain

    rng = np.random.default_rng(0)
    domain = Domain("warm", X=rng.random((512, 256), dtype=np.float32), y=np.zeros(512))
    for _ in SharedStack(Corpus("warm", {"warm": domain}), place=place).levels(0.5, 2):
        pass


def _collected(unit: Unit) -> tuple[list[Outcome | GridPoint], Exception | None]:
    """Outcomes of a unit that runs in a thread, and what stopped it."""
    found: list[Outcome | GridPoint] = []
    try:
        for outcome in unit.run():
            found.append(outcome)
    except Exception as error:
        return found, error
    return found, None


def _awaited(
    future: Future[tuple[list[Outcome | GridPoint], Exception | None]],
) -> Iterator[Outcome | GridPoint]:
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


def _check_same_plan(plan: Plan, book: Journal) -> None:
    """Refuse results of a plan of the same name that said something else; another seed does not."""
    own = [record for record in book.records if record.get("plan") == plan.name]
    plans = {seed: plan.seeded(seed) for seed in {record.get("seed") for record in own}}
    digests = {
        (variant.name, seed): each.digest(variant)
        for seed, each in plans.items()
        for variant in each.variants
    }
    for record in own:
        if record.get("digest") != digests.get((record.get("variant", ""), record.get("seed"))):
            raise ValueError(
                f"the results hold records of another version of plan {plan.name} "
                f"(variant {record.get('variant')}): name another results file, or move this one away"
            )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
