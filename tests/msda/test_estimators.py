"""MDA and MSDA: scikit-learn's contract, containers, names, progress."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.helpers.exact import SpillingMSDA
from tests.helpers.oracles import algorithm_1, algorithm_2, relative_error, weights
from undrift import MDA, MSDA

CONFIGURATIONS = [
    MDA(),
    MDA(noise=0.9, activation="sigmoid"),
    MDA(noise=0.0, activation="identity"),
    MSDA(),
    MSDA(n_layers=2, activation="relu"),
    MSDA(n_layers=2, activation="sigmoid", include_input=False),
    SpillingMSDA(n_layers=2, activation="identity"),
    MSDA(n_layers=2, n_pivots=1, random_state=0),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:after the first layer:undrift.UndriftWarning")  # means of 100
@parametrize_with_checks(CONFIGURATIONS)
def test_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


OUTPUT_CHECKS = [
    estimator_checks.check_set_output_transform,
    estimator_checks.check_set_output_transform_pandas,
    estimator_checks.check_set_output_transform_polars,
    estimator_checks.check_global_set_output_transform_polars,
    estimator_checks.check_dataframe_column_names_consistency,
]


# the checks themselves fit with names and transform without, and the other way round
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("check", OUTPUT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", CONFIGURATIONS, ids=str)
def test_set_output(estimator, check):
    check(type(estimator).__name__, clone(estimator))


# ------------------------------------------------------------------ containers and dtypes

SPARSE = [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array]


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("container", SPARSE)
@pytest.mark.parametrize("options", [{}, {"n_pivots": 4, "random_state": 0}], ids=["plain", "pivots"])
def test_sparse_containers_and_index_widths(counts, container, index_dtype, options):
    X = container(counts)
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    expected = MSDA(n_layers=2, **options).fit(counts).transform(counts)
    out = MSDA(n_layers=2, **options).fit(X).transform(X)
    assert isinstance(out, np.ndarray)
    assert_allclose(out, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("estimator", [MDA(), MSDA(2), MSDA(2, n_pivots=3, random_state=0)], ids=str)
def test_the_dtype_that_goes_in_comes_out(counts, estimator, container, dtype):
    X = container(counts.astype(dtype))
    model = clone(estimator).fit(X)
    assert model.transform(X).dtype == dtype
    other = np.float32 if dtype == np.float64 else np.float64
    assert model.transform(X.astype(other)).dtype == other
    if isinstance(model, MSDA):
        assert [h.dtype for h in model.hidden(X.astype(other))] == [other, other]
    layers = [model.layer_] if isinstance(model, MDA) else model.layers_
    assert {layer.coef.dtype for layer in layers} == {np.dtype(dtype)}


@pytest.mark.parametrize("container", [np.asarray, *SPARSE])
def test_rows_given_are_never_changed(counts, container):
    X = container(counts)
    before = X.copy()
    model = MSDA(2, activation="identity").fit(X)
    out = model.transform(X)
    out[:] = 0
    for h in model.hidden(X):
        h[:] = 0
    MDA(activation="identity").partial_fit(X).transform(X)[:] = 0
    assert type(X) is type(before)
    assert_array_equal(X.toarray() if sp.issparse(X) else X, before.toarray() if sp.issparse(X) else before)


def test_unsorted_duplicate_entries_are_summed_in_a_copy():
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 1.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    X = sp.csr_array((data, indices, indptr), shape=(2, 3))
    dense = np.array([[2.0, 0.0, 4.0], [0.0, 1.0, 0.0]])
    out = MSDA(1).fit(X).transform(X)
    assert_allclose(out, MSDA(1).fit(dense).transform(dense))
    assert_array_equal(X.indices, [2, 0, 2, 1])
    assert_array_equal(X.data, [1.0, 2.0, 3.0, 1.0])


# ------------------------------------------------------------------ degenerate rows


# ------------------------------------------------------------------ output


def test_transform_is_the_input_and_every_hidden_layer(counts):
    model = MSDA(3).fit(counts)
    expected = np.hstack([counts] + [h for _, h in algorithm_2(counts, 0.5, 3)])
    assert_allclose(model.transform(counts), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(model.set_params(include_input=False).transform(counts), expected[:, 9:], rtol=1e-9)
    model = MSDA(3).fit(counts)
    steps = model.hidden(counts)
    first = next(steps)
    model.layers_ = []  # nobody asks for them again
    assert_allclose(first, algorithm_1(counts, 0.5)[1], rtol=1e-9)
    assert len(list(steps)) == 2


def test_transform_in_many_blocks(counts, set_limits):
    model = MSDA(2).fit(counts)
    whole = model.transform(counts)
    set_limits(BLOCK_ENTRIES=30)
    assert_allclose(model.transform(counts), whole, rtol=1e-12)
    assert_allclose(model.transform(sp.csr_array(counts)), whole, rtol=1e-9, atol=1e-12)


def test_feature_names_say_block_and_term(counts):
    pd = pytest.importorskip("pandas")
    terms = ["good", "bad", "plot", "energy_efficient", "read", "sound", "love", "dull", "é ü"]
    frame = pd.DataFrame(counts, columns=terms)
    assert MDA().fit(frame).get_feature_names_out().tolist() == [f"h1:{t}" for t in terms]
    names = MSDA(2).fit(frame).get_feature_names_out()
    assert names.tolist() == [f"{block}:{t}" for block in ("x", "h1", "h2") for t in terms]
    pivoted = MSDA(2, n_pivots=3, random_state=0).fit(frame)
    pivots = [terms[i] for i in pivoted.pivots_]
    expected = [f"x:{t}" for t in terms] + [f"{block}:{t}" for block in ("h1", "h2") for t in pivots]
    assert pivoted.get_feature_names_out().tolist() == expected
    bare = MSDA(2, include_input=False).fit(frame).get_feature_names_out()
    assert bare.tolist() == [f"{block}:{t}" for block in ("h1", "h2") for t in terms]
    nameless = MSDA(1).fit(counts[:, :2])
    assert nameless.get_feature_names_out().tolist() == ["x:x0", "x:x1", "h1:x0", "h1:x1"]
    assert nameless.get_feature_names_out(["a", "b"]).tolist() == ["x:a", "x:b", "h1:a", "h1:b"]


def test_refitting_without_pivots_forgets_them(counts):
    model = MSDA(2, n_pivots=3, random_state=0).fit(counts).set_params(n_pivots=None)
    assert len(model.get_feature_names_out()) == model.transform(counts).shape[1]
    model.fit(counts)
    assert not hasattr(model, "pivots_")
    assert not hasattr(model, "parts_")
    assert len(model.get_feature_names_out()) == model.transform(counts).shape[1] == 27


# ------------------------------------------------------------------ partial_fit


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_partial_fit_is_exact_and_in_float64(counts, container):
    model = MDA()
    for block in np.array_split(counts.astype(np.float32), 7):
        model.partial_fit(container(block))
    assert relative_error(weights(model.layer_), algorithm_1(counts, 0.5)[0]) < 1e-9
    assert model.transform(counts.astype(np.float32)).dtype == np.float32
    again = model.fit(container(counts[30:]))  # which forgets what partial_fit saw
    assert relative_error(weights(again.layer_), algorithm_1(counts[30:], 0.5)[0]) < 1e-9


def test_partial_fit_solves_only_when_the_layer_is_used(counts):
    model = MDA()
    for block in np.array_split(counts, 6):
        model.partial_fit(block)
    assert model._layer is None
    model.transform(counts)
    solved = model._layer
    model.transform(counts)
    assert model._layer is solved is model.layer_
