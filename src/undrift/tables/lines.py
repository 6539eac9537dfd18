"""Text files line by line, in bounded memory however long the lines are."""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from .encoding import Encoding
from .files import TableError

LINE_LIMIT = 1 << 24
"""Characters a row may have (about ten times *War and Peace*)."""

_DISCARD = 1 << 20
_BUFFER = 1 << 18


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
    gzipped: bool
    encoding: Encoding

    @contextmanager
    def lines(self) -> Iterator[LineFeed]:
        """Open the file and hand out its lines."""
        with open_bytes(self.path, self.gzipped) as (stream, position):
            text = io.TextIOWrapper(
                stream, encoding=self.encoding.name, errors=self.encoding.errors, newline=""
            )
            yield LineFeed(text, position)


@contextmanager
def open_bytes(path: Path, gzipped: bool) -> Iterator[tuple[BinaryIO, Callable[[], float]]]:
    """Open the bytes of a file, decompressed, with a function that says what share of it was read."""
    with ExitStack() as stack:
        raw = stack.enter_context(open(path, "rb", buffering=0))
        n_bytes = os.fstat(raw.fileno()).st_size
        stream: io.RawIOBase | gzip.GzipFile = raw
        if gzipped:
            stream = stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb"))
        buffered = stack.enter_context(io.BufferedReader(cast(io.RawIOBase, stream), _BUFFER))
        yield cast(BinaryIO, buffered), lambda: min(1.0, raw.tell() / max(n_bytes, 1))


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
