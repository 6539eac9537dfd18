"""One table in many files: a pattern such as ``reviews-*.csv``, read in the order of the names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import glob, has_magic
from os import PathLike
from pathlib import Path

from .errors import TableError
from .rows import MISSING, Rows


def is_pattern(path: str | PathLike[str]) -> bool:
    """Tell whether `path` is a pattern rather than the name of a file that exists."""
    return has_magic(str(path)) and not Path(path).exists()


def shard_paths(path: str | PathLike[str]) -> list[Path]:
    """Files that `path` stands for: itself, or those that match it, numbers in their names in order.

    Examples
    --------
    >>> shard_paths("reviews.csv")
    [PosixPath('reviews.csv')]
    """
    if not is_pattern(path):
        return [Path(path)]
    found = [Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file()]
    if not found:
        raise TableError(f"no file matches {path}")
    return sorted(found, key=lambda each: [_number(part) for part in re.split(r"(\d+)", str(each))])


def _number(part: str) -> tuple[int, str]:
    """Sort digits by their value and the rest as text; the two alternate, so that they never meet."""
    return (int(part), "") if part.isdigit() else (0, part)


def joined_rows(
    blocks: Iterator[Rows], columns: Sequence[str], position: int, n_tables: int
) -> Iterator[Rows]:
    """Yield the rows of one of several tables with the columns of all of them."""
    for rows in blocks:
        absent = [MISSING] * len(rows)
        held = dict(zip(rows.columns, rows.values, strict=True))
        values = tuple(held.get(name, absent) for name in columns)
        share = (position + rows.share_read) / n_tables
        yield replace(rows, columns=tuple(columns), values=values, share_read=share)
