"""`MSDAClassifier` against explicit features, and as an estimator of scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn import config_context
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.helpers.exact import ExactClassifier
from tests.helpers.oracles import algorithm_2, section_4
from undrift import MSDAClassifier, load_model, save_model
from undrift.core import Layer

CONFIGURATIONS = [
    MSDAClassifier(random_state=0),
    MSDAClassifier(2, [0.3, 0.6], [0.3, 3.0], random_state=0),
    MSDAClassifier(1, 0.5, center=False, random_state=0),
    MSDAClassifier(2, 0.5, n_pivots=1, random_state=0),
]


@pytest.mark.filterwarnings("ignore:after the first layer:undrift.UndriftWarning")  # means of 100
@parametrize_with_checks(CONFIGURATIONS)
def test_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.fixture
def shifted(rng):
    """Source rows, labels of -1 and 1, target rows with another mix of features, and their labels."""
    words = rng.gamma(0.4, size=(3, 9))
    topics = rng.gamma(0.5, size=(130, 3))
    X = rng.poisson(topics @ words + 0.1).astype(float)
    y = np.where(topics[:, 0] > topics[:, 1], 1, -1)
    return X[:80], y[:80], X[80:] + (rng.uniform(size=(50, 9)) < 0.2), y[80:]


def hidden(X, noise, depth):
    """h^1, ..., h^l of all rows, written out."""
    return [h for _, h in algorithm_2(X, noise, depth)]


def join(layers, domain, *, center):
    """Layers side by side, each less the mean of its domain, of mean square norm 1."""
    pieces = []
    for H in layers:
        if center:
            H = H - np.array([H[domain == k].mean(axis=0) for k in range(domain.max() + 1)])[domain]
        pieces.append(H / np.sqrt((H**2).sum(axis=1).mean()))
    return np.hstack(pieces)


def ridge_scores(H, y, T, C, weight=None):
    """Least squares on explicit features; C is relative to their mean square norm."""
    alpha = np.mean((H**2).sum(axis=1)) / C
    return RidgeClassifier(alpha, solver="cholesky").fit(H, y, sample_weight=weight).decision_function(T)


PAIR = np.repeat([0, 1], [80, 50])  # domains of source and target


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_scores_are_those_of_a_classifier_on_the_built_concatenation(shifted, rng, form, is_weighted):
    """Rows of weight 0 serve the layers alone; 2 is as good as twice the row."""
    X, y, Z, _ = shifted
    weight = rng.integers(0, 3, 80).astype(float) if is_weighted else np.ones(80)
    model = ExactClassifier(3, 0.6, 0.7, center="domains", self_training=False)
    model.fit(form(X), y, form(Z), sample_weight=weight)
    scores = model.decision_function(form(Z))
    H = join([np.vstack([X, Z]), *hidden(np.vstack([X, Z]), 0.6, 3)], PAIR, center=True)
    counted = np.flatnonzero(weight)
    expected = ridge_scores(H[counted], y[counted], H[80:], 0.7, weight[counted])
    assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)
    assert_array_equal(model.predict(form(Z)), np.where(scores > 0, 1, -1))


@pytest.mark.parametrize("options", [{}, {"noise": [0.3, 0.6], "center": "domains"}], ids=["aligned", "grid"])
def test_rows_of_weight_zero_are_rows_without_a_label(shifted, options):
    """They count neither in held-out scores, nor in cross-validation, nor for class shares."""
    X, y, Z, _ = shifted
    known = np.where(np.arange(80) % 4 == 0, None, y)
    wrong, weight = np.where(known == None, -y, y), (known != None).astype(float)  # noqa: E711
    weighted = ExactClassifier(2, random_state=0, **options).fit(X, wrong, Z, sample_weight=weight)
    without = ExactClassifier(2, random_state=0, **options).fit(X, known, Z)
    assert_array_equal(weighted.decision_function(Z), without.decision_function(Z))
    assert weighted.temperature_ == without.temperature_
    assert weighted.target_shares_ == without.target_shares_
    assert weighted.selection_results_ == without.selection_results_ or not options


def test_pivots(shifted):
    X, y, Z, _ = shifted
    options = {"n_pivots": 4, "center": False, "self_training": False, "random_state": 5}
    model = ExactClassifier(2, 0.5, **options).fit(X, y, Z)
    stack, rows = model.representation_, np.vstack([X, Z])
    W = section_4(rows, 0.5, stack.pivots_, stack.parts_)
    h1 = np.tanh(rows @ W[:-1] + W[-1])
    H = join([rows, h1, *hidden(h1, 0.5, 1)], PAIR, center=False)
    assert sorted(np.concatenate(stack.parts_)) == list(range(9))
    assert_allclose(model.decision_function(Z), ridge_scores(H[:80], y, H[80:], 1.0), rtol=1e-8, atol=1e-8)
    # without centring domains share an intercept
    assert_array_equal(model.decision_function(Z, target="source"), model.decision_function(Z))


def test_float32_by_default(shifted):
    X, y, Z, _ = shifted
    single, double = (kind(2, random_state=0).fit(X, y, Z) for kind in (MSDAClassifier, ExactClassifier))
    assert {w.dtype for w in single.coef_} == {np.dtype("float32")}
    assert single.representation_.layers_[0].coef.dtype == np.float32
    expected = double.decision_function(Z)
    assert_allclose(single.decision_function(Z), expected, atol=2e-3 * np.abs(expected).max())


def test_labels_may_be_strings_and_many(shifted, rng):
    X, _, Z, _ = shifted
    y = np.array(["red", "green", "blue"])[rng.integers(3, size=80)]
    y[X[:, 0] > 1] = "red"
    model = ExactClassifier(2, 0.5, 0.3, center="domains", self_training=False).fit(X, y, Z)
    assert_array_equal(model.classes_, ["blue", "green", "red"])
    scores = model.decision_function(Z)
    assert scores.shape == (50, 3)
    assert_array_equal(model.predict(Z), model.classes_[scores.argmax(axis=1)])
    H = join([np.vstack([X, Z]), *hidden(np.vstack([X, Z]), 0.5, 2)], PAIR, center=True)
    assert_allclose(scores, ridge_scores(H[:80], y, H[80:], 0.3), rtol=1e-8, atol=1e-8)


def test_stacked_and_plain_form_agree(shifted):
    X, y, Z, truth = shifted
    plain = ExactClassifier(2, center="domains").fit(X, y, {"a": Z[:20], "b": Z[20:]})
    order = np.random.default_rng(0).permutation(130)
    domain = np.repeat([0, -1, -2], [80, 20, 30])[order]
    stacked = ExactClassifier(2, center="domains")
    stacked.fit(np.vstack([X, Z])[order], np.concatenate([y, truth])[order], sample_domain=domain)
    assert stacked.domains_ == [0, -1, -2]
    assert plain.domains_ == ["source", "a", "b"]
    assert plain.domain_sizes_ == stacked.domain_sizes_ == [80, 20, 30]
    for number, name in ((-1, "a"), (-2, "b"), (0, "source")):
        both = stacked.decision_function(Z, target=number), plain.decision_function(Z, target=name)
        assert_allclose(*both, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "rows"), [("source", slice(80)), ("a", slice(80, 100)), ("b", slice(100, 130))]
)
def test_the_mean_of_the_domain_is_taken_out(shifted, name, rows):
    """Known from `fit`: a score does not depend on its neighbours."""
    X, y, Z, _ = shifted
    model = ExactClassifier(2, 0.5, center="domains").fit(X, y, {"a": Z[:20], "b": Z[20:]})
    both = np.vstack([X, Z])
    slopes = sum(h @ w for h, w in zip([both, *hidden(both, 0.5, 2)], model.coef_, strict=True))[:, 0]
    found = model.decision_function(both[rows], target=name)
    centred = model.intercept_[0, 0] + slopes[:80].mean()  # of rows less the mean of their domain
    assert_allclose(found, slopes[rows] - slopes[rows].mean() + centred, rtol=1e-8, atol=1e-10)
    one_by_one = [model.decision_function(both[[i]], target=name)[0] for i in range(130)[rows][:5]]
    assert_allclose(one_by_one, found[:5], rtol=1e-9)


def test_prediction_in_blocks(shifted, spy, set_limits):
    X, y, Z, _ = shifted
    model = ExactClassifier(2).fit(X, y, Z)
    whole = model.decision_function(Z)
    set_limits(BLOCK_ENTRIES=9 * 8)
    calls = spy(Layer, "__call__")
    assert_allclose(model.decision_function(Z), whole, rtol=1e-9)
    sizes = [rows.shape[0] for _, rows, *_ in calls]
    assert max(sizes) <= 8
    assert sum(sizes) == 2 * 50


@pytest.mark.parametrize("labels", [[-1, 1], ["no", "yes"], [0, 1, 2]])
def test_saved_and_loaded(shifted, tmp_path, labels):
    X, _, Z, _ = shifted
    y = np.resize(labels, 80)
    model = MSDAClassifier(2, 0.5, n_pivots=3, random_state=0).fit(X, y, {"a": Z[:20], "b": Z[20:]})
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert_array_equal(loaded.predict_proba(Z, target="b"), model.predict_proba(Z, target="b"))
    assert_array_equal(loaded.predict(Z, target="a"), model.predict(Z, target="a"))
    assert loaded.predict(Z, target="a").dtype == model.predict(Z, target="a").dtype
    assert loaded.targets_ == model.targets_
    assert loaded.best_params_ == model.best_params_
    assert loaded.get_params() == model.get_params()
    assert_array_equal(next(loaded.representation_.hidden(Z)), next(model.representation_.hidden(Z)))


def test_the_temperature_has_the_least_log_loss_of_held_out_scores(shifted):
    X, y, Z, _ = shifted
    X = X + np.linspace(0, 0.01, 80)[:, None]  # all rows differ, so that folds are drawn of single rows
    options = {"center": "domains", "self_training": False, "random_state": 3}
    model = ExactClassifier(2, 0.5, 3.0, **options).fit(X, y, Z)
    H = join([np.vstack([X, Z]), *hidden(np.vstack([X, Z]), 0.5, 2)], PAIR, center=True)[:80]
    alpha, scores = np.mean((H**2).sum(axis=1)) / 3.0, np.empty(80)
    folds = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(3))
    for train, test in folds.split(H, y):
        machine = RidgeClassifier(alpha=alpha, solver="cholesky").fit(H[train], y[train])
        scores[test] = machine.decision_function(H[test])

    def loss(temperature):
        """With the offset that is best for this temperature."""
        return minimize_scalar(lambda b: log_loss(y, expit(scores / temperature + b))).fun

    T = model.temperature_
    assert loss(T) < min(loss(0.99 * T), loss(1.01 * T))
    assert loss(T) < loss(1.0) - 1e-3
    expected = expit(model.decision_function(Z) / T)
    assert_allclose(model.predict_proba(Z)[:, 1], expected, rtol=1e-10)


def test_what_explanations_need(shifted):
    X, y, Z, _ = shifted
    y = y.astype(object)
    y[:10] = None
    model = ExactClassifier(1).fit(X, y, {"a": Z[:10], "b": Z[10:]})
    assert_array_equal(model.labelled_counts_, (X[10:] > 0).sum(axis=0))
    expected = (Z[:10].mean(axis=0) + Z[10:].mean(axis=0)) / 2
    assert_allclose(model.input_mean_, expected)


def test_sample_domain_is_routed(shifted):
    X, y, Z, truth = shifted
    rows, labels = np.vstack([X, Z]), np.concatenate([y, truth])
    domain = np.repeat([0, -1], [80, 50])
    direct = MSDAClassifier(1).fit(rows, labels, sample_domain=domain)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(MSDAClassifier(1)).fit(rows, labels, sample_domain=domain)
        assert pipeline[-1].domains_ == [0, -1]
        assert_array_equal(
            pipeline.predict(Z, sample_domain=np.zeros(50, dtype=int)), direct.predict(Z, target=0)
        )


def test_singular_systems_are_named(shifted):
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = shifted
    X = pandas.DataFrame(X, columns=[f"term {j}" for j in range(9)])
    X["term 4"] = 0.0
    with pytest.raises(ValueError, match="features term 4"):
        MSDAClassifier(1, ridge=0).fit(X, y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_on_torch_as_on_numpy(shifted, form, device):
    pytest.importorskip("torch")
    X, y, Z, _ = shifted
    models = [
        ExactClassifier([1, 2], [0.4, 0.6], [0.3, 3.0], device=place, random_state=0).fit(form(X), y, form(Z))
        for place in ("cpu", device)
    ]
    assert models[0].selection_results_ == models[1].selection_results_
    assert_allclose(*(model.decision_function(form(Z)) for model in models), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"center": "no"}, "center='no' is not known; choose one of 'classes', 'domains'"),
        ({"center": True}, "center=True is not known"),
        ({"border": "x"}, "border='x' is not known; choose one of 'error', 'balanced'"),
        ({"self_training": 3}, "self_training must be True or False, got 3"),
        ({"target_shares": [0.5, 0.5]}, "target_shares must be a dict"),
        ({"ridge": -1}, "ridge=-1 must be at least 0"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(shifted, options, message):
    X, y, Z, _ = shifted
    with pytest.raises((TypeError, ValueError), match=f"^{message}[^\n]*$"):
        MSDAClassifier(1, **options).fit(X, y, Z)
    with pytest.raises(TypeError, match="fit got an unexpected keyword argument 'sample_weights'"):
        MSDAClassifier(1).fit(X, y, sample_weights=np.ones(80))


def test_a_class_of_one_row_has_probabilities_too(shifted):
    X, _, Z, _ = shifted
    y = np.where(np.arange(80) == 7, 2, np.arange(80) % 2)
    P = MSDAClassifier(1, random_state=0).fit(X, y, Z).predict_proba(Z)
    assert P.shape == (50, 3)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-6)  # in float32


def test_labelled_rows_of_several_sources_count_alike(shifted):
    """Each source is centred on its mean."""
    X, y, Z, _ = shifted
    rows, domain = np.vstack([X, Z]), np.repeat([0, 1, -1], [50, 30, 50])
    model = ExactClassifier(1, 0.5, 0.8, center="domains", self_training=False)
    model.fit(rows, np.concatenate([y, np.zeros(50, dtype=int)]), sample_domain=domain)
    H = join([rows, *hidden(rows, 0.5, 1)], domain % 3, center=True)
    assert_allclose(model.decision_function(Z), ridge_scores(H[:80], y, H[80:], 0.8), rtol=1e-8, atol=1e-9)


def test_classes_count_alike_by_weight(shifted):
    X, y, Z, _ = shifted
    weight = np.where(np.arange(len(X)) % 3, 1.0, 4.0)
    first = ExactClassifier(1, random_state=0).fit(X, y, Z, sample_weight=weight)
    again = ExactClassifier(1, random_state=0).fit(
        X, y, Z, sample_weight=weight * np.where(y == 1, 5.0, 1.0) / np.mean(np.where(y == 1, 5.0, 1.0))
    )
    slopes = [model.decision_function(Z) - model.decision_function(Z)[0] for model in (first, again)]
    assert np.corrcoef(*slopes)[0, 1] > 0.999


@pytest.mark.parametrize("name", ["pandas_series", "not_an_array", "list", "shape", "not_overwritten"])
def test_weights_pass_the_checks_of_scikit_learn(name):
    """All but the one of equivalence: layers see all rows alike, and held-out folds are drawn by row."""
    if name == "pandas_series":
        pytest.importorskip("pandas")
    check = getattr(estimator_checks, f"check_sample_weights_{name}")
    check("MSDAClassifier", MSDAClassifier(1, random_state=0))


def test_the_defaults_are_the_method_of_the_tables():
    params = MSDAClassifier().get_params()
    assert len(params) <= 12
    assert (params["n_layers"], params["noise"], params["C"]) == (5, 0.7, 1.0)
    assert (params["center"], params["self_training"], params["n_pivots"]) == ("classes", True, "auto")


def test_targets_are_described_by_name(shifted):
    X, y, Z, _ = shifted
    model = MSDAClassifier(1, random_state=0).fit(X, y, {"kitchen": Z, "garden": Z[:25]})
    assert list(model.targets_) == ["kitchen", "garden"]
    for i, known in enumerate(model.targets_.values()):
        assert known["shares"] == model.target_shares_[i]
        assert known["shares_interval"] == model.target_shares_interval_[i]
        assert known["expected_error"] == model.expected_error_[i]
        assert known["warnings"] == model.caution_["reasons"]


@pytest.mark.parametrize("center", ["classes", "domains", False])
def test_scores_of_target_rows_are_those_of_prediction(shifted, center):
    X, y, Z = shifted[:3]
    targets = {"first": Z[: len(Z) // 3], "second": Z[len(Z) // 3 :]}
    model = MSDAClassifier(2, 0.5, center=center, random_state=0).fit(X, y, targets)
    for (name, rows), scores in zip(targets.items(), model.target_scores_, strict=True):
        expected = model.decision_function(rows, target=name)
        assert_allclose(scores[:, 0], expected, rtol=1e-3, atol=1e-4)


def test_scores_of_target_rows_are_of_this_classifier_or_none(shifted, set_limits, tmp_path):
    X, y, Z = shifted[:3]
    model = MSDAClassifier(2, 0.5, random_state=0).fit(X, y, Z)
    save_model(model, tmp_path / "model")
    assert not hasattr(load_model(tmp_path / "model"), "target_scores_")
    model.update(Z[:2], y[:2])
    assert model.target_scores_ is None
    set_limits(TARGET_ROWS=len(Z) - 1, COMPARED_ROWS=len(Z) - 1)
    assert MSDAClassifier(2, 0.5, random_state=0).fit(X, y, Z).target_scores_ == [None]
