"""Tables read from files as data frames, block by block, in bounded memory: a class for every format.

Delimited lines are parsed by csv, and JSON by json. pandas' own parsers cannot keep what is promised: they
fill short rows with empty cells, change text after a closing quote, count records instead of lines, hold all
that follows an unclosed quote in memory, and turn whole numbers into floats where a key is missing.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from ...errors import count, warn
from .files import (
    Cell,
    Decompressed,
    Encoding,
    TableError,
    detect_encoding,
    find_kinds,
    import_extra,
    join_kinds,
    open_bytes,
    refuse_repeated,
    refuse_unreadable,
    refuse_zip_bomb,
    translate_errors,
    write_text,
)
from .paths import infer_layout, is_pattern, shard_paths

BLOCK_ROWS, BLOCK_CHARACTERS = 4096, 1 << 23
LINE_LIMIT = 1 << 24  # characters of a line, or of a field (about ten times *War and Peace*)
ARRAY_LIMIT = 1 << 28  # characters of a JSON array, which is read whole
MOST_COLUMNS = 10_000
MOST_SHOWN = 20  # columns that a message names
MOST_TITLES = 5  # rows of a spreadsheet above its header


class Table:
    """A table file whose columns are known and whose rows are read when iterated over.

    Iterating yields data frames in the file's order; each iteration opens the file again. `share_read`,
    `n_bad` and `first_bad` are of the latest iteration. Every format has a class of its own, which finds
    `kinds` and reads.
    """

    delimiter = ","  # of a CSV file

    def __init__(self, path: Path, skip_bad: bool = False) -> None:
        self.path, self.skip_bad = path, skip_bad  # whether unreadable rows are counted rather than raised
        self.kinds: dict[str, set[Hashable]] = {}  # columns -> types of their cells
        self.share_read, self.n_bad = 0.0, 0
        self.first_bad: str | None = None  # place and fault

    def read(self) -> Iterator[pd.DataFrame]:
        """Yield the rows in blocks."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.kinds)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        self.n_bad, self.first_bad = 0, None
        with translate_errors(self.path):
            yield from self.read()

    def count_bad(self, line: int, fault: str) -> None:
        """Count the row at `line` as bad, or raise because of it."""
        message = f"{self.path}:{line}: {fault}"
        if not self.skip_bad:
            raise TableError(f"{message}; fix it, or skip such rows (--format skip-bad)")
        self.n_bad += 1
        self.first_bad = self.first_bad or message

    def require_column(self, names: str | Sequence[str], remedy: str = "") -> None:
        """Raise a `TableError` that suggests the nearest name unless the table has this column, or all.

        `remedy` ends the message: the option that names the column.
        """
        missing = [name for name in ([names] if isinstance(names, str) else names) if name not in self.kinds]
        if not missing:
            return
        folded = {column.strip().casefold(): column for column in reversed(self.columns)}
        near = get_close_matches(missing[0].strip().casefold(), folded, n=1)
        plain = [
            each if each.isprintable() and each.strip() == each != "" else repr(each) for each in self.kinds
        ]
        rest = f", and {len(plain) - MOST_SHOWN} more" if len(plain) > MOST_SHOWN else ""
        hint = f"; did you mean {folded[near[0]]!r}?" if near else "."
        advice = f"; {remedy}" if remedy and not near else ""
        listed = f"Columns: {', '.join(plain[:MOST_SHOWN])}{rest}"
        raise TableError(f"{self.path} has no column {missing[0]!r}{hint} {listed}{advice}")

    def require_rows(self) -> None:
        """Raise a `TableError` unless at least one row can be read."""
        if next(iter(self), None) is None:
            why = f"has no good row; {self.first_bad}" if self.n_bad else "has a header but no rows"
            raise TableError(f"{self.path} {why}")


