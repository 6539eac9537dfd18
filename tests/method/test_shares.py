"""Class shares from scores alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm, t

from undrift.method import constants
from undrift.method import shares as shares_module
from undrift.method.calibrate import HeldOut
from undrift.method.constants import PAIR, SEVERAL_DOMAINS
from undrift.method.shares import (
    Labelled,
    Mixture,
    Rescored,
    Shares,
    estimate_shares,
    find_quantiles,
    make_grid,
    thin_rows,
    weigh_batch,
)


def draw_scores(rng, n, share, separation=1.2, midpoint=0.0, spread=0.5):
    """Scores of two classes, and which of them are of the upper one."""
    is_upper = np.arange(n) < round(share * n)
    return midpoint + spread * (rng.normal(size=n) + np.where(is_upper, separation, -separation)), is_upper


def posterior_by_hand(
    target, source, is_class, loss=-0.2, slope=0.0, spread_of_loss=0.2, midpoint_spread=0.35
):
    """The posterior of the module's docstring, one grid point at a time with SciPy's densities.

    Returned are the posterior of the shares, the mean of the midpoint, and the probability of one class.
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
            expected = middle + loss + slope * np.log(s / spread)
            prior = norm.pdf(midpoint - center, 0, midpoint_spread * s) * s
            prior *= 0.1 * t.pdf(log_d, 5, expected, spread_of_loss)
            prior *= 0.5 * same[i] / same.sum() + 0.5 * moved
            table[i, j] = np.log(density).mean() * n + np.log(prior)
            midpoints[i, j] = midpoint
    one = norm.logpdf(target, target.mean(), target.std()).mean() * n
    one += np.log(t.pdf(target.mean() - center, 2, 0, 1.5 * target.std()) * target.std())
    odds = 0.15 / 0.85 * np.exp(one - table.max()) / np.exp(table - table.max()).sum()
    table = np.exp(table - table.max())
    table /= table.sum()
    return table.sum(axis=1), (table * midpoints).sum(), odds / (1 + odds)


@pytest.mark.parametrize(("n", "separation"), [(80, 1.2), (400, 1.2), (400, 0.2), (400, 8.0)])
def test_the_posterior_is_that_of_the_model(rng, n, separation):
    target, _ = draw_scores(rng, n, 0.8, midpoint=0.2)
    source, is_class = draw_scores(rng, 200, 0.4, separation)
    source[is_class] = 1.4 * source[is_class] - 0.4 * source[is_class].mean()
    grid = make_grid(target, source, is_class)
    weight, midpoint = grid.weigh()
    expected, expected_midpoint, unseparated = posterior_by_hand(target, source, is_class)
    assert_allclose(weight, expected, rtol=1e-7, atol=1e-12)
    assert_allclose(midpoint, expected_midpoint, rtol=1e-7)
    assert_allclose(grid.unseparated, unseparated, rtol=1e-6, atol=1e-12)
    assert separation < 1 or 0.7 < weight @ np.linspace(0, 1, 101) < 0.9


def test_an_interval_has_the_spread_of_the_log_odds_beside_that_of_the_posterior():
    draws = np.linspace(0.2, 0.6, 25)
    low, high = Shares(np.column_stack([1 - draws, draws]), np.zeros(1)).interval()[1]
    ends = np.quantile(draws, [0.05, 0.95])
    reach = np.sqrt((logit(ends) - logit(0.4)) ** 2 + (1.6448536 * 0.4) ** 2)
    assert_allclose([low, high], expit(logit(0.4) + reach * np.array([-1, 1])), rtol=1e-6)


@pytest.mark.parametrize(("center", "is_doubtful"), [(-0.6, True), (-1.5, True), (0.0, False)])
def test_scores_of_one_group_near_one_class_may_be_of_classes_that_are_not_told_apart(
    rng, center, is_doubtful
):
    target = center + 0.35 * rng.normal(size=800)
    if not is_doubtful:
        target, _ = draw_scores(rng, 800, 0.15, separation=1.5)
    source, is_class = draw_scores(rng, 1000, 0.5, separation=1.5)
    given = target[:, None], source[:, None], is_class.astype(int), 2
    shares = estimate_shares(*given, transfer=PAIR)
    assert shares.is_doubtful is is_doubtful
    seen = Labelled(target[:30, None], np.zeros(30, dtype=int))
    labelled = estimate_shares(*given, labelled=seen, transfer=PAIR)  # labels measure shares and error
    assert (shares.spread, labelled.spread, labelled.unseparated) == (0.4, 0, 0)


