"""Atomic writes: a temporary file in the same folder, which then replaces the old one."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED: set[str] = set()  # temporary files that are being written
WRITTEN: list[str] = []  # files that this process has put in place


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` when the block ends.

    An error or an interrupt leaves `path` as it was and no other file. A link stays a link, and the new
    file gets the permissions of an existing one.
    """
    final = Path(os.path.realpath(path))
    if not final.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {final.parent} does not exist")
    if final.exists() and not final.is_file():
        raise OSError(f"cannot write {path}: it is not a regular file; give another name")
    handle, name = tempfile.mkstemp(prefix=f".{final.name}-", suffix=final.suffix, dir=final.parent)
    UNFINISHED.add(name)
    try:
        os.close(handle)
        yield Path(name)
        os.chmod(name, _permissions(final))
        os.replace(name, final)
        WRITTEN.append(str(path))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    finally:
        UNFINISHED.discard(name)


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
