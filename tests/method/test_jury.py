"""Votes of readings, and what labels say of a mixture, by hand and by SciPy's optimisers."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax
from scipy.stats import norm

from undrift.method import jury
from undrift.method.jury import (
    estimate,
    find_mix,
    fit_correction,
    leave_one_out,
    measure_information,
    mix,
    weigh,
)
from undrift.method.settings import VoteSettings

SETTINGS = VoteSettings()
HALF_A_STEP = 0.025 / 4 + 3e-4  # of the corrections of log odds, as a share


@pytest.fixture(params=[2, 3])
def n_classes(request):
    return request.param


@pytest.fixture
def p(rng, n_classes):
    """Probabilities of four readings for seven rows."""
    return softmax(1.5 * rng.normal(size=(4, 7, n_classes)), axis=2)


VOTES = np.array([0.4, 0.3, 0.2, 0.1])


def by_bayes(votes, given, n_classes, doubt):
    """Multiply by the probability of every label, one after another."""
    after = [float(vote) for vote in votes]
    for r, row in enumerate(given):
        for probability in row:
            after[r] *= (1 - doubt) * probability + doubt / n_classes
    return np.array(after) / sum(after)


@pytest.mark.parametrize("doubt", [0.2, 0.7])
def test_votes_are_weighed_by_bayes_rule(p, n_classes, doubt):
    codes = np.arange(7) % n_classes
    given = p[:, np.arange(7), codes]
    assert_allclose(weigh(VOTES, given, n_classes, doubt), by_bayes(VOTES, given, n_classes, doubt))
    assert_allclose(weigh(VOTES, given[:, :0], n_classes, doubt), VOTES)
    without = leave_one_out(VOTES, given, n_classes, doubt)
    for i in range(7):
        kept = np.delete(given, i, axis=1)
        assert_allclose(without[i], by_bayes(VOTES, kept, n_classes, doubt))
    assert leave_one_out(VOTES, given[:, :0], n_classes, doubt).shape == (0, 4)


def test_no_label_excludes_a_reading_and_one_without_votes_gets_none(n_classes):
    sure = np.array([[1.0, 1.0], [0.0, 0.0]])
    after = weigh(np.array([0.5, 0.5]), sure, n_classes, 0.2)
    odds = ((0.8 + 0.2 / n_classes) / (0.2 / n_classes)) ** 2
    assert_allclose(after[0] / after[1], odds)
    assert weigh(np.array([1.0, 0.0]), sure[::-1], n_classes, 0.2)[1] < 1e-100


def test_a_mixture_is_the_weighted_mean(p):
    expected = sum(vote * each for vote, each in zip(VOTES, p, strict=True))
    assert_allclose(mix(VOTES, p), expected)
    assert_allclose(mix(5 * VOTES, p), expected)


def test_information_is_that_of_the_joint_distribution(p, n_classes):
    """Summed over every pair of reading and label."""
    found = measure_information(3 * VOTES, p, 0.3)
    for i in range(7):
        told = 0.0
        for r, k in product(range(4), range(n_classes)):
            given = [0.7 * p[s, i, k] + 0.3 / n_classes for s in range(4)]
            joint, label = VOTES[r] * given[r], sum(VOTES[s] * given[s] for s in range(4))
            told += joint * np.log(joint / (VOTES[r] * label))
        assert found[i] == pytest.approx(told, abs=1e-12)


# -- what labels say of the mixture as a whole --


@pytest.fixture
def labelled(rng, n_classes):
    """Probabilities and classes of labelled rows, of a mixture that is off."""
    p = softmax(rng.normal(size=(30, n_classes)), axis=1)
    truth = softmax(np.log(p) + np.arange(n_classes), axis=1)
    return p, np.array([rng.choice(n_classes, p=own) for own in truth])


@pytest.mark.parametrize("spread", [0.3, 1.0])
@pytest.mark.parametrize("trust", [1.0, 0.4])
def test_the_correction_is_the_mode_of_its_posterior(labelled, n_classes, spread, trust):
    p, codes = labelled

    def loss(correction):
        likelihood = np.log(softmax(np.log(p) + correction, axis=1)[np.arange(30), codes])
        return (correction**2).sum() / (2 * spread**2) - trust * likelihood.sum()

    mode, covariance = fit_correction(np.log(p), codes, n_classes, spread, trust)
    best = minimize(loss, np.zeros(n_classes), options={"gtol": 1e-8}).x
    assert_allclose(mode, best, atol=1e-5)
    step, hessian = 1e-4, np.empty((n_classes, n_classes))
    for i, j in product(range(n_classes), repeat=2):
        a, b = step * np.eye(n_classes)[[i, j]]
        plus, minus = loss(mode + a + b) + loss(mode - a - b), loss(mode + a - b) + loss(mode - a + b)
        hessian[i, j] = (plus - minus) / (4 * step**2)
    assert_allclose(covariance, np.linalg.inv(hessian), rtol=1e-4, atol=1e-6)


def test_a_correction_from_far_away_is_found(n_classes):
    """All labels contradict the mixture: Newton's method alone would overshoot."""
    logs = np.log(np.array([[1 - 1e-6 * (n_classes - 1)] + [1e-6] * (n_classes - 1)] * 200))
    mode, _ = fit_correction(logs, np.ones(200, dtype=int), n_classes, 10.0)
    slope = 200 * ((np.arange(n_classes) == 1) - softmax(logs[0] + mode)) - mode / 100
    assert_allclose(slope, 0, atol=1e-5)


