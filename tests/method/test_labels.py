"""Least squares as a Gaussian process: what labels change, against systems that are solved from scratch."""

import numpy as np
import pytest
from scipy.special import expit

from undrift.method.labels import (
    Evidence,
    choose_label_weight,
    learn_evidence,
    remove_rows,
    take_source_rows,
    weigh_evidence,
)
from undrift.method.solve import Posterior


def test_posterior_is_that_of_a_gaussian_process():
    rng = np.random.RandomState(0)
    H, other, noise = rng.normal(size=(30, 5)), rng.normal(size=(4, 5)), rng.uniform(0.5, 2, size=30)
    large = 1e7  # a wide prior of the intercept stands for a free one
    K = H @ H.T + large
    P = np.linalg.inv(H @ H.T + np.diag(noise))
    rows = Posterior(P).condition(H @ other.T)
    cross = other @ H.T + large
    expected = other @ other.T + large - cross @ np.linalg.solve(K + np.diag(noise), cross.T)
    np.testing.assert_allclose(rows.covariance(other @ other.T), expected, rtol=1e-3, atol=1e-3)


def test_labels_leave_one_row_out():
    rng = np.random.RandomState(1)
    A, precision, residual = rng.normal(size=(8, 8)), rng.uniform(0.5, 2, (8, 2)), rng.normal(size=(8, 2))
    S, f = A @ A.T, rng.normal(size=(8, 2))
    learning = learn_evidence(S, f, Evidence(precision, residual), 0.7)
    for k in range(2):
        noise = np.diag(1 / (0.7 * precision[:, k]))
        np.testing.assert_allclose((S + noise) @ learning.g[:, k], residual[:, k])
        for i in range(8):
            others = np.delete(np.arange(8), i)
            M = (S + noise)[np.ix_(others, others)]
            expected = f[i, k] + S[i, others] @ np.linalg.solve(M, residual[others, k])
            np.testing.assert_allclose(learning.left_out[i, k], expected)


@pytest.mark.parametrize("code", [0, 1])
def test_evidence_is_the_log_loss_to_second_order(code):
    f, temperature, C, h = 0.4, 0.7, 1.3, 1e-4
    seen = weigh_evidence(np.array([[f]]), np.array([code]), temperature, C)

    def loss(score):
        return -np.log(expit(score / temperature if code else -score / temperature))

    # precision / 2 (residual - change)^2 has the slope and the curvature of the loss, times a constant
    slope = (loss(f + h) - loss(f - h)) / (2 * h)
    curvature = (loss(f + h) - 2 * loss(f) + loss(f - h)) / h**2
    assert seen.residual[0, 0] == pytest.approx(-slope / curvature, rel=1e-5)
    undecided = weigh_evidence(np.array([[0.0]]), np.array([code]), temperature, C)
    assert undecided.precision[0, 0] == pytest.approx(C)  # that of a labelled source row
    assert seen.precision[0, 0] / C == pytest.approx(4 * temperature**2 * curvature, rel=1e-5)


def test_evidence_of_several_classes_is_that_of_each_against_the_rest():
    scores, codes = np.random.RandomState(5).normal(size=(4, 3)), np.array([0, 1, 2, 1])
    seen = weigh_evidence(scores, codes, 0.6, 1.0)
    p = np.exp(scores / 0.6) / np.exp(scores / 0.6).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(seen.precision, 4 * np.maximum(p * (1 - p), 0.01))
    np.testing.assert_allclose(seen.precision * seen.residual / 4, 0.6 * (np.eye(3)[codes] - p))


def test_source_rows_are_left_out_exactly():
    rng = np.random.RandomState(4)
    n, m, part = 20, 5, 0.3
    H, wanted, J = rng.normal(size=(n + 8, 3)), rng.normal(size=(n + 8, 1)), n + np.arange(m)
    weight = np.concatenate([rng.uniform(0.5, 2, n), [0.5] * 8])  # the last 8 rows have pseudo-labels
    posterior = Posterior(np.linalg.inv(H @ H.T + np.diag(1 / weight)))
    rows = posterior.condition(H @ H[J].T)
    covariance, K = rows.covariance(H[J] @ H[J].T), H[J] @ H[J].T

    def solve(without=None, pseudo=True, labels=None):
        """Explicit features: shared ones, those of labelled target rows, an intercept."""
        H_all, w, z = np.hstack([H, np.zeros((n + 8, 3))]), weight.copy(), wanted[:, 0].copy()
        if not pseudo:
            w[J] = 0
        if labels is not None:
            w[J], z[J], H_all[J, 3:] = labels[0], labels[1], np.sqrt(part) * H[J]
        if without is not None:
            w[without] = 0
        A, penalty = np.hstack([H_all, np.ones((n + 8, 1))]), np.diag([1.0] * 6 + [0.0])
        solution = np.linalg.solve(A.T @ (w[:, None] * A) + penalty, A.T @ (w * z))
        return np.hstack([H, np.zeros((n + 8, 3)), np.ones((n + 8, 1))]) @ solution  # as source rows

    before = weight[J]
    apart = remove_rows(covariance, solve()[J][:, None], before, before[:, None] * wanted[J])
    np.testing.assert_allclose(apart.scores[:, 0], solve(pseudo=False)[J], atol=1e-8)
    seen = Evidence(rng.uniform(0.5, 2, (m, 1)), rng.normal(size=(m, 1)))
    source = take_source_rows(posterior, rows, wanted, n)
    for strength in (0.0, 0.7):
        learning = learn_evidence(apart.covariance + part * K, apart.scores, seen, strength)
        scores = source.score_left_out(apart, learning)
        labels = strength * seen.precision[:, 0], (apart.scores + seen.residual)[:, 0]
        expected = [solve(without=i, labels=labels)[i] for i in range(n)]
        np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8)


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


def test_weight_of_labels_is_chosen_by_labels_left_out():
    noise = np.random.RandomState(3).normal(size=(2, 40))

    def choose(target, source, n_source=4000):
        """Losses of both domains by weight, those of the first weight are around 1."""

        def measure(weight):
            means = target.get(weight, 1.0), source.get(weight, 1.0)
            spread = 0.3 if weight == 4 else 0.0
            return means[0] + spread * noise[0], np.full(n_source, means[1])

        return choose_label_weight(measure)

    assert choose({}, {}) == 4
    assert choose({1.0: 0.95}, {}) == 4  # within what chance does
    assert choose({1.0: 0.5}, {}) == 1
    assert choose({1.0: 0.5, 8.0: 0.6}, {1.0: 1.3}) == 8  # the source has a say
    assert choose({1.0: 0.5}, {1.0: 1.6}) == 4
    assert choose({}, {0.0: 0.5}) == 0
    # both count alike, however many rows there are
    assert choose({1.0: 0.5}, {1.0: 1.3}, n_source=40) == choose({1.0: 0.5}, {1.0: 1.3}) == 1
