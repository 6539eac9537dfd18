"""Names of table files: what the endings say, and the files that a folder or a pattern stands for."""

from __future__ import annotations

import re
from glob import glob, has_magic
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from .files import COMPRESSIONS, TableError

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
    is_folder = Path(path).is_dir()
    inside = Path(path).rglob("*") if is_folder else map(Path, glob(str(path), recursive=True))
    paths = [each for each in inside if each.is_file() and not (is_folder and _is_beside(each, Path(path)))]
    if not paths:
        known = ", ".join(_KINDS)
        raise TableError(
            f"{path} has no file that ends in {known}" if is_folder else f"no file matches {path}"
        )

    def sort_key(shard: Path) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", str(shard))  # digits and the rest alternate, so that they never meet
        return [(int(part), "") if part.isdigit() else (0, part) for part in parts]

    return sorted(paths, key=sort_key)


def _is_beside(path: Path, folder: Path) -> bool:
    """Tell whether a file inside a folder is none of the folder's tables, by its name."""
    *_, before, last = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    is_table = last in _KINDS or (last in COMPRESSIONS and before in _KINDS)
    is_hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return is_hidden or path.name in _NO_TABLES or not is_table
