"""The model against the inner products that it was learnt from, and batches of another mix of classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from tests.helpers.exact import ExactClassifier
from undrift.core import hidden_rows
from undrift.inputs.device import Place
from undrift.method.scores import find_shift, shift_probabilities
from undrift.method.stories import SOURCE_ONLY

CASES = [(2, 1, 1), (3, 1, 1), (2, 2, 2), (3, 2, 2)]  # classes, sources, targets


def draw(rng, n, n_classes, shift=0.0):
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.poisson(0.6, size=(n, 8)).astype(float)
    X[np.arange(n), y] += 2 * rng.random(n) + 0.5
    X[:, 5:] += shift
    return X, y


def fit(rng, n_classes, n_sources, n_targets, **options):
    """Fit stacked rows; return the classifier, the rows, their labels and domains."""
    (X, y), (Z, z) = draw(rng, 30 * n_classes, n_classes), draw(rng, 40, n_classes, 0.7)
    domain = np.concatenate([np.arange(len(X)) % n_sources, -1 - np.arange(len(Z)) % n_targets])
    rows, labels = np.vstack([X, Z]), np.concatenate([y, z])
    model = ExactClassifier(2, 0.5, random_state=0, **options)
    return model.fit(rows, labels, sample_domain=domain), rows, labels, domain


@pytest.fixture(params=CASES, ids=str)
def fitted(request, rng):
    return fit(rng, *request.param)


def test_weights_of_the_layers_give_the_scores_of_the_readings(fitted):
    """From inner products for the anchors, from weights for any row: two ways to the same probabilities."""
    model, rows, _, domain = fitted
    verdict = model._last.verdict
    names = [reading.story.name for reading in verdict.readings]
    order = [names.index(name) for name in model.model_.names]
    for number, p, votes in zip(model.target_names_, verdict.p, verdict.votes, strict=True):
        own = rows[domain == number]
        found = model.find_readings(own, target=number)
        assert_allclose(found, p[order], rtol=1e-4, atol=1e-5)  # weights are kept in float32
        k = model.find_target(number)
        assert_allclose(model.model_.votes[k], votes[order])
        expected = sum(vote * each for vote, each in zip(votes, p, strict=True))
        assert_allclose(model.predict_proba(own, target=number), expected, rtol=1e-4, atol=1e-5)


def test_readings_of_the_input_alone_come_last(fitted):
    model, rows, labels, domain = fitted
    names, n_outputs = model.model_.names, model.model_.n_outputs
    assert names[-1] == SOURCE_ONLY
    assert names.count(SOURCE_ONLY) == 1
    widths = [w.shape[1] for w in model.model_.coef]
    assert widths == [len(names) * n_outputs] + [(len(names) - 1) * n_outputs] * 2
    X, y = rows[domain >= 0], labels[domain >= 0]
    machine = LogisticRegression(C=25 / np.mean((X**2).sum(axis=1)), max_iter=2000).fit(X, y)
    p = model.find_readings(rows, target=model.target_names_[0])[-1]
    assert_allclose(p, machine.predict_proba(rows), atol=5e-3)


def test_votes_of_sources_are_the_mean_of_those_of_targets(fitted):
    model = fitted[0]
    votes, n = model.model_.votes, model.n_sources_
    assert_allclose(votes.sum(axis=1), 1)
    for k in [*range(n), -1]:
        assert_allclose(votes[k], votes[n:-1].mean(axis=0))


def test_rows_of_a_source_are_read_at_its_centre(fitted):
    """The labelled rows' scores are those of the classifier on inner products, for every reading."""
    model, rows, _, domain = fitted
    last, m = model._last, (domain < 0).sum()
    conditioned = last.evidence.conditioned
    K = np.asarray(last.learnt.level.gram.products)
    n, names = (domain >= 0).sum(), list(model.model_.names)
    order = np.argsort(domain[domain >= 0], kind="stable")  # anchors are sorted by domain
    for reading in last.verdict.readings:
        if reading.story.name == SOURCE_ONLY:
            continue
        e = reading.classifier.coef
        coef, intercept = conditioned.change_source(e)
        e = e[: m + len(model.domains_)]
        scores = K[:n, :n] @ coef + K[:n, n:] @ e + intercept + reading.natural
        logits = np.hstack([0 * scores, scores]) if scores.shape[1] == 1 else scores
        p = softmax(logits / reading.temperature, axis=1)
        i = names.index(reading.story.name)
        for k in range(model.n_sources_):
            own = domain[domain >= 0][order] == k
            found = model.find_readings(rows[domain >= 0][order][own], target=k)[i]
            assert_allclose(found, p[own], rtol=1e-4, atol=1e-5)


