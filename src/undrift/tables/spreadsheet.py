"""Spreadsheets (.xlsx), by openpyxl (extra ``data``)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .files import TableError
from .lines import Tally, import_extra
from .rows import MISSING, Rows, as_text, join_kinds, refuse_repeated, to_list

BLOCK_ROWS = 4096
_MOST_ROWS = 1_048_576
_MOST_CHARACTERS = 32_767  # of a cell
_BOMB_BYTES, _BOMB_RATIO = 1 << 28, 200  # a file whose parts are larger, and larger than its size times that
_KINDS = {bool: "bool", int: "int", float: "float"}


@dataclass(frozen=True)
class SheetSurvey:
    """Which sheet is read, where its header is, and what its columns hold."""

    name: str
    header_row: int  # from 1
    n_rows: int
    kinds: dict[str, Any]


def survey_sheet(path: Path, sheet: str | None) -> SheetSurvey:
    """Choose the sheet, and read it once for its columns and what they hold.

    A formula counts as the value that was saved with it; one without such a value is refused.
    """
    with _open(path, has_formulas=True) as book, _open(path) as values:
        name = _choose_sheet(path, book, sheet)
        rows = enumerate(zip(_cells(book[name]), _cells(values[name]), strict=True), 1)
        header: list[Any] = []
        kinds: list[Any] = []
        number = header_row = 0
        for number, (cells, saved) in rows:
            _refuse_unsaved(path, name, number, cells, saved)
            if not header:
                n_columns = max((i for i, value in enumerate(saved, 1) if value is not None), default=0)
                header, header_row = list(saved[:n_columns]), number
                kinds = [None] * len(header)
                continue
            for i, value in enumerate(saved[: len(header)]):
                kinds[i] = kinds[i] if value is None else join_kinds(kinds[i], _KINDS.get(type(value), "str"))
    columns = [as_text(_plain(value)) for value in header]
    if not columns:
        raise TableError(f"{path}: sheet {name!r} is empty")
    if "" in columns:
        raise TableError(
            f"{path}: column {columns.index('') + 1} of sheet {name!r} has no name in row {header_row}"
        )
    refuse_repeated(path, columns)
    return SheetSurvey(name, header_row, number, dict(zip(columns, kinds, strict=True)))


def read_blocks(path: Path, survey: SheetSurvey, tally: Tally) -> Iterator[Rows]:
    """Yield the rows below the header in blocks; dates are text as in ISO 8601, empty rows are no rows."""
    columns, rows = tuple(survey.kinds), []
    with _open(path) as book:
        for number, row in enumerate(_cells(book[survey.name]), 1):
            if number <= survey.header_row or not any(value is not None for value in row):
                continue
            if any(value is not None for value in row[len(columns) :]):
                tally.count_bad(number, f"the row has a value to the right of the {len(columns)} columns")
                continue
            rows.append([_plain(value) for value in [*row, *[None] * len(columns)][: len(columns)]])
            if len(rows) == BLOCK_ROWS:
                yield _to_rows(columns, rows, number / survey.n_rows)
                rows = []
    if rows:
        yield _to_rows(columns, rows, 1.0)


class SpreadsheetSink:
    """Writes one sheet; text that looks like a formula stays text."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str], path: Path) -> None:
        self._openpyxl = import_extra(path, "openpyxl", "a spreadsheet")
        self._stream, self._path = stream, path
        self._book = self._openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("predictions")
        self._n_rows = 0
        self.write([[name] for name in columns])

    def write(self, values: Sequence[Any]) -> None:
        """Write one block, given by columns."""
        for row in zip(*map(to_list, values), strict=True):
            self._n_rows += 1
            if self._n_rows > _MOST_ROWS:
                raise TableError(
                    f"{self._path}: a spreadsheet has at most {_MOST_ROWS:,} rows; write .csv instead"
                )
            self._sheet.append([self._cell(value) for value in row])

    def close(self) -> None:
        """Write the file."""
        self._book.save(self._stream)

    def abandon(self) -> None:
        """Remove the temporary file of the sheet."""
        with suppress(Exception):
            self._sheet.close()
            self._sheet._writer.cleanup()

    def _cell(self, value: Any) -> Any:
        if value is None or value is MISSING or isinstance(value, bool | int | float):
            return None if value is MISSING else value
        text = self._openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("\ufffd", as_text(value))
        if len(text) > _MOST_CHARACTERS:
            raise TableError(
                f"{self._path}: a cell of a spreadsheet holds at most {_MOST_CHARACTERS:,} characters, and "
                f"row {self._n_rows} has one of {len(text):,}; write .csv instead"
            )
        cell = self._openpyxl.cell.WriteOnlyCell(self._sheet, text)
        cell.data_type = "s"
        return cell


@contextmanager
def _open(path: Path, has_formulas: bool = False) -> Iterator[Any]:
    """Open a spreadsheet for reading row by row; whatever is broken in it is one error."""
    openpyxl = import_extra(path, "openpyxl", "a spreadsheet")
    n_bytes = path.stat().st_size
    if not n_bytes:
        raise TableError(f"{path} is empty")
    try:
        with path.open("rb") as file:  # which openpyxl would leave open after an error
            with zipfile.ZipFile(file) as archive:
                n_expanded = sum(part.file_size for part in archive.infolist())
            if n_expanded > max(_BOMB_BYTES, _BOMB_RATIO * n_bytes):
                raise TableError(
                    f"{path} is over {_BOMB_RATIO} times as large when decompressed ({n_expanded:,} bytes), "
                    "which no table is; save it as CSV"
                )
            yield openpyxl.load_workbook(file, read_only=True, data_only=not has_formulas)
    except (OSError, TableError):
        raise
    except Exception as error:  # of zipfile, of the XML parser or of openpyxl, which share no class
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{path} is truncated or not a spreadsheet ({reason})") from error


def _cells(sheet: Any) -> Iterator[tuple[Any, ...]]:
    sheet.reset_dimensions()  # which some programs write wrongly
    return sheet.iter_rows(values_only=True)


def _choose_sheet(path: Path, book: Any, name: str | None) -> str:
    """Return the sheet of this name; without one, the only sheet that has rows."""
    names = [sheet.title for sheet in book.worksheets]
    if name is not None:
        if name not in names:
            raise TableError(f"{path} has no sheet {name!r}; it has {', '.join(names)} (--sheet)")
        return name
    filled = [sheet.title for sheet in book.worksheets if any(any(row) for row in _cells(sheet))]
    if len(filled) > 1:
        raise TableError(f"{path} has {len(filled)} sheets: {', '.join(filled)}; choose one with --sheet")
    if not names:
        raise TableError(f"{path} has no sheet with cells")
    return (filled or names)[0]


def _refuse_unsaved(path: Path, name: str, number: int, cells: Sequence[Any], saved: Sequence[Any]) -> None:
    """Raise where a formula has no value saved with it."""
    for position, (cell, value) in enumerate(zip(cells, saved, strict=True), 1):
        if value is None and cell is not None:
            raise TableError(
                f"{path}:{number}: column {position} of sheet {name!r} is a formula without a saved value; "
                "open the file in a spreadsheet program and save it, or replace the formula by its value"
            )


def _plain(value: Any) -> Any:
    """Return a cell's value as JSON has it: dates and times as in ISO 8601, midnight as the date alone."""
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _to_rows(columns: tuple[str, ...], rows: list[list[Any]], share_read: float) -> Rows:
    return Rows(columns, tuple(list(column) for column in zip(*rows, strict=True)), share_read)
