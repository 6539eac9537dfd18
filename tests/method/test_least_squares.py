"""Least squares on inner products against `lstsq` and a Gaussian process on explicit features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from tests.helpers.explicit import draw_rows, solve
from undrift.method.anchors import class_directions, draw_folds
from undrift.method.least_squares import Conditioned, LeastSquares, multiply
from undrift.method.scores import measure_auc, predict_codes, signs


@pytest.fixture(params=[2, 3])
def rows(request, rng):
    """Rows of two or three classes, of one source and two targets."""
    return draw_rows(rng, request.param, n_targets=2)


def to_place(matrix, is_tensor):
    return pytest.importorskip("torch").from_numpy(matrix) if is_tensor else matrix


def fit(rows, is_tensor=False):
    K = to_place(rows.labelled @ rows.labelled.T, is_tensor)
    return LeastSquares.fit(K, signs(rows.codes, rows.n_classes), rows.C, rows.weight)


@pytest.mark.parametrize("is_tensor", [False, True])
def test_a_fit_is_least_squares_on_features_with_a_free_intercept(rows, is_tensor):
    source = fit(rows, is_tensor)
    w, b = solve(rows.labelled, rows.wanted, rows.C, rows.weight)
    assert_allclose(rows.labelled.T @ source.coef, w, rtol=1e-8, atol=1e-10)
    assert_allclose(source.intercept, b, rtol=1e-8, atol=1e-10)
    assert_allclose(source.scores, rows.labelled @ w + b, rtol=1e-8, atol=1e-10)
    products = to_place(rows.targets @ rows.labelled.T, is_tensor)
    assert_allclose(source.score(products), rows.targets @ w + b, rtol=1e-8, atol=1e-10)
    assert_allclose(source.noise, 1 / (rows.C * rows.weight))


def bordered(K, Y, C, weight):
    """Coefficients and intercepts that solve the optimality conditions, written out as one system."""
    n = len(K)
    system = np.block([[K + np.diag(1 / (C * weight)), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solved[:n], solved[n]


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_a_float32_matrix_is_solved_nearly_as_in_float64(rng, C):
    """Up to a third of the rounding errors times the condition; the inverse alone is off by more."""
    H = rng.normal(size=(300, 60)).astype(np.float32)
    K, Y, weight = H @ H.T / 60, signs(rng.integers(3, size=300), 3), rng.uniform(0.2, 3, size=300)
    coef, intercept = bordered(K.astype(np.float64), Y, C, weight)
    source = LeastSquares.fit(K, Y, C, weight)
    assert source.inverse.dtype == np.float32  # at half the cost
    tolerance = np.finfo(np.float32).eps * np.linalg.cond(K + np.diag(1 / (C * weight))) / 3
    assert np.linalg.norm(K @ (source.coef - coef)) < tolerance * np.linalg.norm(K @ coef)
    assert_allclose(source.intercept, intercept, atol=tolerance)


@pytest.mark.parametrize("is_tensor", [False, True])
def test_held_out_scores_are_those_of_refits(rows, is_tensor):
    n = len(rows.codes)
    folds = draw_folds(rows.codes, np.arange(n), 5, 0)
    scores = fit(rows, is_tensor).score_held_out(folds)
    for held_out in folds:
        kept = np.setdiff1d(np.arange(n), held_out)
        w, b = solve(rows.labelled[kept], rows.wanted[kept], rows.C, rows.weight[kept])
        assert_allclose(scores[held_out], rows.labelled[held_out] @ w + b, rtol=1e-7, atol=1e-9)


def list_points(rows):
    """Target rows with their constant, then centres and class means, which have none."""
    points = np.vstack([rows.targets, rows.centres, rows.class_means])
    has_constant = np.arange(len(points)) < len(rows.targets)
    return np.column_stack([points, has_constant])


def invert_precision(rows):
    """Posterior covariance of weights and intercept; the intercept has a flat prior."""
    A = np.column_stack([rows.labelled, np.ones(len(rows.labelled))])
    prior = np.eye(A.shape[1])
    prior[-1, -1] = 0.0
    return np.linalg.inv(prior + (A * (rows.C * rows.weight)[:, None]).T @ A)


def condition(rows, is_tensor):
    gram = rows.gram
    object.__setattr__(gram, "products", to_place(gram.products, is_tensor))
    return Conditioned.of(gram, fit(rows, is_tensor), class_directions(rows.codes, rows.n_classes))


@pytest.mark.parametrize("is_tensor", [False, True])
def test_scores_and_covariances_are_those_of_a_gaussian_process(rows, is_tensor):
    conditioned, points = condition(rows, is_tensor), list_points(rows)
    w, b = solve(rows.labelled, rows.wanted, rows.C, rows.weight)
    assert_allclose(conditioned.scores, points @ np.vstack([w, b]), rtol=1e-8, atol=1e-10)
    expected = points @ invert_precision(rows) @ points.T
    assert_allclose(np.asarray(conditioned.covariance), expected, rtol=1e-7, atol=1e-9)
    assert conditioned.n_targets == len(rows.targets)
    assert conditioned.directions == slice(len(rows.targets), len(points))


def test_coefficients_of_further_rows_change_those_of_the_labelled_ones(rows, rng):
    """In features: w and b grow by the posterior covariance times the points times their coefficients."""
    points, source = list_points(rows), fit(rows)
    e = rng.normal(size=(len(points), source.coef.shape[1]))
    coef, intercept = condition(rows, False).change_source(e)
    m = len(rows.targets) + len(rows.centres)
    w = rows.labelled.T @ coef + points[:m, :-1].T @ e[:m]
    start = np.vstack(solve(rows.labelled, rows.wanted, rows.C, rows.weight))
    expected = start + invert_precision(rows) @ points.T @ e
    assert_allclose(np.vstack([w, intercept]), expected, rtol=1e-7, atol=1e-9)


def test_the_scale_is_the_mean_square_norm_of_labelled_rows(rows):
    assert rows.gram.scale == pytest.approx((rows.labelled**2).sum(axis=1).mean())
    assert rows.gram.n_targets == len(rows.targets)


def test_signs_winners_and_products():
    assert_array_equal(signs(np.array([0, 1, 0]), 2), [[-1], [1], [-1]])
    assert_array_equal(signs(np.array([0, 2]), 3), [[1, -1, -1], [-1, -1, 1]])
    assert_array_equal(predict_codes(np.array([[0.1], [-0.1], [0.0]])), [1, 0, 0])
    assert_array_equal(predict_codes(np.array([[0.1, 0.3, -1], [2, 2, 0]])), [1, 0])
    product = multiply(np.ones((2, 3), dtype=np.float32), np.full((3, 1), 0.1))
    assert product.dtype == np.float64
    assert_allclose(product, 0.3, rtol=1e-6)


def test_the_area_under_the_curve_is_that_of_a_class_against_the_rest(rng):
    codes, scores = rng.integers(3, size=80), rng.normal(size=(80, 3))
    scores[np.arange(80), codes] += 0.7
    areas = [roc_auc_score(codes == k, scores[:, k]) for k in range(3)]
    assert measure_auc(scores, codes) == pytest.approx(np.mean(areas))
    assert measure_auc(scores[:, [1]], (codes == 1).astype(int)) == pytest.approx(areas[1])


def test_folds_are_stratified_and_hold_equal_rows_together():
    codes, first = np.arange(60) % 2, np.arange(60) // 4 * 4 + np.arange(60) % 2
    folds = draw_folds(codes, first, 5, np.random.RandomState(0))
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    for rows in folds:
        assert not np.isin(first[rows], first[np.setdiff1d(np.arange(60), rows)]).any()
        assert codes[rows].mean() == 0.5
    assert draw_folds(np.array([0, 0, 0, 1]), np.arange(4), 5, 0) is None
    folds = draw_folds(np.arange(20) % 2, np.arange(20) % 2, 5, 0)
    assert [len(rows) for rows in folds] == [4] * 5  # a class of equal rows is held out row by row
    few = draw_folds(np.array([0, 0, 0, 1, 1, 1, 1]), np.arange(7), 5, 0)
    assert len(few) == 3  # as many as the smallest class has rows
