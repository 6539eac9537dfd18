"""Where a plan's corpus is looked for; its vocabulary; rows that occur twice."""

import numpy as np
import pytest
from scipy import sparse

from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.parts import CorpusSpec, count_terms, find_duplicates, load_corpus


def test_a_corpus_is_where_its_loader_looks(data, tmp_path, monkeypatch):
    spec = CorpusSpec("amazon-bow")
    assert list(load_corpus(spec, data, 2).domains) == ["books", "dvd", "toys"]
    monkeypatch.setenv("UNDRIFT_DATA", str(data))
    assert load_corpus(spec, None, 2).domains["dvd"].X.shape == (80, 2)
    with pytest.raises(FileNotFoundError, match=f"amazon-bow: there is no {tmp_path / 'amazon-bow'}; put"):
        load_corpus(spec, tmp_path, 5)


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
