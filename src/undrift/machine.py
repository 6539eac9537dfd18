"""Memory and processors that this process may use: those of the machine, or of its container if it has fewer.

Linux limits a container by control groups, of version 1 or 2. A limit of a group holds for the groups inside
it. Other systems have no such files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/")
UNKNOWN_MEMORY = 8e9  # bytes, where the system does not say


def count_processors() -> int:
    """Return how many processors this process may keep busy, at least 1."""
    from joblib import cpu_count  # comes with scikit-learn

    return int(cpu_count())


def measure_memory(root: Path = ROOT) -> float:
    """Return the bytes of memory that this process may use."""
    names, whole = getattr(os, "sysconf_names", {}), UNKNOWN_MEMORY
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        whole = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min([whole, *_read_limits(root)])


def _read_limits(root: Path) -> Iterator[float]:
    """Yield the limits of all groups of this process, in bytes; "max" of version 2 is none.

    Lines of ``/proc/self/cgroup`` are ``0::/path`` in version 2 and ``5:memory:/path`` in version 1. The
    path may be that of the machine outside a container: folders that are not there are passed over.
    """
    mounted, lines = root / "sys" / "fs" / "cgroup", list[str]()
    with suppress(OSError):
        lines = (root / "proc" / "self" / "cgroup").read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        inside = Path(path.lstrip("/"))
        for part in (inside, *inside.parents):
            for name in ("memory.max", "memory.limit_in_bytes"):
                with suppress(OSError, ValueError):
                    yield float(int((mounted / controllers / part / name).read_text()))
