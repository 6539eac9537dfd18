"""NumPy, torch and Dask fit the same classifier, in either form of the first layer.

A classifier takes no stream; `tests/core/test_form.py` holds the layers of streams to those of NumPy.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.exact import ExactClassifier
from tests.helpers.pin_tasks import read_documents
from undrift import MSDAClassifier, TermVectorizer

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
        return [dask.delayed(rows[start : start + 70]) for start in range(0, rows.shape[0], 70)]
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


# source, target, terms, pivots and the form of 2 x 300 reviews
PAIRS = [
    ("books", "kitchen_housewares", 4000, "auto", "rows"),
    ("dvd", "electronics", 3000, 100, "parts"),
    ("baby", "music", 500, None, "terms"),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # of readings that differ
@pytest.mark.parametrize(("source", "target", "n_terms", "n_pivots", "form"), PAIRS)
def test_reviews_get_the_same_predictions_wherever_they_are(
    source, target, n_terms, n_pivots, form, data_folder
):
    """The default classifier, in float32."""
    documents, y = read_documents(data_folder, source, 300, 0.5)
    texts, _ = read_documents(data_folder, target, 300, 0.5)
    vectorizer = TermVectorizer(n_terms).fit(documents + texts)
    X, Z = vectorizer.transform(documents), vectorizer.transform(texts)

    def fit(backend):
        device = "torch:cpu" if backend == "torch" else "cpu"
        model = MSDAClassifier(n_pivots=n_pivots, random_state=0, device=device)
        return model.fit(X, y, place(backend, Z))

    expected = fit("numpy")
    for backend in ("torch", "dask"):
        if backend == "torch":
            pytest.importorskip("torch")
        model = fit(backend)
        assert model.representation_.form_ == expected.representation_.form_ == form, backend
        assert_array_equal(model.predict(Z), expected.predict(Z), backend)
        assert_allclose(model.decision_function(Z), expected.decision_function(Z), atol=1e-4, err_msg=backend)
