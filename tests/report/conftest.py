"""A small adaptation with hostile documents in it, its report, and a real browser to open it in."""

import functools
import warnings

import pytest

from tests.helpers.topics import make_topics

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


@pytest.fixture(scope="session")
def topic_reports():
    """Make a report with 3, 10 or 30 classes, scored or not, each once."""
    from undrift import MSDAClassifier, TextAdapter, UndriftWarning
    from undrift.report import adaptation_report

    fitted = {}

    @functools.cache
    def make(n_classes, is_scored):
        rows = [make_topics(n_classes, name, 15 * n_classes + 60) for name in ("shop", "phone")]
        (texts, y), (others, truth) = rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndriftWarning)
            if n_classes not in fitted:
                adapter = TextAdapter(900, classifier=MSDAClassifier(1, 0.7, random_state=0))
                fitted[n_classes] = adapter.fit(texts, y, others)
            given = {"truth": truth} if is_scored else {}
            return adaptation_report(fitted[n_classes], texts, y, others, names=("shop", "phone"), **given)

    return make


@pytest.fixture(scope="session")
def given(adapter, reviews):
    """What a report on the reviews is made from."""
    from undrift.report.data import DomainRows, ReportData

    books, y, kitchen, _ = reviews
    X = [adapter.vectorizer_.transform(documents) for documents in (books, kitchen)]
    source, target = DomainRows("books", X[0], books, y), DomainRows("kitchen", X[1], kitchen)
    return ReportData(adapter.classifier_, adapter.terms_, [source], [target])


class Opened:
    """A page, with what it said and what it asked for."""

    def __init__(self, browser, path, width=1280, scheme="light", **options):
        screen = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
        self.context = browser.new_context(offline=True, **screen, **options)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri())


@pytest.fixture
def open_file(browser):
    """Open a page from a file, with the network off; closed afterwards."""
    contexts = []

    def open_(path, **options):
        own = Opened(browser, path, **options)
        contexts.append(own.context)
        return own

    yield open_
    for context in contexts:
        context.close()
