import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.svm import LinearSVC

from undrift_lab.corpora import load_amazon_bow

TRAIN = "1 0:2 3:1\n-1 1:4\n"
TEST = "-1 0:1 4:7\n1\n"


def write(folder, **files):
    for name, content in {"books_train": TRAIN, "books_test": TEST, **files}.items():
        (folder / f"{name}.svmlight").write_text(content)
    return folder


def test_counts_labels_and_parts(tmp_path):
    corpus = load_amazon_bow(write(tmp_path))
    books = corpus.domains["books"]
    assert_array_equal(
        books.X.toarray(), [[2, 0, 0, 1, 0], [0, 4, 0, 0, 0], [1, 0, 0, 0, 7], [0, 0, 0, 0, 0]]
    )
    assert books.X.dtype == np.float32
    assert_array_equal(books.y, [1, -1, -1, 1])
    assert books.y.dtype == np.int64
    assert_array_equal(books.train, [0, 1])
    assert_array_equal(books.test, [2, 3])
    assert len(books.unlabelled) == 0
    assert corpus.name == "amazon-bow"
    assert corpus.terms is None


def test_every_domain_gets_the_widest_file_and_gz_is_read(tmp_path):
    write(tmp_path, dvd_test="-1 9:1\n")
    (tmp_path / "dvd_train.svmlight.gz").write_bytes(gzip.compress(b"+1 0:1\n"))
    corpus = load_amazon_bow(tmp_path)
    assert {name: domain.X.shape for name, domain in corpus.domains.items()} == {
        "books": (4, 10),
        "dvd": (2, 10),
    }
    assert_array_equal(corpus.domains["dvd"].y, [1, -1])


@pytest.mark.parametrize("line", ["2 0:1", "x 0:1", "1 0:a", "1 -1:2", "1 0:nan", "1 3:1 3:1"])
def test_a_malformed_file_is_named(tmp_path, line):
    with pytest.raises(ValueError, match=r"books_test\.svmlight (is not a file of|has labels other than)"):
        load_amazon_bow(write(tmp_path, books_test=f"1 0:1\n\n{line}\n1 0:1\n"))


def test_incomplete_or_wrong_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no \*_train\.svmlight"):
        load_amazon_bow(tmp_path)
    write(tmp_path)
    (tmp_path / "books_test.svmlight").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither books_test\.svmlight nor books_test\.svmlight\.gz"):
        load_amazon_bow(tmp_path)
    (tmp_path / "books_test.svmlight").write_text("\n")
    with pytest.raises(ValueError, match="has no rows"):
        load_amazon_bow(tmp_path)


def test_the_real_set_is_the_papers(data_folder):
    corpus = load_amazon_bow(data_folder / "amazon-bow")
    X, domain = corpus.rows()
    assert X.shape == (27_677, 5_000)
    assert np.bincount(domain).tolist() == [6465, 5586, 7681, 7945]
    assert [len(d.test) for d in corpus.domains.values()] == [4465, 3586, 5681, 5945]
    assert all(d.y[d.train].sum() == 0 and len(d.train) == 2000 for d in corpus.domains.values())
    assert [int((d.y[d.test] == 1).sum()) for d in corpus.domains.values()] == [2264, 1807, 2857, 2954]
    assert len(corpus.tasks()) == 12
    LinearSVC(C=0.001).fit(
        corpus.domains["dvd"].X[:50], corpus.domains["dvd"].y[:50]
    )  # refuses 64-bit indices
