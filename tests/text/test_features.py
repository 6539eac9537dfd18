"""Columns of numbers in place of documents."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler, normalize

from undrift import TextAdapter, load_model, save_model
from undrift.text import FeatureScaler


def as_documents(X):
    return ["\t".join("" if np.isnan(v) else f"{v:.17g}" for v in row) for row in X]


def test_counts_are_weighted_as_terms_are(rng):
    X = rng.poisson(0.4, size=(50, 6)).astype(float)
    scaler = FeatureScaler(list("abcdef"), length=3.0).fit(as_documents(X))
    assert scaler.kind_ == "counts"
    idf = 1 + np.log(51 / (1 + (X > 0).sum(axis=0)))
    expected = 3 * normalize(np.where(X > 0, 1 + np.log(np.maximum(X, 1)), 0) * idf)
    assert_allclose(scaler.transform(as_documents(X)).toarray(), expected, rtol=1e-5, atol=1e-7)


def test_numbers_get_one_spread_and_long_tails_their_logarithm(rng):
    X = np.column_stack([rng.normal(3, 2, 200), np.expm1(rng.gamma(2, 2, 200)), np.full(200, 7.0)])
    scaler = FeatureScaler(list("abc"), length=3**0.5).fit(as_documents(X))
    assert scaler.kind_ == "numbers"
    assert scaler.is_log_.tolist() == [False, True, False]
    expected = StandardScaler().fit_transform(np.column_stack([X[:, 0], np.log1p(X[:, 1]), X[:, 2]]))
    assert_allclose(
        scaler.transform(as_documents(X)).toarray(), np.clip(expected, -5, 5), rtol=1e-4, atol=1e-4
    )


def test_empty_cells_are_the_mean(rng):
    X = rng.normal(size=(80, 3))
    X[:10, 1] = np.nan
    scaler = FeatureScaler(list("abc")).fit(as_documents(X))
    assert_allclose(scaler.mean_, np.nanmean(X, axis=0))
    assert_allclose(scaler.scale_, np.nanstd(X, axis=0))
    assert (scaler.transform(as_documents(X)).toarray()[:10, 1] == 0).all()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("1\tlow\t2", "row 1: column 'b' holds 'low', which is no finite number"),
        ("1\t2", "learnt from 3 columns of numbers, and got text"),
        (" \tinf\t2", "row 1: column 'b' holds 'inf', which is no finite number"),
    ],
)
def test_bad_cells_are_one_line(document, message):
    scaler = FeatureScaler(list("abc")).fit(["1\t2\t3", "2\t1.5\t0"])
    with pytest.raises(ValueError, match=message):
        scaler.transform([document])


def test_a_saved_model_of_numbers_predicts_the_same(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "up", "down")
    rows = as_documents(X)
    adapter = TextAdapter(FeatureScaler(["a", "b", "c"])).fit(rows[:40], y[:40], rows[40:])
    save_model(adapter, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert loaded.terms_ == ["a", "b", "c"]
    np.testing.assert_array_equal(loaded.predict(rows), adapter.predict(rows))
