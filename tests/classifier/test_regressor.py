import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.helpers.oracles import algorithm_2
from undrift import MSDARegressor, SelfTraining, load_model, save_model

CONFIGURATIONS = [
    MSDARegressor(2, random_state=0),
    MSDARegressor(1, [0.3, 0.6], 0.5, center=False, clip=False, random_state=0),
]


@pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")
@pytest.mark.filterwarnings("ignore:after the first layer:undrift.UndriftWarning")  # means of 100
@parametrize_with_checks(CONFIGURATIONS)
def test_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.fixture
def shifted(rng):
    """Source rows, their stars, target rows with another mix of features, and their stars."""
    words = rng.gamma(0.4, size=(3, 9))
    topics = rng.gamma(0.5, size=(150, 3))
    X = rng.poisson(topics @ words + 0.1).astype(float)
    y = np.clip(np.rint(3 + 2 * (topics[:, 0] - topics[:, 1])), 1, 5)
    return X[:90], y[:90], X[90:] + (rng.uniform(size=(60, 9)) < 0.2), y[90:]


def concatenate(X, Z, noise, depth, center=True):
    """[x, h^1, ..., h^l] of the source and of the target, each less its mean."""
    rows = np.vstack([X, Z])
    H = np.hstack([rows, *(h for _, h in algorithm_2(rows, noise, depth))])
    H, T = H[: len(X)], H[len(X) :]
    return (H - H.mean(axis=0), T - T.mean(axis=0)) if center else (H, T)


def ridge(H, C, scale):
    return Ridge(alpha=scale / C, solver="cholesky")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", [True, False])
def test_predictions_are_those_of_ridge_on_the_built_concatenation(shifted, form, center):
    X, y, Z, _ = shifted
    model = MSDARegressor(3, 0.6, 0.7, center=center, self_training=False, clip=False, dtype="float64")
    H, T = concatenate(X, Z, 0.6, 3, center)
    scale = np.mean((H**2).sum(axis=1))
    expected = ridge(H, 0.7, scale).fit(H, y).predict(T)
    assert_allclose(model.fit(form(X), y, form(Z)).predict(form(Z)), expected, rtol=1e-8)
    clipped = model.set_params(clip=True).fit(form(X), y, form(Z)).predict(form(Z))
    assert_allclose(clipped, np.clip(expected, y.min(), y.max()), rtol=1e-8)
    assert model.self_training_rounds_ == []


def test_self_training_step_by_step(shifted):
    X, y, Z, _ = shifted
    options = SelfTraining(n_rounds=2, share=0.8, weight=0.5)
    model = MSDARegressor(2, 0.5, 1.0, self_training=options, clip=False, dtype="float64", random_state=0)
    predicted = model.fit(X, y, Z).predict(Z)
    H, T = concatenate(X, Z, 0.5, 2)
    scale = np.mean((H**2).sum(axis=1))
    folds = list(model_folds(len(y)))
    held_out = cross_val_predict(ridge(H, 1.0, scale), H, y, cv=folds)
    scores = ridge(H, 1.0, scale).fit(H, y).predict(T)
    for portion in (0.4, 0.8):
        stretched = y.mean() + (scores - scores.mean()) * held_out.std() / scores.std()
        pseudo_labels = np.clip(stretched, y.min(), y.max())
        furthest = np.argsort(-np.abs(pseudo_labels - np.median(pseudo_labels)), kind="stable")
        chosen = furthest[: round(portion * len(T))]
        weight = np.concatenate([np.ones(len(y)), np.full(len(chosen), 0.5)])
        rows, labels = np.vstack([H, T[chosen]]), np.concatenate([y, pseudo_labels[chosen]])
        scores = ridge(H, 1.0, scale).fit(rows, labels, sample_weight=weight).predict(T)
    assert_allclose(predicted, scores, rtol=1e-6)
    assert [entry["n_labelled"] for entry in model.self_training_rounds_] == [0, 24, 48]
    assert all(entry["kept"] for entry in model.self_training_rounds_)


def model_folds(n):
    """The folds that a fit with random_state=0 draws to see how far held-out predictions spread."""
    from sklearn.utils import check_random_state

    from undrift.classifier import draw_folds

    return draw_folds(np.zeros(n, dtype=int), 5, check_random_state(0))


def test_folds_are_plain_ones():
    sizes = {len(test) for _, test in model_folds(90)}
    assert sizes == {len(test) for _, test in KFold(5).split(np.zeros(90))}


def test_pseudo_labels_that_say_nothing_of_the_source_are_not_learnt_from(shifted):
    X, y, Z, _ = shifted
    X, Z = X * (np.arange(9) < 6), Z * (np.arange(9) >= 6)  # no feature occurs in both
    models = [MSDARegressor(2, 0.5, 1.0, self_training=on, random_state=0) for on in (True, False)]
    with_rounds, without = (model.fit(X, y, Z) for model in models)
    assert [entry["kept"] for entry in with_rounds.self_training_rounds_] == [False]
    assert_array_equal(with_rounds.predict(Z), without.predict(Z))


