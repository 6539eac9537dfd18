"""Probabilities for given class shares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from undrift.method.scores import (
    as_logits,
    class_probabilities,
    find_border,
    find_offset,
    fit_temperature,
)


def test_the_temperature_is_that_of_a_logistic_regression(rng):
    codes = (rng.random(600) < 0.3).astype(int)
    scores = 0.4 * (2 * codes - 1) + 0.5 * rng.normal(size=600)
    weight = np.where(codes == 1, 0.5 / codes.mean(), 0.5 / (1 - codes.mean()))
    regression = LogisticRegression(C=np.inf, tol=1e-10).fit(scores[:, None], codes, sample_weight=weight)
    temperature = fit_temperature(scores[:, None], codes, weight)
    assert_allclose(temperature, 1 / regression.coef_[0, 0], rtol=1e-3)


def test_the_temperature_does_not_depend_on_offsets_and_follows_the_scale(rng):
    codes = rng.integers(3, size=500)
    scores = 1.5 * (codes[:, None] == np.arange(3)) + rng.normal(size=(500, 3))
    first = fit_temperature(scores, codes, np.ones(500))
    assert_allclose(
        fit_temperature(scores + np.array([1.0, -2.0, 0.5]), codes, np.ones(500)), first, rtol=1e-2
    )
    assert_allclose(fit_temperature(100 * scores, codes, np.ones(500)), 100 * first, rtol=1e-3)


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.2, 0.3, 0.5), (0.7, 0.299, 0.001), (1.0, 0.0)])
def test_mean_probabilities_become_the_shares(rng, shares):
    logits = 3 * rng.normal(size=(400, len(shares)))
    offset = find_offset(logits, np.array(shares))
    assert_allclose(softmax(logits + offset, axis=1).mean(axis=0), shares, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 2, 6, 10])
def test_offsets_of_logits_far_apart_are_found(seed):
    """Newton's method alone goes to and fro there."""
    logits, shares = 30 * np.random.default_rng(seed).normal(size=(20, 3)), np.array([0.9, 0.09, 0.01])
    assert_allclose(softmax(logits + find_offset(logits, shares), axis=1).mean(axis=0), shares, atol=1e-7)


def test_the_border_makes_mean_probabilities_the_shares_for_one_score_and_for_several(rng):
    scores = rng.normal(size=(3000, 1))
    border = find_border(scores, 0.4, np.array([0.15, 0.85]))
    assert border.shape == (1,)
    assert_allclose(expit((scores + border) / 0.4).mean(), 0.85, atol=2e-3)
    both = find_border(np.hstack([-scores / 2, scores / 2]), 0.4, np.array([0.15, 0.85]))
    assert_allclose(both[1] - both[0], border[0], atol=1e-2)


def test_the_border_of_several_scores_is_of_all_rows(rng):
    """Rows of two classes have an order, so that few stand for all; those of three have none."""
    scores, shares = rng.gumbel(size=(3000, 3)), np.array([0.2, 0.3, 0.5])
    p = class_probabilities(scores + find_border(scores, 0.4, shares), 0.4)
    assert_allclose(p.mean(axis=0), shares, atol=1e-7)


def test_probabilities_are_the_logistic_and_the_softmax():
    scores = np.array([[0.3], [-0.8]])
    probability = expit(scores[:, 0] / 0.5)
    expected = np.column_stack([1 - probability, probability])
    assert_allclose(class_probabilities(scores, 0.5), expected, rtol=1e-12)
    assert_allclose(as_logits(scores), [[0, 0.3], [0, -0.8]])
    scores = np.array([[1.0, 2.0, -1.0]])
    expected = np.exp(scores / 0.5) / np.exp(scores / 0.5).sum()
    assert_allclose(class_probabilities(scores, 0.5), expected)


def test_the_temperature_is_that_of_the_labels(rng):
    scores = rng.normal(size=(20000, 3))
    levels = np.cumsum(softmax(scores / 2.0, axis=1), axis=1)
    codes = (rng.uniform(size=(20000, 1)) > levels).sum(axis=1)
    assert_allclose(fit_temperature(scores, codes, np.ones(20000)), 2.0, rtol=0.1)
