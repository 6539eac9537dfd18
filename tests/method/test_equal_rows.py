"""Rows with labels are known by their content, whatever form they come in."""

import numpy as np
import pytest
import scipy.sparse as sp

from undrift import MSDAClassifier, UndriftWarning


def draw(n, shift=0):
    rng = np.random.default_rng(shift)
    y, X = rng.integers(2, size=n), rng.poisson(0.5, size=(n, 30)).astype(float)
    X[np.arange(n), y] += 2
    X[:, 5 + shift] += 1
    return X, y


def list_labels(model):
    """Labels of target rows, in the order of the rows."""
    return model.list_labelled()[1].tolist()


def minus_zeros(X):
    return np.where(X == 0, -0.0, X)


@pytest.mark.parametrize("fitted", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array, minus_zeros])
def test_a_row_is_the_same_dense_and_sparse(fitted, form):
    (X, y), (Z, z) = draw(60), draw(40, shift=3)
    model = MSDAClassifier(1, random_state=0).fit(fitted(X), y, fitted(Z))
    model.update(fitted(Z[:9]), z[:9])
    model.update(form(Z[:9]), 1 - z[:9])
    assert list_labels(model) == (1 - z[:9]).tolist()
    assert len(model.memory_.anchors.codes) == 100  # no row was added
    assert not np.isin(model.ask(form(Z), 31), np.arange(9)).any()
    model.update(form(Z[:9]), None)
    assert list_labels(model) == []


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, "torch", "dask"])
def test_a_fit_counts_equal_rows_once_as_an_update_does(form):
    (X, y), (Z, z) = draw(60), draw(40, shift=3)
    Z[30:40], z[30:40] = Z[:10], z[:10]
    known = np.where((np.arange(40) < 20) | (np.arange(40) >= 30), z, np.nan)
    rows = form
    if form == "torch":
        rows = pytest.importorskip("torch").from_numpy
    elif form == "dask":
        rows = pytest.importorskip("dask.array").from_array
    model = MSDAClassifier(1, random_state=0).fit(X, y, rows(Z), y_target=known)
    updated = MSDAClassifier(1, random_state=0).fit(X, y, Z).update(Z, known)
    for fitted in (model, updated):
        assert list_labels(fitted) == z[:20].tolist()
    known[30] = 1 - known[30]
    with pytest.warns(
        UndriftWarning, match="1 set of equal rows with contradicting labels, none .* rows 0, 30$"
    ):
        model = MSDAClassifier(1, random_state=0).fit(X, y, rows(Z), y_target=known)
    assert list_labels(model) == z[1:20].tolist()


def test_a_label_of_a_row_that_an_unlabelled_one_equals_is_changed_and_withdrawn():
    (X, y), (Z, z) = draw(60), draw(40, shift=3)
    Z[0] = Z[30]
    known = np.where(np.arange(40) >= 20, z, np.nan)
    model = MSDAClassifier(1, random_state=0).fit(X, y, Z, y_target=known)
    model.update(Z[[30]], 1 - z[[30]])
    rows, labels = model.list_labelled()
    assert len(labels) == 20
    assert labels[(rows == Z[30]).all(axis=1)].tolist() == [1 - z[30]]
    model.update(Z[[30]], None)
    assert len(model.list_labelled()[1]) == 19


def test_equal_source_rows_are_held_out_together():
    """Random labels, every row twice: a row whose copy was learnt would seem to be predicted."""
    rng = np.random.default_rng(0)
    X, y, Z = rng.poisson(0.5, (150, 40)), rng.integers(2, size=150), rng.poisson(0.5, (120, 40))
    with pytest.warns(UndriftWarning, match=r"hardly be predicted .* is 0\.[45]\d"):
        MSDAClassifier(2, random_state=0).fit(np.vstack([X, X]), np.r_[y, y], Z)