class JoinedTable(Table):
    """Several tables as one, with the columns of all."""

    def __init__(self, path: Path, tables: Sequence[Table]) -> None:
        super().__init__(path)
        self._tables, self.kinds = tables, join_kinds(each.kinds for each in tables)
        self.delimiter = common_delimiter(each.delimiter for each in tables)

    def read(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of each table."""
        for i, each in enumerate(self._tables):
            for frame in each:
                self.share_read = (i + each.share_read) / len(self._tables)
                yield frame.reindex(columns=self.columns)
            self.n_bad += each.n_bad
            self.first_bad = self.first_bad or each.first_bad


def common_delimiter(delimiters: Iterable[str]) -> str:
    """Return the delimiter that all files have, or a comma."""
    found = set(delimiters)
    return found.pop() if len(found) == 1 else ","


class WholeTable(Table):
    """A file that is read whole when it is opened: a spreadsheet, or a JSON array."""

    def __init__(
        self, path: Path, frame: pd.DataFrame, skip_bad: bool = False, bad: Sequence[int] = ()
    ) -> None:
        super().__init__(path, skip_bad)
        self._frame, self._bad = frame, bad  # elements of the array that are no objects
        self.kinds = find_kinds(frame)
        self._count_elements()

    def _count_elements(self) -> None:
        for i in self._bad:
            self.count_bad(i, "an array of objects is needed, and this element is none")

    def read(self) -> Iterator[pd.DataFrame]:
        """Yield the rows in blocks."""
        self._count_elements()
        n_rows = len(self._frame)
        for start in range(0, n_rows, BLOCK_ROWS):
            self.share_read = min(1.0, (start + BLOCK_ROWS) / n_rows)
            yield self._frame.iloc[start : start + BLOCK_ROWS]


@dataclass(frozen=True)
class TextFile:
    """A text file on disk that can be opened again and again."""

    path: Path
    compression: str
    encoding: Encoding

    @contextmanager
    def open(self) -> Iterator[io.TextIOWrapper[io.BufferedReader[Decompressed]]]:
        """Open the file as text."""
        with open_bytes(self.path, self.compression) as stream:
            yield io.TextIOWrapper(stream, *self.encoding, newline="")

    def read_head(self, n_characters: int) -> str:
        """Return the first characters of the file."""
        with self.open() as stream:
            return stream.read(n_characters)


class LineReader:
    """Lines of a text stream, none longer than `LINE_LIMIT`; longer ones are counted as bad.

    The lines of the current row are held, so that a row that is malformed can be given up after its first.
    """

    def __init__(self, stream: TextIO, table: Table) -> None:
        self._stream, self._table = stream, table
        self._row: list[str] = []
        self._again: deque[str] = deque()
        self.number, self.n_characters = 0, 0  # of the last line; of all lines so far

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while line := self._again.popleft() if self._again else self._stream.readline(LINE_LIMIT + 1):
            self.number += 1
            self.n_characters += len(line)
            if len(line) <= LINE_LIMIT or line[-1] in "\r\n":
                self._row.append(line)
                return line
            self._table.count_bad(self.number, f"the line has more than {LINE_LIMIT:,} characters")
            while (rest := self._stream.readline(1 << 20)) and rest[-1] not in "\r\n":
                pass
        raise StopIteration

    def start_row(self) -> int:
        """Say that the next line starts a row, and return its number."""
        self._row.clear()
        return self.number + 1

    def give_up_row(self) -> None:
        """Go back to just after the first line of the current row."""
        self.number -= len(self._row) - 1
        self._again.extendleft(reversed(self._row[1:]))


class TextTable(Table):
    """A table whose rows are made of lines."""

    def __init__(self, file: TextFile, skip_bad: bool) -> None:
        super().__init__(file.path, skip_bad)
        self._file = file

    def parse(self, lines: LineReader) -> Iterator[list[str] | dict[str, Cell]]:
        """Yield the rows in lines; those that break the rules count as bad."""
        raise NotImplementedError

    def read(self) -> Iterator[pd.DataFrame]:
        """Yield rows in blocks; cells keep their types, and the columns are those of the table, if known."""
        make = partial(pd.DataFrame, columns=self.columns or None, dtype=object)
        with self._file.open() as stream:
            lines, rows, end = LineReader(stream, self), list[Any](), BLOCK_CHARACTERS
            n_bytes = max(self.path.stat().st_size, 1)
            for row in self.parse(lines):
                rows.append(row)
                if len(rows) == BLOCK_ROWS or lines.n_characters >= end:
                    self.share_read = min(1.0, stream.buffer.raw.n_read() / n_bytes)
                    yield make(rows)
                    rows, end = [], lines.n_characters + BLOCK_CHARACTERS
        self.share_read = 1.0
        if rows:
            yield make(rows)


class DelimitedTable(TextTable):
    """A CSV or TSV file; every cell is a string just as in the file."""

    def __init__(self, file: TextFile, skip_bad: bool, is_tsv: bool) -> None:
        super().__init__(file, skip_bad)
        self._separator, header = _read_header(file, "\t" if is_tsv else ",;\t")
        self.delimiter = "," if is_tsv else self._separator
        self.kinds = {name: {str} for name in header}

    def read(self) -> Iterator[pd.DataFrame]:
        """Yield the rows in blocks."""
        with _allow_long_fields():
            yield from super().read()

    def parse(self, lines: LineReader) -> Iterator[list[str]]:
        """Yield the rows below the header that have as many cells."""
        rows, width = self._split(lines), len(self.kinds)
        next(rows, None)
        for start, row in rows:
            if len(row) == width:
                yield row
            else:
                told = f"the row has {count(len(row), 'field')}, the header {count(width, 'field')}"
                self.count_bad(start, told)

    def _split(self, lines: LineReader) -> Iterator[tuple[int, list[str]]]:
        """Yield rows and where they start; those that break the rules count as bad."""
        reader = csv.reader(lines, delimiter=self._separator, strict=True)
        while True:
            start = lines.start_row()
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                is_open = "limit" in str(error) or "end of data" in str(error)
                after = "a quoted field goes on after its closing quote (quotes inside must be doubled)"
                self.count_bad(start, "a quoted field that starts here is never closed" if is_open else after)
                lines.give_up_row()
                reader = csv.reader(lines, delimiter=self._separator, strict=True)
            else:
                if row:
                    yield start, row


def _read_header(file: TextFile, delimiters: str) -> tuple[str, list[str]]:
    """Return delimiter and columns: a comma, or where the header has none, a semicolon or tab."""
    head, headers = file.read_head(1 << 20), dict[str, list[str]]()
    with _allow_long_fields():
        for delimiter in delimiters:
            reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter, strict=True)
            try:
                headers[delimiter] = next((row for row in reader if row), [])
            except csv.Error:
                continue
    if not headers:
        raise TableError(f"{file.path}:1: a quoted field that starts here is never closed")
    delimiter = max(headers, key=lambda each: len(headers[each]))
    delimiter = "," if len(headers.get(",", [])) > 1 else delimiter
    header = headers[delimiter]
    if header and header[0].lstrip().startswith('{"'):
        raise TableError(f"{file.path} has JSON where its header should be: name it .jsonl")
    refuse_repeated(file.path, header)
    return delimiter, header


@contextmanager
def _allow_long_fields() -> Iterator[None]:
    """Let csv take fields as long as a line may be; its limit is the process's, so put it back."""
    before = csv.field_size_limit(LINE_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class ObjectTable(TextTable):
    """JSON lines: an object each."""

    def __init__(self, file: TextFile, skip_bad: bool) -> None:
        super().__init__(file, skip_bad)
        self.kinds = join_kinds(map(find_kinds, self))
        if len(self.kinds) > MOST_COLUMNS:
            raise TableError(f"{self.path} has over {MOST_COLUMNS:,} different keys; rows must share theirs")

    def parse(self, lines: LineReader) -> Iterator[dict[str, Cell]]:
        """Yield the object of every line that has a good one."""
        for line in lines:
            lines.start_row()
            if line.isspace():
                continue
            try:
                value = _DECODER.decode(line.rstrip())
            except json.JSONDecodeError as error:
                fault = f"not valid JSON at column {error.colno} ({error.msg})"
            except _RepeatedKey as error:
                fault = str(error)
            except (ValueError, RecursionError) as error:  # numbers of thousands of digits, endless nesting
                fault = f"not usable JSON ({error})"
            else:
                if isinstance(value, dict):
                    yield value
                    continue
                what = "an array" if isinstance(value, list) else "a single value"
                fault = f'{what} where an object is needed (one object a line, as {{"text": ...}})'
            self.count_bad(lines.number, fault)


def _refuse_repeated_keys(pairs: list[tuple[str, Cell]]) -> dict[str, Cell]:
    """Return the object of `pairs`; of two equal keys one would be lost, so they are refused."""
    made = dict(pairs)
    if len(made) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _RepeatedKey(f"the key {repeated!r} is there twice")
    return made


class _RepeatedKey(Exception):
    """A key that is twice in one object."""


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys)


def _read_array(file: TextFile, skip_bad: bool) -> WholeTable:
    """Read the objects of one JSON array."""
    text = file.read_head(ARRAY_LIMIT + 1)
    if len(text) > ARRAY_LIMIT:
        raise TableError(f"{file.path} has over {ARRAY_LIMIT:,} characters: write JSON lines (.jsonl)")
    try:
        values = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise TableError(f"{file.path}:{error.lineno}: not valid JSON ({error.msg})") from None
    except (_RepeatedKey, ValueError, RecursionError) as error:
        raise TableError(f"{file.path}: not usable JSON ({error})") from None
    bad = [i for i, value in enumerate(values, 1) if not isinstance(value, dict)]
    objects = [value for value in values if isinstance(value, dict)]
    return WholeTable(file.path, pd.DataFrame(objects, dtype=object), skip_bad, bad)


def _read_sheet(path: Path, name: str | None) -> pd.DataFrame:
    """Return the rows of a spreadsheet; dates are text as in ISO 8601, empty rows are no rows."""
    import_extra(path, "openpyxl", "a spreadsheet")
    refuse_zip_bomb(path)
    try:
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=object, na_filter=False)
    except Exception as error:  # of zipfile, of the XML parser or of openpyxl, which share no class
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{path} is truncated or not a spreadsheet ({reason})") from error
    if name is not None and name not in sheets:
        raise TableError(f"{path} has no sheet {name!r}; it has {', '.join(sheets)} (--format sheet=NAME)")
    filled = [title for title, rows in sheets.items() if len(rows)] or list(sheets)
    if name is None and len(filled) > 1:
        listed = f"{len(filled)} sheets: {', '.join(filled)}"
        raise TableError(f"{path} has {listed}; choose one with --format sheet=NAME")
    rows = sheets[name or filled[0]].to_numpy().tolist()
    frame = pd.DataFrame([[_clean_cell(value) for value in row] for row in rows], dtype=object)
    is_filled = frame.notna()
    frame = frame.loc[is_filled.any(axis=1), is_filled.any(axis=0)]
    if not len(frame):
        raise TableError(f"{path}: the sheet is empty")
    frame = _drop_title(path, frame)
    header = [write_text(value) for value in frame.iloc[0]]
    if "" in header:
        column = frame.columns[header.index("")] + 1
        raise TableError(f"{path}: column {column} has no name in row {frame.index[0] + 1}")
    refuse_repeated(path, header)
    return frame.iloc[1:].set_axis(header, axis=1)


