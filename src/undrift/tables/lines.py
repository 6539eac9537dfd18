"""Text files line by line, in bounded memory however long the lines are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from .encoding import Encoding
from .files import COMPRESSIONS, TableError

LINE_LIMIT = 1 << 24
"""Characters a row may have (about ten times *War and Peace*)."""

_DISCARD = 1 << 20
_BUFFER = 1 << 18
_BOMB_BYTES, _BOMB_RATIO = 1 << 28, 200  # a file that gives more bytes and more times its size is refused


class OverlongError(Exception):
    """A row is longer than `LINE_LIMIT` characters; stays inside this package."""


class LineFeed:
    r"""Lines of a text stream, for a parser that may take several of them for one row.

    Lines end at ``\n``, ``\r\n`` or ``\r`` and nowhere else, and keep their ends. The lines of the
    current row are remembered, so that a row that turns out to be malformed can be given up after
    its first line.
    """

    def __init__(self, stream: TextIO, position: Callable[[], float] = lambda: 1.0) -> None:
        self._stream = stream
        self._position = position
        self._again: deque[str] = deque()
        self._row: list[str] = []
        self._n_row_characters = 0
        self._cut = False  # whether the latest line goes on in the stream
        self.n_lines = 0
        self.n_characters = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else self._read()
        self.ended = not line
        if not line:
            raise StopIteration
        self.n_lines += 1
        self.n_characters += len(line)
        self._n_row_characters += len(line)
        self._row.append(line)
        if self._n_row_characters > LINE_LIMIT:
            raise OverlongError
        return line

    @property
    def row_line(self) -> int:
        """Number of the line, from 1, where the current row starts."""
        return self.n_lines - len(self._row) + 1

    @property
    def share_read(self) -> float:
        """Fraction of the file read so far."""
        return self._position()

    def start_row(self) -> None:
        """Say that the next line starts a row."""
        self._row.clear()
        self._n_row_characters = 0

    def give_up_row(self) -> None:
        """Go back to just after the first line of the current row."""
        self._again.extendleft(reversed(self._row[1:]))
        self.n_lines -= len(self._row[1:])
        self.ended = False
        self.start_row()

    def describe_fault(self) -> str:
        """Return why the current row is too long."""
        if len(self._row) == 1:
            return f"the line has more than {LINE_LIMIT:,} characters"
        return f"a quoted field that starts here is not closed within {LINE_LIMIT:,} characters"

    def _read(self) -> str:
        while self._cut:
            rest = self._stream.readline(_DISCARD)
            self._cut = bool(rest) and rest[-1] not in "\r\n"
        line = self._stream.readline(LINE_LIMIT + 1)
        self._cut = len(line) > LINE_LIMIT and line[-1] not in "\r\n"
        return line


@dataclass(frozen=True)
class TextFile:
    """A text file on disk that can be opened again and again."""

    path: Path
    compression: str
    encoding: Encoding

    @contextmanager
    def open(self) -> Iterator[tuple[TextIO, Callable[[], float]]]:
        """Open the file as text, with a function that says what share of it was read."""
        with open_bytes(self.path, self.compression) as (stream, position):
            encoding = self.encoding
            yield io.TextIOWrapper(stream, encoding.name, encoding.errors, newline=""), position

    @contextmanager
    def lines(self) -> Iterator[LineFeed]:
        """Open the file and hand out its lines."""
        with self.open() as (text, position):
            yield LineFeed(text, position)


@contextmanager
def open_bytes(path: Path, compression: str) -> Iterator[tuple[BinaryIO, Callable[[], float]]]:
    """Open the bytes of a file, decompressed, with a function that says what share of it was read."""
    with ExitStack() as stack:
        raw = stack.enter_context(open(path, "rb", buffering=0))
        n_bytes = os.fstat(raw.fileno()).st_size
        stream = _Decompressed(path, raw, compression) if compression else raw
        buffered = stack.enter_context(io.BufferedReader(stream, _BUFFER))
        yield cast(BinaryIO, buffered), lambda: min(1.0, raw.tell() / max(n_bytes, 1))


class _Decompressed(io.RawIOBase):
    """Content of a compressed file, which must not be many times as large as any table would be."""

    def __init__(self, path: Path, raw: io.FileIO, compression: str) -> None:
        self._path, self._raw, self._compression = path, raw, compression
        self._stream: Any = None
        self._n_bytes = 0
        self.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go back to the beginning, which is all that is asked for."""
        if whence == os.SEEK_CUR and offset == 0:
            return self._n_bytes
        if (offset, whence) != (0, os.SEEK_SET):
            raise io.UnsupportedOperation("seek")
        self._n_bytes = 0
        self._close_stream()
        self._raw.seek(0)
        self._stream = open_compressed(self._path, self._raw, self._compression)
        return 0

    def close(self) -> None:
        self._close_stream()
        super().close()

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise TableError(
                f"{self._path} is truncated or not a {COMPRESSIONS[self._compression]} file ({error}); "
                f"copy it again, or drop {self._compression} if it is not compressed"
            ) from error
        self._n_bytes += len(chunk)
        if self._n_bytes > max(_BOMB_BYTES, _BOMB_RATIO * self._raw.tell()):
            raise TableError(
                f"{self._path} is over {_BOMB_RATIO} times as large when decompressed ({self._n_bytes:,} "
                "bytes so far), which no table is; if this one is, decompress it first"
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)


def open_compressed(path: Path, raw: Any, compression: str, mode: Any = "rb") -> Any:
    """Return a stream of the decompressed bytes of `raw`, or in mode "wb" one that compresses to it."""
    if compression == ".gz":  # no name and no time inside: the same rows give the same bytes
        return gzip.GzipFile("", mode, compresslevel=6, fileobj=raw, mtime=0)
    if compression == ".bz2":
        return bz2.BZ2File(raw, mode)
    if compression == ".xz":
        return lzma.LZMAFile(raw, mode)
    pyarrow = import_extra(path, "pyarrow", "Zstandard")
    kind = pyarrow.CompressedInputStream if mode == "rb" else pyarrow.CompressedOutputStream
    copy = os.fdopen(os.dup(raw.fileno()), mode)  # closed with the stream, unlike `raw`
    return kind(pyarrow.PythonFile(copy, mode[0]), "zstd")


def import_extra(path: Path, module: str, what: str) -> Any:
    """Import an optional package, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise TableError(f"{path}: {what} needs the `data` extra: pip install 'undrift[data]'") from error


def refuse_unreadable(path: Path) -> None:
    """Raise unless `path` is a regular file, which can be read more than once."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise TableError(f"{path} is a folder, not a table file")
    if not stat.S_ISREG(mode):
        raise TableError(f"{path} is not a regular file and can be read only once; save its content first")


@dataclass
class Tally:
    """Rows that could not be read: raised at once, or counted when they are to be skipped."""

    path: Path
    skip: bool
    n_bad: int = field(default=0, init=False)
    first: str | None = field(default=None, init=False)

    def count_bad(self, line: int, fault: str) -> None:
        """Count the row at `line` as bad, or raise because of it."""
        message = f"{self.path}:{line}: {fault}"
        if not self.skip:
            raise TableError(f"{message}; fix it, or skip such rows (skip_bad=True, --skip-bad)")
        self.n_bad += 1
        self.first = self.first or message

    def restart(self) -> None:
        """Forget what was counted, because the table is read anew."""
        self.n_bad, self.first = 0, None
