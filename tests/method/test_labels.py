"""Least squares as a Gaussian process: what labels change, against systems that are solved from scratch."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit
from scipy.stats import norm

from undrift.method.calibrate import ExpectedError
from undrift.method.labels import Seen, measure_error, remove_rows


def make_seen(n=8, n_outputs=1, temperature=0.6, seed=1):
    rng = np.random.RandomState(seed)
    A, scores, border = rng.normal(size=(n, n)), *rng.normal(size=(2, n, n_outputs))
    return Seen(A @ A.T / n, scores, border, rng.randint(max(2, n_outputs), size=n), temperature)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("strength", [0.3, 40.0])
def test_labels_are_learnt_to_the_mode_of_the_posterior(n_outputs, strength):
    """Against a minimiser of the posterior itself; also where scores are far from what labels say."""
    seen = make_seen(n_outputs=n_outputs)
    n, K = len(seen.codes), max(2, n_outputs)

    def loss(g):
        g = g.reshape(n, n_outputs)
        logits = (seen.scores + seen.covariance @ g + seen.border) / seen.temperature
        logits = np.column_stack([np.zeros(n), logits]) if n_outputs < K else logits
        likelihood = log_softmax(logits, axis=1)[np.arange(n), seen.codes].sum()
        return (g * (seen.covariance @ g)).sum() / 2 - 4 * strength * seen.temperature**2 * likelihood

    g, _ = seen.learn(strength)
    best = minimize(loss, np.zeros(n * n_outputs), options={"gtol": 1e-9}).fun
    assert loss(g.ravel()) == pytest.approx(best, rel=1e-6)


def test_labels_leave_one_row_out():
    """With the loss of every other label replaced by its parabola at the mode."""
    seen, strength = make_seen(), 2.0
    (g, left_out), S = seen.learn(strength), seen.covariance
    scores = seen.scores + S @ g
    p = expit((scores + seen.border) / seen.temperature)[:, 0]
    noise, wanted = (
        1 / (4 * strength * p * (1 - p)),
        scores[:, 0] + g[:, 0] / (4 * strength * p * (1 - p)),
    )
    for i in range(len(p)):
        others = np.delete(np.arange(len(p)), i)
        solved = np.linalg.inv((S + np.diag(noise))[np.ix_(others, others)])
        mean = seen.scores[i, 0] + S[i, others] @ solved @ (wanted - seen.scores[:, 0])[others]
        assert left_out[i, 0] == pytest.approx(mean, abs=1e-6)


def test_a_label_against_a_decided_row_has_a_bounded_effect():
    """A step of Newton's method from there would go a hundred times as far."""
    seen = replace(make_seen(1), scores=np.array([[6.0]]), border=np.zeros((1, 1)), codes=np.array([0]))
    g = seen.learn(1.0)[0][0, 0]
    assert -4 * seen.temperature <= g < 0


def test_rows_are_removed_exactly():
    rng = np.random.RandomState(2)
    A = rng.normal(size=(6, 6))
    prior, precision, Y = A @ A.T, rng.uniform(0.1, 2, 6), rng.normal(size=(6, 1))
    precision[2] = 0.0
    after = np.linalg.inv(np.linalg.inv(prior) + np.diag(precision))
    mean = after @ (precision[:, None] * Y)
    removed = remove_rows(after, mean, precision, precision[:, None] * Y)
    np.testing.assert_allclose(removed.covariance, prior, atol=1e-8)
    np.testing.assert_allclose(removed.scores, 0, atol=1e-8)
    g = rng.normal(size=(6, 1))  # coefficients in terms of the prior covariance
    np.testing.assert_allclose(mean + after @ removed.restore(g), prior @ g, atol=1e-8)


@pytest.mark.parametrize("n_wrong", [1, 4, 9])
def test_measured_errors_are_posterior_means(n_wrong):
    """Of rows that are all alike: a binomial likelihood, and half of the prior far from the expectation."""
    doubts, low, high = np.full(50, 0.2), 0.15, 0.26
    measured = measure_error(ExpectedError(0.2, low, high), doubts, doubts[:10], np.arange(10) < n_wrong)
    odds = np.linspace(-12, 12, 40_001)
    middle, spread = (logit(low) + logit(high)) / 2, (logit(high) - logit(low)) / 3.2897
    prior = 0.5 * norm.pdf(odds, middle, spread) + 0.5 * norm.pdf(odds, middle, 1.0)
    weight = prior * expit(odds) ** n_wrong * expit(-odds) ** (10 - n_wrong)
    assert measured.error == pytest.approx(np.average(expit(odds), weights=weight), abs=1e-3)
    ends = expit(np.interp([0.05, 0.95], np.cumsum(weight) / weight.sum(), odds))
    assert (measured.low, measured.high) == pytest.approx(ends, abs=0.01)


def test_measured_errors_allow_for_rows_that_were_chosen_as_doubtful():
    """As many of the doubtful rows are wrong as was to be expected: the error stays as it was."""
    doubts, expected = np.concatenate([np.full(400, 0.1), np.full(100, 0.5)]), ExpectedError(0.18, 0.1, 0.3)
    measured = measure_error(expected, doubts, doubts[400:460], np.arange(60) < 30)
    assert measured.error == pytest.approx(0.18, abs=0.02)
