import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier
from undrift.classifier.primal import LayerRows, fit_primal


@pytest.fixture
def layer_blocks(rng):
    """Two layers of 50 rows, read in uneven blocks."""
    H = [rng.normal(size=(50, 4)), rng.normal(size=(50, 3)) * 0.5]
    blocks = [slice(0, 20), slice(20, 21), slice(21, 50)]
    return np.hstack(H), LayerRows(blocks, [4, 3], lambda block: [h[block] for h in H])


@pytest.fixture
def labels(rng, layer_blocks):
    scores = layer_blocks[0] @ rng.normal(size=(7, 2)) + rng.normal(size=(50, 2))
    return np.where(scores > 0.3, 1.0, -1.0), rng.uniform(0.3, 2, size=50)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_least_squares_is_ridge_regression(layer_blocks, labels, C):
    (H, rows), (Y, weight) = layer_blocks, labels
    primal = fit_primal(rows, Y, C, weight, "least-squares")
    ridge = Ridge(alpha=1 / C, solver="cholesky").fit(H, Y, sample_weight=weight)
    assert [w.shape for w in primal.weights] == [(4, 2), (3, 2)]
    assert_allclose(np.vstack(primal.weights), ridge.coef_.T, rtol=1e-3, atol=1e-4)
    assert_allclose(primal.intercept, ridge.intercept_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_squared_hinge_leaves_no_slope(layer_blocks, labels, C):
    """At the least value of a convex function its gradient is zero."""
    (H, rows), (Y, weight) = layer_blocks, labels
    primal = fit_primal(rows, Y, C, weight, "hinge")
    w, b = np.vstack(primal.weights), primal.intercept
    gap = np.maximum(1 - Y * (H @ w + b), 0)
    pull = C * weight[:, None] * gap * Y
    scale = np.abs(w).max()
    assert_allclose(w, H.T @ pull, atol=1e-3 * scale)
    assert_allclose(pull.sum(axis=0), 0, atol=1e-3 * scale)
    assert (gap == 0).any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", ["domains", False])
def test_many_labelled_rows_are_solved_in_the_primal(counts, rng, monkeypatch, form, center):
    y = np.where(counts[:, 0] + counts[:, 1] + rng.normal(size=60) > 2, "good", "bad")
    target, C = counts[:25] * 2, 0.3
    options = {"dtype": "float64", "center": center, "random_state": 0, "class_weight": "balanced"}
    calls = []

    def spy(*args, **options):
        calls.append(1)
        return fit_primal(*args, **options)

    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 45)
    monkeypatch.setattr("undrift.classifier.weights.fit_primal", spy)
    in_the_primal = MSDAClassifier(2, 0.5, C, **options).fit(form(counts), y, form(target))
    assert calls == [1, 1]  # held-out scores, then the classifier
    # C is relative to the mean square norm, here of the 45 rows drawn
    hidden = [h for _, h in algorithm_2(np.vstack([counts, target]), 0.5, 2)]
    H = np.hstack([counts, *(h[:60] for h in hidden)])
    norms = ((H - H.mean(axis=0) * bool(center)) ** 2).sum(axis=1)
    drawn = np.random.RandomState(0).choice(60, 45, replace=False)
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 60)
    same = C * norms.mean() / norms[drawn].mean()
    in_the_dual = MSDAClassifier(2, 0.5, same, **options).fit(form(counts), y, form(target))
    assert calls == [1, 1]
    scores = [model.decision_function(form(target)) for model in (in_the_primal, in_the_dual)]
    assert_allclose(*scores, rtol=1e-3, atol=1e-3)