def test_a_known_mean_moves_the_predictions_of_its_target(shifted):
    X, y, Z, _ = shifted
    options = {"self_training": False, "clip": False, "dtype": "float64"}
    plain = MSDARegressor(1, 0.5, 1.0, **options).fit(X, y, [Z, Z[:30]])
    known = MSDARegressor(1, 0.5, 1.0, target_mean=[4.0, 2.0], **options).fit(X, y, [Z, Z[:30]])
    assert known.predict(Z, sample_domain=-1).mean() == pytest.approx(4.0)
    assert known.predict(Z[:30], sample_domain=-2).mean() == pytest.approx(2.0)
    shift = known.predict(Z, sample_domain=-1) - plain.predict(Z, sample_domain=-1)
    assert_allclose(shift, 4.0 - y.mean(), rtol=1e-6)
    assert_allclose(known.predict(X, sample_domain=0), plain.predict(X, sample_domain=0), rtol=1e-8)
    with pytest.raises(ValueError, match="target_mean needs target rows"):
        MSDARegressor(1, target_mean=4.0).fit(X, y)


def test_rows_without_a_number_are_unlabelled(shifted):
    X, y, Z, _ = shifted
    stacked = np.vstack([X, Z])
    labels = np.concatenate([y, np.full(len(Z), np.nan)])
    form = MSDARegressor(1, random_state=0).fit(stacked, labels)
    plain = MSDARegressor(1, random_state=0).fit(X, y, Z)
    assert_allclose(form.predict(Z), plain.predict(Z), rtol=1e-6)
    stacked_form = MSDARegressor(1, random_state=0).fit(
        stacked, labels, sample_domain=np.repeat([0, -1], [len(X), len(Z)])
    )
    assert_array_equal(form.predict(Z), stacked_form.predict(Z))


def test_a_saved_regressor_predicts_the_same(shifted, tmp_path):
    X, y, Z, truth = shifted
    model = MSDARegressor(2, random_state=0).fit(X, y, Z, extra=X[:, :2], extra_target=Z[:, :2])
    save_model(model, tmp_path / "stars.safetensors")
    loaded = load_model(tmp_path / "stars.safetensors")
    assert_array_equal(loaded.predict(Z, extra=Z[:, :2]), model.predict(Z, extra=Z[:, :2]))
    assert loaded.score(Z, truth, extra=Z[:, :2]) == model.score(Z, truth, extra=Z[:, :2])
    assert loaded.range_ == (y.min(), y.max())


def test_more_labelled_rows_than_a_gram_matrix_holds_are_sampled(shifted, monkeypatch):
    X, y, Z, truth = shifted
    for module in ("regressor", "two_stage"):
        monkeypatch.setattr(f"undrift.classifier.{module}.GRAM_LIMIT", 60)
    with pytest.warns(match="of 90 labelled rows 60 drawn at random"):
        model = MSDARegressor(1, random_state=0).fit(X, y, Z)
    assert spearmanr(model.predict(Z), truth)[0] > 0.4


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, ["good"] * 90, "are numbers; got 'good'"),
        ({}, [None] * 90, "no row has a label"),
        ({"target_mean": 9}, None, "target_mean=9 is not between the labels 1 and 5"),
        ({"target_mean": [2, 3]}, None, "2 entries for 1 targets"),
        ({"target_mean": 3, "center": False}, None, "needs center=True"),
        ({"n_folds": 1}, None, "n_folds=1 must be at least 2"),
        ({"dtype": "int"}, None, "dtype"),
        ({"self_training": "yes"}, None, "self_training must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(shifted, options, y, message):
    X, stars, Z, _ = shifted
    with pytest.raises((ValueError, TypeError), match=message):
        MSDARegressor(1, **options).fit(X, stars if y is None else y, Z)


def test_rows_of_dask_are_predicted_block_by_block(shifted):
    array = pytest.importorskip("dask.array")
    X, y, Z, _ = shifted
    model = MSDARegressor(1, 0.5, 1.0, self_training=False).fit(X, y, Z)
    rows = array.from_array(Z, chunks=(7, -1))
    assert_allclose(model.predict(rows).compute(scheduler="synchronous"), model.predict(Z))
    with pytest.raises(ValueError, match="leave recenter out"):
        model.predict(rows, recenter=True)


def test_what_is_known_of_classes_alone_is_three_lists(rng):
    X = rng.normal(size=(20, 3))
    model = MSDARegressor(1).fit(X, X[:, 0], X)
    known = [model.target_shares_, model.target_shares_interval_, model.expected_error_]
    assert known == [[None]] * 3
    assert len(set(map(id, known))) == 3