def test_without_labels_shares_and_error_are_the_mixture_s(rng, n_classes):
    p = softmax(1.5 * rng.normal(size=(400, n_classes)), axis=1)
    found = estimate(p, p[:0], np.zeros(0, dtype=int), SETTINGS)
    assert_allclose(found.shares, p.mean(axis=0))
    assert found.error == pytest.approx((1 - p.max(axis=1)).mean())
    assert found.low < found.error < found.high
    assert (found.shares_interval[:, 0] < found.shares).all()
    assert (found.shares_interval[:, 1] > found.shares).all()
    for true, predicted in product(range(n_classes), repeat=2):
        share = sum(row[true] for row in p if row.argmax() == predicted) / 400
        assert found.confusion[true, predicted] == pytest.approx(share)
    assert found.confusion.sum() == pytest.approx(1)
    assert 1 - np.trace(found.confusion) == pytest.approx(found.error)


def test_the_interval_of_the_error_without_labels_is_that_of_its_prior(rng):
    p = softmax(1.5 * rng.normal(size=(400, 2)), axis=1)
    found = estimate(p, p[:0], np.zeros(0, dtype=int), SETTINGS)
    ends = norm.ppf([0.05, 0.95]) * SETTINGS.error_spread
    assert_allclose([found.low, found.high], expit(logit(found.error) + ends), atol=1e-3)
    narrower = estimate(
        p, p[:0], np.zeros(0, dtype=int), VoteSettings(error_spread=SETTINGS.error_spread / 2)
    )
    assert found.high - found.low > 1.5 * (narrower.high - narrower.low)


@pytest.mark.parametrize("n_wrong", [0, 4, 15])
def test_the_error_after_labels_is_the_mean_of_its_posterior(n_wrong):
    """Of rows that are all alike: a binomial likelihood, integrated numerically."""
    p, n = np.tile([0.3, 0.7], (300, 1)), 20
    codes = (np.arange(n) >= n_wrong).astype(int)

    def density(correction, trust):
        error = expit(logit(0.3) + correction)
        prior = norm.pdf(correction, scale=SETTINGS.error_spread)
        return prior * (error**n_wrong * (1 - error) ** (n - n_wrong)) ** trust

    found = estimate(p, p[:n], codes, SETTINGS)
    total = quad(density, -6, 6, args=(1.0,), epsabs=0)[0]
    mean = quad(lambda c: expit(logit(0.3) + c) * density(c, 1.0), -6, 6, epsabs=0)[0] / total
    assert found.error == pytest.approx(mean, abs=1e-4)
    corrections = np.linspace(-6, 6, 20_001)
    tail = np.cumsum(density(corrections, SETTINGS.interval_trust))
    ends = expit(logit(0.3) + np.interp([0.05, 0.95], tail / tail[-1], corrections))
    expected = [min(ends[0], found.error), max(ends[1], found.error)]
    assert_allclose([found.low, found.high], expected, atol=HALF_A_STEP)


