"""The short version of the campaign against hostile files, faults and load."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "campaign.py"


@pytest.mark.parametrize("part", ["models", "inputs", "faults", "load", "fuzz"])  # Dask: tests/distributed
def test_nothing_is_lost_and_nothing_gets_in(part):
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    command = [sys.executable, SCRIPT, "--short", "--parts", part]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\n0 failures" in done.stdout
