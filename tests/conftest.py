"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real corpora; without it such tests are skipped, but never in CI."""
    folder = os.environ.get("UNDRIFT_DATA")
    if folder:
        return Path(folder)
    if os.environ.get("CI"):
        pytest.fail("UNDRIFT_DATA is not set: real-data tests cannot run.")
    pytest.skip("UNDRIFT_DATA is not set")
