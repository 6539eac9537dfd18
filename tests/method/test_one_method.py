"""NumPy, torch and Dask fit the same classifier, in either form of the first layer; in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.exact import ExactClassifier

N, D = 120, 300  # rows of each domain, terms
PIVOTS = {"rows": 3 * D // 4, "parts": 40}


def draw_rows(n_classes, seed=0):
    """Source and target rows of topics that are the classes, and their labels, of which some are wrong."""
    rng = np.random.default_rng(seed)
    topics = rng.beta(0.3, 3.0, size=(n_classes, D))
    labels = rng.integers(n_classes, size=2 * N)
    shown = topics[labels] + 0.01
    shown[N:, : D // 10] *= 0.2  # words that the target hardly has
    labels = np.where(rng.random(2 * N) < 0.2, rng.integers(n_classes, size=2 * N), labels)
    X = sp.csr_array((rng.random((2 * N, D)) < shown).astype(np.float64))
    return X[:N], labels[:N], X[N:], labels[N:]


def place(backend, rows):
    if backend == "dask":
        dask = pytest.importorskip("dask")
        return [dask.delayed(rows[start : start + 70]) for start in range(0, N, 70)]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("with_teacher", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", PIVOTS)
def test_a_fit_is_the_same_wherever_its_rows_are(form, n_classes, with_teacher):
    X, y, Z, truth = draw_rows(n_classes)
    teacher = np.where(np.arange(N) % 9, truth, (truth + 1) % n_classes) if with_teacher else None

    def fit(backend):
        device = "torch:cpu" if backend == "torch" else "cpu"
        model = ExactClassifier(3, n_pivots=PIVOTS[form], random_state=0, device=device)
        return model.fit(X, y, place(backend, Z), teacher=teacher)

    expected = fit("numpy")
    assert expected.representation_.form_ == form
    for backend in ("torch", "dask"):
        if backend == "torch":
            pytest.importorskip("torch")
        model = fit(backend)
        assert model.representation_.form_ == form, backend
        assert_allclose(model.predict_proba(Z), expected.predict_proba(Z), atol=1e-4, err_msg=backend)
        scores, known = (each.decision_function(Z) for each in (model, expected))
        assert_allclose(scores, known, atol=1e-4, err_msg=backend)
        assert_array_equal(model.predict(Z), expected.predict(Z), backend)
