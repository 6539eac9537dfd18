"""Self-training and balanced layers against explicit transcriptions."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from undrift import MSDAClassifier
from undrift.method import self_train as module
from undrift.method.domains import UNLABELLED
from undrift.method.self_train import choose_most_confident, retained_auc, round_trip_auc, self_train
from undrift.method.solve import Labels, least_squares, signs


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


class RowTrainer:
    """Trains on inner products; nothing is aligned."""

    def __init__(self, K, labels, C):
        self.K, self.labels, self.C, self.n = K, labels, C, len(labels.codes)
        self.start = labels.fit(K, C)
        self.labelled_scores = self.start.scores(K[: self.n, : self.n])
        self.target_scores = self.start.scores(K[self.n :, : self.n])

    def retrain(self, codes, weight):
        Y = signs(np.concatenate([self.labels.codes, codes]), self.labels.n_classes)
        weight = np.concatenate([self.labels.weight, weight])
        counted = np.flatnonzero(weight)
        dual = least_squares(self.K[np.ix_(counted, counted)], Y[counted], self.C, weight[counted])
        coef = np.zeros(Y.shape)
        coef[counted] = dual.coef
        return coef[self.n :], dual.scores(self.K[self.n :, counted])


def labels_of(y):
    return Labels(y, 2, np.ones(len(y)), np.arange(len(y)))


def train(K, y, C, known=None):
    """Train in rounds on the rows of a Gram matrix, the first of which have the labels y."""
    labels = labels_of(y)
    target_codes = np.full(len(K) - len(y), UNLABELLED) if known is None else known
    chosen, anchors = SimpleNamespace(K=K, C=C), SimpleNamespace(target_codes=target_codes)
    base = SimpleNamespace(labels=labels, chosen=chosen, anchors=anchors)
    return self_train(base, RowTrainer(K, labels, C), choose_most_confident, module.PLAN)


@pytest.fixture
def set_rounds(set_limits):
    """Set the constants of self-training."""

    def set_constants(n_rounds, share, weight):
        portions = tuple(share * r / n_rounds for r in range(1, n_rounds + 1))
        set_limits(PLAN=module.Plan(portions, weight))

    return set_constants


def test_rounds_are_those_of_the_transcription(two_domains, set_rounds):
    H, y, T, _ = two_domains
    H, T = H - H.mean(axis=0), T - T.mean(axis=0)
    K = np.vstack([H, T]) @ np.vstack([H, T]).T
    set_rounds(3, 0.7, 0.4)
    trained = train(K, y, 0.2)
    rounds = trained.rounds
    expected = transcription(H, 2 * y - 1, T, 0.2, 3, 0.7, 0.4)
    assert all(r.kept for r in rounds)
    assert [r.n_labelled for r in rounds] == [0, 14, 28, 42]
    assert_allclose(trained.scores[:, 0], expected[-1], rtol=1e-8, atol=1e-10)
    changed = [np.mean((f > 0) != (expected[0] > 0)) for f in expected]
    assert_allclose([r.changed for r in rounds], changed)
    assert (trained.coef == 0).sum() == len(T) - 42


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
    trip = round_trip_auc(K, labels_of(y), 0.5, scores[:, None])
    assert trip == pytest.approx(round_trip_by_hand(H, y, T, 0.5, scores))
    assert 0.5 < trip < 1
    assert round_trip_auc(K, labels_of(y), 0.5, np.ones((60, 1))) == 0.5  # one label teaches nothing


def test_a_round_trip_of_several_classes_is_the_mean_over_the_classes(rng):
    y, z = rng.integers(3, size=50), rng.integers(3, size=40)
    H, T = (rng.normal(size=(len(codes), 4)) + (codes[:, None] == np.arange(4)) for codes in (y, z))
    K, labels = np.vstack([H, T]) @ np.vstack([H, T]).T, Labels(y, 3, np.ones(50), np.arange(50))
    weight = len(z) / (3 * np.bincount(z))[z]
    areas = []
    for k in range(3):
        back = ridge_scores(T, np.where(z == k, 1, -1), weight, 0.5, H)
        areas.append(roc_auc_score(y == k, back))
    assert np.ptp(areas) > 0.01
    assert_allclose(round_trip_auc(K, labels, 0.5, np.eye(3)[z]), np.mean(areas))


def test_what_is_retained_counts_above_chance():
    assert retained_auc(0.8, 0.9) == pytest.approx(0.75)
    assert retained_auc(0.5, 0.9) == 0
    assert retained_auc(1.0, 0.5) == 0  # nothing is known to begin with


def test_nothing_is_labelled_where_the_round_trip_fails(rng, two_domains):
    """Target rows that share no feature with the source say nothing about it: training back is guessing."""
    H, y, _, _ = two_domains
    apart = np.hstack([H, np.zeros((80, 5))]), np.hstack([np.zeros((60, 7)), rng.poisson(1, size=(60, 5))])
    rows = np.vstack(apart)
    trained = train(rows @ rows.T, y, 0.2)
    assert len(trained.rounds) == 1
    assert not trained.rounds[0].kept
    assert not trained.weight.any()
    assert not trained.coef.any()  # it is the classifier of the labelled rows alone


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


def test_a_round_whose_round_trip_fails_is_undone(misleading, set_rounds):
    """Three rounds succeed, each with the predictions of the one before; the fourth does not."""
    H, y, T = misleading
    rows, C = np.vstack([H, T]), 0.3
    set_rounds(4, 0.9, 3.0)
    scores = transcription(H, 2 * y - 1, T, C, 4, 0.9, 3.0)
    trips = [round_trip_by_hand(H, y, T, C, f) for f in scores]
    train_auc = roc_auc_score(y, ridge_scores(H, 2 * y - 1, np.ones(60), C, H))
    is_kept = [trip - 0.5 >= 0.65 * (train_auc - 0.5) for trip in trips]
    assert is_kept == [True, True, True, True, False]
    assert trips[4] >= 0.65 * train_auc  # so it matters that chance is left out
    confident = np.argsort(-np.abs(scores[2]))[: round(0.9 * 3 / 4 * 40)]
    assert np.any((scores[2] > 0)[confident] != (scores[0] > 0)[confident])  # pseudo-labels that changed

    trained = train(rows @ rows.T, y, C)
    assert [r.kept for r in trained.rounds] == is_kept
    assert_allclose([r.round_trip for r in trained.rounds], trips)
    assert_allclose(trained.scores[:, 0], scores[3], rtol=1e-8, atol=1e-10)
    assert np.abs(scores[3] - scores[4]).max() > 0.1


def test_self_training_without_a_target_is_an_ordinary_classifier(two_domains):
    X, y, _, _ = two_domains
    one, other = (MSDAClassifier(1, self_training=value).fit(X, y) for value in (True, False))
    assert one.self_training_rounds_ == []
    assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_known_target_labels_help_to_find_pseudo_labels_and_are_taken_out_again(two_domains, set_rounds):
    """By hand: known rows have their labels in every round, the last model is trained without them."""
    H, y, T, z = two_domains
    H, T, C = H - H.mean(axis=0), T - T.mean(axis=0), 0.2
    rows, known = np.vstack([H, T]), np.where(np.arange(60) < 15, z, UNLABELLED)
    set_rounds(2, 0.8, 0.5)
    trained = train(rows @ rows.T, y, C, known)
    signs_of, is_known = 2 * np.concatenate([y, z]) - 1, np.r_[np.ones(80, bool), known != UNLABELLED]
    f = ridge_scores(rows[is_known], signs_of[is_known], np.ones(95), C, T)
    for r in (1, 2):
        chosen = np.argsort(-np.abs(f), kind="stable")[: round(0.8 * r / 2 * 60)]
        pseudo = np.setdiff1d(chosen, np.arange(15))
        labels = np.r_[signs_of[is_known], np.where(f[pseudo] > 0, 1, -1)]
        weight = np.r_[np.ones(95), np.full(len(pseudo), 0.5)]
        last = pseudo, np.where(f[pseudo] > 0, 1, -1)
        f = ridge_scores(np.vstack([rows[is_known], T[pseudo]]), labels, weight, C, T)
    assert all(r.kept for r in trained.rounds)
    weight = np.r_[np.ones(80), np.full(len(last[0]), 0.5)]
    expected = ridge_scores(np.vstack([H, T[last[0]]]), np.r_[2 * y - 1, last[1]], weight, C, T)
    assert_allclose(trained.scores[:, 0], expected, rtol=1e-8, atol=1e-10)
    assert not trained.weight[:15].any()
