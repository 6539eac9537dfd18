"""A fit that fails leaves an estimator as it was, whatever the estimator and wherever it fails."""

import numpy as np
import pytest

from undrift import MDA, MSDA, MSDAClassifier, TermVectorizer, TextAdapter
from undrift.datasets import make_reviews

BOOKS, KITCHEN = make_reviews(60, domains=("books", "kitchen"), unlabelled_share=0).domains.values()
X, Z = np.random.default_rng(0).poisson(0.5, (60, 8)), np.random.default_rng(1).poisson(0.5, (40, 8))

CASES = {  # an estimator, arguments of a fit, arguments of one that fails, the step in which it is to fail
    "rows of a layer": (MDA(), (X,), (np.full((5, 3), np.nan),), None),
    "system of a layer": (MDA(ridge=0.0, noise=0.0), (X,), (np.zeros((5, 3)),), None),
    "system of layers": (MSDA(2, noise=0.0, ridge=0.0), (X,), (np.zeros((5, 3)),), None),
    "pivots": (MSDA(2, n_pivots=6), (X,), (X[:, :4],), None),
    "labels": (MSDAClassifier(1), (X, X[:, 0] > 0, Z), (X[:, :4], np.ones(60), Z[:, :4]), None),
    "rounds": (MSDAClassifier(1), (X, X[:, 0] > 0, Z), (X[:, :4], X[:, 1] > 0, Z[:, :4]), "judge"),
    "words": (TermVectorizer(20), (BOOKS.texts,), (["!", "?"],), None),
    "text": (TextAdapter(50), (BOOKS.texts, BOOKS.y, KITCHEN.texts), (BOOKS.texts, np.ones(60)), None),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_fit_that_fails_leaves_an_estimator_as_it_was(name, fail):
    estimator, good, bad, step = CASES[name]
    estimator.fit(*good)
    before = dict(vars(estimator))
    if step is not None:
        fail(f"undrift.method.fit.{step}", ValueError("a full disk"))
    with pytest.raises(ValueError, match=r"\w"):
        estimator.fit(*bad)
    assert vars(estimator) == before
    assert len(before) > len(estimator.get_params(deep=False))
