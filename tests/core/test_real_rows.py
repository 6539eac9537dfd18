"""The bars of accuracy on text: the 500 most frequent terms of the four-domain benchmark, and messages."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_files
from sklearn.feature_extraction.text import CountVectorizer

from tests.helpers.corpus import PAIRS, read_domain
from tests.helpers.oracles import relative_error, weights
from undrift import MSDA

DOMAINS = ("books", "dvd", "electronics", "kitchen")


@pytest.fixture(scope="module")
def amazon(data_folder) -> sp.csr_matrix:
    """Presence of the first 500 terms in every review, with three terms that never occur."""
    files = [
        str(data_folder / "amazon-bow" / f"{domain}_{part}.svmlight.gz")
        for domain in DOMAINS
        for part in ("train", "test")
    ]
    blocks = load_svmlight_files(files, n_features=5000, zero_based=True)[::2]
    X = sp.vstack([block[:, :500] for block in blocks]).tocsr()
    assert X.shape == (27677, 500)
    X = sp.hstack([X[:, :200], sp.csr_matrix((27677, 3)), X[:, 200:]]).tocsr()
    X.data = np.ones_like(X.data)
    return X


@pytest.mark.slow
def test_five_layers_of_amazon_in_float32_are_those_of_float64(amazon):
    check_layers_in_float32(amazon)


def test_five_layers_of_messages_in_float32_are_those_of_float64():
    texts = [text for pair in PAIRS.values() for domain in pair for text in read_domain(domain)[0]]
    check_layers_in_float32(
        CountVectorizer(binary=True, dtype=np.float64, max_features=300).fit_transform(texts)
    )


def check_layers_in_float32(X: sp.csr_matrix) -> None:
    single = MSDA(5, 0.5).fit(X.astype(np.float32))
    double = MSDA(5, 0.5).fit(X)
    rows = X[::7]
    hidden = zip(single.hidden(rows.astype(np.float32)), double.hidden(rows), strict=True)
    for a, b, (h, h_expected) in zip(single.layers_, double.layers_, hidden, strict=True):
        assert a.coef.dtype == np.float32
        assert relative_error(weights(a), weights(b)) < 1e-4
        assert relative_error(h, h_expected) < 5e-4
