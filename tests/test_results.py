"""The linear SVM whose C is chosen by cross-validation, against loops over folds and an optimiser."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from undrift.results import fitted_svm, gain_interval, linear_svm, list_shares

CS = [10 ** (-4 + 0.5 * k) for k in range(10)]


def test_a_class_that_ends_in_a_digit_is_told_from_its_share():
    assert list_shares({"0": 0.25, "yes": 0.75}) == "0: 25.0%, yes 75.0%"
    assert list_shares({"1": 0.5}, {"1": (0.2, 0.9)}) == "1: 20% to 90%"


def rows(scale=1.0, n=90, d=12, seed=3):
    """Counts in which a few terms speak for a class, sorted by class."""
    rng = np.random.default_rng(seed)
    y = np.repeat([-1, 1], [n // 2, n - n // 2])
    rate = np.full((n, d), 0.8)
    rate[y > 0, :2] += 0.5
    rate[y < 0, 2:4] += 0.5
    return scale * rng.poisson(rate).astype(float), y


def objective(weights, X, y, C):
    """Squared hinge loss; the intercept is penalised like a weight."""
    margin = 1 - y * (X @ weights[:-1] + weights[-1])
    return weights @ weights / 2 + C * np.sum(np.maximum(margin, 0) ** 2)


@pytest.mark.parametrize(("scale", "n_folds", "seed"), [(1.0, 5, 0), (0.03, 3, 7), (0.3, 4, 1)])
def test_C_is_that_of_highest_accuracy_in_cross_validation(scale, n_folds, seed):
    X, y = rows(scale)
    scores = []
    for C in CS:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y)
        machine = LinearSVC(C=C, random_state=seed)
        right = [machine.fit(X[fit], y[fit]).score(X[check], y[check]) for fit, check in folds]
        scores.append(np.mean(right))
    search = linear_svm(n_folds=n_folds, random_state=seed).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["param_C"].astype(float), CS, rtol=1e-9)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-9)
    assert search.best_params_["C"] == pytest.approx(CS[int(np.argmax(scores))], rel=1e-9)


@pytest.mark.parametrize(("n_few", "n_folds"), [(3, 3), (5, 5), (9, 5)])
def test_a_small_class_has_a_row_in_every_fold(n_few, n_folds):
    X, y = rows(n=60)
    X, y = X[: 30 + n_few], y[: 30 + n_few]
    asked = linear_svm(n_folds=n_folds, random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted_svm(X, y).decision_function(X), asked.decision_function(X))


def test_one_row_of_a_class_and_the_seed():
    X, y = rows(n=60)
    plain = LinearSVC(random_state=0).fit(X[:31], y[:31])
    np.testing.assert_array_equal(fitted_svm(X[:31], y[:31]).coef_, plain.coef_)
    X, y = rows()
    one, again, other = (linear_svm(random_state=seed).fit(X, y).cv_results_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(one["mean_test_score"], again["mean_test_score"])
    assert (one["mean_test_score"] != other["mean_test_score"]).any()


def test_the_interval_of_a_gain_is_that_of_agresti_and_min():
    """Half a row is added to each of the four outcomes; the rest is the mean of paired differences."""
    differences, counts = np.array([1, -1, 0, 0]), np.array([30.5, 10.5, 80.5, 80.5])
    mean, z = np.average(differences, weights=counts), stats.norm.ppf(0.975)
    spread = np.sqrt(np.average((differences - mean) ** 2, weights=counts) / 202)
    assert_allclose(gain_interval(30 / 200, 10 / 200, 200), [mean - z * spread, mean + z * spread])
    assert gain_interval(1.0, 0.0, 2)[1] == 1


def test_the_ends_of_a_narrow_interval_have_a_decimal():
    shares = {"no": 0.499, "yes": 0.501}
    assert list_shares(shares, {"no": [0.4985, 0.4995], "yes": [0.4, 0.6]}) == (
        "no 49.9% (49.9% to 50.0%), yes 50% (40% to 60%)"
    )
    shares = {"no": 0.00045, "yes": 0.99955}
    assert list_shares(shares, {"no": [0.0006, 0.002], "yes": [0.998, 0.9994]}) == (
        "no 0.1% (0.1% to 0.2%), yes 99.9% (99.8% to 99.9%)"
    )  # rounded alike, and never outside
    assert list_shares({"a": 0.2345, "b": 0.3455, "c": 0.42}) == "a 23.5%, b 34.5%, c 42.0%"
    many = {f"class {i:02d}": 0.05 for i in range(20)}
    assert list_shares(many).endswith("class 09: 5.0%, 10 more")
