from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.helpers.oracles import algorithm_2, section_4
from undrift import MSDAClassifier, load_model, save_model
from undrift._core import blocks as blocks_module

CONFIGURATIONS = [
    MSDAClassifier(random_state=0),
    MSDAClassifier(2, [0.3, 0.6], [0.3, 3.0], random_state=0),
    MSDAClassifier(1, 0.5, classifier="hinge", center=False, random_state=0),
    MSDAClassifier(2, 0.5, dtype="float64", n_pivots=1, binarize=True, random_state=0),
    MSDAClassifier(2, 0.5, max_upper_rows=9, random_state=0),
]


@pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")
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


def ridge_scores(H, y, T, C, **options):
    """Least squares on explicit features; C is relative to their mean square norm."""
    scale = np.mean((H**2).sum(axis=1))
    return RidgeClassifier(alpha=scale / C, solver="cholesky", **options).fit(H, y).decision_function(T)


@pytest.mark.parametrize("class_weight", [None, "balanced", {-1: 3.0, 1: 0.5}])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_scores_are_those_of_a_classifier_on_the_built_concatenation(shifted, form, class_weight):
    X, y, Z, _ = shifted
    model = MSDAClassifier(3, 0.6, 0.7, center="domains", dtype="float64", class_weight=class_weight)
    scores = model.fit(form(X), y, form(Z)).decision_function(form(Z))
    H = np.hstack([np.vstack([X, Z]), *hidden(np.vstack([X, Z]), 0.6, 3)])
    H, T = H[:80] - H[:80].mean(axis=0), H[80:] - H[80:].mean(axis=0)
    assert_allclose(scores, ridge_scores(H, y, T, 0.7, class_weight=class_weight), rtol=1e-8, atol=1e-8)
    assert_array_equal(model.predict(form(Z)), np.where(scores > 0, 1, -1))


def test_hinge_is_the_paper_s_protocol(shifted):
    """Presence to the layers, counts to an SVM at the authors' C = 1 / mean |x|^2."""
    X, y, Z, _ = shifted
    model = MSDAClassifier(2, 0.5, 1.0, classifier="hinge", center=False, binarize=True, dtype="float64").fit(
        X, y, Z
    )
    rows = np.vstack([X, Z])
    H = np.hstack([rows, *hidden((rows > 0).astype(float), 0.5, 2)])
    svm = SVC(kernel="linear", C=1 / np.mean((H[:80] ** 2).sum(axis=1))).fit(H[:80], y)
    assert_allclose(model.decision_function(Z), svm.decision_function(H[80:]), rtol=1e-6, atol=1e-6)


def test_pivots(shifted):
    X, y, Z, _ = shifted
    model = MSDAClassifier(2, 0.5, 1.0, n_pivots=4, center=False, dtype="float64", random_state=5)
    model.fit(X, y, Z)
    stack, rows = model.representation_, np.vstack([X, Z])
    W = section_4(rows, 0.5, stack.pivots_, stack.parts_)
    h1 = np.tanh(rows @ W[:-1] + W[-1])
    H = np.hstack([rows, h1, *hidden(h1, 0.5, 1)])
    assert sorted(np.concatenate(stack.parts_)) == list(range(9))
    assert_allclose(model.decision_function(Z), ridge_scores(H[:80], y, H[80:], 1.0), rtol=1e-8, atol=1e-8)


def test_float32_by_default(shifted):
    X, y, Z, _ = shifted
    single, double = (
        MSDAClassifier(dtype=dtype, random_state=0).fit(X, y, Z) for dtype in ("float32", "float64")
    )
    assert {w.dtype for w in single.coef_} == {np.dtype("float32")}
    assert single.representation_.layers_[0].coef.dtype == np.float32
    expected = double.decision_function(Z)
    assert_allclose(single.decision_function(Z), expected, atol=2e-3 * np.abs(expected).max())


