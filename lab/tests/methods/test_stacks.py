"""Shared stacks against the concatenation they never build, and against plain scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift import MSDA
from undrift.inputs.device import check_place
from undrift_lab.baselines.rows import presence as binarize_rows
from undrift_lab.methods.stacks import LabelledRows, SharedStack
from undrift_lab.parts import CorpusSpec, load_corpus, part_rows, take_columns


@pytest.fixture(scope="module")
def corpus(data):
    loaded = load_corpus(CorpusSpec("amazon-bow"), data, 30)
    return loaded.map(lambda X: X.astype(np.float64))


def stacked(corpus):
    rows, domain = corpus.rows()
    return rows.toarray(), domain


@pytest.mark.parametrize("n_pivots", [None, 12])
@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_inner_products_and_scores_are_those_of_the_concatenation(corpus, n_pivots, device):
    X, domain = stacked(corpus)
    present = (X > 0).astype(float)
    msda = MSDA(3, 0.6, n_pivots=n_pivots, include_input=False, random_state=5).fit(present)
    Z = np.hstack([X, msda.transform(present)])
    names = list(corpus.domains)
    shared = SharedStack(corpus, first=binarize_rows, place=check_place(device), n_pivots=n_pivots, seed=5)
    labelled = LabelledRows(corpus, ["books", "dvd"], ["dvd", "toys"])
    widths = [30, *(layer.coef.shape[1] for layer in msda.layers_)]
    coef, seen = np.random.default_rng(0).normal(size=(len(corpus.domains["books"].train), 2)), 0
    for level, width in zip(shared.levels(0.6, 3), widths, strict=True):
        labelled.add(level)
        seen += width

        def rows(name, part, seen=seen):
            return Z[domain == names.index(name)][part_rows(corpus, (name, part))][:, :seen]

        for source in ("books", "dvd"):
            A = rows(source, "train")
            assert_allclose(labelled.gram(source), A @ A.T, rtol=1e-9, atol=1e-9)
        weights = labelled.weigh("books", coef)
        for target in ("dvd", "toys"):
            expected = rows(target, "test") @ (rows("books", "train").T @ coef)
            assert_allclose(labelled.score(target, weights), expected, rtol=1e-9, atol=1e-9)


def test_fewer_columns_are_the_first(corpus):
    narrow = take_columns(corpus, 4)
    assert_allclose(narrow.domains["dvd"].X.toarray(), corpus.domains["dvd"].X.toarray()[:, :4])
    assert take_columns(corpus, None) is corpus


def test_fewer_rows_keep_parts_and_labels(data):
    whole = load_corpus(CorpusSpec("amazon-bow"), data, 30).domains["toys"]
    thin = load_corpus(CorpusSpec("amazon-bow", max_rows=7), data, 30).domains["toys"]
    assert (len(thin), len(thin.train), len(thin.test)) == (14, 7, 7)
    matches = [
        (thin.X[[i]] != whole.X[[j]]).nnz == 0
        for i in range(14)
        for j in range(80)
        if thin.y[i] == whole.y[j]
    ]
    assert sum(matches) >= 14
