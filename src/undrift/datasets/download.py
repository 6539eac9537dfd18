"""Downloading the public data sets into a data folder.

A file whose checksum is known (`undrift.datasets.addresses`) must match it. Others are trusted on first
use: the SHA-256 of the first download is written beside the archive (``<archive>.sha256``) and every later
download must match it. Compare that file with a colleague's to know that both have the same data.
"""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .addresses import SOURCES, Source
from .files import data_folder


def fetch(
    source: str | Source,
    data: str | os.PathLike[str] | None = None,
    *,
    progress: Any = False,
    n_retries: int = 3,
) -> Path:
    """Download a public data set, unless its folder exists already.

    Parameters
    ----------
    source : {"amazon-bow", "processed_acl", "fdu-mtl", "multidomain", "multidomain-acl"} or Source
        Bags of words of four domains (13 MB); reviews with counted terms (19 MB); raw texts of ten domains
        (27 MB); raw reviews of 25 product types (over a gigabyte), and of four (30 MB).
    data : path, optional
        The data folder, in which the data set gets a folder of its name. Default: the one
        named by ``UNDRIFT_DATA``, or, where that is not set, undrift's in the user's cache folder. Loaders
        and ``undrift bench run`` look in the same places.
    progress : bool or object, default=False
        True shows a bar on a terminal. An object with ``total``, ``update(n)``,
        ``reset()`` and ``close()`` is updated with the bytes instead.
    n_retries : int, default=3
        Times to try again when a connection fails.

    Returns
    -------
    Path
        What the loader takes: ``load_processed_acl(fetch("processed_acl"))``.

    Notes
    -----
    What is downloaded must have the checksum that is known of it. Archives of which none is known are
    trusted on first use: that of the first download is kept beside the archive in ``archives/`` and later
    downloads must match it. The folder appears only when it is complete.

    Examples
    --------
    Nothing is downloaded where the folder exists:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from undrift.datasets import fetch
    >>> with TemporaryDirectory() as data:
    ...     (Path(data) / "fdu-mtl").mkdir()
    ...     fetch("fdu-mtl", data).name
    'fdu-mtl'
    """
    source = _find_source(source) if isinstance(source, str) else source
    root = data_folder() if data is None else Path(data)
    if root is None:
        raise _missing_extra()
    folder = root / source.name
    if folder.exists():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=f".{source.name}-") as scratch:
        paths = [_download(url, source, root, progress, n_retries) for url in source.urls]
        for path in paths:
            _unpack(path, Path(scratch) / "files")
            _record(path)
        os.replace(Path(scratch) / "files" / source.root, folder)
    return folder


def _find_source(name: str) -> Source:
    if name == "amazon-mat":
        raise ValueError(
            "amazon-mat cannot be fetched: no lasting public address of amazon.mat is known. Put your copy "
            "at DIR/amazon-mat/amazon.mat, or fetch amazon-bow, the same reviews (docs/data.md)"
        )
    if name not in SOURCES:
        raise ValueError(f"there is no data set {name!r} to fetch; choose one of {', '.join(SOURCES)}")
    return SOURCES[name]


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise _missing_extra() from error
    return pooch


def _missing_extra() -> ImportError:
    return ImportError("Downloading needs the `data` extra: pip install 'undrift[data]'")


def _download(url: str, source: Source, root: Path, progress: Any, n_retries: int) -> Path:
    """Download `url` into the archives, checked against the checksum known or of the first use, if any."""
    pooch = _pooch()
    name = url.rsplit("/", 1)[1]
    archives = root / "archives" / source.name
    first_use = archives / f"{name}.sha256"
    known = source.sha256.get(name) or (first_use.read_text().strip() if first_use.exists() else None)
    shelf = pooch.create(
        archives, base_url="", registry={name: known}, urls={name: url}, retry_if_failed=n_retries
    )
    bar = _Bar(name) if progress is True else progress
    try:
        with _quiet(pooch.get_logger()):
            shelf.fetch(name, downloader=pooch.HTTPDownloader(progressbar=bar, chunk_size=2**16))
    except OSError as error:  # what requests raises is an OSError too
        raise OSError(
            f"Cannot download {url} ({type(error).__name__}): is this machine offline? "
            f"Try again later, or put the data set's files in {root / source.name} yourself."
        ) from error
    except ValueError as error:
        raise ValueError(_describe_change(url, source, root, first_use)) from error
    finally:
        if isinstance(bar, _Bar):
            bar.close()
    return archives / name


def _describe_change(url: str, source: Source, root: Path, first_use: Path) -> str:
    """Say what to do about a download whose checksum is another."""
    known = source.sha256.get(url.rsplit("/", 1)[1])
    if known is not None:
        return (
            f"{url} is not the file that is known here: its SHA-256 is not {known}. "
            f"Put another copy of the data set's files in {root / source.name} yourself."
        )
    return (
        f"{url} is not what it was on first use: its SHA-256 is no longer the one in {first_use}. "
        "Delete that file to trust the new archive."
    )


def _unpack(path: Path, folder: Path) -> None:
    """Put the content of an archive, or a plain file itself, in `folder`."""
    folder.mkdir(exist_ok=True)
    if not path.name.endswith(".tar.gz"):
        shutil.copy(path, folder)
        return
    try:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")  # refuses paths and links that lead outside
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        path.unlink()  # it is damaged, so the next call downloads it again
        raise OSError(f"{path.name} cannot be unpacked ({error}); fetch it again.") from error


def _record(path: Path) -> None:
    """Write the checksum of a file beside it, for later downloads to match."""
    checksum = path.with_name(f"{path.name}.sha256")
    checksum.write_text(_pooch().file_hash(str(path)) + "\n")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch's notices off standard error: the library never prints."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Bar:
    """A progress bar on a terminal, in the shape that pooch calls; silent elsewhere."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task(title, total=None)

    @property
    def total(self) -> float | None:
        return self._bar.tasks[0].total

    @total.setter
    def total(self, n_bytes: float) -> None:
        self._bar.start()
        self._bar.update(self._task, total=n_bytes)

    def update(self, n_bytes: float) -> None:
        self._bar.advance(self._task, n_bytes)

    def reset(self) -> None:
        self._bar.reset(self._task)

    def close(self) -> None:
        if not self._bar.disable:  # rich before 15 ends a line all the same
            self._bar.stop()
