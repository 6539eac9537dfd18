"""Tweets of another disaster: classes that scores do not tell apart are said to be not known."""

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
        write_csv(f"{name}.csv", columns | ({"label": labels[name]} if name == "sandy" else {}))
    return np.array(labels["alberta"])


def test_a_class_whose_words_have_changed_is_not_said_to_be_rare(truth, undrift):
    status, said, warned = undrift(*ADAPT, "--json")
    assert status == 0
    assert "either hardly any row is 'on', or the words of 'on' have changed" in warned
    (target,) = json.loads(said)["targets"]
    predicted = np.array([row["prediction"] for row in read_csv("out.csv")])
    expected, wrong = target["expected_error"], np.mean(predicted != truth)
    assert expected["error"] is None
    assert expected["known"] is False
    assert 0 < expected["low"] < wrong < expected["high"] < 0.6
    assert wrong < 0.4  # all of the larger class: 49%
    assert 0.3 < target["predicted_shares"]["on"] < 0.8  # as in the source, of which 58% are
    status, said, _ = undrift(*ADAPT)
    said = " ".join(said.split())
    assert "how many are wrong is not known, " in said
    assert "for `undrift predict` and `undrift label`" in said
