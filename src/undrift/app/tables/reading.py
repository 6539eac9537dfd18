"""Tables read from files as data frames, block by block, in bounded memory; a format is read here alone.

Delimited lines are parsed by csv, and JSON by json. pandas' own parsers cannot keep what is promised: they
fill short rows with empty cells, change text after a closing quote, count records instead of lines, hold all
that follows an unclosed quote in memory, and turn whole numbers into floats where a key is missing.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from glob import glob, has_magic
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

import pandas as pd

from ...errors import count, warn
from .files import (
    COMPRESSIONS,
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

_KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
_NO_TABLES = ("dataset_info.json", "dataset_infos.json", "state.json")  # Hugging Face puts them beside tables
BLOCK_ROWS, BLOCK_CHARACTERS = 4096, 1 << 23
LINE_LIMIT = 1 << 24  # characters of a line, or of a field (about ten times *War and Peace*)
ARRAY_LIMIT = 1 << 28  # characters of a JSON array, which is read whole
MOST_COLUMNS = 10_000
MOST_SHOWN = 20  # columns that a message names
MOST_TITLES = 5  # rows of a spreadsheet above its header


Row = TypeVar("Row", list[str], dict[str, Cell])


class Layout(NamedTuple):
    """Kind of a table file (``csv``, ``jsonl``, ...), and the ending of its compression, or nothing."""

    kind: str
    compression: str


def infer_layout(path: str | PathLike[str]) -> Layout:
    """Return the layout of the file called `path`, from its endings alone."""
    name = Path(path)
    compression = name.suffix.lower() if name.suffix.lower() in COMPRESSIONS else ""
    kind = _KINDS.get((name.with_suffix("") if compression else name).suffix.lower())
    if kind is None:
        known, around = ", ".join(_KINDS), ", ".join(COMPRESSIONS)
        raise TableError(
            f"{path}: cannot tell the format from the name; use one of {known}, or any with {around}"
        )
    if compression and kind in ("parquet", "xlsx"):
        what = "Parquet" if kind == "parquet" else "a spreadsheet"
        raise TableError(f"{path}: {what} is compressed inside; drop {compression} from the name")
    return Layout(kind, compression)


def is_table(path: str | PathLike[str]) -> bool:
    """Tell whether a file is a table by its name."""
    try:
        return bool(infer_layout(path).kind)
    except TableError:
        return False


def is_pattern(path: str | PathLike[str]) -> bool:
    """Tell whether `path` is a folder or a pattern, rather than the name of a file."""
    return Path(path).is_dir() or (has_magic(str(path)) and not Path(path).exists())


def shard_paths(path: str | PathLike[str]) -> list[Path]:
    """List the files that `path` stands for, numbers in their names in order.

    These are itself, those that match a pattern, or the tables in a folder and the folders in it. Names that
    start with a dot or an underscore, and files that are no tables by their names, are left out.
    """
    if not is_pattern(path):
        return [path if isinstance(path, Path) else Path(path)]
    if Path(path).is_dir():
        paths = [inside for inside in Path(path).rglob("*") if _is_shard(inside, Path(path))]
    else:
        paths = [Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file()]
    if not paths:
        known = ", ".join(_KINDS)
        raise TableError(
            f"{path} has no file that ends in {known}" if Path(path).is_dir() else f"no file matches {path}"
        )

    def sort_key(shard: Path) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", str(shard))  # digits and the rest alternate, so that they never meet
        return [(int(part), "") if part.isdigit() else (0, part) for part in parts]

    return sorted(paths, key=sort_key)


def _is_shard(path: Path, folder: Path) -> bool:
    """Tell whether a file inside a folder is one of the folder's tables."""
    parts = path.relative_to(folder).parts
    if path.name in _NO_TABLES or any(part.startswith((".", "_")) for part in parts) or not path.is_file():
        return False
    *_, before, last = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    return last in _KINDS or (last in COMPRESSIONS and before in _KINDS)


