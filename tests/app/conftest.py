"""A fitted adapter whose target can be labelled, a saved model, and texts."""

import warnings

import pytest

from tests.helpers.review_files import make_review_texts, write_csv
from tests.helpers.topics import make_topics

QUESTIONS = 5  # of a labelling session, that come first and measure nothing
BAD = '<img src=x onerror="window.hacked=1">'  # the name of a class


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


@pytest.fixture(scope="session")
def mixed_reviews():
    """Texts of every domain, of which few say clearly what they mean, and labels: BAD and "good"."""
    reviews = make_review_texts(620, unlabelled_share=0.0, seed=5, style="mixed")
    names = {"negative": BAD, "positive": "good"}
    return {domain: (texts, [names[label] for label in y]) for domain, (texts, y) in reviews.items()}


@pytest.fixture(scope="session")
def batch_models(tmp_path_factory, mixed_reviews):
    """A folder with m.st, which can be updated, and d.st, distilled: of books and 300 rows of kitchen."""
    from undrift.app import main

    folder = tmp_path_factory.mktemp("model")
    write_csv(folder / "books.csv", dict(zip(("review", "stars"), mixed_reviews["books"], strict=True)))
    write_csv(folder / "kitchen.csv", {"review": mixed_reviews["kitchen"][0][:300]})
    command = ["adapt", folder / "books.csv", folder / "kitchen.csv", "--label", "stars"]
    command += ["--out", folder / "o.csv", "--model", folder / "m.st", "--distilled", folder / "d.st"]
    more = ["--updatable", "--max-features", "600", "--set", "layers=2", "--quiet"]
    with pytest.raises(SystemExit) as done:
        main([*map(str, command), *more])
    assert done.value.code == 0
    return folder


@pytest.fixture(scope="session")
def adapt_topics():
    """Fit an adapter of 3, 10 or 30 classes; return it, and texts and labels of its target."""
    from undrift import MSDAClassifier, TextAdapter, UndriftWarning

    def make(n_classes, n_rows=None):
        n_rows = n_rows or 10 * n_classes + 100
        rows = [make_topics(n_classes, name, n_rows) for name in ("shop", "phone")]
        (texts, y), (others, truth) = rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndriftWarning)
            adapter = TextAdapter(600, classifier=MSDAClassifier(1, 0.7, random_state=0)).fit(
                texts, y, others
            )
        return adapter, others, dict(zip(others, truth, strict=True))

    return make
