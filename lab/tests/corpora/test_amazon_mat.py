import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import savemat

from undrift_lab.corpora import load_amazon_mat

NAMES = ("books", "dvd")
X = np.arange(40.0).reshape(8, 5) % 3  # 8 documents, 5 terms
Y = np.array([1, -1, 1, 1, -1, -1, 1, -1.0])


def write(folder, **changes):
    content = {"xx": sparse.csc_matrix(X.T), "yy": Y[:, None], "offset": np.array([[0.0, 5, 8]]), **changes}
    savemat(folder / "amazon.mat", {name: value for name, value in content.items() if value is not None})
    return folder / "amazon.mat"


def load(path, **kwargs):
    return load_amazon_mat(path, **{"names": NAMES, "n_train": 2, **kwargs})


def test_documents_become_rows_of_their_domains(tmp_path):
    domains = load(write(tmp_path)).domains
    assert_array_equal(domains["books"].X.toarray(), X[:5])
    assert_array_equal(domains["dvd"].X.toarray(), X[5:])
    assert_array_equal(domains["dvd"].y, [-1, 1, -1])
    assert domains["dvd"].y.dtype == np.int64
    assert domains["dvd"].X.dtype == np.float32
    assert_array_equal(domains["books"].train, [0, 1])
    assert_array_equal(domains["books"].test, [2, 3, 4])
    write(tmp_path)
    corpus = load(tmp_path, max_features=3)
    assert_array_equal(corpus.domains["books"].X.toarray(), X[:5, :3])
    assert load(tmp_path, max_features=None).domains["books"].X.shape == (5, 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"yy": None}, "lacks yy"),
        ({"xx": None, "offset": None}, "lacks xx, offset"),
        ({"xx": sparse.csc_matrix(X)}, "xx has 5 documents and yy 8 labels"),
        ({"yy": Y + 0.5}, "not whole numbers"),
        ({"xx": sparse.csc_matrix(np.where(X.T == 2, np.inf, X.T))}, "that are not whole numbers"),
        ({"offset": np.array([0, 8])}, "with 3 entries"),
        ({"offset": np.array([0, 5, 9])}, "must rise from 0 to 8"),
        ({"offset": np.array([1, 5, 8])}, "must rise from 0 to 8"),
        ({"offset": np.array([0, 8, 8])}, "must rise from 0 to 8"),
    ],
)
def test_files_whose_variables_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=rf"amazon\.mat.*{message}"):
        load(write(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"", b"not MATLAB at all" * 20])
def test_other_files(tmp_path, content):
    (tmp_path / "amazon.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"amazon\.mat is not a MATLAB file"):
        load(tmp_path)
