"""`undrift demo`, and what the pages show of other commands."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.review_files import read_csv
from tests.helpers.transcripts import PAGES, ROOT, check_shown, print_heads, rewrite_page

HAS_REVIEWS = Path(os.environ.get("UNDRIFT_DATA", ""), "fdu-mtl").is_dir()


def test_the_demo_writes_predictions_a_model_and_a_report(tmp_path, monkeypatch, undrift):
    monkeypatch.chdir(tmp_path)
    status, printed, _ = undrift("demo", "--out", "demo")
    assert status == 0
    assert "Next: open demo/report.html" in printed
    written = ["books.csv", "kitchen.csv", "model.safetensors", "predictions.csv", "report.html"]
    assert sorted(os.listdir("demo")) == written
    rows = [row for row in read_csv("demo/predictions.csv") if row["truth"]]
    assert np.mean([row["truth"] != row["prediction"] for row in rows]) < 0.2


@pytest.mark.skipif(not HAS_REVIEWS, reason="set UNDRIFT_DATA to a folder with fdu-mtl")
@pytest.mark.slow
def test_the_commands_of_the_pages_print_what_is_shown(tmp_path, monkeypatch, undrift):
    monkeypatch.chdir(tmp_path)
    n_commands = 0

    def run(name, *arguments):
        nonlocal n_commands
        n_commands += 1
        if name == "head":
            return print_heads(int(arguments[0][1:]), *arguments[1:])
        status, printed, err = undrift(*arguments)
        assert status == 0, err
        assert all(len(line) <= 80 or line.startswith("  undrift ") for line in printed.splitlines())
        return printed + err

    for page in PAGES:
        check_shown((ROOT / page).read_text(encoding="utf-8"), rewrite_page(page, run))
    assert n_commands >= 10
