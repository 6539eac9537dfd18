"""What a file's name says about its content."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from .errors import TableError

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


@dataclass(frozen=True)
class Layout:
    """Kind of a table file (``csv``, ``tsv``, ``jsonl`` or ``parquet``), and whether gzip is around it."""

    kind: str
    gzipped: bool


def layout_of(path: str | PathLike[str]) -> Layout:
    """Layout of the file called `path`, from its suffixes alone."""
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