def _drop_title(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a sheet from the header on; titles above it are left out, and a warning says so.

    A title is a row with its first cell alone, which has a space in it or an empty row below, above a row of
    several cells.
    """
    n_filled = frame.notna().sum(axis=1).tolist()
    n_title = next((i for i, n in enumerate(n_filled[: MOST_TITLES + 1]) if n > 1), 0)
    title = write_text(frame.iloc[0, 0])
    is_apart = bool(n_title) and frame.index[n_title] - frame.index[0] > n_title
    if not n_title or not title or not (is_apart or " " in title):
        return frame
    warn(f"{path}: {title!r} is taken as a title; the header is row {frame.index[n_title] + 1}")
    kept = frame.iloc[n_title:]
    return kept.loc[:, kept.notna().any(axis=0)]


def _clean_cell(value: Cell) -> Cell:
    """Return a date or time as text, midnight as the date alone, and None for nothing."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat().removesuffix("T00:00:00")
    return None if value == "" or value != value else value


class ParquetTable(Table):
    """A Parquet file; the types of its columns are Arrow's."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self._open() as file:
            schema = file.schema_arrow
            if not schema.names:
                raise TableError(f"{path} has no columns")
            refuse_repeated(path, schema.names)
            self.kinds = {each.name: {each.type} for each in schema}

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Open the file; whatever is broken in it, now or while it is read, is one error."""
        parquet = import_extra(self.path, "pyarrow.parquet", "Parquet")
        pyarrow = import_extra(self.path, "pyarrow", "Parquet")
        if not self.path.stat().st_size:
            raise TableError(f"{self.path} is empty")
        try:
            with parquet.ParquetFile(self.path, buffer_size=1 << 20) as file:
                yield file
        except FileNotFoundError:
            raise
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise TableError(f"{self.path} is truncated or not a Parquet file ({reason})") from error

    def read(self) -> Iterator[pd.DataFrame]:
        """Yield the rows in blocks, small ones where rows are long."""
        with self._open() as file:
            metadata, n_read = file.metadata, 0
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            longest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
            size = max(1, min(BLOCK_ROWS, int(BLOCK_CHARACTERS / max(longest, 1))))
            for batch in file.iter_batches(batch_size=size):
                batch.validate(full=True)  # texts that are not UTF-8, indices beyond a dictionary
                n_read += batch.num_rows
                self.share_read = n_read / metadata.num_rows
                if batch.num_rows:
                    yield pd.DataFrame(batch.to_pydict(), dtype=object)


def open_table(
    path: str | PathLike[str],
    *,
    text: str | Sequence[str] = (),
    remedy: str = "",
    columns: Sequence[str] = (),
    encoding: str | None = None,
    skip_bad: bool = False,
    sheet: str | None = None,
) -> Table:
    """Open a table file, or a folder or pattern of such; the name says the format.

    The columns of `text` must be there, and `columns`; `remedy` says which option names the text. `encoding`
    is that of a text file, where it is not to be detected, and `sheet` names the sheet of a spreadsheet,
    where several have rows.
    """
    tables = []
    for each in shard_paths(path):
        with translate_errors(each):
            tables.append(_open_file(each, encoding, skip_bad, sheet))
    for table in tables:
        table.require_column(text, remedy)
        table.require_column(columns)
    return JoinedTable(Path(path), tables) if is_pattern(path) else tables[0]


def _open_file(path: Path, encoding: str | None, skip_bad: bool, sheet: str | None) -> Table:
    """Open one file, and find its columns."""
    kind, compression = infer_layout(path)
    refuse_unreadable(path)
    if kind == "parquet":
        return ParquetTable(path)
    if kind == "xlsx":
        return WholeTable(path, _read_sheet(path, sheet))
    found = detect_encoding(path, partial(open_bytes, path, compression), encoding)
    file = TextFile(path, compression, found)
    table: Table
    if kind in ("csv", "tsv"):
        table = DelimitedTable(file, skip_bad, kind == "tsv")
    elif file.read_head(1 << 16).lstrip()[:1] == "[":
        table = _read_array(file, skip_bad)
    else:
        table = ObjectTable(file, skip_bad)
    if not table.kinds:
        raise TableError(f"{path} {'has no good row' if table.n_bad else 'is empty'}")
    return table
