"""Self-training, balanced layers and the rules that look at the target, against explicit transcriptions."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier, load_model, save_model
from undrift.classifier import linear
from undrift.classifier.linear import SOLVERS, confidence, least_squares
from undrift.classifier.selection import Problem, importance_cv
from undrift.classifier.self_training import SelfTraining, retained_auc, round_trip_auc, self_train

pytestmark = pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")


@pytest.fixture
def two_domains(rng):
    """Counts in which a target row's class shows in other features than a source row's, but for one."""
    y, z = rng.integers(2, size=80), rng.integers(2, size=60)
    shared = np.concatenate([y, z])[:, None] * rng.poisson(2, size=(140, 1))
    special = rng.poisson(0.3, size=(140, 6)).astype(float)
    special[:80, :2] += 2 * y[:, None]
    special[80:, 2:4] += 2 * z[:, None]
    X = np.hstack([shared, special])
    return X[:80], y, X[80:], z


def ridge_scores(H, y, weight, C, T):
    """Ridge regression on explicit rows with an intercept that is not penalised."""
    return Ridge(alpha=1 / C, solver="cholesky").fit(H, y, sample_weight=weight).predict(T)


def transcription(H, y, T, C, n_rounds, share, weight):
    """Label the most confident target rows as predicted, train again; scores of each round."""
    f = ridge_scores(H, y, np.ones(len(y)), C, T)
    scores = [f]
    for r in range(1, n_rounds + 1):
        chosen = np.argsort(-np.abs(f), kind="stable")[: round(share * r / n_rounds * len(T))]
        rows = np.vstack([H, T[chosen]])
        labels = np.concatenate([y, np.where(f[chosen] > 0, 1, -1)])
        f = ridge_scores(rows, labels, np.r_[np.ones(len(y)), np.full(len(chosen), weight)], C, T)
        scores.append(f)
    return scores


def problem_of(y, solver="least-squares", folds=()):
    return Problem(y, 2, np.ones(len(y)), list(folds), SOLVERS[solver])


def test_rounds_are_those_of_the_transcription(two_domains):
    H, y, T, _ = two_domains
    H, T = H - H.mean(axis=0), T - T.mean(axis=0)
    K = np.vstack([H, T]) @ np.vstack([H, T]).T
    options = SelfTraining(n_rounds=3, share=0.7, weight=0.4)
    trained = self_train(K, problem_of(y), 0.2, options)
    dual, rounds = trained.model, trained.rounds
    expected = transcription(H, 2 * y - 1, T, 0.2, 3, 0.7, 0.4)
    assert all(r.kept for r in rounds)
    assert [r.n_labelled for r in rounds] == [0, 14, 28, 42]
    assert_allclose(dual.scores(K[len(H) :])[:, 0], expected[-1], rtol=1e-8, atol=1e-10)
    changed = [np.mean((f > 0) != (expected[0] > 0)) for f in expected]
    assert_allclose([r.changed for r in rounds], changed)
    assert (dual.coef[len(H) :] == 0).sum() == len(T) - 42


def round_trip_by_hand(H, y, T, C, f):
    """Area under the ROC curve on the source; predictions of both classes weigh as much in all."""
    is_upper = f > 0
    if is_upper.all() or not is_upper.any():
        return 0.5
    weight = np.where(is_upper, len(T) / (2 * is_upper.sum()), len(T) / (2 * (~is_upper).sum()))
    return roc_auc_score(y, ridge_scores(T, np.where(is_upper, 1, -1), weight, C, H))


def test_a_round_trip_trains_on_the_target_alone(two_domains):
    H, y, T, z = two_domains
    K = np.vstack([H, T]) @ np.vstack([H, T]).T
    scores = np.where(z == 1, 0.3, -2.0) * (np.arange(60) > 20)  # unbalanced: 0 is of the first class
    trip = round_trip_auc(K, problem_of(y), 0.5, scores[:, None])
    assert trip == pytest.approx(round_trip_by_hand(H, y, T, 0.5, scores))
    assert 0.5 < trip < 1
    assert round_trip_auc(K, problem_of(y), 0.5, np.ones((60, 1))) == 0.5  # one label teaches nothing


def test_a_round_trip_of_several_classes_is_the_mean_over_the_classes(rng):
    y, z = rng.integers(3, size=50), rng.integers(3, size=40)
    H, T = (rng.normal(size=(len(codes), 4)) + (codes[:, None] == np.arange(4)) for codes in (y, z))
    K, problem = np.vstack([H, T]) @ np.vstack([H, T]).T, Problem(y, 3, np.ones(50), [], least_squares)
    weight = len(z) / (3 * np.bincount(z))[z]
    areas = []
    for k in range(3):
        back = ridge_scores(T, np.where(z == k, 1, -1), weight, 0.5, H)
        areas.append(roc_auc_score(y == k, back))
    assert np.ptp(areas) > 0.01
    assert_allclose(round_trip_auc(K, problem, 0.5, np.eye(3)[z]), np.mean(areas))


def test_what_is_retained_counts_above_chance():
    assert retained_auc(0.8, 0.9) == pytest.approx(0.75)
    assert retained_auc(0.5, 0.9) == 0
    assert retained_auc(1.0, 0.5) == 0  # nothing is known to begin with


def test_nothing_is_labelled_where_the_round_trip_fails(rng, two_domains):
    """Target rows that share no feature with the source say nothing about it: training back is guessing."""
    H, y, _, _ = two_domains
    apart = np.hstack([H, np.zeros((80, 5))]), np.hstack([np.zeros((60, 7)), rng.poisson(1, size=(60, 5))])
    rows = np.vstack(apart)
    trained = self_train(rows @ rows.T, problem_of(y), 0.2, SelfTraining())
    dual, rounds = trained.model, trained.rounds
    assert len(rounds) == 1
    assert not rounds[0].kept
    assert_array_equal(dual.coef[80:], 0)
    assert np.any(dual.coef[:80] != 0)


@pytest.fixture
def misleading():
    """Unbalanced source rows, and target rows in which a direction without meaning takes over."""
    rng = np.random.default_rng(24)
    y, z = (rng.uniform(size=60) < 0.75).astype(int), (rng.uniform(size=40) < 0.5).astype(int)
    H, T = rng.normal(size=(60, 5)), rng.normal(size=(40, 5))
    H[:, 0] += 2 * y - 1
    T[:, 0] += 2 * z - 1
    T[:, 1] += 2.5 * np.sign(rng.normal(size=40))
    H[:, 1] += 0.4 * (2 * y - 1)
    return H, y, T


def test_a_round_whose_round_trip_fails_is_undone(misleading):
    """Three rounds succeed, each with the predictions of the one before; the fourth does not."""
    H, y, T = misleading
    rows, C, options = np.vstack([H, T]), 0.3, SelfTraining(n_rounds=4, share=0.9, weight=3.0)
    scores = transcription(H, 2 * y - 1, T, C, 4, 0.9, 3.0)
    trips = [round_trip_by_hand(H, y, T, C, f) for f in scores]
    train_auc = roc_auc_score(y, ridge_scores(H, 2 * y - 1, np.ones(60), C, H))
    is_kept = [trip - 0.5 >= 0.65 * (train_auc - 0.5) for trip in trips]
    assert is_kept == [True, True, True, True, False]
    assert trips[4] >= 0.65 * train_auc  # so it matters that chance is left out
    confident = np.argsort(-np.abs(scores[2]))[: round(0.9 * 3 / 4 * 40)]
    assert np.any((scores[2] > 0)[confident] != (scores[0] > 0)[confident])  # pseudo-labels that changed

    trained = self_train(rows @ rows.T, problem_of(y), C, options)
    dual, rounds = trained.model, trained.rounds
    assert [r.kept for r in rounds] == is_kept
    assert_allclose([r.round_trip for r in rounds], trips)
    assert_allclose(dual.scores(rows @ rows.T)[60:, 0], scores[3], rtol=1e-8, atol=1e-10)
    assert np.abs(scores[3] - scores[4]).max() > 0.1


def test_self_training_helps_where_the_classes_come_apart(two_domains):
    X, y, Z, z = two_domains
    options = {"n_layers": 1, "noise": 0.5, "C": 0.05, "center": "domains"}
    plain = np.mean(MSDAClassifier(**options).fit(X, y, Z).predict(Z) != z)
    trained = MSDAClassifier(**options, self_training=True).fit(X, y, Z)
    assert trained.self_training_rounds_[-1]["kept"]
    assert np.mean(trained.predict(Z) != z) < plain
    assert plain < 0.5


def test_confidence_is_the_lead_of_the_winner():
    assert_array_equal(confidence(np.array([[-2.0], [0.5]])), [2, 0.5])
    assert_array_equal(confidence(np.array([[1.0, 4.0, 3.0], [0.0, 0.0, -1.0]])), [1, 0])


def test_importance_cv_weighs_rows_by_the_odds_of_the_target(two_domains):
    H, y, T, _ = two_domains
    y = np.where(np.arange(80) % 9 == 0, 1 - y, y)  # some labels are wrong, so that some folds are
    rows = np.vstack([H, T])
    splits = [(np.r_[0:40], np.r_[40:80]), (np.r_[40:80], np.r_[0:40])]
    right = np.empty(80)
    for train, test in splits:
        right[test] = (ridge_scores(H[train], 2 * y[train] - 1, np.ones(40), 0.3, H[test]) > 0) == y[test]
    is_target, domain_scores = np.repeat([-1, 1], [80, 60]), np.empty(140)
    even, odd = np.arange(0, 140, 2), np.arange(1, 140, 2)
    for half, other in ((even, odd), (odd, even)):
        domain_scores[other] = ridge_scores(rows[half], is_target[half], np.ones(70), 0.3, rows[other])
    odds = np.exp(2 * domain_scores[:80])
    odds = np.minimum(odds, 20 * odds.mean())
    expected = np.sum(odds * right) / odds.sum()
    assert 0 < expected < 1
    assert_allclose(importance_cv(rows @ rows.T, problem_of(y, folds=splits), [0.3]), [expected], rtol=1e-8)


def test_balanced_layers_have_equal_norms(two_domains):
    """Equal to a ridge regression on layers that were each scaled to a mean square norm of 1."""
    X, y, Z, _ = two_domains
    options = {"center": "domains", "dtype": "float64"}
    balanced = MSDAClassifier(2, 0.6, 0.7, balance_layers=True, **options).fit(X, y, Z)
    layers = [np.vstack([X, Z]), *(h for _, h in algorithm_2(np.vstack([X, Z]), 0.6, 2))]
    pieces = []
    for H in layers:
        centred = np.vstack([H[:80] - H[:80].mean(axis=0), H[80:] - H[80:].mean(axis=0)])
        pieces.append(centred / np.sqrt((centred**2).sum(axis=1).mean()))
    built = np.hstack(pieces)
    C = 0.7 / (built[:80] ** 2).sum(axis=1).mean()
    expected = ridge_scores(built[:80], 2 * y - 1, np.ones(80), C, built[80:])
    assert_allclose(balanced.decision_function(Z), expected, rtol=1e-6, atol=1e-8)
    plain = MSDAClassifier(2, 0.6, 0.7, **options).fit(X, y, Z)
    assert np.abs(plain.decision_function(Z) - expected).max() > 1e-3


def test_balanced_layers_in_the_primal(two_domains, monkeypatch):
    X, y, Z, _ = two_domains
    options = {"balance_layers": True, "center": "domains", "dtype": "float64", "random_state": 0}
    dual = MSDAClassifier(2, 0.6, 0.7, **options).fit(X, y, Z)
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 79)
    primal = MSDAClassifier(2, 0.6, 0.7, **options).fit(X, y, Z)
    # scaled on 79 of the 80 rows, hence nearly equal
    spread = np.std(dual.decision_function(Z))
    assert np.abs(dual.decision_function(Z) - primal.decision_function(Z)).max() < 0.05 * spread


def test_labels_of_the_target_are_never_seen(two_domains, rng):
    X, y, Z, z = two_domains
    rows, domain = np.vstack([X, Z]), np.repeat([0, -1], [80, 60])
    options = {
        "noise": [0.4, 0.7],
        "self_training": True,
        "balance_layers": True,
        "selection": "reverse",
        "random_state": 0,
    }
    scores = [
        MSDAClassifier(2, C=1.0, **options)
        .fit(rows, np.concatenate([y, labels]), sample_domain=domain)
        .decision_function(Z)
        for labels in (z, 1 - z, np.full(60, 7))
    ]
    assert_array_equal(scores[0], scores[1])
    assert_array_equal(scores[0], scores[2])


def test_several_classes(rng):
    y = rng.integers(3, size=90)
    X = rng.poisson(0.2 + 2.0 * (y[:, None] == np.arange(3)).repeat(2, axis=1)).astype(float)
    model = MSDAClassifier(1, 0.5, self_training=SelfTraining(n_rounds=2)).fit(X[:60], y[:60], X[60:])
    assert np.mean(model.predict(X[60:]) == y[60:]) > 0.6
    assert len(model.self_training_rounds_) == 3


@pytest.mark.parametrize("rule", ["reverse", "importance-cv"])
def test_rules_of_the_target_need_one(two_domains, rule):
    X, y, _, _ = two_domains
    with pytest.raises(ValueError, match="needs target rows"):
        MSDAClassifier(1, [0.5, 0.7], selection=rule).fit(X, y)


def test_self_training_without_a_target_is_an_ordinary_classifier(two_domains):
    X, y, _, _ = two_domains
    one = MSDAClassifier(1, self_training=True).fit(X, y)
    assert one.self_training_rounds_ == []
    assert_array_equal(one.decision_function(X), MSDAClassifier(1).fit(X, y).decision_function(X))


def test_settings_survive_saving(two_domains, tmp_path):
    X, y, Z, _ = two_domains
    model = MSDAClassifier(1, self_training=SelfTraining(n_rounds=2), balance_layers=True).fit(X, y, Z)
    save_model(model, tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert again.self_training == SelfTraining(n_rounds=2)
    assert_array_equal(again.decision_function(Z), model.decision_function(Z))


@pytest.mark.parametrize("solver", ["least-squares", "hinge"])
def test_on_a_device_of_torch(two_domains, device, solver, monkeypatch):
    """The same classifier where all of it runs on torch: stacks, Gram matrices, solves, prediction."""
    monkeypatch.setattr(
        linear, "SVC", partial(SVC, tol=1e-8)
    )  # stops where rounding lets it, by default 1e-3
    X, y, Z, _ = two_domains
    options = {
        "noise": [0.5, 0.7],
        "C": [0.1, 1.0],
        "classifier": solver,
        "self_training": True,
        "dtype": "float64",
        "random_state": 0,
    }
    here = MSDAClassifier(2, **options).fit(X, y, Z)
    there = MSDAClassifier(2, **options, device=device, precision="highest").fit(X, y, Z)
    assert here.best_params_ == there.best_params_
    assert_allclose(there.decision_function(Z), here.decision_function(Z), rtol=1e-6, atol=1e-8)
    assert all(isinstance(layer.coef, np.ndarray) for layer in there.representation_.layers_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 5}, "share of SelfTraining=5 must be at most 1"),
        ({"share": 0}, "share of SelfTraining=0 must be above 0"),
        ({"n_rounds": 0}, "n_rounds of SelfTraining=0 must be at least 1"),
        ({"weight": float("nan")}, "weight of SelfTraining=nan must be above 0"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SelfTraining(**options)
