"""Where a plan's corpus is looked for; its vocabulary; rows that occur twice."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from undrift.datasets import Corpus, Domain
from undrift_lab.parts import CorpusSpec, count_terms, find_duplicates, load_corpus

TWO = CorpusSpec("amazon-mat", options={"names": ["books", "dvd"], "n_train": 1})


def write_mat(path):
    path.parent.mkdir(parents=True)
    xx = sparse.csc_matrix(np.eye(3, 4))
    savemat(path, {"xx": xx, "yy": np.array([1, -1, 1, -1]), "offset": np.array([0, 2, 4])})


def test_a_corpus_is_where_its_loader_looks_or_where_the_plan_says(tmp_path, monkeypatch):
    write_mat(tmp_path / "amazon-mat" / "amazon.mat")
    assert list(load_corpus(TWO, tmp_path, 2).domains) == ["books", "dvd"]
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert load_corpus(TWO, None, 2).domains["dvd"].X.shape == (2, 2)
    write_mat(tmp_path / "here" / "amazon.mat")
    spec = CorpusSpec("amazon-mat", folder="here/amazon.mat", options=TWO.options)
    assert list(load_corpus(spec, tmp_path, 2).domains) == ["books", "dvd"]
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert list(load_corpus(spec, None, 2).domains) == ["books", "dvd"]


@pytest.mark.parametrize(
    ("loader", "folder", "remedy"),
    [
        ("amazon-bow", None, "`undrift-lab fetch amazon-bow --data {}`"),
        ("fdu-mtl", None, "`undrift-lab fetch fdu-mtl --data {}`"),
        ("multidomain", "multidomain-acl", "`undrift-lab fetch multidomain-acl --data {}`"),
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


def test_the_vocabulary_of_an_inductive_corpus_has_no_term_of_test_rows_alone():
    texts = {"a": ["good pan", "good lid", "seen"], "b": ["bad pan", "bad lid", "heard"]}
    domains = {
        name: Domain(name, texts=rows, y=np.array([1, 0, 1]), train=np.array([0, 1]), test=np.array([2]))
        for name, rows in texts.items()
    }
    corpus = Corpus("two", domains)
    assert {"seen", "heard"} <= set(count_terms(corpus, 50).terms)
    inductive = count_terms(corpus, 50, inductive=True)
    assert set(inductive.terms) == set(count_terms(corpus, 50).terms) - {"seen", "heard"}
    assert inductive.domains["a"].X[[2]].sum() == 0


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_duplicates_are_test_rows_that_occur_in_another_part_or_domain(form):
    a = form(np.array([[1.0, 0, 2], [0, 3, 0], [1, 0, 2], [5, 0, 0], [0, 0, 1], [0, 0, 1]]))
    b = form(np.array([[5.0, 0, 0], [0, 3, 1]]))
    test = np.array([2, 3, 4, 5])
    corpus = Corpus(
        "two",
        {
            "a": Domain("a", X=a, y=np.zeros(6), train=np.array([0, 1]), test=test),
            "b": Domain("b", X=b, y=np.zeros(2), train=np.array([0, 1])),
        },
    )
    # the third row is in the train part, the fourth in the other domain; the last two equal each other alone
    assert find_duplicates(corpus, "a").tolist() == [True, True, False, False]
