"""Estimators: a fit of all or nothing, and its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")

Report = Callable[[int, int], None]  # takes the number of steps that are done, and of all
_report: ContextVar[Report | None] = ContextVar("report", default=None)


def all_or_nothing(fit: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Return a `fit` that first forgets what an earlier one learnt, and puts it back if it fails."""

    @wraps(fit)
    def fit_anew(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        before = dict(vars(self))
        for name in before:
            if name.endswith("_"):
                delattr(self, name)
        try:
            return fit(self, *args, **options)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit_anew


@contextmanager
def follow_steps(report: Report) -> Iterator[None]:
    """Tell `report` of the steps of every fit inside, once before the first and after each."""
    before = _report.set(report)
    try:
        yield
    finally:
        _report.reset(before)


def track_steps(steps: Iterable[T], n_steps: int, *, verbose: bool) -> Iterator[T]:
    """Yield from `steps`, each a layer; tell who follows them and, if `verbose`, standard error."""
    report, start = _report.get() or (lambda n_done, n_all: None), time.perf_counter()
    report(0, n_steps)
    for n_done, step in enumerate(steps, start=1):
        yield step
        report(n_done, n_steps)
        if verbose:
            seconds = time.perf_counter() - start
            print(f"undrift: layer {n_done}/{n_steps} after {seconds:.1f} s", file=sys.stderr)


def load_cluster() -> ModuleType:
    """Import the package for rows on a cluster, which needs an extra and is above this one."""
    return import_module("undrift.distributed")
