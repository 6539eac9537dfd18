"""Where a plan's corpus is looked for, and what is said when it is not there."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from undrift.bench.corpora import CorpusSpec, load_corpus

TWO = CorpusSpec("amazon-mat", options={"names": ("books", "dvd"), "n_train": 1})


def write_mat(path):
    path.parent.mkdir(parents=True)
    xx = sparse.csc_matrix(np.eye(3, 4))
    savemat(path, {"xx": xx, "yy": np.array([1, -1, 1, -1]), "offset": np.array([0, 2, 4])})


def test_amazon_mat_is_where_its_loader_looks(tmp_path, monkeypatch):
    write_mat(tmp_path / "amazon-mat" / "amazon.mat")
    assert list(load_corpus(TWO, tmp_path, 2).domains) == ["books", "dvd"]
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert load_corpus(TWO, None, 2).domains["dvd"].X.shape == (2, 2)


def test_a_plan_may_name_the_file_itself(tmp_path, monkeypatch):
    write_mat(tmp_path / "here" / "amazon.mat")
    spec = CorpusSpec("amazon-mat", folder="here/amazon.mat", options=TWO.options)
    assert list(load_corpus(spec, tmp_path, 2).domains) == ["books", "dvd"]
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert list(load_corpus(spec, None, 2).domains) == ["books", "dvd"]


@pytest.mark.parametrize("folder", [None, "amazon-mat"])
def test_without_a_data_folder_the_users_cache_is_it(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    write_mat(tmp_path / "undrift" / "amazon-mat" / "amazon.mat")
    spec = CorpusSpec("amazon-mat", folder=folder, options=TWO.options)
    assert list(load_corpus(spec, None, 2).domains) == ["books", "dvd"]


@pytest.mark.parametrize(
    ("loader", "folder", "remedy"),
    [
        ("amazon-bow", None, "`undrift bench fetch amazon-bow --data {}`"),
        ("fdu-mtl", None, "`undrift bench fetch fdu-mtl --data {}`"),
        ("multidomain", "multidomain-acl", "`undrift bench fetch multidomain-acl --data {}`"),
        ("multidomain", "generated", "`undrift bench generate {}/generated`"),
        ("multidomain", "mine", "put its files there"),
        ("amazon-mat", None, "put its files there"),
    ],
)
def test_a_missing_corpus_says_what_to_do(loader, folder, remedy, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load_corpus(CorpusSpec(loader, folder=folder), tmp_path, 5)
    message = str(caught.value)
    assert message.startswith(f"{loader}: there is no {tmp_path / (folder or loader)}; ")
    assert remedy.format(tmp_path) in message
    assert "\n" not in message
