"""Downloading the public data sets into a data folder.

A file whose checksum is known (`undrift_lab.corpora.addresses`) must match it.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

from .addresses import SOURCES, Source
from .files import data_folder

N_RETRIES = 3  # when a connection fails


def fetch(
    source: str | Source, data: str | os.PathLike[str] | None = None, *, progress: bool = False
) -> Path:
    """Download a public data set, unless its folder exists already; the folder appears when it is complete.

    `source` is a `Source` or the name of one: amazon-bow (13 MB), processed_acl (19 MB), fdu-mtl (27 MB),
    multidomain (over a gigabyte). It gets a folder of its name in the data folder `data`, which is what its
    loader takes. With `progress` every file is named on standard error.
    """
    if isinstance(source, str) and source not in SOURCES:
        raise ValueError(f"there is no data set {source!r} to fetch; choose one of {', '.join(SOURCES)}")
    source = SOURCES[source] if isinstance(source, str) else source
    root = data_folder() if data is None else Path(data)
    if root is not None and (root / source.name).exists():
        return root / source.name
    try:
        import pooch
    except ImportError:
        raise ImportError("Downloading needs the `data` extra: pip install 'undrift-lab[data]'") from None
    assert root is not None  # with pooch there is a cache folder
    root.mkdir(parents=True, exist_ok=True)
    pooch.get_logger().setLevel("WARNING")
    with tempfile.TemporaryDirectory(dir=root, prefix=f".{source.name}-") as scratch:
        registry = {url.rsplit("/", 1)[1]: source.sha256.get(url.rsplit("/", 1)[1]) for url in source.urls}
        urls = dict(zip(registry, source.urls, strict=True))
        shelf = pooch.create(scratch, base_url="", registry=registry, urls=urls, retry_if_failed=N_RETRIES)
        for name, url in urls.items():
            if progress:
                print(f"Downloading {url}", file=sys.stderr)
            try:
                path = Path(shelf.fetch(name))
            except (OSError, ValueError) as error:  # a connection, or a checksum
                raise OSError(
                    f"Cannot download {url} ({type(error).__name__}: {error}). Try again later, "
                    f"or put the data set's files in {root / source.name} yourself."
                ) from error
            _unpack(path, Path(scratch) / "files")
        os.replace(Path(scratch) / "files" / source.root, root / source.name)
    return root / source.name


def _unpack(path: Path, folder: Path) -> None:
    """Put the content of an archive, or a plain file itself, in `folder`."""
    folder.mkdir(exist_ok=True)
    if not path.name.endswith(".tar.gz"):
        shutil.move(path, folder)
        return
    try:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")  # refuses paths and links that lead outside
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path.name} cannot be unpacked ({error}); fetch it again.") from error
