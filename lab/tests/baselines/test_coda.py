"""CODA against Monte-Carlo labels, finite differences and other solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from undrift_lab.baselines import CODA
from undrift_lab.baselines.rounds import choose_most_confident
from undrift_lab.baselines.views import (
    ViewProblem,
    correlation,
    feature_cost,
    fit_disjoint_views,
    fit_sparse_logistic,
    split_at_random,
)

RNG = np.random.default_rng(0)


@parametrize_with_checks([CODA(random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def reviews(seed=1, n=400):
    """Counts in two domains: words shared by both, words of one, and words that mean the opposite."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(2 * n) < 0.5, -1, 1)
    source = np.arange(2 * n) < n
    up, down = np.where(y > 0, 1.2, 0.2)[:, None], np.where(y > 0, 0.2, 1.2)[:, None]
    shared = rng.poisson(np.hstack([up * 0.6] * 6 + [down * 0.6] * 6))
    specific = rng.poisson(np.hstack([up] * 6 + [down] * 6))
    flipped = rng.poisson(np.where(source[:, None], np.hstack([up] * 3), np.hstack([down] * 3)))
    alone = np.hstack([specific * source[:, None], specific * ~source[:, None]])
    X = np.hstack([shared, alone, flipped, rng.poisson(0.5, (2 * n, 10))]).astype(float)
    return X[source], y[source], X[~source], y[~source]


XS, YS, XT, YT = reviews()


def test_feature_cost_is_that_of_labels_drawn_from_the_model():
    L, U = RNG.poisson(0.7, (60, 5)).astype(float), RNG.poisson(0.7, (50, 5)).astype(float)
    y = np.where(RNG.random(60) < expit(L[:, 0] - L[:, 1]), 1.0, -1.0)
    w = np.array([1.0, -0.8, 0.3, 0.0, -0.5])
    known = [np.corrcoef(L[:, a], y)[0, 1] for a in range(5)]
    n_draws = 4000
    drawn = np.where(RNG.random((n_draws, 50)) < expit(U @ w), 1.0, -1.0)
    rows = np.tile(U, (n_draws, 1))
    guessed = [np.corrcoef(rows[:, a], drawn.ravel())[0, 1] for a in range(5)]
    sampling_error = 5 / np.sqrt(n_draws * 50)
    assert_allclose(correlation(L, y), known, rtol=1e-9)
    assert_allclose(
        feature_cost(sp.csr_array(L), y, sp.csr_array(U), w),
        1 - np.multiply(known, guessed),
        atol=sampling_error,
    )
    assert np.ptp(feature_cost(L, y, U, w)) > 10 * sampling_error
    assert_array_equal(correlation(np.ones((6, 1)), np.array([1.0, -1, 1, 1, -1, 1])), [0.0])


def problem(threshold=0.7, expandability=5.0, d=7):
    rng = np.random.default_rng(3)
    L, U = rng.normal(size=(30, d)), rng.normal(size=(25, d))
    L[:, -1] = U[:, -1] = 1.0
    price = np.append(np.full(d - 1, 0.01), 0.0)
    return ViewProblem(
        sp.csr_array(L), np.sign(L[:, 0] + 0.3), sp.csr_array(U), price, threshold, expandability
    )


def transcribed(both, weight, p):
    """The objective of a round without its price, term by term from its definition."""
    u, v = np.split(both, 2)
    L, U = p.X_labelled.toarray(), p.X_unlabelled.toarray()
    lu, lv = (np.mean(np.log(1 + np.exp(-p.y * (L @ x)))) for x in (u, v))
    cu, cv = (1 / (1 + np.exp(-50 * (1 / (1 + np.exp(-np.abs(U @ x))) - p.threshold))) for x in (u, v))
    one = np.mean(cu * (1 - cv) + (1 - cu) * cv)
    least = min(np.mean(cu * cv), np.mean((1 - cu) * (1 - cv)))
    overlap = sum(u[a] ** 2 * v[a] ** 2 for a in range(len(u) - 1))
    return np.log(np.exp(lu) + np.exp(lv)) + weight * (overlap + max(0, p.expandability * least - one) ** 2)


@pytest.mark.parametrize("size", [0.4, 1.5], ids=["both-rarer", "neither-rarer"])
def test_objective_of_a_round_and_its_gradient(size):
    rng = np.random.default_rng(4)
    u = rng.normal(size=7) * size
    p, both = problem(), np.concatenate([u, u + 0.2 * rng.normal(size=7)])  # alike: both are sure or neither
    value, slope = p.smooth_part(both, 10.0)
    shortage = p._shortage(both.reshape(2, -1))[0]
    assert shortage > 1e-3  # the constraint is at work, so its gradient is tested too
    assert_allclose(value, transcribed(both, 10.0, p), rtol=1e-9)
    numeric = approx_fprime(both, lambda x: transcribed(x, 10.0, p), 1e-7)
    assert_allclose(slope, numeric, rtol=1e-4, atol=1e-5)


