"""What is said of a target: readings, shares, classes, doubts; and parameters that narrow the stories."""

import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from tests.helpers.exact import ExactClassifier
from undrift import MSDAClassifier, UndriftWarning
from undrift.method.targets import Coverage, list_doubts, measure_coverage, sum_rows

judge_module = import_module("undrift.method.judge")


def draw(n, shares, seed, shift=0.0, n_features=14):
    """Counts of rows of some classes; `shift` adds to words of no class."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(shares), size=n, p=shares)
    X = rng.poisson(0.5, size=(n, n_features)).astype(float)
    X[np.arange(n), y] += rng.poisson(1.2, size=n)
    X[:, -4:] += rng.poisson(shift, size=(n, 4))
    return X, y


PAIR, THREE = ((0.5, 0.5), (0.3, 0.7)), ((0.4, 0.3, 0.3), (0.2, 0.5, 0.3))


def make(**options):
    return ExactClassifier(**({"n_layers": 2, "noise": 0.5, "random_state": 0} | options))


@pytest.fixture(scope="module", params=[PAIR, THREE], ids=["pair", "three"])
def fitted(request):
    source, target = request.param
    (X, y), (Z, z) = draw(150, source, 1), draw(130, target, 2, shift=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndriftWarning)
        model = make().fit(X, y, {"a": Z, "b": Z[:60]})
    return model, {"a": Z, "b": Z[:60]}, z


def test_readings_are_described(fitted):
    model, targets, _ = fitted
    labels = model.classes_.tolist()
    for k, (name, rows) in enumerate(targets.items(), start=1):
        p, predicted = model.find_readings(rows, target=name), model.predict(rows, target=name)
        readings = model.readings_[name]
        assert [set(r) for r in readings] == [{"name", "story", "weight", "shares", "agreement"}] * len(p)
        assert sum(r["weight"] for r in readings) == pytest.approx(1)
        assert len({r["name"] for r in readings}) == len(readings)
        for reading in readings:
            i = model.model_.names.index(reading["name"])
            assert reading["weight"] == pytest.approx(model.model_.votes[k, i])
            assert reading["story"] == model.model_.sentences[i]
            assert reading["story"].endswith(".")
            assert list(reading["shares"]) == labels
            assert_allclose(list(reading["shares"].values()), p[i].mean(axis=0), atol=1e-4)
            agrees = model.classes_[p[i].argmax(axis=1)] == predicted
            assert reading["agreement"] == pytest.approx(agrees.mean(), abs=0.02)


def test_shares_error_and_classes_follow_from_probabilities(fitted):
    model, targets, _ = fitted
    for name, rows in targets.items():
        p, known = model.predict_proba(rows, target=name), model.targets_[name]
        guesses = p.argmax(axis=1)
        assert_allclose(list(known["shares"].values()), p.mean(axis=0), atol=1e-4)
        assert known["expected_error"]["error"] == pytest.approx(1 - p.max(axis=1).mean(), abs=1e-4)
        confusion = np.array(known["confusion"])
        for k, label in enumerate(model.classes_.tolist()):
            assert_allclose(
                confusion[k], [p[guesses == j, k].sum() / len(p) for j in range(len(confusion))], atol=1e-4
            )
            told = known["by_class"][label]
            assert set(told) == {"share", "precision", "recall"}
            assert told["share"] == known["shares"][label]
            assert told["precision"] == pytest.approx(p[guesses == k, k].mean(), abs=1e-3)
            assert told["recall"] == pytest.approx(p[guesses == k, k].sum() / p[:, k].sum(), abs=1e-3)
            low, high = known["shares_interval"][label]
            assert 0 <= low <= told["share"] <= high <= 1
        error = known["expected_error"]
        assert error["low"] < error["error"] < error["high"]


def test_rows_without_a_known_feature_have_the_shares_of_their_target(fitted):
    model, targets, _ = fitted
    rows, n_classes = np.zeros((2, 14)), len(model.classes_)
    rows[1, 3] = 1
    for name in (*targets, "source"):
        shares = model.source_shares_ if name == "source" else list(model.targets_[name]["shares"].values())
        p = model.fill_unknown(np.full((2, n_classes), -1.0), sp.csr_array(rows), name)
        assert_allclose(p, [shares, [-1.0] * n_classes])


def test_a_class_that_is_never_predicted_has_no_precision():
    (X, y), (Z, _) = draw(150, (0.5, 0.5), 1), draw(100, (0.5, 0.5), 2)
    known = make(target_shares={0: 1.0, 1: 0.0}).fit(X, y, Z).targets_["target"]
    assert known["by_class"][1]["precision"] is None
    assert known["by_class"][0]["recall"] == pytest.approx(1)
    assert known["expected_error"]["error"] < 0.01


# -- parameters that narrow the stories --


@pytest.mark.parametrize(("source", "target"), [PAIR, THREE])
def test_the_source_s_mix_may_be_assumed(source, target):
    (X, y), (Z, z) = draw(150, source, 1), draw(130, target, 2)
    model = make(target_shares="source").fit(X, y, Z)
    readings = model.readings_["target"]
    assert [r["name"] for r in readings] == ["given mix", "same mix"]
    assert [r["weight"] for r in readings] == [0.5, 0.5]
    assert "as in the source" in readings[0]["story"]
    assert_allclose(list(readings[0]["shares"].values()), np.bincount(y) / 150, atol=2e-3)
    same = make(target_shares="source").fit(X, y, Z[np.argsort(z)[:70]])  # whatever the target's is
    shares = same.readings_["target"][0]["shares"]
    assert_allclose(list(shares.values()), np.bincount(y) / 150, atol=2e-3)


def test_known_shares_leave_one_reading_of_them():
    (X, y), (Z, z) = draw(150, THREE[0], 1), draw(130, THREE[1], 2)
    truth = dict(enumerate((np.bincount(z) / 130).tolist()))
    model = make(target_shares=truth).fit(X, y, Z)
    (reading,) = model.readings_["target"]
    assert reading["name"] == "given mix"
    assert reading["shares"] == pytest.approx(truth, abs=2e-3)
    assert model.target_shares_[0] == pytest.approx(truth, abs=2e-3)
    assert_allclose(model.predict_proba(Z).mean(axis=0), list(truth.values()), atol=2e-3)


def test_shares_known_of_one_target_of_two():
    (X, y), (Z, _) = draw(150, PAIR[0], 1), draw(130, PAIR[1], 2)
    known = {"a": {0: 0.2, 1: 0.8}}
    model = make(target_shares=known).fit(X, y, {"a": Z[:60], "b": Z[60:]})
    heard = {name: [r for r in model.readings_[name] if r["weight"] > 0] for name in "ab"}
    assert model.target_shares_[0] == pytest.approx(known["a"], abs=2e-3)
    assert not {"unmoved", "same mix", "source only"} & {r["name"] for r in heard["a"]}
    assert {"unmoved", "same mix", "source only"} <= {r["name"] for r in heard["b"]}
    for reading in heard["a"]:
        assert reading["shares"] == pytest.approx(known["a"], abs=2e-3)


@pytest.mark.parametrize(("center", "name"), [("domains", "same mix"), (False, "unmoved")])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_center_leaves_one_story(center, name, n_classes):
    source, target = (PAIR, THREE)[n_classes - 2]
    (X, y), (Z, _) = draw(120, source, 1), draw(110, target, 2)
    model = make(n_layers=1, center=center).fit(X, y, Z)
    assert [r["name"] for r in model.readings_["target"]] == [name]


def test_without_self_training_no_row_has_a_pseudo_label():
    (X, y), (Z, _) = draw(120, PAIR[0], 1), draw(110, PAIR[1], 2)
    for is_trained in (False, True):
        model = make(n_layers=1, self_training=is_trained).fit(X, y, Z)
        coefs = [getattr(r.classifier, "coef", None) for r in model._last.verdict.readings]
        used = [coef[:110].any() for coef in coefs if coef is not None]
        assert used == [is_trained] * len(used)


def test_stories_of_few_votes_are_read_only_where_labels_may_speak_for_them():
    (X, y), (Z, z) = draw(150, PAIR[0], 1), draw(130, PAIR[1], 2)
    X[np.arange(150), y] += 3
    Z[np.arange(130), z] += 3  # classes that come apart: no story of few of a class is likely
    model = make(n_layers=1)
    least = model.make_settings().votes.least
    readings = model.fit(X, y, Z).readings_["target"]
    assert len(model._last.verdict.unlabelled) == len(readings) < 13
    assert min(r["weight"] for r in readings) >= least
    readings = model.fit(X, y, Z, y_target=np.where(np.arange(130) < 5, z, np.nan)).readings_["target"]
    verdict, names = model._last.verdict, {reading["name"] for reading in readings}
    assert len(verdict.unlabelled) == 13  # all of them, though labels leave fewer
    assert len(readings) < 13
    known = set(map(id, verdict.unlabelled))
    again = [reading.story.name for reading in verdict.readings if id(reading) not in known]
    assert sorted(again) == sorted(names - {"source only"})  # which learns nothing from labels
    assert len(again) == len(readings) - 1


# -- doubts --


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_coverage_is_counted_by_hand(form):
    X = np.array([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, -3, 3, 0]])
    labelled = sum_rows(form(np.array([[1.0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]])))
    found = measure_coverage(form(X), labelled)
    length = np.sqrt((5 + 18) / 2 / ((5 + 4) / 2))
    assert found == Coverage(3, pytest.approx(1 / 3), 0.5, pytest.approx(length))  # of four entries, two
    assert measure_coverage(form(np.zeros((2, 4))), labelled) == Coverage(2, 1.0, 0.0, 1.0)


def fit_warned(X, y, Z, **options):
    """Return the fitted classifier and its codes; every warning is in `warnings` as well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(n_layers=1, **options).fit(X, y, Z)
    texts = [str(each.message) for each in caught if issubclass(each.category, UndriftWarning)]
    (known,) = model.targets_.values()
    assert set(known["warnings"]) <= set(texts)
    assert all("\n" not in text for text in texts)
    return model, dict(zip(known["codes"], known["warnings"], strict=True))


