"""Finding the files of a data set and reading their lines, whatever their encoding."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from .addresses import SOURCES
from .corpus import Corpus, Domain


def data_folder() -> Path | None:
    """Name the folder in ``UNDRIFT_DATA``, or undrift's in the user's cache folder.

    None where neither is known: where the cache is takes pooch, without which nothing was fetched.
    """
    if os.environ.get("UNDRIFT_DATA"):
        return Path(os.environ["UNDRIFT_DATA"])
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("undrift"))


def dataset_folder(folder: str | os.PathLike[str] | None, name: str) -> Path:
    """Return `folder`, or the folder `name` in the data folder; it must exist."""
    root = data_folder()
    if folder is None and root is None:
        raise FileNotFoundError(f"Where is {name}? Set UNDRIFT_DATA to the folder above it, or pass its own.")
    path = root / name if folder is None and root is not None else Path(folder or "")
    if not path.exists():
        remedy = "put its files there, or set UNDRIFT_DATA to the folder above it"
        fetched = f", or `undrift-lab fetch {name} --data {path.parent}`" if name in SOURCES else ""
        raise FileNotFoundError(f"{name}: there is no {path}; {remedy}{fetched}.")
    return path


def optional_file(folder: Path, name: str) -> Path | None:
    """Find the file `name` in `folder`, plain or gzipped, if there is one."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def find_file(folder: Path, name: str) -> Path:
    """Find the file `name` in `folder`, plain or gzipped; it must exist."""
    path = optional_file(folder, name)
    if path is None:
        raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz; the data set is not complete.")
    return path


def stems(folder: Path, ending: str) -> list[str]:
    """List the names, sorted, that followed by `ending` are files of `folder`, plain or gzipped."""
    files = (path.name.removesuffix(".gz") for path in folder.glob("*") if path.is_file())
    names = sorted({name.removesuffix(ending) for name in files if name.endswith(ending)} - {""})
    if not names:
        raise FileNotFoundError(f"{folder} holds no *{ending} (nor *{ending}.gz); is it the right folder?")
    return names


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Read the lines of `path` one at a time: number (from 1) and text, without the line end.

    Lines end at ``\n`` alone: reviews contain U+0085 and other characters that `str.splitlines`
    would split at. A line that is not UTF-8 is latin-1; the choice is made line by line, because one
    stray byte must not garble the accents of the whole file.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                text = _decode(line).removesuffix("\n").removesuffix("\r")
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path} is damaged ({error}); fetch it again.") from error


def make_line_error(path: Path, line: int, what: str) -> ValueError:
    """Return the error for a line that cannot be read: file, line number, what was wrong."""
    return ValueError(f"{path}, line {line}: {what}")


def shorten_indices(X: sparse.csr_array) -> sparse.csr_array:
    """Return sparse rows with 32-bit indices, which liblinear takes."""
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array(parts, shape=X.shape)


def corpus_of(name: str, domains: list[Domain], terms: list[str] | None = None) -> Corpus:
    """Return the corpus of `domains`, by name."""
    return Corpus(name, {domain.name: domain for domain in domains}, terms)


def _decode(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")
