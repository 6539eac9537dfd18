"""Show or clear the folder of sentence vectors."""

from __future__ import annotations

from ..errors import count
from ..text import clear_vectors, find_cache, list_vectors
from .job import Summary
from .terminal import format_size


def run_cache(*, clear: bool) -> Summary:
    """Say where the vectors are, how many before they are cleared, and whether they were."""
    files, folder = list_vectors(), str(find_cache())
    size = sum(path.stat().st_size for path in files)
    if clear:
        clear_vectors()
    facts = {"folder": folder, "files": len(files), "bytes": size, "cleared": clear}
    kept = f"{count(len(files), 'file')} of sentence vectors ({format_size(size)})"
    return Summary(facts, [f"{'Removed' if clear else 'Kept'}: {kept}, in", f"  {folder}"])
