import gzip
import hashlib
import io
import sys
import tarfile

import pytest

from lab.tests.helpers.web_site import Site, tar
from undrift_lab.corpora import fetch, load_processed_acl
from undrift_lab.corpora.addresses import SOURCES

REVIEW = {
    "processed_acl/books/positive.review": b"good:1 #label#:positive\n",
    "processed_acl/books/negative.review": b"bad:1 #label#:negative\n",
}


@pytest.fixture
def site():
    with Site() as site:
        yield site


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return tmp_path


def test_fetched_archive_is_what_the_loader_takes(site, cache, monkeypatch, capfd):
    site.pages["/processed_acl.tar.gz"] = tar(REVIEW)
    monkeypatch.setitem(SOURCES, "processed_acl", site.source("processed_acl.tar.gz", root="processed_acl"))
    folder = fetch("processed_acl")
    assert folder == cache / "small"
    assert load_processed_acl(folder).terms == ["bad", "good"]
    assert capfd.readouterr() == ("", "")  # pooch's notices stay silent
    assert fetch("processed_acl") == folder
    assert len(site.requests) == 1
    assert [path.name for path in cache.iterdir()] == ["small"]


def test_plain_files_are_gathered_in_a_folder_that_may_be_named(site, cache):
    site.pages.update({"/a.svmlight": b"1 0:1\n", "/b.svmlight": b"-1 0:1\n"})
    folder = fetch(site.source("a.svmlight", "b.svmlight"), cache / "elsewhere")
    assert folder == cache / "elsewhere" / "small"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a.svmlight": b"1 0:1\n",
        "b.svmlight": b"-1 0:1\n",
    }


def test_failures_are_tried_again_and_then_told_in_one_line(site, cache):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    site.n_failures = 2
    assert (fetch(site.source("a.tar.gz")) / "x").read_bytes() == b"1"
    assert len(site.requests) == 3
    with pytest.raises(
        OSError, match=r"Cannot download http.*b\.tar\.gz \(HTTPError.*put the data set's files in"
    ):
        fetch(site.source("b.tar.gz"), cache / "other")
    assert not list((cache / "other").iterdir())


def test_a_known_checksum_must_match(site, cache):
    site.pages["/a.txt"] = b"changed"
    source = site.source("a.txt", sha256={"a.txt": hashlib.sha256(b"as it was").hexdigest()})
    with pytest.raises(OSError, match=r"Cannot download .*a\.txt \(ValueError: SHA256 hash"):
        fetch(source)
    site.pages["/a.txt"] = b"as it was"
    assert (fetch(source) / "a.txt").read_bytes() == b"as it was"


def make_link(kind, name):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = kind, name
        archive.addfile(link)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"no archive",
        tar({"x": b"1" * 5000})[:40],
        gzip.compress(b"no tar" * 200),
        tar({"../../escaped": b"1"}),
        make_link(tarfile.SYMTYPE, "../../../../../../etc/passwd"),
        make_link(tarfile.LNKTYPE, "../../../../../../etc/passwd"),
    ],
    ids=["text", "cut short", "gzip without tar", "outside", "symbolic link", "hard link"],
)
def test_an_archive_that_is_broken_or_leads_outside_leaves_nothing(site, cache, content):
    site.pages["/a.tar.gz"] = content
    with pytest.raises(OSError, match=r"a\.tar\.gz cannot be unpacked"):
        fetch(site.source("a.tar.gz"))
    assert not list(cache.iterdir())


def test_without_undrift_data_the_users_cache_is_used_and_a_missing_extra_is_named(site, cache, monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda name: cache / "cached" / name)
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    assert fetch(site.source("a.tar.gz")) == cache / "cached" / "undrift" / "small"
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs the `data` extra: pip install 'undrift-lab\[data\]'"):
        fetch(site.source("a.tar.gz"))


def test_the_files_of_a_data_set_are_named_and_known():
    counts = {"amazon-bow": 8, "processed_acl": 1, "fdu-mtl": 30, "multidomain": 1}
    assert {name: len(source.urls) for name, source in SOURCES.items()} == counts
    for source in SOURCES.values():
        assert all(url.startswith("https://") for url in source.urls)
        assert set(source.sha256) <= {url.rsplit("/", 1)[1] for url in source.urls}
    with pytest.raises(ValueError, match=r"no data set 'amazon' to fetch; choose one of amazon-bow"):
        fetch("amazon")


@pytest.mark.parametrize("name", ["amazon-bow", "fdu-mtl"])
def test_known_checksums_are_those_of_the_real_files(name, data_folder):
    digests = {}
    for path in (data_folder / name).iterdir():  # other domains may lie there too
        plain = path.name.removesuffix(".gz")
        if plain in SOURCES[name].sha256:
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            digests[plain] = hashlib.sha256(content).hexdigest()
    assert SOURCES[name].sha256 == digests
