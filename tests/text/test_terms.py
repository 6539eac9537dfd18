import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from undrift.errors import UndriftWarning
from undrift.text import TermVectorizer, count_words, interleave, unseen_share

DOCUMENTS = [
    "the kettle boils and boils and boils and boils",
    "the kettle leaks",
    "the lid of the pan",
    "",
    "a lid",
]


def oracle_terms(document):
    """Uni- and bigrams of a document of lower-case words parted by single blanks."""
    found = document.split()
    return found + [f"{a} {b}" for a, b in pairwise(found)]


def oracle_tfidf(documents, terms):
    n = len(documents)
    rows = []
    for document in documents:
        counts = Counter(oracle_terms(document))
        row = []
        for term in terms:
            frequency = sum(term in oracle_terms(other) for other in documents)
            idf = math.log((1 + n) / (1 + frequency)) + 1
            row.append((1 + math.log(counts[term])) * idf if counts[term] else 0.0)
        length = math.sqrt(sum(value**2 for value in row))
        rows.append([value / length if length else 0.0 for value in row])
    return 5 * np.array(rows)


def test_vocabulary_is_by_document_frequency_then_alphabet():
    vectorizer = TermVectorizer(5).fit(DOCUMENTS)
    # "boils" and "and" are frequent in one document only; "the" counts once in "the lid of the pan"
    assert vectorizer.terms_ == ["the", "kettle", "lid", "the kettle", "a"]
    assert_array_equal(vectorizer.document_frequency_, [3, 2, 2, 2, 1])
    assert vectorizer.n_documents_ == 5
    assert vectorizer.n_missed_ == 0
    all_terms = {term for document in DOCUMENTS for term in oracle_terms(document)}
    assert set(TermVectorizer().fit(DOCUMENTS).terms_) == all_terms


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-4), ("float64", 1e-9)])
def test_tfidf_equals_its_definition(dtype, rtol):
    vectorizer = TermVectorizer(8, dtype=dtype)
    rows = vectorizer.fit_transform(DOCUMENTS)
    assert rows.dtype == dtype
    assert rows.format == "csr"
    assert_allclose(rows.toarray(), oracle_tfidf(DOCUMENTS, vectorizer.terms_), rtol=rtol)
    assert_allclose(sparse.linalg.norm(rows, axis=1), [5, 5, 5, 0, 5], rtol=rtol)


def test_empty_documents_are_zero_rows():
    vectorizer = TermVectorizer().fit(DOCUMENTS)
    rows = vectorizer.transform(["", "?!", "unheard of words", "lid"])
    assert_array_equal(np.diff(rows.indptr), [0, 0, 1, 1])  # "of" is known
    assert vectorizer.transform([]).shape == (0, len(vectorizer.terms_))


@pytest.mark.filterwarnings("ignore:the vocabulary may lack terms")
@pytest.mark.parametrize("options", [{}, {"tokens": "characters"}, {"n_terms": 5}])
@pytest.mark.parametrize("n_too_many", [0, 1])
def test_domains_are_cut_into_terms_once_unless_there_are_too_many(options, n_too_many, monkeypatch):
    domains = [DOCUMENTS[:3], DOCUMENTS[3:], []]
    n_distinct = len(TermVectorizer(**options | {"n_terms": 99_999}).fit(DOCUMENTS).terms_)
    apart, together, cut = TermVectorizer(**options), TermVectorizer(**options), []
    apart.max_counted = together.max_counted = n_distinct - n_too_many
    apart.fit(interleave(domains))
    analyser = together.choose_tokens(DOCUMENTS).build_analyzer()
    monkeypatch.setattr(together, "build_analyzer", lambda: lambda text: cut.append(text) or analyser(text))
    rows, words = together.fit_domains(domains)
    assert len(cut) > 2 * len(DOCUMENTS) if n_too_many else sorted(cut) == sorted(DOCUMENTS)
    assert together.terms_ == apart.terms_
    assert_array_equal(together.idf_, apart.idf_)
    for own, documents, counts in zip(rows, domains, words, strict=True):
        expected = apart.transform(documents)
        assert own.dtype == expected.dtype
        assert own.indices.dtype == expected.indices.dtype == np.int32
        assert_array_equal(own.toarray(), expected.toarray())
        assert counts == count_words(documents, apart.tokens_)


