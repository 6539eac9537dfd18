"""Readings against the same steps on explicit rows, where every round is solved from scratch."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import root
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from tests.helpers.explicit import draw_rows, solve, to_signs
from undrift.method import readings as module
from undrift.method.anchors import Anchors, Facts, class_directions
from undrift.method.least_squares import Conditioned, LeastSquares
from undrift.method.problem import UNLABELLED, Words
from undrift.method.readings import (
    Evidence,
    Linear,
    Start,
    choose_move,
    choose_moves,
    find_surest,
    learn,
    match_doubt,
    move_targets,
    read,
    read_source_only,
)
from undrift.method.scores import SourceScores, find_midpoint
from undrift.method.settings import RoundSettings, Settings
from undrift.method.stories import Story
from undrift.method.teacher import Lesson, Noise

SETTINGS = Settings()


@pytest.fixture(params=[2, 3])
def rows(request, rng):
    """Rows of two or three classes, of two sources and two targets."""
    return draw_rows(rng, request.param, n_targets=2, n_sources=2)


@pytest.fixture
def codes(rows, rng):
    """Classes of some of the target rows."""
    return np.where(
        rng.random(len(rows.targets)) < 0.3, rng.integers(rows.n_classes, size=len(rows.targets)), -1
    )


def gather(rows, codes=None, lessons=None):
    """Return the evidence of these rows; `lessons` are those of a teacher of the name "own"."""
    K = rows.labelled @ rows.labelled.T
    source = LeastSquares.fit(K, rows.wanted, rows.C, rows.weight)
    conditioned = Conditioned.of(rows.gram, source, class_directions(rows.codes, rows.n_classes))
    held_out = SourceScores(source.scores, rows.codes, rows.n_classes)
    silent = np.full(len(rows.targets), UNLABELLED)
    all_codes = np.concatenate([rows.codes, silent if codes is None else codes])
    X, n = np.vstack([rows.labelled, rows.targets]), len(rows.codes)
    anchors = Anchors(X, rows.domain, np.arange(len(X)), np.arange(n), all_codes, rows.weight, rows.weight)
    classes, names = np.arange(rows.n_classes), [0, 1, "a", "b"]
    facts = Facts(classes, held_out.shares, names, 2, [1] * 4, [None] * 2, False, [], True, 0)
    told = [{} if lesson is None else {"own": lesson} for lesson in lessons or [None, None]]
    return Evidence(anchors, facts, conditioned, held_out, 0.6, rows.C, told)


def draw_moves(rows, rng):
    """One move of every target, by centres of four domains and class means."""
    return rng.normal(size=(4 + rows.n_classes, 2))


def invert_precision(rows):
    A = np.column_stack([rows.labelled, np.ones(len(rows.labelled))])
    prior = np.eye(A.shape[1])
    prior[-1, -1] = 0.0
    return np.linalg.inv(prior + (A * (rows.C * rows.weight)[:, None]).T @ A)


def test_moved_targets_are_those_of_rows_that_were_moved(rows, rng):
    moves = draw_moves(rows, rng)
    start = move_targets(gather(rows).conditioned, rows.groups, moves)
    points = np.column_stack([rows.move(moves), np.ones(len(rows.targets))])
    w = np.vstack(solve(rows.labelled, rows.wanted, rows.C, rows.weight))
    assert_allclose(start.scores, points @ w, rtol=1e-7, atol=1e-9)
    assert_allclose(start.covariance, points @ invert_precision(rows) @ points.T, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("case", ["midpoints", "centred", "own"])
def test_moves_put_the_midpoint_on_the_boundary_or_move_by_the_centre(rows, rng, case):
    """Targets are rows less their centre: a point with raw score s lies on the boundary, at 0, after it."""
    conditioned = gather(rows).conditioned
    midpoints = rng.normal(size=(2, rows.wanted.shape[1]))
    if rows.n_classes == 3:
        midpoints -= midpoints.mean(axis=1, keepdims=True)
    given = list(midpoints) if case == "midpoints" else None
    moves = choose_moves(conditioned, [2, 3], given, is_centred=case == "centred")
    w, _ = solve(rows.labelled, rows.wanted, rows.C, rows.weight)
    shifts = moves.T @ np.vstack([rows.centres, rows.class_means])
    if case == "centred":
        assert not moves.any()
    elif case == "own":
        assert_allclose(shifts, rows.centres[2:])
    else:
        centred = midpoints - rows.centres[2:] @ w
        assert_allclose(
            shifts @ w,
            -(centred - centred.mean(axis=1, keepdims=True) * (rows.n_classes == 3)),
            rtol=1e-5,
            atol=1e-6,
        )
        assert not moves[:4].any()
        shortest = np.linalg.pinv((rows.class_means @ w).T, rcond=1e-6)
        assert_allclose(moves[4:], (shortest @ (shifts @ w).T), rtol=1e-5, atol=1e-6)


def test_no_move_follows_a_direction_that_only_rounding_shows(rng):
    """Scores of one class against the rest add up to zero: float32 leaves a little of that direction."""
    slopes = rng.normal(size=(3, 3))
    slopes -= slopes.mean(axis=0)
    slopes -= slopes.mean(axis=1, keepdims=True)
    change = np.array([0.1, -0.05, 0.02])
    exact = choose_move(slopes, change)
    assert np.linalg.norm(exact) < 1
    rounded = slopes + 5e-6 * np.outer(rng.normal(size=3), np.ones(3))
    assert_allclose(choose_move(rounded, change), exact, atol=1e-4)


def explicit_scores(rows, moved, codes, weight):
    """Scores of the moved target rows by least squares on labelled rows and weighted target rows."""
    both = np.vstack([rows.labelled, moved])
    Y = np.vstack([rows.wanted, to_signs(codes, rows.n_classes)])
    w, b = solve(both, Y, rows.C, np.concatenate([rows.weight, weight]))
    return moved @ w + b


def test_target_rows_are_learnt_as_by_least_squares_on_all_rows(rows, rng):
    moves, m = draw_moves(rows, rng), len(rows.targets)
    start = move_targets(gather(rows).conditioned, rows.groups, moves)
    codes, weight = rng.integers(rows.n_classes, size=m), rng.uniform(0.2, 3, m) * (rng.random(m) < 0.5)
    coef, scores = learn(start, codes, weight, rows.n_classes, rows.C)
    moved = rows.move(moves)
    assert_allclose(scores, explicit_scores(rows, moved, codes, weight), rtol=1e-6, atol=1e-8)
    assert not coef[weight == 0].any()


def test_without_rows_to_learn_scores_are_those_of_the_start(rows):
    start = Start(np.arange(6.0)[:, None], np.eye(6))
    coef, scores = learn(start, np.zeros(6, dtype=int), np.zeros(6), 2, 1.0)
    assert not coef.any()
    assert scores is start.scores


def test_the_surest_rows_are_a_portion_of_every_predicted_class():
    scores = np.array([2.0, 1.0, 0.5, 0.1, -0.2, -3.0, -1.0, -0.1, 0.3, -2.0])[:, None]
    codes, surest = find_surest(scores, 0.7, 0.5)
    assert_array_equal(codes, [1, 1, 1, 1, 0, 0, 0, 0, 1, 0])
    assert sorted(surest) == [0, 1, 5, 9]  # of five a class, two
    three = np.array([[3.0, 0, 0], [1, 0, 0], [0, 0, 2], [0, 0, 1], [0, 0, 3], [0, 0, 2.5]])
    codes, surest = find_surest(three, 1.0, 0.75)
    assert_array_equal(codes, [0, 0, 2, 2, 2, 2])
    assert sorted(surest) == [0, 2, 4, 5]


# -- a whole reading --


def find_offsets(logits, shares):
    """Offsets at which mean probabilities are the shares, by a solver of equations."""

    def find_excess(rest):
        offset = np.concatenate([[0.0], rest])
        return softmax(logits + offset, axis=1).mean(axis=0)[1:] - shares[1:]

    found = root(find_excess, np.zeros(len(shares) - 1), tol=1e-12)
    assert np.abs(find_excess(found.x)).max() < 1e-9
    offset = np.concatenate([[0.0], found.x])
    return offset if len(shares) == 2 else offset - offset.mean()


def as_logits(scores):
    return np.hstack([0 * scores, scores]) if scores.shape[1] == 1 else scores


def find_border(scores, T, shares):
    offset = T * find_offsets(as_logits(scores) / T, shares)
    return offset[1:] - offset[:1] if scores.shape[1] == 1 else offset


class ByHand:
    """A reading on explicit rows, trained from scratch in every round."""

    def __init__(self, rows, story, known, settings):
        evidence = gather(rows)
        w, b = solve(rows.labelled, rows.wanted, rows.C, rows.weight)
        rounds = settings.rounds
        self.T = T = 0.6 * (settings.shares.many_class_temperature if rows.n_classes > 2 else 1.0)
        moves = np.zeros((4 + rows.n_classes, 2))
        for i, group in enumerate(rows.groups):
            if story.shares is not None:
                raw = (rows.targets[group] + rows.centres[2 + i]) @ w + b
                midpoint = find_midpoint(raw, evidence.source, story.shares[i], settings.shares)
                slopes = (rows.class_means @ w).T
                change = rows.centres[2 + i] @ w - midpoint
                moves[4:, i] = np.linalg.pinv(slopes, rcond=1e-6) @ change
            elif not story.is_centred:
                moves[2 + i, i] = 1
        moved = rows.move(moves)
        frequencies = np.bincount(rows.codes) / len(rows.codes)
        own = [frequencies] * 2 if story.shares is None else story.shares
        source_scores = rows.labelled @ w + b
        self.natural = find_border(source_scores, T, frequencies)

        def list_borders(scores):
            if story.shares is None:
                return [self.natural] * 2
            return [find_border(scores[g], T, s) for g, s in zip(rows.groups, own, strict=True)]

        is_known = known >= 0

        weight = np.where(is_known, rounds.label_weight, 0.0)
        scores = explicit_scores(rows, moved, np.maximum(known, 0), weight)
        for portion in rounds.portions:
            codes, weight = np.maximum(known, 0), np.where(is_known, rounds.label_weight, 0.0)
            for group, border in zip(rows.groups, list_borders(scores), strict=True):
                p = softmax(as_logits(scores[group] + border) / T, axis=1)
                guesses = p.argmax(axis=1)
                for code in np.unique(guesses):
                    members = np.flatnonzero(guesses == code)
                    surest = members[
                        np.argsort(-p[members, code], kind="stable")[: int(portion * len(members))]
                    ]
                    for i in group[surest]:
                        if not is_known[i]:
                            codes[i], weight[i] = code, rounds.weight
            scores = explicit_scores(rows, moved, codes, weight)
        self.scores, self.borders = scores, np.array(list_borders(scores))


def tell(name, n_classes):
    votes = np.ones(2)
    if name == "shares":
        mixes = [np.array([0.3, 0.7]), np.array([0.6, 0.4])]
        if n_classes == 3:
            mixes = [np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.4, 0.1])]
        return Story(name, "", votes, mixes)
    return Story(name, "", votes, is_centred=name == "centred")


@pytest.mark.parametrize("name", ["shares", "centred", "own"])
@pytest.mark.parametrize("portions", [(), (0.3, 0.6, 0.9)])
@pytest.mark.parametrize("learns", [False, True])
def test_a_reading_is_that_of_explicit_rows(rows, codes, name, portions, learns):
    settings = replace(SETTINGS, rounds=RoundSettings(portions=portions))
    story = tell(name, rows.n_classes)
    reading = read(gather(rows, codes), story, settings, learns=learns)
    expected = ByHand(rows, story, codes if learns else np.full(len(codes), -1), settings)
    assert reading.temperature == pytest.approx(expected.T)
    assert_allclose(reading.scores, expected.scores, rtol=1e-5, atol=1e-6)
    assert_allclose(reading.natural, expected.natural, atol=1e-5)
    assert_allclose(reading.borders, expected.borders, atol=1e-5)
    scores = expected.scores.copy()
    for group, border in zip(rows.groups, expected.borders, strict=True):
        scores[group] += border
    p = softmax(as_logits(scores) / expected.T, axis=1)
    assert_allclose(reading.find_probabilities(rows.groups), p, atol=1e-5)


def test_known_labels_are_never_replaced_by_pseudo_labels(rows, codes, spy):
    calls = spy(module, "learn")
    wrong = np.where(codes == UNLABELLED, UNLABELLED, (codes + 1) % rows.n_classes)
    settings = replace(SETTINGS, rounds=RoundSettings(portions=(1.0, 1.0)))
    read(gather(rows, wrong), tell("shares", rows.n_classes), settings, learns=True)
    known = np.flatnonzero(wrong != UNLABELLED)
    assert len(calls) == 3
    for _, given, weight, *_ in calls:
        assert_array_equal(given[known], wrong[known])
        assert_array_equal(weight[known], settings.rounds.label_weight)
    others = np.delete(np.arange(len(wrong)), known)
    assert_array_equal(calls[-1][2][others], settings.rounds.weight)


def test_directions_have_the_coefficients_that_moved_rows_stand_for(rows, rng):
    coef, moves = rng.normal(size=(len(rows.targets), 2)), draw_moves(rows, rng)
    expected = sum(np.outer(moves[:, i], coef[group].sum(axis=0)) for i, group in enumerate(rows.groups))
    assert_allclose(module.sum_moves(coef, rows.groups, moves), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("unit", [1.0, 200.0])
def test_the_source_only_reading_is_logistic_regression_on_the_input(rng, form, n_classes, unit):
    codes = np.arange(60) % n_classes
    X, Z = rng.poisson(1.0 + (codes[:, None] == np.arange(5))) * unit, rng.poisson(1.0, size=(20, 5)) * unit
    weight = rng.uniform(0.2, 2, 60)
    story = tell("own", n_classes)
    reading = read_source_only(story, form(X.astype(float)), codes, weight, form(Z.astype(float)), 2, 25.0)
    size = (X**2).sum() / 60
    machine = LogisticRegression(C=25.0, max_iter=5000, tol=1e-9)
    machine.fit(X / np.sqrt(size), codes, sample_weight=weight)
    groups = [np.arange(8), np.arange(8, 20)]
    expected = machine.predict_proba(Z / np.sqrt(size))
    assert_allclose(reading.find_probabilities(groups), expected, atol=1e-4)
    assert isinstance(reading.classifier, Linear)
    assert reading.temperature == 1.0
    assert reading.borders.shape == (2, 1 if n_classes == 2 else 3)
    assert not reading.borders.any()


def test_the_source_only_reading_of_dense_rows_converges(rng):
    """Without a warning, which would be an error here."""
    X, codes = rng.lognormal(0, 2, size=(800, 300)), rng.integers(0, 6, 800)
    reading = read_source_only(tell("own", 6), X, codes, np.ones(800), X[:10], 1, 25.0)
    assert reading.scores.shape == (10, 6)


# -- a teacher in the rounds --


def make_lesson(rng, n, n_classes, doubt=0.1):
    outputs = 1 if n_classes == 2 else n_classes
    scores = rng.normal(size=(n, outputs))
    codes = (scores[:, 0] > 0).astype(int) if outputs == 1 else scores.argmax(axis=1)
    words = Words(to_signs(codes, n_classes), codes)
    noise = Noise(0.1, 1.0, np.zeros(n_classes))
    return Lesson(words, scores, noise, np.full(n_classes, 1 / n_classes), 1.2, doubt)


def mean_doubt(scores, T):
    return 1 - softmax(as_logits(scores) / T, axis=1).max(axis=1).mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_temperature_leaves_the_doubt_of_students_and_teacher(rng, n_classes):
    n_outputs = 1 if n_classes == 2 else 3
    scores, groups = rng.normal(size=(50, n_outputs)), [np.arange(20), np.arange(20, 50)]
    borders = list(rng.normal(size=(2, n_outputs)) / 5)
    lessons = [make_lesson(rng, 20, n_classes, 0.2), None]
    T = match_doubt(scores, groups, borders, lessons, 0.5)
    assert mean_doubt(scores[:20] + borders[0], T) == pytest.approx(0.2, abs=1e-3)
    both = [make_lesson(rng, 20, n_classes, 0.2), make_lesson(rng, 30, n_classes, 0.3)]
    T = match_doubt(scores, groups, borders, both, 0.5)
    doubts = [mean_doubt(scores[g] + b, T) for g, b in zip(groups, borders, strict=True)]
    assert np.mean(doubts) == pytest.approx(0.25, abs=1e-3)
    for doubt, log_factor in ((0.0, -8.0), (0.9, 8.0)):
        bound = match_doubt(scores, groups, borders, [make_lesson(rng, 20, n_classes, doubt), None], 0.5)
        assert bound == pytest.approx(0.5 * np.exp(log_factor))


def test_students_are_added_at_the_size_of_the_scores(rng):
    scores, lesson = 3 * rng.normal(size=(9, 1)), make_lesson(rng, 4, 2)
    both = module.add_students(scores, [np.arange(4), np.arange(4, 9)], [lesson, None])
    size = np.sqrt(np.mean(scores[:4] ** 2) / np.mean(lesson.scores**2))
    assert_allclose(both[:4], scores[:4] + size * lesson.scores)
    assert_array_equal(both[4:], scores[4:])


def test_pseudo_labels_of_a_taught_target_are_those_of_student_and_teacher(rows, rng, spy):
    calls, group = spy(module, "learn"), rows.groups[0]
    lesson = make_lesson(rng, len(group), rows.n_classes)
    loud = replace(lesson, trust=1e6)  # the teacher decides
    story = replace(tell("shares", rows.n_classes), name="own")
    read(gather(rows, lessons=[loud, None]), story, SETTINGS)
    _, codes, weight, *_ = calls[-1]
    assert len(calls) == 1 + len(SETTINGS.teacher.portions)
    assert_array_equal(codes[group], lesson.words.codes)
    assert_array_equal(weight[group], SETTINGS.teacher.weight)
