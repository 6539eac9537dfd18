"""Atomic writes: a temporary file in the same folder, which then replaces the old one."""

from __future__ import annotations

import glob
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves stays there
    fcntl = None  # type: ignore[assignment]

UNFINISHED: set[str] = set()  # temporary files that are being written
WRITTEN: list[str] = []  # files that this process has put in place


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` when the block ends.

    An error or an interrupt leaves `path` as it was and no other file; what a killed process left beside it
    is removed. A link stays a link, and the new file gets the permissions of an existing one.
    """
    final = Path(os.path.realpath(path))
    if not final.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {final.parent} does not exist")
    if final.exists() and not final.is_file():
        raise OSError(f"cannot write {path}: it is not a regular file; give another name")
    prefix = f".{final.name}.unfinished-"
    _remove_abandoned(final.parent, prefix, final.suffix)
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=final.suffix, dir=final.parent)
    UNFINISHED.add(name)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_SH)  # as long as this process writes; a killed one holds no lock
        yield Path(name)
        os.chmod(name, _permissions(final))
        os.replace(name, final)
        WRITTEN.append(str(path))
    except BaseException:
        _remove_file(name)
        raise
    finally:
        os.close(handle)
        UNFINISHED.discard(name)


def _remove_file(name: str) -> None:
    """Remove a file, even if a signal arrives in that very moment."""
    try:
        os.unlink(name)
    except FileNotFoundError:
        return
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _remove_abandoned(folder: Path, prefix: str, suffix: str) -> None:
    """Remove temporary files of a process that was killed: those on which nobody holds a lock."""
    if fcntl is None:
        return
    pattern = re.escape(prefix) + r"[a-z0-9_]{8}" + re.escape(suffix)
    for path in folder.glob(f"{glob.escape(prefix)}*"):
        if not re.fullmatch(pattern, path.name):
            continue
        with suppress(OSError), open(path, "rb") as file:  # in use, not ours, or removed by another run
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8; characters that cannot be encoded become question marks."""
    with replace_file(path) as new:
        new.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def _permissions(path: Path) -> int:
    """Return the permissions of a file, or those that a new one would get."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
