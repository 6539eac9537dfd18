"""A small adaptation with hostile documents in it, its report, and a real browser to open it in."""

import warnings

import pytest

HOSTILE = '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u2028</script><!--'


@pytest.fixture(scope="session")
def reviews():
    """Labelled books, and kitchen ware with and without truth; every third kitchen review is hostile."""
    from undrift.datasets import make_reviews

    corpus = make_reviews(600, domains=("books", "kitchen"), random_state=3)
    books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
    names = {0.0: "negative", 1.0: "positive"}
    y, truth = ([names.get(float(label)) for label in own.y] for own in (books, kitchen))
    texts = [text + HOSTILE if i % 3 == 0 else text for i, text in enumerate(kitchen.texts)]
    return list(books.texts), y, texts, truth


@pytest.fixture(scope="session")
def adapter(reviews):
    """A fitted TextAdapter."""
    from undrift import MSDAClassifier, TextAdapter, UndriftWarning

    books, y, kitchen, _ = reviews
    classifier = MSDAClassifier(5, 0.7, random_state=0)
    adapter = TextAdapter(900, classifier=classifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndriftWarning)
        return adapter.fit(books, y, kitchen)


@pytest.fixture(scope="session")
def report(adapter, reviews):
    from undrift.report import adaptation_report

    books, y, kitchen, truth = reviews
    return adaptation_report(adapter, books, y, kitchen, truth=truth, names=("books", "kitchen"))


@pytest.fixture(scope="session")
def unscored(adapter, reviews):
    from undrift.report import adaptation_report

    books, y, kitchen, _ = reviews
    return adaptation_report(adapter, books, y, kitchen)
