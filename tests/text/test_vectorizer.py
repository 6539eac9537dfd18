import gzip
import math
import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from undrift.errors import UndriftWarning
from undrift.text import TermVectorizer, unseen_share, words
from undrift.text import vectorizer as text

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
    return np.array(rows)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("I did n't", ["i", "didn't"]),
        ("I didn't", ["i", "didn't"]),
        ("I didn’t", ["i", "didn't"]),
        ("I didn`t", ["i", "didn't"]),
        ("I didn\x92t", ["i", "didn't"]),
        ("ca n't wo n't ai n't", ["can't", "won't", "ain't"]),
        ("it 's he 'd I 'm we 've they 're you 'll", ["it's", "he'd", "i'm", "we've", "they're", "you'll"]),
        ("larkin 's map", ["larkin's", "map"]),
        ("you can not", ["you", "cannot"]),
        ("you cannot", ["you", "cannot"]),
        ("gon na wan na got ta", ["gonna", "wanna", "gotta"]),
        ("gonna wanna gotta", ["gonna", "wanna", "gotta"]),
        ("`` the end '' he said", ["the", "end", "he", "said"]),
        ("``the end'' he said", ["the", "end", "he", "said"]),
        ('"the end" he said', ["the", "end", "he", "said"]),
        ("“the end” he said", ["the", "end", "he", "said"]),
        ("the 's' key and 'quoted'", ["the", "s", "key", "and", "quoted"]),
        ("the dogs' 'n bones", ["the", "dogs", "n", "bones"]),
        ("page-turner", ["page", "turner"]),
        ("snake_case ___", ["snake", "case"]),
        ("a 5.1 system, 1,000 watts, 3-4 mp3", ["a", "5.1", "system", "1,000", "watts", "3", "4", "mp3"]),
        ("v1.5.", ["v1", "5"]),
        ("Über Ångström ŒUVRE", ["über", "ångström", "œuvre"]),
        ("cafe\u0301", ["café"]),
        ("ﬁne ＷＩＤＥ co\u00adoperate", ["fine", "wide", "cooperate"]),
        ("İstanbul", ["istanbul"]),
        ("Отличная книга", ["отличная", "книга"]),
        ("κακό βιβλίο", ["κακό", "βιβλίο"]),
        ("好 书", ["好", "书"]),
        ("...!?", []),
        ("", []),
    ],
)
def test_words(document, expected):
    assert words(document) == expected


def test_vocabulary_is_by_document_frequency_then_alphabet():
    vectorizer = TermVectorizer(5, weighting="counts").fit(DOCUMENTS)
    # "boils" and "and" are frequent in one document only; "the" counts once in "the lid of the pan"
    assert vectorizer.terms_ == ["the", "kettle", "lid", "the kettle", "a"]
    assert_array_equal(vectorizer.document_frequency_, [3, 2, 2, 2, 1])
    assert vectorizer.n_documents_ == 5
    assert vectorizer.n_missed_ == 0


def test_small_corpora_keep_all_terms():
    expected = {term for document in DOCUMENTS for term in oracle_terms(document)}
    assert set(TermVectorizer().fit(DOCUMENTS).terms_) == expected


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-4), (np.float64, 1e-9)])
def test_tfidf_equals_its_definition(dtype, rtol):
    vectorizer = TermVectorizer(8, dtype=dtype)
    rows = vectorizer.fit_transform(DOCUMENTS)
    assert rows.dtype == dtype
    assert rows.format == "csr"
    assert_allclose(rows.toarray(), oracle_tfidf(DOCUMENTS, vectorizer.terms_), rtol=rtol)
    assert_allclose(sparse.linalg.norm(rows, axis=1), [1, 1, 1, 0, 1], rtol=rtol)


def test_counts_and_binary():
    counted = TermVectorizer(weighting="counts").fit(DOCUMENTS)
    expected = [[Counter(oracle_terms(d))[term] for term in counted.terms_] for d in DOCUMENTS]
    assert np.max(expected) == 4
    assert_array_equal(counted.transform(DOCUMENTS).toarray(), expected)
    binary = TermVectorizer(weighting="binary").fit_transform(DOCUMENTS)
    assert_array_equal(binary.toarray(), np.array(expected) > 0)


