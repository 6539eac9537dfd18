"""`MSDAClassifier` against explicit features, and as an estimator of scikit-learn."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, logsumexp
from sklearn import config_context
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from tests.helpers.exact import ExactClassifier, FewAnchors
from tests.helpers.explicit import solve, to_signs
from tests.helpers.oracles import algorithm_2, section_4
from tests.helpers.watch import watch_layers
from undrift import MSDAClassifier, load_model, save_model

# layers are learnt from all rows alike, and held-out rows are drawn row by row
UNWEIGHTED = {
    f"check_sample_weight_equivalence_on_{form}_data": "layers see rows without a label too"
    for form in ("dense", "sparse")
}
CONFIGURATIONS = [
    MSDAClassifier(random_state=0),
    MSDAClassifier(2, [0.3, 0.6], [0.3, 3.0], random_state=0),
    MSDAClassifier(1, 0.5, center=False, random_state=0),
    MSDAClassifier(2, 0.5, n_pivots=1, random_state=0),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:after the first layer:undrift.UndriftWarning")  # means of 100
@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=lambda estimator: UNWEIGHTED)
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


PAIR = np.repeat([0, 1], [80, 50])  # domains of source and target


def list_features(X, Z, y, noise, depth, *, is_centred=True):
    """Layers side by side, each less the centre of its domain, at a mean square norm of 1.

    A source is centred on the mean of its class means, a target on its mean, or where the source is.
    """
    both, pieces = np.vstack([X, Z]), []
    for H in [both, *hidden(both, noise, depth)]:
        means = np.array([H[: len(X)].mean(axis=0), H[len(X) :].mean(axis=0)])
        size = np.mean(((H - np.repeat(means, [len(X), len(Z)], axis=0)) ** 2).sum(axis=1))
        midpoint = np.mean([H[: len(X)][y == label].mean(axis=0) for label in np.unique(y)], axis=0)
        centres = np.array([midpoint, means[1] if is_centred else midpoint])
        pieces.append((H - np.repeat(centres, [len(X), len(Z)], axis=0)) / np.sqrt(size))
    return np.hstack(pieces)


def explicit_scores(F, y, C, weight=None):
    """Scores by least squares on features, all classes alike; C is relative to their mean square norm."""
    labels, n = np.unique(y), len(y)
    codes = np.searchsorted(labels, y)
    weight = np.ones(n) if weight is None else weight
    balanced = weight * (weight.sum() / (len(labels) * np.bincount(codes, weight)))[codes]
    size = np.mean((F[:n] ** 2).sum(axis=1))
    w, b = solve(F[:n], to_signs(codes, len(labels)), C / size, balanced)
    return F[n:] @ w + b


def as_log_odds(model, scores):
    """Turn scores of the only reading into what `decision_function` gives."""
    (reading,) = model._last.verdict.readings
    z = (scores + reading.borders[0]) / reading.temperature
    return z[:, 0] if z.shape[1] == 1 else z - logsumexp(z, axis=1, keepdims=True)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("center", ["domains", False])
def test_scores_are_those_of_a_classifier_on_the_built_concatenation(shifted, form, center):
    X, y, Z, _ = shifted
    model = ExactClassifier(3, 0.6, 0.7, center=center, self_training=False).fit(form(X), y, form(Z))
    F = list_features(X, Z, y, 0.6, 3, is_centred=center == "domains")
    expected = as_log_odds(model, explicit_scores(F, y, 0.7))
    scores = model.decision_function(form(Z))
    assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)  # weights are kept in float32
    assert_array_equal(model.predict(form(Z)), np.where(scores > 0, 1, -1))
    assert_allclose(model.predict_proba(form(Z))[:, 1], expit(expected), atol=1e-5)


def test_weights_of_rows_count_and_rows_of_weight_zero_serve_the_layers_alone(shifted, rng):
    X, y, Z, _ = shifted
    weight = rng.integers(0, 3, 80).astype(float)
    model = ExactClassifier(2, 0.6, 0.7, center="domains", self_training=False)
    model.fit(X, y, Z, sample_weight=weight)
    order, n = np.argsort(weight == 0, kind="stable"), int((weight > 0).sum())
    X, y, weight = X[order], y[order], weight[order]
    both, pieces = np.vstack([X, Z]), []
    for H in [both, *hidden(both, 0.6, 2)]:
        means = np.array([H[:80].mean(axis=0), H[80:].mean(axis=0)])
        size = np.mean(((H - means[PAIR]) ** 2).sum(axis=1))
        midpoint = np.mean([H[:n][y[:n] == label].mean(axis=0) for label in (-1, 1)], axis=0)
        pieces.append((H - np.array([midpoint, means[1]])[PAIR]) / np.sqrt(size))
    F = np.hstack(pieces)
    scores = explicit_scores(np.vstack([F[:n], F[80:]]), y[:n], 0.7, weight[:n])
    assert_allclose(model.decision_function(Z), as_log_odds(model, scores), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"noise": [0.3, 0.6], "center": "domains"}], ids=["votes", "grid"])
def test_rows_of_weight_zero_are_rows_without_a_label(shifted, options):
    """They count neither in held-out scores, nor in cross-validation, nor for class shares."""
    X, y, Z, _ = shifted
    known = np.where(np.arange(80) % 4 == 0, None, y)
    wrong, weight = np.where(known == None, -y, y), (known != None).astype(float)  # noqa: E711
    weighted = ExactClassifier(2, random_state=0, **options).fit(X, wrong, Z, sample_weight=weight)
    without = ExactClassifier(2, random_state=0, **options).fit(X, known, Z)
    assert_array_equal(weighted.decision_function(Z), without.decision_function(Z))
    assert weighted.targets_ == without.targets_
    assert weighted.selection_results_ == without.selection_results_ or not options


def test_pivots(shifted):
    X, y, Z, _ = shifted
    options = {"n_pivots": 4, "center": False, "self_training": False, "random_state": 5}
    model = ExactClassifier(1, 0.5, **options).fit(X, y, Z)
    stack, rows = model.representation_, np.vstack([X, Z])
    W = section_4(rows, 0.5, stack.pivots_, stack.parts_)
    h1, pieces = np.tanh(rows @ W[:-1] + W[-1]), []
    assert sorted(np.concatenate(stack.parts_)) == list(range(9))
    for H in (rows, h1):
        means = np.array([H[:80].mean(axis=0), H[80:].mean(axis=0)])
        size = np.mean(((H - means[PAIR]) ** 2).sum(axis=1))
        midpoint = np.mean([H[:80][y == label].mean(axis=0) for label in (-1, 1)], axis=0)
        pieces.append((H - midpoint) / np.sqrt(size))
    expected = as_log_odds(model, explicit_scores(np.hstack(pieces), y, 1.0))
    assert_allclose(model.decision_function(Z), expected, rtol=1e-5, atol=1e-5)
    # without centring domains share an intercept
    assert_allclose(model.decision_function(Z, target="source"), expected, rtol=1e-5, atol=1e-5)


def test_float32_by_default(shifted):
    X, y, Z, _ = shifted
    single, double = (kind(2, random_state=0).fit(X, y, Z) for kind in (MSDAClassifier, ExactClassifier))
    assert single.representation_.layers_[0].coef.dtype == np.float32
    assert double.representation_.layers_[0].coef.dtype == np.float64
    assert single.predict_proba(Z).dtype == single.decision_function(Z).dtype == np.float32
    assert_allclose(single.predict_proba(Z), double.predict_proba(Z), atol=5e-3)


def test_labels_may_be_strings_and_many(shifted, rng):
    X, _, Z, _ = shifted
    y = np.array(["red", "green", "blue"])[rng.integers(3, size=80)]
    y[X[:, 0] > 1] = "red"
    model = ExactClassifier(2, 0.5, 0.3, center="domains", self_training=False).fit(X, y, Z)
    assert_array_equal(model.classes_, ["blue", "green", "red"])
    scores = model.decision_function(Z)
    assert scores.shape == (50, 3)
    assert_array_equal(model.predict(Z), model.classes_[scores.argmax(axis=1)])
    expected = explicit_scores(list_features(X, Z, y, 0.5, 2), y, 0.3)
    assert_allclose(scores, as_log_odds(model, expected), rtol=1e-5, atol=1e-5)


def test_stacked_and_plain_form_agree(shifted):
    X, y, Z, truth = shifted
    plain = ExactClassifier(2, random_state=0).fit(X, y, {"a": Z[:20], "b": Z[20:]})
    order = np.concatenate([np.arange(80), np.random.default_rng(0).permutation(np.arange(80, 130))])
    domain = np.repeat([0, -1, -2], [80, 20, 30])[order]
    stacked = ExactClassifier(2, random_state=0)
    stacked.fit(np.vstack([X, Z])[order], np.concatenate([y, truth])[order], sample_domain=domain)
    assert stacked.domains_ == [0, -1, -2]
    assert plain.domains_ == ["source", "a", "b"]
    for number, name in ((-1, "a"), (-2, "b"), (0, "source")):
        both = stacked.decision_function(Z, target=number), plain.decision_function(Z, target=name)
        assert_allclose(*both, rtol=1e-4, atol=1e-5)
    numbers = np.resize([0, -1, -2], 50)
    by_row = stacked.decision_function(Z, sample_domain=numbers)
    for number in (0, -1, -2):
        expected = stacked.decision_function(Z[numbers == number], target=number)
        assert_allclose(by_row[numbers == number], expected, rtol=1e-9)
    for options, message in (
        ({"sample_domain": -7}, r"sample_domain holds \[-7\]"),
        ({"target": -1, "sample_domain": numbers}, "either target or sample_domain"),
        ({}, "2 targets; name one of them: target=-1, -2"),
        ({"target": "c"}, "target='c' is not among them"),
    ):
        with pytest.raises(ValueError, match=message):
            stacked.predict(Z, **options)


def test_rows_are_predicted_one_by_one(shifted, set_limits):
    X, y, Z, _ = shifted
    model = ExactClassifier(2).fit(X, y, Z)
    whole = model.decision_function(Z)
    assert_allclose([model.decision_function(Z[[i]])[0] for i in range(5)], whole[:5], rtol=1e-9)
    set_limits(BLOCK_ENTRIES=9 * 8)
    model.representation_.layers_, sizes = watch_layers(model.representation_.layers_)
    assert_allclose(model.decision_function(Z), whole, rtol=1e-9)
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
    assert loaded.readings_ == model.readings_
    assert loaded.best_params_ == model.best_params_
    assert loaded.get_params() == model.get_params()
    assert_array_equal(next(loaded.representation_.hidden(Z)), next(model.representation_.hidden(Z)))


def test_the_temperature_has_the_least_log_loss_of_held_out_scores(shifted):
    X, y, Z, _ = shifted
    X = X + np.linspace(0, 0.01, 80)[:, None]  # all rows differ, so that folds are drawn of single rows
    model = ExactClassifier(2, 0.5, 3.0, center="domains", self_training=False, random_state=3).fit(X, y, Z)
    F, scores = list_features(X, Z, y, 0.5, 2)[:80], np.empty(80)
    codes, size = (y == 1).astype(int), np.mean((F**2).sum(axis=1))
    balanced = 80 / (2 * np.bincount(codes))[codes]
    seed = np.random.RandomState(3).randint(2**31)
    folds = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(seed))
    for train, test in folds.split(F, y):
        w, b = solve(F[train], to_signs(codes[train], 2), 3.0 / size, balanced[train])
        scores[test] = (F[test] @ w + b)[:, 0]
    evidence = model._last.evidence
    assert_allclose(evidence.source.scores[:, 0], scores, rtol=1e-6, atol=1e-8)

    def loss(temperature):
        """With the offset that is best for this temperature."""
        return minimize_scalar(
            lambda b: log_loss(y, expit(scores / temperature + b), sample_weight=balanced)
        ).fun

    T = evidence.temperature
    assert loss(T) < min(loss(0.98 * T), loss(1.02 * T))
    assert loss(T) < loss(2.0) - 1e-3
    assert model._last.verdict.readings[0].temperature == pytest.approx(T)


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


@pytest.mark.parametrize("place", ["cpu", "torch:cpu"])
@pytest.mark.parametrize("C", [100.0, 3e4])
def test_a_large_C_is_fitted_in_the_precision_that_it_needs(shifted, C, place):
    """Posterior covariances of float32 would not be positive definite."""
    if place != "cpu":
        pytest.importorskip("torch")
    X, y, Z, _ = shifted
    found, exact = (
        each(2, C=C, random_state=0, device=place).fit(X, y, Z) for each in (MSDAClassifier, ExactClassifier)
    )
    assert_allclose(found.predict_proba(Z), exact.predict_proba(Z), atol=0.02)
    with pytest.raises(ValueError, match=r"^C=1e\+12 is too large for inner products of this size; lower C$"):
        MSDAClassifier(2, C=1e12, device=place).fit(X, y, Z)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"center": "no"}, "center='no' is not known; choose one of 'classes', 'domains', False"),
        ({"center": True}, "center=True is not known"),
        ({"border": "x"}, "border='x' is not known; choose one of 'error', 'balanced'"),
        ({"self_training": 3}, "self_training must be True or False, got 3"),
        ({"target_shares": [0.5, 0.5]}, "target_shares must be a dict"),
        ({"target_shares": "same"}, "target_shares='same' is not known; pass 'source', or a dict"),
        ({"target_shares": "source", "center": False}, 'target_shares needs center="classes", but'),
        ({"ridge": -1}, "ridge=-1 must be at least 0"),
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
    assert_allclose(P.sum(axis=1), 1, rtol=1e-6)  # in float32


def test_classes_count_alike_by_weight(shifted):
    X, y, Z, _ = shifted
    weight = np.where(np.arange(len(X)) % 3, 1.0, 4.0)
    first = ExactClassifier(1, center="domains", random_state=0).fit(X, y, Z, sample_weight=weight)
    again = ExactClassifier(1, center="domains", random_state=0).fit(
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


def test_signatures_are_explicit(shifted):
    X, y, Z, _ = shifted
    assert has_fit_parameter(MSDAClassifier(), "sample_weight")
    model = MSDAClassifier(1, random_state=0).fit(X, y, Z)
    for method, given in (("fit", (X, y)), ("predict", (Z,)), ("predict_proba", (Z,)), ("update", (Z, None))):
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weigth'"):
            getattr(model, method)(*given, sample_weigth=None)
        kinds = {p.kind for p in inspect.signature(getattr(model, method)).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        MSDAClassifier(n_layer=1)
    assert model.score(Z, Z[:, 0] > 0, target="target") == model.score(Z, Z[:, 0] > 0)
    boosted = AdaBoostClassifier(MSDAClassifier(1, random_state=0), n_estimators=2).fit(X, y)
    first, second = (machine.predict_proba(X) for machine in boosted.estimators_)
    assert np.abs(first - second).max() > 0.01  # the second is fitted with other weights


def test_targets_are_described_by_name(shifted):
    X, y, Z, _ = shifted
    model = MSDAClassifier(1, random_state=0).fit(X, y, {"kitchen": Z, "garden": Z[:25]})
    assert list(model.targets_) == list(model.readings_) == ["kitchen", "garden"]
    for i, known in enumerate(model.targets_.values()):
        assert known["shares"] == model.target_shares_[i]
        assert known["shares_interval"] == model.target_shares_interval_[i]
        assert known["expected_error"] == model.expected_error_[i]
        assert known["expected_error"]["known"] is True
    assert "25 rows" in model.targets_["garden"]["warnings"][0]
    assert model.targets_["garden"]["codes"][0] == "few-rows"


@pytest.mark.parametrize("center", ["classes", "domains", False])
def test_scores_of_target_rows_are_those_of_prediction(shifted, center):
    X, y, Z = shifted[:3]
    targets = {"first": Z[: len(Z) // 3], "second": Z[len(Z) // 3 :]}
    model = MSDAClassifier(2, 0.5, center=center, random_state=0).fit(X, y, targets, keeps_state=False)
    for (name, rows), scores in zip(targets.items(), model.target_scores_, strict=True):
        expected = model.decision_function(rows, target=name)
        assert_allclose(scores, expected, rtol=1e-3, atol=2e-3)


def test_scores_of_target_rows_are_of_this_classifier_or_none(shifted, tmp_path):
    X, y, Z = shifted[:3]
    model = MSDAClassifier(2, 0.5, random_state=0).fit(X, y, Z)
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").target_scores_ == [None]
    model.update(Z[:2], y[:2])
    assert_allclose(model.target_scores_[0], model.decision_function(Z), rtol=1e-3, atol=2e-3)
    small = FewAnchors(2, 0.5, random_state=0).fit(X, y, Z)
    assert small.target_scores_ == [None]


def test_without_memory_labels_are_not_learnt(shifted):
    X, y, Z, truth = shifted
    small = MSDAClassifier(1, random_state=0).fit(X, y, Z, keeps_state=False)
    whole = MSDAClassifier(1, random_state=0).fit(X, y, Z)
    assert_array_equal(small.predict_proba(Z), whole.predict_proba(Z))
    assert small.memory_ is None
    with pytest.raises(ValueError, match="no memory of its rows"):
        small.update(Z, truth)


def test_the_balanced_border_weighs_probabilities_by_the_shares(shifted):
    """Probabilities stay as they are; the prediction has the largest one over its share."""
    X, y, Z, _ = shifted
    shares = {-1: 0.9, 1: 0.1}
    by_error, balanced = (
        ExactClassifier(2, target_shares=shares, border=border, random_state=0).fit(X, y, Z)
        for border in ("error", "balanced")
    )
    p = balanced.predict_proba(Z)
    assert_allclose(p, by_error.predict_proba(Z))
    estimated = np.array(list(balanced.target_shares_[0].values()))
    predicted = balanced.predict(Z)
    assert_array_equal(predicted, balanced.classes_[(p / estimated).argmax(axis=1)])
    assert np.mean(predicted != by_error.predict(Z)) > 0.05
    for model in (by_error, balanced):
        scores = model.decision_function(Z)
        assert_array_equal(model.predict(Z), np.where(scores > 0, 1, -1))
        assert_allclose(model.scores_to_proba(scores), p, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_explanations_are_of_the_mean_of_the_readings_log_odds(shifted, n_classes):
    X, y, Z, _ = shifted
    y = y if n_classes == 2 else np.where(X[:, 0] > X[:, 1], 2, y)
    model = ExactClassifier(2, 0.5, random_state=0).fit(X, y, Z)
    rows = [Z, *model.representation_.hidden(Z)]
    found = sum(H @ w for H, w in zip(rows, model.coef_, strict=True)) + model.intercept_[1]
    p, votes = model.find_readings(Z), model.model_.votes[1]
    if n_classes == 2:
        expected = sum(vote * logit(each[:, 1:]) for vote, each in zip(votes, p, strict=True))
    else:  # log odds of several classes are log probabilities but for a constant of the row
        expected = sum(vote * np.log(each) for vote, each in zip(votes, p, strict=True))
        found, expected = (each - each.mean(axis=1, keepdims=True) for each in (found, expected))
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
