"""Baselines that learn target labels: what one of them gives does not depend on what ran before."""

import numpy as np
import scipy.sparse as sp

from undrift import MSDAClassifier
from undrift_lab.methods.labels import LabelTask


def test_augmented_features_give_the_same_in_any_order():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(2, 160)).astype(float)
    X, target = (sp.csr_array(rng.poisson(0.3 + 0.35 * np.outer(y, np.arange(12) < 4))) for y in truth)
    predicted, chosen = [], []
    for order in ((4, 100), (100, 4)):
        task = LabelTask(X, truth[0], target, truth[1], 5.0, MSDAClassifier())
        by_number = {n: task.predict_augmented(np.arange(n), np.arange(100, 160)).tolist() for n in order}
        predicted.append(by_number)
        chosen.append(task.augmented_C)
    assert predicted[0] == predicted[1]
    assert chosen[0] == chosen[1]
    assert chosen[0][4] != chosen[0][100]
