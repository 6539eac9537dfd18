"""Tweets of another disaster: words of a class have changed, stories say so, and their remedy helps."""

import gzip
import json

import numpy as np
import pytest

from tests.helpers.review_files import read_csv, write_csv

LABELS = ("off", "on")
ADAPT = ["adapt", "sandy.csv", "alberta.csv", "--label", "label", "--out", "out.csv", "--fast"]


@pytest.fixture
def truth(data_folder, tmp_path, monkeypatch):
    """Labels of the target; the files of source and target lie in the current folder."""
    monkeypatch.chdir(tmp_path)
    labels = {}
    for name in ("sandy", "alberta"):
        with gzip.open(data_folder / "crisis" / f"{name}.jsonl.gz", "rt") as file:
            rows = [json.loads(line) for line in file][:600]
        labels[name] = [LABELS[row["label"]] for row in rows]
        columns = {"text": [row["text"] for row in rows]}
        write_csv(tmp_path / f"{name}.csv", columns | ({"label": labels[name]} if name == "sandy" else {}))
    return np.array(labels["alberta"])


def measure_error(truth):
    return np.mean(np.array([row["prediction"] for row in read_csv("out.csv")]) != truth)


@pytest.mark.slow
def test_a_class_whose_words_have_changed_is_told_by_a_story_that_can_be_given(truth, succeed):
    said = " ".join(succeed(*ADAPT).split())
    without = measure_error(truth)
    assert "The text of alberta.csv alone does not tell its class shares: readings differ on up to" in said
    assert "if: The mix of classes is as in the source, and words moved." in said
    assert "Add --target-shares same (as in the source), or numbers: --target-shares off=...,on=..." in said
    (target,) = json.loads(succeed(*ADAPT, "--json"))["targets"]
    told = [reading["shares"]["on"] for reading in target["readings"] if reading["weight"] >= 0.1]
    assert min(told) < np.mean(truth == "on") < max(told)
    given = " ".join(succeed(*ADAPT, "--target-shares", "same").split())
    assert "does not tell its class shares" not in given
    assert measure_error(truth) < min(without, 0.3)
