import random
from itertools import chain

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from undrift import MSDAClassifier
from undrift.datasets.reviews import make_reviews
from undrift.text import TermVectorizer, words

DOMAINS = ["books", "kitchen", "electronics", "camping"]


@pytest.fixture(scope="module")
def corpus():
    return make_reviews()


def shuffled(texts, seed=0):
    """The same words in documents of the same lengths, but each word in any of the documents."""
    documents = [words(text) for text in texts]
    pool = list(chain.from_iterable(documents))
    random.Random(seed).shuffle(pool)
    rest = iter(pool)
    return [" ".join(next(rest) for _ in document) for document in documents]


def error_of(machine, X, y, X_test, y_test):
    return np.mean(machine.fit(X, y).predict(X_test) != y_test)


def adapted_error(X, y, unlabelled, X_test, y_test):
    """Error of the library's classifier; the rows it is scored on are not among those it learns from."""
    source, target = unlabelled
    labels = np.concatenate([y, np.full(source.shape[0], np.nan)])
    model = MSDAClassifier(3, 0.9, center="domains", self_training=False)
    model.fit(sparse.vstack([X, source]), labels, target)
    return np.mean(model.predict(X_test) != y_test)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
@pytest.mark.parametrize(("source", "target"), [(DOMAINS[i - 1], DOMAINS[i]) for i in range(4)])
def test_adaptation_helps_because_words_occur_together(corpus, source, target):
    source, target = corpus.domains[source], corpus.domains[target]
    vectorizer = TfidfVectorizer(analyzer=words, max_features=600, sublinear_tf=True, dtype=np.float32)
    vectorizer.fit(source.texts + target.texts)

    def rows(texts):
        return 5 * vectorizer.transform(texts)

    X, y = rows([source.texts[i] for i in source.train]), source.y[source.train]
    X_test, y_test = rows([target.texts[i] for i in target.test]), target.y[target.test]
    unlabelled = [[domain.texts[i] for i in domain.unlabelled] for domain in (source, target)]
    source_only = error_of(LinearSVC(random_state=0), X, y, X_test, y_test)
    adapted = adapted_error(X, y, [rows(texts) for texts in unlabelled], X_test, y_test)
    control = adapted_error(X, y, [rows(shuffled(texts)) for texts in unlabelled], X_test, y_test)
    assert 0.2 <= source_only <= 0.4
    assert adapted < source_only / 2
    assert source_only - control < (source_only - adapted) / 3


def test_rows_and_labels(corpus):
    assert list(corpus.domains) == DOMAINS
    for name, domain in corpus.domains.items():
        assert domain.name == name
        assert len(domain.texts) == len(domain.y) == 2000
        assert [len(domain.train), len(domain.test), len(domain.unlabelled)] == [800, 400, 800]
        assert_array_equal(np.sort(np.r_[domain.train, domain.test, domain.unlabelled]), np.arange(2000))
        assert np.isnan(domain.y[domain.unlabelled]).all()
        assert domain.y[domain.train].sum() == 400
        assert domain.y[domain.test].sum() == 200
        assert set(domain.y[domain.train]) == {0, 1}


def test_shares():
    corpus = make_reviews(100, test_share=0.5, unlabelled_share=0.1, positive_share=0.8)
    domain = corpus.domains["camping"]
    assert [len(domain.train), len(domain.test), len(domain.unlabelled)] == [40, 50, 10]
    assert domain.y[domain.train].sum() == 20
    assert domain.y[domain.test].sum() == 40
    thirds = make_reviews(3, test_share=0.5, unlabelled_share=0.5).domains["books"]
    assert [len(thirds.train), len(thirds.test), len(thirds.unlabelled)] == [0, 2, 1]


def test_seeds_and_domains_are_independent(corpus):
    again = make_reviews(domains=["kitchen"])
    assert list(again.domains) == ["kitchen"]
    assert again.domains["kitchen"].texts == corpus.domains["kitchen"].texts
    assert_array_equal(again.domains["kitchen"].y, corpus.domains["kitchen"].y)
    verdicts = [tuple(domain.y[domain.train]) for domain in corpus.domains.values()]
    assert len(set(verdicts)) == 4
    other = make_reviews(domains=["kitchen"], random_state=1)
    assert other.domains["kitchen"].texts != again.domains["kitchen"].texts
    first, second = (make_reviews(20, random_state=None).domains["books"].texts for _ in range(2))
    assert first != second


def test_some_opinions_are_one_domain_s_own(corpus):
    texts = {name: [" ".join(words(t)) for t in domain.texts] for name, domain in corpus.domains.items()}

    def n_mentions(term):
        return [sum(term in text for text in texts[name]) for name in DOMAINS]

    for term, home in {"page turner": 0, "energy efficient": 1, "plug and play": 2, "bone dry": 3}.items():
        counts = n_mentions(term)
        assert counts[home] > 30
        assert sum(counts) == counts[home]
    for term in ("excellent", "recommended", "awful", "waste of money"):
        assert min(n_mentions(term)) > 15


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"domains": ["books", "cars"]}, "domains must be a list from books, kitchen"),
        ({"domains": "books"}, "domains must be a list"),
        ({"domains": []}, "domains must be a list"),
        ({"n_per_domain": 0}, "n_per_domain must be at least 1"),
        ({"test_share": 0.7, "unlabelled_share": 0.4}, "together at most 1; got 0.7 and 0.4"),
        ({"test_share": -0.1}, "at least 0"),
        ({"positive_share": 1.1}, "positive_share must be between 0 and 1"),
        ({"style": "odd"}, "style must be one of clear, mixed; got 'odd'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_reviews(**parameters)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_mixed_reviews_are_as_hard_as_real_ones(seed):
    corpus = make_reviews(
        1000, domains=["books", "kitchen"], unlabelled_share=0.0, style="mixed", random_state=seed
    )
    source, target = corpus.domains.values()
    X = TermVectorizer(1500).fit_transform(source.texts + target.texts)
    X, Z = X[:1000], X[1000:]
    model = MSDAClassifier(random_state=0).fit(X, source.y, Z)
    adapted, told = np.mean(model.predict(Z) != target.y), model.expected_error_[0]["error"]
    assert 0.2 <= error_of(LinearSVC(C=0.1), X, source.y, Z, target.y) <= 0.33
    assert 0.13 <= adapted <= 0.19
    assert abs(told - adapted) <= 0.03
