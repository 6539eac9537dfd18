"""`--merge` joins labels on reading, and a dry run says what would be read."""

import json
from pathlib import Path

import pytest

from tests.helpers.commands import ADAPT, change_options, check_refused
from tests.helpers.review_files import read_csv, write_csv

MERGE = ["--merge", "1, 2,3=bad", "--merge", "4,5=good"]


@pytest.fixture
def starred(folder, reviews):
    """The files of reviews, with stars from 1 to 5 for labels, also in the target."""
    stars = {"negative": ["1", "2", "3.0"], "positive": ["4", "5"], "": [""]}
    for name, column in (("books", "stars"), ("kitchen", "truth")):
        texts, labels = reviews[name]
        given = [stars[label][i % len(stars[label])] for i, label in enumerate(labels)]
        write_csv(folder / f"{name}.csv", {"review": texts, column: given})
    return folder


def test_labels_are_joined_in_source_target_and_labels(starred, undrift, succeed, reviews):
    out = json.loads(succeed(*ADAPT, *MERGE, "--target-label", "truth", "--json"))
    assert out["classes"] == ["bad", "good"]
    assert out["labels"] == {"bad": 40, "good": 40}
    assert out["notes"] == ["labels joined: 1, 2, 3 = bad; 4, 5 = good"]
    (target,) = out["targets"]
    rows = [row for row in read_csv("out.csv") if row["truth"]]
    assert {row["prediction"] for row in rows} == {"bad", "good"}
    wrong = [row["prediction"] != ("bad" if row["truth"] in "123.0" else "good") for row in rows]
    assert target["adapted_error"] == pytest.approx(sum(wrong) / len(wrong))
    shares = ["--target-shares", "bad=0.5,good=0.5", "--model", "m.safetensors", "--updatable"]
    write_csv(starred / "labels.csv", {"review": reviews["kitchen"][0], "stars": ["1", "5"] * 50})
    again = json.loads(succeed(*ADAPT, *MERGE, *shares, "--labels", "labels.csv", "--json"))
    assert again["targets"][0]["scored"] > 80
    learnt = ["update", "m.safetensors", "labels.csv", "--label", "stars", "--out", "n.safetensors", "--json"]
    assert json.loads(succeed(*learnt))["n_labels"] > 80  # the model knows which labels are joined


def test_what_cannot_be_joined_is_one_line(starred, undrift):
    for value, said in (
        ("1,2", "--merge '1,2': write LABEL,LABEL=CLASS, as in 1,2,3=bad"),
        ("=bad", "--merge '=bad': write LABEL,LABEL=CLASS, as in 1,2,3=bad"),
        ("9=bad", "--merge: no row has the label '9'; the labels are 1, 2, 3, 4, 5"),
    ):
        assert check_refused(undrift, starred, [*ADAPT, "--merge", value]) == said
    twice = [*ADAPT, "--merge", "1=bad", "--merge", "1=good"]
    assert check_refused(undrift, starred, twice) == "--merge: the label '1' is joined into two classes"


def test_a_mean_distance_is_shown_where_labels_are_numbers(starred, succeed):
    (target,) = json.loads(succeed(*ADAPT, "--target-label", "truth", "--json"))["targets"]
    rows = [row for row in read_csv("out.csv") if row["truth"]]
    distances = [abs(float(row["truth"]) - float(row["prediction"])) for row in rows]
    assert target["mean_distance"] == pytest.approx(sum(distances) / len(distances))
    out = " ".join(succeed(*ADAPT, "--target-label", "truth").split())
    assert f"; on average {target['mean_distance']:.2f} away from the label, the SVM " in out
    joined = succeed(*ADAPT, *MERGE, "--target-label", "truth")
    assert "away from the label" not in joined


def test_a_dry_run_says_what_would_be_read_and_writes_nothing(starred, undrift, succeed, reviews):
    before = {path.name for path in Path.cwd().iterdir()}
    assert check_refused(undrift, starred, change_options(ADAPT, out=None)) == "Missing option '--out'."
    command = [*change_options(ADAPT, text=None, model="m.safetensors", out=None), *MERGE, "--dry-run"]
    assert succeed(*command, "--target-label", "truth").splitlines() == [
        "Source books.csv: 100 rows, text = review, 80 labels.",
        "2 classes: bad 40, good 40.",
        "Target kitchen.csv: 100 rows, text = review, 80 labels.",
        "Note: labels joined: 1, 2, 3 = bad; 4, 5 = good.",
        "Nothing was fitted or written (--dry-run).",
    ]
    assert {path.name for path in Path.cwd().iterdir()} == before
    summary = json.loads(succeed(*command, "--json"))
    assert summary["labels"] == {"bad": 40, "good": 40}
    assert summary["sources"] == [
        {"file": "books.csv", "rows": 100, "empty": 0, "bad_rows": 0, "labelled": 80}
    ]
    write_csv(starred / "labelled.csv", {"review": reviews["kitchen"][0], "Stars": reviews["kitchen"][1]})
    said = succeed(*change_options(command, target="labelled.csv"))
    assert "a column 'Stars': ignored (add --target-label Stars to measure" in " ".join(said.split())
    said = check_refused(undrift, starred, change_options(command, label="star"))
    assert "no column 'star'; did you mean 'stars'?" in said
    texts, labels = reviews["books"]
    odd = ["negative", *[label and f"{label}s" for label in labels[1:]]]
    write_csv(starred / "books.csv", {"review": texts, "stars": odd})
    status, _, err = undrift(*change_options(ADAPT, text=None), "--dry-run")
    assert status == 0
    assert err.startswith(
        "warning: labels that look alike count as two classes: 'negative' (1) and 'negatives'"
    )