def test_labels_may_be_strings_and_many(shifted, rng):
    X, _, Z, _ = shifted
    y = np.array(["red", "green", "blue"])[rng.integers(3, size=80)]
    y[X[:, 0] > 1] = "red"
    model = MSDAClassifier(2, 0.5, center="domains", dtype="float64").fit(X, y, Z)
    assert_array_equal(model.classes_, ["blue", "green", "red"])
    scores = model.decision_function(Z)
    assert scores.shape == (50, 3)
    assert_array_equal(model.predict(Z), model.classes_[scores.argmax(axis=1)])
    H = np.hstack([np.vstack([X, Z]), *hidden(np.vstack([X, Z]), 0.5, 2)])
    H, T = H[:80] - H[:80].mean(axis=0), H[80:] - H[80:].mean(axis=0)
    assert_allclose(scores, ridge_scores(H, y, T, 0.3), rtol=1e-8, atol=1e-8)


def test_stacked_and_plain_form_agree(shifted):
    X, y, Z, truth = shifted
    plain = MSDAClassifier(2, center="domains", dtype="float64").fit(X, y, [Z[:20], Z[20:]])
    order = np.random.default_rng(0).permutation(130)
    domain = np.repeat([0, -1, -2], [80, 20, 30])[order]
    stacked = MSDAClassifier(2, center="domains", dtype="float64")
    stacked.fit(np.vstack([X, Z])[order], np.concatenate([y, truth])[order], sample_domain=domain)
    assert plain.domains_ == stacked.domains_ == [0, -1, -2]
    assert plain.domain_sizes_ == [80, 20, 30]
    for numbers in (-1, -2, 0, np.repeat([-1, 0], 25)):
        assert_allclose(
            stacked.decision_function(Z, sample_domain=numbers),
            plain.decision_function(Z, sample_domain=numbers),
            rtol=1e-8,
            atol=1e-10,
        )


class TestDomainCentring:
    """With center="domains": each row less the mean of its domain, known from fit."""

    @pytest.fixture
    def model(self, shifted):
        X, y, Z, _ = shifted
        return MSDAClassifier(2, 0.5, center="domains", dtype="float64").fit(X, y, [Z[:20], Z[20:]])

    @pytest.fixture
    def slopes(self, shifted, model):
        """Scores without any intercept, of all rows."""
        X, _, Z, _ = shifted
        rows = np.vstack([X, Z])
        H = [rows, *hidden(rows, 0.5, 2)]
        return sum((h - h[:80].mean(axis=0)) @ w for h, w in zip(H, model.coef_, strict=True))[:, 0]

    def test_a_score_does_not_depend_on_its_neighbours(self, shifted, model):
        Z = shifted[2]
        one_by_one = [model.decision_function(Z[[i]], sample_domain=-1)[0] for i in range(5)]
        assert_allclose(one_by_one, model.decision_function(Z, sample_domain=-1)[:5], rtol=1e-9)

    @pytest.mark.parametrize(
        ("number", "rows"), [(0, slice(80)), (-1, slice(80, 100)), (-2, slice(100, 130))]
    )
    def test_the_mean_of_the_domain_is_taken_out(self, shifted, model, slopes, number, rows):
        X, _, Z, _ = shifted
        scores = model.decision_function(np.vstack([X, Z])[rows], sample_domain=number)
        expected = slopes[rows] - slopes[rows].mean() + model.centred_intercept_
        assert_allclose(scores, expected, rtol=1e-8, atol=1e-10)

    def test_rows_are_of_the_target_by_default(self, shifted, model, slopes):
        Z = shifted[2]
        pooled = slopes[80:].mean()
        expected = slopes[80:] - pooled + model.centred_intercept_
        assert_allclose(model.decision_function(Z), expected, rtol=1e-8, atol=1e-10)

    def test_recentring_uses_the_rows_given(self, shifted, model, slopes):
        Z = shifted[2][:7]
        expected = slopes[80:87] - slopes[80:87].mean() + model.centred_intercept_
        assert_allclose(model.decision_function(Z, recenter=True), expected, rtol=1e-8, atol=1e-10)
        assert_array_equal(model.predict(Z, recenter=True), np.where(expected > 0, 1, -1))

    def test_unknown_domains_are_refused(self, shifted, model):
        Z = shifted[2]
        with pytest.raises(ValueError, match=r"holds \[-7, 3\], but fit saw only the domains \[0, -1, -2\]"):
            model.predict(Z, sample_domain=np.resize([3, -7, 0], 50))
        with pytest.raises(ValueError, match="one integer for each of the 50 rows"):
            model.predict(Z, sample_domain=[0, 1])

    def test_without_it_domains_share_an_intercept(self, shifted):
        X, y, Z, _ = shifted
        model = MSDAClassifier(1, center=False).fit(X, y, Z)
        assert_array_equal(model.decision_function(Z, sample_domain=0), model.decision_function(Z))
        with pytest.raises(ValueError, match="recenter=True needs"):
            model.predict(Z, recenter=True)


