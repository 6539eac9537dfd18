"""Tables written by an atomic write: all of it, or nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from .._files import replace_file
from .delimited import DelimitedSink
from .files import Layout, TableError, infer_layout, translate_write_errors
from .json_lines import JsonArraySink, JsonLinesSink
from .lines import open_compressed
from .parquet import ParquetSink
from .rows import Rows, refuse_repeated
from .spreadsheet import SpreadsheetSink

_BUFFER = 1 << 18


class _Sink(Protocol):
    """Where blocks go, in some format: ``close`` writes what is left, ``abandon`` need not."""

    def write(self, values: Sequence[Any]) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class TableWriter:
    """Takes blocks of rows for one file; made by `write_table`."""

    def __init__(self, path: Path, columns: Sequence[str], sink: _Sink) -> None:
        self.path = path
        self.columns = tuple(columns)
        self.n_rows = 0
        self._sink = sink

    def write(self, rows: Rows) -> None:
        """Append a block. Columns that it lacks are left empty; columns the file lacks are an error."""
        unknown = set(rows.columns) - set(self.columns)
        if unknown:
            raise TableError(f"{self.path} was begun without the column {min(unknown)!r}")
        with translate_write_errors(self.path):
            self._sink.write(rows.select(self.columns))
        self.n_rows += len(rows)


@contextmanager
def write_table(
    path: str | PathLike[str], columns: Sequence[str], *, kinds: Mapping[str, Any] | None = None
) -> Iterator[TableWriter]:
    """Write a table block by block; the file appears when the ``with`` block ends without an exception.

    An atomic write: rows go to a temporary file in the same folder, which replaces `path` at the end. Any
    exception, an interrupt among them, leaves `path` as it was and nothing else behind.

    Parameters
    ----------
    path : path
        Its suffix says the format; see `open_table`.
    columns : sequence of str
        Names, in order; see `with_added` for those of a table and some more.
    kinds : dict or None, default=None
        What the values of columns are, where known (`Table.kinds`). Only Parquet needs it; columns
        not given take the type of their first block.

    Yields
    ------
    TableWriter
        With ``write(rows)`` and ``n_rows``.

    Examples
    --------
    >>> table = open_table("reviews.csv", text="text")  # doctest: +SKIP
    >>> columns = with_added(table.path, table.columns, ["score"])  # doctest: +SKIP
    >>> with write_table("out.csv", columns) as out:  # doctest: +SKIP
    ...     for rows in table:
    ...         out.write(rows.with_columns({"score": score(rows.texts("text"))}))
    """
    final, layout = Path(path), infer_layout(path)
    refuse_repeated(final, columns)
    with ExitStack() as stack:
        with translate_write_errors(final):
            _refuse_unwritable(final)
            temporary = stack.enter_context(replace_file(final))
            streams = stack.enter_context(_open(temporary, layout))
            sink = _build_sink(streams[-1], layout, columns, kinds or {}, final)
            stack.callback(sink.abandon)
        yield TableWriter(final, columns, sink)
        with translate_write_errors(final):
            sink.close()
            _flush_to_disk(streams)
            stack.close()


def check_writable(path: str | PathLike[str]) -> None:
    """Raise a `TableError` now if `write_table` could not begin to write `path`."""
    with suppress(_Enough), write_table(path, ["column"]):
        raise _Enough


class _Enough(Exception):
    """Leaves a trial of writing before anything is kept."""


def _refuse_unwritable(path: Path) -> None:
    """Raise a `TableError` unless `path` is a regular file, or a name for one in an existing folder."""
    if path.is_dir():
        raise TableError(f"{path} is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise TableError(f"{path} is not a regular file, which it would be replaced by")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {folder}")


@contextmanager
def _open(path: Path, layout: Layout) -> Iterator[list[Any]]:
    """Open the streams from the new file outwards; the last is the one to write to."""
    with ExitStack() as stack:
        streams: list[Any] = []

        def add(stream: Any) -> None:
            streams.append(stream)
            stack.callback(_abandon, stream)

        add(open(path, "wb", buffering=_BUFFER))  # noqa: SIM115 (closed by the stack)
        if layout.compression:
            add(open_compressed(path, streams[-1], layout.compression, "wb"))
        if layout.kind not in ("parquet", "xlsx"):
            # Half a surrogate pair, legal in JSON, has no bytes in UTF-8; its escape is JSON again.
            add(io.TextIOWrapper(streams[-1], encoding="utf-8", errors="backslashreplace", newline=""))
        yield streams


def _build_sink(
    stream: Any, layout: Layout, columns: Sequence[str], kinds: Mapping[str, Any], path: Path
) -> _Sink:
    """Return what writes the format of `layout` to `stream`."""
    if layout.kind == "parquet":
        return ParquetSink(stream, columns, kinds, path)
    if layout.kind == "xlsx":
        return SpreadsheetSink(stream, columns, path)
    if layout.kind in ("json", "jsonl"):
        return (JsonArraySink if layout.kind == "json" else JsonLinesSink)(stream, columns)
    return DelimitedSink(stream, columns, "\t" if layout.kind == "tsv" else ",")


def _flush_to_disk(streams: list[Any]) -> None:
    """Bring everything to the disk, so that a full one is noticed before the file is renamed."""
    raw, *around = streams
    for stream in reversed(around):
        stream.flush()
        if not isinstance(stream, io.TextIOWrapper):
            stream.close()  # writes the trailer, and leaves `raw` open
    raw.flush()
    os.fsync(raw.fileno())


def _abandon(stream: Any) -> None:
    """Close a stream whose content no longer matters."""
    with suppress(OSError, ValueError):
        stream.close()
