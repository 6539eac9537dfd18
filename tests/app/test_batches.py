"""`undrift predict` takes every file as a target of its own."""

import json

import numpy as np
import pytest

from tests.app.conftest import BAD
from tests.helpers.review_files import read_csv, write_csv
from undrift.app.predict import N_SAMPLED, Sample


@pytest.fixture
def model(batch_models):
    return batch_models / "m.st"


@pytest.fixture
def reviews(mixed_reviews):
    return mixed_reviews


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_batch(reviews, share, n=240, name="may.csv", **columns):
    """Write rows that the fit has not seen, `share` of them good."""
    texts, labels = (values[300:] for values in reviews["kitchen"])
    chosen = {label: [i for i, each in enumerate(labels) if each == label] for label in set(labels)}
    rows = [*chosen["good"][: round(n * share)], *chosen[BAD][: n - round(n * share)]]
    table = {"review": [texts[i] for i in rows], "truth": [labels[i] for i in rows]}
    write_csv(name, table | columns)
    return table


def count_errors(path="out.csv"):
    return float(np.mean([row["prediction"] != row["truth"] for row in read_csv(path)]))


@pytest.mark.parametrize("name", ["m.st", "d.st"])
def test_shares_and_threshold_follow_the_file(folder, undrift, model, reviews, name):
    path, errors = model.parent / name, {}
    write_batch(reviews, 0.2, 180)
    write_batch(reviews, 0.2, 180, name="more.csv")
    table = write_batch(reviews, 0.25, 200)
    for how in ([], ["--as-fitted"]):
        status, out, err = undrift("predict", path, "may.csv", "--out", "out.csv", "--json", *how)
        assert (status, err) == (0, "")
        summary = json.loads(out)
        assert summary["aligned"] is not bool(how)
        errors[bool(how)] = count_errors()
    assert errors[False] <= errors[True]
    status, out, _ = undrift("predict", path, "may.csv", "--out", "out.csv")
    said = " ".join(out.split())
    assert f"Class shares of these rows: {BAD} " in said
    assert " wrong (90% interval " in said
    assert len(read_csv("out.csv")) == len(table["review"])


def test_a_small_file_is_predicted_as_fitted_and_says_so(folder, undrift, succeed, model, reviews):
    write_batch(reviews, 0.5, 60)
    out = succeed("predict", model, "may.csv", "--out", "out.csv")
    assert "As fitted: 60 rows have a known word, and 200 are needed." in " ".join(out.split())
    summary = json.loads(succeed("predict", model, "may.csv", "--out", "out.csv", "--json"))
    assert summary["aligned"] is False
    scores = [row["score"] for row in read_csv("out.csv")]
    undrift("predict", model, "may.csv", "--out", "out.csv", "--as-fitted")
    assert [row["score"] for row in read_csv("out.csv")] == scores


def test_a_file_of_labelled_rows_keeps_the_threshold_that_the_labels_have_set(
    folder, undrift, succeed, model, reviews
):
    table = write_batch(reviews, 0.5, 240)
    write_csv("labels.csv", {"review": table["review"][::8], "label": table["truth"][::8]})
    succeed("update", model, "labels.csv", "--out", "new.st")
    command = ["predict", "new.st", "may.csv", "--out", "out.csv"]
    said = " ".join(succeed(*command).split())
    assert "As fitted: labels of its rows were learnt, and have set the threshold." in said
    others = [text for text in table["review"] if text not in table["review"][::8]]
    write_csv("june.csv", {"review": [*others, table["review"][0]]})
    assert json.loads(succeed("predict", "new.st", "june.csv", "--out", "o.csv", "--json"))["aligned"]


def test_every_document_has_the_same_chance_to_be_sampled():
    n, hits = 2 * N_SAMPLED, 0
    for seed in range(20):
        sample = Sample(N_SAMPLED)
        sample._rng = np.random.default_rng(seed)
        for start in range(0, n, 100):
            sample.add([str(i) for i in range(start, start + 100)])
        assert (len(sample.documents), sample.n_rows) == (N_SAMPLED, n)
        hits += sum(int(document) < N_SAMPLED for document in sample.documents)
    assert hits / (20 * N_SAMPLED) == pytest.approx(0.5, abs=0.02)
