"""Tags: an indicator matrix is one search and one problem of two classes for each column."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from undrift import MSDAClassifier, load_model, save_model, text_classifier


@pytest.fixture
def tagged(rng):
    """Source rows, tags of which a row may have several, target rows, and their tags."""
    words = rng.gamma(0.4, size=(3, 12))
    topics = rng.gamma(0.6, size=(240, 3))
    X = rng.poisson(topics @ words + 0.1).astype(float)
    tags = (topics > 0.5).astype(int)
    return X[:140], tags[:140], X[140:] + (rng.uniform(size=(100, 12)) < 0.2), tags[140:]


@pytest.mark.parametrize("options", [{"center": "domains"}, {"center": False, "classifier": "hinge"}])
def test_each_tag_is_scored_as_by_a_classifier_of_its_own(tagged, options):
    X, tags, Z, _ = tagged
    settings = {"n_layers": 2, "C": 1.0, "dtype": "float64", "random_state": 0, **options}
    model = MSDAClassifier(**settings).fit(X, tags, Z)
    scores = model.decision_function(Z)
    for j in range(3):
        alone = MSDAClassifier(**settings).fit(X, tags[:, j], Z)
        assert_allclose(scores[:, j], alone.decision_function(Z), rtol=1e-6, atol=1e-8)
        assert_allclose(model.predict_proba(Z)[:, j], alone.predict_proba(Z)[:, 1], rtol=1e-5, atol=1e-8)
    assert_array_equal(model.predict(Z), (scores > 0).astype(int))
    assert model.target_shares_ == model.expected_error_ == [None]


def test_every_tag_is_as_frequent_in_each_target_as_in_the_source(tagged):
    X, tags, Z, truth = tagged
    options = {"n_layers": 2, "fallback": False, "dtype": "float64", "random_state": 0}
    model = text_classifier(**options).fit(X, tags, [Z[:60], Z[60:]])
    plain = text_classifier(**options, center="domains").fit(X, tags, [Z[:60], Z[60:]])
    for i, rows in enumerate((Z[:60], Z[60:])):
        predicted = model.predict(rows, sample_domain=-1 - i)
        assert_allclose(predicted.mean(axis=0), tags.mean(axis=0), atol=1 / len(rows))
        assert model.target_shares_[i] == pytest.approx(dict(enumerate(tags.mean(axis=0))))
        shifts = model.decision_function(rows, sample_domain=-1 - i)
        shifts = shifts - plain.decision_function(rows, sample_domain=-1 - i)
        assert_allclose(shifts, np.tile(shifts[0], (len(rows), 1)), atol=1e-6)
    source = (m.decision_function(X, sample_domain=0) for m in (model, plain))
    assert_allclose(*source, atol=1e-6)
    assert np.mean(model.predict(Z) == truth) > 0.65
    assert len(model.self_training_rounds_) > 3


def test_tags_in_every_row_or_in_none_are_predicted_so(tagged):
    X, tags, Z, _ = tagged
    tags = np.column_stack([tags, np.ones(len(X)), np.zeros(len(X))])
    model = MSDAClassifier(2, random_state=0).fit(X, tags, Z)
    assert_array_equal(model.predict(Z)[:, 3:], np.tile([1, 0], (len(Z), 1)))
    sure = (len(X) + 1) / (len(X) + 2)
    assert_allclose(model.predict_proba(Z)[:, 3:], np.tile([sure, 1 - sure], (len(Z), 1)))
    assert model.target_shares_[0][3] == 1.0
    assert model.target_shares_[0][4] == 0.0


def test_rows_of_nan_are_unlabelled_and_sparse_indicators_count(tagged):
    X, tags, Z, _ = tagged
    plain = MSDAClassifier(1, random_state=0).fit(X, tags, Z)
    stacked = np.vstack([tags, np.full((len(Z), 3), np.nan)])
    form = MSDAClassifier(1, random_state=0).fit(np.vstack([X, Z]), stacked)
    assert_allclose(form.decision_function(Z), plain.decision_function(Z), rtol=1e-5, atol=1e-6)
    sparse = MSDAClassifier(1, random_state=0).fit(X, sp.csr_array(tags), Z)
    assert_array_equal(sparse.predict(Z), plain.predict(Z))
    lists = MSDAClassifier(1, random_state=0).fit(X, tags.tolist(), Z)
    assert_array_equal(lists.predict(Z), plain.predict(Z))


def test_a_saved_classifier_of_tags_predicts_the_same(tagged, tmp_path):
    X, tags, Z, truth = tagged
    model = MSDAClassifier(2, random_state=0).fit(X, tags, Z)
    save_model(model, tmp_path / "tags.safetensors")
    loaded = load_model(tmp_path / "tags.safetensors")
    assert_array_equal(loaded.predict(Z), model.predict(Z))
    assert_allclose(
        loaded.predict_proba(Z), expit((model.decision_function(Z) + model.prior_[-1]) / model.temperature_)
    )
    assert loaded.score(Z, truth) == model.score(Z, truth)
    assert loaded.target_shares_ == model.target_shares_


def test_candidates_of_tags_are_compared_by_explained_variance(tagged):
    X, tags, Z, _ = tagged
    model = MSDAClassifier(1, [0.3, 0.6], [0.3, 1.0, 3.0], center="domains", random_state=0)
    with pytest.warns(match="at the edge"):
        model.fit(X, tags, Z)
    scores = [entry["score"] for entry in model.selection_results_]
    assert len(scores) == 6
    assert max(scores) < 1
    assert sum(entry["chosen"] for entry in model.selection_results_) == 1


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, [[0, 2], [1, 0]], "tags, which are 0 or 1"),
        ({"target_shares": {0: 0.5, 1: 0.5}}, None, "leave out target_shares"),
        ({"border": "balanced"}, None, "leave out target_shares, border"),
        ({"class_weight": {0: 1.0}}, None, "a dict of class_weight"),
    ],
)
def test_what_cannot_be_meant_is_refused(tagged, options, y, message):
    X, tags, Z, _ = tagged
    with pytest.raises(ValueError, match=message):
        MSDAClassifier(1, **options).fit(X if y is None else X[: len(y)], tags if y is None else y, Z)


def test_labels_of_target_rows_are_refused(tagged):
    X, tags, Z, truth = tagged
    with pytest.raises(ValueError, match="y holds tags"):
        MSDAClassifier(1).fit(X, tags, Z, y_target=truth[:, 0])
    model = MSDAClassifier(1, random_state=0).fit(X, tags, Z)
    for call in (lambda: model.update(Z[:2], [0, 1]), lambda: model.ask(Z, 5)):
        with pytest.raises(ValueError, match="a model of tags cannot learn"):
            call()
