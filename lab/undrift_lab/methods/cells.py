"""The terms of a run: cells of the task matrix, their findings, and what every method is given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed

from undrift.inputs import Place

from ..corpora.corpus import Corpus
from ..plan import Setting


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
    """What stopped one cell while others went on."""

    cell: Cell
    message: str


@dataclass(frozen=True)
class CellRecord:
    """Values of a record that needs no predictions."""

    cell: Cell
    values: Mapping[str, Any]


Finding = Outcome | GridPoint | Failure | CellRecord


@dataclass(frozen=True)
class Bench:
    """What every method is given: rows, settings, and a place to compute."""

    corpus: Corpus
    setting: Setting
    place: Place
    device: str
    seed: int
    parameters: Mapping[str, Mapping[str, Any]]
    jobs: int = 1  # tasks that are worked on at once
    grid: Sequence[GridPoint] = ()  # from an earlier run
    row_numbers: Mapping[str, np.ndarray] = field(default_factory=dict)  # of sampled rows in their domain
    representations: dict[Hashable, Any] = field(default_factory=dict)  # that variants share

    def parameters_of(self, method: str) -> dict[str, Any]:
        """Parameters that the plan gives to a method's estimator."""
        return dict(self.parameters.get(method, {}))

    def detach(self) -> Bench:
        """Return the bench for other processes, to which representations do not travel."""
        return replace(self, representations={})

    def spread(
        self,
        cells: Iterable[Sequence[Cell]],
        find: Callable[..., Iterable[Finding]],
        *,
        processes: bool = False,
    ) -> Iterator[Finding]:
        """Yield the findings of groups of cells, several groups at once."""
        prefer = "processes" if processes else "threads"
        work = Parallel(self.jobs, prefer=prefer, return_as="generator_unordered")
        found = work(delayed(attempt)(group, find, group) for group in cells)
        try:
            for findings in found:
                yield from findings
        finally:
            with (
                warnings.catch_warnings(),
                suppress(Exception),
            ):  # joblib complains of work that is left undone
                warnings.simplefilter("ignore")
                found.close()


def attempt(
    cells: Sequence[Cell], find: Callable[..., Finding | Iterable[Finding]] | Exception, *arguments: Any
) -> list[Finding]:
    """Return the findings of a function; what it raises, or an error in its place, fails all its cells."""
    try:
        if isinstance(find, Exception):
            raise find
        found = find(*arguments)
        return [found] if isinstance(found, Finding) else list(found)
    except Exception as error:
        return [Failure(cell, describe_failure(error)) for cell in cells]


def describe_failure(error: Exception) -> str:
    """Return the kind of an error, and the first line of its message."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def group_cells(cells: Iterable[Cell], *names: str) -> dict[Any, list[Cell]]:
    """Group cells by their "source", "target" or both, in order."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        key = tuple(getattr(cell, name) for name in names)
        groups.setdefault(key if len(names) > 1 else key[0], []).append(cell)
    return groups