def zipf_documents(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{k}" for k in rng.zipf(1.5, size=12)) for _ in range(n)]


@pytest.fixture
def bounded():
    vectorizer = TermVectorizer(30)
    vectorizer.max_counted = 400
    return vectorizer


def test_bounded_counting_keeps_its_promise(bounded):
    documents = zipf_documents()
    exact = Counter(term for document in documents for term in set(oracle_terms(document)))
    bounded.fit(documents)
    assert len(exact) > 2000
    assert 0 < bounded.n_missed_ < 20
    found = dict(zip(bounded.terms_, bounded.document_frequency_, strict=True))
    for term, frequency in found.items():
        assert exact[term] - bounded.n_missed_ <= frequency <= exact[term]
    left_out = max(frequency for term, frequency in exact.items() if term not in found)
    assert left_out <= min(found.values()) + bounded.n_missed_
    bounded.set_params(n_terms=50).max_counted = 100
    with pytest.warns(UndriftWarning, match="more than 100 distinct terms; lower n_terms"):
        bounded.fit(zipf_documents())


def test_bounded_counting_holds_half_of_the_terms_after_forgetting(bounded):
    frequencies = bounded.choose_tokens([]).frequencies(zipf_documents())
    assert frequencies.n_missed > 0
    assert 0 < len(frequencies.counts) <= 400
    doubled = frequencies + frequencies
    assert doubled.n_documents == 1200
    assert doubled.n_missed >= 2 * frequencies.n_missed


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"bytes", r"document 1 \(counting from 0\) is bytes, not a string: decode it"),
        (7, r"document 1 .* is 7 of type int"),
        (["a"], r"document 1 .* of type list"),
    ],
)
def test_documents_that_are_no_strings_are_named_by_position(bad, message):
    with pytest.raises(ValueError, match=message):
        TermVectorizer().fit(["fine", bad])
    with pytest.raises(ValueError, match=message):
        TermVectorizer().fit(DOCUMENTS).transform(["fine", bad])
    with pytest.raises(ValueError, match=message):
        count_words(["fine", bad])


@pytest.mark.parametrize("nothing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_a_missing_document_is_an_empty_one(nothing):
    vectorizer = TermVectorizer().fit([*DOCUMENTS, nothing])
    assert vectorizer.terms_ == TermVectorizer().fit([*DOCUMENTS, ""]).terms_
    assert vectorizer.transform([nothing]).nnz == 0


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        *((documents, "must be an iterable of strings") for documents in ("one string", b"bytes", 3, None)),
        (np.array([["a", "b"], ["c", "d"]]), "choose its text column"),
        ([], "no words in the 0 documents"),
        (["", "?!"], "no words in the 2 documents"),
    ],
)
def test_what_holds_no_documents_is_refused(documents, message):
    with pytest.raises(ValueError, match=message):
        TermVectorizer().fit(documents)
    with pytest.raises(NotFittedError):
        TermVectorizer().transform(DOCUMENTS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tokens": "letters"}, "tokens='letters' is not known"),
        ({"n_terms": 0}, "n_terms=0 must be at least 1"),
        ({"length": 0}, "length=0 must be above 0 and finite"),
        ({"dtype": "int32"}, "dtype='int32' is not known; choose one of 'float32', 'float64'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TermVectorizer(**parameters).fit(DOCUMENTS)


def test_unseen_share():
    source = ["the good book", "a book"]
    known = count_words(iter(source))
    assert known == {"the": 1, "good": 1, "book": 2, "a": 1}
    assert unseen_share(count_words(["the kettle, the kettle", "a good kettle"]), known) == 3 / 7
    assert unseen_share(known, known) == 0
    assert math.isnan(unseen_share(count_words(["", "!"]), known))
