import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the real data sets; without it tests skip, but never in CI."""
    folder = os.environ.get("UNDRIFT_DATA")
    if folder:
        return Path(folder)
    if os.environ.get("CI"):
        pytest.fail("UNDRIFT_DATA is not set: CI must run the tests on real data")
    pytest.skip("UNDRIFT_DATA is not set")
