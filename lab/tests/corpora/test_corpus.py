import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift_lab.corpora.corpus import Corpus, Domain


def features(name, start=0, **changes):
    parts = {
        "X": np.arange(start, start + 8.0).reshape(4, 2),
        "y": [1, -1, 1, -1],
        "train": [0, 1],
        "test": [2, 3],
    }
    return Domain(name, **{**parts, **changes})


def documents(name):
    return Domain(
        name, texts=[f"{name} {i}" for i in range(3)], y=[1, 0, np.nan], train=[0], test=[1], unlabelled=[2]
    )


def corpus(*domains, **kwargs):
    return Corpus("small", {domain.name: domain for domain in domains}, **kwargs)


def test_tasks_of_a_corpus():
    names = [task.name for task in corpus(*(features(name) for name in "abc")).tasks()]
    assert names == ["a->b", "a->c", "b->a", "b->c", "c->a", "c->b"]


def test_rows_are_stacked_with_the_domain_of_each():
    first, second = features("a"), features("b", start=100)
    X, domain = corpus(first, second).rows()
    assert_array_equal(X, np.vstack([first.X, second.X]))
    assert_array_equal(domain, [0, 0, 0, 0, 1, 1, 1, 1])
    texts, domain = corpus(documents("a"), documents("b")).rows()
    assert texts == ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"]
    assert_array_equal(domain, [0, 0, 0, 1, 1, 1])


def test_map_applies_to_every_domain_and_leaves_the_original_alone():
    original = corpus(features("a"), features("b", start=100), terms=["x", "y"])
    mapped = original.map(lambda X: -X, terms=original.terms)
    assert_array_equal(mapped.domains["b"].X, -original.domains["b"].X)
    assert_array_equal(original.domains["a"].X, features("a").X)
    assert_array_equal(mapped.domains["a"].test, [2, 3])
    assert mapped.terms == ["x", "y"]
    assert original.map(lambda X: X).terms is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": ["a"] * 4}, "either X or texts"),
        ({"X": None}, "either X or texts"),
        ({"y": [1, 0]}, "4 rows but y of shape"),
        ({"train": [0, 4]}, "train has row numbers outside 0 ... 3"),
        ({"test": [-1]}, "test has row numbers outside"),
        ({"unlabelled": [True, False, True, False]}, "unlabelled must be a list of row numbers"),
        ({"y": [1, np.nan, 0, 0]}, "train rows without a label"),
        ({"y": np.array([1, 0, None, 1], dtype=object)}, "test rows without a label"),
    ],
)
def test_domain_refuses_parts_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        features("a", **changes)


def test_corpora_refuse_domains_that_do_not_fit():
    with pytest.raises(ValueError, match="differ in their number of columns"):
        corpus(features("a"), features("b", X=np.zeros((4, 3))))
    with pytest.raises(ValueError, match="differ in their number of columns"):
        corpus(features("a"), documents("b"))
    with pytest.raises(ValueError, match="3 terms for 2 columns"):
        corpus(features("a"), terms=["x", "y", "z"])
    with pytest.raises(ValueError, match="no domains"):
        corpus()
