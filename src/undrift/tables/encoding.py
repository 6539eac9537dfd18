"""The character encoding of a text file, detected in one streaming pass."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import BinaryIO

from ..errors import warn
from .files import TableError, refuse_misnamed

_CHUNK = 1 << 20
_FALLBACK = "undrift.windows-1252"
_MARKS = {  # the longer first: the mark of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROL = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FEW_CONTROL = 3
_MOST_CONTROL = 0.02  # of the characters; text has next to none, random bytes over a tenth


@dataclass(frozen=True)
class Encoding:
    """A codec and what to do with bytes it does not know, as `io.TextIOWrapper` takes them."""

    name: str
    errors: str = "strict"


def detect_encoding(path: str | PathLike[str], stream: BinaryIO, asked: str | None = None) -> Encoding:
    """Find the encoding of the text in `stream`, read to its end three times at most.

    UTF-8, or UTF-16 and UTF-32 by their byte-order marks. Text that is none of them is read as
    Windows-1252 (or, where most of it is UTF-8, as UTF-8 with the odd bytes as Windows-1252), and
    a warning names the first line concerned. Binary files are refused.

    Parameters
    ----------
    path : path
        For messages.
    stream : binary file
        Seekable, at any position.
    asked : str or None, default=None
        The encoding the user says it is. Bytes that do not fit it are then an error.
    """
    stream.seek(0)
    head = stream.read(64)
    if not head:
        raise TableError(f"{path} is empty")
    refuse_misnamed(path, head)
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8")
    encoding = Encoding(_check_encoding_name(path, asked) if asked else marked)
    error = _examine(path, stream, encoding)
    if error is None:
        return encoding
    line = _find_line(stream, encoding, error.offset)
    fault = f"{path}:{line}: byte 0x{error.byte:02X} is not {encoding.name.removesuffix('-sig').upper()}"
    if asked or not encoding.name.startswith("utf-8"):
        raise TableError(f"{fault}; give the file's real encoding")
    encoding = Encoding("utf-8" if error.is_mostly_utf8 else "cp1252", _FALLBACK)
    _examine(path, stream, encoding)
    scope = "such bytes are" if error.is_mostly_utf8 else "the file is"
    warn(f"{fault}; {scope} decoded as Windows-1252. Give the encoding if that is wrong")
    return encoding


@dataclass(frozen=True)
class _Undecodable:
    """The first byte a codec refuses, and whether the text around it is UTF-8 for the most part."""

    offset: int
    byte: int
    is_mostly_utf8: bool


def _check_encoding_name(path: str | PathLike[str], asked: str) -> str:
    """Return the codec `asked` for, with UTF-8's optional mark allowed."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=asked)
        name = codecs.lookup(asked).name
    except (LookupError, ValueError):
        raise TableError(
            f"{path}: no encoding is called {asked!r}; try utf-8, utf-16, cp1252 or latin-1"
        ) from None
    return "utf-8-sig" if name == "utf-8" else name


def _examine(path: str | PathLike[str], stream: BinaryIO, encoding: Encoding) -> _Undecodable | None:
    """Decode the whole stream, refusing binary content; what cannot be decoded is returned, not raised."""
    decoder = codecs.getincrementaldecoder(encoding.name)(encoding.errors)
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    n_bytes = n_lines = n_characters = 0
    for chunk in _chunks(stream):
        try:
            text = lines.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            start = n_bytes + len(chunk) - len(error.object)  # the decoder may have kept some bytes
            return _Undecodable(start + error.start, error.object[error.start], _is_mostly_utf8(error.object))
        if "\0" in text:
            line = n_lines + text.count("\n", 0, text.index("\0")) + 1
            raise TableError(f"{path} is not a text file: it has a NUL byte in line {line}")
        if not n_bytes and len(_CONTROL.findall(text)) > _FEW_CONTROL + _MOST_CONTROL * len(text):
            raise TableError(f"{path} is not a text file: it is full of control characters")
        n_lines += text.count("\n")
        n_bytes += len(chunk)
        n_characters += len(text)
    if not n_characters:
        raise TableError(f"{path} is empty")
    return None


def _chunks(stream: BinaryIO, n_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the first `n_bytes` (default: all) of a stream in pieces, and ``b""`` at the end."""
    stream.seek(0)
    left = n_bytes
    while chunk := stream.read(_CHUNK if left is None else min(left, _CHUNK)):
        yield chunk
        left = None if left is None else left - len(chunk)
    yield b""


def _find_line(stream: BinaryIO, encoding: Encoding, offset: int) -> int:
    """Return the number of the line, from 1, that holds the byte at `offset`."""
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    return 1 + sum(lines.decode(chunk, final=not chunk).count("\n") for chunk in _chunks(stream, offset))


def _is_mostly_utf8(sample: bytes) -> bool:
    """Whether characters beyond ASCII are valid UTF-8 more often than not."""
    text = sample.decode("utf-8", "replace")
    n_bad = text.count("\ufffd")
    n_beyond = len(text) - len(text.encode("ascii", "ignore"))
    return n_beyond - n_bad > n_bad


def _decode_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: the offending bytes as Windows-1252, its five unused ones as Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    odd = error.object[error.start : error.end]
    return "".join(
        bytes([byte]).decode("cp1252" if byte not in _UNUSED else "latin-1") for byte in odd
    ), error.end


_UNUSED = frozenset(b"\x81\x8d\x8f\x90\x9d")
codecs.register_error(_FALLBACK, _decode_windows_1252)