@dataclass
class Table:
    """A table file whose columns are known and whose rows are read when iterated over.

    Iterating yields data frames in the file's order; each iteration opens the file again. `share_read`,
    `n_bad` and `first_bad` are of the latest iteration.
    """

    path: Path
    skip_bad: bool = False  # whether rows that cannot be read are counted rather than raised
    kinds: dict[str, set[Hashable]] = field(default_factory=dict)  # columns -> types of their cells
    share_read: float = 0.0
    n_bad: int = 0
    first_bad: str | None = None  # place and fault
    delimiter: str = ","  # of a CSV file
    read: Callable[[], Iterator[pd.DataFrame]] = field(default=lambda: iter(()), repr=False)

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
    tables = [_open_file(each, encoding, skip_bad, sheet) for each in shard_paths(path)]
    for table in tables:
        table.require_column(text, remedy)
        table.require_column(columns)
    if not is_pattern(path):
        return tables[0]
    joined = Table(Path(path), skip_bad)
    joined.kinds, joined.read = join_kinds(each.kinds for each in tables), partial(_join, joined, tables)
    joined.delimiter = common_delimiter(each.delimiter for each in tables)
    return joined


def _open_file(path: Path, encoding: str | None, skip_bad: bool, sheet: str | None) -> Table:
    """Open one file, and find its columns."""
    table, (kind, compression) = Table(path, skip_bad), infer_layout(path)
    with translate_errors(path):
        refuse_unreadable(path)
        if kind == "parquet":
            table.kinds, table.read = _read_schema(path), partial(_read_parquet, table)
        elif kind == "xlsx":
            _keep_frame(table, _read_sheet(path, sheet))
        else:
            found = detect_encoding(path, partial(open_bytes, path, compression), encoding)
            _open_text(table, TextFile(path, compression, found), kind)
    return table


def common_delimiter(delimiters: Iterable[str]) -> str:
    """Return the delimiter that all files have, or a comma."""
    found = set(delimiters)
    return found.pop() if len(found) == 1 else ","


def _open_text(table: Table, file: TextFile, kind: str) -> None:
    """Find the columns of a text file, and the function that reads it."""
    if kind in ("csv", "tsv"):
        delimiter, header = _read_header(file, "\t" if kind == "tsv" else ",;\t")
        table.delimiter = delimiter if kind == "csv" else ","
        table.kinds, table.read = (
            {name: {str} for name in header},
            partial(_read_rows, table, file, delimiter),
        )
    elif file.read_head(1 << 16).lstrip()[:1] == "[":
        _keep_frame(table, _read_array(table, file))
    else:
        table.kinds = join_kinds(map(find_kinds, _read_objects(table, file)))
        table.read = partial(_read_objects, table, file)
        if len(table.kinds) > MOST_COLUMNS:
            raise TableError(f"{table.path} has over {MOST_COLUMNS:,} different keys; rows must share theirs")
    if not table.kinds:
        raise TableError(f"{table.path} {'has no good row' if table.n_bad else 'is empty'}")


def _keep_frame(table: Table, frame: pd.DataFrame) -> None:
    """Make a table of a frame that was read whole."""
    n_bad, first_bad = table.n_bad, table.first_bad

    def read() -> Iterator[pd.DataFrame]:
        table.n_bad, table.first_bad = n_bad, first_bad
        for start in range(0, len(frame), BLOCK_ROWS):
            table.share_read = min(1.0, (start + BLOCK_ROWS) / len(frame))
            yield frame.iloc[start : start + BLOCK_ROWS]

    table.kinds, table.read = find_kinds(frame), read


def _join(table: Table, tables: list[Table]) -> Iterator[pd.DataFrame]:
    """Read several tables as one, with the columns of all."""
    for i, each in enumerate(tables):
        for frame in each:
            table.share_read = (i + each.share_read) / len(tables)
            yield frame.reindex(columns=table.columns)
        table.n_bad += each.n_bad
        table.first_bad = table.first_bad or each.first_bad


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


def _make_frames(
    table: Table, file: TextFile, parse: Callable[[LineReader], Iterator[Row]]
) -> Iterator[pd.DataFrame]:
    """Yield rows in blocks; cells keep their types, and the columns are those of the table, if known."""
    make = partial(pd.DataFrame, columns=table.columns or None, dtype=object)
    with file.open() as stream:
        lines, rows, end = LineReader(stream, table), list[Row](), BLOCK_CHARACTERS
        n_bytes = max(file.path.stat().st_size, 1)
        for row in parse(lines):
            rows.append(row)
            if len(rows) == BLOCK_ROWS or lines.n_characters >= end:
                table.share_read = min(1.0, stream.buffer.raw.n_read() / n_bytes)
                yield make(rows)
                rows, end = [], lines.n_characters + BLOCK_CHARACTERS
    table.share_read = 1.0
    if rows:
        yield make(rows)


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


