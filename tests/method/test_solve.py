"""Least squares on a Gram matrix and by sums over rows, against ridge regression on explicit rows."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from tests.helpers.exact import ExactClassifier
from undrift.core import numpy_ops
from undrift.core.denoise import Layer
from undrift.inputs.device import OnHost
from undrift.method.layers import Stack
from undrift.method.solve import (
    Labels,
    LayerRows,
    NormalEquations,
    Posterior,
    confidence,
    least_squares,
    predict_codes,
    read_layers,
    signs,
    source_cv,
)


@pytest.fixture
def problem(rng):
    H = rng.normal(size=(40, 6))
    codes = np.digitize(H[:, 0] + 0.5 * rng.normal(size=40), [-0.4, 0.5])
    return H, codes, rng.uniform(0.2, 3, size=40), rng.normal(size=(15, 6))


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_least_squares_is_ridge_regression_with_a_free_intercept(problem, C, n_classes):
    H, codes, weight, other = problem
    codes = np.minimum(codes, n_classes - 1)
    Y, K = signs(codes, n_classes), H @ H.T
    dual = least_squares(K, Y, C, weight)
    assert_array_equal(K, H @ H.T)  # it is not written to
    ridge = Ridge(alpha=1 / C, solver="cholesky").fit(H, Y, sample_weight=weight)
    assert_allclose(dual.intercept, np.ravel(ridge.intercept_), rtol=1e-9)
    assert_allclose(H.T @ dual.coef, np.atleast_2d(ridge.coef_).T, rtol=1e-9)
    assert_allclose(dual.scores(other @ H.T), ridge.predict(other).reshape(15, -1), rtol=1e-9)


def bordered(K, Y, C, weight):
    """Coefficients and intercepts that solve the optimality conditions, written out as one system."""
    n = len(K)
    system = np.block([[K + np.diag(1 / (C * weight)), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solved[:n], solved[n]


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_a_float32_matrix_is_solved_nearly_as_in_float64(rng, C, spy):
    calls = spy(numpy_ops, "_factor")
    H = rng.normal(size=(700, 60)).astype(np.float32)  # more than one stripe
    K, Y, weight = H @ H.T / 60, signs(rng.integers(3, size=700), 3), rng.uniform(0.2, 3, size=700)
    coef, intercept = bordered(K.astype(np.float64), Y, C, weight)
    dual = least_squares(K, Y, C, weight)
    assert np.linalg.norm(dual.coef - coef) < 1e-7 * np.linalg.norm(coef)
    assert_allclose(dual.intercept, intercept, rtol=1e-7)
    assert [args[-1] for args in calls] == [np.float32]  # at half the cost


@pytest.mark.parametrize("C", [3e5, 3e6])
def test_a_matrix_that_float32_cannot_factor_is_solved_in_float64(rng, C):
    H = rng.integers(-3, 4, size=(60, 5)).astype(np.float32)  # exact inner products, of rank 5
    K, Y, weight = H @ H.T, signs(rng.integers(2, size=60), 2), rng.uniform(0.5, 1, size=60)
    ridge = Ridge(alpha=1 / C, solver="svd").fit(H.astype(np.float64), Y, sample_weight=weight)
    dual = least_squares(K, Y, C, weight)
    assert_allclose(H.T @ dual.coef, np.atleast_2d(ridge.coef_).T, rtol=1e-4)


def test_too_large_a_C_is_said_so(rng):
    with pytest.raises(ValueError, match=r"C=1e\+30 is too large for inner products of this size; lower C"):
        least_squares(np.ones((3, 3)) * 1e9, np.array([[1.0], [-1.0], [1.0]]), 1e30, np.ones(3))
    with pytest.raises(ValueError, match=r"C=1e\+30 is too large for inner products of this size; lower C"):
        Posterior.invert(np.ones((6, 6)), 1e30, np.ones(6))
    H = np.ones((40, 3), dtype=np.float32)
    rows = LayerRows([slice(0, 40)], [2], np.ones(1), lambda block: H[block])
    with pytest.raises(ValueError, match="C=1e\\+12 is too large"):
        NormalEquations(rows, np.ones((40, 1)), 1e12, np.ones(40))


def test_a_class_that_no_row_is_of_is_never_chosen(problem):
    """Predictions that are trained on may leave a class out; the others are as they were."""
    H, codes, weight, other = problem
    codes = np.where(codes == 1, 2, codes)
    dual, two = (least_squares(H @ H.T, signs(c, n), 0.5, weight) for c, n in ((codes, 3), (codes // 2, 2)))
    assert_array_equal(dual.coef[:, 1], 0)
    assert dual.intercept[1] == pytest.approx(-1)
    assert_allclose(dual.scores(other @ H.T)[:, [2]], two.scores(other @ H.T), rtol=1e-9, atol=1e-12)


def test_signs_and_winners():
    assert_array_equal(signs(np.array([0, 1, 0]), 2), [[-1], [1], [-1]])
    assert_array_equal(signs(np.array([0, 2]), 3), [[1, -1, -1], [-1, -1, 1]])
    assert_array_equal(predict_codes(np.array([[0.1], [-0.1], [0.0]])), [1, 0, 0])
    assert_array_equal(predict_codes(np.array([[0.1, 0.3, -1], [2, 2, 0]])), [1, 0])
    assert_array_equal(confidence(np.array([[-2.0], [0.5]])), [2, 0.5])
    assert_array_equal(confidence(np.array([[1.0, 4.0, 3.0], [0.0, 0.0, -1.0]])), [1, 0])


@pytest.fixture
def held_out_problem(rng):
    """Inner products of labelled rows and of target rows after them, classes and weights."""
    rows, weight = rng.normal(size=(65, 7)), rng.uniform(0.1, 3, 60)
    return rows, weight


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.03, 7.0])
@pytest.mark.parametrize("is_tensor", [False, True])
def test_held_out_scores_are_those_of_refits(held_out_problem, n_classes, C, is_tensor):
    rows, weight = held_out_problem
    H, numbers = rows[:60], np.arange(60)
    labels = Labels(numbers % n_classes, n_classes, weight, numbers)
    K = pytest.importorskip("torch").from_numpy(rows @ rows.T) if is_tensor else rows @ rows.T
    folds = labels.draw_folds(np.random.RandomState(0))
    scores = Posterior.invert(K[:60, :60], C, weight).score_held_out(labels.Y, folds)
    expected = np.empty(labels.Y.shape)
    for test in folds:
        train = np.setdiff1d(np.arange(60), test)
        refit = Ridge(alpha=1 / C, solver="svd").fit(H[train], labels.Y[train], sample_weight=weight[train])
        expected[test] = refit.predict(H[test]).reshape(len(test), -1)
    assert_allclose(scores, expected, rtol=1e-8, atol=1e-10)
    assert source_cv(K, labels, folds, C) == np.mean(predict_codes(expected) == labels.codes)


@pytest.mark.parametrize("is_tensor", [False, True])
def test_rows_that_are_added_to_a_posterior_change_scores_as_a_refit_does(held_out_problem, rng, is_tensor):
    rows, weight = held_out_problem
    H, T, C, Y, Z = rows[:60], rows[60:], 0.7, rng.normal(size=(60, 2)), rng.normal(size=(5, 2))
    K, precision = rows @ rows.T, rng.uniform(0.3, 2, 5)
    start = least_squares(H @ H.T, Y, C, weight)
    if is_tensor:
        K = pytest.importorskip("torch").from_numpy(K)
    added = Posterior.invert(K[:60, :60], C, weight).condition(K[:60, 60:])
    S = np.asarray(added.covariance(K[60:, 60:]))
    g = np.linalg.solve(S + np.diag(1 / (C * precision)), Z - start.scores(T @ H.T))
    change = added.spread_change(g)
    refit = least_squares(rows @ rows.T, np.vstack([Y, Z]), C, np.r_[weight, precision])
    assert_allclose(np.vstack([start.coef + change.coef, g]), refit.coef, rtol=1e-8, atol=1e-10)
    assert_allclose(start.intercept + change.intercept, refit.intercept, rtol=1e-8)
    assert_allclose(start.scores(T @ H.T) + S @ g, refit.scores(T @ rows.T), rtol=1e-8, atol=1e-10)


def test_held_out_scores_in_float32_are_near_those_in_float64(rng):
    H, labels = rng.normal(size=(300, 40)), Labels(np.arange(300) % 2, 2, np.ones(300), np.arange(300))
    K, folds = H @ H.T / 40, labels.draw_folds(np.random.RandomState(0))
    posteriors = (Posterior.invert(matrix, 3.0, labels.weight) for matrix in (K.astype(np.float32), K))
    assert_allclose(*(posterior.score_held_out(labels.Y, folds) for posterior in posteriors), atol=1e-4)


def test_folds_are_stratified_and_hold_equal_rows_together():
    codes, first = np.arange(60) % 2, np.arange(60) // 4 * 4 + np.arange(60) % 2
    folds = Labels(codes, 2, np.ones(60), first).draw_folds(np.random.RandomState(0))
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    for rows in folds:
        assert not np.isin(first[rows], first[np.setdiff1d(np.arange(60), rows)]).any()
        assert codes[rows].mean() == 0.5
    assert Labels(np.array([0, 0, 0, 1]), 2, np.ones(4), np.arange(4)).draw_folds(0) is None
    folds = Labels(np.arange(20) % 2, 2, np.ones(20), np.arange(20) % 2).draw_folds(0)
    assert [len(rows) for rows in folds] == [4] * 5  # a class of equal rows is held out row by row


# -- sums over rows --


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("has_tensors", [False, True])
def test_normal_equations_are_ridge_regression_on_all_rows(rng, C, has_tensors):
    """Of two layers, the second of which is read twice as large; weights are of rows as they were."""
    H, T, scale = rng.normal(size=(50, 7)), rng.normal(size=(30, 7)) + 0.2, np.repeat([1.0, 2.0], [4, 3])
    Y = np.where(H @ rng.normal(size=(7, 2)) + rng.normal(size=(50, 2)) > 0.3, 1.0, -1.0)
    weight = rng.uniform(0.3, 2, size=50)
    as_rows = pytest.importorskip("torch").tensor if has_tensors else np.array

    def read(rows, *edges):
        blocks, joined = [slice(*pair) for pair in pairwise(edges)], np.c_[rows * scale, np.ones(len(rows))]
        return LayerRows(blocks, [4, 3], np.array([1.0, 2.0]), lambda block: as_rows(joined[block]))

    training = NormalEquations(read(H, 0, 20, 21, 50), Y, C, weight)
    weights, intercept = training.solve()
    check_ridge(weights, intercept, scale, C, H, Y, weight)
    S, before = np.asarray(training.add_rows(read(T, 0, 12, 30))), T @ np.vstack(weights) + intercept
    T_weight, Z = rng.uniform(0.1, 0.8, 30), np.where(rng.normal(size=(30, 2)) > 0, 1.0, -1.0)
    g = np.linalg.solve(S + np.diag(1 / (C * T_weight)), Z - before)
    weights, intercept = training.solve(g)
    check_ridge(weights, intercept, scale, C, np.vstack([H, T]), np.vstack([Y, Z]), np.r_[weight, T_weight])
    assert_allclose(before + S @ g, T @ np.vstack(weights) + intercept, rtol=1e-8)


def check_ridge(weights, intercept, scale, C, H, Y, weight):
    ridge = Ridge(alpha=1 / C, solver="cholesky").fit(H * scale, Y, sample_weight=weight)
    assert_allclose(np.vstack(weights), ridge.coef_.T * scale[:, None], rtol=1e-8, atol=1e-10)
    assert_allclose(intercept, ridge.intercept_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("has_moves", [False, True])
def test_rows_are_read_centred_moved_and_scaled(rng, form, has_moves):
    X, domain = rng.poisson(1.0, size=(9, 4)).astype(float), np.arange(9) % 2
    layer = Layer(rng.normal(size=(4, 3)), rng.normal(size=3))
    means, moves = (
        [rng.normal(size=shape) for shape in shapes] for shapes in ([(2, 4), (2, 3)], [(4, 2), (3, 2)])
    )
    rows = read_layers(
        form(X), domain, Stack((layer,), tuple(means), (4.0, 0.25)), OnHost(), moves if has_moves else None
    )
    H = [X, np.tanh(X @ layer.coef + layer.intercept)]
    assert rows.widths == [4, 3]
    parts = zip(H, means, moves, (2.0, 0.5), strict=True)
    expected = [root * (h - mean[domain] + has_moves * move.T[domain]) for h, mean, move, root in parts]
    assert_allclose(rows.read(slice(2, 9)), np.hstack([*expected, np.ones((9, 1))])[2:], rtol=1e-12)


def test_a_sample_of_the_labelled_rows_as_anchors_gives_nearly_the_same(rng, set_limits):
    y, z = rng.integers(2, size=400), rng.integers(2, size=200)
    X, Z = (rng.poisson(0.5 + (codes[:, None] == np.arange(12) % 2)).astype(float) for codes in (y, z))
    model = ExactClassifier(1, 0.5, random_state=0)
    expected = model.fit(X, y, Z).predict_proba(Z)
    set_limits(GRAM_LIMIT=399, SAMPLED_ROWS=300)
    found = model.fit(X, y, Z).predict_proba(Z)
    assert np.abs(found - expected).mean() < 0.02
    assert not np.array_equal(found, expected)
    assert len(model.update_state_.codes) < 600
