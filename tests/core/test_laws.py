"""Laws that hold for every input, searched for counterexamples."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import weights
from undrift import MSDA
from undrift.core.blocks import StoredBlocks, StreamedBlocks
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


@pytest.mark.filterwarnings("ignore:after the first layer all rows are the same")
@given(rows, noises, st.sampled_from([sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array]))
def test_sparse_is_dense(X, noise, container):
    dense, sparse = MSDA(2, noise).fit(X), MSDA(2, noise).fit(container(X))
    for a, b in zip(dense.layers_, sparse.layers_, strict=True):
        assert_allclose(weights(b), weights(a), **TOLERANCE)
    assert_allclose(sparse.transform(container(X)), dense.transform(X), **TOLERANCE)


@given(rows, st.data())
def test_totals_do_not_depend_on_where_rows_live(X, data):
    cut = data.draw(st.integers(1, len(X) - 1))
    first = denoise(scatter(X), 0.5)
    homes = [
        StoredBlocks([X]),
        StoredBlocks([X[:cut], X[cut:]], memory_budget=1),
        StreamedBlocks([X[:cut], X[cut:]]),
    ]
    expected = first(X)
    for home in homes:
        stats = home.map(first).total(scatter)
        assert stats.n == len(X)
        assert_allclose(lower(stats), np.tril(expected.T @ expected), **TOLERANCE)
