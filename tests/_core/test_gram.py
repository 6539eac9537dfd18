import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tests.helpers.oracles import algorithm_2
from undrift._core.denoise import Layer
from undrift._core.gram import add_domain_centred_gram, decision_scores, domain_centred_gram, primal_weights

FORMS = [np.asarray, sp.csr_array, sp.csr_matrix]


@pytest.fixture
def domain(rng):
    return rng.integers(3, size=60)


@pytest.fixture
def means(rng):
    return rng.normal(size=(3, 9))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("centred", [True, False])
def test_inner_products_of_centred_rows(counts, domain, means, form, centred):
    centre = means[domain] if centred else 0
    K = domain_centred_gram(form(counts), means if centred else None, domain)
    assert_allclose(K, (counts - centre) @ (counts - centre).T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("centred", [True, False])
def test_primal_weights_are_combinations_of_centred_rows(counts, domain, means, form, centred, rng):
    dual = rng.normal(size=(60, 2))
    weights = primal_weights(form(counts), means if centred else None, domain, dual)
    assert_allclose(weights, (counts - (means[domain] if centred else 0)).T @ dual, rtol=1e-9, atol=1e-9)


def test_float32_stays_float32(counts, domain, means):
    H = counts.astype(np.float32)
    for rows in (H, sp.csr_array(H)):
        assert domain_centred_gram(rows, means, domain).dtype == np.float32
        assert primal_weights(rows, means, domain, np.ones((60, 1))).dtype == np.float32


def test_running_sum_is_the_gram_matrix_of_the_concatenation(counts, domain):
    """K_l = sum_t h^t h^t', for every depth, with the means of each domain taken out."""
    blocks = [counts, *(h for _, h in algorithm_2(counts, 0.6, 3))]
    K = 0
    for depth, H in enumerate(blocks):
        means = np.array([H[domain == k].mean(axis=0) for k in range(3)])
        K = K + domain_centred_gram(H, means, domain)
        built = np.hstack(blocks[: depth + 1])
        for k in range(3):
            built[domain == k] -= built[domain == k].mean(axis=0)
        assert_allclose(K, built @ built.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_decision_is_the_product_with_the_concatenation(counts, form, rng):
    answer = algorithm_2(counts, 0.6, 3)
    layers = [Layer(W[:-1], W[-1]) for W, _ in answer]
    weights = [rng.normal(size=(9, 2)) for _ in range(4)]
    scores = decision_scores(form(counts), form(counts), layers, weights)
    built = np.hstack([counts, *(h for _, h in answer)])
    assert_allclose(scores, built @ np.vstack(weights), rtol=1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_adding_in_place(counts, domain, means, centred, rng):
    A = rng.normal(size=(60, 60))
    K = A + A.T
    expected = K + 0.3 * domain_centred_gram(counts, means if centred else None, domain)
    found = add_domain_centred_gram(K, counts, means if centred else None, domain, 0.3)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.shares_memory(found, K)
