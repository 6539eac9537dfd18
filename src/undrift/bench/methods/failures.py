"""One task that fails takes no others along: it is refused beforehand, or told of when all is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from .cells import Cell, Failure, Outcome, Unit


class Mishaps:
    """Errors of single cells that learn together with others, which go on."""

    def __init__(self) -> None:
        self._errors: dict[Cell, Exception] = {}

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._errors

    @contextmanager
    def of(self, *cells: Cell) -> Iterator[None]:
        """Keep an error for later; it is that of these cells alone, unless they have one already."""
        try:
            yield
        except Exception as error:
            for cell in cells:
                self._errors.setdefault(cell, error)

    def failures(self) -> Iterator[Failure]:
        """Yield what was kept, now that all others are done."""
        for cell, error in self._errors.items():
            yield Failure(cell, error)


def sifted(cells: Sequence[Cell], check: Callable[[Cell], None]) -> tuple[list[Cell], list[Unit]]:
    """Cells that `check` lets pass, and for each other one a unit that says what it found."""
    sound, refused = [], []
    for cell in cells:
        try:
            check(cell)
        except ValueError as error:
            refused.append(Unit([cell], partial(_refusing, error)))
        else:
            sound.append(cell)
    return sound, refused


def _refusing(error: Exception) -> Iterator[Outcome]:
    yield from ()
    raise error
