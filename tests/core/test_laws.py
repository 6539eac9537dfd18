"""Laws that hold for every input, searched for counterexamples."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import weights
from undrift.core.denoise import denoise
from undrift.core.scatter import cross_scatter, scatter

settings.register_profile("laws", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("laws")

shapes = st.tuples(st.integers(2, 12), st.integers(1, 6))
# counts: sums of products of small integers are exact in float64, so that laws of sums are equalities
rows = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
noises = st.floats(0.1, 0.9)
TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}


def lower(stats):
    return np.tril(stats.gram)


@given(rows, st.data())
def test_scatters_add(X, data):
    cut = data.draw(st.integers(0, len(X)))
    total, whole = scatter(X[:cut]) + scatter(X[cut:]), scatter(X)
    assert total.n == whole.n == len(X)
    assert_array_equal(total.total, X.sum(axis=0))
    assert_array_equal(lower(total), lower(whole))
    assert_array_equal(lower(whole), np.tril(X.T @ X))


@given(rows, st.data())
def test_cross_scatters_add(X, data):
    cut = data.draw(st.integers(0, len(X)))
    part, pivots = np.arange(0, X.shape[1], 2), np.arange(X.shape[1] // 2 + 1)
    total = cross_scatter(X[:cut], part, pivots) + cross_scatter(X[cut:], part, pivots)
    assert_array_equal(total.cross, X[:, part].T @ X[:, pivots])
    assert_array_equal(total.target_total, X[:, pivots].sum(axis=0))
    assert_array_equal(lower(total.scatter), np.tril(X[:, part].T @ X[:, part]))


@given(rows)
def test_without_noise_a_full_rank_system_gives_the_identity(X):
    centred = X - X.mean(axis=0)
    assume(np.linalg.svd(centred, compute_uv=False).min() > 1e-3 and len(X) > X.shape[1])
    layer = denoise(scatter(X), 0.0, ridge=0.0, activation="identity")
    assert_allclose(layer.coef, np.eye(X.shape[1]), **TOLERANCE)
    assert_allclose(layer(X), X, **TOLERANCE)


@given(rows, noises, st.integers(2, 4))
def test_repeating_rows_is_dividing_the_ridge(X, noise, n_times):
    repeated = denoise(scatter(np.tile(X, (n_times, 1))), noise, ridge=0.5 * n_times)
    assert_allclose(weights(repeated), weights(denoise(scatter(X), noise, ridge=0.5)), **TOLERANCE)
