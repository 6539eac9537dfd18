"""Estimates of others, on scores whose truth is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from undrift.method.calibrate import HeldOut
from undrift_lab.methods.estimates import ESTIMATES


def draw(share, n, rng, separation=1.0):
    """Log odds of two normal classes, calibrated at equal shares, and the classes."""
    codes = (np.arange(n) < share * n).astype(int)
    return 2 * separation * rng.normal((2 * codes - 1) * separation, 1), codes


@pytest.fixture
def held_out(rng):
    scores, codes = draw(0.5, 20_000, rng)
    return HeldOut(scores[:, None], codes, np.ones(len(codes)))


def probabilities(scores):
    return np.column_stack([expit(-scores), expit(scores)])


def test_confidence_and_thresholds_know_the_error_where_nothing_but_the_separation_changes(held_out, rng):
    for separation, atol in ((1.0, 0.01), (1.4, 0.02)):
        scores, codes = draw(0.5, 20_000, rng, separation)
        error = np.mean((scores > 0) != codes)
        for name in ("confidence", "doc", "atc"):
            says = ESTIMATES[name](held_out, probabilities(scores))
            assert_allclose(says["expected_error"], error, atol=atol)
            assert says["known"]
            assert says["estimated_share"] is None


def test_the_threshold_is_where_as_many_held_out_rows_are_as_are_wrong():
    scores = np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
    codes = np.array([0, 0, 0, 1, 0, 1, 1, 1])  # the two least confident are wrong
    held_out = HeldOut(scores[:, None], codes, np.ones(8))
    target = probabilities(np.array([0.01, -0.01, 0.02, 9.0]) / held_out.temperature)
    assert ESTIMATES["atc"](held_out, target)["expected_error"] == 0.75


@pytest.mark.parametrize("name", ["em", "dys", "kdey"])
def test_quantifiers_find_the_share_of_the_target(held_out, rng, name):
    pytest.importorskip("quapy")
    scores, _ = draw(0.2, 5_000, rng)
    says = ESTIMATES[name](held_out, probabilities(scores))
    assert_allclose(says["estimated_share"], 0.2, atol=0.03)
    assert says["expected_error"] is None
