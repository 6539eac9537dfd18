"""SCL against per-pivot solvers, scikit-learn's mutual information and plain numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.metrics import mutual_info_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from undrift_lab.baselines import SCL
from undrift_lab.baselines.scl import huber_predictors, mutual_information, rank_by_information

RNG = np.random.default_rng(0)
TOPICS = RNG.integers(0, 2, size=(80, 1))
B = (RNG.random((80, 9)) < np.where(TOPICS, 0.6, 0.25)).astype(float)
PIVOTS = np.array([4, 0, 7])
SPARSE_KINDS = [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array]


@parametrize_with_checks([SCL()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def huber_oracle(pivot, ridge):
    """The same problem with the modified Huber loss, by a general optimiser on the definition."""
    y, X = 2 * B[:, pivot] - 1, np.delete(B, pivot, axis=1)

    def objective(wb):
        z = y * (X @ wb[:-1] + wb[-1])
        loss = np.where(z >= 1, 0, np.where(z >= -1, (1 - z) ** 2, -4 * z))
        slope = np.where(z >= 1, 0, np.where(z >= -1, -2 * (1 - z), -4)) * y / len(y)
        return loss.mean() + ridge * wb[:-1] @ wb[:-1], np.append(
            slope @ X + 2 * ridge * wb[:-1], slope.sum()
        )

    solution = minimize(objective, np.zeros(X.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-10})
    return np.insert(solution.x[:-1], pivot, 0.0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_huber_predictors_minimise_their_definition(kind):
    expected = np.column_stack([huber_oracle(pivot, 0.01) for pivot in PIVOTS])
    assert np.abs(expected).max() > 0.1
    assert_allclose(huber_predictors(kind(B), PIVOTS, 0.01, tol=1e-9, max_iter=500), expected, atol=1e-6)
    twins = huber_predictors(kind(np.hstack([B, B])), PIVOTS, 1e-3)  # the other copy carries the weight
    assert_array_equal(twins[PIVOTS, np.arange(3)], 0.0)
    assert (twins[PIVOTS + 9, np.arange(3)] > 0.5).all()


def test_huber_predictors_use_the_linear_tail():
    """Rows far on the wrong side pull with slope 4, not with the square: outliers matter for the answer."""
    X = np.zeros((60, 2))
    X[:50, 0], X[:45, 1], X[50:58, 1] = 40.0, 1.0, 1.0
    y = 2 * X[:, 1] - 1

    def objective(wb):
        z = y * (X[:, 0] * wb[0] + wb[1])
        return np.where(z >= 1, 0, np.where(z >= -1, (1 - z) ** 2, -4 * z)).mean() + 1e-3 * wb[0] ** 2

    best = objective(
        minimize(objective, [0.0, 0.0], method="Nelder-Mead", options={"fatol": 1e-14, "xatol": 1e-12}).x
    )
    w = huber_predictors(X, np.array([1]), 1e-3, tol=1e-9, max_iter=500)[0, 0]
    reached = min(objective([w, b]) for b in np.linspace(-1.2, 1.2, 4801))
    assert_allclose(reached, best, rtol=1e-5)


def test_mutual_information_is_scikit_learns_with_one_added_to_each_count():
    positive = RNG.random(80) < 0.4
    for column, information in enumerate(mutual_information(sp.csr_array(B), positive)):
        table = [[np.sum((B[:, column] == a) & (positive == b)) + 1 for b in (0, 1)] for a in (0, 1)]
        assert_allclose(information, mutual_info_score(None, None, contingency=table) / np.log(2), rtol=1e-9)


def test_with_three_classes_rankings_take_turns():
    labels = np.repeat(["a", "b", "c"], 20)
    X = np.zeros((60, 6))
    for column, group in enumerate(["c", "c", "b", "a", "b"]):
        X[labels == group, column] = 1
        X[: 2 * column, column] = 1 - X[: 2 * column, column]  # the later, the less informative
    ranked = rank_by_information(X, labels, np.arange(6))
    firsts = [
        np.argsort([-mutual_information(X, labels == c)[j] for j in range(6)], kind="stable")[0]
        for c in "abc"
    ]
    assert_array_equal(ranked[:3], firsts)
    assert sorted(ranked) == list(range(6))


def domains():
    """Two domains of counts in which the label shows in different words, tied by shared pivots."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    rates = np.where(y[:, None] == 1, [1.5] * 5 + [0.2] * 5, [0.2] * 5 + [1.5] * 5)
    shared, source_only, target_only = (rng.poisson(rates * k) for k in (0.4, 1.0, 1.0))
    is_source = np.arange(600) < 300
    X = np.hstack([shared, source_only * is_source[:, None], target_only * ~is_source[:, None]])
    return np.hstack([X, rng.poisson(0.3, (600, 10))]).astype(float), y, np.where(is_source, 0, -1)


