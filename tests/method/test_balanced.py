"""Predictions of classes that count alike: their expected error and errors by class are theirs."""

import numpy as np
import pytest

from undrift.method.jury import estimate
from undrift.method.settings import VoteSettings

NONE = np.zeros(0, dtype=int)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_error_and_confusion_are_of_the_balanced_predictions(n_classes):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.linspace(4, 1, n_classes), 400)
    none = np.zeros((0, n_classes))
    found = estimate(p, none, NONE, VoteSettings(), is_balanced=True)
    guesses = [int(np.argmax([row[k] / p[:, k].mean() for k in range(n_classes)])) for row in p]
    wrong = [1 - row[guess] for row, guess in zip(p, guesses, strict=True)]
    assert found.error == pytest.approx(np.mean(wrong))
    assert found.error > estimate(p, none, NONE, VoteSettings()).error + 0.01
    for code in range(n_classes):
        share = np.mean([guess == code for guess in guesses])
        assert found.confusion[:, code].sum() == pytest.approx(share)
    assert found.confusion.trace() == pytest.approx(1 - found.error)
