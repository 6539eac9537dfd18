"""Batches: shares, threshold and expected error follow the rows; the oracle is an update of the state."""

from copy import copy

import numpy as np
import pytest

from undrift import MSDAClassifier, TextAdapter, load_model, save_model
from undrift.datasets import make_reviews


@pytest.fixture(scope="module")
def reviews():
    return make_reviews(600, unlabelled_share=0.0, style="mixed", random_state=0).domains


@pytest.fixture(scope="module")
def adapter(reviews):
    books, kitchen = reviews["books"], reviews["kitchen"]
    classifier = MSDAClassifier(2, random_state=0)
    return TextAdapter(600, classifier=classifier).fit(books.texts, books.y, list(kitchen.texts[:300]))


def draw(domain, share, n=240):
    """Draw rows that the fit has not seen, `share` of them positive."""
    y = np.asarray(domain.y)[300:]
    ones, zeros = 300 + np.flatnonzero(y == 1), 300 + np.flatnonzero(y == 0)
    n_ones = min(round(n * share), len(ones))
    rows = [*ones[:n_ones], *zeros[: min(n - n_ones, len(zeros))]]
    return [domain.texts[i] for i in rows], np.asarray(domain.y)[rows]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_batch_is_aligned_as_an_update_of_the_state_would(adapter, reviews, share):
    classifier = adapter.classifier_
    X = adapter.vectorizer_.transform(draw(reviews["kitchen"], share)[0])
    aligned, updated = classifier.align(X), copy(classifier).update_target(X)
    np.testing.assert_allclose(aligned.decision_function(X), updated.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(aligned.predict_proba(X), updated.predict_proba(X), atol=1e-5)
    assert aligned.target_shares_[0] == pytest.approx(updated.target_shares_[0], abs=1e-5)
    for name in ("error", "low", "high"):
        assert aligned.expected_error_[0][name] == pytest.approx(updated.expected_error_[0][name], abs=1e-5)


def test_the_classifier_itself_stays_as_it_was(adapter, reviews):
    classifier = adapter.classifier_
    X = adapter.vectorizer_.transform(draw(reviews["kitchen"], 0.2)[0])
    before, shares = classifier.decision_function(X), dict(classifier.target_shares_[0])
    aligned = classifier.align(X)
    np.testing.assert_array_equal(classifier.decision_function(X), before)
    assert classifier.target_shares_[0] == shares
    assert aligned.target_shares_[0] != shares


def test_a_file_without_training_rows_aligns_batches_too(adapter, reviews, tmp_path):
    save_model(adapter, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.classifier_.update_state_ is None
    X = adapter.vectorizer_.transform(draw(reviews["kitchen"], 0.3)[0])
    scores = (model.classifier_.align(X).decision_function(X) for model in (adapter, loaded))
    np.testing.assert_allclose(*scores, atol=1e-5)


def test_a_distilled_classifier_follows_a_batch_about_as_the_full_one(adapter, reviews):
    small = adapter.distill(list(reviews["kitchen"].texts[:300]))
    texts, y = draw(reviews["kitchen"], 0.2)
    full = adapter.classifier_.align(adapter.vectorizer_.transform(texts))
    X = small.vectorizer_.transform(texts)
    aligned = small.classifier_.align(X)
    assert aligned.target_shares_[0][1.0] == pytest.approx(full.target_shares_[0][1.0], abs=0.1)
    assert (aligned.predict(X) != y).mean() <= (small.classifier_.predict(X) != y).mean() + 0.02


@pytest.mark.filterwarnings("ignore:adaptation is likely")
def test_a_model_that_is_not_aligned_says_so(reviews):
    books, kitchen = reviews["books"], reviews["kitchen"]
    classifier = MSDAClassifier(1, center="domains", random_state=0)
    adapter = TextAdapter(200, classifier=classifier).fit(books.texts, books.y, list(kitchen.texts[:200]))
    assert adapter.classifier_.batch_ is None
    with pytest.raises(ValueError, match='fit with center="classes"'):
        adapter.classifier_.align(adapter.vectorizer_.transform(kitchen.texts))
