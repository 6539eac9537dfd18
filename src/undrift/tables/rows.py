"""A block of rows, held by columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class _Missing:
    """Type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()
"""The value of a key that a JSON object does not have: unlike None, it is not written back."""


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
        values = _as_list(self.values[self.columns.index(name)])
        return [None if value is MISSING else value for value in values]

    def texts(self, name: str) -> list[str]:
        """Return column `name` as text: strings as they are, nothing as ``""``, other values as in JSON."""
        return texts_of(self.values[self.columns.index(name)])

    def with_columns(self, added: Mapping[str, Sequence[Any]]) -> Rows:
        """Return the same rows with more columns on the right."""
        more = tuple(_as_list(values) for values in added.values())
        wrong = {
            name: len(values) for name, values in zip(added, more, strict=True) if len(values) != len(self)
        }
        if wrong:
            raise ValueError(f"{len(self)} rows cannot take columns of other lengths: {wrong}")
        return Rows(self.columns + tuple(added), self.values + more, self.share_read)


def _as_list(values: Any) -> list[Any]:
    """Return a column as a list of Python objects, whether NumPy, Arrow or plain."""
    for conversion in ("to_pylist", "tolist"):
        if hasattr(values, conversion):
            return getattr(values, conversion)()
    return values if isinstance(values, list) else list(values)


def texts_of(values: Any) -> list[str]:
    """Return a column as text, value by value; see `as_text`."""
    return [value if type(value) is str else as_text(value) for value in _as_list(values)]


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
