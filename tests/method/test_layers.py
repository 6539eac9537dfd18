"""Pivots, anchors, and running Gram matrices against the concatenation that is never built."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

from undrift import MSDAClassifier
from undrift.core.blocks import StoredBlocks, StreamedBlocks, take_rows
from undrift.inputs.device import OnHost
from undrift.method import layers
from undrift.method.domains import check_domains
from undrift.method.layers import LayerFitter, draw_anchors, grow_levels


@pytest.fixture
def domains(rng):
    return [rng.normal(size=(n, 5)) for n in (23, 9, 14)]


def in_blocks(X, n=7):
    return [X[start : start + n] for start in range(0, len(X), n)]


@pytest.mark.parametrize("form", [StoredBlocks, StreamedBlocks])
@pytest.mark.parametrize("numbers", [[], [0], [6, 7], [3, 4, 5], [0, 2, 7, 13, 14, 22], list(range(23))])
def test_rows_and_moments_of_one_pass(domains, form, numbers):
    X, out = domains[0], np.full((40, 5), np.nan)
    places = 1 + np.arange(len(numbers)) * (1 if len(numbers) > 10 else 3)
    found = take_rows(form(in_blocks(X)), np.array(numbers, dtype=int), out, places)
    assert_array_equal(out[places], X[numbers])
    assert np.isnan(np.delete(out, places, axis=0)).all()
    assert found.n == 23
    assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(found.energy, (X**2).sum(), rtol=1e-12)


def draw(counts, y, X_target, n_columns=10, **options):
    given = {"y_target": options.pop("y_target", None), "dtype": "float64"}
    domains = check_domains(BaseEstimator(), counts, y, X_target, **given)
    options = {"seed": 0, "self_training": True} | options
    return domains, draw_anchors(domains, n_columns, np.random.RandomState(0), **options)


def test_anchors_are_the_labelled_rows_and_the_target_rows(counts):
    y = np.where(np.arange(60) % 5, np.arange(60) % 2, np.nan)
    domains, anchors = draw(counts, y, {"a": counts[:20], "b": counts[30:]})
    assert anchors.n_labelled == 48
    assert_array_equal(anchors.X[:48], counts[~np.isnan(y)])
    assert_array_equal(anchors.X[48:], np.vstack([counts[:20], counts[30:]]))
    assert_array_equal(anchors.domain, np.repeat([0, 1, 2], [48, 20, 30]))
    assert not anchors.needs_sums
    assert_array_equal(anchors.list_target_rows(domains)[1], 20 + np.arange(30))


def test_small_targets_are_anchors_whole_and_the_others_share_the_rest(counts, set_limits):
    set_limits(COMPARED_ROWS=65)
    targets = {"a": np.tile(counts[:50], (1, 1)), "b": counts[:5], "c": counts[:40]}
    _, anchors = draw(counts, np.arange(60) % 2, targets, self_training=False)
    assert_array_equal(np.bincount(anchors.domain), [60, 30, 5, 30])
    for k in (1, 3):
        assert (np.diff(anchors.position[anchors.domain == k]) > 0).all()
    set_limits(LEAST_ROWS=30)  # of each of three targets: 90 in all
    _, anchors = draw(counts, np.arange(60) % 2, targets, self_training=False)
    assert_array_equal(np.bincount(anchors.domain), [60, 45, 5, 40])


def test_target_rows_with_a_label_are_always_anchors(counts, set_limits):
    set_limits(COMPARED_ROWS=20)
    y_target = [None] * 59 + [1]
    _, anchors = draw(counts, np.arange(60) % 2, counts + 1, self_training=False, y_target=y_target)
    assert 59 in anchors.position[60:]
    assert anchors.target_codes[list(anchors.position[60:]).index(59)] == 1
    assert (anchors.target_codes >= 0).sum() == 1


@pytest.mark.parametrize(("n_columns", "n_labelled", "needs_sums"), [(10, 12, True), (10**5, 30, False)])
def test_of_too_many_labelled_rows_a_sample_is_anchors(counts, set_limits, n_columns, n_labelled, needs_sums):
    set_limits(GRAM_LIMIT=30, SAMPLED_ROWS=12)
    _, anchors = draw(counts, np.arange(60) % 2, counts[:20], n_columns)
    assert anchors.n_labelled == n_labelled
    assert anchors.needs_sums is needs_sums
    assert_array_equal(anchors.X[:n_labelled], counts[anchors.labelled])
    _, others = draw(counts, np.arange(60) % 2, counts[:20], n_columns, seed=1)
    assert not np.array_equal(others.labelled, anchors.labelled)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("center", ["classes", False])
def test_levels_are_centred_and_scaled_layers_that_add_up(rng, form, center):
    """By hand: every layer less its domain's centre, over its root mean square norm."""
    X, Z, y = rng.gamma(1.0, size=(30, 6)), rng.gamma(1.0, size=(20, 6)) + 0.5, np.arange(30) % 3 == 0
    domains, anchors = draw(form(X), y, form(Z))
    layers = LayerFitter([StoredBlocks([rows]) for rows in domains.rows.values()])
    levels = grow_levels(domains, anchors, layers, (0.3, 0.4), 2, center, OnHost(), keeps_hidden=True)
    below, seen = {-1: (np.vstack([X, Z]), 0, 0)}, []
    for level in levels:
        H, K, products = below[level.depth - 1]
        seen.append((level.noise, level.depth))
        if level.depth:
            H = level.stack.layers[-1](H)
            assert_allclose(level.hidden[-1], H, rtol=1e-6)
        midpoint = (H[:30][y].mean(axis=0) + H[:30][~y].mean(axis=0)) / 2
        means = np.array([H[:30].mean(axis=0), H[30:].mean(axis=0)])
        centres = np.array([midpoint, means[1]]) if center else np.zeros(means.shape)
        share = 1 / np.mean(((H - (means if center else centres)[anchors.domain]) ** 2).sum(axis=1))
        centred = H - centres[anchors.domain]
        K, products = K + share * centred @ centred.T, products + share * centred @ centres.T
        below[level.depth] = H, K, products
        assert_allclose(level.K, K, rtol=1e-8, atol=1e-9)
        assert_allclose(level.mean_products, products, rtol=1e-8, atol=1e-9)
        assert_allclose(level.stack.means[-1], centres, rtol=1e-9)
        assert_allclose(level.scale, np.diagonal(K)[:30].mean(), rtol=1e-9)
    assert seen == [(0.0, 0), (0.3, 1), (0.3, 2), (0.4, 1), (0.4, 2)]


