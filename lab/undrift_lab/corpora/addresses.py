"""Addresses of the public data sets, and the checksums that are known of them.

``checksums.txt`` holds the SHA-256 of the files on which the figures of ``lab/`` were measured; of the
sixteen domains of fdu-mtl these are the ten of the plan ``multi``. Of the archives of 2007 no checksum has
been published, and none is made up: they are trusted on first use (`undrift_lab.corpora.download`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_SENTIMENT = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment"
# copies that Ganin et al. (2016) and Chen and Cardie (2018) keep beside their code
_DANN = "https://raw.githubusercontent.com/GRAAL-Research/domain_adversarial_neural_network/master/data"
_MAN = "https://raw.githubusercontent.com/ccsasuke/man/7ac8140b0bb561ac256cea439116b0d59bed5684/data/fdu-mtl"


@dataclass(frozen=True)
class Source:
    """The addresses of a public data set, and the folder its files go to."""

    name: str  # of the folder that the loader looks for
    urls: tuple[str, ...]  # an archive, or the files themselves
    root: str = ""  # folder inside the archive whose content is wanted; "" for all of it
    sha256: Mapping[str, str] = field(default_factory=dict)  # of files, by name, where it is known


def _list_files(name: str, address: str) -> Source:
    """Return the data set of the files in ``checksums.txt`` that are in the folder `name`."""
    lines = Path(__file__).with_name("checksums.txt").read_text(encoding="ascii").splitlines()
    sha256 = {line.rpartition("/")[2]: line[:64] for line in lines if line[66:].startswith(f"{name}/")}
    return Source(name, tuple(f"{address}/{file}" for file in sha256), sha256=sha256)


SOURCES = {
    source.name: source
    for source in (
        _list_files("amazon-bow", _DANN),
        Source("processed_acl", (f"{_SENTIMENT}/processed_acl.tar.gz",), "processed_acl"),
        _list_files("fdu-mtl", _MAN),
        Source("multidomain", (f"{_SENTIMENT}/unprocessed.tar.gz",)),
    )
}
