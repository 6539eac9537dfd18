"""A real browser for tests of pages: Debian's Chromium, or the one that UNDRIFT_BROWSER names."""

import os
import shutil
from contextlib import contextmanager

import pytest

ARGUMENTS = [
    f"--{name}"
    for name in (
        "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
        "disable-component-update", "disable-sync",
    )
]  # fmt: skip


def find_chromium() -> str:
    """Return the path of a browser; without one the test is skipped, except in CI."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("UNDRIFT_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    if found:
        return found
    message = "no browser: install Debian's chromium, or set UNDRIFT_BROWSER to the path of one"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def open_browser():
    """Start a browser, which ends with the context."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the `test` extra")
    with playwright.sync_playwright() as started:
        own = started.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        yield own
        own.close()
