import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from undrift_lab.metrics import (
    gram_distance,
    proxy_a_distance,
    transfer_error,
    transfer_loss,
    transfer_ratio,
)


def draw_gaussians(shift, n=400, d=3, seed=0, n_b=None):
    """Rows of two spherical Gaussians whose means differ by `shift` along the first axis."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, d)), rng.normal(size=(n_b or n, d))
    B[:, 0] += shift
    return A, B


def distance_by_hand(A, B, Cs, n_folds, seed):
    """The distance at the C chosen inside the training half."""
    rng = np.random.RandomState(seed)
    n = min(len(A), len(B))
    A, B = A[rng.permutation(len(A))[:n]], B[rng.permutation(len(B))[:n]]
    seed = rng.randint(2**31 - 1)
    X, y = np.r_[A[: n // 2], B[: n // 2]], np.repeat([0, 1], n // 2)
    X_test, y_test = np.r_[A[n // 2 :], B[n // 2 :]], np.repeat([0, 1], n - n // 2)

    def error(C, fit, rows, truth):
        return np.mean(LinearSVC(C=C, random_state=seed).fit(X[fit], y[fit]).predict(rows) != truth)

    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))
    n_wrong = {C: sum(round(len(c) * error(C, f, X[c], y[c])) for f, c in folds) for C in sorted(Cs)}
    chosen = min(n_wrong, key=n_wrong.get)
    return 2 * (1 - 2 * error(chosen, slice(None), X_test, y_test))


def test_error_is_the_share_of_wrong_labels():
    assert transfer_error([1, -1, 1, 1], [1, 1, 1, 1]) == 0.25
    assert transfer_error(np.array(["a", "b"]), ["b", "a"]) == 1.0
    for y_true, y_pred in (([1, 2], [1]), ([], []), ([[1, 2]], [[1, 2]])):
        with pytest.raises(ValueError, match="one label per row"):
            transfer_error(y_true, y_pred)
    with pytest.raises(ValueError, match="y_true has 1 unknown labels"):
        transfer_error([1.0, np.nan], [1.0, 1.0])


def test_loss_and_ratio_of_one_task_and_of_many():
    assert transfer_loss(0.25, 0.2) == pytest.approx(0.05, rel=1e-9)
    assert isinstance(transfer_ratio(0.25, 0.2), float)
    error, baseline = np.array([0.2, 0.3]), np.array([0.1, 0.4])
    assert_allclose(transfer_loss(error, baseline), [0.1, -0.1], rtol=1e-9)
    assert_allclose(transfer_ratio(error, baseline), [2, 0.75], rtol=1e-9)
    assert transfer_ratio(0.1, 0) == np.inf  # a faultless baseline
    assert np.isnan(transfer_ratio(0, 0))
    for measure in (transfer_loss, transfer_ratio):
        for arguments, name in (((24.0, 0.2), "error"), ((0.2, -0.1), "baseline_error")):
            with pytest.raises(ValueError, match=rf"^{name} must lie in \[0, 1\]"):
                measure(*arguments)


class TestProxyADistance:
    def test_sparse_and_dense_agree(self):
        A, B = ((np.random.default_rng(s).random((200, 30)) < p) * 1.0 for s, p in ((0, 0.2), (1, 0.3)))
        dense = proxy_a_distance(A, B, C=[0.01, 1], random_state=0)
        for container in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
            assert proxy_a_distance(container(A), container(B), C=[0.01, 1], random_state=0) == dense
        assert 0 < dense.distance < 2

    def test_64_bit_indices_are_narrowed(self):
        A, B = (sparse.csr_array(X) for X in draw_gaussians(2.0))
        expected = proxy_a_distance(A, B, C=0.1, random_state=0)
        for X in (A, B):
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        assert proxy_a_distance(A, B, C=0.1, random_state=0) == expected
        assert A.indices.dtype == np.int64

    def test_no_warning_when_the_svm_does_not_converge(self):
        A, B = draw_gaussians(0, n=300, d=20)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            distance = proxy_a_distance(sparse.csr_array(A), sparse.csr_array(B), C=1e4, random_state=0)
        assert -2 <= distance.low <= distance.high <= 2

    def test_folds_by_hand(self):
        Cs = [0.1, 1e-3, 1e-5, 0.01, 3.0]  # in no order: of equals, which few rows often have, the smallest
        for seed in range(10):
            A, B = draw_gaussians(1.5, n=31, d=8, n_b=40, seed=seed)
            expected = distance_by_hand(A, B, Cs, 5, seed)
            found = proxy_a_distance(A, B, C=Cs, random_state=seed).distance
            assert found == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("C", [[1.0, 0.0], []])
    def test_refusals(self, C):
        with pytest.raises(ValueError, match="positive values"):
            proxy_a_distance(*draw_gaussians(1.0), C=C)
        with pytest.raises(ValueError, match="9 rows a domain are too few; give 10 or more"):
            proxy_a_distance(*draw_gaussians(1.0, n=9))
        with pytest.raises(ValueError, match="A has 2 columns and B has 3"):
            proxy_a_distance(np.zeros((20, 2)), np.zeros((20, 3)))


class TestInterval:
    def test_it_holds_the_distance(self):
        interval = proxy_a_distance(*draw_gaussians(1.0), C=[0.01, 0.1], random_state=0)
        assert interval.low < interval.distance < interval.high
        separable = proxy_a_distance(*draw_gaussians(20), C=0.1, random_state=0)
        assert (separable.low, separable.distance, separable.high) == (2.0, 2.0, 2.0)

    def test_width_is_that_of_the_binomial(self):
        # 2 x 200 held-out rows with error e: the distance has standard deviation 4 sqrt(e (1-e) / 400).
        interval = proxy_a_distance(*draw_gaussians(1.0), C=0.1, random_state=0)
        error = (1 - interval.distance / 2) / 2
        expected = 2 * stats.norm.ppf(0.975) * 4 * np.sqrt(error * (1 - error) / 400)
        assert interval.high - interval.low == pytest.approx(expected, rel=0.1)

    def test_rows_of_each_domain_are_drawn_apart(self):
        # Rows that are all alike: those of one domain are all right, and those of the other all wrong.
        interval = proxy_a_distance(np.zeros((40, 2)), np.zeros((40, 2)), C=1.0, random_state=0)
        assert (interval.low, interval.distance, interval.high) == (0.0, 0.0, 0.0)


def test_inner_products_are_enough_for_the_distance(rng):
    X = rng.normal(size=(120, 6)) + np.repeat([[0.0], [0.8]], [50, 70], axis=0)
    X /= np.sqrt(np.mean(np.sum(X**2, axis=1)))
    expected = proxy_a_distance(X[:50], X[50:], C=(0.01, 1.0), random_state=3)
    for scale in (1.0, 1e4):  # of no consequence: the rows are brought to one size
        assert gram_distance(scale * X @ X.T, 50, C=(0.01, 1.0), random_state=3) == expected
    assert 0 < expected.distance < 2
    assert gram_distance(np.zeros((40, 40)), 20, random_state=0).distance == 0
