"""The short version of the campaign against hostile files, faults and load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "campaign.py"


@pytest.mark.parametrize("part", ["models", "inputs", "faults", "load", "fuzz"])  # Dask: tests/distributed
def test_nothing_is_lost_and_nothing_gets_in(tmp_path, part):
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- campaign -->\nold\n<!-- end -->\nafter\n")
    command = [sys.executable, SCRIPT, "--short", "--jobs", "1", "--parts", part, "--write", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, _, rest = page.read_text().partition("<!-- campaign -->")
    text, _, after = rest.partition("<!-- end -->")
    assert (before, after) == ("before\n", "\nafter\n")
    assert text.strip() in done.stdout
    assert "**0 failures** (traceback: 0, " in text
    assert "old" not in text


def test_a_part_that_does_not_come_to_its_end_is_named(monkeypatch, capfd, tmp_path):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    for name in ("PYTHONPATH", "OMP_NUM_THREADS"):  # which the script sets
        monkeypatch.setenv(name, os.environ.get(name, "1" if name == "OMP_NUM_THREADS" else ""))
    import campaign

    (tmp_path / "models.json").write_text('{"source": "another", "short": true}')
    (tmp_path / "base").mkdir()  # in which there is no model
    results = campaign.run_parts(["models"], tmp_path, 1, is_short=True)
    assert results == {"models": None}
    assert "Not run to the end: models." in campaign.format_results(results, 1)
    assert "NOT DONE" in capfd.readouterr().err
