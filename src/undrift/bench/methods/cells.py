"""The terms of a run: cells of the task matrix, what comes out of them, units of work, and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..._inputs import Place
from ...corpora import Corpus
from ..plan import Setting
from .representation import RepresentationCache


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
    """What cross-validation on a source said of a noise level at a depth; recorded, for resuming a run.

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
    method: ClassVar = "msda-1"  # any depth: what is chosen is noise


@dataclass(frozen=True)
class Failure:
    """What stopped one cell while the others of its unit went on."""

    cell: Cell
    error: Exception


@dataclass(frozen=True)
class CellRecord:
    """Values of a record that needs no predictions; with `progress`, more records of the cell follow."""

    cell: Cell
    values: Mapping[str, Any]
    progress: str | None = None


Finding = Outcome | GridPoint | Failure | CellRecord
Point = tuple[str, str, float, int]  # of a plan of regret: source, target, noise, depth


@dataclass(frozen=True)
class Unit:
    """Cells that are worked on together, and how to get their outcomes one by one.

    What `run` raises is the failure of all its cells that have no outcome and no failure yet.
    Units that are `parallel` keep to one thread and may run beside each other. A unit that works on another
    corpus than the bench's, with a sample in place of the target, has it as `corpus`.
    """

    cells: Sequence[Cell]
    run: Callable[[], Iterator[Finding]]
    parallel: bool = False
    corpus: Corpus | None = None


def call_here(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in this process."""
    return function(*arguments)


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
    known_points: AbstractSet[Point] = frozenset()  # from an earlier run of a plan of regret
    representations: RepresentationCache = field(default_factory=RepresentationCache)
    call: Callable[..., Any] = call_here  # calls a function, in a subprocess or not
    report: Callable[[str], None] = lambda what: None  # says how far something that takes long has come

    def parameters_of(self, method: str) -> dict[str, Any]:
        """Parameters that the plan gives to a method's estimator."""
        return dict(self.parameters.get(method, {}))


class FailureLog:
    """Errors of single cells whose unit goes on with the others."""

    def __init__(self) -> None:
        self._errors: dict[Cell, Exception] = {}

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._errors

    def capture(self, cells: Sequence[Cell], function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``[function(*arguments)]``; if it fails, log the error for `cells` and return ``[]``."""
        try:
            return [function(*arguments)]
        except Exception as error:
            for cell in cells:
                self._errors.setdefault(cell, error)
            return []

    def failures(self) -> Iterator[Failure]:
        """Yield what was logged, now that all other cells are done."""
        for cell, error in self._errors.items():
            yield Failure(cell, error)


def group_cells(cells: Sequence[Cell], name: str) -> dict[str, list[Cell]]:
    """Group cells by their "source" or "target", in order."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(getattr(cell, name), []).append(cell)
    return groups
