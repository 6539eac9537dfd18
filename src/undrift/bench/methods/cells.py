"""The nouns of a run: cells of the task matrix, what comes out of them, and the units of work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._inputs import Place
from ...classifier import Problem
from ...corpora import Corpus
from ..plan import Setting
from .classify import source_problem
from .representation import Memory


@dataclass(frozen=True)
class Cell:
    """One method on one task."""

    method: str
    source: str
    target: str


@dataclass(frozen=True)
class Outcome:
    """Predictions of the target's test rows, and what they took."""

    cell: Cell
    predicted: np.ndarray
    params: Mapping[str, Any]
    represent_seconds: float
    classify_seconds: float
    grid_seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GridPoint:
    """What cross-validation on a source said of a noise level at a depth; kept, so that a run can go on.

    `fitted_on` is "all", or the other domain of the pair that the stack was fitted on; `seconds` is what
    the whole noise level took, with all its depths and sources.
    """

    source: str
    fitted_on: str
    noise: float
    depth: int
    C: float
    score: float | None
    seconds: float


@dataclass(frozen=True)
class Failure:
    """What stopped one cell while the others of its unit went on."""

    cell: Cell
    error: Exception


Finding = Outcome | GridPoint | Failure


@dataclass(frozen=True)
class Unit:
    """Cells that are worked on together, and how to get their outcomes one by one.

    What `run` raises has stopped all cells without an outcome, and without a failure of their own.
    Units that are `parallel` keep to one thread and may run beside each other.
    """

    cells: Sequence[Cell]
    run: Callable[[], Iterator[Finding]]
    parallel: bool = False


def here(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function in this process."""
    return function(*given)


@dataclass(frozen=True)
class Bench:
    """What every method is given: rows, settings, a place to compute and a pool of threads."""

    corpus: Corpus
    setting: Setting
    place: Place
    device: str
    seed: int
    parameters: Mapping[str, Mapping[str, Any]]
    pool: Executor
    jobs: int = 1  # threads of the pool
    grid: Sequence[GridPoint] = ()  # from an earlier run
    memory: Memory = field(default_factory=Memory)  # representations that variants share
    apart: Callable[..., Any] = here  # how to call a function, in a process of its own or not
    tell: Callable[[str], None] = lambda what: None  # how far something that takes long has come

    def problem(self, source: str) -> tuple[Problem, np.ndarray]:
        """Return the labelled problem of a source and its classes."""
        return source_problem(self.corpus, source, self.setting.n_folds, self.seed)

    def own(self, method: str) -> dict[str, Any]:
        """Parameters that the plan gives to a method's estimator."""
        return dict(self.parameters.get(method, {}))


class Once:
    """A value that several threads need and one of them computes; its failure is everyone's."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function, self._lock = function, threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._done = False

    def __call__(self) -> Any:
        """Return the value, or raise what went wrong."""
        with self._lock:
            if not self._done:
                try:
                    self._value = self._function()
                except Exception as error:
                    self._error = error
                self._done = True
        if self._error is not None:
            raise self._error
        return self._value


def by_source(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Group cells by their source, in order."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.source, []).append(cell)
    return groups
