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
except ImportError:  # Windows: nothing to lock with, so that files of a killed process stay there
    fcntl = None  # type: ignore[assignment]

UNFINISHED: set[str] = set()  # temporary files that are being written
WRITTEN: list[str] = []  # files that this process has put in place


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` when the block ends.

    An error or an interrupt leaves `path` as it was and no other file; files that a killed process left
    beside it are removed. A link stays a link, and the new file gets the permissions of an existing one.
    """
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise OSError(f"{path} is a folder; give the name of a file in it")
    if not final.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {final.parent}")
    if final.exists() and not final.is_file():
        raise OSError(f"{path} is not a regular file, which it would be replaced by")
    prefix = f".{final.name}.unfinished-"
    _remove_abandoned(final.parent, prefix, final.suffix)
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=final.suffix, dir=final.parent)
    UNFINISHED.add(name)
    if fcntl is None:
        os.close(handle)  # Windows does not rename an open file
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
        if fcntl is not None:
            os.close(handle)
        UNFINISHED.discard(name)


@contextmanager
def _hold(path: Path, kind: int) -> Iterator[None]:
    """Hold a lock on a file or folder; a killed process holds none."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, kind)
        yield
    finally:
        os.close(handle)


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
        with suppress(OSError), _hold(path, fcntl.LOCK_EX | fcntl.LOCK_NB):  # in use, not ours, or gone
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
