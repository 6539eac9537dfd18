import gzip
import hashlib
import io
import re
import sys
import tarfile
from unittest.mock import Mock

import pytest

from tests.helpers.web_site import Site, tar
from undrift.datasets import download, fetch, load_processed_acl
from undrift.datasets.addresses import SOURCES

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
    source = site.source("processed_acl.tar.gz", root="processed_acl")
    monkeypatch.setitem(SOURCES, "processed_acl", source)
    folder = fetch("processed_acl")
    assert folder == cache / "small"
    assert load_processed_acl(folder).terms == ["bad", "good"]
    assert capfd.readouterr() == ("", "")  # pooch's notices stay silent


def test_a_folder_that_is_there_is_not_downloaded(site, cache):
    (cache / "small").mkdir()
    assert fetch(site.source("a.tar.gz")) == cache / "small"
    assert site.requests == []


def test_plain_files_are_gathered_in_one_folder(site, cache):
    site.pages.update({"/a.svmlight": b"1 0:1\n", "/b.svmlight": b"-1 0:1\n"})
    folder = fetch(site.source("a.svmlight", "b.svmlight"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a.svmlight": b"1 0:1\n",
        "b.svmlight": b"-1 0:1\n",
    }


def test_failures_are_tried_again(site):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    site.n_failures = 2
    assert (fetch(site.source("a.tar.gz"), n_retries=2) / "x").read_bytes() == b"1"
    assert len(site.requests) == 3


def test_offline_is_one_clear_line_and_leaves_nothing(site, cache):
    source = site.source("a.tar.gz")
    site.close()
    with pytest.raises(
        OSError, match=r"Cannot download http.*a\.tar\.gz .*offline\?.*put the data set's files in .*small"
    ):
        fetch(source, n_retries=1)
    assert not (cache / "small").exists()
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_missing_page_is_not_retried_forever(site):
    with pytest.raises(OSError, match="HTTPError"):
        fetch(site.source("a.tar.gz"), n_retries=1)
    assert len(site.requests) == 2


def test_checksum_of_the_first_download_is_kept_and_must_match(site, cache):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    source = site.source("a.tar.gz")
    folder = fetch(source)
    checksum = cache / "archives" / "small" / "a.tar.gz.sha256"
    assert re.fullmatch(r"[0-9a-f]{64}\n", checksum.read_text())

    (folder / "x").unlink()
    folder.rmdir()
    (checksum.parent / "a.tar.gz").unlink()
    site.pages["/a.tar.gz"] = tar({"x": b"changed"})
    with pytest.raises(
        ValueError, match=r"not what it was on first use.*a\.tar\.gz\.sha256. Delete that file"
    ):
        fetch(source, n_retries=0)
    assert not folder.exists()

    checksum.unlink()
    assert (fetch(source) / "x").read_bytes() == b"changed"


def test_a_kept_archive_is_unpacked_again_without_the_network(site, cache):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    source = site.source("a.tar.gz")
    folder = fetch(source)
    (folder / "x").unlink()
    folder.rmdir()
    assert (fetch(source) / "x").read_bytes() == b"1"
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "content",
    [b"no archive", tar({"x": b"1" * 5000})[:40], gzip.compress(b"no tar" * 200)],
    ids=["text", "cut short", "gzip without tar"],
)
def test_a_broken_archive_is_not_kept(site, cache, content):
    site.pages["/a.tar.gz"] = content
    source = site.source("a.tar.gz")
    with pytest.raises(OSError, match=r"a\.tar\.gz cannot be unpacked"):
        fetch(source)
    assert not (cache / "small").exists()
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    assert (fetch(source) / "x").exists()


