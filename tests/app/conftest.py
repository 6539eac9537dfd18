"""A fitted adapter whose target can be labelled."""

import warnings

import pytest

from tests.helpers.review_files import make_review_texts


@pytest.fixture(scope="session")
def adapted():
    """A fitted adapter, the texts of its target, and their true labels."""
    from undrift import TextAdapter, UndriftWarning
    from undrift.datasets import make_reviews

    corpus = make_reviews(500, domains=("books", "kitchen"), random_state=3)
    books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
    names = {0.0: "negative", 1.0: "positive"}
    y = [names.get(float(label)) for label in books.y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndriftWarning)
        adapter = TextAdapter(900).fit(list(books.texts), y, list(kitchen.texts))
    labels = [names.get(float(label), "positive") for label in kitchen.y]
    truth = dict(zip(kitchen.texts, labels, strict=True))
    return adapter, list(truth), truth


@pytest.fixture(scope="session")
def reviews():
    """Texts and labels of every domain, a quarter of them without a label."""
    return make_review_texts(120, unlabelled_share=0.25, seed=1)
