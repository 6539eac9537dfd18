"""Rows taken as their domains pass are those that layers give by themselves."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from undrift._core.blocks import StoredBlocks, StreamedBlocks, take_rows
from undrift._core.denoise import Layer
from undrift._core.stack import fit_layers
from undrift._inputs.device import OnHost
from undrift.classifier.anchors import (
    allot_target_anchors,
    propagate_alone,
    propagate_with_domains,
    stack_domain_means,
)


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


def test_both_ways_arrive_with_the_same(domains, rng):
    layers = [Layer(rng.normal(size=(5, 5)), rng.normal(size=5)) for _ in range(2)]
    domain = np.array([0, 1, 0, 0, 1, 0])
    position = np.array([1, 0, 8, 9, 8, 22])
    X = np.stack([domains[k][i] for k, i in zip(domain, position, strict=True)])
    together, alone = propagate_with_domains(domain, position), propagate_alone(X, OnHost())
    ways = [[StoredBlocks(in_blocks(rows)) for rows in domains] for _ in range(2)]
    answers = [iter(layers[1:]) for _ in range(2)]
    stacks = [
        fit_layers(own, 2, lambda _, rest=rest: next(rest), layers[0])
        for own, rest in zip(ways, answers, strict=True)
    ]
    H, hidden = X, domains
    for layer, one, other in zip(layers, *stacks, strict=True):
        H, hidden = (
            np.tanh(H @ layer.coef + layer.intercept),
            [np.tanh(rows @ layer.coef + layer.intercept) for rows in hidden],
        )
        for arrived in (together(one, [2]), alone(other, [0, 1, 2])):
            assert_allclose(arrived.rows, H, rtol=1e-9)
            means = stack_domain_means(arrived.moments, 3)
            assert_allclose(means, [rows.mean(axis=0) for rows in hidden], rtol=1e-9)
            arrived.rows[:] = 0  # whoever asked may write there
    only = together(one, ())
    assert sorted(only.moments) == [0, 1]
    assert np.isnan(stack_domain_means(only.moments, 3)[2]).all()
    assert not np.isnan(stack_domain_means(only.moments, 3)[:2]).any()


def test_small_targets_are_anchors_whole_and_the_others_share_the_rest():
    sizes = {-1: 50, -2: 5, -3: 40}
    rows = SimpleNamespace(targets=list(sizes), domains={n: np.zeros((size, 1)) for n, size in sizes.items()})
    assert allot_target_anchors(rows, 65) == {-1: 30, -2: 5, -3: 30}
    assert allot_target_anchors(rows, 200) == sizes
    assert allot_target_anchors(rows, 0) == {}
