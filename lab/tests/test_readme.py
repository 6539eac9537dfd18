"""Figures of README are those of the records."""

import re
from pathlib import Path

import pytest

from undrift_lab.results.frame import make_frame
from undrift_lab.results.records import read

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = {  # plan and variant of every column: test rows at hand, the files of two domains
    "amazon-bow": ("small", "shipped"),
    "fdu-mtl": ("multi", "20000 terms"),
}
ROWS = {"linear SVM": "svm-tfidf", "undrift |": "undrift-pair"}


@pytest.fixture(scope="module")
def frame():
    return make_frame([r for plan, _ in TABLE.values() for r in read(ROOT / f"lab/results/{plan}.jsonl")])


def select(frame, plan, variant, method):
    return frame[(frame["plan"] == plan) & (frame["variant"] == variant) & (frame["method"] == method)]


@pytest.mark.parametrize(("start", "method"), ROWS.items())
def test_the_table_has_the_mean_errors(frame, start, method):
    (row,) = [line for line in README.splitlines() if line.startswith(f"| {start}")]
    shown = re.findall(r"([\d.]+)%", row)
    means = [select(frame, *where, method)["transfer_error"].mean() for where in TABLE.values()]
    assert shown == [f"{100 * mean:.1f}" for mean in means]


def test_the_sentences_have_the_errors_and_the_gap_of_the_expected_error(frame):
    ours, svm = (select(frame, *TABLE["fdu-mtl"], method) for method in ("undrift-pair", "svm-tfidf"))
    means = [100 * rows["transfer_error"].mean() for rows in (ours, svm)]
    assert f"{means[0]:.1f}% of its predictions are wrong, against {means[1]:.1f}%" in README
    gap = 100 * (ours["expected_error"] - ours["transfer_error"]).abs().mean()
    assert f"the expected error is {gap:.1f} points off on average" in README
    later = select(frame, "multi", "inductive", "undrift-pair")["transfer_error"].mean()
    assert f"With the model as fitted, {100 * later:.1f}% are wrong on fdu-mtl" in README
    aligned = select(frame, "multi", "inductive", "batch-pair")["transfer_error"].mean()
    assert f"adapts to each new file, and {100 * aligned:.1f}% are wrong" in README
