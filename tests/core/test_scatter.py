"""Moments of domains: the mean square of rows, and when it counts as rounding."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift.core.scatter import mean_square, moments


def test_the_mean_square_is_that_of_rows_less_the_mean_of_their_domain(rng):
    A, B = rng.normal(3, 1, size=(20, 4)), rng.normal(-2, 1, size=(30, 4))
    centred = np.vstack([A - A.mean(axis=0), B - B.mean(axis=0)])
    domains = [moments(A), moments(B)]
    assert_allclose(mean_square(domains, center=True), (centred**2).sum() / 50, rtol=1e-9)
    assert_allclose(mean_square(domains, center=False), (np.vstack([A, B]) ** 2).sum() / 50, rtol=1e-12)


@pytest.mark.parametrize(("share", "counts_as_rounding"), [(1e-7, True), (8e-7, True), (1.2e-6, False)])
def test_rows_that_differ_from_the_mean_by_a_millionth_of_their_energy_differ_by_rounding(
    share, counts_as_rounding
):
    step = np.sqrt(share)
    X = np.array([[1 + step], [1 - step]] * 10)  # mean 1, and `share` of the energy around it
    expected = 0.0 if counts_as_rounding else step**2
    assert_allclose(mean_square([moments(X)], center=True), expected, rtol=1e-6)
    assert mean_square([moments(X)], center=False) > 1