def test_a_full_disk_costs_no_archive(site, cache, monkeypatch):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    with monkeypatch.context() as full:
        full.setattr(tarfile.TarFile, "extractall", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space left"):
            fetch(site.source("a.tar.gz"))
    assert (fetch(site.source("a.tar.gz")) / "x").exists()
    assert len(site.requests) == 1


def test_an_archive_cannot_write_outside_its_folder(site, cache):
    site.pages["/a.tar.gz"] = tar({"../../escaped": b"1"})
    with pytest.raises(OSError, match="cannot be unpacked"):
        fetch(site.source("a.tar.gz"))
    assert not list(cache.rglob("escaped"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_of_an_archive_cannot_lead_outside(site, cache, kind):
    (cache / "secret").write_text("old")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = kind, "../../../../../../" + str(cache / "secret")
        archive.addfile(link)
        entry = tarfile.TarInfo("link")
        entry.size = 3
        archive.addfile(entry, io.BytesIO(b"new"))
    site.pages["/a.tar.gz"] = buffer.getvalue()
    with pytest.raises(OSError, match="cannot be unpacked"):
        fetch(site.source("a.tar.gz"))
    assert (cache / "secret").read_text() == "old"


def test_progress_is_told_about_every_byte(site):
    class Meter:
        total, n_bytes = 0, 0

        def update(self, n):
            self.n_bytes += n

        def reset(self):
            self.n_bytes = 0

        def close(self):
            self.closed = True

    content = tar({"x": bytes(range(256)) * 1000})
    site.pages["/a.tar.gz"] = content
    meter = Meter()
    fetch(site.source("a.tar.gz"), progress=meter)
    assert (meter.total, meter.n_bytes, meter.closed) == (len(content), len(content), True)


def test_bar_is_silent_off_a_terminal(site, capfd):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    assert (fetch(site.source("a.tar.gz"), progress=True) / "x").exists()
    assert capfd.readouterr() == ("", "")


def test_bar_counts(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = download._Bar("a.tar.gz")
    bar.total = 100
    bar.update(40)
    assert (bar.total, bar._bar.tasks[0].completed) == (100, 40)
    bar.reset()
    bar.update(100)
    bar.close()
    assert bar._bar.finished


def test_a_missing_extra_is_named(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs the `data` extra: pip install 'undrift\[data\]'"):
        fetch(site.source("a.tar.gz"))


def test_a_data_folder_may_be_named(site, cache):
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    folder = fetch(site.source("a.tar.gz"), str(cache / "elsewhere"))
    assert folder == cache / "elsewhere" / "small"
    assert (folder / "x").read_bytes() == b"1"
    assert [path.name for path in cache.iterdir()] == ["elsewhere"]


def test_without_undrift_data_the_users_cache_is_used(site, cache, monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda name: cache / "cached" / name)
    site.pages["/a.tar.gz"] = tar({"x": b"1"})
    assert fetch(site.source("a.tar.gz")) == cache / "cached" / "undrift" / "small"
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="needs the `data` extra"):
        fetch(site.source("a.tar.gz"))


def test_a_known_checksum_must_match_from_the_first_download_on(site, cache):
    site.pages["/a.txt"] = b"as it was"
    known = hashlib.sha256(b"as it was").hexdigest()
    source = site.source("a.txt", sha256={"a.txt": known})
    assert (fetch(source) / "a.txt").read_bytes() == b"as it was"
    site.pages["/a.txt"] = b"changed"
    with pytest.raises(
        ValueError,
        match=rf"a\.txt is not the file that is known here.*not {known}\. Put another copy .*new.small",
    ):
        fetch(source, cache / "new", n_retries=0)
    assert not (cache / "new" / "small").exists()


def test_the_files_of_a_data_set_are_in_its_folder_and_nowhere_else():
    assert {name: len(source.urls) for name, source in SOURCES.items()} == {
        "amazon-bow": 8,
        "processed_acl": 1,
        "fdu-mtl": 30,
        "multidomain": 1,
        "multidomain-acl": 1,
    }
    for source in SOURCES.values():
        assert all(url.startswith("https://") for url in source.urls)
        assert set(source.sha256) <= {url.rsplit("/", 1)[1] for url in source.urls}


@pytest.mark.parametrize("name", ["amazon-bow", "fdu-mtl"])
def test_known_checksums_are_those_of_the_real_files(name, data_folder):
    digests = {}
    for path in (data_folder / name).iterdir():  # other domains may lie there too
        if path.name.removesuffix(".gz") not in SOURCES[name].sha256:
            continue
        content = path.read_bytes()
        plain = gzip.decompress(content) if path.suffix == ".gz" else content
        digests[path.name.removesuffix(".gz")] = hashlib.sha256(plain).hexdigest()
    assert SOURCES[name].sha256 == digests


@pytest.mark.parametrize("name", list(SOURCES))
def test_a_set_is_fetched_by_its_name(name, site, cache, monkeypatch):
    monkeypatch.setitem(SOURCES, name, site.source("a.txt"))
    site.pages["/a.txt"] = b"1"
    assert (fetch(name, cache / "here") / "a.txt").read_bytes() == b"1"


def test_an_unknown_name_is_one_clear_line():
    with pytest.raises(ValueError, match=r"no data set 'amazon' to fetch; choose one of amazon-bow"):
        fetch("amazon")