def test_ngram_range():
    assert TermVectorizer(ngram_range=(1, 1)).fit(["a b c"]).terms_ == ["a", "b", "c"]
    assert TermVectorizer(ngram_range=[2, 3]).fit(["a b c"]).terms_ == ["a b", "a b c", "b c"]


def test_empty_and_unknown_documents_are_zero_rows():
    vectorizer = TermVectorizer().fit(DOCUMENTS)
    rows = vectorizer.transform(["", "?!", "unheard of words", "lid"])
    assert_array_equal(np.diff(rows.indptr), [0, 0, 1, 1])  # "of" is known
    assert vectorizer.transform([]).shape == (0, len(vectorizer.terms_))


def test_generators_serve_as_lists_do():
    expected = TermVectorizer().fit(DOCUMENTS)
    vectorizer = TermVectorizer().fit(document for document in DOCUMENTS)
    assert vectorizer.terms_ == expected.terms_
    rows = expected.transform(DOCUMENTS).toarray()
    assert_array_equal(vectorizer.transform(document for document in DOCUMENTS).toarray(), rows)
    assert_array_equal(TermVectorizer().fit_transform(d for d in DOCUMENTS).toarray(), rows)
    assert_array_equal(TermVectorizer().fit_transform(np.array(DOCUMENTS)).toarray(), rows)


def test_blocks_are_lazy_and_stack_to_transform():
    vectorizer = TermVectorizer().fit(DOCUMENTS)
    n_read = 0

    def stream():
        nonlocal n_read
        for document in DOCUMENTS:
            n_read += 1
            yield document

    blocks = vectorizer.blocks(stream(), block_size=2)
    first = next(blocks)
    assert n_read == 2
    stacked = sparse.vstack([first, *blocks])
    assert first.shape[0] == 2
    assert_array_equal(stacked.toarray(), vectorizer.transform(DOCUMENTS).toarray())


def zipf_documents(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{k}" for k in rng.zipf(1.5, size=12)) for _ in range(n)]


def test_bounded_counting_keeps_its_promise():
    documents = zipf_documents()
    exact = Counter(term for document in documents for term in set(oracle_terms(document)))
    bounded = TermVectorizer(30, max_counted=400).fit(documents)
    assert len(exact) > 2000
    assert 0 < bounded.n_missed_ < 20
    found = dict(zip(bounded.terms_, bounded.document_frequency_, strict=True))
    for term, frequency in found.items():
        assert exact[term] - bounded.n_missed_ <= frequency <= exact[term]
    left_out = max(frequency for term, frequency in exact.items() if term not in found)
    assert left_out <= min(found.values()) + bounded.n_missed_


def test_bounded_counting_never_holds_more_than_it_says(monkeypatch):
    seen = []
    real = text._nth_highest
    monkeypatch.setattr(
        text, "_nth_highest", lambda counts, n: seen.append((len(counts), n)) or real(counts, n)
    )
    TermVectorizer(30, max_counted=400).fit(zipf_documents())
    assert len(seen) > 1
    longest = 23  # distinct terms a document of twelve words can add
    assert all(400 < n_terms <= 400 + longest and n == 200 for n_terms, n in seen)


def test_too_little_room_for_counting_is_a_warning():
    with pytest.warns(UndriftWarning, match="max_counted=100 distinct terms"):
        TermVectorizer(50, max_counted=100).fit(zipf_documents())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, r"document 1 \(counting from 0\) is missing \(None\)"),
        (float("nan"), r"document 1 .* is missing \(nan\)"),
        (b"bytes", r"document 1 .* is bytes, not a string: decode it"),
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
        unseen_share(["fine"], ["fine", bad])


def test_positions_go_on_across_blocks():
    vectorizer = TermVectorizer().fit(DOCUMENTS)
    with pytest.raises(ValueError, match="document 5 "):
        list(vectorizer.blocks([*DOCUMENTS, None], block_size=2))


@pytest.mark.parametrize("documents", ["one string", b"bytes", 3, None])
def test_one_string_is_not_a_collection(documents):
    with pytest.raises(ValueError, match="must be an iterable of strings"):
        TermVectorizer().fit(documents)


def test_a_table_is_not_a_column():
    with pytest.raises(ValueError, match="choose its text column"):
        TermVectorizer().fit(np.array([["a", "b"], ["c", "d"]]))


