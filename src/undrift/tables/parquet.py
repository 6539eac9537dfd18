"""Parquet tables, by pyarrow (extra ``data``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .files import TableError
from .lines import import_extra
from .rows import MISSING, Rows, as_text, refuse_repeated, to_list

BLOCK_ROWS = 4096
BLOCK_BYTES = 1 << 23
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 1 << 26
_ALIASES = {"bool": "bool", "int": "int64", "float": "float64", "str": "string"}


def read_kinds(path: Path) -> dict[str, Any]:
    """Every column with its Arrow type."""
    with _open(path) as file:
        schema = file.schema_arrow
        if not schema.names:
            raise TableError(f"{path} has no columns")
        refuse_repeated(path, schema.names)
        return dict(zip(schema.names, schema.types, strict=True))


def read_blocks(path: Path) -> Iterator[Rows]:
    """Yield the rows in blocks of Arrow arrays, with no value converted."""
    with _open(path) as file:
        n_rows, n_read = file.metadata.num_rows, 0
        for batch in file.iter_batches(batch_size=_block_rows(file.metadata)):
            batch.validate(full=True)  # texts that are not UTF-8, indices beyond a dictionary
            n_read += batch.num_rows
            if batch.num_rows:
                yield Rows(tuple(batch.schema.names), tuple(batch.columns), n_read / n_rows)


class ParquetSink:
    """Writes row groups of some tens of thousands of rows."""

    def __init__(
        self, stream: BinaryIO, columns: Sequence[str], kinds: Mapping[str, Any], path: Path
    ) -> None:
        self._pyarrow = _import_pyarrow(path)
        self._stream, self._path = stream, path
        self._columns, self._kinds = tuple(columns), dict(kinds)
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._n_rows = self._n_bytes = 0  # of what waits

    def write(self, values: Sequence[Any]) -> None:
        """Take one block, given by columns."""
        arrays = [self._array(name, column) for name, column in zip(self._columns, values, strict=True)]
        batch = self._pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema())
        self._waiting.append(batch)
        self._n_rows += batch.num_rows
        self._n_bytes += batch.nbytes
        if self._n_bytes >= _GROUP_BYTES or self._n_rows >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what waits, and the footer."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close without caring what was written; else pyarrow would try later, at any moment."""
        if self._writer is not None:
            with suppress(OSError, ValueError, self._pyarrow.ArrowException):
                self._writer.close()

    def _flush(self) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._stream, self._schema())
        if self._waiting:
            self._writer.write_table(self._pyarrow.Table.from_batches(self._waiting, self._schema()))
        self._waiting, self._n_rows, self._n_bytes = [], 0, 0

    def _schema(self) -> Any:
        types = [_arrow_type(self._pyarrow, self._kinds.get(name)) for name in self._columns]
        return self._pyarrow.schema(list(zip(self._columns, types, strict=True)))

    def _array(self, name: str, column: Any) -> Any:
        """Return a column as an array of the kind settled for it, by its first block if not before."""
        pyarrow = self._pyarrow
        is_arrow = isinstance(column, pyarrow.Array)
        try:
            if self._kinds.get(name) is None:
                arrow_type = column.type if is_arrow else pyarrow.array(_replace_missing(column)).type
                self._kinds[name] = pyarrow.string() if pyarrow.types.is_null(arrow_type) else arrow_type
            wanted = _arrow_type(pyarrow, self._kinds[name])
            if is_arrow and (column.type == wanted or wanted != pyarrow.string()):
                return column.cast(wanted)
            values = _texts(column) if wanted == pyarrow.string() else _replace_missing(column)
            return pyarrow.array(values, wanted)
        except (pyarrow.ArrowException, OverflowError) as error:
            raise TableError(
                f"{self._path}: column {name!r} mixes values that Parquet cannot hold together "
                f"({_first_line(error)}); write .jsonl or .csv instead"
            ) from error


def _import_pyarrow(path: Path) -> Any:
    """Import pyarrow, or say which extra brings it."""
    import_extra(path, "pyarrow.parquet", "Parquet")
    return import_extra(path, "pyarrow", "Parquet")


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a Parquet file; whatever is broken in it, now or while it is read, is one error."""
    pyarrow = _import_pyarrow(path)
    if not path.stat().st_size:
        raise TableError(f"{path} is empty")
    try:
        with pyarrow.parquet.ParquetFile(path, buffer_size=1 << 20) as file:
            yield file
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{path} is truncated or not a Parquet file ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _block_rows(metadata: Any) -> int:
    """Return how many rows make a block: few when they are long."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    longest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(BLOCK_ROWS, int(BLOCK_BYTES / max(longest, 1))))


def _arrow_type(pyarrow: Any, kind: Any) -> Any:
    """Return the Arrow type of a kind; types are kinds themselves, and no kind at all is text."""
    if kind is not None and not isinstance(kind, str):
        return kind
    return pyarrow.type_for_alias(_ALIASES[kind or "str"])


def _replace_missing(column: Any) -> list[Any]:
    """Return the values with None for what is missing."""
    return [None if value is MISSING else value for value in column]


def _texts(column: Any) -> list[str | None]:
    """Return the values as text that UTF-8 can hold, None kept."""
    values = _replace_missing(to_list(column))
    return [v if v is None else as_text(v).encode("utf-8", "backslashreplace").decode() for v in values]
