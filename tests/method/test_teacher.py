"""A student of a teacher: noise, class shares, rounds, and predictions of both."""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from tests.helpers.explicit import solve
from undrift import MSDAClassifier
from undrift.method import teacher as module
from undrift.method.least_squares import Gram
from undrift.method.problem import UNLABELLED, Words
from undrift.method.settings import AnchorSettings, Settings
from undrift.method.teacher import (
    Given,
    Lesson,
    Noise,
    average_words,
    check_words,
    choose_source,
    fit_noise,
    learn_lesson,
    list_taught_classes,
    measure_noise,
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


SETTINGS = Settings()
SOURCE, TARGET = make_rows(200, 0.5, 0), make_rows(500, 0.3, 1, own=1)


def fit(teacher, source=SOURCE, target=None, **options):
    X, y = source
    return MSDAClassifier(n_layers=2, random_state=0).fit(
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


def test_gradient_of_the_noise_is_right(rng):
    given, at = (rng.normal(size=(50, 3)), rng.integers(0, 3, 50)), np.array([0.3, -1.2, 0.1, -0.4, 0.2])
    value, gradient = (lambda x: measure_noise(x, *given)[0]), (lambda x: measure_noise(x, *given)[1])
    assert check_grad(value, gradient, at) < 1e-6


@pytest.mark.parametrize("n_classes", [3, 10])
def test_labels_exchanged_at_random_have_probabilities_that_sum_to_one(rng, n_classes):
    scores, at = rng.normal(size=(1, n_classes)), np.array([0.3, -1.2, *np.linspace(-0.5, 0.5, n_classes)])
    losses = [measure_noise(at, scores, np.array([code]))[0] for code in range(n_classes)]
    assert np.exp(((at[1] + 3) / 3) ** 2 / 2 - np.array(losses)).sum() == pytest.approx(1)


def test_shares_less_the_noise():
    noise = Noise(0.2, 1.0, np.zeros(2))
    codes = np.repeat([1, 0], [38, 62])  # 0.3 * 0.8 + 0.7 * 0.2
    np.testing.assert_allclose(noise.remove(codes), [0.7, 0.3])
    assert noise.find_trust(SETTINGS.teacher) == pytest.approx(np.log(4) / 2.25)
    assert Noise(1e-4, 1.0, np.zeros(2)).find_trust(SETTINGS.teacher) == 1.75  # and no more
    three = Noise(0.2, 1.0, np.zeros(3))
    np.testing.assert_allclose(three.remove(np.repeat([0, 1, 2], [52, 31, 17])), [0.6, 0.3, 0.1])


def test_fewer_labels_of_a_perfect_teacher_are_worse_by_degrees():
    """One row without a label changes hardly anything."""
    true = TARGET[1].mean()
    gaps, errors = [], []
    for n_silent in (0, 1, 25, 250):
        labels = TARGET[1].astype(object)
        labels[len(labels) - n_silent :] = None
        classifier = fit(labels, make_rows(200, 0.8, 0))
        gaps.append(abs(classifier.target_shares_[0][1] - true))
        errors.append(error(classifier.predict(TARGET[0])))
    assert gaps[1] < gaps[0] + 0.003
    assert gaps[2] < gaps[0] + 0.015
    assert errors[1] <= errors[0] + 0.002
    assert errors[2] <= errors[0] + 0.01
    assert gaps[2] < gaps[3] < 0.1


def test_student_of_flipped_labels_is_better_than_they_are(flipped):
    labels, classifier = flipped
    assert error(labels) > 0.17
    assert error(classifier.predict(TARGET[0])) < 0.08
    assert error(classifier.predict(TARGET[0], teacher=labels)) < 0.08
    assert classifier.teacher_noise_[0] == pytest.approx(0.2, abs=0.05)
    assert classifier.target_shares_[0][1] == pytest.approx(TARGET[1].mean(), abs=0.06)
    (reading,) = classifier.readings_["target"]
    assert reading["name"] == "teacher"
    both, alone = (classifier.decision_function(TARGET[0], **more) for more in ({"teacher": labels}, {}))
    weight = classifier.model_.teacher_weight[1]
    np.testing.assert_allclose(both - alone, weight * np.where(labels == 1, 1, -1), rtol=1e-2, atol=1e-4)
    assert weight > 0


def test_the_weight_of_a_teacher_is_its_trust_in_units_of_log_odds(flipped):
    _, classifier = flipped
    log_odds = classifier.decision_function(TARGET[0])
    noise = classifier.teacher_noise_[0]
    trust = min(1.75, np.log((1 - noise) / noise) / 2.25)
    assert classifier.model_.teacher_weight[1] == pytest.approx(
        trust * np.sqrt(np.mean(log_odds**2)), rel=1e-2
    )


def test_an_error_that_a_teacher_is_known_to_make_is_expected_and_its_story_told():
    labels = exchange(TARGET[1], 0.02)
    known = fit(Given(labels, story="The labels are those of a form.", error=0.2), source=(None, None))
    assert known.expected_error_[0]["error"] == pytest.approx(0.2, abs=0.05)
    assert fit(labels, source=(None, None)).expected_error_[0]["error"] < 0.1
    assert known.readings_["target"][0]["story"] == "The labels are those of a form."


def test_a_good_teacher_is_followed_and_a_source_is_not_needed():
    labels = exchange(TARGET[1], 0.02)
    classifier = fit(labels)
    assert error(classifier.predict(TARGET[0], teacher=labels)) <= error(labels) + 0.005
    labels = exchange(TARGET[1], 0.2)
    classifier = fit(labels, source=(None, None))
    assert error(classifier.predict(TARGET[0])) < 0.08
    assert not classifier.memory_.facts.has_source
    assert classifier.classes_.tolist() == [0, 1]
    rows = choose_source(TARGET[0], read_words(Given(labels), 500, np.arange(2)), 2, SETTINGS.teacher)
    assert len(rows) == pytest.approx(0.6 * 500, abs=2)
    assert np.mean(labels[rows] != TARGET[1][rows]) < 0.08


def test_the_shares_of_three_classes_are_those_of_a_perfect_teacher():
    rng, rates = np.random.default_rng(0), np.random.default_rng(1).gamma(0.3, size=(3, 30))

    def draw(n, shares):
        codes = rng.choice(3, n, p=shares)
        return rng.poisson(rates[codes]).astype(float), codes

    (X, y), (Z, z) = draw(200, [0.34, 0.33, 0.33]), draw(400, [0.7, 0.2, 0.1])
    Z[:, :10] += rng.poisson(1.5, size=(400, 10))
    truth = np.bincount(z) / 400
    alone, taught = (list(fit(told, (X, y), Z).target_shares_[0].values()) for told in (None, z))
    assert np.abs(np.array(alone) - truth).max() > 0.03
    assert np.abs(np.array(taught) - truth).max() < 0.005


def test_some_labels_are_enough_and_the_others_count_for_shares():
    labels = np.full(500, None, dtype=object)
    rows = np.argsort(-TARGET[1], kind="stable")[:250]  # all of one class are among them
    labels[rows] = TARGET[1][rows]
    classifier = fit(labels)
    assert error(classifier.predict(TARGET[0])) < 0.08
    assert classifier.target_shares_[0][1] == pytest.approx(TARGET[1].mean(), abs=0.08)


def test_probabilities_and_confidences_are_the_same_teacher():
    labels, sure = exchange(TARGET[1], 0.1), np.random.default_rng(0).uniform(0.55, 0.99, 500)
    p = np.where(labels[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])
    one = fit(p).decision_function(TARGET[0])
    other = fit(labels, teacher_confidence=sure).decision_function(TARGET[0])
    np.testing.assert_allclose(one, other, rtol=1e-4)


def test_one_of_two_targets_has_a_teacher():
    X, y = TARGET
    classifier = fit({"a": exchange(y[:250], 0.1)}, target={"a": X[:250], "b": X[250:]})
    assert classifier.teacher_noise_[1] is None
    assert classifier.model_.teacher_weight[2] == 0
    for name, rows in (("a", slice(0, 250)), ("b", slice(250, 500))):
        assert np.mean(classifier.predict(X[rows], target=name) != y[rows]) < 0.1
        assert [r["name"] for r in classifier.readings_[name]] == ["teacher"]


def test_several_teachers_vote():
    good, bad = exchange(TARGET[1], 0.05), exchange(TARGET[1], 0.3, seed=4)
    classifier = fit({"good": good, "bad": bad})
    readings = classifier.readings_["target"]
    assert [(r["name"], r["weight"]) for r in readings] == [("good", 0.5), ("bad", 0.5)]
    assert "good" in readings[0]["story"]
    noise = classifier.teacher_noise_[0]
    assert noise["good"] == pytest.approx(0.05, abs=0.04)
    assert noise["bad"] == pytest.approx(0.3, abs=0.07)
    hard = np.flatnonzero(good != bad)[:30]
    classifier.update(TARGET[0][hard], TARGET[1][hard])
    assert classifier.readings_["target"][0]["weight"] > 0.5


def test_expected_error_and_updates_of_a_student(flipped):
    labels, classifier = flipped
    expected = classifier.expected_error_[0]
    assert expected["low"] <= error(classifier.predict(TARGET[0], teacher=labels)) <= expected["high"]
    before = classifier.decision_function(TARGET[0])
    changed = copy(classifier).update(TARGET[0][:40], TARGET[1][:40])
    assert np.abs(changed.decision_function(TARGET[0]) - before).max() > 0
    assert [r["name"] for r in changed.readings_["target"]] == ["teacher"]


def test_rows_that_are_added_have_no_label_of_the_teacher(flipped):
    new, y_new = make_rows(12, 0.5, 9, own=1)
    changed = copy(flipped[1]).update(new, y_new)
    words = changed.memory_.facts.taught[0]["teacher"]
    assert words.codes[-12:].tolist() == [UNLABELLED] * 12
    assert len(words.codes) == 512
    assert not words.scores[-12:].any()
    assert len(changed.list_labelled()[1]) == 12


def test_a_lesson_is_of_students_that_have_not_seen_the_label(rng):
    """Against students that are trained from scratch without each fifth of the labels."""
    X = np.column_stack([rng.normal(size=(60, 3)), np.zeros(60)])
    codes = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    codes[50:] = UNLABELLED
    words = Words(np.where(codes == 1, 1.0, -1.0)[:, None] * (codes[:, None] >= 0), codes)
    gram = Gram(X @ X.T, 0, np.zeros(60, dtype=int))
    lesson = learn_lesson(gram, np.arange(60), words, 0.8, 2, SETTINGS)
    order = np.random.RandomState(0).permutation(50)
    for fold in np.array_split(order, 5):
        kept = np.setdiff1d(np.arange(50), fold)
        w, b = solve(X[kept], words.scores[kept], 0.8, np.ones(len(kept)))
        np.testing.assert_allclose(lesson.scores[fold], X[fold] @ w + b, rtol=1e-7, atol=1e-9)
    w, b = solve(X[:50], words.scores[:50], 0.8, np.ones(50))
    np.testing.assert_allclose(lesson.scores[50:], X[50:] @ w + b, rtol=1e-7, atol=1e-9)
    silent = lesson.noise.find_probabilities(lesson.scores[50:]).mean(axis=0)
    expected = 5 / 6 * lesson.noise.remove(codes[:50]) + silent / 6
    np.testing.assert_allclose(lesson.shares, expected)
    assert lesson.coverage == pytest.approx(5 / 6)
    # the doubt is that of Bayes' rule from student and label
    p = lesson.noise.find_probabilities(lesson.scores[:50])
    kept = np.where(codes[:50, None] == np.arange(2), 1 - lesson.noise.share, lesson.noise.share)
    both = p * kept / (p * kept).sum(axis=1, keepdims=True)
    assert lesson.doubt == pytest.approx(1 - both.max(axis=1).mean())


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_error_of_students_and_labels_together_is_that_of_bayes_rule(rng, n_classes):
    noise = Noise(0.3, 0.8, np.linspace(-0.5, 0.5, n_classes))
    scores, codes = (
        rng.normal(size=(40, 1 if n_classes == 2 else n_classes)),
        rng.integers(n_classes, size=40),
    )
    errors = []
    for p, said in zip(noise.find_probabilities(scores), codes, strict=True):
        joint = [p[k] * (0.7 if k == said else 0.3 / (n_classes - 1)) for k in range(n_classes)]
        errors.append(1 - max(joint) / sum(joint))
    assert module._expect_error(noise, scores, codes) == pytest.approx(np.mean(errors))


def test_several_words_are_averaged():
    one, two = (Words(np.array([[a], [b], [0.0]]), np.array([1, 0, -1])) for a, b in ((1, -3), (2, 1)))
    both = average_words([one, two])
    np.testing.assert_allclose(both.scores, [[1.5], [-1], [0]])
    assert both.codes.tolist() == [1, 0, UNLABELLED]
    assert average_words([one]) is one


def test_a_teacher_that_contradicts_the_source_is_named():
    with pytest.warns(UserWarning, match="the teacher contradicts the source"):
        fit(1 - TARGET[1])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the teacher contradicts")
        fit(TARGET[1])


class FewAnchors(MSDAClassifier):
    """Keeps a hundred rows of the target."""

    def make_settings(self):
        return replace(super().make_settings(), anchors=AnchorSettings(targets=100))


def test_anchors_prefer_rows_that_the_teacher_labelled():
    labels = np.full(500, None, dtype=object)
    labels[420:] = TARGET[1][420:]
    classifier = FewAnchors(n_layers=1, random_state=0).fit(*SOURCE, TARGET[0], teacher=labels)
    anchors = classifier.memory_.anchors
    drawn = anchors.position[anchors.n_labelled :]
    assert len(drawn) == 100
    assert np.isin(np.arange(420, 500), drawn).all()


# -- the words of a teacher: forms that are taken, and forms that are refused --

CLASSES = np.array(["bad", "good"])


def test_labels_alone_are_signs_and_silence_is_zero():
    words = read_words(Given(["good", None, "bad"]), 3, CLASSES)
    assert words.scores[:, 0].tolist() == [1.0, 0.0, -1.0]
    assert words.codes.tolist() == [1, UNLABELLED, 0]
    assert words.taught.tolist() == [0, 2]
    assert list_taught_classes(
        {"a": {"teacher": Given(["x", None])}, "b": {"teacher": Given(["z", "x"])}}
    ).tolist() == ["x", "z"]
    assert list_taught_classes({"a": {"teacher": Given(np.ones((2, 3)))}}).tolist() == [0, 1, 2]


def test_confidence_becomes_log_odds_of_the_second_class():
    words = read_words(Given(["good", "bad", "good"], [0.8, 0.8, None]), 3, CLASSES)
    np.testing.assert_allclose(words.scores[:2, 0], [np.log(4), -np.log(4)])
    assert words.scores[2, 0] == pytest.approx(np.log(1000), rel=1e-3)  # taken for certain
    words = read_words(Given(["a", "c"], [0.6, 0.9]), 2, np.array(["a", "b", "c"]))
    np.testing.assert_allclose(words.scores[0] - words.scores[0, 1], [np.log(3), 0, 0], atol=1e-12)
    np.testing.assert_allclose(words.scores.sum(axis=1), 0, atol=1e-12)


def test_probabilities_and_their_silent_rows():
    words = read_words(Given(np.array([[0.2, 0.8], [np.nan, np.nan], [0.75, 0.25]])), 3, CLASSES)
    np.testing.assert_allclose(words.scores[:, 0], [np.log(4), 0, -np.log(3)])
    assert words.codes.tolist() == [1, UNLABELLED, 0]
    words = read_words(Given(np.array([[0.2, 0.8], [np.nan, np.nan]])), 2, CLASSES)
    noise = Noise(0.02, 1.0, np.zeros(2))
    trust = noise.find_trust(SETTINGS.teacher)
    lesson = Lesson(words, np.zeros((2, 1)), noise, np.full(2, 0.5), trust, 0.1)
    assert lesson.weigh(np.full((2, 1), 3.0)) == pytest.approx(3 * trust / np.log(4))


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
        read_words(Given(*given), n, CLASSES)


def test_too_few_labels_and_one_class_are_refused():
    few = read_words(Given(["good", "bad"] * 9 + ["good", None]), 20, CLASSES)
    with pytest.raises(ValueError, match="labels for 19 rows, and a student needs at least 20"):
        check_words(few, CLASSES, "target", 20)
    one = read_words(Given(["good"] * 20), 20, CLASSES)
    with pytest.raises(ValueError, match="every row the label 'good'"):
        check_words(one, CLASSES, "target", 20)


def test_words_are_named_as_targets_and_teachers_are():
    X = np.zeros((2, 1))
    assert name_words(None, None, X) == {}
    assert name_words(["a"], None, X) == {"target": {"teacher": Given(["a"])}}
    given = name_words({"k": ["a"]}, {"k": [1.0]}, {"k": X, "m": X})
    assert given == {"k": {"teacher": Given(["a"], [1.0])}}
    two = {"k": {"first": ["a"], "second": ["b"]}}
    assert name_words(two, None, {"k": X}) == {"k": {"first": Given(["a"]), "second": Given(["b"])}}
    with pytest.raises(ValueError, match="teacher_confidence goes with one teacher"):
        name_words(two, {"k": [1.0]}, {"k": X})
    with pytest.raises(ValueError, match="dict"):
        name_words(["a"], None, {"k": X})
    with pytest.raises(ValueError, match="X_target, which is missing"):
        name_words(["a"], None, None)
