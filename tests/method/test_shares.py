"""Class shares from scores alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import logit
from scipy.stats import norm, t

from undrift.method.problem import check_shares
from undrift.method.scores import (
    SHARES,
    SourceScores,
    find_midpoint,
    find_posteriors,
    thin_rows,
    weigh_grid,
)
from undrift.method.settings import ShareSettings

SETTINGS = ShareSettings()


def draw_scores(rng, n, share, separation=1.2, midpoint=0.0, spread=0.5):
    """Scores of two classes, and which of them are of the upper one."""
    is_upper = np.arange(n) < round(share * n)
    return midpoint + spread * (rng.normal(size=n) + np.where(is_upper, separation, -separation)), is_upper


def posterior_by_hand(target, source, is_class, slope=1.9, spread_of_loss=0.21, midpoint_spread=0.4):
    """The posterior of the module's docstring, one grid point at a time with SciPy's densities.

    Returned are the posterior of the shares and the mean of the midpoint.
    """
    upper, lower = source[is_class], source[~is_class]
    spread = np.sqrt((upper.var() + lower.var()) / 2)
    separation, center = (upper.mean() - lower.mean()) / 2 / spread, (upper.mean() + lower.mean()) / 2
    middle, n = np.log(min(separation, 3)), min(len(target), 300)
    grid = np.arange(np.log(0.1), middle + 1, 0.1)
    table = np.zeros((101, len(grid)))
    midpoints = np.zeros(table.shape)
    same = norm.pdf(np.linspace(0, 1, 101), is_class.mean(), 0.02)

    def odds_density(log_odds):
        """Density of log odds that differ from the source's by twice Student's t."""
        return t.pdf(log_odds, 5, logit(is_class.mean()), 2)

    for i, share in enumerate(np.linspace(0, 1, 101)):
        moved = quad(odds_density, *logit(np.clip([share - 0.005, share + 0.005], 0, 1)), epsabs=1e-12)[0]
        for j, log_d in enumerate(grid):
            d = np.exp(log_d)
            s = np.sqrt(target.var() / (1 + 4 * share * (1 - share) * d**2))
            midpoint = target.mean() - (2 * share - 1) * d * s
            density = share * norm.pdf(target, midpoint + d * s, s)
            density = density + (1 - share) * norm.pdf(target, midpoint - d * s, s)
            expected = middle + slope * np.log(s / spread)
            prior = norm.pdf(midpoint - center, 0, midpoint_spread * s) * s
            prior *= 0.1 * t.pdf(log_d, 5, expected, spread_of_loss)
            prior *= 0.5 * same[i] / same.sum() + 0.5 * moved
            table[i, j] = np.log(density).mean() * n + np.log(prior)
            midpoints[i, j] = midpoint
    table = np.exp(table - table.max())
    table /= table.sum()
    return table.sum(axis=1), (table * midpoints).sum()


@pytest.mark.slow
@pytest.mark.parametrize(("n", "separation"), [(80, 1.2), (400, 1.2), (400, 0.2), (400, 8.0)])
def test_the_posterior_is_that_of_the_model(rng, n, separation):
    target, _ = draw_scores(rng, n, 0.8, midpoint=0.2)
    source, is_class = draw_scores(rng, 200, 0.4, separation)
    source[is_class] = 1.4 * source[is_class] - 0.4 * source[is_class].mean()
    held_out = SourceScores(source[:, None], is_class.astype(int), 2)
    grid, midpoints = weigh_grid(target, held_out, 0, 1, None, SETTINGS)
    weight, midpoint = grid.sum(axis=1), (grid * midpoints).sum()
    expected, expected_midpoint = posterior_by_hand(target, source, is_class)
    assert_allclose(weight, expected, rtol=1e-7, atol=1e-12)
    assert_allclose(midpoint, expected_midpoint, rtol=1e-7)
    assert separation != 1.2 or 0.6 < weight @ SHARES < 0.95
    posteriors = find_posteriors(target[:, None], held_out, SETTINGS)
    assert_allclose(posteriors, [expected[::-1], expected], atol=1e-9)


def test_a_known_share_leaves_only_the_midpoint_to_be_estimated(rng):
    target, _ = draw_scores(rng, 1000, 0.8, midpoint=0.15)
    source, is_class = draw_scores(rng, 1000, 0.5)
    held_out = SourceScores(source[:, None], is_class.astype(int), 2)
    midpoint = find_midpoint(target[:, None], held_out, np.array([0.2, 0.8]), SETTINGS)
    assert_allclose(midpoint, [0.15], atol=0.06)
    other = find_midpoint(target[:, None], held_out, np.array([0.8, 0.2]), SETTINGS)
    assert other > midpoint + 0.3  # more of the scores are then of the lower class
    grid, _ = weigh_grid(target, held_out, 0, 1, 0.8, SETTINGS)
    assert grid.shape[0] == 1
    assert grid.sum() == pytest.approx(1)


def test_the_shares_of_several_classes_are_recovered(rng):
    wanted = np.array([0.6, 0.3, 0.1])

    def draw(n, shares):
        codes = np.repeat(np.arange(3), np.round(n * shares).astype(int))
        return 0.3 * rng.normal(size=(len(codes), 3)) + np.where(
            codes[:, None] == np.arange(3), 0.8, -0.8
        ), codes

    target, _ = draw(2000, wanted)
    source, codes = draw(999, np.full(3, 1 / 3))
    held_out = SourceScores(source, codes, 3)
    means = find_posteriors(target, held_out, SETTINGS) @ SHARES
    assert_allclose(means, wanted, atol=0.05)
    assert_allclose(held_out.shares, 1 / 3)
    assert held_out.outputs == [(0, 0), (1, 1), (2, 2)]
    for shares in (wanted, wanted[::-1]):
        midpoint = find_midpoint(target, held_out, shares, SETTINGS)
        assert midpoint.shape == (3,)
        alone = [
            find_midpoint(
                target[:, [k]],
                SourceScores(source[:, [k]], (codes == k).astype(int), 2),
                np.array([1 - shares[k], shares[k]]),
                SETTINGS,
            )[0]
            for k in range(3)
        ]
        assert_allclose(midpoint, alone)


def test_rows_are_thinned_evenly(rng):
    values = rng.permutation(5 * 500)
    assert_allclose(thin_rows(values, values, 500), 2 + 5 * np.arange(500))
    assert_allclose(thin_rows(values[:7], values[:7], 500), values[:7])
    assert_allclose(thin_rows(values, -values, 1), np.sort(values)[-1 - len(values) // 2])


CLASSES = np.array(["bad", "good"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bad": 0.5, "good": 0.4}, r" sum to 0.9, not to 1: \{'bad': 0.5, 'good': 0.4\}"),
        ({"bad": 0.5, "fair": 0.5}, " names 'fair', which is not a class; the classes are 'bad', 'good'"),
        ({"bad": 1.0}, " lacks 'good'; give the share of every class: 'bad', 'good'"),
        ({"bad": -0.2, "good": 1.2}, " of 'bad' is -0.2; shares are numbers between 0 and 1"),
        ({"bad": float("nan"), "good": 1.0}, " of 'bad' is nan; shares are numbers between 0 and 1"),
        ({"bad": "half", "good": 0.5}, " of 'bad' is 'half'; shares are numbers"),
        (
            {"garden": {"bad": 0.5, "good": 0.5}},
            " names 'garden', which is not a target; the targets are",
        ),
        ("Source", r"='Source' is not known; pass 'source', or a dict: class -> share"),
    ],
)
def test_shares_that_cannot_be_meant_are_refused_in_one_line(given, message):
    with pytest.raises(ValueError, match=f"^target_shares{message}[^\n]*$"):
        check_shares(given, CLASSES, ["k"])


def test_shares_of_another_type_are_refused_in_one_line():
    with pytest.raises(TypeError, match=r"^target_shares must be a dict, .*; got \[0.5, 0.5\]$"):
        check_shares([0.5, 0.5], CLASSES, ["k"])


def test_known_shares_are_ordered_as_the_classes():
    assert check_shares(None, CLASSES, ["a", "b"]) == [None, None]
    assert check_shares({"good": 0.7, "bad": 0.3}, CLASSES, ["a", "b"]) == [[0.3, 0.7]] * 2
    assert check_shares({"b": {"good": 0.7, "bad": 0.3}}, CLASSES, ["a", "b"]) == [None, [0.3, 0.7]]
    (nearly,) = check_shares({"bad": 0.333, "good": 0.66}, CLASSES, ["a"])
    assert nearly == pytest.approx([0.333 / 0.993, 0.66 / 0.993])
    with pytest.raises(ValueError, match="needs target rows, and there are none: pass X_target"):
        check_shares({"bad": 0.5, "good": 0.5}, CLASSES, [])
