"""A table in a file, read block by block as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from . import delimited, json_lines, parquet, spreadsheet
from .encoding import detect_encoding
from .files import Layout, TableError, infer_layout, is_pattern, shard_paths, translate_read_errors
from .lines import Tally, TextFile, open_bytes, refuse_unreadable
from .rows import Rows, require_column, union_of


@dataclass(frozen=True)
class Table:
    """A table file whose columns are known and whose rows are read when iterated over.

    Iterating yields `Rows` in the file's order and in bounded memory; each iteration opens the file
    again. Made by `open_table`.

    Parameters
    ----------
    path : Path
    kinds : dict
        Columns in order, each with what its values are, as `write_table` takes it: ``"str"``,
        ``"int"``, ``"float"``, ``"bool"``, an Arrow type, or None where no value tells.
    """

    path: Path
    kinds: Mapping[str, Any]
    _blocks: Callable[[], Iterator[Rows]] = field(repr=False)
    _tally: Tally = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.kinds)

    @property
    def n_bad(self) -> int:
        """Rows that the latest iteration skipped because they could not be read."""
        return self._tally.n_bad

    @property
    def first_bad(self) -> str | None:
        """Where the first skipped row is and what is wrong with it; None without one."""
        return self._tally.first

    def __iter__(self) -> Iterator[Rows]:
        self._tally.restart()
        with translate_read_errors(self.path):
            yield from self._blocks()

    def require_column(self, name: str | Sequence[str]) -> None:
        """Raise a `TableError` that suggests the nearest name unless the table has this column, or all."""
        for each in [name] if isinstance(name, str) else name:
            require_column(self.path, self.columns, each)

    def require_rows(self) -> None:
        """Raise a `TableError` unless at least one row can be read."""
        if next(iter(self), None) is None:
            why = f"has no good row; {self.first_bad}" if self.n_bad else "has a header but no rows"
            raise TableError(f"{self.path} {why}")


def open_table(
    path: str | PathLike[str],
    *,
    text: str | Sequence[str] | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    sheet: str | None = None,
) -> Table:
    """Open a table file; the name says the format.

    Text files are read through once here, in bounded memory, to settle their encoding; JSON and
    spreadsheets a second time for their columns.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson``, ``.json`` (an array of objects, or one object a line),
        any of them also with ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; ``.parquet`` or ``.xlsx``. A folder, or
        a pattern such as ``reviews-*.csv``, is one table in many files, in the order of their names.
    text : str, sequence of str or None, default=None
        A column that must be there, or several.
    encoding : str or None, default=None
        How characters are stored. None finds out: UTF-8, UTF-16 with a mark, else Windows-1252
        with a warning.
    skip_bad : bool, default=False
        Whether rows that cannot be read are skipped and counted rather than raised. Lines are
        bad when too long or malformed, or when their fields are more or fewer than the header's.
        A file that is broken as a whole is an error either way.
    sheet : str or None, default=None
        Which sheet of a spreadsheet; needed where several have rows.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        When the file cannot be read; the message is one line that names it.
    """
    if is_pattern(path):
        options: dict[str, Any] = {"text": text, "encoding": encoding, "skip_bad": skip_bad, "sheet": sheet}
        return _join_tables(Path(path), [open_table(each, **options) for each in shard_paths(path)], skip_bad)
    file, layout = path if isinstance(path, Path) else Path(path), infer_layout(path)
    tally = Tally(file, skip_bad)
    with translate_read_errors(file):
        refuse_unreadable(file)
        if layout.kind == "parquet":
            table = Table(file, parquet.read_kinds(file), partial(parquet.read_blocks, file), tally)
        elif layout.kind == "xlsx":
            survey = spreadsheet.survey_sheet(file, sheet)
            table = Table(file, survey.kinds, partial(spreadsheet.read_blocks, file, survey, tally), tally)
        else:
            table = _open_text_table(file, layout, encoding, tally)
    if text is not None:
        table.require_column(text)
    return table


def _join_tables(path: Path, tables: list[Table], skip_bad: bool) -> Table:
    """Return several tables as one, with the columns of all; `path` is their pattern."""
    kinds, tally = union_of(table.kinds for table in tables), Tally(path, skip_bad)

    def blocks() -> Iterator[Rows]:
        for i, table in enumerate(tables):
            for rows in table:
                share_read = (i + rows.share_read) / len(tables)
                yield Rows(tuple(kinds), rows.select(kinds), share_read)
            tally.n_bad += table.n_bad
            tally.first = tally.first or table.first_bad

    return Table(path, kinds, blocks, tally)


def _open_text_table(path: Path, layout: Layout, encoding: str | None, tally: Tally) -> Table:
    """Return the table in a text file."""
    with open_bytes(path, layout.compression) as (stream, _):
        file = TextFile(path, layout.compression, detect_encoding(path, stream, encoding))
    if layout.kind in ("json", "jsonl"):
        read = json_lines.read_array if json_lines.is_array(file) else json_lines.read_lines
        kinds = json_lines.read_kinds(file, read, tally)
        return Table(path, kinds, partial(json_lines.read_blocks, file, read, tuple(kinds), tally), tally)
    header = delimited.read_header(file, layout.kind)
    kinds = dict.fromkeys(header.columns, "str")
    return Table(path, kinds, partial(delimited.read_blocks, file, header, tally), tally)
