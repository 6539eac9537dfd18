"""Tables of JSON objects, one a line or all in one array."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from .files import TableError
from .lines import LINE_LIMIT, OverlongError, Tally, TextFile
from .rows import MISSING, Rows, as_json, join_kinds, to_list

BLOCK_ROWS = 4096
BLOCK_CHARACTERS = 1 << 23
_MOST_COLUMNS = 10_000
_KINDS = {bool: "bool", int: "int", float: "float", str: "str"}


class _RowError(Exception):
    """What is wrong with one line."""


class JsonRow(NamedTuple):
    """An object, and how far a file was read when it ends."""

    values: dict[str, Any]
    n_characters: int
    share_read: float


Read = Callable[[TextFile, Tally], Iterator[JsonRow]]


def read_kinds(file: TextFile, read: Read, tally: Tally) -> dict[str, str | None]:
    """Every key of the file in order of first appearance, with the kind of its values.

    Reads the whole file. The kinds are ``bool``, ``int``, ``float`` (with or without whole numbers),
    and ``str`` for all else, mixtures among them; None where no value is given at all.
    """
    kinds: dict[str, str | None] = {}
    for row in read(file, tally):
        for key, value in row.values.items():
            kinds[key] = join_kinds(kinds.get(key), _kind(value))
        if len(kinds) > _MOST_COLUMNS:
            raise TableError(f"{file.path} has over {_MOST_COLUMNS:,} different keys; rows must share theirs")
    if not kinds:
        raise TableError(f"{file.path} is empty" if not tally.n_bad else f"{file.path} has no good row")
    return kinds


def read_blocks(file: TextFile, read: Read, columns: tuple[str, ...], tally: Tally) -> Iterator[Rows]:
    """Yield the rows in blocks; values keep the types JSON gives them."""
    rows: list[dict[str, Any]] = []
    end = BLOCK_CHARACTERS
    for row in read(file, tally):
        rows.append(row.values)
        if len(rows) == BLOCK_ROWS or row.n_characters >= end:
            yield _to_columns(rows, columns, row.share_read)
            rows, end = [], row.n_characters + BLOCK_CHARACTERS
    if rows:
        yield _to_columns(rows, columns, 1.0)


class JsonLinesSink:
    """Writes one object a line; missing keys stay missing."""

    def __init__(self, stream: TextIO, columns: Sequence[str]) -> None:
        self._stream = stream
        self._columns = tuple(columns)

    def write(self, values: Sequence[Any]) -> None:
        """Write one block, given by columns."""
        self._stream.writelines(f"{line}\n" for line in self._lines(values))

    def _lines(self, values: Sequence[Any]) -> Iterator[str]:
        for row in zip(*map(to_list, values), strict=True):
            pairs = zip(self._columns, row, strict=True)
            yield as_json({name: value for name, value in pairs if value is not MISSING})

    def close(self) -> None:
        """Nothing is kept back."""

    abandon = close


class JsonArraySink(JsonLinesSink):
    """Writes one array, with an object a line."""

    _before = "[\n"

    def write(self, values: Sequence[Any]) -> None:
        """Write one block, given by columns."""
        for line in self._lines(values):
            self._stream.write(self._before + line)
            self._before = ",\n"

    def close(self) -> None:
        """End the array."""
        self._stream.write("[]\n" if self._before == "[\n" else "\n]\n")


def read_lines(file: TextFile, tally: Tally) -> Iterator[JsonRow]:
    """Yield the object of every line that has a good one."""
    with file.lines() as feed:
        while True:
            feed.start_row()
            try:
                line = next(feed)
                if not line.isspace():
                    yield JsonRow(_parse_object(line), feed.n_characters, feed.share_read)
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
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
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


def is_array(file: TextFile) -> bool:
    """Tell whether the file is one JSON array."""
    with file.open() as (stream, _):
        return stream.read(_CHUNK).lstrip()[:1] == "["


def read_array(file: TextFile, tally: Tally) -> Iterator[JsonRow]:
    """Yield the objects of one JSON array, without holding more than some of it."""
    with file.open() as (stream, position):
        text = _ArrayText(stream, file.path)
        text.expect("[")
        separator = text.expect("]") if text.peek() == "]" else ","
        while separator == ",":
            text.peek()  # blanks
            line, value = text.line, text.decode()
            if isinstance(value, dict):
                yield JsonRow(value, text.n_characters, position())
            else:
                tally.count_bad(line, "an array of objects is needed, and this is none")
            separator = text.expect(",]")
        if text.peek():
            raise text.fail("more after the end of the array")


class _ArrayText:
    """The text of a JSON array, read piece by piece and taken from value by value."""

    def __init__(self, stream: TextIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self._text, self._at, self._ended = "", 0, False
        self._n_lines = self._n_characters = 0  # of what is gone

    @property
    def line(self) -> int:
        """Number of the line, from 1."""
        return self._n_lines + self._text.count("\n", 0, self._at) + 1

    @property
    def n_characters(self) -> int:
        """Characters taken so far."""
        return self._n_characters + self._at

    def fail(self, fault: str) -> TableError:
        """Return an error that names the line."""
        return TableError(f"{self._path}:{self.line}: {fault}")

    def peek(self) -> str:
        """Return the next character that is no blank; nothing at the end."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def expect(self, characters: str) -> str:
        """Take the next character that is no blank, which must be one of these."""
        character = self.peek()
        if not character:
            raise self.fail("the array has no end; is the file truncated?")
        if character not in characters:
            raise self.fail(f"not valid JSON ({' or '.join(characters)} is needed, not {character!r})")
        self._at += 1
        return character

    def decode(self) -> Any:
        """Take the next value."""
        while True:
            fault = f"the value has more than {LINE_LIMIT:,} characters"
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                is_whole = end < len(self._text) or self._ended  # a number may go on
                if is_whole and end - self._at <= LINE_LIMIT:
                    self._at = end
                    return value
            except json.JSONDecodeError as error:
                if self._ended or not error.msg.startswith("Unterminated"):
                    fault = f"not valid JSON ({error.msg})"
            except (_RowError, ValueError, RecursionError) as error:
                raise self.fail(f"not usable JSON ({error})") from None
            if self._ended or len(self._text) - self._at > LINE_LIMIT:
                raise self.fail(fault)
            self._read()

    def _read(self) -> None:
        """Read on, as much again as waits, so that a long value is tried few times."""
        self._n_lines += self._text.count("\n", 0, self._at)
        self._n_characters += self._at
        rest = self._text[self._at :]
        more = self._stream.read(max(_CHUNK, len(rest)))
        self._text, self._at, self._ended = rest + more, 0, not more


_BLANKS = re.compile(r"\s*")
_CHUNK = 1 << 18
