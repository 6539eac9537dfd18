"""Classifiers of several tasks fitted together: each as if alone, every layer learnt once."""

import numpy as np
import pytest
from sklearn.base import clone

from undrift import MSDAClassifier
from undrift.method.layers import LayerFitter
from undrift_lab.methods.together import fit_together


class Exact(MSDAClassifier):
    _dtype = "float64"


N_ROWS = (40, 30, 50)
PARAMETERS = [
    {"n_layers": 2, "noise": 0.5},
    {"n_layers": [1, 3], "noise": 0.8, "C": [0.1, 1.0]},
    {"n_layers": 2, "noise": 0.5, "n_pivots": 6},
    {"n_layers": 3, "noise": 0.5, "center": False, "self_training": False},
]


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    rate = np.repeat(rng.gamma(1.0, size=(3, 12)), N_ROWS, axis=0)
    return rng.poisson(rate).astype(float)


def make_tasks():
    """Every domain as the source of every other: labels of the source, target domain k as -1 - k."""
    number = np.repeat(np.arange(3), N_ROWS)
    y = np.random.default_rng(5).integers(0, 2, len(number)).astype(float)
    return {
        (source, target): (
            np.where(number == source, y, np.nan),
            np.where(number == target, -1 - number, number),
        )
        for source in range(3)
        for target in range(3)
        if source != target
    }


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_each_is_what_it_would_be_alone_and_layers_are_learnt_once(X, parameters, spy):
    calls = spy(LayerFitter, "fit")
    classifier = Exact(random_state=0, **parameters)
    fitted = dict(fit_together(classifier, X, make_tasks()))
    assert [noise for _, noise, *_ in calls] == [parameters["noise"]]
    for task, (y, sample_domain) in make_tasks().items():
        alone = clone(classifier).fit(X, y, sample_domain=sample_domain)
        together = fitted[task].classifier
        assert together.best_params_ == alone.best_params_
        for name in ("decision_function", "predict_proba"):
            scores = [getattr(model, name)(X, sample_domain=sample_domain) for model in (together, alone)]
            np.testing.assert_allclose(*scores, atol=1e-8)


def test_layers_of_several_noise_levels_are_refused(X):
    fitted = dict(fit_together(MSDAClassifier(1, noise=[0.3, 0.8]), X, make_tasks()))
    assert all("have one noise" in str(error) for error in fitted.values())