def test_a_class_of_few_rows_is_named_and_switches_nothing_off():
    (X, y), (Z, _) = draw(150, (0.5, 0.5), 1), draw(130, (0.5, 0.5), 2)
    rare = np.where(np.arange(150) < 4, 2, y)
    X[:4, 2] += 3
    model, doubts = fit_warned(X, rare, Z)
    assert doubts["few-of-a-class"] == "few labelled rows are of 2: label 5 at least, or merge classes"
    assert len(model.readings_["target"]) == 5
    assert set(model.targets_["target"]["by_class"]) == {0, 1, 2}
    rare[4] = 2
    assert "few-of-a-class" not in fit_warned(X, rare, Z)[1]


def test_doubts_of_rows_and_vocabulary():
    (X, y), (Z, _) = draw(150, (0.5, 0.5), 1), draw(130, (0.5, 0.5), 2)

    def list_doubts(X, Z):
        return fit_warned(X, y, Z, center="domains", self_training=False)[1]

    assert "few-rows" not in list_doubts(X, Z[:100])
    assert list_doubts(X, Z[:99])["few-rows"].startswith("the target has 99 rows, too few")
    empty = Z.copy()
    empty[:40] = 0
    assert list_doubts(X, empty)["empty-rows"].startswith("31% of the target's rows are empty")
    source, target = np.hstack([X, np.zeros((150, 14))]), np.hstack([np.zeros((130, 14)), Z])
    text = list_doubts(source, target)["nothing-shared"]
    assert "share almost no vocabulary: 100%" in text
    assert "add a bridge (--bridge, or TextAdapter(bridge=True))" in text
    target[:, :2] = Z[:, :2]
    assert "add rows of an intermediate domain" in list_doubts(source, target)["far-apart"]


