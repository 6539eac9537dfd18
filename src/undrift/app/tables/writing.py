"""Tables written by an atomic write: all of it, or nothing."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any, TypeAlias

import pandas as pd

from ...files import replace_file
from .files import (
    Cell,
    Kinds,
    TableError,
    import_extra,
    open_compressed,
    translate_errors,
    write_json,
    write_text,
)
from .paths import Layout, infer_layout

_BUFFER = 1 << 18
_GROUP_ROWS, _GROUP_BYTES = 1 << 16, 1 << 26  # of a row group of Parquet
_MOST_ROWS, _MOST_CHARACTERS = 1_048_576, 32_767  # of a spreadsheet; of a cell in it

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a formula may begin with, for a spreadsheet program


@dataclass(frozen=True)
class Style:
    """How delimited files are written."""

    delimiter: str = ","  # of a CSV file
    is_safe: bool = False  # whether cells that look like a formula get an apostrophe


Columns: TypeAlias = Sequence[list[Cell]]  # the cells of a block of rows
Write: TypeAlias = Callable[[Columns], object]
Writer: TypeAlias = AbstractContextManager[Write]


@contextmanager
def write_table(
    path: str | PathLike[str], kinds: Kinds, style: Style | None = None
) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give a function that appends a data frame; the file appears when the context ends.

    `kinds` names the columns. Those that a frame lacks are left empty. An exception, an interrupt among them,
    leaves `path` as it was and nothing else behind.
    """
    final, layout = Path(path), infer_layout(path)
    with ExitStack() as stack:
        with translate_errors(final, "written"):
            new = stack.enter_context(replace_file(final))
            stream = stack.enter_context(_open_stream(new, layout))
            write = stack.enter_context(_WRITERS[layout.kind](stream, kinds, final, style or Style()))

        def write_frame(frame: pd.DataFrame) -> None:
            frame = frame.reindex(columns=list(kinds))
            with translate_errors(final, "written"):
                write([frame[name].tolist() for name in kinds])

        yield write_frame
        with translate_errors(final, "written"):
            stack.close()


def check_table(path: str | PathLike[str]) -> None:
    """Raise a `TableError` now if `write_table` could not begin to write `path`."""
    with suppress(_Enough), write_table(path, {"column": {str}}):
        raise _Enough


def check_file(path: str | PathLike[str]) -> None:
    """Raise a `TableError` now if no file could be written at `path`."""
    with suppress(_Enough), translate_errors(path, "written"), replace_file(path):
        raise _Enough


class _Enough(Exception):
    """Leaves a trial of writing before anything is kept."""


@contextmanager
def _open_stream(path: Path, layout: Layout) -> Iterator[IO]:
    """Open a file to write to; all is on the disk, or a full one is noticed, when the context ends."""
    file = open(path, "wb", buffering=_BUFFER)  # noqa: SIM115 (closed below)
    streams: list[Any] = [file]
    try:
        if layout.compression:
            streams.append(open_compressed(path, file, layout.compression, "wb"))
        if layout.kind not in ("parquet", "xlsx"):
            # Half a surrogate pair, legal in JSON, has no bytes in UTF-8; its escape is JSON again.
            text = io.TextIOWrapper(streams[-1], encoding="utf-8", errors="backslashreplace", newline="")
            streams.append(text)
        yield streams[-1]
        streams[-1].flush()
        if layout.compression:
            streams[1].close()  # writes the trailer
        file.flush()
        os.fsync(file.fileno())
    finally:
        for stream in reversed(streams):
            with suppress(OSError, ValueError):
                stream.close()


@contextmanager
def _write_delimited(
    stream: IO, kinds: Kinds, path: Path, style: Style, delimiter: str | None = None
) -> Iterator[Write]:
    """Write rows that end in a newline."""
    # With "\r\n" as its line end csv quotes fields that hold either character, as it must.
    lines = SimpleNamespace(write=lambda line: stream.write(line[:-2] + "\n"))
    writer = csv.writer(lines, delimiter=delimiter or style.delimiter, lineterminator="\r\n")
    write_cell = _write_safely if style.is_safe else write_text
    writer.writerow(map(write_cell, kinds))
    yield lambda columns: writer.writerows(zip(*(map(write_cell, column) for column in columns), strict=True))