def test_labels_move_shares_and_error_their_way(labelled, rng, n_classes):
    p = softmax(rng.normal(size=(500, n_classes)), axis=1)
    before = estimate(p, p[:0], np.zeros(0, dtype=int), SETTINGS)
    of_last = estimate(p, p[:30], np.full(30, n_classes - 1), SETTINGS)
    assert of_last.shares[-1] > before.shares[-1] + 0.1
    assert of_last.shares.sum() == pytest.approx(1)
    right = estimate(p, p[:30], p[:30].argmax(axis=1), SETTINGS)
    wrong = estimate(p, p[:30], p[:30].argmin(axis=1), SETTINGS)
    assert right.error < before.error < wrong.error
    assert right.high < before.high < wrong.high


def test_errors_of_classes_add_up_to_the_error_that_labels_show(labelled, rng, n_classes):
    """The doubt of every row is corrected; among themselves its other classes keep their odds."""
    given, codes = labelled
    p = softmax(2 * rng.normal(size=(200, n_classes)), axis=1)
    found = estimate(p, given, codes, SETTINGS)
    assert 1 - np.trace(found.confusion) == pytest.approx(found.error)
    assert abs(found.error - (1 - p.max(axis=1)).mean()) > 0.02
    guesses = p.argmax(axis=1)
    assert_allclose(found.confusion.sum(axis=0), np.bincount(guesses, minlength=n_classes) / 200)
    one = estimate(p[:1], given, codes, SETTINGS).confusion[:, guesses[0]]
    others = np.delete(np.arange(n_classes), guesses[0])
    assert_allclose(one[others] / one[others].sum(), p[0, others] / p[0, others].sum())


def test_the_mix_that_labels_show_is_a_mean_over_corrections(labelled, rng, n_classes):
    given, codes = labelled
    p = softmax(rng.normal(size=(200, n_classes)), axis=1)
    mode, covariance = fit_correction(np.log(given), codes, n_classes, 1.0)
    draws = np.random.default_rng(5).multivariate_normal(mode, covariance, 1500)
    expected = np.mean([softmax(np.log(p) + draw, axis=1).mean(axis=0) for draw in draws], axis=0)
    assert_allclose(find_mix(p, given, codes, 1.0), expected, atol=0.025)
    assert_allclose(
        estimate(p, given, codes, VoteSettings(spread=1.0)).shares, find_mix(p, given, codes, 1.0)
    )


def test_labels_count_less_in_intervals(labelled, rng, n_classes):
    """An interval has the width of one from `interval_trust` as many labels, copies of which add up."""
    given, codes = labelled
    p = softmax(rng.normal(size=(300, n_classes)), axis=1)
    half = estimate(p, np.tile(given, (2, 1)), np.tile(codes, 2), VoteSettings(interval_trust=0.5))
    whole = estimate(p, given, codes, VoteSettings(interval_trust=1.0))
    # ends do not pass the shares, which twice the labels move
    inside = (whole.shares_interval[:, 0] < half.shares) & (half.shares < whole.shares_interval[:, 1])
    assert inside.all()
    assert_allclose(half.shares_interval, whole.shares_interval, atol=1e-9)
    few = estimate(p, given, codes, VoteSettings(interval_trust=0.1))
    assert (np.ptp(few.shares_interval, axis=1) > np.ptp(whole.shares_interval, axis=1)).all()


@pytest.mark.slow
def test_intervals_of_shares_hold_after_random_labels(rng, n_classes):
    """Labels of rows drawn from a mixture that is off by its own prior: 90% intervals hold, at 30 labels."""
    held = []
    for _ in range(50):
        p = softmax(1.5 * rng.normal(size=(120, n_classes)), axis=1)
        truth = softmax(np.log(p) + rng.normal(size=n_classes), axis=1)
        codes = (rng.random((120, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        found = estimate(p, p[:30], codes[:30], SETTINGS)
        shares = np.bincount(codes, minlength=n_classes) / 120
        held.append((found.shares_interval[:, 0] <= shares) & (shares <= found.shares_interval[:, 1]))
    assert np.mean(held) > 0.85


def test_probabilities_of_zero_are_survived():
    p = np.array([[1.0, 0.0]] * 5)
    found = estimate(p, p[:2], np.array([1, 0]), SETTINGS)
    assert np.isfinite([found.error, found.low, found.high, *found.shares]).all()
    assert found.error > estimate(p, p[:2], np.array([0, 0]), SETTINGS).error
    assert jury._CORRECTIONS[0] == -jury._CORRECTIONS[-1]