def test_labels_that_cannot_be_learnt_and_readings_that_differ_are_said(rng):
    (X, y), (Z, _) = draw(150, (0.5, 0.5), 1), draw(130, (0.1, 0.9), 2)
    _, doubts = fit_warned(X, rng.permutation(y), Z)
    assert "hardly be predicted even in the source" in doubts["not-learnable"]
    model, doubts = fit_warned(X, y, Z)
    heard = [r["agreement"] for r in model.readings_["target"] if r["weight"] >= 0.1]
    assert ("readings-differ" in doubts) == (min(heard) < 0.9)
    assert "readings-differ" in doubts
    assert f"up to {1 - min(heard):.0%} of its rows" in doubts["readings-differ"]
    assert "not-learnable" not in doubts


@pytest.mark.slow
def test_rows_of_another_length_are_warned_of_and_scaling_helps():
    """Images of three digits, those of the target with a quarter of the exposure."""
    images = load_digits(n_class=3)
    X, Z, y, z = train_test_split(images.data, images.target, test_size=0.5, random_state=0)
    dark, doubts = fit_warned(X, y, Z / 4)
    assert doubts["other-scale"].startswith(
        "rows of the target are 0.25 times as long as labelled ones: scale"
    )
    assert "other-scale" not in fit_warned(X, y, 0.6 * Z)[1]
    scaled, doubts = fit_warned(normalize(X), y, normalize(Z / 4))
    assert "other-scale" not in doubts
    errors = np.mean(dark.predict(Z / 4) != z), np.mean(scaled.predict(normalize(Z / 4)) != z)
    assert errors[1] < 0.02 < errors[0]