def _write_safely(value: Cell) -> str:
    """Return a cell as text that no spreadsheet program takes for a formula."""
    text = write_text(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextmanager
def _write_objects(stream: IO, kinds: Kinds, path: Path, style: Style, is_array: bool) -> Iterator[Write]:
    """Write one JSON object a line, or all in an array; missing keys stay missing."""
    before, between, end = ("[\n", ",\n", "\n]\n") if is_array else ("", "\n", "\n")

    def write(columns: Columns) -> None:
        nonlocal before
        for row in zip(*columns, strict=True):
            cells = zip(kinds, row, strict=True)
            stream.write(before + write_json({name: value for name, value in cells if value == value}))
            before = between

    yield write
    if before == between:
        stream.write(end)
    elif is_array:
        stream.write("[]\n")


@contextmanager
def _write_sheet(stream: IO, kinds: Kinds, path: Path, style: Style) -> Iterator[Write]:
    """Write one sheet; text that looks like a formula stays text."""
    openpyxl = import_extra(path, "openpyxl", "a spreadsheet")
    book, n_rows = openpyxl.Workbook(write_only=True), 0
    sheet = book.create_sheet("predictions")

    def make_cell(value: Cell) -> Any:
        if value is None or value != value or isinstance(value, bool | int | float):
            return None if value != value else value
        text = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("\ufffd", write_text(value))
        if len(text) > _MOST_CHARACTERS:
            raise TableError(
                f"{path}: a cell of a spreadsheet holds at most {_MOST_CHARACTERS:,} characters, and row "
                f"{n_rows} has one of {len(text):,}; write .csv instead"
            )
        cell = openpyxl.cell.WriteOnlyCell(sheet, text)
        cell.data_type = "s"
        return cell

    def write(columns: Columns) -> None:
        nonlocal n_rows
        for row in zip(*columns, strict=True):
            n_rows += 1
            if n_rows > _MOST_ROWS:
                raise TableError(f"{path}: a spreadsheet has at most {_MOST_ROWS:,} rows; write .csv instead")
            sheet.append([make_cell(value) for value in row])

    try:
        write([[name] for name in kinds])
        yield write
        book.save(stream)
    except BaseException:
        with suppress(Exception):  # of a sheet that is not saved, a temporary file is left
            sheet.close()
            sheet._writer.cleanup()
        raise


@contextmanager
def _write_parquet(stream: IO, kinds: Kinds, path: Path, style: Style) -> Iterator[Write]:
    """Write row groups of some tens of thousands of rows."""
    parquet = import_extra(path, "pyarrow.parquet", "Parquet")
    pyarrow = import_extra(path, "pyarrow", "Parquet")
    schema = pyarrow.schema([(name, _find_type(pyarrow, types)) for name, types in kinds.items()])
    writer, waiting = parquet.ParquetWriter(stream, schema), list[Any]()

    def write_group() -> None:
        writer.write_table(pyarrow.Table.from_batches(waiting, schema))
        waiting.clear()

    def write(columns: Columns) -> None:
        arrays = [
            _make_array(pyarrow, path, *each) for each in zip(kinds, schema.types, columns, strict=True)
        ]
        waiting.append(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
        n_rows = sum(batch.num_rows for batch in waiting)
        if n_rows >= _GROUP_ROWS or sum(batch.nbytes for batch in waiting) >= _GROUP_BYTES:
            write_group()

    try:
        yield write
        if waiting:
            write_group()
        writer.close()
    except BaseException:
        with suppress(Exception):  # else pyarrow would try later, at any moment
            writer.close()
        raise


def _find_type(pyarrow: ModuleType, types: set[Hashable]) -> Hashable:
    """Return the Arrow type of cells of these types."""
    names: dict[Hashable, str] = {bool: "bool", int: "int64", float: "float64", str: "string"}
    first = float if types == {int, float} else next(iter(types), str) if len(types) < 2 else str
    return pyarrow.type_for_alias(names[first]) if first in names else first


def _make_array(pyarrow: ModuleType, path: Path, name: str, kind: Hashable, cells: list[Cell]) -> Any:
    """Return a column as an array of its type."""
    cells = [None if value != value else value for value in cells]
    if kind == pyarrow.string():
        texts = (value if value is None else write_text(value) for value in cells)
        cells = [v if v is None else v.encode("utf-8", "backslashreplace").decode() for v in texts]
    try:
        return pyarrow.array(cells, kind)
    except (pyarrow.ArrowException, OverflowError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(
            f"{path}: column {name!r} has values that Parquet cannot hold together ({reason}); "
            "write .jsonl or .csv instead"
        ) from error


_WRITERS: dict[str, Callable[[IO, Kinds, Path, Style], Writer]] = {
    "csv": _write_delimited,
    "tsv": partial(_write_delimited, delimiter="\t"),
    "jsonl": partial(_write_objects, is_array=False),
    "json": partial(_write_objects, is_array=True),
    "xlsx": _write_sheet,
    "parquet": _write_parquet,
}
