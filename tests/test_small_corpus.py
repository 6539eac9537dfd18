"""The small corpus of the repository: its program writes its files, and `undrift adapt` works on them."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tests.helpers.corpus import FOLDER, PAIRS, PHRASES, read_domain, write_domain
from tests.helpers.review_files import read_csv, write_csv


@pytest.mark.parametrize("name", PHRASES["companies"])
def test_the_files_are_those_of_the_program(name):
    assert list(zip(*read_domain(name), strict=True)) == write_domain(name)


@pytest.mark.parametrize("name", PHRASES["companies"])
def test_no_message_stands_twice(name):
    texts, labels = read_domain(name)
    assert len({text.casefold() for text in texts}) == len(texts) == 300
    assert {label: labels.count(label) for label in set(labels)} == PHRASES["companies"][name]["rows"]


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_adaptation_makes_fewer_errors(pair, tmp_path, succeed):
    """And the measured error is not above the interval that was told without labels."""
    source, target = PAIRS[pair]
    texts, labels = read_domain(target)
    write_csv(tmp_path / "target.csv", {"text": texts})
    out = tmp_path / "out.csv"
    said = succeed(
        "adapt", FOLDER / f"{source}.csv", tmp_path / "target.csv", "--label", "label", "--out", out, "--json"
    )
    error = np.mean(np.array([row["prediction"] for row in read_csv(out)]) != labels)
    svm = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(*read_domain(source))
    assert error < np.mean(svm.predict(texts) != labels)
    expected = json.loads(said)["targets"][0]["expected_error"]
    assert error <= expected["high"]
