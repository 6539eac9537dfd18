"""Upper layers learnt from some of the rows, against the same written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import RidgeClassifier

from tests.helpers.oracles import algorithm_1, algorithm_2, relative_error, section_4, weights
from undrift import MSDA, MSDAClassifier
from undrift.representation import subsample as sampling
from undrift.representation.subsample import draw_rows, share_rows


@pytest.fixture
def shifted(rng):
    """Source rows, labels, and rows of a target with another mix of features."""
    topics = rng.gamma(0.5, size=(130, 3))
    X = rng.poisson(topics @ rng.gamma(0.4, size=(3, 9)) + 0.1).astype(float)
    return X[:80], np.where(topics[:80, 0] > topics[:80, 1], 1, -1), X[80:] + (rng.random((50, 9)) < 0.2)


def upper_layers(X, h1, some, noise, n_layers):
    """Hidden rows of all of `X` from layer 2 on, and the weights of those layers, learnt from `some` rows."""
    stack, h = [], h1
    for _ in range(n_layers - 1):
        W, _ = algorithm_1(h[some], noise)
        h = np.tanh(h @ W[:-1] + W[-1])
        stack.append((W, h))
    return stack


# ------------------------------------------------------------------ how many, and which


@pytest.mark.parametrize(
    ("n_rows", "n_sampled", "expected"),
    [
        ([27677], 12000, [12000]),
        ([20000, 10000, 30000], 6000, [2000, 1000, 3000]),
        ([10000, 10000, 10000], 10000, [3334, 3333, 3333]),
        ([100000, 200], 12000, [11800, 200]),  # a small domain keeps all its rows
        ([90000, 5000, 5000], 12000, [10000, 1000, 1000]),  # or a thousand
        ([50000, 40000, 10000], 1500, [500, 500, 500]),  # or an equal share
        ([60000, 30000, 10000, 300], 9000, [5133, 2567, 1000, 300]),  # 7,700 rows left for 60,000 and 30,000
        ([7, 3], 2, [1, 1]),
    ],
)
def test_domains_share_the_sample_by_their_sizes(n_rows, n_sampled, expected):
    assert share_rows(n_rows, n_sampled) == expected


def test_sizes_add_up_and_are_there(rng):
    for _ in range(300):
        n_rows = rng.integers(1, 5000, size=rng.integers(1, 8))
        n_sampled = int(rng.integers(len(n_rows), n_rows.sum() + 1))
        sizes = share_rows(n_rows.tolist(), n_sampled)
        assert sum(sizes) == n_sampled
        assert all(1 <= own <= n for own, n in zip(sizes, n_rows, strict=True))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_no_row_is_drawn_twice_and_none_is_left_out_by_design(container):
    domains = [container(np.arange(1, 31.0)[:, None]), container(np.arange(101, 111.0)[:, None])]
    seen = set()
    for seed in range(40):
        parts = draw_rows(domains, 20, np.random.RandomState(seed))
        drawn = [np.asarray(part.sum(axis=1)).ravel().tolist() for part in parts]
        assert [len(own) for own in drawn] == [len(set(own)) for own in drawn] == [10, 10]
        assert all(own < 100 for own in drawn[0])
        assert all(own > 100 for own in drawn[1])
        seen |= set(drawn[0])
    assert seen == set(range(1, 31))


def test_nothing_is_drawn_where_all_rows_are_wanted(counts):
    random = np.random.RandomState(0)
    assert draw_rows([counts], None, random) is None
    assert draw_rows([counts, counts], 120, random) is None
    assert random.randint(2**30) == np.random.RandomState(0).randint(2**30)


# ------------------------------------------------------------------ MSDA


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_upper_layers_are_those_of_the_rows_drawn(counts, container):
    model = MSDA(4, 0.6, max_upper_rows=25, random_state=3).fit(container(counts))
    some = np.random.RandomState(3).choice(60, 25, replace=False)
    W, h1 = algorithm_1(counts, 0.6)
    expected = [W, *(own for own, _ in upper_layers(counts, h1, some, 0.6, 4))]
    for layer, own in zip(model.layers_, expected, strict=True):
        assert relative_error(weights(layer), own) < 1e-9
    everything = algorithm_2(counts, 0.6, 2)[1][0]
    assert relative_error(weights(model.layers_[1]), everything) > 1e-3


def test_upper_layers_over_pivots_and_presence(counts):
    """The first layer sees all rows, and the random parts are those of a fit on all rows."""
    options = {"n_pivots": 4, "binarize": True, "random_state": 1}
    model, plain = (MSDA(2, max_upper_rows=m, **options).fit(counts) for m in (30, None))
    for own, other in zip(model.parts_, plain.parts_, strict=True):
        assert_array_equal(own, other)
    X = (counts > 0).astype(float)
    W = section_4(X, 0.5, model.pivots_, model.parts_)
    h1 = np.tanh(X @ W[:-1] + W[-1])
    assert relative_error(weights(model.layers_[0]), W) < 1e-9
    random = np.random.RandomState(1)
    random.permutation(9)  # the parts
    some = random.choice(60, 30, replace=False)
    assert relative_error(weights(model.layers_[1]), algorithm_1(h1[some], 0.5)[0]) < 1e-9


def test_the_same_seed_draws_the_same_rows(counts):
    a, b, other = (MSDA(2, max_upper_rows=20, random_state=seed).fit(counts).layers_[1] for seed in (5, 5, 6))
    assert_array_equal(weights(a), weights(b))
    assert relative_error(weights(other), weights(a)) > 1e-3


@pytest.mark.parametrize("max_upper_rows", [60, 1000])
def test_a_limit_that_no_layer_reaches_changes_nothing(counts, shifted, max_upper_rows):
    limited, plain = (MSDA(3, max_upper_rows=m).fit(counts) for m in (max_upper_rows, None))
    for a, b in zip(limited.layers_, plain.layers_, strict=True):
        assert_array_equal(weights(a), weights(b))
    X, y, Z = shifted
    options = {"n_folds": 3, "random_state": 0}
    scores = [
        MSDAClassifier(2, max_upper_rows=m, **options).fit(X, y, Z).decision_function(Z)
        for m in (max_upper_rows + 70, None)
    ]
    assert_array_equal(*scores)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_upper_layers_on_a_device(counts, container, device):
    pytest.importorskip("torch")
    options = {"max_upper_rows": 25, "precision": "highest", "random_state": 3}
    there, here = (MSDA(3, device=d, **options).fit(container(counts)).layers_ for d in (device, "cpu"))
    for a, b in zip(there, here, strict=True):
        assert relative_error(weights(a), weights(b)) < 1e-9


# ------------------------------------------------------------------ MSDAClassifier


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_classifier_centres_hidden_rows_by_the_sample(shifted, form, monkeypatch):
    monkeypatch.setattr(sampling, "DOMAIN_ROWS", 5)
    X, y, Z = shifted
    options = {"center": "domains", "dtype": "float64", "max_upper_rows": 65, "random_state": 4}
    model = MSDAClassifier(3, 0.6, 0.7, **options)
    scores = model.fit(form(X), y, form(Z)).decision_function(form(Z))
    random = np.random.RandomState(4)
    source, target = random.choice(80, 40, replace=False), 80 + random.choice(50, 25, replace=False)
    rows = np.vstack([X, Z])
    h1 = algorithm_1(rows, 0.6)[1]
    upper = upper_layers(rows, h1, np.concatenate([source, target]), 0.6, 3)
    H = np.hstack([h1, *(h for _, h in upper)])
    train = np.hstack([X - X.mean(axis=0), H[:80] - H[source].mean(axis=0)])
    test = np.hstack([Z - Z.mean(axis=0), H[80:] - H[target].mean(axis=0)])
    alpha = np.mean((train**2).sum(axis=1)) / 0.7
    expected = RidgeClassifier(alpha=alpha, solver="cholesky").fit(train, y).decision_function(test)
    assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)
    assert model.representation_.max_upper_rows == 65


def test_classifier_on_a_device(shifted, device):
    pytest.importorskip("torch")
    X, y, Z = shifted
    options = {"dtype": "float64", "precision": "highest", "max_upper_rows": 65, "random_state": 4}
    there, here = (
        MSDAClassifier(3, 0.6, device=d, **options).fit(X, y, Z).decision_function(Z) for d in (device, "cpu")
    )
    assert_allclose(there, here, rtol=1e-8, atol=1e-8)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "max_upper_rows=0 must be at least 1; leave it None to learn every layer from all"),
        (2.5, TypeError, "max_upper_rows must be an integer, got 2.5"),
        (True, TypeError, "max_upper_rows must be an integer, got True"),
    ],
)
def test_a_limit_that_makes_no_sense(counts, shifted, value, error, message):
    with pytest.raises(error, match=message):
        MSDA(2, max_upper_rows=value).fit(counts)
    with pytest.raises(error, match=message):
        MSDAClassifier(2, max_upper_rows=value).fit(*shifted)


def test_every_domain_needs_a_row(shifted):
    X, y, Z = shifted
    with pytest.raises(ValueError, match="max_upper_rows=2 is below the 3 domains, which need a row each"):
        MSDAClassifier(2, max_upper_rows=2).fit(X, y, [Z[:20], Z[20:]])


def test_a_stream_is_refused(counts):
    model = MSDA(2, max_upper_rows=20)
    with pytest.raises(ValueError, match="max_upper_rows=20 draws from one matrix, but X is a stream"):
        model.fit([counts[:30], counts[30:]])