@pytest.mark.parametrize("documents", [[], ["", "?!"]])
def test_no_words_at_all(documents):
    with pytest.raises(ValueError, match=f"no words in the {len(documents)} documents"):
        TermVectorizer().fit(documents)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weighting": "tf"}, "weighting must be one of tfidf, counts, binary; got 'tf'"),
        ({"max_features": 0}, "max_features=0 must be at least 1"),
        ({"length": 0}, "length=0 must be above 0 and finite"),
        ({"max_counted": 9_999}, "at least twice max_features=5000; got 9999"),
        ({"dtype": "int32"}, "dtype must be float32 or float64"),
        ({"ngram_range": (2, 1)}, "ngram_range must be"),
        ({"ngram_range": (0, 1)}, "ngram_range must be"),
        ({"ngram_range": 2}, "ngram_range must be"),
        ({"ngram_range": (1, 2, 3)}, "ngram_range must be"),
        ({"ngram_range": (1, 1.5)}, "ngram_range must be"),
        ({"dtype": "float33"}, "dtype must be float32 or float64; got 'float33'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TermVectorizer(**parameters).fit(DOCUMENTS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_features": "a"}, "max_features must be an integer, got 'a' of type str"),
        ({"max_features": None}, "max_features must be an integer, got None"),
        ({"max_counted": "b"}, "max_counted must be an integer, got 'b'"),
        ({"length": "c"}, "length must be a number, got 'c'"),
    ],
)
def test_parameters_of_the_wrong_type(parameters, message):
    with pytest.raises(TypeError, match=message):
        TermVectorizer(**parameters).fit(DOCUMENTS)


def test_unfitted():
    with pytest.raises(NotFittedError):
        TermVectorizer().transform(DOCUMENTS)


def test_clones_pickles_and_plain_attributes():
    vectorizer = TermVectorizer(6, weighting="tfidf", dtype="float64").fit(DOCUMENTS)
    rows = vectorizer.transform(DOCUMENTS).toarray()
    assert_array_equal(pickle.loads(pickle.dumps(vectorizer)).transform(DOCUMENTS).toarray(), rows)
    restored = clone(vectorizer)
    assert not hasattr(restored, "terms_")
    restored.terms_ = list(vectorizer.terms_)
    restored.idf_ = np.array(vectorizer.idf_)
    assert_array_equal(restored.transform(DOCUMENTS).toarray(), rows)
    assert_array_equal(restored.get_feature_names_out(), vectorizer.terms_)


def test_in_a_pipeline():
    texts, y = ["good book", "bad book", "good lid", "bad lid"], ["yes", "no", "yes", "no"]
    pipeline = make_pipeline(TermVectorizer(), LinearSVC(random_state=0))
    pipeline.set_params(termvectorizer__ngram_range=(1, 1)).fit(texts, y)
    assert list(pipeline.predict(["a good pan", "a bad pan"])) == ["yes", "no"]
    assert list(pipeline[:-1].get_feature_names_out()) == ["bad", "book", "good", "lid"]


def test_unseen_share():
    source = ["the good book", "a book"]
    assert unseen_share(["the kettle, the kettle", "a good kettle"], source) == pytest.approx(3 / 7)
    assert unseen_share(iter(source), iter(source)) == 0
    assert math.isnan(unseen_share(["", "!"], source))


def lines(path):
    return gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")[:-1]


def test_tokenised_and_plain_reviews_meet(data_folder):
    """The train files of fdu-mtl are tokenised and the unlabel files are not."""
    folder = data_folder / "fdu-mtl"
    domains = ("books", "electronics")
    tokenised = [line.split("\t")[1] for d in domains for line in lines(folder / f"{d}.task.train.gz")]
    plain = [line for d in domains for line in lines(folder / f"{d}.task.unlabel.gz")]
    a = TermVectorizer(20_000, ngram_range=(1, 1)).fit(tokenised)
    b = TermVectorizer(20_000, ngram_range=(1, 1)).fit(plain)
    share_a = dict(zip(a.terms_, a.document_frequency_ / a.n_documents_, strict=True))
    share_b = dict(zip(b.terms_, b.document_frequency_ / b.n_documents_, strict=True))
    for share, other in ((share_a, share_b), (share_b, share_a)):
        assert [term for term, s in share.items() if s > 0.01 and term not in other] == []
    for contraction in ("didn't", "don't", "can't", "won't", "it's", "i've", "cannot"):
        assert 0.5 < share_a[contraction] / share_b[contraction] < 2, contraction
