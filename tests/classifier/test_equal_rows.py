"""Rows with labels are known by their content, whatever form they come in."""

import numpy as np
import pytest
import scipy.sparse as sp

from undrift import MSDAClassifier, UndriftWarning
from undrift.classifier import list_row_keys


def draw(n, shift=0):
    rng = np.random.default_rng(shift)
    y, X = rng.integers(2, size=n), rng.poisson(0.5, size=(n, 30)).astype(float)
    X[np.arange(n), y] += 2
    X[:, 5 + shift] += 1
    return X, y


def minus_zeros(X):
    return np.where(X == 0, -0.0, X)


@pytest.mark.parametrize("fitted", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array, minus_zeros])
def test_a_row_is_the_same_dense_and_sparse(fitted, form):
    (X, y), (Z, z) = draw(60), draw(40, shift=3)
    model = MSDAClassifier(1, random_state=0).fit(fitted(X), y, fitted(Z))
    model.update(fitted(Z[:9]), z[:9])
    model.update(form(Z[:9]), 1 - z[:9])
    labelled = model.update_state_.labelled
    assert labelled.codes.tolist() == (1 - z[:9]).tolist()
    assert (labelled.anchor >= 0).all()
    assert not np.isin(model.ask(form(Z), 31), np.arange(9)).any()
    model.update(form(Z[:9]), None)
    assert not len(model.update_state_.labelled.codes)


def test_labels_are_found_by_sets_of_keys(monkeypatch):
    """Not by going through all known rows for every new one."""
    (X, y), (Z, z) = draw(60), draw(300, shift=3)
    state = MSDAClassifier(1, random_state=0).fit(X, y, Z).update(Z, z).update_state_
    compared = []

    class Key(tuple):
        __slots__ = ()

        def __hash__(self):
            compared.append(1)
            return super().__hash__()

    def list_keys(views, domain):
        return [Key(key) for key in list_row_keys(views, domain)]

    monkeypatch.setattr("undrift.classifier.updating.list_row_keys", list_keys)
    columns = [A[state.n_source :] for A in state.columns]
    state.set_labels(columns, state.domain[state.n_source :], z, np.arange(60, 360))
    assert len(compared) < 20 * 300


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
        assert fitted.update_state_.labelled.codes.tolist() == z[:20].tolist()
    known[30] = 1 - known[30]
    with pytest.warns(
        UndriftWarning, match="1 set of equal rows with contradicting labels, none .* rows 0, 30$"
    ):
        model = MSDAClassifier(1, random_state=0).fit(X, y, rows(Z), y_target=known)
    assert model.update_state_.labelled.codes.tolist() == z[1:20].tolist()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_fit_tells_rows_apart_by_their_extra_features(form):
    (X, y), (Z, z) = draw(60), draw(40, shift=3)
    Z[20:40] = Z[:20]
    extra, extra_target = X[:, :3] + 1, Z[:, :3] + 1
    extra_target[20:30] += 1  # rows 30 to 39 equal rows 10 to 19 in everything
    labels = np.concatenate([z[:20], 1 - z[:10], z[10:20]])
    given = {"extra": [X, form(extra)], "extra_target": [Z, form(extra_target)]}
    model = MSDAClassifier(1, random_state=0).fit(X, y, Z, y_target=labels, **given)
    updated = MSDAClassifier(1, random_state=0).fit(X, y, Z, **given)
    updated.update(Z, labels, extra=given["extra_target"])
    for fitted in (model, updated):
        assert fitted.update_state_.labelled.codes.tolist() == labels[:30].tolist()
    labels[30] = 1 - labels[30]
    with pytest.warns(UndriftWarning, match="1 set of equal rows .* rows 10, 30$"):
        model = MSDAClassifier(1, random_state=0).fit(X, y, Z, y_target=labels, **given)
    assert model.update_state_.labelled.codes.tolist() == np.delete(labels[:30], 10).tolist()
