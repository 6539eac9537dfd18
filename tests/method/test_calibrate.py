"""Probabilities for given class shares, and the error that they lead to expect."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from undrift.method import constants
from undrift.method.calibrate import (
    ExpectedError,
    HeldOut,
    as_logits,
    class_probabilities,
    expect_chance,
    expect_error,
    expect_error_ratio,
    find_border,
    find_offset,
    fit_temperature,
)
from undrift.method.shares import Shares


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


def test_the_border_makes_mean_probabilities_the_shares_for_one_score_and_for_several(rng):
    scores = rng.normal(size=(3000, 1))
    border = find_border(scores, 0.4, np.array([0.15, 0.85]))
    assert border.shape == (1,)
    assert_allclose(expit((scores + border) / 0.4).mean(), 0.85, atol=2e-3)
    both = find_border(np.hstack([-scores / 2, scores / 2]), 0.4, np.array([0.15, 0.85]))
    assert_allclose(both[1] - both[0], border[0], atol=1e-2)


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


def test_rounding_of_scores_does_not_move_the_interval(rng):
    """Of classes far apart: the error depends on the shares alone, so that all temperatures say the same."""
    scores = np.repeat([-9.0, 9.0], [1000, 600])[:, None]
    codes, draws = (scores[:, 0] > 0).astype(int), np.linspace(0.2, 0.33, 25)
    shares, ends = Shares(np.column_stack([1 - draws, draws]), np.zeros(1)), []
    for _ in range(20):
        expected = expect_error(scores + 1e-12 * rng.normal(size=(1600, 1)), 0.5, shares, codes)
        ends.append([expected.low, expected.high])
    assert ends[0][0] < 0.06 < 0.16 < ends[0][1]
    assert_allclose(ends, [ends[0]] * 20, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 25])
def test_the_interval_is_that_of_a_sample_of_the_mixture(rng, n):
    """Three temperatures, with masses 1, 4 and 1 of 6, and of each of them the quantiles of its errors."""
    scores, draws = rng.normal(size=(500, 1)), np.linspace(0.3, 0.6, n)
    codes, errors = (scores[:, 0] > 0).astype(int), []
    for factor in np.exp(constants.LOG_TEMPERATURE_SPREAD * np.sqrt(3) * np.array([-1, 0, 1])):
        logits = scores[:, 0] / (0.5 * factor)
        offsets = [
            brentq(lambda b, share, z: expit(z + b).mean() - share, -40, 40, (s, logits)) for s in draws
        ]
        errors.append([np.where(codes == 1, expit(-logits - b), expit(logits + b)).mean() for b in offsets])
    parts = [np.quantile(row, np.linspace(0, 1, 60001)) for row in np.sort(errors)]
    sample = np.concatenate([parts[0], *[parts[1]] * 4, parts[2]])
    expected = expect_error(scores, 0.5, Shares(np.column_stack([1 - draws, draws]), np.zeros(1)), codes)
    assert expected.error == pytest.approx(np.mean(errors[1]), rel=1e-6)
    ends = np.quantile(sample, [0.05, 0.95])
    ends = [min(ends[0], expected.error), max(ends[1], expected.error)]
    assert_allclose([expected.low, expected.high], ends, rtol=1e-3)


def test_without_doubt_the_expected_error_is_the_mean_probability_of_the_other_classes(rng, set_limits):
    set_limits(LOG_TEMPERATURE_SPREAD=0.0)
    scores = rng.normal(size=(300, 3))
    shares = np.array([0.5, 0.3, 0.2])
    p = softmax(scores / 0.7 + find_offset(scores / 0.7, shares), axis=1)
    codes = p.argmax(axis=1)
    expected = expect_error(scores, 0.7, Shares(shares[None], np.zeros(3)), codes)
    error = 1 - p.max(axis=1).mean()
    assert_allclose([expected.error, expected.low, expected.high], error, rtol=1e-6)
    assert isinstance(expected, ExpectedError)


@pytest.mark.parametrize(("pseudo_weight", "expected"), [(0, 1.0), (50, 0.95), (90, 0.91), (500, 0.88)])
def test_self_training_gains_more_the_more_pseudo_labels_there_are(pseudo_weight, expected):
    assert expect_error_ratio(200, pseudo_weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("probability", "error", "high"), [(0.04, 0.1, 0.2), (0.05, 0.1, 0.5), (0.49, 0.1, 0.5), (0.5, None, 0.5)]
)
def test_bounds_reach_the_error_of_classes_that_are_not_told_apart(probability, error, high):
    shares = Shares(np.array([[0.5, 0.5]]), np.zeros(1), unseparated=probability)
    held_out = HeldOut(np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([0, 1, 1, 1]), np.ones(4))
    allowed = ExpectedError(0.1, 0.05, 0.2).allow_doubts(shares, np.array([0, 1]), held_out)
    assert allowed.describe() == {"error": error, "low": 0.05, "high": high, "known": error is not None}
    better = ExpectedError(0.4, 0.3, 0.6).allow_doubts(shares, np.array([0, 1]), held_out)
    low = 0.3 if error is not None else 0.25  # one of the four held-out rows is wrong
    assert (better.low, better.high) == (low, 0.6)


@pytest.mark.parametrize(("correlation", "share", "expected"), [
    (0.79, 0.3, (0.1, 0.05, 0.3)),  # a fifth more are wrong if the shares are the source's
    (0.81, 0.3, (0.1, 0.05, 0.2)),
    (0.79, 0.05, (None, 0.0, 0.55)),
])  # fmt: skip
def test_bounds_reach_the_error_at_the_source_s_shares_where_source_only_contradicts(
    correlation, share, expected
):
    held_out = HeldOut(np.array([[-1.0], [1.0]]), np.array([0, 1]), np.ones(2))
    shares = Shares(np.array([[1 - share, share]]), np.zeros(1)).compare(
        np.array([0.5, 0.5]), correlation, 0.0
    )
    allowed = ExpectedError(0.1, 0.05, 0.2).allow_doubts(shares, np.array([0, 1]), held_out)
    assert (allowed.error, allowed.low, allowed.high) == pytest.approx(expected)


def test_predictions_that_do_not_depend_on_the_class_are_wrong_by_the_source_s_shares(rng):
    codes, shares = rng.integers(3, size=500), np.array([0.1, 0.2, 0.7])
    truth = rng.choice(3, size=(2000, 1), p=shares)  # of any row
    assert expect_chance(codes, shares) == pytest.approx(np.mean(codes != truth), abs=0.01)


def test_self_training_may_bring_far_more_at_the_lower_end():
    scaled = ExpectedError(0.2, 0.1, 0.3).scale(0.9)
    assert_allclose([scaled.error, scaled.low, scaled.high], [0.18, 0.6 * 0.09, 0.27])