def test_known_shares_are_taken_and_only_the_midpoint_is_estimated(rng):
    target, _ = draw_scores(rng, 1000, 0.8, midpoint=0.15)
    source, is_class = draw_scores(rng, 1000, 0.5)
    shares = estimate_shares(target[:, None], source[:, None], is_class.astype(int), 2, known=[0.2, 0.8])
    assert_allclose(shares.draws, [[0.2, 0.8]])
    assert_allclose(shares.midpoint, [0.15], atol=0.06)


def test_the_shares_of_several_classes_sum_to_one_and_are_recovered(rng):
    wanted = np.array([0.6, 0.3, 0.1])

    def draw(n, shares):
        codes = np.repeat(np.arange(3), np.round(n * shares).astype(int))
        return 0.3 * rng.normal(size=(len(codes), 3)) + np.where(
            codes[:, None] == np.arange(3), 0.8, -0.8
        ), codes

    target, _ = draw(2000, wanted)
    source, codes = draw(999, np.full(3, 1 / 3))
    shares = estimate_shares(target, source, codes, 3)
    assert_allclose(shares.draws.sum(axis=1), 1)
    assert_allclose(shares.mean, wanted, atol=0.05)
    assert shares.midpoint.shape == (3,)


def test_with_a_handful_of_rows_the_source_s_shares_are_assumed(rng):
    target, _ = draw_scores(rng, 19, 0.9)
    source, is_class = draw_scores(rng, 100, 0.3)
    shares = estimate_shares(target[:, None], source[:, None], is_class.astype(int), 2)
    assert_allclose(shares.mean, [0.7, 0.3])
    assert_allclose(shares.interval(), [[0, 1], [0, 1]])
    assert shares.is_assumed
    assert shares.is_uncertain
    assert shares.unseparated == 0


