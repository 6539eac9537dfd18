"""Stacks against Algorithm 2, and the pieces that stack them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import algorithm_2, relative_error, weights
from undrift import MSDA
from undrift._core.blocks import StoredBlocks
from undrift._core.denoise import denoise
from undrift._core.scatter import scatter
from undrift._core.stack import fit_layers, hidden_rows, pooled_scatter


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


def test_pooled_scatter_is_that_of_all_rows(counts):
    pooled = pooled_scatter([StoredBlocks([counts[:10], counts[10:25]]), StoredBlocks([counts[25:]])])
    assert pooled.n == 60
    assert_array_equal(pooled.total, counts.sum(axis=0))
    assert_array_equal(np.tril(pooled.gram), np.tril(counts.T @ counts))


def test_growing_over_domains_equals_growing_over_all_rows(counts):
    def solve(stats):
        return denoise(stats, 0.5)

    apart = [
        g.layer for g in fit_layers([StoredBlocks([counts[:20]]), StoredBlocks([counts[20:]])], 3, solve)
    ]
    together = [g.layer for g in fit_layers([StoredBlocks([counts])], 3, solve)]
    assert len(apart) == len(together) == 3
    for a, b in zip(apart, together, strict=True):
        assert relative_error(weights(a), weights(b)) < 1e-9


def test_a_step_brings_the_rows_of_every_domain_after_its_layer(counts):
    domains = [StoredBlocks([counts[:20]]), StoredBlocks([counts[20:]])]
    first, second = fit_layers(domains, 2, lambda stats: denoise(stats, 0.5))
    for rows, own in zip(second.domains, (counts[:20], counts[20:]), strict=True):
        assert_allclose(np.vstack(list(rows)), second.layer(first.layer(own)))


def test_a_first_layer_found_otherwise_is_used_as_it_is(counts):
    first = denoise(scatter(counts), 0.8)
    steps = list(fit_layers([StoredBlocks([counts])], 2, lambda stats: denoise(stats, 0.5), first))
    assert steps[0].layer is first
    expected = denoise(scatter(first(counts)), 0.5)
    assert_allclose(steps[1].layer.coef, expected.coef, rtol=1e-9)


def test_layers_are_solved_one_at_a_time(counts):
    solved = []

    def solve(stats):
        solved.append(stats.n)
        return denoise(stats, 0.5)

    steps = fit_layers([StoredBlocks([counts])], 5, solve)
    next(steps)
    assert solved == [60]


def test_hidden_yields_each_layer_of_the_one_before(counts):
    layers = MSDA(n_layers=3).fit(counts).layers_
    first, second, third = hidden_rows(layers, counts)
    assert_array_equal(second, layers[1](first))
    assert_array_equal(third, layers[2](second))
