"""Batches: shares, threshold and expected error follow the rows."""

from copy import copy

import numpy as np
import pytest

from undrift import MSDAClassifier, TextAdapter, UndriftWarning, load_model, save_model
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


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_batch_is_predicted_at_its_own_mix_of_classes(adapter, reviews, share):
    classifier = adapter.classifier_
    texts, y = draw(reviews["kitchen"], share)
    X = adapter.vectorizer_.transform(texts)
    aligned, p = classifier.align(X), classifier.predict_proba(X)
    before = np.array(list(classifier.target_shares_[0].values()))
    after = np.array(list(aligned.target_shares_[0].values()))
    # the mix is the fixed point of expectation maximisation, with twenty rows of the mix before
    shifted = aligned.predict_proba(X)
    odds = np.log(shifted[:, 1] / shifted[:, 0]) - np.log(p[:, 1] / p[:, 0])
    np.testing.assert_allclose(odds, odds[0], atol=1e-3)
    mix = (shifted.sum(axis=0) + 20 * before) / (X.shape[0] + 20)
    assert np.log(mix[1] / mix[0]) - np.log(before[1] / before[0]) == pytest.approx(odds[0], abs=2e-2)
    np.testing.assert_allclose(after, shifted.mean(axis=0), atol=1e-5)
    assert aligned.expected_error_[0]["error"] == pytest.approx(1 - shifted.max(axis=1).mean(), abs=1e-5)
    assert np.mean(aligned.predict(X) != y) <= np.mean(classifier.predict(X) != y) + (share == 0.5) * 0.02
    assert abs(after[1] - np.mean(y)) < abs(p[:, 1].mean() - np.mean(y)) + (share == 0.5) * 0.02


def test_an_update_of_the_target_is_kept(adapter, reviews):
    classifier = copy(adapter.classifier_)
    X = adapter.vectorizer_.transform(draw(reviews["kitchen"], 0.25)[0])
    aligned = classifier.align(X)
    assert classifier.update_target(X) is classifier
    np.testing.assert_array_equal(classifier.predict_proba(X), aligned.predict_proba(X))
    assert classifier.targets_ == aligned.targets_
    assert classifier.targets_["target"]["codes"] == adapter.classifier_.targets_["target"]["codes"]


def test_a_batch_that_is_harder_than_the_last_one_is_warned_of(adapter, reviews):
    classifier = copy(adapter.classifier_)
    X = adapter.vectorizer_.transform(draw(reviews["kitchen"], 0.5)[0])
    easy = {"error": 0.001, "low": 0.0, "high": 0.01, "known": True}
    classifier.targets_ = {"target": classifier.targets_["target"] | {"expected_error": easy}}
    with pytest.warns(UndriftWarning, match=r"harder than the target of the fit: .* 0\.1% before"):
        classifier.update_target(X)


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
    assert loaded.classifier_.memory_ is None
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
