"""The one exception of this package, and the one place where the system's errors become it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile
from os import PathLike

from ..errors import UndriftError


class TableError(UndriftError):
    """A table file cannot be read or written; the message says which, where, and what to do."""


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Retell the errors of the system and of gzip as a `TableError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise TableError(f"{path} does not exist") from None
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(
            f"{path} is not a whole gzip file ({error}); copy it again, or drop .gz if it is not compressed"
        ) from error
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeError as error:
        raise TableError(f"{path} changed while it was being read ({error})") from error


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[None]:
    """Retell the system's errors, a full disk among them, as a `TableError` that names the file."""
    try:
        yield
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from error
