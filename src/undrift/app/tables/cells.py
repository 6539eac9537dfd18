"""Cells and columns of data frames whose cells are Python objects.

A cell is None where a file has null or nothing, and NaN where a JSON object lacks the key: then it is not
written back. The kinds of a table are its columns, in order, each with the set of types of its cells: str,
int, float, bool, or an Arrow type.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any

from .files import TableError

if TYPE_CHECKING:
    import pandas as pd

Kinds = Mapping[str, set[Any]]

_N_SHOWN = 20  # columns that a message names


def list_values(frame: pd.DataFrame, name: str) -> list[Any]:
    """Return the cells of a column, None where there is nothing."""
    return [None if value != value else value for value in frame[name].tolist()]


def list_texts(frame: pd.DataFrame, names: str | Sequence[str]) -> list[str]:
    """Return a column as text; several are joined, a line for each cell that is not empty."""
    if isinstance(names, str):
        return write_texts(frame[names].tolist())
    texts = (list_texts(frame, name) for name in names)
    return ["\n".join(filter(None, row)) for row in zip(*texts, strict=True)]


def write_texts(cells: Iterable[Any]) -> list[str]:
    """Return cells as text."""
    return [value if type(value) is str else write_text(value) for value in cells]


def write_text(value: Any) -> str:
    """Return a cell as text: nothing is empty, numbers keep their digits, nested values are JSON."""
    if isinstance(value, str):
        return str(value)
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return write_json(value) if isinstance(value, bool | dict | list) else str(value)


def write_json(value: Any) -> str:
    """Return a value as one line of JSON; dates and decimals become text."""
    return json.dumps(value, ensure_ascii=False, default=write_text)


def find_kinds(frame: pd.DataFrame) -> dict[str, set[Any]]:
    """Return the columns of a frame with the types of their cells; what is no number is text."""

    def find_type(value: Any) -> type:
        is_long = type(value) is int and not -(2**63) <= value < 2**63
        return type(value) if type(value) in (bool, int, float) and not is_long else str

    return {name: {*map(find_type, column.dropna().tolist())} for name, column in frame.items()}


def join_kinds(tables: Iterable[Kinds]) -> dict[str, set[Any]]:
    """Return every column of several tables once, in order of first appearance, with all of its types."""
    joined: dict[str, set[Any]] = {}
    for kinds in tables:
        for name, types in kinds.items():
            joined[name] = joined.get(name, set()) | types
    return joined


def require_column(path: str | PathLike[str], columns: Sequence[str], name: str) -> None:
    """Raise a `TableError` that suggests the nearest name unless `name` is one of `columns`."""
    if name in columns:
        return
    folded = {column.strip().casefold(): column for column in reversed(columns)}
    near = get_close_matches(name.strip().casefold(), folded, n=1)
    hint = f"; did you mean {folded[near[0]]!r}?" if near else "."
    rest = f", and {len(columns) - _N_SHOWN} more" if len(columns) > _N_SHOWN else ""
    plain = [each if each.isprintable() and each.strip() == each != "" else repr(each) for each in columns]
    raise TableError(f"{path} has no column {name!r}{hint} Columns: {', '.join(plain[:_N_SHOWN])}{rest}")


def refuse_repeated(path: str | PathLike[str], columns: Sequence[str]) -> None:
    """Raise when two columns share a name, since a name must mean one column."""
    repeated, n = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if n > 1:
        places = " and ".join(str(i) for i, name in enumerate(columns, 1) if name == repeated)
        raise TableError(f"{path} has two columns called {repeated!r} (numbers {places}); rename one")


def with_added(path: str | PathLike[str], kinds: Kinds, added: Kinds) -> dict[str, set[Any]]:
    """Return the columns of an output: those of the table at `path`, then the `added`, all of them new."""
    clashes = ", ".join(repr(name) for name in added if name in kinds)
    if clashes:
        raise TableError(f"{path} already has a column {clashes}, which the output adds; rename it")
    return {**kinds, **added}
