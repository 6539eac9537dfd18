"""Columns that predictions add: labels, scores, probabilities, and what is left empty as doubtful."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.review_files import build_adapter, read_csv, write_csv
from undrift.app.adapt import run_adapt
from undrift.app.job import AdaptJob, PredictJob
from undrift.app.predict import run_predict
from undrift.app.predictions import Predictions


def write_reviews(folder, reviews, name="kitchen"):
    (books, labels), (target, _) = reviews["books"], reviews[name]
    source = write_csv(folder / "books.csv", {"text": books, "label": labels})
    return source, write_csv(folder / f"{name}.csv", {"text": target})


@pytest.mark.parametrize("border", ["error", "balanced"])
def test_probabilities_are_those_of_the_estimator(tmp_path, reviews, border):
    source, target = write_reviews(tmp_path, reviews)
    job = AdaptJob([source], [target], ("text",), "label", tmp_path / "out.csv", probabilities=True)
    adapter = build_adapter(border=border)
    run_adapt(job, adapter)
    rows = read_csv(job.out)
    assert list(rows[0]) == ["text", "prediction", "score", "probability", "p_negative", "p_positive"]
    expected = adapter.predict_proba(reviews["kitchen"][0])
    written = [[float(row[f"p_{label}"]) for label in adapter.classes_] for row in rows]
    assert_allclose(written, expected, atol=1e-6)
    assert all(row["probability"] == row[f"p_{row['prediction']}"] for row in rows)
    if border == "error":
        assert all(float(row["probability"]) >= 0.5 for row in rows)


def test_a_prediction_with_exactly_the_least_confidence_stays():
    p = np.array([[0.25, 0.75], [0.375, 0.625]])
    predictions = Predictions(["a", "b"], np.array([1, 1]), np.zeros(2), p, np.ones(2, dtype=int))
    assert predictions.columns(["prediction"], 0.75)["prediction"].tolist() == ["b", None]
    counted = predictions.count(0.75)
    assert counted.per_class.tolist() == [0, 2]
    assert (counted.n_doubtful, counted.unknown_rows) == (1, 0)


def test_texts_without_a_known_term_have_the_class_shares_and_no_prediction(tmp_path, reviews):
    """In `adapt` as in `predict`, and by the estimator."""
    source, target = write_reviews(tmp_path, reviews)
    target = write_csv(tmp_path / "target.csv", {"text": [*reviews["kitchen"][0], "", "zyxwv"]})
    job = AdaptJob([source], [target], ("text",), "label", tmp_path / "out.csv", probabilities=True)
    adapter = build_adapter()
    run_adapt(replace(job, model=tmp_path / "model"), adapter)
    shares = list(adapter.target_shares_[0].values())
    assert_allclose(adapter.predict_proba(["", "zyxwv"]), [shares, shares], atol=1e-6)
    given = {"model": tmp_path / "model", "input": target, "out": tmp_path / "new.csv"}
    run_predict(PredictJob(**given, as_fitted=True, probabilities=True))
    for path in (job.out, tmp_path / "new.csv"):
        for row in read_csv(path)[-2:]:
            assert row["prediction"] == ""
            assert_allclose([float(row[f"p_{label}"]) for label in adapter.classes_], shares, atol=1e-6)


def test_doubtful_predictions_are_left_empty_and_counted(tmp_path, reviews):
    source, target = write_reviews(tmp_path, reviews)
    files = [source], [target], ("text",), "label"
    all_kept = run_adapt(AdaptJob(*files, tmp_path / "all.csv"), build_adapter()).to_dict()
    job = AdaptJob(*files, tmp_path / "out.csv", min_confidence=0.7, model=tmp_path / "m.safetensors")
    (entry,) = run_adapt(job, build_adapter()).to_dict()["targets"]
    rows, every_row = read_csv(job.out), read_csv(tmp_path / "all.csv")
    for row, full in zip(rows, every_row, strict=True):
        is_doubtful = float(row["probability"]) < 0.7
        assert row == full | ({"prediction": ""} if is_doubtful else {})
    assert 0 < entry["n_doubtful"] == sum(row["prediction"] == "" for row in rows) < 120
    assert entry["predicted_shares"] == all_kept["targets"][0]["predicted_shares"]
    assert "n_doubtful" not in all_kept["targets"][0]
    again = PredictJob(model=job.model, input=target, out=tmp_path / "again.csv", min_confidence=0.7)
    assert run_predict(again).facts["n_doubtful"] == entry["n_doubtful"]
    predicted = [row["prediction"] for row in read_csv(tmp_path / "again.csv")]
    assert predicted == [row["prediction"] for row in rows]


def test_empty_predictions_do_not_change_the_kind_of_a_parquet_column(tmp_path, reviews):
    """Whole numbers stay so even where the first predictions, or all, are left empty."""
    pytest.importorskip("pyarrow")
    (books, labels), (kitchen, _) = reviews["books"], reviews["kitchen"]
    import pyarrow.parquet

    numbers = [int(label == "positive") if label else None for label in labels]
    table = pyarrow.table({"text": books, "label": numbers})
    pyarrow.parquet.write_table(table, tmp_path / "books.parquet")
    source, target = tmp_path / "books.parquet", write_csv(tmp_path / "kitchen.csv", {"text": kitchen})
    for limit in (0.7, 1.0):
        job = AdaptJob([source], [target], ("text",), "label", tmp_path / "out.parquet", min_confidence=limit)
        run_adapt(job, build_adapter())
        column = pyarrow.parquet.read_table(job.out).column("prediction")
        assert column.type == pyarrow.int64()
        assert column.null_count > 0


def test_with_three_classes_probabilities_sum_to_one(tmp_path, rng):
    words = {"a": "apple pear", "b": "bus train", "c": "cat dog"}
    labels = rng.choice(list(words), size=90)
    texts = [f"{rng.choice(words[label].split())} and {rng.choice(['red', 'blue'])}" for label in labels]
    source = write_csv(tmp_path / "s.csv", {"text": texts, "label": labels})
    target = write_csv(tmp_path / "t.csv", {"text": texts[:40]})
    job = AdaptJob([source], [target], ("text",), "label", tmp_path / "out.csv", probabilities=True)
    summary = run_adapt(job, build_adapter()).to_dict()
    rows = read_csv(job.out)
    p = np.array([[float(row[f"p_{label}"]) for label in "abc"] for row in rows])
    assert_allclose(p.sum(axis=1), 1, atol=2e-6)
    assert [row["prediction"] for row in rows] == ["abc"[code] for code in p.argmax(axis=1)]
    (entry,) = summary["targets"]
    assert_allclose(sum(entry["target_shares"].values()), 1)
    counts = [sum(row["prediction"] == label for row in rows) / 40 for label in "abc"]
    assert_allclose(list(entry["predicted_shares"].values()), counts)