X, Y, DOMAIN = domains()


def test_pivots_are_frequent_in_both_domains_and_ranked_by_the_rarer_side():
    pivots = SCL(n_pivots=8, min_df=20).fit(X, sample_domain=DOMAIN).pivots_
    frequency = np.minimum((X[DOMAIN >= 0] > 0).sum(axis=0), (X[DOMAIN < 0] > 0).sum(axis=0))
    assert_array_equal(pivots, np.argsort(-frequency, kind="stable")[:8])
    assert not set(pivots) & set(range(10, 30))  # words of one domain alone


def test_labels_rank_pivots_and_those_of_target_rows_are_not_looked_at():
    y = Y.astype(float)
    fitted = SCL(n_pivots=10, min_df=20).fit(X, y, sample_domain=DOMAIN)
    assert set(fitted.pivots_) == set(range(10))  # the shared words that depend on the label
    hidden = np.where(DOMAIN < 0, np.nan, y)
    spoilt = np.where(DOMAIN < 0, 7.0, y)
    for other in (hidden, spoilt):
        again = SCL(n_pivots=10, min_df=20).fit(X, other, sample_domain=DOMAIN)
        assert_array_equal(again.transform(X), fitted.transform(X))


@pytest.mark.parametrize("clip_negative", [True, False])
def test_components_are_the_leading_left_singular_vectors(clip_negative):
    fitted = SCL(4, clip_negative=clip_negative, min_df=20).fit(X, sample_domain=DOMAIN)
    W = huber_predictors((X > 0).astype(float), fitted.pivots_, fitted.ridge)
    W = np.where(W < 0, 0, W) if clip_negative else W
    values, vectors = np.linalg.eigh(W @ W.T)
    theta = fitted.components_
    assert_allclose(theta.T @ theta, np.eye(4), atol=1e-9)
    assert_allclose(theta @ theta.T, vectors[:, -4:] @ vectors[:, -4:].T, atol=1e-9)
    assert_allclose(fitted.singular_values_**2, values[::-1][:4], rtol=1e-9)


def test_projections_have_mean_zero_and_the_chosen_deviation_over_all_rows():
    fitted = SCL(5, scale=3.0, min_df=20).fit(X, sample_domain=DOMAIN)
    out = fitted.transform(X)
    assert_array_equal(out[:, :40], X)
    assert_allclose(out[:, 40:].mean(axis=0), 0, atol=1e-9)
    assert_allclose(out[:, 40:].std(axis=0), 3.0, rtol=1e-9)
    direction = (X > 0) @ fitted.components_
    assert_allclose(
        out[:, 40:], 3 * (direction - direction.mean(axis=0)) / direction.std(axis=0), rtol=1e-9, atol=1e-9
    )
    assert_allclose(fitted.set_params(scale=1.0).transform(X)[:, 40:], out[:, 40:] / 3, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_rows_give_the_same_and_stay_sparse(kind):
    dense = SCL(5, min_df=20).fit(X, Y, sample_domain=DOMAIN)
    sparse = SCL(5, min_df=20).fit(kind(X), Y, sample_domain=DOMAIN)
    out = sparse.transform(kind(X))
    assert sp.issparse(out)
    assert isinstance(out, sp.sparray) == isinstance(kind(X), sp.sparray)
    assert_allclose(out.toarray(), dense.transform(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "y", "message"),
    [({"min_df": 700}, None, "there is no pivot"), ({"ridge": 0.0}, None, "ridge")],
)
def test_bad_input_is_refused_in_one_line(changes, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        SCL(**changes).fit(X, y)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"each of the 600 rows of X.*got shape \(2,\)"):
        SCL().fit(X, sample_domain=[0, -1])
