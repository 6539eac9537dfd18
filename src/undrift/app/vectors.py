"""Show or clear the folder of sentence vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import count
from ..text import clear_vectors, find_cache, list_vectors
from .terminal import format_size


def run_cache(*, clear: bool) -> dict[str, Any]:
    """Return the folder, its files and their size before it is cleared, and whether it was."""
    files = list_vectors()
    size = sum(path.stat().st_size for path in files)
    if clear:
        clear_vectors()
    return {"folder": str(find_cache()), "files": len(files), "bytes": size, "cleared": clear}


def describe_cache(summary: dict[str, Any]) -> Iterator[str]:
    """Say where the vectors are, how many, and whether they were removed."""
    files = f"{count(summary['files'], 'file')} of sentence vectors ({format_size(summary['bytes'])})"
    yield f"{'Removed' if summary['cleared'] else 'Kept'}: {files}, in"
    yield f"  {summary['folder']}"
