"""Which columns a table has, may have, and gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from typing import Any

from .errors import TableError

_N_SHOWN = 20


def require_column(path: str | PathLike[str], columns: Sequence[str], name: str) -> None:
    """Raise a `TableError` that suggests the nearest name unless `name` is one of `columns`.

    Examples
    --------
    >>> require_column("reviews.csv", ["text", "label"], "txt")
    Traceback (most recent call last):
    undrift.tables.errors.TableError: reviews.csv has no column 'txt'; did you mean 'text'? Columns: text, ...
    """
    if name in columns:
        return
    near = _nearest(name, columns)
    hint = f"; did you mean {near!r}?" if near is not None else "."
    rest = f", and {len(columns) - _N_SHOWN} more" if len(columns) > _N_SHOWN else ""
    shown = ", ".join(_readable(column) for column in columns[:_N_SHOWN])
    raise TableError(f"{path} has no column {name!r}{hint} Columns: {shown}{rest}")


def refuse_repeated(path: str | PathLike[str], columns: Sequence[str]) -> None:
    """Raise when two columns share a name, since a name must mean one column."""
    first: dict[str, int] = {}
    for position, name in enumerate(columns, 1):
        if name in first:
            raise TableError(
                f"{path} has two columns called {name!r} (numbers {first[name]} and {position}); rename one"
            )
        first[name] = position


def with_added(path: str | PathLike[str], columns: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of an output: those of the table at `path`, then the `added`, all of them new."""
    clashes = [name for name in added if name in columns]
    if clashes:
        names = ", ".join(repr(name) for name in clashes)
        raise TableError(
            f"{path} already has a column {names}, which the output adds; rename it, or pass a prefix"
        )
    return (*columns, *added)


def union_of(kinds: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return every column of several tables once, in order of first appearance, with a kind for all.

    Examples
    --------
    >>> union_of([{"text": "str", "stars": "int"}, {"stars": "float", "id": None}])
    {'text': 'str', 'stars': 'float', 'id': None}
    """
    union: dict[str, Any] = {}
    for table in kinds:
        for name, kind in table.items():
            union[name] = joined_kind(union.get(name), kind)
    return union


def joined_kind(one: Any, other: Any) -> Any:
    """Return the kind that holds values of two kinds; None stands for no value seen so far."""
    if one is None or other is None or one == other:
        return other if one is None else one
    whole_and_real = isinstance(one, str) and isinstance(other, str) and {one, other} == {"int", "float"}
    return "float" if whole_and_real else "str"


def _nearest(name: str, columns: Sequence[str]) -> str | None:
    """Return the column most like `name`, letter case and surrounding blanks aside."""
    folded = {column.strip().casefold(): column for column in reversed(columns)}
    near = get_close_matches(name.strip().casefold(), folded, n=1)
    return folded[near[0]] if near else None


def _readable(column: str) -> str:
    """Return the name as it is, quoted where it would not be seen or would spill over the line."""
    return column if column.isprintable() and column == column.strip() and column else repr(column)
