"""Stacks against Algorithm 2, and first layers for many features against section 4."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import algorithm_2, relative_error, section_4, weights
from undrift import MSDA
from undrift.core.blocks import StoredBlocks
from undrift.core.denoise import denoise
from undrift.core.scatter import scatter
from undrift.core.stack import (
    FittedLayer,
    choose_pivots,
    fit_layers,
)

OPTIONS = {"noise": 0.5, "ridge": 1e-5, "activation": "tanh"}


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("noise", [0.1, 0.5, 0.9])
def test_five_layers_agree_with_algorithm_2(counts, noise, container):
    model = MSDA(n_layers=5, noise=noise).fit(container(counts))
    expected = algorithm_2(counts, noise, 5)
    for layer, h, (W, h_expected) in zip(
        model.layers_, model.hidden(container(counts)), expected, strict=True
    ):
        assert relative_error(weights(layer), W) < 1e-9
        assert relative_error(h, h_expected) < 1e-9


def test_a_first_layer_found_otherwise_is_used_as_it_is(counts):
    first, blocks = denoise(scatter(counts), 0.8), StoredBlocks([counts])
    fitted = FittedLayer(first, [blocks.map(first)], "terms")
    steps = list(fit_layers([blocks], 2, OPTIONS, fitted))
    assert steps[0] is fitted
    expected = denoise(scatter(first(counts)), 0.5)
    assert_allclose(steps[1].layer.coef, expected.coef, rtol=1e-9)


def test_layers_are_solved_one_at_a_time(counts):
    class Counting(StoredBlocks):
        n_totals = 0

        def total(self, function):
            Counting.n_totals += 1
            return super().total(function)

    next(fit_layers([Counting([counts])], 5, OPTIONS))
    assert Counting.n_totals == 1


# -- many features: pivots -----------------------------------------------------------------------------


def frequency_by_hand(X):
    return [sum(1 for row in X if row[j] != 0) for j in range(X.shape[1])]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("noise", [0.1, 0.5, 0.9])
def test_first_layer_agrees_with_section_4_and_upper_ones_with_algorithm_2(counts, noise, container):
    X = np.hstack([counts, np.zeros((60, 1))])
    model = MSDA(n_layers=3, noise=noise, n_pivots=4, random_state=3).fit(container(X))
    W = section_4(X, noise, model.pivots_, model.parts_)
    assert model.layers_[0].coef.shape == (10, 4)
    assert relative_error(weights(model.layers_[0]), W) < 1e-9
    h = np.tanh(X @ W[:-1] + W[-1])
    for layer, (expected, _) in zip(model.layers_[1:], algorithm_2(h, noise, 2), strict=True):
        assert relative_error(weights(layer), expected) < 1e-9


def test_pivots_are_the_features_of_most_rows(counts):
    model = MSDA(n_layers=1, n_pivots=4, random_state=0).fit(counts * 7)
    frequency = frequency_by_hand(counts)
    expected = sorted(range(9), key=lambda j: (-frequency[j], j))[:4]
    assert_array_equal(model.pivots_, sorted(expected))
    X = sp.csr_array(
        (np.array([9.0, 0.0, 1.0, 1.0]), np.array([0, 1, 1, 2]), np.array([0, 2, 3, 4])), shape=(3, 3)
    )
    model = MSDA(n_layers=1, n_pivots=1).fit(X)
    assert_array_equal(model.pivots_, [0])  # each feature is in one row, one of them stored as zero besides
    for counted in ([1, 3, 3, 2], [1, 3, 3, 3]):
        blocks = [StoredBlocks([(np.arange(3)[:, None] < counted).astype(float)])]
        assert_array_equal(choose_pivots(blocks, 4, 2, np.random.RandomState(0)).pivots, [1, 2])


@pytest.mark.parametrize(("d", "r", "n_parts"), [(9, 4, 3), (8, 4, 2), (9, 9, 1), (10, 1, 10)])
def test_parts_are_a_random_partition_into_as_few_as_needed(d, r, n_parts):
    parts = choose_pivots([StoredBlocks([np.ones((1, d))])], d, r, np.random.RandomState(0)).parts
    assert len(parts) == n_parts
    assert sorted(np.concatenate(parts)) == list(range(d))
    assert max(map(len, parts)) <= r
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_as_many_pivots_as_features_is_the_plain_stack(counts):
    plain, pivoted = MSDA(n_layers=2).fit(counts), MSDA(n_layers=2, n_pivots=9).fit(counts)
    for a, b in zip(plain.layers_, pivoted.layers_, strict=True):
        assert relative_error(weights(b), weights(a)) < 1e-9
