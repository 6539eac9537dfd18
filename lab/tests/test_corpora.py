"""Where a plan's corpus is looked for, and its vocabulary."""

import numpy as np
import pytest

from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.parts import CorpusSpec, count_terms, load_corpus


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
