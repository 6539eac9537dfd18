import gzip
import io
import re
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from undrift.datasets import download, fetch_processed_acl, load_processed_acl
from undrift.datasets.download import Source, fetch

REVIEW = {
    "processed_acl/books/positive.review": b"good:1 #label#:positive\n",
    "processed_acl/books/negative.review": b"bad:1 #label#:negative\n",
}


def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Site:
    """A web site of `pages`; the first `n_failures` requests get an error."""

    def __init__(self):
        self.pages, self.requests, self.n_failures = {}, [], 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.requests.append(self.path)
                content = site.pages.get(self.path)
                if len(site.requests) <= site.n_failures:
                    self.send_error(503)
                elif content is None:
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def source(self, *names, **kwargs):
        return Source(
            "small", tuple(f"http://127.0.0.1:{self.server.server_port}/{name}" for name in names), **kwargs
        )


@pytest.fixture
def site():
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return tmp_path


def test_fetched_archive_is_what_the_loader_takes(site, cache, monkeypatch, capfd):
    site.pages["/processed_acl.tar.gz"] = tar(REVIEW)
    source = site.source("processed_acl.tar.gz", root="processed_acl")
    monkeypatch.setattr(download, "PROCESSED_ACL", source)
    folder = fetch_processed_acl()
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
    site.server.shutdown()
    site.server.server_close()
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


def test_an_archive_cannot_write_outside_its_folder(site, cache):
    site.pages["/a.tar.gz"] = tar({"../../escaped": b"1"})
    with pytest.raises(OSError, match="cannot be unpacked"):
        fetch(site.source("a.tar.gz"))
    assert not list(cache.rglob("escaped"))


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


@pytest.mark.parametrize(
    ("module", "kwargs", "message"),
    [
        ("pooch", {}, r"needs the `data` extra: pip install 'undrift\[data\]'"),
        ("rich.progress", {"progress": True}, r"needs the `cli` extra: pip install 'undrift\[cli\]'"),
    ],
)
def test_missing_extras_are_named(site, monkeypatch, module, kwargs, message):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=message):
        fetch(site.source("a.tar.gz"), **kwargs)


def test_without_undrift_data_the_users_cache_is_used(monkeypatch, tmp_path):
    monkeypatch.delenv("UNDRIFT_DATA")
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / name)
    assert download.cache_folder() == tmp_path / "undrift"


def test_addresses_are_those_of_the_public_archives():
    sources = (download.AMAZON_BOW, download.PROCESSED_ACL, download.MULTIDOMAIN, download.MULTIDOMAIN_ACL)
    assert all(url.startswith("https://") for source in sources for url in source.urls)
    assert [len(source.urls) for source in sources] == [8, 1, 1, 1]
