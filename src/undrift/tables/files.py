"""Table files on disk: their format, the shards that a pattern names, and errors in one line."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from gzip import BadGzipFile
from os import PathLike
from pathlib import Path

from ..errors import UndriftError

_KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}

# First bytes of the files most often given a wrong name.
_SIGNATURES = {
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x1f\x8b": "compressed by gzip: add .gz to its name",
    b"PK\x03\x04": "a zip archive or a spreadsheet: save the table in it as CSV",
    b"SQLite format 3": "an SQLite database: export the table in it as CSV",
    b"%PDF": "a PDF document",
}


class TableError(UndriftError):
    """A table file cannot be read or written; the message says which, where, and what to do."""


@contextmanager
def translate_read_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Raise the errors of the system and of gzip as a `TableError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"{path} does not exist") from None
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(
            f"{path} is truncated or not a gzip file ({error}); "
            "copy it again, or drop .gz if it is not compressed"
        ) from error
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeError as error:
        raise TableError(f"{path} changed while it was being read ({error})") from error


@contextmanager
def translate_write_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Raise the errors of the system, such as a full disk, as a `TableError` that names the file."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from error


@dataclass(frozen=True)
class Layout:
    """Kind of a table file (``csv``, ``tsv``, ``jsonl`` or ``parquet``), and whether gzip is around it."""

    kind: str
    gzipped: bool


def infer_layout(path: str | PathLike[str]) -> Layout:
    """Return the layout of the file called `path`, from its suffixes alone."""
    name = Path(path)
    gzipped = name.suffix.lower() == ".gz"
    kind = _KINDS.get((name.with_suffix("") if gzipped else name).suffix.lower())
    if kind is None:
        known = ", ".join(_KINDS)
        raise TableError(f"{path}: cannot tell the format from the name; use one of {known}, or any with .gz")
    if gzipped and kind == "parquet":
        raise TableError(f"{path}: Parquet is compressed inside; drop .gz from the name")
    return Layout(kind, gzipped)


def refuse_misnamed(path: str | PathLike[str], head: bytes) -> None:
    """Raise when `head`, the first bytes of a text table, belongs to another kind of file."""
    for signature, truth in _SIGNATURES.items():
        if head.startswith(signature):
            raise TableError(f"{path} is {truth}")


def is_pattern(path: str | PathLike[str]) -> bool:
    """Tell whether `path` is a pattern rather than the name of a file that exists."""
    return has_magic(str(path)) and not Path(path).exists()


def shard_paths(path: str | PathLike[str]) -> list[Path]:
    """List the files that `path` stands for: itself, or those that match it, numbers in their names in order.

    Examples
    --------
    >>> shard_paths("reviews.csv")
    [PosixPath('reviews.csv')]
    """
    if not is_pattern(path):
        return [Path(path)]
    paths = [Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file()]
    if not paths:
        raise TableError(f"no file matches {path}")
    return sorted(paths, key=lambda shard: [_sort_key(part) for part in re.split(r"(\d+)", str(shard))])


def _sort_key(part: str) -> tuple[int, str]:
    """Sort digits by their value and the rest as text; the two alternate, so that they never meet."""
    return (int(part), "") if part.isdigit() else (0, part)
