import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from undrift.core.array import NotPositiveDefinite, array_ops
from undrift.core.gram import (
    add_domain_centred_gram,
    domain_centred_cross,
    primal_weights,
    shifted_inverse,
    shifted_solve,
)
from undrift.core.numpy_ops import FULL

FORMS = [np.asarray, sp.csr_array, sp.csr_matrix]


@pytest.fixture
def domain(rng):
    return rng.integers(3, size=60)


@pytest.fixture
def means(rng):
    return rng.normal(size=(3, 9))


@pytest.mark.parametrize("form", FORMS)
def test_primal_weights_are_combinations_of_centred_rows(counts, domain, means, form, rng):
    dual = rng.normal(size=(60, 2))
    weights = primal_weights(form(counts), means, domain, dual)
    assert_allclose(weights, (counts - means[domain]).T @ dual, rtol=1e-9, atol=1e-9)
    assert_allclose(primal_weights(form(counts), None, domain, dual), counts.T @ dual, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [slice(None), slice(0, 1), slice(0, 0)])
@pytest.mark.parametrize("form", FORMS)
def test_inner_products_of_full_and_of_rare_columns(rng, form, rows):
    often = np.array([0.9, 0.3, 0.06, 0.04, 0.01, 0.0])
    X = rng.normal(size=(700, 6)) * (rng.random((700, 6)) < often)
    filled = np.count_nonzero(X, axis=0) / 700
    assert (filled > FULL).tolist() == [True] * 3 + [False] * 3
    products = array_ops(X).inner_products(form(X[rows]))
    assert_allclose(products, X[rows] @ X[rows].T, rtol=1e-9, atol=1e-12)
    assert_array_equal(products, products.T)


@pytest.mark.parametrize("form", FORMS)
def test_inner_products_with_added_rows_block_by_block(counts, domain, means, form, set_limits):
    set_limits(CENTRED_ENTRIES=7 * counts.shape[1])
    centred, own, other = counts - means[domain], domain[:25], domain[25:]
    expected = centred[:25] @ centred[25:].T
    found = domain_centred_cross(form(counts[:25]), form(counts[25:]), means, own, other)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    found = domain_centred_cross(form(counts[:25]), centred[25:], means, own, None)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [60, 59, 1])
@pytest.mark.parametrize("place", [np.asarray, "torch"])
def test_adding_in_place(counts, domain, means, rng, place, n):
    place = pytest.importorskip("torch").from_numpy if place == "torch" else place
    A = rng.normal(size=(n, n))
    K, domain = A + A.T, domain[:n]
    centred = counts[:n] - means[domain]
    expected = K + 0.3 * centred @ centred.T
    ops, rows = array_ops(place(K)), place(counts[:n].copy())
    folded = ops.fold(place(K.copy()))
    assert_allclose(ops.unfold(folded), K)
    found = add_domain_centred_gram(folded, rows, means, domain, 0.3)
    assert_allclose(ops.unfold(found), expected, rtol=1e-9, atol=1e-9)
    assert np.shares_memory(np.asarray(found), np.asarray(folded))
    assert_allclose(rows, centred, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_inverse_of_a_shifted_matrix(rng, dtype):
    H, shift = rng.normal(size=(20, 30)), rng.uniform(0.5, 2, 20)
    K = (H @ H.T).astype(dtype)
    expected = np.linalg.inv(H @ H.T + np.diag(shift))
    assert_allclose(shifted_inverse(K, shift), expected, rtol=1e-4 if dtype == "float32" else 1e-9, atol=1e-7)
    assert shifted_inverse(K, shift).dtype == dtype
    assert_allclose(K, H @ H.T, rtol=1e-5)  # as it was


@pytest.mark.parametrize("place", [np.asarray, "torch"])
@pytest.mark.parametrize("rows", [None, np.array([7, 3, 0, 11])])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shifted_systems_are_solved_to_rounding_in_either_precision(rng, dtype, rows, place):
    """Float32 factors are refined in float64: what is left is the rounding of the matrix itself."""
    place = pytest.importorskip("torch").from_numpy if place == "torch" else place
    H = rng.normal(size=(20, 30))
    K = (H @ H.T).astype(dtype)
    which = np.arange(20) if rows is None else rows
    shift, B = rng.uniform(0.5, 2, len(which)), rng.normal(size=(len(which), 2))
    expected = np.linalg.solve(K.astype(float)[np.ix_(which, which)] + np.diag(shift), B)
    found = shifted_solve(place(K.copy()), shift, B, rows)
    assert found.dtype == np.float64
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_a_matrix_that_float32_cannot_invert_is_inverted_in_float64():
    K = np.ones((3, 3), dtype=np.float32)
    inverse = shifted_inverse(K, np.full(3, 1e-8))
    assert_allclose(inverse, np.linalg.inv(K + 1e-8 * np.eye(3, dtype=float)), rtol=1e-6)
    with pytest.raises(NotPositiveDefinite):
        shifted_inverse(K, np.full(3, 1e-20))
    assert_allclose(shifted_solve(K, np.full(3, 1e-8), np.ones((3, 1))), np.full((3, 1), 1 / 3), rtol=1e-6)
    with pytest.raises(NotPositiveDefinite):
        shifted_solve(K, np.full(3, 1e-20), np.ones((3, 1)))
