"""Downloading the public archives into a cache folder.

No checksum of these archives has been published, and none is made up here. They are trusted on
first use: the SHA-256 of the first download is written beside the archive (``<archive>.sha256``) and
every later download must match it. Compare that file with a colleague's to know that both have the
same data.
"""

from __future__ import annotations

import logging
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SENTIMENT = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment"
_DANN = "https://raw.githubusercontent.com/GRAAL-Research/domain_adversarial_neural_network/master/data"
_FOUR = ("books", "dvd", "electronics", "kitchen")


@dataclass(frozen=True)
class Source:
    """Where a public data set is found, and where its files go."""

    name: str  # of the folder that the loader looks for
    urls: tuple[str, ...]  # an archive, or the files themselves
    root: str = ""  # folder inside the archive whose content is wanted; "" for all of it


AMAZON_BOW = Source(
    "amazon-bow", tuple(f"{_DANN}/{name}_{part}.svmlight" for name in _FOUR for part in ("train", "test"))
)
PROCESSED_ACL = Source("processed_acl", (f"{_SENTIMENT}/processed_acl.tar.gz",), "processed_acl")
MULTIDOMAIN = Source("multidomain", (f"{_SENTIMENT}/unprocessed.tar.gz",))
MULTIDOMAIN_ACL = Source("multidomain-acl", (f"{_SENTIMENT}/domain_sentiment_data.tar.gz",))


def fetch_amazon_bow(*, progress: Any = False, n_retries: int = 3) -> Path:
    """Download the four-domain bags of words; see `fetch`."""
    return fetch(AMAZON_BOW, progress=progress, n_retries=n_retries)


def fetch_processed_acl(*, progress: Any = False, n_retries: int = 3) -> Path:
    """Download the reviews with counted terms (19 MB); see `fetch`."""
    return fetch(PROCESSED_ACL, progress=progress, n_retries=n_retries)


def fetch_multidomain_sentiment(*, full: bool = True, progress: Any = False, n_retries: int = 3) -> Path:
    """Download the raw reviews; see `fetch`.

    ``full=True`` is the set of 25 product types (over a gigabyte), ``full=False`` that of four domains.
    """
    return fetch(MULTIDOMAIN if full else MULTIDOMAIN_ACL, progress=progress, n_retries=n_retries)


def fetch(source: Source, *, progress: Any = False, n_retries: int = 3) -> Path:
    """Folder of a public data set, downloaded unless it is there already.

    Parameters
    ----------
    source : Source
    progress : bool or object, default=False
        True shows a bar on a terminal (needs the `cli` extra). An object with ``total``, ``update(n)``,
        ``reset()`` and ``close()`` is told about the bytes instead.
    n_retries : int, default=3
        Times to try again when a connection fails.

    Returns
    -------
    Path
        What the loader takes: ``load_processed_acl(fetch_processed_acl())``. It is the folder named
        after the data set in ``UNDRIFT_DATA``, or, where that is not set, in the user's cache folder.

    Notes
    -----
    Archives are trusted on first use: the checksum of the first download is kept beside the archive in
    ``archives/`` and later downloads must match it. The folder appears only when it is complete.
    """
    cache = cache_folder()
    folder = cache / source.name
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    archives = cache / "archives" / source.name
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{source.name}-") as scratch:
        paths = [_download(url, archives, folder, progress, n_retries) for url in source.urls]
        for path in paths:
            _unpack(path, Path(scratch) / "files")
            _record(path)
        os.replace(Path(scratch) / "files" / source.root, folder)
    return folder


def cache_folder() -> Path:
    """Name the folder in ``UNDRIFT_DATA``, or the user's cache folder for undrift."""
    if os.environ.get("UNDRIFT_DATA"):
        return Path(os.environ["UNDRIFT_DATA"])
    return Path(_pooch().os_cache("undrift"))


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError("Downloading needs the `data` extra: pip install 'undrift[data]'") from error
    return pooch


def _download(url: str, archives: Path, folder: Path, progress: Any, n_retries: int) -> Path:
    """Download `url` into `archives`, checked against the checksum of the first use, if any."""
    pooch = _pooch()
    name = url.rsplit("/", 1)[1]
    checksum = archives / f"{name}.sha256"
    known = checksum.read_text().strip() if checksum.exists() else None
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
            f"Try again later, or put the data set's files in {folder} yourself."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{url} is not what it was on first use: its SHA-256 is no longer the one in {checksum}. "
            "Delete that file to trust the new archive."
        ) from error
    finally:
        if isinstance(bar, _Bar):
            bar.close()
    return archives / name


def _unpack(path: Path, folder: Path) -> None:
    """Put the content of an archive, or a plain file itself, in `folder`."""
    folder.mkdir(exist_ok=True)
    if not path.name.endswith(".tar.gz"):
        shutil.copy(path, folder)
        return
    try:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")  # refuses paths and links that lead outside
    except (tarfile.TarError, EOFError, OSError) as error:
        path.unlink()  # it was never trusted, so the next call downloads it again
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
        try:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            raise ImportError("progress=True needs the `cli` extra: pip install 'undrift[cli]'") from error
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
        self._bar.stop()
