"""A student of a teacher: noise, class shares, rounds, and predictions of both."""

import warnings
from copy import copy

import numpy as np
import pytest
from scipy.optimize import check_grad

from undrift import MSDAClassifier
from undrift.method import teacher as module
from undrift.method.calibrate import ExpectedError
from undrift.method.domains import UNLABELLED
from undrift.method.teacher import (
    Lesson,
    Noise,
    choose_source,
    fit_noise,
    list_taught_classes,
    name_words,
    read_words,
)


def make_rows(n, share, seed, own=0):
    """Counts of sixty words, ten of them for each class, and ten that are the target's own."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.poisson(0.3, (n, 60)).astype(float)
    X[:, :10] += rng.poisson(0.5 * y[:, None], (n, 10))
    X[:, 10:20] += rng.poisson(0.5 * (1 - y)[:, None], (n, 10))
    X[:, 20:30] += own * rng.poisson(0.6 * y[:, None], (n, 10))
    return X, y


def exchange(y, share, seed=0):
    return np.where(np.random.default_rng(seed).random(len(y)) < share, 1 - y, y)


SOURCE, TARGET = make_rows(300, 0.5, 0), make_rows(800, 0.3, 1, own=1)


def fit(teacher, source=SOURCE, target=None, **options):
    X, y = source
    return MSDAClassifier(n_layers=2).fit(
        X, y, TARGET[0] if target is None else target, teacher=teacher, **options
    )


@pytest.fixture(scope="module")
def flipped():
    labels = exchange(TARGET[1], 0.2)
    return labels, fit(labels)


def error(predicted):
    return float(np.mean(predicted != TARGET[1]))


def test_noise_is_found_where_scores_explain_the_rest():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 1)) * 3
    truth = (rng.random(4000) < 1 / (1 + np.exp(-2 * scores[:, 0]))).astype(int)
    noise = fit_noise(scores, exchange(truth, 0.15), 2)
    assert noise.share == pytest.approx(0.15, abs=0.02)
    assert noise.slope == pytest.approx(2, rel=0.2)
    assert fit_noise(scores, truth, 2).share < 0.01
    truth = rng.integers(0, 3, 3000)
    scores = 4.0 * (truth[:, None] == np.arange(3)) + rng.normal(size=(3000, 3))
    moved = np.where(rng.random(3000) < 0.2, (truth + rng.integers(1, 3, 3000)) % 3, truth)
    assert fit_noise(scores, moved, 3).share == pytest.approx(0.2, abs=0.03)


def test_gradient_of_the_noise_is_right(spy):
    calls, rng = spy(module, "minimize"), np.random.default_rng(0)
    fit_noise(rng.normal(size=(50, 3)), rng.integers(0, 3, 50), 3)
    loss, at = calls[0][0], np.array([0.3, -1.2, 0.1, -0.4, 0.2])
    assert check_grad(lambda x: loss(x)[0], lambda x: loss(x)[1], at) < 1e-6


def test_shares_less_the_noise():
    noise = Noise(0.2, 1.0, np.zeros(2))
    codes = np.repeat([1, 0], [38, 62])  # 0.3 * 0.8 + 0.7 * 0.2
    np.testing.assert_allclose(noise.remove(codes), [0.7, 0.3])
    assert noise.trust == pytest.approx(np.log(4) / 2.25)
    assert Noise(1e-4, 1.0, np.zeros(2)).trust == 1.75  # and no more
    three = Noise(0.2, 1.0, np.zeros(3))
    np.testing.assert_allclose(three.remove(np.repeat([0, 1, 2], [52, 31, 17])), [0.6, 0.3, 0.1])


def test_student_of_flipped_labels_is_better_than_they_are(flipped):
    labels, classifier = flipped
    assert error(labels) > 0.17
    assert error(classifier.predict(TARGET[0])) < 0.06
    assert error(classifier.predict(TARGET[0], teacher=labels)) < 0.06
    assert classifier.teacher_noise_[0] == pytest.approx(0.2, abs=0.04)
    assert classifier.target_shares_[0][1] == pytest.approx(TARGET[1].mean(), abs=0.05)  # two standard errors
    both, alone = (classifier.decision_function(TARGET[0], **more) for more in ({"teacher": labels}, {}))
    weight = classifier.teacher_weight_[1, 0]
    np.testing.assert_allclose(both - alone, weight * np.where(labels == 1, 1, -1), rtol=1e-4)
    assert weight > 0


def test_a_good_teacher_is_followed_and_a_source_is_not_needed():
    labels = exchange(TARGET[1], 0.02)
    classifier = fit(labels)
    assert error(classifier.predict(TARGET[0], teacher=labels)) <= error(labels) + 0.003
    labels = exchange(TARGET[1], 0.2)
    classifier = fit(labels, source=(None, None))
    assert error(classifier.predict(TARGET[0])) < 0.06
    assert not classifier.has_source_
    assert classifier.classes_.tolist() == [0, 1]
    labels = exchange(TARGET[1], 0.2)
    rows = choose_source(TARGET[0], read_words((labels, None), 800, np.arange(2)), 2)
    assert len(rows) == pytest.approx(0.6 * 800, abs=2)
    assert np.mean(labels[rows] != TARGET[1][rows]) < 0.08


def test_some_labels_are_enough_and_the_others_count_for_shares():
    labels = np.full(800, None, dtype=object)
    rows = np.argsort(-TARGET[1], kind="stable")[:400]  # all of one class are among them
    labels[rows] = TARGET[1][rows]
    classifier = fit(labels)
    assert error(classifier.predict(TARGET[0])) < 0.06
    assert classifier.target_shares_[0][1] == pytest.approx(TARGET[1].mean(), abs=0.06)


def test_shares_are_the_mean_of_what_teacher_and_source_say():
    scores = SOURCE[0][:, :10].sum(axis=1)
    leaning = (TARGET[0][:, :10].sum(axis=1) > np.median(scores) - 1.5).astype(int)  # says 1 too often
    alone = MSDAClassifier(n_layers=2).fit(*SOURCE, TARGET[0]).target_shares_[0][1]
    told = fit(leaning, source=(None, None)).target_shares_[0][1]
    assert told > alone + 0.1
    assert fit(leaning).target_shares_[0][1] == pytest.approx((told + alone) / 2, abs=0.02)


def test_probabilities_and_confidences_are_the_same_teacher():
    labels, sure = exchange(TARGET[1], 0.1), np.random.default_rng(0).uniform(0.55, 0.99, 800)
    p = np.where(labels[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])
    one = fit(p).decision_function(TARGET[0])
    np.testing.assert_allclose(one, fit(labels, teacher_confidence=sure).decision_function(TARGET[0]))


def test_one_of_two_targets_has_a_teacher():
    X, y = TARGET
    classifier = fit({"a": exchange(y[:400], 0.1)}, target={"a": X[:400], "b": X[400:]})
    assert classifier.teacher_noise_[1] is None
    assert classifier.teacher_weight_[2, 0] == 0
    for name, rows in (("a", slice(0, 400)), ("b", slice(400, 800))):
        assert np.mean(classifier.predict(X[rows], target=name) != y[rows]) < 0.08


def test_expected_error_and_updates_of_a_student(flipped):
    labels, classifier = flipped
    expected = classifier.expected_error_[0]
    assert expected["low"] <= error(classifier.predict(TARGET[0], teacher=labels)) <= expected["high"]
    assert expected["high"] == pytest.approx(1.5 * expected["error"])
    _, classifier = flipped
    changed = copy(classifier).update(TARGET[0][:40], TARGET[1][:40])
    assert np.abs(changed.decision_function(TARGET[0]) - classifier.decision_function(TARGET[0])).max() > 0


def test_a_new_batch_has_class_shares_of_its_own(flipped):
    X, y = make_rows(600, 0.8, 5, own=1)
    with pytest.warns(UserWarning, match="harder than the target of the fit"):
        (shares,) = copy(flipped[1]).update_target(X).target_shares_
    assert shares[1] == pytest.approx(y.mean(), abs=0.12)


def test_few_labels_give_bounds_alone(spy):
    labels = exchange(TARGET[1], 0.2).astype(object)
    labels[399:] = None
    calls = spy(module, "_expect_error")
    expected = fit(labels).expected_error_[0]
    noise, scores, codes = calls[0]
    contradicted = np.mean(noise.find_probabilities(scores).argmax(axis=1) != codes)
    assert (expected["error"], expected["known"]) == (None, False)
    assert expected["high"] >= contradicted > 0.2
    labels[399] = 0
    assert fit(labels).expected_error_[0]["known"] is True


def test_a_teacher_that_contradicts_the_source_is_named():
    with pytest.warns(UserWarning, match="the teacher contradicts the source"):
        fit(1 - TARGET[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(TARGET[1])


def test_anchors_prefer_rows_that_the_teacher_labelled(set_limits, spy):
    set_limits(TARGET_ROWS=100, ANCHOR_LIMIT=400, COMPARED_ROWS=100)
    labels = np.full(800, None, dtype=object)
    labels[700:] = TARGET[1][700:]
    calls = spy(module, "_draw_rows")
    fit(labels)
    assert len(calls[0][0]) == 100


# -- the words of a teacher: forms that are taken, and forms that are refused --

CLASSES = np.array(["bad", "good"])


def test_labels_alone_are_signs_and_silence_is_zero():
    words = read_words((["good", None, "bad"], None), 3, CLASSES)
    assert words.scores[:, 0].tolist() == [1.0, 0.0, -1.0]
    assert words.codes.tolist() == [1, UNLABELLED, 0]
    assert words.taught.tolist() == [0, 2]
    assert list_taught_classes({"a": (["x", None], None), "b": (["z", "x"], None)}).tolist() == ["x", "z"]
    assert list_taught_classes({"a": (np.ones((2, 3)), None)}).tolist() == [0, 1, 2]


def test_confidence_becomes_log_odds_of_the_second_class():
    words = read_words((["good", "bad", "good"], [0.8, 0.8, None]), 3, CLASSES)
    np.testing.assert_allclose(words.scores[:2, 0], [np.log(4), -np.log(4)])
    assert words.scores[2, 0] == pytest.approx(np.log(1000), rel=1e-3)  # taken for certain
    words = read_words((["a", "c"], [0.6, 0.9]), 2, np.array(["a", "b", "c"]))
    np.testing.assert_allclose(words.scores[0] - words.scores[0, 1], [np.log(3), 0, 0], atol=1e-12)
    np.testing.assert_allclose(words.scores.sum(axis=1), 0, atol=1e-12)


def test_probabilities_and_their_silent_rows():
    words = read_words((np.array([[0.2, 0.8], [np.nan, np.nan], [0.75, 0.25]]), None), 3, CLASSES)
    np.testing.assert_allclose(words.scores[:, 0], [np.log(4), 0, -np.log(3)])
    assert words.codes.tolist() == [1, UNLABELLED, 0]
    words = read_words((np.array([[0.2, 0.8], [np.nan, np.nan]]), None), 2, CLASSES)
    noise = Noise(0.02, 1.0, np.zeros(2))
    lesson = Lesson(words, np.zeros((2, 1)), noise, np.full(2, 0.5), ExpectedError(0.1, 0.0, 0.2))
    assert lesson.weigh(np.full((2, 1), 3.0)) == pytest.approx(3 * noise.trust / np.log(4))


@pytest.mark.parametrize(
    ("given", "n", "message"),
    [
        ((["good"], None), 2, "1 entries for 2"),
        ((["good", "fair"], None), 2, "'fair', which is not a class"),
        ((["good", "bad"], [0.5, 1.5]), 2, "from 0 to 1"),
        ((np.ones((2, 3)), None), 2, "2 classes"),
        ((np.array([[1.1, -0.1]]), None), 1, "probabilities"),
    ],
)
def test_what_is_refused(given, n, message):
    with pytest.raises(ValueError, match=message):
        read_words(given, n, CLASSES)


def test_too_few_labels_and_one_class_are_refused():
    few = read_words((["good", "bad"] * 9 + ["good", None], None), 20, CLASSES)
    with pytest.raises(ValueError, match="labels for 19 rows, and a student needs at least 20"):
        few.check(CLASSES, "target")
    one = read_words((["good"] * 20, None), 20, CLASSES)
    with pytest.raises(ValueError, match="every row the label 'good'"):
        one.check(CLASSES, "target")


def test_words_are_named_as_targets_are():
    X = np.zeros((2, 1))
    assert name_words(["a"], None, X) == {"target": (["a"], None)}
    assert name_words({"k": ["a"]}, {"k": [1.0]}, {"k": X, "m": X}) == {"k": (["a"], [1.0])}
    with pytest.raises(ValueError, match="dict"):
        name_words(["a"], None, {"k": X})
    with pytest.raises(ValueError, match="X_target, which is missing"):
        name_words(["a"], None, None)