@pytest.mark.parametrize(
    ("most", "d", "n_rows", "memory", "expected"),
    [
        (5000, 20_000, 8000, 12e9, 5000),
        (5000, 20_000, 1000, 12e9, 4000),  # no more than four a row
        (5000, 20_000, 100, 12e9, 2500),  # but not very few
        (2500, 20_000, 8000, 12e9, 2500),
        (5000, 300, 8000, 12e9, 5000),  # which is every feature
    ],
)
def test_pivots_are_limited_by_rows(most, d, n_rows, memory, expected):
    assert layers.limit_pivots(most, d, n_rows, 5, memory) == expected


@pytest.mark.parametrize("d", [5000, 20_000, 100_000])
def test_pivots_are_limited_by_memory(d):
    """Layers and systems take half of it."""
    p = layers.limit_pivots(10**6, d, 10**6, 5, 2e9)
    numbers = [d * p, *[p * p] * 4, *[p * p] * 4]  # layers, and what solving the largest system holds
    assert 0.99e9 < 4 * sum(numbers) <= 1e9


@pytest.mark.parametrize(("n_pivots", "most"), [("auto", 8), ("few", 4)])
def test_pivots_chosen_by_name(set_limits, n_pivots, most):
    """As with their number; with no more features than that, every feature is reconstructed."""
    set_limits(MOST_PIVOTS={"auto": 8, "few": 4}, LEAST_PIVOTS=1)
    rng = np.random.default_rng(0)
    X, y, Z = rng.poisson(0.4, (40, 12)), np.arange(40) % 2, rng.poisson(0.4, (30, 12))
    options = {"n_layers": 2, "random_state": 0}
    chosen = MSDAClassifier(n_pivots=n_pivots, **options).fit(X, y, Z)
    given = MSDAClassifier(n_pivots=most, **options).fit(X, y, Z)
    assert chosen.representation_.n_pivots == most
    np.testing.assert_array_equal(chosen.decision_function(Z), given.decision_function(Z))
    whole = MSDAClassifier(n_pivots=n_pivots, **options).fit(X[:, :most], y, Z[:, :most])
    assert whole.representation_.n_pivots is None
    with pytest.raises(ValueError, match="n_pivots='some' is not known"):
        MSDAClassifier(n_pivots="some").fit(X, y, Z)
