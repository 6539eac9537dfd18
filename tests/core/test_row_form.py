"""The closed form in the rows against the form in the columns, and against oracles without shared code."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.oracles import every_mask, moment_weights, weights
from undrift import MSDA
from undrift.core import RowCoef
from undrift.core.blocks import HostShelf, StoredBlocks, StreamedBlocks
from undrift.core.denoise import Layer, SingularSystem, denoise, denoise_onto
from undrift.core.row_form import NeedsColumns, denoise_in_rows
from undrift.core.scatter import cross_scatter, scatter
from undrift.core.stack import LayerSolver, PivotSplit, fit_layers

AGREES = {"rtol": 1e-9, "atol": 1e-9}
CONTAINERS = [np.asarray, sp.csr_array, sp.csr_matrix]
# on either side of n = d
SHAPES = [(3, 9), (9, 9), (8, 20), (20, 8), (40, 41), (60, 9)]


def make_rows(shape, seed=0):
    """Counts times tf-idf-like weights, with two equal rows, a column of zeros and one of small numbers."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, shape) * rng.uniform(0.2, 2, shape[1])
    X[-1] = X[0]
    X[:, 2] = 0
    X[:, 3] *= 0.1
    return X


def draw_new_rows(d, seed=1):
    return np.random.default_rng(seed).poisson(1.0, (7, d)).astype(float)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("noise", [0.001, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_forms_agree(shape, noise, container):
    X, new = make_rows(shape), draw_new_rows(shape[1])
    expected = denoise(scatter(X), noise, activation="sigmoid")
    layer, hidden = denoise_in_rows(container(X), noise, activation="sigmoid")
    assert isinstance(layer.coef, RowCoef)
    assert layer.coef.shape == expected.coef.shape
    assert_allclose(weights(layer), weights(expected), **AGREES)
    assert_allclose(hidden, expected(X), **AGREES)
    for rows in (X, new):
        assert_allclose(layer(container(rows)), expected(rows), **AGREES)
        assert_allclose(layer(rows), expected(rows), **AGREES)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_some_columns_are_reconstructed_from_all(shape, container):
    X, new, targets = make_rows(shape), draw_new_rows(shape[1]), np.array([1, 2, 5])
    expected = denoise_onto(cross_scatter(X, np.arange(shape[1]), targets), 0.6)
    layer, hidden = denoise_in_rows(container(X), 0.6, activation="identity", targets=targets)
    assert layer.coef.shape == (shape[1], 3)
    assert_allclose(weights(layer), weights(expected), **AGREES)
    assert_allclose(hidden, X @ expected.coef + expected.intercept, **AGREES)
    assert_allclose(layer(container(new)), new @ expected.coef + expected.intercept, **AGREES)


def test_it_is_the_mean_over_every_mask():
    X = np.random.default_rng(3).poisson(1.0, (5, 6)).astype(float) + np.eye(5, 6)
    layer, _ = denoise_in_rows(X, 0.4, ridge=1e-12)
    assert_allclose(weights(layer), every_mask(X, 0.4), rtol=1e-6, atol=1e-6)
    X, new = make_rows((8, 20)).astype(np.float32), draw_new_rows(20).astype(np.float32)
    layer, _ = denoise_in_rows(sp.csr_array(X), 0.7, ridge=1e-300)
    assert np.isfinite(layer.coef.scale).all()
    other = new.copy()
    other[:, 2] += 1e6  # a column of zeros
    assert_array_equal(layer(sp.csr_array(other)), layer(sp.csr_array(new)))


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(2, 9), st.integers(1, 9), st.floats(0.05, 0.95), st.floats(1e-4, 10), st.integers(0, 99))
def test_it_solves_the_moments_summed_row_by_row(n, d, noise, ridge, seed):
    X = np.random.default_rng(seed).integers(-3, 4, (n, d)).astype(float)
    layer, _ = denoise_in_rows(sp.csr_array(X), noise, ridge)
    expected = moment_weights(X, 1 - noise, noise * (1 - noise) * X**2, ridge)
    assert_allclose(weights(layer), expected, rtol=1e-7, atol=1e-8)


def test_float32_is_float64_rounded():
    X = make_rows((200, 500))
    for container in CONTAINERS:
        layer, hidden = denoise_in_rows(container(X.astype(np.float32)), 0.7)
        expected = denoise(scatter(X), 0.7)
        assert hidden.dtype == layer.coef.dtype == layer.intercept.dtype == layer(X[:2].astype("f4")).dtype
        assert hidden.dtype == np.float32
        assert_allclose(hidden, expected(X), atol=2e-5)
        assert_allclose(np.asarray(layer.coef), expected.coef, atol=2e-5)


# -- the coefficients as a matrix ------------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("targets", [None, np.array([0, 3, 7, 8])])
def test_factors_stand_for_their_product(container, targets):
    coef = denoise_in_rows(container(make_rows((6, 12))), 0.5, targets=targets)[0].coef
    matrix, rng = np.asarray(coef), np.random.default_rng(0)
    V = rng.standard_normal((matrix.shape[1], 3))
    X = rng.standard_normal((4, 12))
    for taken, expected in [
        (coef[3], matrix[3]),
        (coef[[3, 0]], matrix[[3, 0]]),
        (coef[2:5], matrix[2:5]),
        (coef[:, 2], matrix[:, 2]),
        (coef[:, np.array([2, 1])], matrix[:, [2, 1]]),
        (coef[:, []], matrix[:, []]),
        (coef[5, 1], matrix[5, 1]),
        (coef[[5, 4], 1], matrix[[5, 4], 1]),
        (coef @ V, matrix @ V),
        (coef @ V[:, 0], matrix @ V[:, 0]),
        (X @ coef, X @ matrix),
        (X[0] @ coef, X[0] @ matrix),
    ]:
        assert taken.shape == expected.shape
        assert_allclose(taken, expected, **AGREES)
    assert np.asarray(coef, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("targets", [None, np.array([0, 3, 7, 8])])
def test_many_rows_are_multiplied_by_one_matrix(container, targets):
    X, many = make_rows((20, 15)), make_rows((10, 15), seed=4)
    layer, _ = denoise_in_rows(container(X), 0.5, targets=targets)
    few = np.vstack([layer(container(row[None])) for row in many])
    assert isinstance(layer.coef.suit(9), RowCoef)
    assert_allclose(layer(container(many)), few, **AGREES)
    assert_allclose(layer.coef.suit(1), np.asarray(layer.coef), **AGREES)  # it is there now
    assert isinstance(pickle.loads(pickle.dumps(layer)).coef.suit(1), RowCoef)
    assert isinstance(denoise_in_rows(X[:14], 0.5)[0].coef.suit(1000), RowCoef)  # the factors are smaller


# -- stacks ----------------------------------------------------------------------------------------------


def is_in_rows(solver, **options):
    return isinstance(solver.fit(noise=0.5, ridge=1e-5, activation="tanh", **options).layer.coef, RowCoef)


def test_hidden_rows_are_fitted_in_the_rows_where_they_fit_in_memory():
    X, layer = make_rows((6, 30)), Layer(np.eye(30), np.zeros(30))

    def solve(*domains):
        return LayerSolver([blocks.map(layer) for blocks in domains], is_hidden=True)

    assert is_in_rows(solve(StoredBlocks([X[:2]]), StoredBlocks([X[2:4], X[4:]])))
    assert not is_in_rows(solve(StoredBlocks([X]), StreamedBlocks([X])))
    assert is_in_rows(solve(StoredBlocks([X], HostShelf(X.nbytes))))
    assert not is_in_rows(solve(StoredBlocks([X], HostShelf(X.nbytes - 1))))
    assert not is_in_rows(solve(StoredBlocks([np.tile(X, (4, 1))])))


@pytest.mark.parametrize("container", CONTAINERS)
def test_stacks_of_both_forms_agree(container):
    X, options = make_rows((9, 40)), {"noise": 0.6, "ridge": 1e-5, "activation": "tanh"}
    in_rows = list(fit_layers([StoredBlocks([container(X)])], 4, options))
    apart = [StoredBlocks([container(X[:2])]), StoredBlocks([container(X[2:3]), container(X[3:])])]
    many = [StreamedBlocks([np.repeat(X, 5, axis=0)])]  # every moment is five times as large
    in_columns = list(fit_layers(many, 4, {**options, "ridge": 5e-5}))
    for together, parts, expected in zip(in_rows, fit_layers(apart, 4, options), in_columns, strict=True):
        assert isinstance(together.layer.coef, RowCoef)
        assert not isinstance(expected.layer.coef, RowCoef)
        assert_allclose(weights(together.layer), weights(expected.layer), **AGREES)
        rows = [np.vstack(list(blocks)) for blocks in parts.domains]
        assert [len(part) for part in rows] == [2, 7]
        assert_allclose(np.vstack(rows), np.vstack(list(expected.domains[0]))[::5], **AGREES)


def test_rows_of_an_earlier_depth_stay_as_they_were():
    blocks = StoredBlocks([make_rows((9, 40))])
    steps = list(fit_layers([blocks], 3, {"noise": 0.6, "ridge": 1e-5, "activation": "tanh"}))
    h = np.vstack(list(blocks))
    for step in steps:
        h = step.layer(h)
        assert_allclose(np.vstack(list(step.domains[0])), h, **AGREES)


def test_a_first_layer_in_the_rows_is_followed_by_layers_in_the_columns():
    X = sp.csr_array(make_rows((12, 100)))
    model = MSDA(3, 0.5, n_pivots=10, random_state=0).fit(X)
    assert [isinstance(layer.coef, RowCoef) for layer in model.layers_] == [True, False, False]
    h = X.toarray()
    expected = denoise_onto(cross_scatter(h, np.arange(100), model.pivots_), 0.5)
    h = np.tanh(h @ expected.coef + expected.intercept)
    assert_allclose(weights(model.layers_[0]), weights(expected), **AGREES)
    assert_allclose(weights(model.layers_[1]), weights(denoise(scatter(h), 0.5)), **AGREES)
    assert_allclose(model.transform(X)[:, 100:110], h, **AGREES)


def test_pivots_are_reconstructed_from_all_features_whatever_the_parts():
    X = sp.csr_array(make_rows((8, 40)))
    parts = [np.arange(0, 40, 2), np.arange(1, 40, 2)]
    split, reverse = PivotSplit(np.arange(20), parts), PivotSplit(np.arange(20), parts[::-1])
    first, second = (
        LayerSolver([StoredBlocks([X])], s).fit(noise=0.5, ridge=1e-5, activation="tanh").layer
        for s in (split, reverse)
    )
    assert_array_equal(weights(first), weights(second))


# -- systems that have no solution -----------------------------------------------------------------------


def describe_error(rows, **options):
    with pytest.raises(SingularSystem) as caught:
        LayerSolver([rows]).fit(**{"noise": 0.5, "ridge": 0.0, "activation": "tanh", **options})
    return str(caught.value)


def test_systems_without_a_solution_are_refused_alike():
    X = make_rows((6, 30))
    message = describe_error(StoredBlocks([X]))
    assert message == describe_error(StreamedBlocks([X]))
    assert "features are zero in all 6 rows (features 2" in message
    X = np.random.default_rng(0).standard_normal((6, 30))
    in_rows, in_columns = StoredBlocks([X]), StreamedBlocks([X])
    assert describe_error(in_rows, noise=0.0) == describe_error(in_columns, noise=0.0)
    with pytest.raises(NeedsColumns):
        denoise_in_rows(X, 0.0, ridge=0.0)


def test_a_factorisation_lost_to_rounding_is_tried_again_in_float64():
    pair = sp.kron(sp.eye_array(20), np.ones((1, 3000)))  # features of one row and its copy, and little noise
    X = sp.csr_array(sp.vstack([pair, pair]), dtype=np.float32)
    layer, hidden = denoise_in_rows(X, 0.011)
    assert layer.coef.dtype == np.float32
    assert_allclose(hidden, denoise_in_rows(X.astype(np.float64), 0.011)[1], atol=1e-3)


def test_near_no_noise_the_coefficients_are_one_matrix_computed_in_float64():
    X = make_rows((6, 30)).astype(np.float32)
    expected = denoise(scatter(X.astype(np.float64)), 0.005)
    for container in CONTAINERS:
        layer, hidden = denoise_in_rows(container(X), 0.005)
        assert layer.coef.dtype == layer.intercept.dtype == hidden.dtype == np.float32
        assert_allclose(layer.coef, expected.coef, atol=1e-6)
        assert_allclose(hidden, expected(X), atol=1e-6)
