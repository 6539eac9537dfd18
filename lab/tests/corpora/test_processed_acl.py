from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import LinearSVC

from undrift_lab.corpora import load_processed_acl

POSITIVE = "good:2 very_good:1 #label#:positive\n"
NEGATIVE = "bad:1 a:b:3 #label#:negative\ngood:1 bad:2 #label#:negative\n"


def write(folder, domain="books", positive=POSITIVE, negative=NEGATIVE, **others):
    (folder / domain).mkdir(exist_ok=True)
    for name, content in {"positive": positive, "negative": negative, **others}.items():
        (folder / domain / f"{name}.review").write_text(content, encoding="utf-8")
    return folder


def test_counts_terms_labels_and_parts(tmp_path):
    corpus = load_processed_acl(write(tmp_path))
    books = corpus.domains["books"]
    # bad and good are in two reviews each, the others in one; ties are alphabetical.
    assert corpus.terms == ["bad", "good", "a:b", "very_good"]
    assert_array_equal(books.X.toarray(), [[0, 2, 0, 1], [1, 0, 3, 0], [2, 1, 0, 0]])
    assert books.X.dtype == np.float32
    assert_array_equal(books.y, [1, 0, 0])
    assert books.y.dtype == np.int64
    assert_array_equal(books.train, [0, 1, 2])
    assert_array_equal(books.test, [0, 1, 2])
    assert len(books.unlabelled) == 0


def test_vocabulary_is_shared_and_counts_documents_not_occurrences(tmp_path):
    write(tmp_path)
    write(tmp_path, "dvd", positive="zoom:9 #label#:positive\n", negative="zoom:1 bad:1 #label#:negative\n")
    corpus = load_processed_acl(tmp_path, max_features=3)
    assert corpus.terms == ["bad", "good", "zoom"]
    assert_array_equal(corpus.domains["dvd"].X.toarray(), [[0, 0, 9], [1, 0, 1]])
    corpus = load_processed_acl(write(tmp_path, positive="odd:1 odd:2 odd:3 #label#:positive\n"))
    assert corpus.terms == ["bad", "zoom", "a:b", "good", "odd"]  # in one document, whatever its counts
    assert corpus.domains["books"].X[[0], [4]] == 6


def test_labelled_rows_of_the_unlabelled_file_are_the_test_rows(tmp_path):
    unlabeled = "good:1 #label#:positive\nbad:1 #label#:negative\n"
    books = load_processed_acl(write(tmp_path, unlabeled=unlabeled)).domains["books"]
    assert_array_equal(books.test, [3, 4])
    assert_array_equal(books.train, [0, 1, 2])
    assert_array_equal(books.y, [1, 0, 0, 1, 0])
    assert len(books.unlabelled) == 0
    unlabelled = "good:1\nbad:1 #label#:unknown\n\n"
    books = load_processed_acl(write(tmp_path, unlabeled=unlabelled)).domains["books"]
    assert_array_equal(books.unlabelled, [3, 4])
    assert_array_equal(books.test, [0, 1, 2])
    assert_array_equal(np.isnan(books.y), [False, False, False, True, True])


@pytest.mark.parametrize(
    "token", ["good", "good:", ":3", "good:x", "good:-1", "good:1.5", "good:²", "good:1234567890"]
)
def test_malformed_token_is_named(tmp_path, token):
    content = f"ok:1 #label#:negative\nok:1 {token} #label#:negative\n"
    with pytest.raises(ValueError, match=r"negative\.review, line 2: expected 'term:count', got"):
        load_processed_acl(write(tmp_path, negative=content))


def test_labels_are_those_of_the_file_or_known(tmp_path):
    for end in ("", " #label#:negative", " #label#:"):
        with pytest.raises(ValueError, match=r"positive\.review, line 1: expected '#label#:positive'"):
            load_processed_acl(write(tmp_path, positive=f"good:1{end}\n"))
    with pytest.raises(
        ValueError, match=r"unlabeled\.review, line 1: expected '#label#:positive', got 'postive'"
    ):
        load_processed_acl(write(tmp_path, unlabeled="good:1 #label#:postive\n"))
    with pytest.raises(ValueError, match=r"negative\.review has no reviews; the data set is not complete"):
        load_processed_acl(write(tmp_path, negative="\n"))


def test_wrong_folders_and_arguments(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no <domain>/positive\.review"):
        load_processed_acl(tmp_path)
    write(tmp_path)
    (tmp_path / "books" / "negative.review").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither negative\.review"):
        load_processed_acl(tmp_path)
    with pytest.raises(ValueError, match="max_features is 0"):
        load_processed_acl(tmp_path, max_features=0)


def test_the_real_set(data_folder):
    real = load_processed_acl(data_folder / "processed_acl", max_features=2000)
    assert {name: domain.X.shape for name, domain in real.domains.items()} == dict.fromkeys(
        ("books", "dvd", "electronics", "kitchen"), (2000, 2000)
    )
    assert all(domain.y.mean() == 0.5 for domain in real.domains.values())
    X = real.domains["dvd"].X
    assert all((np.diff(X.indices[start:end]) > 0).all() for start, end in pairwise(X.indptr))
    LinearSVC(C=0.001).fit(real.domains["dvd"].X, real.domains["dvd"].y)  # which refuses 64-bit indices