def test_a_class_that_readings_see_very_differently_is_named_in_python_too(fitted):
    model, _, _ = fitted
    evidence = model._last.evidence
    classes = model.classes_.tolist()
    shares = [dict(zip(classes, given, strict=False)) for given in ([0.02, 0.5, 0.48], [0.07, 0.47, 0.46])]
    readings = [{"weight": 0.5, "agreement": 0.95, "shares": own} for own in shares]
    sure = np.eye(len(classes))
    doubts = list_doubts(Coverage(130, 0.0, 0.0, 1.0), evidence.source, classes, readings, sure)
    if len(classes) == 2:
        assert "readings-differ" not in doubts
    else:
        assert (
            "differ on up to 5% of its rows, and on the share of 0 (2% to 7%):" in doubts["readings-differ"]
        )


# -- shapes of problems --


@pytest.mark.slow
def test_a_class_that_the_target_lacks_is_told_and_not_invented():
    (X, y), (Z, z) = draw(240, (0.4, 0.3, 0.3), 1), draw(200, (0.5, 0.5, 0.0), 2)
    X[np.arange(240), y] += 2
    Z[np.arange(200), z] += 2
    model, doubts = fit_warned(X, y, Z)
    assert doubts["class-unseen"].startswith("no row of the target is surely 2: such a class may be missing")
    (Z_all, z_all) = draw(200, (0.4, 0.3, 0.3), 2)
    Z_all[np.arange(200), z_all] += 2
    assert "class-unseen" not in fit_warned(X, y, Z_all)[1]
    assert "class-unseen" not in fit_warned(X, y, Z[:99])[1], "a target of few rows has a doubt of its own"
    assert "class-unseen" not in fit_warned(X, np.minimum(y, 1), Z[z == 0])[1], "of two classes one is left"
    assert model.target_shares_[0][2] < 0.12
    assert np.mean(model.predict(Z) == 2) < 0.08
    assert np.mean(model.predict(Z) != z) < 0.1


@pytest.mark.slow
def test_probabilities_of_three_classes_are_calibrated():
    (X, y), (Z, z) = draw(500, (0.4, 0.3, 0.3), 1), draw(900, (0.3, 0.4, 0.3), 2, shift=0.3)
    p = make().fit(X, y, Z).predict_proba(Z)
    sure, right = p.max(axis=1), p.argmax(axis=1) == z
    assert abs(sure.mean() - right.mean()) < 0.06
    order = np.argsort(sure)
    for part in np.array_split(order, 4):
        assert abs(sure[part].mean() - right[part].mean()) < 0.12


@pytest.mark.slow
def test_stars_do_not_collapse_into_the_ends():
    """Words of a star are also in reviews of the stars beside it; few reviews have the middle ones."""
    rng, shares = np.random.default_rng(0), [0.26, 0.16, 0.16, 0.15, 0.27]
    near = np.exp(-np.abs(np.arange(5)[:, None] - np.arange(5)))

    def draw_stars(n, shift):
        stars = rng.choice(5, n, p=shares)
        return np.hstack([rng.poisson(np.repeat(near[stars], 3, axis=1)), rng.poisson(shift, (n, 6))]), stars

    (X, y), (Z, z) = draw_stars(400, 0.2), draw_stars(400, 0.5)
    predicted = np.bincount(make().fit(X, y, Z).predict(Z), minlength=5) / 400
    assert np.abs(predicted - np.bincount(z, minlength=5) / 400).sum() / 2 < 0.15
    assert predicted[1:4].sum() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [20, 60, 150])
def test_many_classes_are_not_worse_than_by_an_svm(n_classes):
    shares, n = np.full(n_classes, 1 / n_classes), 15 * n_classes
    (X, y), (Z, z) = (draw(n, shares, seed, shift, 2 * n_classes) for seed, shift in ((1, 0.0), (2, 0.5)))
    X[np.arange(n), y] += 3
    Z[np.arange(n), z] += 3
    model = MSDAClassifier(2, random_state=0).fit(X, y, Z)
    svm = LinearSVC(C=0.1, random_state=0, max_iter=5000).fit(X, y)
    assert np.mean(model.predict(Z) != z) <= np.mean(svm.predict(Z) != z) + 0.01
