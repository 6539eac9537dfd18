"""The character encoding of a text file, detected in one streaming pass."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from os import PathLike
from typing import BinaryIO, NamedTuple

from ...errors import warn
from .files import TableError, refuse_misnamed

_CHUNK = 1 << 20
_FALLBACK = "undrift.windows-1252"
_UNUSED = frozenset(b"\x81\x8d\x8f\x90\x9d")  # bytes without a character in Windows-1252
_MARKS = {  # the longer first: the mark of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROL = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 3, 0.02  # characters, and their share: text has next to none, random bytes over a tenth


class Encoding(NamedTuple):
    """A codec and what to do with bytes it does not know, as `io.TextIOWrapper` takes them."""

    name: str
    errors: str = "strict"


Open = Callable[[], AbstractContextManager[BinaryIO]]


def detect_encoding(path: str | PathLike[str], open_file: Open, asked: str | None = None) -> Encoding:
    """Return the encoding of a text file; binary files are refused.

    It is UTF-8, or UTF-16 and UTF-32 by their byte-order marks, or the one that is `asked` for. Bytes that
    are not UTF-8 are read as Windows-1252, and a warning names the first line concerned.
    """
    with open_file() as stream:
        head = stream.read(64)
    if not head:
        raise TableError(f"{path} is empty")
    refuse_misnamed(path, head)
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")
    encoding = Encoding(_check_name(path, asked) if asked else marked)
    try:
        _examine(path, open_file, encoding)
    except _UnknownByte as error:
        name = encoding.name.removesuffix("-sig").upper()
        fault = (
            f"{path}:{_find_line(open_file, encoding, error.offset)}: byte 0x{error.byte:02X} is not {name}"
        )
        if asked or not encoding.name.startswith("utf-8"):
            raise TableError(f"{fault}; give the file's real encoding") from None
        encoding = Encoding(encoding.name, _FALLBACK)
        _examine(path, open_file, encoding)
        warn(f"{fault}; such bytes are decoded as Windows-1252. Give the encoding if that is wrong")
    return encoding


class _UnknownByte(Exception):
    """A byte that a codec does not know."""

    def __init__(self, offset: int, byte: int) -> None:
        self.offset, self.byte = offset, byte


def _check_name(path: str | PathLike[str], asked: str) -> str:
    """Return the codec `asked` for, with UTF-8's optional mark allowed."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=asked)
        name = codecs.lookup(asked).name
    except (LookupError, ValueError):
        message = f"{path}: no encoding is called {asked!r}; try utf-8, utf-16, cp1252 or latin-1"
        raise TableError(message) from None
    return "utf-8-sig" if name == "utf-8" else name


def _examine(path: str | PathLike[str], open_file: Open, encoding: Encoding) -> None:
    """Decode all of a file, which must be text."""
    decoder = codecs.getincrementaldecoder(encoding.name)(encoding.errors)
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    n_bytes = n_lines = n_characters = 0
    for chunk in _read_chunks(open_file):
        try:
            text = lines.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            start = n_bytes + len(chunk) - len(error.object)  # the decoder may have kept some bytes
            raise _UnknownByte(start + error.start, error.object[error.start]) from None
        if "\0" in text:
            line = n_lines + text.count("\n", 0, text.index("\0")) + 1
            raise TableError(f"{path} is not a text file: it has a NUL byte in line {line}")
        few, share = _MOST_CONTROL
        if not n_bytes and len(_CONTROL.findall(text)) > few + share * len(text):
            raise TableError(f"{path} is not a text file: it is full of control characters")
        n_lines += text.count("\n")
        n_bytes += len(chunk)
        n_characters += len(text)
    if not n_characters:
        raise TableError(f"{path} is empty")


def _read_chunks(open_file: Open, n_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the first `n_bytes` (default: all) of a file in pieces, and ``b""`` at the end."""
    left = n_bytes
    with open_file() as stream:
        while chunk := stream.read(_CHUNK if left is None else min(left, _CHUNK)):
            yield chunk
            left = None if left is None else left - len(chunk)
    yield b""


def _find_line(open_file: Open, encoding: Encoding, offset: int) -> int:
    """Return the number of the line, from 1, that holds the byte at `offset`."""
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    chunks = _read_chunks(open_file, offset)
    return 1 + sum(lines.decode(chunk, final=not chunk).count("\n") for chunk in chunks)


def _decode_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: the offending bytes as Windows-1252, its five unused ones as Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    odd = error.object[error.start : error.end]
    decoded = (bytes([byte]).decode("latin-1" if byte in _UNUSED else "cp1252") for byte in odd)
    return "".join(decoded), error.end


codecs.register_error(_FALLBACK, _decode_windows_1252)
