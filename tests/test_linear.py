import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from undrift.linear import fitted_temperature, hinge, least_squares, probabilities, signs, winners


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


def test_signs_and_winners():
    assert_array_equal(signs(np.array([0, 1, 0]), 2), [[-1], [1], [-1]])
    assert_array_equal(signs(np.array([0, 2]), 3), [[1, -1, -1], [-1, -1, 1]])
    assert_array_equal(winners(np.array([[0.1], [-0.1], [0.0]])), [1, 0, 0])
    assert_array_equal(winners(np.array([[0.1, 0.3, -1], [2, 2, 0]])), [1, 0])


def test_probabilities_are_the_logistic_and_the_softmax():
    assert_allclose(probabilities(np.array([[0.6]]), 2.0), [[1 / (1 + np.exp(0.3)), 1 / (1 + np.exp(-0.3))]])
    scores = np.array([[1.0, 2.0, -1.0]])
    expected = np.exp(scores / 0.5) / np.exp(scores / 0.5).sum()
    assert_allclose(probabilities(scores, 0.5), expected)


def test_temperature_is_that_of_the_labels(rng):
    scores = rng.normal(size=(20000, 1))
    codes = (rng.uniform(size=20000) < 1 / (1 + np.exp(-scores[:, 0] / 0.3))).astype(int)
    assert_allclose(fitted_temperature(scores, codes), 0.3, rtol=0.05)
    many = rng.normal(size=(20000, 3))
    odds = np.exp(many / 2.0)
    draws = rng.uniform(size=(20000, 1))
    codes = (draws > np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    assert_allclose(fitted_temperature(many, codes), 2.0, rtol=0.1)
