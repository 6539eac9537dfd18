"""Estimators: classes that a file may hold, a fit of all or nothing, and its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")
C = TypeVar("C", bound=type)
SAVABLE: dict[str, type] = {}  # classes that a model file may name, by name

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method: Callable) -> Callable:
        """Return `method` itself."""
        return method


def all_or_nothing(fit: Callable) -> Callable:
    """Return a `fit` that first forgets what an earlier one learnt, and puts it back if it fails."""

    @wraps(fit)
    def fit_anew(self: Any, *args: Any, **options: Any) -> Any:
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


def track_steps(
    estimator: Any, steps: Iterable[T], n_steps: int, name: str, state: Callable[[], dict]
) -> Iterator[T]:
    """Yield from `steps`, reporting each to the estimator's callbacks and, if `verbose`, to standard error.

    `state` returns the fitted attributes that the steps so far would give; a callback may stop there.
    """
    context = None
    if hasattr(estimator, "_init_callback_context"):
        context = estimator._init_callback_context(max_subtasks=n_steps)
        context.call_on_fit_task_begin(estimator=estimator)
    steps, start = iter(steps), time.perf_counter()
    for i in range(n_steps):
        task = context and context.subcontext(task_name=name)
        if task:
            task.call_on_fit_task_begin(estimator=estimator)
        yield next(steps)
        if getattr(estimator, "verbose", False):
            seconds = time.perf_counter() - start
            print(f"undrift: {name} {i + 1}/{n_steps} after {seconds:.1f} s", file=sys.stderr)
        if task and task.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=state):
            break
    if context:
        context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=state)


@contextmanager
def share_callbacks(estimator: Any, part: Any) -> Iterator[None]:
    """Let the callbacks of an estimator, if it has some, follow the fit of a part of it too."""
    if not getattr(estimator, "_skl_callbacks", []):
        yield
        return
    context = estimator._init_callback_context(max_subtasks=1)
    context.call_on_fit_task_begin(estimator=estimator)
    task = context.subcontext(task_name=type(part).__name__)
    with task.propagate_callback_context(part):
        task.call_on_fit_task_begin(estimator=estimator)
        yield
        task.call_on_fit_task_end(estimator=estimator)
    context.call_on_fit_task_end(estimator=estimator)


def savable(cls: C) -> C:
    """Register an estimator or dataclass, by its name, as one that model files may hold."""
    SAVABLE[cls.__name__] = cls
    return cls


def load_cluster() -> Any:
    """Import the package for rows on a cluster, which needs an extra and is above this one."""
    return import_module("undrift.distributed")
