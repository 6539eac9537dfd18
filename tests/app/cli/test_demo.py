"""`undrift demo`, and what the pages show of it and of what follows."""

import os

import numpy as np

from tests.helpers.review_files import read_csv
from tests.helpers.transcripts import PAGES, ROOT, check_shown, print_heads, rewrite_page


def test_the_demo_and_what_follows_print_what_is_shown(tmp_path, monkeypatch, undrift):
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
    written = ["books.csv", "kitchen.csv", "model.safetensors", "predictions.csv", "report.html"]
    assert sorted(os.listdir("demo")) == written
    rows = [row for row in read_csv("demo/predictions.csv") if row["truth"]]
    assert np.mean([row["truth"] != row["prediction"] for row in rows]) < 0.2
