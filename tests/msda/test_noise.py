"""One noise for each feature, against every mask and the moments summed row by row."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tests.helpers.oracles import every_mask, moment_weights, relative_error, weights
from undrift import MDA, MSDA, load_model, save_model
from undrift.core.blocks import StoredBlocks
from undrift.core.denoise import SingularSystem, denoise
from undrift.core.scatter import scatter
from undrift.core.stack import fit_pivot_layer


@pytest.fixture
def counts(counts):
    return counts[:, :8]


MIXED = np.array([0.0, 0.1, 0.5, 0.7, 0.9, 0.99])


# -- the closed form ---------------------------------------------------------------------------------


def test_noise_per_feature_is_the_optimum_over_every_mask(counts):
    X = counts[:, :6]
    expected = every_mask(X, MIXED)
    assert relative_error(expected, every_mask(X, MIXED.mean())) > 0.1  # the probabilities matter
    layer = denoise(scatter(X), MIXED, ridge=0.0)
    assert_allclose(weights(layer), expected, rtol=1e-9, atol=1e-11)


def moments_of(X):
    """A noise with the share that it keeps of each feature and the variance of each entry."""
    p = np.linspace(0.05, 0.9, X.shape[1])
    return p, 1 - p, p * (1 - p) * X**2


@pytest.mark.parametrize("ridge", [1e-5, 0.3])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_the_layer_solves_for_the_moments(counts, container, ridge):
    noise, keep, variance = moments_of(counts)
    expected = moment_weights(counts, keep, variance, ridge)
    assert relative_error(weights(denoise(scatter(container(counts)), noise, ridge)), expected) < 1e-9


def test_little_noise_on_one_feature_is_enough_to_factor_in_float64(rng, counts):
    noise = np.array([0.5, 0.5, 0.5, 1e-6, 0.5, 0.5, 1e-6])
    base = rng.normal(size=(500, 5))
    X = np.hstack([base, base[:, 2:4]]).astype(np.float32)  # features 3 and 6 are the same
    single, double = denoise(scatter(X), noise), denoise(scatter(X.astype(np.float64)), noise)
    assert single.coef.dtype == np.float32
    assert relative_error(weights(single), weights(double)) < 1e-4
    X = np.hstack([counts, counts[:, :1]])
    with pytest.raises(SingularSystem, match="one noise per feature and ridge=0, a feature is a linear"):
        denoise(scatter(X), np.zeros(9), ridge=0.0)


def test_parts_of_the_features_have_their_own_noise(counts):
    p = np.linspace(0.1, 0.9, 8)
    parts, pivots = [np.array([1, 4, 6]), np.array([0, 2, 3, 5, 7])], np.array([0, 3])
    layer = fit_pivot_layer([StoredBlocks([counts])], pivots, parts, p, 1e-5, "identity")
    for part in parts:
        X, q = counts[:, part], 1 - p[part]
        expected = moment_weights(X, q, p[part] * q * X**2, 1e-5, counts[:, pivots])
        assert_allclose(layer.coef[part], expected[:-1] / 2, rtol=1e-9)


# -- the estimators ----------------------------------------------------------------------------------

P = np.linspace(0.1, 0.8, 8)


def test_each_layer_of_a_stack_has_the_noise(counts):
    model = MSDA(2, P, activation="relu", include_input=False).fit(counts)
    rows = counts
    for layer in model.layers_:
        expected = denoise(scatter(rows), P, activation="relu")
        assert_allclose(weights(layer), weights(expected), rtol=1e-9, atol=1e-12)
        rows = expected(rows)
    assert_allclose(model.transform(counts)[:, 8:], rows, rtol=1e-9, atol=1e-12)
    model = MSDA(2, P, n_pivots=3, random_state=0).fit(counts)
    hidden = model.layers_[0](counts)
    expected = denoise(scatter(hidden), P[model.pivots_])
    assert_allclose(weights(model.layers_[1]), weights(expected), rtol=1e-9, atol=1e-12)


def test_the_noise_is_cloned_shown_and_saved(counts, tmp_path):
    model = MSDA(2, P, activation="relu").fit(counts)
    copy = clone(model)
    assert not hasattr(copy, "layers_")
    assert "array(" in repr(copy)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert_array_equal(loaded.noise, P)
    assert_array_equal(loaded.transform(counts), model.transform(counts))
    assert_allclose(loaded.fit(counts).transform(counts), model.transform(counts), rtol=1e-12)


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        (np.full(8, 1.0), ValueError, "noise[0]=1 must be at least 0 and below 1, and so must 7 more"),
        (np.array([0.5] * 7 + [-0.1]), ValueError, "noise[7]=-0.1 must be at least 0 and below 1"),
        (np.array([np.nan] + [0.5] * 7), ValueError, "noise[0]=nan must be at least 0 and below 1"),
        (
            np.full(7, 0.5),
            ValueError,
            "noise has shape (7,), not (8,): give one probability for each feature",
        ),
        (np.full((8, 1), 0.5), ValueError, "noise has shape (8, 1), not (n_features,)"),
        (np.array(["a"] * 8), TypeError, "noise must be an array of numbers, got one of dtype <U1"),
        ([0.5] * 8, TypeError, "noise must be a number, or an array with one for each feature, got [0.5, 0"),
        ("masking", TypeError, "noise must be a number, got 'masking'"),
    ],
)
@pytest.mark.parametrize("estimator", [MDA, MSDA])
def test_a_noise_that_is_none_is_refused(counts, estimator, noise, error, message):
    with pytest.raises(error, match=re.escape(message)):
        estimator(noise=noise).fit(counts)
