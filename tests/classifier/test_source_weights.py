"""Several sources, of which some are nearer to the target than others."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier, load_model, save_model
from undrift.classifier import source_weights as sources_module

DOMAIN = np.repeat([0, 1, -1], [60, 30, 50])


@pytest.fixture
def rows(rng):
    """A large source far from the target, a small one near it: 60, 30 and 50 rows."""
    far, near = rng.gamma(0.6, size=(2, 8))
    rates = np.vstack([np.tile(far, (60, 1)), np.tile(near, (80, 1)) + 0.1 * far])
    return rng.poisson(2 * rates + 0.1).astype(float)


@pytest.fixture
def y(rows, rng):
    return np.where(rows[:, 0] - rows[:, 1] + rng.normal(size=140) > 0, 1, -1)


def odds_by_halves(K, is_target, C):
    """Odds of being a target row: each half of the rows is judged by least squares on the other."""
    scores = np.zeros(len(K))
    sides = [np.arange(len(K)) % 2 == part for part in (0, 1)]
    for seen, judged in (sides, sides[::-1]):
        n = seen.sum()
        bordered = np.ones((n + 1, n + 1))
        bordered[:n, :n] = K[np.ix_(seen, seen)] + np.eye(n) / C
        bordered[n, n] = 0
        answer = np.linalg.solve(bordered, np.append(np.where(is_target[seen], 1.0, -1.0), 0))
        scores[judged] = K[np.ix_(judged, seen)] @ answer[:n] + answer[n]
    return np.exp(2 * scores)


def expected_weights(rows):
    K = rows @ rows.T
    odds = odds_by_halves(K, DOMAIN < 0, 1 / np.diag(K).mean())[:90]
    odds = np.minimum(odds, 20 * odds.mean())
    means = odds[:60].mean(), odds[60:].mean()
    return np.repeat(means, [60, 30]) * 90 / (60 * means[0] + 30 * means[1])


def weighted_ridge(H, y, weight, T, C):
    """Least squares over weighted rows with a free intercept; C is relative to their mean square norm."""
    A = np.hstack([H, np.ones((len(H), 1))])
    penalty = np.diag([np.mean((H**2).sum(axis=1)) / C] * H.shape[1] + [0.0])
    answer = np.linalg.solve(A.T @ (weight[:, None] * A) + penalty, A.T @ (weight * y))
    return T @ answer[:-1] + answer[-1]


def concatenation(rows, noise):
    H = np.hstack([rows, algorithm_2(rows, noise, 1)[0][1]])
    return np.vstack([H[i] - H[DOMAIN[i] == DOMAIN].mean(axis=0) for i in range(len(H))])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_source_counts_by_the_odds_of_its_rows(rows, y, form):
    model = MSDAClassifier(1, 0.5, 0.8, source_weight="near", dtype="float64")
    model.fit(form(rows), y, sample_domain=DOMAIN)
    weight = expected_weights(rows)
    assert model.source_weights_[1] > 2 * model.source_weights_[0]
    assert_allclose([model.source_weights_[0], model.source_weights_[1]], weight[[0, -1]], rtol=1e-8)
    H = concatenation(rows, 0.5)
    expected = weighted_ridge(H[:90], y[:90], weight, H[90:], 0.8)
    assert_allclose(model.decision_function(form(rows[90:])), expected, rtol=1e-8, atol=1e-9)


def test_by_size_rows_count_alike(rows, y):
    model = MSDAClassifier(1, 0.5, 0.8, dtype="float64").fit(rows, y, sample_domain=DOMAIN)
    H = concatenation(rows, 0.5)
    expected = weighted_ridge(H[:90], y[:90], np.ones(90), H[90:], 0.8)
    assert_allclose(model.decision_function(rows[90:]), expected, rtol=1e-8, atol=1e-9)
    assert model.source_weights_ == {0: 1.0, 1: 1.0}


def test_classes_are_weighed_too(rows, y):
    options = {"class_weight": {-1: 3.0, 1: 0.5}, "dtype": "float64"}
    model = MSDAClassifier(1, 0.5, 0.8, source_weight="near", **options).fit(rows, y, sample_domain=DOMAIN)
    weight = expected_weights(rows) * np.where(y[:90] == 1, 0.5, 3.0)
    H = concatenation(rows, 0.5)
    expected = weighted_ridge(H[:90], y[:90], weight, H[90:], 0.8)
    assert_allclose(model.decision_function(rows[90:]), expected, rtol=1e-8, atol=1e-9)


def test_in_the_primal_too(rows, y, monkeypatch):
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 89)
    model = MSDAClassifier(1, 0.5, 0.8, source_weight="near", dtype="float64", random_state=0)
    scores = model.fit(rows, y, sample_domain=DOMAIN).decision_function(rows[90:])
    H, weight = concatenation(rows, 0.5), expected_weights(rows)
    squares, distances = (H[:90] ** 2).sum(axis=1), []
    for left_out in range(90):  # C is relative to the mean over the rows of a Gram matrix, all but one
        C = 0.8 * squares.mean() / np.delete(squares, left_out).mean()
        distances.append(np.abs(weighted_ridge(H[:90], y[:90], weight, H[90:], C) - scores).max())
    assert min(distances) < 1e-4


def test_a_near_source_is_believed_rather_than_a_far_one(rows, rng):
    truth = np.where(rows[:, 0] > np.median(rows[60:, 0]), 1, -1)
    y = np.where(DOMAIN == 0, -truth, truth)  # the far source says the opposite
    errors = {}
    for name in ("size", "near"):
        model = MSDAClassifier(1, 0.5, source_weight=name).fit(rows, y, sample_domain=DOMAIN)
        errors[name] = 1 - model.score(rows[90:], truth[90:])
    assert errors["near"] < errors["size"] - 0.2


def test_of_many_rows_some_are_looked_at(rows, y, monkeypatch):
    sizes = []
    original = sources_module.anchors

    def spy(*args):
        sizes.append(np.bincount(args[0].domain[args[1]]).tolist())
        return original(*args)

    monkeypatch.setattr(sources_module, "anchors", spy)
    monkeypatch.setattr(sources_module, "SOURCE_ROWS", 80)
    model = MSDAClassifier(1, 0.5, source_weight="near", random_state=0, dtype="float64")
    model.fit(rows, y, sample_domain=DOMAIN)
    assert sizes == [[40, 30]]
    assert model.source_weights_[1] > 1.5 * model.source_weights_[0]


def test_one_source_counts_as_it_is(rows, y):
    one, other = (
        MSDAClassifier(1, 0.5, source_weight=name).fit(rows[:60], y[:60], rows[90:])
        for name in ("size", "near")
    )
    assert_array_equal(one.decision_function(rows), other.decision_function(rows))
    assert other.source_weights_ == {0: 1.0}


def test_saved_and_loaded(rows, y, tmp_path):
    model = MSDAClassifier(1, 0.5, source_weight="near").fit(rows, y, sample_domain=DOMAIN)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert loaded.source_weights_ == model.source_weights_
    assert loaded.source_weight == "near"


def test_refusals(rows, y):
    with pytest.raises(ValueError, match='source_weight="near" needs target rows'):
        MSDAClassifier(1, source_weight="near").fit(rows, y, sample_domain=np.abs(DOMAIN))
    with pytest.raises(ValueError, match="source_weight"):
        MSDAClassifier(1, source_weight="equal").fit(rows, y)
