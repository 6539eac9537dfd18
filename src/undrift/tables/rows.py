"""Rows of a table, held by columns, and the names of these columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from typing import Any

from .files import TableError

_N_SHOWN = 20  # columns that a message names


class _Missing:
    """Type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()
"""The value of a key that a JSON object does not have: unlike None, it is not written back."""


class NumberColumns(tuple[str, ...]):
    """Columns of numbers in place of columns of text: their cells are joined by tabs, empty ones too."""


@dataclass(frozen=True)
class Rows:
    """Some consecutive rows of a table.

    Parameters
    ----------
    columns : tuple of str
        Names, in the table's order.
    values : tuple of sequences
        One sequence per column, all of the same length: lists, or Arrow arrays when the rows
        come from Parquet.
    share_read : float
        Fraction of the table read when this block ends, in [0, 1]; for progress bars.
    """

    columns: tuple[str, ...]
    values: tuple[Any, ...]
    share_read: float = 1.0

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def column(self, name: str) -> list[Any]:
        """Return the values of column `name` as Python objects; a key absent from a JSON row gives None."""
        values = to_list(self.values[self.columns.index(name)])
        return [None if value is MISSING else value for value in values]

    def texts(self, name: str | Sequence[str]) -> list[str]:
        """Return column `name` as text: strings as they are, nothing as ``""``, other values as in JSON.

        Several columns are joined, a line for each that is not empty.
        """
        if isinstance(name, str):
            return to_texts(self.values[self.columns.index(name)])
        if isinstance(name, NumberColumns):
            return ["\t".join(row) for row in zip(*map(self.texts, name), strict=True)]
        return ["\n".join(filter(None, row)) for row in zip(*map(self.texts, name), strict=True)]

    def select(self, columns: Iterable[str]) -> tuple[Any, ...]:
        """Return the values of these columns; those of a column that is not there are `MISSING`."""
        held, absent = dict(zip(self.columns, self.values, strict=True)), [MISSING] * len(self)
        return tuple(held.get(name, absent) for name in columns)

    def with_columns(self, added: Mapping[str, Sequence[Any]]) -> Rows:
        """Return the same rows with more columns on the right."""
        more = tuple(to_list(values) for values in added.values())
        wrong = {
            name: len(values) for name, values in zip(added, more, strict=True) if len(values) != len(self)
        }
        if wrong:
            raise ValueError(f"{len(self)} rows cannot take columns of other lengths: {wrong}")
        return Rows(self.columns + tuple(added), self.values + more, self.share_read)


def to_list(values: Any) -> list[Any]:
    """Return a column as a list of Python objects, whether NumPy, Arrow or plain."""
    for conversion in ("to_pylist", "tolist"):
        if hasattr(values, conversion):
            return getattr(values, conversion)()
    return values if isinstance(values, list) else list(values)


def to_texts(values: Any) -> list[str]:
    """Return a column as text, value by value; see `as_text`."""
    return [value if type(value) is str else as_text(value) for value in to_list(values)]


def as_text(value: Any) -> str:
    """Return one value as text: nothing is empty, numbers keep their digits, nested values are JSON."""
    if isinstance(value, str):
        return str(value)
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool | dict | list):
        return as_json(value)
    return str(value)


def as_json(value: Any) -> str:
    """Return a value as one line of JSON; what JSON does not know (dates, decimals) becomes text."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=as_text)


def require_column(path: str | PathLike[str], columns: Sequence[str], name: str) -> None:
    """Raise a `TableError` that suggests the nearest name unless `name` is one of `columns`.

    Examples
    --------
    >>> require_column("reviews.csv", ["text", "label"], "txt")
    Traceback (most recent call last):
    undrift.tables.files.TableError: reviews.csv has no column 'txt'; did you mean 'text'? Columns: text, ...
    """
    if name in columns:
        return
    near = _find_nearest(name, columns)
    hint = f"; did you mean {near!r}?" if near is not None else "."
    rest = f", and {len(columns) - _N_SHOWN} more" if len(columns) > _N_SHOWN else ""
    shown = ", ".join(_quote_unreadable(column) for column in columns[:_N_SHOWN])
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
            f"{path} already has a column {names}, which the output adds; "
            "rename it, or give a prefix (--prefix)"
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
            union[name] = join_kinds(union.get(name), kind)
    return union


def join_kinds(one: Any, other: Any) -> Any:
    """Return the kind that holds values of two kinds; None stands for no value seen so far."""
    if one is None or other is None or one == other:
        return other if one is None else one
    whole_and_real = isinstance(one, str) and isinstance(other, str) and {one, other} == {"int", "float"}
    return "float" if whole_and_real else "str"


def _find_nearest(name: str, columns: Sequence[str]) -> str | None:
    """Return the column most like `name`, letter case and surrounding blanks aside."""
    folded = {column.strip().casefold(): column for column in reversed(columns)}
    near = get_close_matches(name.strip().casefold(), folded, n=1)
    return folded[near[0]] if near else None


def _quote_unreadable(column: str) -> str:
    """Return the name as it is, quoted where it would not be seen or would spill over the line."""
    return column if column.isprintable() and column == column.strip() and column else repr(column)