def test_views_are_disjoint_but_for_the_constant_and_both_classify():
    p = problem(threshold=0.8, expandability=0.5)
    start = split_at_random(np.linspace(1, 2, 7), np.random.RandomState(0))
    assert_array_equal(start.sum(axis=0), np.linspace(1, 2, 7))
    views = fit_disjoint_views(p, start, n_steps=100)
    assert_array_equal((views != 0)[:, :-1].sum(axis=0) <= 1, True)
    assert (views[:, :-1] != 0).any(axis=1).all()
    assert (views[:, -1] != 0).all()
    assert p.smooth_part(views.ravel(), 1.0)[0] < p.smooth_part(start.ravel(), 1.0)[0]


def test_sparse_logistic_meets_the_optimality_conditions():
    X = sp.csr_array(RNG.poisson(0.6, (120, 15)).astype(float))
    y = np.where(RNG.random(120) < expit(np.asarray(X[:, [0]].todense()).ravel() - 0.5), 1.0, -1.0)
    price = np.linspace(0.005, 0.05, 15)
    w = fit_sparse_logistic(X, y, price)
    slope = X.toarray().T @ (-y * expit(-y * (X @ w))) / 120
    used = w != 0
    assert 0 < used.sum() < 15
    assert_allclose(slope[used], -price[used] * np.sign(w[used]), atol=2e-6)
    assert (np.abs(slope[~used]) <= price[~used] + 2e-6).all()


def test_rows_are_chosen_where_one_view_alone_is_confident():
    margins = np.array(
        [[3.0, 0.1], [-0.2, -4.0], [3.0, 3.0], [0.1, 0.2], [0.0, 2.0], [-5.0, 0.4], [2.5, -0.3]]
    )
    rows, labels = choose_most_confident(margins, 0.8, 4)
    assert_array_equal(rows, [5, 1, 0, 6])  # two of each class, surest first; 2 is confident twice, 3 never
    assert_array_equal(labels, [-1, -1, 1, 1])


def test_rounds_label_the_target_and_views_share_out_the_features():
    alone = CODA(random_state=0).fit(XS, YS)
    adapted = CODA(random_state=0, n_per_round=40).fit(XS, YS, XT)
    assert adapted.score(XT, YT) > alone.score(XT, YT) + 0.03
    moved = [r.n_moved for r in adapted.rounds_]
    assert 0 < max(moved) <= 40
    assert_array_equal(np.diff([r.n_labelled for r in adapted.rounds_]), moved[:-1])
    assert {r.n_labelled + r.n_unlabelled for r in adapted.rounds_} == {800}
    assert_allclose([r.penalty for r in adapted.rounds_], 0.1 / 1.1 ** np.arange(len(moved)), rtol=1e-9)
    assert not alone.rounds_
    fitted = CODA(random_state=0, max_rounds=2).fit(XS, YS, XT)
    assert fitted.views_.shape == (2, XS.shape[1])
    assert_array_equal((fitted.views_ != 0).all(axis=0), False)
    assert (fitted.views_ != 0).any(axis=1).all()
    assert_allclose(fitted.views_.sum(axis=0), fitted.coef_[0], rtol=1e-9)
    weighted = TfidfTransformer().fit(np.vstack([XS, XT])).transform(XT)
    assert_allclose(fitted.decision_function(XT), weighted @ fitted.coef_[0] + fitted.intercept_, rtol=1e-9)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("form", ["list", "domains", "missing"])
def test_every_way_to_pass_the_target_is_the_same(kind, form):
    settings = {"random_state": 0, "max_rounds": 2}
    plain = CODA(**settings).fit(XS, YS, XT)
    both = kind(np.vstack([XS, XT]))
    domain, names = np.repeat([3, -2], 400), np.array(["bad", "good"], dtype=object)
    if form == "list":
        other = CODA(**settings).fit(kind(XS), YS, [kind(XT[:100]), kind(XT[100:])])
    elif form == "domains":
        other = CODA(**settings).fit(both, np.concatenate([YS, np.full(400, 9)]), sample_domain=domain)
    else:
        words = np.concatenate([names[(YS > 0).astype(int)], np.full(400, None)])
        other = CODA(**settings).fit(both, words)
        assert_array_equal(other.classes_, ["bad", "good"])
    assert_allclose(other.decision_function(kind(XT)), plain.decision_function(XT), rtol=1e-6, atol=1e-6)
    assert_array_equal(other.classes_[(plain.predict(XT) > 0).astype(int)], other.predict(XT))


def test_rare_features_are_left_out():
    X = np.hstack([XS, np.zeros((400, 1))])
    X[:5, -1] = 1.0
    fitted = CODA().fit(X, YS)
    assert fitted.coef_[0, -1] == 0
    assert np.isnan(fitted.cost_[-1])
    assert (CODA(min_df=401).fit(X, YS).coef_ != 0).any()  # none is so frequent: all are kept


@pytest.mark.parametrize(
    ("changes", "y", "message"),
    [
        ({}, np.arange(400) % 3, "Only binary classification is supported"),
        ({}, np.ones(400), "one class only"),
        ({}, np.full(400, np.nan), "No row is labelled"),
        ({}, np.where(YS > 0, np.inf, 0.0), "Input y contains infinity"),
        ({"threshold": 0.4}, YS, "threshold"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        CODA(**changes).fit(XS, y)
    assert "\n" not in str(caught.value)
