"""Classifiers of several tasks fitted together: each as if alone, every layer learnt once."""

import numpy as np
import pytest
from sklearn.base import clone

from undrift import MSDAClassifier
from undrift_lab.methods import together as module
from undrift_lab.methods.together import fit_together


class Exact(MSDAClassifier):
    _dtype = "float64"


N_ROWS = (40, 30, 50)
PARAMETERS = [
    {"n_layers": 2, "noise": 0.5},
    {"n_layers": 2, "noise": 0.5, "n_pivots": 6, "C": 0.3},
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
    calls = spy(module, "learn_layers")
    classifier, tasks = Exact(random_state=0, **parameters), make_tasks()
    found = dict(fit_together(dict.fromkeys(tasks, classifier), X, tasks))
    assert [settings.noise for _, settings, *_ in calls] == [parameters["noise"]]
    for task, (y, sample_domain) in tasks.items():
        alone = clone(classifier).fit(X, y, sample_domain=sample_domain)
        target, own = -1 - task[1], X[sample_domain == -1 - task[1]]
        p = found[task].predict_proba(own, target)
        np.testing.assert_allclose(p, alone.predict_proba(own, target=target), atol=1e-6)
        readings = found[task].find_readings(own, target)
        assert list(readings) == alone.model_.names
        np.testing.assert_allclose(
            list(readings.values()), alone.find_readings(own, target=target), atol=1e-6
        )


def test_candidates_and_other_layers_are_refused(X):
    tasks = make_tasks()
    found = dict(fit_together(dict.fromkeys(tasks, MSDAClassifier(1, noise=[0.3, 0.8])), X, tasks))
    assert all("take one value of noise" in str(error) for error in found.values())
    classifiers = {task: MSDAClassifier(1, noise=0.3 if task[0] else 0.8) for task in tasks}
    found = dict(fit_together(classifiers, X, tasks))
    errors = [task for task, each in found.items() if "one noise and depth" in str(each)]
    assert errors == [task for task in tasks if task[0]]
