"""One task that fails takes no others along: it is refused beforehand, or told of when all is done."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from .cells import Cell, Outcome, Unit


class Mishaps:
    """Errors of single sources or tasks that learn together with others, which go on."""

    def __init__(self) -> None:
        self._errors: dict[Hashable, Exception] = {}

    def __contains__(self, name: Hashable) -> bool:
        return name in self._errors

    @contextmanager
    def of(self, name: Hashable) -> Iterator[None]:
        """Keep an error for later; it is the source's or task's own."""
        try:
            yield
        except Exception as error:
            self._errors.setdefault(name, error)

    def tell(self) -> None:
        """Raise what was kept, now that all others are done: it is about all that has no outcome."""
        errors = list({_said(error): error for error in self._errors.values()}.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            said = "; ".join(f"{_named(name)}: {_said(error)}" for name, error in self._errors.items())
            raise ExceptionGroup(said, errors)


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


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _named(name: Hashable) -> str:
    return f"{name.source}->{name.target}" if isinstance(name, Cell) else str(name)
