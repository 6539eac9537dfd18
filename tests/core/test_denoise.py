"""One layer against four independent oracles."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import (
    algorithm_1,
    every_mask,
    penalised_regressions,
    relative_error,
    sampled_corruption,
    weights,
)
from undrift.core.array import NotPositiveDefinite
from undrift.core.denoise import Layer, SingularSystem, denoise
from undrift.core.numpy_ops import ACTIVATIONS, factor, in_threads, inverse, mirror, stripes
from undrift.core.scatter import scatter

NOISES = [0.1, 0.5, 0.9]


@pytest.mark.parametrize("noise", [0.0, *NOISES, 0.99])
def test_closed_form_is_the_optimum_over_every_mask(counts, noise):
    X = counts[:, :6]
    expected = every_mask(X, noise)
    assert np.abs(expected).max() > 0.5  # not a trivial agreement
    assert_allclose(weights(denoise(scatter(X), noise, ridge=0.0)), expected, rtol=1e-9, atol=1e-11)


def test_sampled_corruption_converges_to_the_closed_form_at_the_monte_carlo_rate(counts, rng):
    X, copies = counts[:12, :3], np.array([50, 200, 800])
    exact = weights(denoise(scatter(X), 0.5, ridge=0.0))
    errors = [
        np.sqrt(np.mean([np.sum((sampled_corruption(X, 0.5, m, rng) - exact) ** 2) for _ in range(60)]))
        for m in copies
    ]
    slope = np.polyfit(np.log(copies), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4  # the error falls as one over the root of the number of copies


@pytest.mark.parametrize("ridge", [0.0, 1e-5, 0.3])
@pytest.mark.parametrize("noise", NOISES)
def test_blankout_is_a_ridge_regression_for_every_feature(counts, noise, ridge):
    expected = penalised_regressions(counts, noise, ridge)
    assert relative_error(weights(denoise(scatter(counts), noise, ridge)), expected) < 1e-9


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("noise", NOISES)
def test_agrees_with_algorithm_1_even_with_empty_duplicate_and_constant_columns(counts, noise, container):
    X = np.hstack([counts, np.zeros((60, 2)), counts[:, :1], np.ones((60, 1))])
    W, h = algorithm_1(X, noise)
    layer = denoise(scatter(container(X)), noise)
    assert relative_error(weights(layer), W) < 1e-9
    assert relative_error(layer(container(X)), h) < 1e-9


@pytest.mark.parametrize("noise", [*NOISES, 0.9999, 0.999999], ids=str)
def test_float32_is_close_to_float64_and_stays_float32(counts, noise):
    """Also near 1, where the coefficients are small differences of large numbers."""
    single, double = (denoise(scatter(counts.astype(dtype)), noise) for dtype in (np.float32, np.float64))
    assert single.coef.dtype == single.intercept.dtype == np.float32
    assert relative_error(weights(single), weights(double)) < 1e-4


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_near_zero_noise_duplicate_columns_are_factored_in_float64(rng, noise):
    base = rng.normal(size=(500, 5))
    X = np.hstack([base, base[:, :2]]).astype(np.float32)
    single, double = denoise(scatter(X), noise), denoise(scatter(X.astype(np.float64)), noise)
    assert single.coef.dtype == np.float32
    assert relative_error(weights(single), weights(double)) < 1e-4


def test_nearly_constant_features_keep_their_covariance_in_float32(rng):
    # the gram is exact in float32 (whole numbers below 2^24); only subtracting n mean mean' could lose it
    X = 8.0 + (rng.random((100_000, 3)) < 0.01)
    single, double = (denoise(scatter(X.astype(dtype)), 0.02) for dtype in (np.float32, np.float64))
    assert relative_error(single.coef, double.coef) < 1e-4


SQUASHED = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x > 0, x, 0),
    "identity": lambda x: x,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_layer_is_affine_and_squashed(rng, activation, container):
    coef, intercept, X = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(5, 4))
    expected = SQUASHED[activation](X @ coef + intercept)
    layer = Layer(coef, intercept, activation)
    assert_allclose(layer(container(X)), expected, rtol=1e-12)


def test_layers_wider_than_a_stripe_and_longer_than_a_block_of_rows(rng):
    coef, X = rng.normal(size=(3, 1100)), sp.csr_array(rng.poisson(0.5, size=(2100, 3)).astype(float))
    expected = np.tanh(X.toarray() @ coef + np.arange(1100))
    assert_allclose(Layer(coef, np.arange(1100.0))(X), expected, rtol=1e-12)
    far = Layer(np.eye(1), np.zeros(1), "sigmoid")(np.array([[-1e4], [0.0], [1e4]]))
    assert_array_equal(far, [[0.0], [0.5], [1.0]])


def test_inverses_larger_than_a_stripe_and_pivots_that_fail(rng):
    B = rng.normal(size=(700, 1100))
    A = B @ B.T / 1100 + np.eye(700)
    expected = np.linalg.inv(A)
    found = inverse(factor(np.tril(A)))
    assert relative_error(found, expected) < 1e-12
    assert_array_equal(found, found.T)
    A = rng.normal(size=(1030, 1030))
    lower = np.tril(A)
    assert_array_equal(mirror(A.copy()), lower + np.tril(lower, -1).T)
    with pytest.raises(NotPositiveDefinite) as caught:
        factor(np.diag([1.0, 2.0, -1.0]))
    assert caught.value.column == 2
    nearly = np.array([[1.0, 0.0], [1.0, 1.0 + 1e-15]])
    with pytest.raises(NotPositiveDefinite):
        factor(nearly)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_stripe_is_visited_once(n_threads):
    seen = np.zeros(1300, dtype=int)

    def visit(stripe):
        seen[stripe] += 1

    in_threads(visit, stripes(1300), n_threads)
    assert_array_equal(seen, 1)
    with pytest.raises(ZeroDivisionError):  # an error in a thread reaches the caller
        in_threads(lambda stripe: 1 // 0, stripes(1300), n_threads)


def test_many_culprits_are_counted_not_listed():
    error = SingularSystem("cause", range(14))
    assert "features 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 4 more" in str(error)
    assert error.with_names([f"t{i}" for i in range(14)]).features[13] == "t13"
