"""Table files on disk: their format, the shards of a folder or pattern, and errors in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from os import PathLike
from pathlib import Path

from ..errors import UndriftError

_KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}
# what Hugging Face puts beside tables
_DESCRIPTIONS = ("dataset_info.json", "dataset_infos.json", "state.json")

# First bytes of the files most often given a wrong name.
_SIGNATURES = {
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x1f\x8b": "compressed by gzip: add .gz to its name",
    b"BZh": "compressed by bzip2: add .bz2 to its name",
    b"\xfd7zXZ": "compressed by xz: add .xz to its name",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard: add .zst to its name",
    b"PK\x03\x04": "a spreadsheet or another zip archive: name a spreadsheet .xlsx",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old format: save it as .xlsx",
    b"SQLite format 3": "an SQLite database: export the table in it as CSV",
    b"%PDF": "a PDF document",
}


class TableError(UndriftError):
    """A table file cannot be read or written; the message says which, where, and what to do."""


@contextmanager
def translate_read_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Raise the errors of the system as a `TableError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"{path} does not exist") from None
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
    """Kind of a table file (``csv``, ``jsonl``, ...), and the suffix of what compresses it, or nothing."""

    kind: str
    compression: str = ""


def infer_layout(path: str | PathLike[str]) -> Layout:
    """Return the layout of the file called `path`, from its suffixes alone."""
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


def refuse_misnamed(path: str | PathLike[str], head: bytes) -> None:
    """Raise when `head`, the first bytes of a text table, belongs to another kind of file."""
    for signature, truth in _SIGNATURES.items():
        if head.startswith(signature):
            raise TableError(f"{path} is {truth}")


def is_pattern(path: str | PathLike[str]) -> bool:
    """Tell whether `path` is a folder or a pattern, rather than the name of a file."""
    return Path(path).is_dir() or (has_magic(str(path)) and not Path(path).exists())


def shard_paths(path: str | PathLike[str]) -> list[Path]:
    """List the files that `path` stands for, numbers in their names in order.

    These are itself, those that match a pattern, or the tables in a folder and the folders in it. Names that
    start with a dot or an underscore, and files that are no tables by their names, are left out.

    Examples
    --------
    >>> shard_paths("reviews.csv")
    [PosixPath('reviews.csv')]
    """
    if not is_pattern(path):
        return [Path(path)]
    if Path(path).is_dir():
        paths = [inside for inside in Path(path).rglob("*") if _is_shard(inside, Path(path))]
    else:
        paths = [Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file()]
    if not paths:
        known = ", ".join(_KINDS)
        raise TableError(
            f"{path} has no file that ends in {known}" if Path(path).is_dir() else f"no file matches {path}"
        )
    return sorted(paths, key=lambda shard: [_sort_key(part) for part in re.split(r"(\d+)", str(shard))])


def _is_shard(path: Path, folder: Path) -> bool:
    """Tell whether a file inside a folder is one of the folder's tables."""
    parts = path.relative_to(folder).parts
    if path.name in _DESCRIPTIONS or any(part.startswith((".", "_")) for part in parts) or not path.is_file():
        return False
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return bool(suffixes) and (
        suffixes[-1] in _KINDS or (suffixes[-1] in COMPRESSIONS and suffixes[0] in _KINDS)
    )


def _sort_key(part: str) -> tuple[int, str]:
    """Sort digits by their value and the rest as text; the two alternate, so that they never meet."""
    return (int(part), "") if part.isdigit() else (0, part)
