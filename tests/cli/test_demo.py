"""`undrift demo`."""

import os

import numpy as np

from tests.helpers.commands import check_refused
from tests.helpers.review_files import read_csv


def test_demo(folder, undrift):
    status, out, err = undrift("demo", "--out", "here")
    assert status == 0
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    written = ["books.csv", "kitchen.csv", "model.safetensors", "predictions.csv", "report.html"]
    assert sorted(os.listdir("here")) == written
    text = " ".join(out.split())
    facts = (
        "adaptation helped",
        "Wrote here/predictions.csv",
        "Next: open here/report.html",
        "Words of kitchen",
    )
    for fact in (*facts, "Class shares of here/kitchen.csv: predicted negative", "; estimated negative"):
        assert fact in text
    section = out[out.index("Words of kitchen") :]
    assert "negative" in section
    assert "positive" in section
    rows = [row for row in read_csv("here/predictions.csv") if row["truth"]]
    assert np.mean([row["truth"] != row["prediction"] for row in rows]) < 0.15
    word = section.rsplit(" ", 1)[1].strip()
    assert undrift("explain", "--model", "here/model.safetensors", word)[0] == 0


def test_demo_of_unknown_products(folder, undrift):
    assert "the built-in corpus has books, kitchen" in check_refused(
        undrift, folder, ["demo", "--source", "cars"]
    )
