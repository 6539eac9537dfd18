"""Running Gram matrices against the concatenation that is never built, and when they copy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from undrift.classifier.grams import RunningGram, centre_rows, inner_products

DOMAIN = np.repeat([0, 1], [6, 4])


@pytest.fixture
def layers(rng):
    """Input and two layers of ten rows of two domains."""
    return [rng.gamma(1.0, size=(10, width)) for width in (5, 7, 3)]


def domain_means(H):
    return np.stack([H[k == DOMAIN].mean(axis=0) for k in (0, 1)])


def summed(layers, shares, center):
    centred = [H - domain_means(H)[DOMAIN] if center else H for H in layers]
    return sum(share * H @ H.T for H, share in zip(centred, shares, strict=True))


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("center", [True, False])
def test_layers_add_up(layers, form, center):
    gram, shares = RunningGram(), (1.0, 0.5, 2.0)
    for H, share in zip(layers, shares, strict=True):
        gram.add_rows(form(H), domain_means(H) if center else None, DOMAIN, share)
    assert_allclose(gram.peek(), summed(layers, shares, center), rtol=1e-10, atol=1e-12)


def test_what_is_held_does_not_change_and_what_is_only_read_does(layers):
    gram = RunningGram()
    gram.add_rows(layers[0].copy(), None, DOMAIN)
    held = gram.hold()
    before = held.copy()
    gram.add_rows(layers[1].copy(), None, DOMAIN)
    assert_array_equal(held, before)
    assert not np.shares_memory(gram.peek(), held)
    read = gram.peek()
    gram.add_rows(layers[2].copy(), None, DOMAIN)
    assert np.shares_memory(gram.peek(), read)  # added to in place: no copy unless somebody holds the sum
    assert_allclose(read, summed(layers, (1, 1, 1), center=False), rtol=1e-10)


def test_a_copy_is_independent(layers):
    gram = RunningGram()
    gram.add_rows(layers[0].copy(), None, DOMAIN)
    other = gram.copy()
    other.add_rows(layers[1].copy(), None, DOMAIN)
    assert_allclose(gram.peek(), layers[0] @ layers[0].T, rtol=1e-10)
    assert_allclose(other.peek(), summed(layers[:2], (1, 1), center=False), rtol=1e-10)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_products_of_two_domains_are_a_block_of_the_whole(layers, form):
    """Sums kept domain by domain are those of all rows together."""
    whole, across = RunningGram(), RunningGram()
    for H, share in zip(layers, (1.0, 0.5, 2.0), strict=True):
        means = domain_means(H)
        target, source = (centre_rows(form(H[k == DOMAIN]), means[k]) for k in (1, 0))
        across.add_products(target, source, share)
        whole.add_rows(H.copy(), means, DOMAIN, share)
    assert_allclose(across.peek(), whole.peek()[6:, :6], rtol=1e-9, atol=1e-12)
    assert_allclose(inner_products(target, target), whole_block(layers[2])[6:, 6:], rtol=1e-9, atol=1e-12)


def whole_block(H):
    centred = H - domain_means(H)[DOMAIN]
    return centred @ centred.T


def test_rows_that_are_not_centred_are_multiplied_as_they_are(layers):
    A, B = (centre_rows(layers[0][k == DOMAIN], None) for k in (0, 1))
    assert_allclose(inner_products(A, B), layers[0][:6] @ layers[0][6:].T, rtol=1e-12)