def _read_rows(table: Table, file: TextFile, delimiter: str) -> Iterator[pd.DataFrame]:
    """Yield the rows below the header of a delimited file; every cell is a string just as in the file."""

    def parse(lines: LineReader) -> Iterator[list[str]]:
        rows, width = _split_rows(table, lines, delimiter), len(table.kinds)
        next(rows, None)
        for start, row in rows:
            if len(row) == width:
                yield row
            else:
                told = f"the row has {count(len(row), 'field')}, the header {count(width, 'field')}"
                table.count_bad(start, told)

    with _allow_long_fields():
        yield from _make_frames(table, file, parse)


def _split_rows(table: Table, lines: LineReader, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of delimited lines and where they start; those that break the rules count as bad."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = lines.start_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_open = "limit" in str(error) or "end of data" in str(error)
            after = "a quoted field goes on after its closing quote (quotes inside must be doubled)"
            table.count_bad(start, "a quoted field that starts here is never closed" if is_open else after)
            lines.give_up_row()
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
        else:
            if row:
                yield start, row


@contextmanager
def _allow_long_fields() -> Iterator[None]:
    """Let csv take fields as long as a line may be; its limit is the process's, so put it back."""
    before = csv.field_size_limit(LINE_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


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


def _read_objects(table: Table, file: TextFile) -> Iterator[pd.DataFrame]:
    """Yield the object of every line that has a good one."""

    def parse(lines: LineReader) -> Iterator[dict[str, Cell]]:
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
            table.count_bad(lines.number, fault)

    return _make_frames(table, file, parse)


def _read_array(table: Table, file: TextFile) -> pd.DataFrame:
    """Return the objects of one JSON array."""
    text = file.read_head(ARRAY_LIMIT + 1)
    if len(text) > ARRAY_LIMIT:
        raise TableError(f"{file.path} has over {ARRAY_LIMIT:,} characters: write JSON lines (.jsonl)")
    try:
        values = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise TableError(f"{file.path}:{error.lineno}: not valid JSON ({error.msg})") from None
    except (_RepeatedKey, ValueError, RecursionError) as error:
        raise TableError(f"{file.path}: not usable JSON ({error})") from None
    objects = [value for value in values if isinstance(value, dict)]
    for i, value in enumerate(values, 1):
        if not isinstance(value, dict):
            table.count_bad(i, "an array of objects is needed, and this element is none")
    return pd.DataFrame(objects, dtype=object)


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


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file; whatever is broken in it, now or while it is read, is one error."""
    parquet = import_extra(path, "pyarrow.parquet", "Parquet")
    pyarrow = import_extra(path, "pyarrow", "Parquet")
    if not path.stat().st_size:
        raise TableError(f"{path} is empty")
    try:
        with parquet.ParquetFile(path, buffer_size=1 << 20) as file:
            yield file
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(f"{path} is truncated or not a Parquet file ({reason})") from error


def _read_schema(path: Path) -> dict[str, set[Hashable]]:
    """Return every column of a Parquet file with its Arrow type."""
    with _open_parquet(path) as file:
        schema = file.schema_arrow
        if not schema.names:
            raise TableError(f"{path} has no columns")
        refuse_repeated(path, schema.names)
        return {each.name: {each.type} for each in schema}


def _read_parquet(table: Table) -> Iterator[pd.DataFrame]:
    """Yield the rows in blocks, small ones where rows are long."""
    with _open_parquet(table.path) as file:
        metadata, n_read = file.metadata, 0
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        longest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
        size = max(1, min(BLOCK_ROWS, int(BLOCK_CHARACTERS / max(longest, 1))))
        for batch in file.iter_batches(batch_size=size):
            batch.validate(full=True)  # texts that are not UTF-8, indices beyond a dictionary
            n_read += batch.num_rows
            table.share_read = n_read / metadata.num_rows
            if batch.num_rows:
                yield pd.DataFrame(batch.to_pydict(), dtype=object)