def test_prediction_in_blocks(shifted, monkeypatch):
    X, y, Z, _ = shifted
    model = MSDAClassifier(2, dtype="float64").fit(X, y, Z)
    whole = model.decision_function(Z)
    sizes, layers = [], model.representation_.layers_
    original = type(layers[0]).__call__

    def spy(self, rows, out=None):
        sizes.append(rows.shape[0])
        return original(self, rows, out)

    monkeypatch.setattr(blocks_module, "BLOCK_ENTRIES", 9 * 8)
    monkeypatch.setattr(type(layers[0]), "__call__", spy)
    assert_allclose(model.decision_function(Z), whole, rtol=1e-9)
    assert max(sizes) <= 8
    assert sum(sizes) == 2 * 50


@pytest.mark.parametrize("labels", [[-1, 1], ["no", "yes"], [0, 1, 2]])
def test_saved_and_loaded(shifted, tmp_path, labels):
    X, _, Z, _ = shifted
    y = np.resize(labels, 80)
    model = MSDAClassifier(2, 0.5, n_pivots=3, random_state=0).fit(X, y, [Z[:20], Z[20:]])
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert_array_equal(loaded.predict_proba(Z, sample_domain=-2), model.predict_proba(Z, sample_domain=-2))
    assert_array_equal(loaded.predict(Z), model.predict(Z))
    assert loaded.predict(Z).dtype == model.predict(Z).dtype
    assert loaded.best_params_ == model.best_params_
    assert loaded.get_params() == model.get_params()
    assert_array_equal(next(loaded.representation_.hidden(Z)), next(model.representation_.hidden(Z)))


def test_the_temperature_has_the_least_log_loss_of_held_out_scores(shifted):
    X, y, Z, _ = shifted
    model = MSDAClassifier(2, 0.5, 3.0, center="domains", dtype="float64", n_folds=4, random_state=3)
    model.fit(X, y, Z)
    H = np.hstack([np.vstack([X, Z]), *hidden(np.vstack([X, Z]), 0.5, 2)])[:80]
    H = H - H.mean(axis=0)
    alpha, scores = np.mean((H**2).sum(axis=1)) / 3.0, np.empty(80)
    folds = StratifiedKFold(4, shuffle=True, random_state=np.random.RandomState(3))
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


@pytest.mark.parametrize("activation", ["sigmoid", "relu", "identity"])
def test_a_loaded_model_has_its_activation(shifted, tmp_path, activation):
    X, y, Z, _ = shifted
    model = MSDAClassifier(2, 0.5, activation=activation, random_state=0).fit(X, y, Z)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    expected = model.decision_function(Z)
    assert_array_equal(loaded.decision_function(Z), expected)
    layers = loaded.representation_.layers_
    loaded.representation_.layers_ = [replace(layer, activation="tanh") for layer in layers]
    assert np.abs(loaded.decision_function(Z) - expected).max() > 1e-3  # so it matters


