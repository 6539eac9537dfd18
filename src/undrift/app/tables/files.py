"""Table files: compression, encoding and limits against bombs; their cells and columns.

A cell is a Python object: None where a file has null or nothing, and NaN where a JSON object lacks the key;
then it is not written back. The kinds of a table are its columns, in order, each with the set of types of its
cells: str, int, float, bool, or an Arrow type.
"""

from __future__ import annotations

import bz2
import codecs
import datetime
import gzip
import io
import json
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Literal, TypeAlias

import pandas as pd

from ...errors import UndriftError, warn

COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}
_CHUNK = 1 << 20
_FALLBACK = "undrift.windows-1252"
_UNUSED = frozenset(b"\x81\x8d\x8f\x90\x9d")  # bytes without a character in Windows-1252
_MARKING = "undrift.marking"
_ODD = re.compile("[\udc00-\udcff]")  # bytes that a codec lacks, as that error handler marks them
_MARKS = {  # the longer first: the mark of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROL = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 3, 0.02  # characters, and their share: text has next to none, random bytes over a tenth
_BUFFER = 1 << 18
_BOMB_BYTES, _BOMB_RATIO = 1 << 28, 200  # a file that gives more bytes and more times its size is refused

Cell: TypeAlias = (
    str | float | bool | bytes | list["Cell"] | dict[str, "Cell"] | datetime.date | Decimal | None
)
Kinds: TypeAlias = Mapping[str, set[Hashable]]  # columns -> types of their cells


class TableError(UndriftError):
    """A table file cannot be read or written; the message says which, where, and what to do."""


@contextmanager
def translate_errors(path: str | PathLike[str], action: str = "read") -> Iterator[None]:
    """Raise the errors of the system, such as a full disk, as a `TableError` that names the file."""
    try:
        yield
    except UnicodeError as error:
        raise TableError(f"{path} is not Unicode text, or changed while it was read ({error})") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and action == "read":
            raise TableError(f"{path} does not exist") from None
        fault = f"{path} cannot be {action}: {error.strerror}" if error.strerror else str(error)
        raise TableError(fault) from error


def refuse_unreadable(path: Path) -> None:
    """Raise unless `path` is a regular file, which can be read more than once."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise TableError(f"{path} is a folder, not a table file")
    if not stat.S_ISREG(mode):
        raise TableError(f"{path} is not a regular file and can be read only once; save its content first")


def refuse_zip_bomb(path: Path) -> None:
    """Raise where the parts of a zip archive are many times as large as any table would be."""
    n_bytes = path.stat().st_size
    if not n_bytes:
        raise TableError(f"{path} is empty")
    try:
        with zipfile.ZipFile(path) as archive:
            n_expanded = sum(part.file_size for part in archive.infolist())
    except zipfile.BadZipFile as error:
        raise TableError(f"{path} is truncated or not a spreadsheet ({error})") from None
    if n_expanded > max(_BOMB_BYTES, _BOMB_RATIO * n_bytes):
        raise TableError(
            f"{path} is over {_BOMB_RATIO} times as large when decompressed ({n_expanded:,} bytes), which no "
            "table is; save it as CSV"
        )


@contextmanager
def open_bytes(path: Path, compression: str) -> Iterator[io.BufferedReader[Decompressed]]:
    """Open the bytes of a file, decompressed; `raw.n_read` of the stream says how far it was read."""
    with open(path, "rb", buffering=0) as raw, Decompressed(path, raw, compression) as stream:
        yield io.BufferedReader(stream, _BUFFER)


class Decompressed(io.RawIOBase):
    """Content of a file, which must not be many times as large as any table would be."""

    def __init__(self, path: Path, raw: io.FileIO, compression: str) -> None:
        self._path, self._raw, self._compression, self._n_bytes = path, raw, compression, 0
        self._stream = open_compressed(path, raw, compression) if compression else raw
        self.n_read = raw.tell

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def close(self) -> None:
        """Close the stream below, too."""
        self._stream.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return the number of bytes."""
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


def open_compressed(
    path: Path, raw: io.FileIO | BinaryIO, compression: str, mode: Literal["rb", "wb"] = "rb"
) -> io.BufferedIOBase:
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


def import_extra(path: Path, module: str, what: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise TableError(f"{path}: {what} needs the `data` extra: pip install 'undrift[data]'") from error


Encoding = tuple[str, str]  # a codec and its error handler, as `io.TextIOWrapper` takes them
Open = Callable[[], AbstractContextManager[BinaryIO]]


def detect_encoding(path: str | PathLike[str], open_file: Open, asked: str | None = None) -> Encoding:
    """Return the encoding of a text file; binary files are refused.

    It is UTF-8, or UTF-16 and UTF-32 by their byte-order marks, or the one that is `asked` for. Bytes that
    are not UTF-8 are read as Windows-1252, and a warning names the first line concerned.
    """
    with open_file() as stream:
        head = stream.read(64)
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")
    codec = _check_name(path, asked) if asked else marked
    odd = _find_odd_byte(path, open_file, codec)
    if odd is None:
        return codec, "strict"
    fault = f"{path}:{odd[0]}: byte 0x{odd[1]:02X} is not {codec.removesuffix('-sig').upper()}"
    if asked or not codec.startswith("utf-8"):
        raise TableError(f"{fault}; give the file's real encoding")
    warn(f"{fault}; such bytes are decoded as Windows-1252. Give the encoding if that is wrong")
    return codec, _FALLBACK


def _check_name(path: str | PathLike[str], asked: str) -> str:
    """Return the codec `asked` for, with UTF-8's optional mark allowed."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=asked)
        name = codecs.lookup(asked).name
    except (LookupError, ValueError):
        message = f"{path}: no encoding is called {asked!r}; try utf-8, utf-16, cp1252 or latin-1"
        raise TableError(message) from None
    return "utf-8-sig" if name == "utf-8" else name


def _find_odd_byte(path: str | PathLike[str], open_file: Open, codec: str) -> tuple[int, int] | None:
    """Read all of a file, which must be text; return the first byte that the codec lacks, and its line."""
    found, n_lines, is_first = None, 0, True
    with open_file() as stream, io.TextIOWrapper(stream, codec, _MARKING) as lines:
        while text := lines.read(_CHUNK):
            few, share = _MOST_CONTROL
            if "\0" in text:
                line = n_lines + text.count("\n", 0, text.index("\0")) + 1
                raise TableError(f"{path} is not a text file: it has a NUL byte in line {line}")
            if is_first and len(_CONTROL.findall(text)) > few + share * len(text):
                raise TableError(f"{path} is not a text file: it is full of control characters")
            if found is None and (odd := _ODD.search(text)):
                found = n_lines + text.count("\n", 0, odd.start()) + 1, ord(odd[0]) - 0xDC00
            n_lines += text.count("\n")
            is_first = False
    if is_first:
        raise TableError(f"{path} is empty")
    return found


def _decode_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: the offending bytes as Windows-1252, its five unused ones as Latin-1."""
    assert isinstance(error, UnicodeDecodeError)
    odd = error.object[error.start : error.end]
    decoded = (bytes([byte]).decode("latin-1" if byte in _UNUSED else "cp1252") for byte in odd)
    return "".join(decoded), error.end


def _mark_odd(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: half a surrogate pair, which no codec gives, for the offending byte."""
    assert isinstance(error, UnicodeDecodeError)
    return chr(0xDC00 + error.object[error.start]), error.end


codecs.register_error(_MARKING, _mark_odd)
codecs.register_error(_FALLBACK, _decode_windows_1252)


def list_values(frame: pd.DataFrame, name: str) -> list[Cell]:
    """Return the cells of a column, None where there is nothing."""
    return [None if value != value else value for value in frame[name].tolist()]


def list_texts(frame: pd.DataFrame, names: str | Sequence[str]) -> list[str]:
    """Return a column as text; several are joined, a line for each cell that is not empty."""
    if isinstance(names, str):
        return [write_text(value) for value in frame[names].tolist()]
    texts = (list_texts(frame, name) for name in names)
    return ["\n".join(filter(None, row)) for row in zip(*texts, strict=True)]


def write_text(value: Cell) -> str:
    """Return a cell as text: nothing is empty, numbers keep their digits, nested values are JSON."""
    if isinstance(value, str):
        return str(value)
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return write_json(value) if isinstance(value, bool | dict | list) else str(value)


def write_json(value: Cell) -> str:
    """Return a value as one line of JSON; dates and decimals become text."""
    return json.dumps(value, ensure_ascii=False, default=write_text)


def find_kinds(frame: pd.DataFrame) -> dict[str, set[Hashable]]:
    """Return the columns of a frame with the types of their cells; what is no number is text."""

    def find_type(value: Cell) -> type:
        is_long = type(value) is int and not -(2**63) <= value < 2**63
        return type(value) if type(value) in (bool, int, float) and not is_long else str

    return {name: {*map(find_type, column.dropna().tolist())} for name, column in frame.items()}


def join_kinds(tables: Iterable[Kinds]) -> dict[str, set[Hashable]]:
    """Return every column of several tables once, in order of first appearance, with all of its types."""
    joined: dict[str, set[Hashable]] = {}
    for kinds in tables:
        for name, types in kinds.items():
            joined[name] = joined.get(name, set()) | types
    return joined


def refuse_repeated(path: str | PathLike[str], columns: Sequence[str]) -> None:
    """Raise when two columns share a name, since a name must mean one column."""
    repeated, n = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if n > 1:
        places = " and ".join(str(i) for i, name in enumerate(columns, 1) if name == repeated)
        raise TableError(f"{path} has two columns called {repeated!r} (numbers {places}); rename one")


def with_added(path: str | PathLike[str], kinds: Kinds, added: Kinds) -> dict[str, set[Hashable]]:
    """Return the columns of an output: those of the table at `path`, then the `added`, all of them new."""
    clashes = ", ".join(repr(name) for name in added if name in kinds)
    if clashes:
        raise TableError(f"{path} already has a column {clashes}, which the output adds; rename it")
    return {**kinds, **added}
