"""Ten groups with long names, from two CSV files to a model that has learnt labels."""

import json
import re

import numpy as np

from tests.helpers.review_files import read_csv, write_csv
from tests.helpers.topics import GROUPS, make_topics

ADAPT = ["adapt", "shop.csv", "phone.csv", "--label", "group", "--out", "out.csv", "--max-features", 600]
ADAPT += ["--set", "layers=1"]
LINE = re.compile(r"  (\S+) +([\d.]+)%  (?:(\d+)% \()?(\d+)% to (\d+)%\)?")


def find_wrong(rows, truth):
    return np.array([row["prediction"] != label for row, label in zip(rows, truth, strict=True)])


def test_ten_groups_from_files_to_a_model_that_has_learnt_labels(tmp_path, monkeypatch, succeed):
    monkeypatch.chdir(tmp_path)
    (texts, labels), (others, truth) = (make_topics(10, name, 300) for name in ("shop", "phone"))
    write_csv("shop.csv", {"post": texts, "group": labels})
    write_csv("phone.csv", {"post": others})
    said = succeed(*ADAPT, "--min-confidence", 0.9, "--model", "m.st", "--updatable")
    rows = read_csv("out.csv")
    n_empty = sum(row["prediction"] == "" for row in rows)
    assert 0 < n_empty < 300
    assert f"Left empty as doubtful (--min-confidence): {n_empty} of 300 predictions" in " ".join(
        said.split()
    )
    kept = np.array([row["prediction"] != "" for row in rows])
    assert find_wrong(rows, truth)[kept].mean() < 0.1

    summary = json.loads(succeed(*ADAPT, "--json"))["targets"][0]
    for out in (said, succeed("predict", "m.st", "phone.csv", "--out", "out.csv")):
        told = {label: numbers for label, *numbers in LINE.findall(out)}
        assert list(told) == sorted(GROUPS)
        for label, (predicted, _, low, high) in told.items():
            assert abs(float(predicted) - 100 * summary["predicted_shares"][label]) < 0.06
            ends = [100 * end for end in summary["target_shares_interval"][label]]
            assert np.abs(np.array([int(low), int(high)]) - ends).max() < 0.51
    before = np.mean(
        [row["prediction"] != label for row, label in zip(read_csv("out.csv"), truth, strict=True)]
    )

    asked = succeed("ask", "m.st", "phone.csv", "--n", 12, "--out", "ask.csv")
    assert "ask.csv" in asked
    chosen, known = read_csv("ask.csv"), dict(zip(others, truth, strict=True))
    answered = {name: [row[name] for row in chosen] for name in ("post", "sampled", "weight")}
    write_csv("ask.csv", answered | {"label": [known[row["post"]] for row in chosen]})
    learnt = json.loads(succeed("update", "m.st", "ask.csv", "--out", "n.st", "--json"))
    assert learnt["n_labels"] == 12
    succeed("predict", "n.st", "phone.csv", "--out", "out.csv", "--probabilities")
    rows = read_csv("out.csv")
    assert find_wrong(rows, truth).mean() <= before + 0.02
    p = np.array([[float(row[f"p_{label}"]) for label in sorted(GROUPS)] for row in rows])
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-4
    assert [sorted(GROUPS)[k] for k in p.argmax(axis=1)] == [row["prediction"] for row in rows]