def test_probabilities_agree_and_are_calibrated(rng):
    n = 4000
    X = rng.normal(size=(n, 3))
    odds = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.uniform(size=n) < odds).astype(int)
    model = MSDAClassifier(1, 0.2, random_state=0).fit(X[: n // 2], y[: n // 2])
    P = model.predict_proba(X[n // 2 :])
    assert_allclose(P.sum(axis=1), 1)
    assert_array_equal(P.argmax(axis=1), model.predict(X[n // 2 :]))
    assert np.mean(np.abs(P[:, 1] - odds[n // 2 :])) < 0.05
    blurred = [np.clip(P ** (1 / t) / (P ** (1 / t)).sum(axis=1, keepdims=True), 0, 1) for t in (0.5, 2)]
    held_out = y[n // 2 :]
    assert log_loss(held_out, P) < min(log_loss(held_out, other) for other in blurred)


def test_the_representation_is_the_chosen_stack(shifted):
    X, y, Z, _ = shifted
    model = MSDAClassifier(2, 0.4, dtype="float64").fit(X, y, Z)
    for H, expected in zip(model.representation_.hidden(Z), hidden(np.vstack([X, Z]), 0.4, 2), strict=True):
        assert_allclose(H, expected[80:], rtol=1e-8, atol=1e-10)
    assert model.representation_.transform(Z).shape == (50, 27)


def test_what_explanations_need(shifted):
    X, y, Z, _ = shifted
    y = y.astype(object)
    y[:10] = None
    model = MSDAClassifier(1, binarize=True, dtype="float64").fit(X, y, [Z[:10], Z[10:]])
    assert_array_equal(model.labelled_counts_, (X[10:] > 0).sum(axis=0))
    expected = ((Z[:10] > 0).mean(axis=0) + (Z[10:] > 0).mean(axis=0)) / 2
    assert_allclose(model.input_mean_, expected)


@pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")
def test_same_seed_same_answer(shifted):
    X, y, Z, _ = shifted
    model = MSDAClassifier([1, 2], [0.4, 0.6], n_pivots=3, selection="reverse", random_state=4)
    one, two = (clone(model).fit(X, y, Z) for _ in range(2))
    assert one.selection_results_ == two.selection_results_
    assert_array_equal(one.predict_proba(Z), two.predict_proba(Z))


def test_arguments_are_left_alone(shifted):
    X, y, Z, _ = shifted
    before = X.copy(), y.copy(), Z.copy()
    for array in (X, y, Z):
        array.flags.writeable = False
    MSDAClassifier(2, dtype="float64").fit(X, y, Z).predict(Z)
    for array, old in zip((X, y, Z), before, strict=True):
        assert_array_equal(array, old)


def test_in_pipelines_and_searches(shifted):
    X, y, _, _ = shifted
    pipeline = make_pipeline(MaxAbsScaler(), MSDAClassifier(1))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.5
    search = GridSearchCV(MSDAClassifier(1), {"noise": [0.3, 0.6]}, cv=3).fit(X, y)
    assert search.best_params_["noise"] in (0.3, 0.6)


def test_sample_domain_is_routed(shifted):
    X, y, Z, truth = shifted
    rows, labels = np.vstack([X, Z]), np.concatenate([y, truth])
    domain = np.repeat([0, -1], [80, 50])
    direct = MSDAClassifier(1).fit(rows, labels, sample_domain=domain)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(MSDAClassifier(1)).fit(rows, labels, sample_domain=domain)
        assert pipeline[-1].domains_ == [0, -1]
        assert_array_equal(
            pipeline.predict(Z, sample_domain=np.zeros(50, dtype=int)),
            direct.predict(Z, sample_domain=np.zeros(50, dtype=int)),
        )


def test_callbacks_see_every_layer(shifted):
    callback = pytest.importorskip("sklearn.callback")
    X, y, Z, _ = shifted
    seen = []

    class Counter:
        def setup(self, estimator, context):
            seen.append(("total", context.max_subtasks))

        def on_fit_task_begin(self, estimator, context, **options):
            pass

        def on_fit_task_end(self, estimator, context, **options):
            seen.append((context.task_name, None))

        def teardown(self, estimator, context):
            seen.append(("over", None))

    assert callback
    model = MSDAClassifier(3, [0.4, 0.6], 0.3, random_state=0).set_callbacks(Counter())
    with pytest.warns(match="edge"):
        model.fit(X, y, Z)
    assert [name for name, _ in seen].count("layer") == 6
    assert seen[-1] == ("over", None)


def test_verbose_tells_standard_error(shifted, capsys):
    X, y, Z, _ = shifted
    MSDAClassifier(2, verbose=True).fit(X, y, Z)
    out, err = capsys.readouterr()
    assert out == ""
    assert "layer 2/2" in err


def test_singular_systems_are_named(shifted):
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = shifted
    X = pandas.DataFrame(X, columns=[f"term {j}" for j in range(9)])
    X["term 4"] = 0.0
    with pytest.raises(ValueError, match="features term 4"):
        MSDAClassifier(1, ridge=0).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_on_torch_as_on_numpy(shifted, form, device):
    pytest.importorskip("torch")
    X, y, Z, _ = shifted
    options = {"dtype": "float64", "balance_layers": True, "selection": "reverse", "random_state": 0}
    models = [
        MSDAClassifier([1, 2], [0.4, 0.6], [0.3, 3.0], device=place, **options).fit(form(X), y, form(Z))
        for place in ("cpu", device)
    ]
    assert models[0].selection_results_ == models[1].selection_results_
    assert_allclose(*(model.decision_function(form(Z)) for model in models), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"center": "no"}, "center='no' is not known; choose one of 'classes', 'domains', False"),
        (
            {"class_weight": {-1: float("nan"), 1: 1.0}},
            "class_weight of -1=nan must be at least 0",
        ),
        ({"class_weight": {-1: -2.0, 1: 1.0}}, "class_weight of -1=-2.0 must be at least 0"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(shifted, options, message):
    X, y, Z, _ = shifted
    with pytest.raises((TypeError, ValueError), match=f"^{message}[^\n]*$"):
        MSDAClassifier(1, **options).fit(X, y, Z)


def test_a_class_of_one_row_has_probabilities_too(shifted):
    X, _, Z, _ = shifted
    y = np.where(np.arange(80) == 7, 2, np.arange(80) % 2)
    P = MSDAClassifier(1, random_state=0).fit(X, y, Z).predict_proba(Z)
    assert P.shape == (50, 3)
    assert_allclose(P.sum(axis=1), 1)


def test_labelled_rows_of_several_sources_count_alike(shifted):
    """Each source is centred on its mean; the classes of each have the weights given."""
    X, y, Z, _ = shifted
    rows, domain = np.vstack([X, Z]), np.repeat([0, 1, -1], [50, 30, 50])
    weights = {-1: 3.0, 1: 0.5}
    model = MSDAClassifier(1, 0.5, 0.8, center="domains", class_weight=weights, dtype="float64")
    model.fit(rows, np.concatenate([y, np.zeros(50, dtype=int)]), sample_domain=domain)
    H = np.hstack([rows, *hidden(rows, 0.5, 1)])
    H = np.vstack([H[domain == k] - H[domain == k].mean(axis=0) for k in (0, 1, -1)])
    expected = ridge_scores(H[:80], y, H[80:], 0.8, class_weight=weights)
    assert_allclose(model.decision_function(Z), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("has_target", [False, True])
@pytest.mark.parametrize("classifier", ["least-squares", "hinge"])
def test_weights_of_rows_are_those_of_the_loss(shifted, rng, has_target, classifier):
    """Rows of weight 0 serve the layers alone, as if they had no label; 2 is as good as twice the row."""
    X, y, Z, _ = shifted
    options = {"n_layers": 1, "C": 1.0, "dtype": "float64", "random_state": 0, "classifier": classifier}
    options |= {"center": "domains" if has_target else False, "balance_layers": False}
    target = {"X_target": Z} if has_target else {}
    weight = rng.integers(0, 3, len(X)).astype(float)

    def fit(*args, **given):
        return MSDAClassifier(**options).fit(*args, **target, **given)

    weighted = fit(X, y, sample_weight=weight).decision_function(Z)
    assert_allclose(
        fit(X, y, sample_weight=np.ones(len(X))).decision_function(Z), fit(X, y).decision_function(Z)
    )
    assert np.abs(weighted - fit(X, y).decision_function(Z)).max() > 0.01
    model = fit(X, y)
    H = np.hstack([X, model.representation_.layers_[0](X)])
    T = np.hstack([Z, model.representation_.layers_[0](Z)])
    if has_target:
        H, T = H - H.mean(axis=0), T - T.mean(axis=0)
    if classifier == "least-squares":
        ridge = Ridge(alpha=np.mean((H**2).sum(axis=1)), solver="cholesky").fit(H, y, sample_weight=weight)
        assert_allclose(weighted, ridge.predict(T), rtol=1e-6)


def test_classes_count_alike_by_weight(shifted):
    X, y, Z, _ = shifted
    weight = np.where(np.arange(len(X)) % 3, 1.0, 4.0)
    first = MSDAClassifier(1, random_state=0, dtype="float64").fit(X, y, Z, sample_weight=weight)
    again = MSDAClassifier(1, random_state=0, dtype="float64").fit(
        X, y, Z, sample_weight=weight * np.where(y == 1, 5.0, 1.0) / np.mean(np.where(y == 1, 5.0, 1.0))
    )
    slopes = [model.decision_function(Z) - model.decision_function(Z)[0] for model in (first, again)]
    assert np.corrcoef(*slopes)[0, 1] > 0.999


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(7), r"sample_weight must hold one number for each of the 80 rows of X, got shape \(7,\)"),
        (np.ones((80, 1)), r"sample_weight must hold one number for each of the 80 rows of X, got shape"),
        (-np.ones(80), "sample_weight of row 0 is -1; weights are finite and at least 0"),
        (np.full(80, np.nan), "sample_weight of row 0 is nan; weights are finite and at least 0"),
        (np.zeros(80), "the weights of all labelled rows are zero"),
        ("one class", "sample_weight is 0 for every row of class 1, so it cannot be learnt: give"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(shifted, weight, message):
    weight = 1.0 * (shifted[1] != 1) if isinstance(weight, str) else weight
    with pytest.raises(ValueError, match=message):
        MSDAClassifier(1, center=False).fit(*shifted[:2], sample_weight=weight)


@pytest.mark.parametrize("name", ["pandas_series", "not_an_array", "list", "shape", "not_overwritten"])
def test_weights_pass_the_checks_of_scikit_learn(name):
    """All but the one of equivalence: layers see all rows alike, and held-out folds are drawn by row."""
    if name == "pandas_series":
        pytest.importorskip("pandas")
    check = getattr(estimator_checks, f"check_sample_weights_{name}")
    check("MSDAClassifier", MSDAClassifier(1, random_state=0))


def test_an_unknown_argument_of_fit_is_refused(shifted):
    with pytest.raises(TypeError, match="fit got an unexpected keyword argument 'sample_weights'"):
        MSDAClassifier(1).fit(*shifted[:2], sample_weights=np.ones(80))


def test_a_grid_search_with_a_target_must_say_whose_rows_it_scores(shifted):
    X, y, Z, _ = shifted
    grid = {"noise": [0.3, 0.6]}
    search = GridSearchCV(MSDAClassifier(1, random_state=0), grid, error_score="raise")
    with pytest.raises(ValueError, match="scores rows of the source, which would be taken for the target's"):
        search.fit(X, y, X_target=Z)

    def score(model, X, y):
        return model.score(X, y, sample_domain=0)

    search = search.set_params(scoring=score).fit(X, y, X_target=Z)
    assert search.best_score_ > 0.6
    assert search.best_estimator_.predict(Z).shape == (50,)
    GridSearchCV(MSDAClassifier(1, random_state=0), grid, error_score="raise").fit(X, y)
