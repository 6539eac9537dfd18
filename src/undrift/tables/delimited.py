"""Tables whose fields are separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from .files import TableError
from .lines import LINE_LIMIT, LineFeed, OverlongError, Tally, TextFile
from .rows import Rows, refuse_repeated, to_texts

BLOCK_ROWS = 4096
BLOCK_CHARACTERS = 1 << 23


@dataclass(frozen=True)
class Header:
    """The first row of a table, and the delimiter that makes sense of it."""

    delimiter: str
    columns: tuple[str, ...]


def read_header(file: TextFile, kind: str) -> Header:
    """Header of a ``csv`` or ``tsv`` file.

    A ``csv`` header that has no comma between fields, but semicolons or tabs, is split at those.
    """
    delimiters = ("\t",) if kind == "tsv" else (",", ";", "\t")
    first, *others = [_try_header(file, delimiter) for delimiter in delimiters]
    chosen = first
    if isinstance(first, str) or len(first.columns) == 1:
        wider = [header for header in others if not isinstance(header, str) and len(header.columns) > 1]
        chosen = max(wider, key=lambda header: len(header.columns), default=first)
    if isinstance(chosen, str):
        raise TableError(chosen)
    if chosen.columns[0].lstrip().startswith('{"'):
        raise TableError(f"{file.path} has JSON where its header should be: name it .jsonl")
    refuse_repeated(file.path, chosen.columns)
    return chosen


def read_blocks(file: TextFile, header: Header, tally: Tally) -> Iterator[Rows]:
    """Yield the rows below the header, in blocks; every value is a string just as in the file."""
    with file.lines() as feed:
        reader = csv.reader(feed, delimiter=header.delimiter, strict=True)
        _read_first_row(feed, reader)
        while not feed.ended:
            rows = _read_rows(feed, reader, len(header.columns), tally)
            if rows:
                yield Rows(
                    header.columns, tuple(list(column) for column in zip(*rows, strict=True)), feed.share_read
                )


class DelimitedSink:
    """Writes rows separated by `delimiter`, ending in a plain newline."""

    def __init__(self, stream: TextIO, columns: Sequence[str], delimiter: str) -> None:
        # With "\r\n" as its line end csv quotes fields that hold either character, as it must.
        self._writer: Any = csv.writer(_NewlineEnds(stream), delimiter=delimiter, lineterminator="\r\n")
        self._writer.writerow(columns)

    def write(self, values: Sequence[Any]) -> None:
        """Write one block, given by columns."""
        self._writer.writerows(zip(*map(to_texts, values), strict=True))

    def close(self) -> None:
        """Nothing is kept back."""

    abandon = close


@dataclass(frozen=True)
class _NewlineEnds:
    """A file for `csv.writer`, which writes whole rows, that ends them in a newline alone."""

    stream: TextIO

    def write(self, row: str) -> int:
        return self.stream.write(row[:-2] + "\n")


def _try_header(file: TextFile, delimiter: str) -> Header | str:
    """Return the header as split at `delimiter`, or why it cannot be."""
    with file.lines() as feed:
        try:
            columns = _read_first_row(feed, csv.reader(feed, delimiter=delimiter, strict=True))
        except (csv.Error, OverlongError) as error:
            return f"{file.path}:{feed.row_line}: {_describe_fault(feed, error)}"
    return Header(delimiter, tuple(columns)) if columns else f"{file.path} is empty"


def _read_first_row(feed: LineFeed, reader: Any) -> list[str]:
    """Return the first row that is not blank; empty when there is none."""
    with _allow_long_fields():
        while not feed.ended:
            feed.start_row()
            row: list[str] = next(reader, [])
            if row:
                return row
    return []


def _read_rows(feed: LineFeed, reader: Any, width: int, tally: Tally) -> list[list[str]]:
    """Return the next block of rows that have `width` fields; empty lines are no rows."""
    rows: list[list[str]] = []
    end = feed.n_characters + BLOCK_CHARACTERS
    with _allow_long_fields():
        while len(rows) < BLOCK_ROWS and feed.n_characters < end:
            feed.start_row()
            try:
                row = next(reader)
            except StopIteration:
                break
            except (csv.Error, OverlongError) as error:
                tally.count_bad(feed.row_line, _describe_fault(feed, error))
                feed.give_up_row()
                continue
            if len(row) == width:
                rows.append(row)
            elif row:
                tally.count_bad(
                    feed.row_line, f"the row has {_fields(len(row))}, the header {_fields(width)}"
                )
    return rows


def _fields(n_fields: int) -> str:
    return "1 field" if n_fields == 1 else f"{n_fields} fields"


def _describe_fault(feed: LineFeed, error: Exception) -> str:
    """Say what is wrong with the current row, which the csv module has two reasons to refuse."""
    if isinstance(error, OverlongError):
        return feed.describe_fault()
    if feed.ended:
        return "a quoted field that starts here is never closed"
    return "a quoted field goes on after its closing quote (quotes inside must be doubled)"


@contextmanager
def _allow_long_fields() -> Iterator[None]:
    """Let csv take fields as long as a row may be; its limit is the process's, so put it back."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, LINE_LIMIT))
    try:
        yield
    finally:
        csv.field_size_limit(before)