def test_without_a_target_sources_are_pooled_by_their_sizes(rng):
    X, y = draw(rng, 60, 2)
    domain = np.repeat([0, 1], [20, 40])
    model = ExactClassifier(1, random_state=0).fit(X, y, sample_domain=domain)
    intercept = model.model_.intercept
    assert_allclose(intercept[:, 2], intercept[:, 0] / 3 + 2 * intercept[:, 1] / 3)
    assert model.model_.names == ["unmoved"]
    expected = model.model_.read(model._score_rows(X), np.full(60, 2))[0]
    assert_allclose(model.predict_proba(X), expected)
    assert model.targets_ == model.readings_ == {}


def test_scores_are_read_in_blocks(fitted, set_limits):
    model, rows, _, _ = fitted
    layers, coef = model.representation_.layers_, model.model_.coef
    whole = model.model_.score(rows, layers, Place())
    set_limits(BLOCK_ENTRIES=9 * 8)
    assert_allclose(model.model_.score(rows, layers, Place()), whole, rtol=1e-9)
    hidden = [rows, *hidden_rows(layers, rows)]
    expected = np.zeros((len(rows), coef[0].shape[1]))
    for H, w in zip(hidden, coef, strict=True):
        expected[:, : w.shape[1]] += H @ w
    by_reading = expected.reshape(len(rows), -1, model.model_.n_outputs).transpose(1, 0, 2)
    assert_allclose(whole, by_reading, rtol=1e-6, atol=1e-8)


# -- batches --


def draw_exact(rng, n, shares, n_classes):
    """Rows with their exact class probabilities at even shares, and their classes."""
    codes = rng.choice(n_classes, size=n, p=shares)
    rows = rng.normal(size=(n, n_classes)) + 1.7 * (codes[:, None] == np.arange(n_classes))
    return softmax(1.7 * rows, axis=1), codes


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.2, 0.8), (0.7, 0.2, 0.1)])
def test_a_shift_of_the_mix_is_found_from_exact_probabilities(rng, shares):
    n_classes = len(shares)
    even = np.full(n_classes, 1 / n_classes)
    p, codes = draw_exact(rng, 6000, shares, n_classes)
    shift = find_shift(p, even, 20.0)
    after = shift_probabilities(p, shift)
    assert_allclose(after.mean(axis=0), np.bincount(codes) / 6000, atol=0.015)
    assert_allclose(shift - shift.mean(), np.log(shares) - np.log(shares).mean(), atol=0.1)
    assert np.mean(after.argmax(axis=1) != codes) < np.mean(p.argmax(axis=1) != codes)


def test_the_shift_is_where_the_mix_does_not_change_any_more(rng):
    p, _ = draw_exact(rng, 300, (0.8, 0.2), 2)
    before = np.array([0.4, 0.6])
    found = before * np.exp(find_shift(p, before, 20.0))
    weighed = p * (found / before)
    weighed /= weighed.sum(axis=1, keepdims=True)
    assert_allclose(found, (weighed.sum(axis=0) + 20 * before) / 320, atol=1e-5)
    held = before * np.exp(find_shift(p, before, 1e9))
    assert_allclose(held, before, atol=1e-5)


def test_shifted_probabilities_are_weighed_and_normalised(rng):
    p = softmax(rng.normal(size=(5, 3)), axis=1)
    shift = np.array([0.5, -1.0, 0.2])
    expected = p * np.exp(shift)
    assert_allclose(shift_probabilities(p, shift), expected / expected.sum(axis=1, keepdims=True))
    assert shift_probabilities(p, np.zeros(3)) is p
    by_row = shift_probabilities(p, np.outer(np.arange(5) > 2, shift))
    assert_allclose(by_row[:3], p[:3])
    assert_allclose(by_row[3:], shift_probabilities(p[3:], shift))
    assert np.isfinite(shift_probabilities(np.array([[1.0, 0.0]]), np.array([-50.0, 0.0]))).all()


def test_one_domain_is_shifted_alone(rng):
    model, rows, _, _ = fit(rng, 3, 1, 2)
    aligned = model.model_.align(2, np.array([1.0, 0.0, -1.0]), np.full(3, 1 / 3))
    scores = model._score_rows(rows)
    for k in (0, 1, 2, 3):
        before, after = (each.predict(scores, np.full(len(rows), k)) for each in (model.model_, aligned))
        expected = before * np.exp([1.0, 0.0, -1.0]) if k == 2 else before
        assert_allclose(after, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)
