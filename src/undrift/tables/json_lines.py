"""Tables with one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, TextIO

from .files import TableError
from .lines import LineFeed, OverlongError, Tally, TextFile
from .rows import MISSING, Rows, as_json, join_kinds

BLOCK_ROWS = 4096
BLOCK_CHARACTERS = 1 << 23
_MOST_COLUMNS = 10_000
_KINDS = {bool: "bool", int: "int", float: "float", str: "str"}


class _RowError(Exception):
    """What is wrong with one line."""


def read_kinds(file: TextFile, tally: Tally) -> dict[str, str | None]:
    """Every key of the file in order of first appearance, with the kind of its values.

    Reads the whole file. The kinds are ``bool``, ``int``, ``float`` (with or without whole numbers),
    and ``str`` for all else, mixtures among them; None where no value is given at all.
    """
    kinds: dict[str, str | None] = {}
    with file.lines() as feed:
        for row in _read_objects(feed, tally):
            for key, value in row.items():
                kinds[key] = join_kinds(kinds.get(key), _kind(value))
            if len(kinds) > _MOST_COLUMNS:
                raise TableError(
                    f"{file.path} has over {_MOST_COLUMNS:,} different keys; rows must share theirs"
                )
    if not kinds:
        raise TableError(f"{file.path} is empty" if not tally.n_bad else f"{file.path} has no good row")
    return kinds


def read_blocks(file: TextFile, columns: tuple[str, ...], tally: Tally) -> Iterator[Rows]:
    """Yield the rows in blocks; values keep the types JSON gives them."""
    with file.lines() as feed:
        rows: list[dict[str, Any]] = []
        end = BLOCK_CHARACTERS
        for row in _read_objects(feed, tally):
            rows.append(row)
            if len(rows) == BLOCK_ROWS or feed.n_characters >= end:
                yield _to_columns(rows, columns, feed.share_read)
                rows, end = [], feed.n_characters + BLOCK_CHARACTERS
        if rows:
            yield _to_columns(rows, columns, 1.0)


class JsonLinesSink:
    """Writes one object a line; missing keys stay missing."""

    def __init__(self, stream: TextIO, columns: Sequence[str]) -> None:
        self._stream = stream
        self._columns = tuple(columns)

    def write(self, values: Sequence[Any]) -> None:
        """Write one block, given by columns."""
        plain = [column.to_pylist() if hasattr(column, "to_pylist") else column for column in values]
        for row in zip(*plain, strict=True):
            held = {
                name: value for name, value in zip(self._columns, row, strict=True) if value is not MISSING
            }
            self._stream.write(as_json(held) + "\n")

    def close(self) -> None:
        """Nothing is kept back."""

    abandon = close


def _read_objects(feed: LineFeed, tally: Tally) -> Iterator[dict[str, Any]]:
    """Yield the object of every line that has a good one."""
    while True:
        feed.start_row()
        try:
            line = next(feed)
            if not line.isspace():
                yield _parse_object(line)
        except StopIteration:
            return
        except OverlongError:
            tally.count_bad(feed.row_line, feed.describe_fault())
        except _RowError as error:
            tally.count_bad(feed.row_line, str(error))


def _parse_object(line: str) -> dict[str, Any]:
    """Return the object in one line, or say why there is none."""
    try:
        value = _DECODER.decode(line.rstrip())
    except json.JSONDecodeError as error:
        raise _RowError(f"not valid JSON at column {error.colno} ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, endless nesting
        raise _RowError(f"not usable JSON ({error})") from None
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else "a single value"
        raise _RowError(f'{what} where an object is needed (one object a line, as {{"text": ...}})')
    return value


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of `pairs`; of two equal keys one would be lost, so they are refused."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in made if keys.count(key) > 1)
        raise _RowError(f"the key {repeated!r} is there twice")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys)


def _kind(value: Any) -> str | None:
    """Return what a value is, None when it is nothing."""
    if value is None:
        return None
    kind = _KINDS.get(type(value), "str")
    return "str" if kind == "int" and not -(2**63) <= value < 2**63 else kind


def _to_columns(rows: list[dict[str, Any]], columns: tuple[str, ...], share_read: float) -> Rows:
    """Return objects as columns."""
    return Rows(columns, tuple([row.get(name, MISSING) for row in rows] for name in columns), share_read)


def refuse_array(path: str | PathLike[str], file: TextFile) -> None:
    """Raise when the file is one JSON array, which cannot be read row by row."""
    with file.lines() as feed:
        try:
            start = next((line.lstrip()[:1] for line in feed if not line.isspace()), "")
        except OverlongError:
            return  # refused with its line number when it is read
    if start == "[":
        raise TableError(f"{path} is one JSON array; one object a line is needed (jq -c '.[]' makes them)")
