import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from undrift._core import numpy_ops
from undrift.classifier.linear import (
    held_out_least_squares,
    hinge,
    least_squares,
    predict_codes,
    signs,
    solve_path,
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
    Y = signs(codes, n_classes)
    dual = least_squares(H @ H.T, Y, C, weight)
    ridge = Ridge(alpha=1 / C, solver="cholesky").fit(H, Y, sample_weight=weight)
    assert_allclose(dual.intercept, np.ravel(ridge.intercept_), rtol=1e-9)
    assert_allclose(H.T @ dual.coef, np.atleast_2d(ridge.coef_).T, rtol=1e-9)
    assert_allclose(dual.scores(other @ H.T), ridge.predict(other).reshape(15, -1), rtol=1e-9)


def test_least_squares_in_float32(problem):
    H, codes, weight, _ = problem
    Y = signs(codes, 3)
    exact = least_squares(H @ H.T, Y, 1.0, weight)
    single = least_squares((H @ H.T).astype(np.float32), Y, 1.0, weight)
    assert_allclose(single.coef, exact.coef, rtol=1e-4, atol=1e-4 * np.abs(exact.coef).max())


def bordered(K, Y, C, weight):
    """Coefficients and intercepts that solve the optimality conditions, written out as one system."""
    n = len(K)
    system = np.block([[K + np.diag(1 / (C * weight)), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solved[:n], solved[n]


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_a_float32_matrix_is_solved_nearly_as_in_float64(rng, C, monkeypatch):
    factored, factor = [], numpy_ops._factor
    monkeypatch.setattr(numpy_ops, "_factor", lambda *a: (factored.append(np.dtype(a[-1])), factor(*a))[1])
    H = rng.normal(size=(700, 60)).astype(np.float32)  # more than one stripe
    K, Y, weight = H @ H.T / 60, signs(rng.integers(3, size=700), 3), rng.uniform(0.2, 3, size=700)
    coef, intercept = bordered(K.astype(np.float64), Y, C, weight)
    dual = least_squares(K, Y, C, weight)
    assert np.linalg.norm(dual.coef - coef) < 1e-7 * np.linalg.norm(coef)
    assert_allclose(dual.intercept, intercept, rtol=1e-7)
    assert factored == [np.float32]  # at half the cost


@pytest.mark.parametrize("C", [3e5, 3e6])
def test_a_matrix_that_float32_cannot_factor_is_solved_in_float64(rng, C):
    H = rng.integers(-3, 4, size=(60, 5)).astype(np.float32)  # exact inner products, of rank 5
    K, Y, weight = H @ H.T, signs(rng.integers(2, size=60), 2), rng.uniform(0.5, 1, size=60)
    ridge = Ridge(alpha=1 / C, solver="svd").fit(H.astype(np.float64), Y, sample_weight=weight)
    dual = least_squares(K, Y, C, weight)
    assert_allclose(H.T @ dual.coef, np.atleast_2d(ridge.coef_).T, rtol=1e-4)


def test_too_large_a_C_is_said_so():
    with pytest.raises(ValueError, match=r"C=1e\+30 is too large for inner products of this size; lower C"):
        least_squares(np.ones((3, 3)) * 1e9, np.array([[1.0], [-1.0], [1.0]]), 1e30, np.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_a_path_is_its_single_points(problem, dtype, at_once, monkeypatch):
    H, codes, weight, _ = problem
    weight[::7] = 0
    Cs, K, Y = [0.1, 1.0, 3.0], (H @ H.T).astype(dtype), signs(codes, 3)
    single = [least_squares(K, Y, C, weight) for C in Cs]
    monkeypatch.setattr(numpy_ops, "FACTORED_ENTRIES", at_once * np.count_nonzero(weight) ** 2)
    for dual, expected in zip(solve_path(least_squares, K, Y, Cs, weight), single, strict=True):
        assert_allclose(dual.coef, expected.coef, rtol=1e-7, atol=1e-9)
        assert_allclose(dual.intercept, expected.intercept, rtol=1e-7)
    path = solve_path(hinge, K, Y, Cs, weight)
    assert_array_equal([dual.coef for dual in path], [hinge(K, Y, C, weight).coef for C in Cs])


@pytest.mark.parametrize("solver", [least_squares, hinge])
def test_rows_of_weight_zero_do_not_count(problem, solver):
    H, codes, weight, other = problem
    weight[codes == 2] = 0
    kept, Y = codes < 2, signs(codes, 3)[:, :2]
    dual = solver(H @ H.T, Y, 0.7, weight)
    without = solver(H[kept] @ H[kept].T, Y[kept], 0.7, weight[kept])
    assert_array_equal(dual.coef[~kept], 0)
    assert_allclose(dual.scores(other @ H.T), without.scores(other @ H[kept].T), rtol=1e-9)
    with pytest.raises(ValueError, match="the weights of all labelled rows are zero"):
        solver(H @ H.T, Y, 0.7, np.zeros(40))


def test_a_gram_matrix_is_not_written_to(problem):
    H, codes, weight, _ = problem
    K = H @ H.T
    before = K.copy()
    least_squares(K, signs(codes, 3), 1.0, weight)
    hinge(K, signs(codes, 3), 1.0, weight)
    assert_array_equal(K, before)


@pytest.mark.parametrize("C", [0.05, 2.0])
def test_hinge_is_a_linear_svm_on_the_features(problem, C):
    H, codes, weight, other = problem
    Y = signs(codes, 3)
    dual = hinge(H @ H.T, Y, C, weight)
    for j in range(3):
        svm = SVC(kernel="linear", C=C).fit(H, Y[:, j], sample_weight=weight)
        assert_allclose(dual.scores(other @ H.T)[:, j], svm.decision_function(other), rtol=1e-6)
        assert_allclose(H.T @ dual.coef[:, j], svm.coef_[0], rtol=1e-6)


@pytest.mark.parametrize("solver", [hinge, least_squares])
def test_a_class_that_no_row_is_of_is_never_chosen(problem, solver):
    """Predictions that are trained on may leave a class out; the others are as they were."""
    H, codes, weight, other = problem
    codes = np.where(codes == 1, 2, codes)
    dual, two = (solver(H @ H.T, signs(c, n), 0.5, weight) for c, n in ((codes, 3), (codes // 2, 2)))
    assert_array_equal(dual.coef[:, 1], 0)
    assert dual.intercept[1] == pytest.approx(-1)
    assert_allclose(dual.scores(other @ H.T)[:, [2]], two.scores(other @ H.T), rtol=1e-9, atol=1e-12)


def test_signs_and_winners():
    assert_array_equal(signs(np.array([0, 1, 0]), 2), [[-1], [1], [-1]])
    assert_array_equal(signs(np.array([0, 2]), 3), [[1, -1, -1], [-1, -1, 1]])
    assert_array_equal(predict_codes(np.array([[0.1], [-0.1], [0.0]])), [1, 0, 0])
    assert_array_equal(predict_codes(np.array([[0.1, 0.3, -1], [2, 2, 0]])), [1, 0])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_held_out_scores_in_closed_form_are_those_of_refits(rng, n_outputs):
    H, Y = rng.normal(size=(23, 9)), np.where(rng.random((23, n_outputs)) < 0.4, 1.0, -1.0)
    weight, parts = rng.uniform(0.2, 3, size=23), np.array_split(rng.permutation(23), 4)
    scores = held_out_least_squares(H @ H.T, Y, 0.7, weight, parts)
    for test in parts:
        train = np.setdiff1d(np.arange(23), test)
        A, w = np.column_stack([H[train], np.ones(len(train))]), weight[train]
        penalty = np.diag([1.0] * 9 + [0.0])  # the intercept is free
        beta = np.linalg.solve(penalty + 0.7 * A.T @ (w[:, None] * A), 0.7 * A.T @ (w[:, None] * Y[train]))
        assert_allclose(scores[test], H[test] @ beta[:-1] + beta[-1], rtol=1e-9, atol=1e-11)


def test_held_out_scores_in_float32_are_near_those_in_float64(rng):
    H, y = rng.normal(size=(300, 40)), np.arange(300) % 2
    K, parts = H @ H.T / 40, np.array_split(rng.permutation(300), 5)
    arguments = signs(y, 2), 3.0, np.ones(300), parts
    scores = held_out_least_squares(K.astype(np.float32), *arguments)
    assert_allclose(scores, held_out_least_squares(K, *arguments), rtol=1e-4, atol=1e-4)


def test_held_out_scores_need_a_positive_definite_system(rng):
    K = np.ones((6, 6))
    with pytest.raises(ValueError, match=r"C=1e\+30 is too large for inner products of this size; lower C"):
        held_out_least_squares(
            K, signs(np.arange(6) % 2, 2), 1e30, np.ones(6), [np.arange(3), np.arange(3, 6)]
        )
