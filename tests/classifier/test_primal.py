import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier
from undrift.classifier.primal import LayerRows, Minimisation, NormalEquations, fit_primal, train_on_rows


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


@pytest.fixture
def target_blocks(rng):
    H = [rng.normal(size=(30, 4)) + 0.2, rng.normal(size=(30, 3))]
    return np.hstack(H), LayerRows([slice(0, 12), slice(12, 30)], [4, 3], lambda b: [h[b] for h in H])


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("has_tensors", [False, True])
def test_normal_equations_are_ridge_regression_on_all_rows(
    layer_blocks, labels, target_blocks, rng, C, has_tensors
):
    (H, rows), (Y, weight), (T, added) = layer_blocks, labels, target_blocks
    if has_tensors:
        torch = pytest.importorskip("torch")
        rows, added = (
            LayerRows(r.blocks, r.widths, lambda b, r=r: [torch.as_tensor(h) for h in r.read(b)])
            for r in (rows, added)
        )
    training = NormalEquations(rows, Y, C, weight)
    check_ridge(training.start, C, H, Y, weight)
    training.add_rows(added, added.score(training.start))
    for n_chosen in (30, 7, 0):
        T_weight = np.where(np.arange(30) < n_chosen, 0.4, 0.0)
        Z = np.where(rng.normal(size=(30, 2)) > 0, 1.0, -1.0)
        trained, scores = training.retrain(Z, T_weight)
        primal = training.finish(trained)
        everything = np.vstack([H, T]), np.vstack([Y, Z]), np.append(weight, T_weight)
        check_ridge(primal, C, *everything)
        assert_allclose(scores, T @ np.vstack(primal.weights) + primal.intercept, rtol=1e-9)


def check_ridge(primal, C, H, Y, weight, **tolerance):
    ridge = Ridge(alpha=1 / C, solver="cholesky").fit(H, Y, sample_weight=weight)
    tolerance = tolerance or {"rtol": 1e-8, "atol": 1e-10}
    assert_allclose(np.vstack(primal.weights), ridge.coef_.T, **tolerance)
    assert_allclose(primal.intercept, ridge.intercept_, **tolerance)


def test_minimisation_takes_target_rows_too(layer_blocks, labels, target_blocks):
    (H, rows), (Y, weight), (T, added) = layer_blocks, labels, target_blocks
    training = Minimisation(rows, Y, 0.3, weight, "least-squares")
    training.add_rows(added, added.score(training.start))
    trained, scores = training.retrain(-Y[:30], np.full(30, 0.5))
    everything = np.vstack([H, T]), np.vstack([Y, -Y[:30]]), np.append(weight, np.full(30, 0.5))
    check_ridge(training.finish(trained), 0.3, *everything, rtol=1e-3, atol=1e-4)
    assert_allclose(scores, T @ np.vstack(trained.weights) + trained.intercept, rtol=1e-9)


def test_rows_too_wide_for_sums_are_minimised(layer_blocks, labels, monkeypatch):
    (_, rows), (Y, weight) = layer_blocks, labels
    assert isinstance(train_on_rows(rows, Y, 1.0, weight, "least-squares"), NormalEquations)
    assert isinstance(train_on_rows(rows, Y, 1.0, weight, "hinge"), Minimisation)
    monkeypatch.setattr("undrift.classifier.primal.MOST_COLUMNS", 6)
    assert isinstance(train_on_rows(rows, Y, 1.0, weight, "least-squares"), Minimisation)


def test_combinations_of_rows(layer_blocks, rng):
    H, rows = layer_blocks
    coef = rng.normal(size=(50, 3))
    assert_allclose(np.vstack(rows.combine(coef)), H.T @ coef)


def test_a_C_that_rounding_defeats_is_refused(rng):
    H = np.ones((40, 3), dtype=np.float32)
    rows = LayerRows([slice(0, 40)], [3], lambda block: [H[block]])
    with pytest.raises(ValueError, match="C=1e\\+12 is too large"):
        NormalEquations(rows, np.ones((40, 1)), 1e12, np.ones(40))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", ["domains", False])
def test_many_labelled_rows_are_solved_in_the_primal(counts, rng, monkeypatch, form, center):
    y = np.where(counts[:, 0] + counts[:, 1] + rng.normal(size=60) > 2, "good", "bad")
    target, C = counts[:25] * 2, 0.3
    options = {"dtype": "float64", "center": center, "random_state": 0, "class_weight": "balanced"}
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 45)
    in_the_primal = MSDAClassifier(2, 0.5, C, **options).fit(form(counts), y, form(target))
    # C is relative to the mean square norm, here of the 45 rows drawn
    hidden = [h for _, h in algorithm_2(np.vstack([counts, target]), 0.5, 2)]
    H = np.hstack([counts, *(h[:60] for h in hidden)])
    norms = ((H - H.mean(axis=0) * bool(center)) ** 2).sum(axis=1)
    drawn = np.random.RandomState(0).choice(60, 45, replace=False)
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 60)
    same = C * norms.mean() / norms[drawn].mean()
    in_the_dual = MSDAClassifier(2, 0.5, same, **options).fit(form(counts), y, form(target))
    scores = [model.decision_function(form(target)) for model in (in_the_primal, in_the_dual)]
    assert_allclose(*scores, rtol=1e-7, atol=1e-9)