def test_many_values_quantiles_and_uncertain_intervals(rng):
    values = rng.permutation(5 * constants.MOST_VALUES)
    thinned = thin_rows(values, values, constants.MOST_VALUES)
    assert_allclose(thinned, 2 + 5 * np.arange(constants.MOST_VALUES))
    assert_allclose(thin_rows(values[:7], values[:7], constants.MOST_VALUES), values[:7])
    assert_allclose(thin_rows(values, -values, 1), np.sort(values)[-1 - len(values) // 2])
    weight = np.zeros(101)
    weight[30] = 1
    assert_allclose(find_quantiles(weight, np.array([0.5])), 0.3)
    draws = np.linspace(0.2, 0.8, 25)
    assert Shares(np.column_stack([1 - draws, draws]), np.zeros(1)).is_uncertain
    assert not Shares(np.column_stack([1 - draws / 2, draws / 2]), np.zeros(1)).is_uncertain


def test_a_pair_of_domains_has_priors_of_its_own(rng):
    target, _ = draw_scores(rng, 300, 0.8, midpoint=0.2)
    source, is_class = draw_scores(rng, 300, 0.5)
    scores = target[:, None], source[:, None], is_class.astype(int), 2
    expected = posterior_by_hand(target, source, is_class, 0, 1.9, 0.21, 0.4)
    grid = make_grid(target, source, is_class, transfer=PAIR)
    weight, midpoint = grid.weigh()
    assert_allclose(weight, expected[0], atol=1e-9)
    assert_allclose([midpoint, grid.unseparated], expected[1:], rtol=1e-6)
    pair, several = (estimate_shares(*scores, transfer=transfer) for transfer in (PAIR, SEVERAL_DOMAINS))
    assert np.ptp(pair.interval()[1]) > np.ptp(several.interval()[1])
    held_out = HeldOut(source[:, None], is_class.astype(int), np.ones(300), n_domains=2)
    assert held_out.transfer is PAIR
    assert held_out.target_temperature() == pytest.approx(held_out.temperature / 0.86)
    assert held_out.target_temperature(True) == pytest.approx(held_out.temperature / 0.7)
    assert HeldOut(source[:, None], is_class.astype(int), np.ones(300)).transfer is SEVERAL_DOMAINS


def test_labels_that_were_left_out_are_weighed_at_the_border_of_every_share(rng):
    codes = (rng.uniform(size=300) < 0.3).astype(int)
    scores = rng.normal(size=(300, 1)) + np.where(codes == 1, 1.0, -1.0)[:, None]
    grid = np.array([0.1, 0.35, 0.8])
    points = np.broadcast_to(grid[:, None], (3, 2))
    mixture = Mixture(points, *np.zeros((3, 3, 2)))
    chosen = np.arange(40)
    log_likelihood = Rescored(scores[chosen], codes[chosen], scores).log_likelihood(mixture, 0, 1)
    for share, value in zip(grid, log_likelihood[:, 0], strict=True):
        offset = brentq(lambda c, share=share: expit(scores + c).mean() - share, -20, 20)
        p = expit(scores[chosen, 0] + offset)
        assert value == pytest.approx(np.log(np.where(codes[chosen] == 1, p, 1 - p)).sum(), abs=0.02)
    assert_allclose(log_likelihood[:, 0], log_likelihood[:, 1])


def test_labels_that_were_left_out_correct_the_shares(rng):
    target, is_upper = draw_scores(rng, 1000, 0.25)
    source, is_class = draw_scores(rng, 1000, 0.5)
    moved = target + 0.6  # the midpoint moves far, as other shares would move the mean
    given = moved[:, None], source[:, None], is_class.astype(int), 2
    before = estimate_shares(*given).mean[1]
    rows = rng.permutation(1000)[:100]
    odds = 3 * target[:, None]
    seen = Rescored(odds[rows], is_upper[rows].astype(int), odds)
    after = estimate_shares(*given, labelled=seen).mean[1]
    assert abs(after - 0.25) < 0.04 < abs(before - 0.25)


@pytest.mark.parametrize(
    ("correlation", "unseen", "share", "unseparated", "is_unknown", "is_doubtful"),
    [
        (0.79, 0.35, 0.07, 0.0, True, True),  # odds of 1 : 13 where the source has 1 : 1
        (0.81, 0.36, 0.07, 0.0, True, True),
        (0.79, 0.36, 0.08, 0.49, False, False),
        (0.81, 0.35, 0.01, 0.05, False, True),
        (0.81, 0.35, 0.01, 0.04, False, False),
        (0.79, 0.0, 0.5, 0.5, True, True),
        (1.0, 0.0, 0.5, 0.5, False, True),
        (0.79, 0.36, 0.5, 0.49, False, False),
    ],
)
def test_shares_are_unknown_where_source_only_or_new_words_contradict_and_one_class_seems_gone(
    correlation, unseen, share, unseparated, is_unknown, is_doubtful
):
    shares = Shares(np.array([[1 - share, share]]), np.zeros(1), unseparated=unseparated)
    shares = shares.compare(np.array([0.5, 0.5]), correlation, unseen)
    assert shares.shift == pytest.approx(abs(np.log(share / (1 - share))))
    assert shares.is_contradicted == (correlation < 0.8 or unseen > 0.35)
    assert (shares.is_unknown, shares.is_doubtful) == (is_unknown, is_doubtful)


def test_a_batch_has_the_classes_of_the_fit_or_is_another_domain(rng):
    fitted, _ = draw_scores(rng, 60, 0.7, midpoint=0.3)
    batch, _ = draw_scores(rng, 80, 0.2, midpoint=0.3)
    source, is_class = draw_scores(rng, 200, 0.5)
    before, after = (make_grid(scores, source, is_class, transfer=PAIR) for scores in (fitted, batch))
    weight, _ = weigh_batch(after, before, batch, 0.5)
    shares = np.linspace(0, 1, 101)
    prior = shares_module._share_prior(0.5)
    old = np.exp(before.log_posterior - before.log_posterior.max())
    old /= old.sum()
    same = np.zeros(101)
    for i, j in np.argwhere(before.log_posterior > before.log_posterior.max() - 10):
        part = before.mixture
        midpoint, half, spread = (each[i, j] for each in (part.midpoint, part.half, part.spread))
        for k, share in enumerate(shares):
            density = share * norm.pdf(batch, midpoint + half, spread)
            density = density + (1 - share) * norm.pdf(batch, midpoint - half, spread)
            same[k] += old[i, j] * prior[k] * np.exp(80 * np.log(np.sqrt(2 * np.pi) * density).mean())
    moved = np.exp(after.log_posterior).sum(axis=1) / 80
    assert_allclose(weight, (same + moved) / (same + moved).sum(), rtol=1e-6, atol=1e-12)


def test_the_midpoint_that_a_fit_shows_is_known_of_a_batch():
    rng = np.random.default_rng(1)
    source, is_class = draw_scores(rng, 1000, 0.5, 0.8)
    fitted, _ = draw_scores(rng, 1000, 0.5, 0.8, midpoint=0.6)  # its shares are the source's
    batch, _ = draw_scores(rng, 400, 0.2, 0.8, midpoint=0.6)
    given = source[:, None], is_class.astype(int), 2
    alone = estimate_shares(batch[:, None], *given, transfer=PAIR).mean[1]
    together = estimate_shares(batch[:, None], *given, transfer=PAIR, fitted=fitted[:, None]).mean[1]
    assert abs(together - 0.2) < 0.05
    assert alone > 0.4
    other, _ = draw_scores(rng, 400, 0.2, midpoint=-2.0)  # another domain: the fit is no guide
    apart = estimate_shares(other[:, None], *given, transfer=PAIR).mean[1]
    guided = estimate_shares(other[:, None], *given, transfer=PAIR, fitted=fitted[:, None]).mean[1]
    assert guided == pytest.approx(apart, abs=0.01)
