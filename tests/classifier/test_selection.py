from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier, UndriftWarning
from undrift._core.denoise import Layer
from undrift.classifier.linear import least_squares
from undrift.classifier.selection import (
    Candidate,
    Grid,
    Problem,
    check_grid,
    draw_folds,
    held_out_scores,
    note_ties_and_edges,
    restrict_grid,
    single_candidate,
    target_odds,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")

NOISES, DEPTHS, CS = [0.5, 0.8], [1, 3], [0.03, 0.3, 3.0]


@pytest.fixture
def shifted(rng):
    """Source rows, labels in three classes (or none), and target rows in which features changed places."""
    topics = rng.gamma(0.5, size=(90, 3))
    words = rng.gamma(0.5, size=(3, 8))
    X = rng.poisson(topics @ words + 0.1).astype(float)
    y = np.array(["low", "mid", "top"])[np.argmax(topics + 0.3 * rng.normal(size=(90, 3)), axis=1)]
    y = y.astype(object)
    y[::10] = None
    Z = rng.poisson(rng.gamma(0.5, size=(50, 3)) @ words[:, [1, 0, 2, 3, 4, 5, 7, 6]] + 0.1).astype(float)
    return X, y, Z


def built(X, Z, noise, depth, center):
    """[h^0 ... h^l] of source and target, written out."""
    stack = algorithm_2(np.vstack([X, Z]), noise, depth)
    H = np.hstack([np.vstack([X, Z]), *(h for _, h in stack)])
    source, target = H[: len(X)], H[len(X) :]
    return (source - source.mean(axis=0), target - target.mean(axis=0)) if center else (source, target)


def ridge(C):
    return RidgeClassifier(alpha=1 / C, solver="cholesky")


class OneAgainstRest:
    """The hinge, class by class."""

    def __init__(self, C):
        self.C = C

    def fit(self, H, y):
        self.classes = np.unique(y)
        self.svms = [SVC(kernel="linear", C=self.C).fit(H, np.where(y == c, 1, -1)) for c in self.classes]
        return self

    def predict(self, H):
        return self.classes[np.argmax([svm.decision_function(H) for svm in self.svms], axis=0)]


def cross_validated(machine, H, y, T, splits):
    found = np.empty_like(y)
    for train, test in splits:
        found[test] = machine().fit(H[train], y[train]).predict(H[test])
    return np.mean(found == y)


def reversed_(machine, H, y, T, splits):
    """Reverse validation as it is told: there, and back again."""
    found = np.empty_like(y)
    for train, test in splits:
        self_labelled = machine().fit(H[train], y[train]).predict(T)
        if len(set(self_labelled)) == 1:
            found[test] = self_labelled[0]
        else:
            found[test] = machine().fit(T, self_labelled).predict(H[test])
    return np.mean(found == y)


RULES = {"source-cv": cross_validated, "reverse": reversed_}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("selection", list(RULES))
def test_scores_are_those_of_explicit_features(shifted, selection, center, form):
    X, y, Z = shifted
    model = MSDAClassifier(
        DEPTHS, NOISES, CS, selection=selection, center=center, dtype="float64", random_state=3
    ).fit(form(X), y, form(Z))
    has_label = y != None  # noqa: E711 (element by element)
    labels = y[has_label].astype(str)
    expected = []
    for noise in NOISES:
        for depth in DEPTHS:
            H, T = built(X, Z, noise, depth, center)
            H = H[has_label]
            scale = np.mean((H**2).sum(axis=1))
            for C in CS:
                splits = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(3))
                machine = partial(ridge, C / scale)
                score = RULES[selection](machine, H, labels, T, splits.split(labels, labels))
                expected.append({"noise": noise, "n_layers": depth, "C": C, "score": score})
    found = [
        {key: own[key] for key in ("noise", "n_layers", "C", "score")} for own in model.selection_results_
    ]
    assert len({own["score"] for own in expected}) > 3
    assert [own | {"score": None} for own in found] == [own | {"score": None} for own in expected]
    assert_allclose([own["score"] for own in found], [own["score"] for own in expected], rtol=1e-12)
    best = expected[int(np.argmax([own["score"] for own in expected]))]
    assert model.best_params_ == {key: best[key] for key in ("noise", "n_layers", "C")}
    assert [own["chosen"] for own in model.selection_results_].count(True) == 1
    H, T = built(X, Z, best["noise"], best["n_layers"], center)
    H = H[has_label]
    machine = ridge(best["C"] / np.mean((H**2).sum(axis=1))).fit(H, labels)
    assert_allclose(model.decision_function(form(Z)), machine.decision_function(T), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("uniform", [True, False])
def test_held_out_scores_are_those_of_refits(rng, n_classes, uniform):
    H = rng.normal(size=(60, 7))
    codes = np.resize(np.arange(n_classes), 60)
    weight = np.ones(60) if uniform else rng.uniform(0.1, 3, size=60)
    splits = draw_folds(codes, 4, np.random.RandomState(0))
    rows = np.vstack([H, rng.normal(size=(5, 7))])  # target rows may follow
    problem = Problem(codes, n_classes, weight, splits, least_squares)
    Y = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)[:, -1 if n_classes == 2 else 0 :]
    for C, scores in zip(CS, held_out_scores(rows @ rows.T, problem, CS), strict=True):
        expected = np.empty(Y.shape)
        for train, test in splits:
            refit = Ridge(alpha=1 / C, solver="svd").fit(H[train], Y[train], sample_weight=weight[train])
            expected[test] = refit.predict(H[test]).reshape(len(test), -1)
        assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("center", [True, False])
def test_no_row_is_pushed_through_a_layer_twice(shifted, center, monkeypatch):
    """At the last depth, rows of the target pass only if the candidate is the best so far."""
    X, y, Z = shifted
    passed, call = {}, Layer.__call__

    def counted(self, rows, out=None):
        passed[id(self)] = passed.get(id(self), 0) + rows.shape[0]
        layers.append(self)  # so that no other gets its id
        return call(self, rows, out)

    layers = []
    monkeypatch.setattr(Layer, "__call__", counted)
    model = MSDAClassifier([1, 2], [0.3, 0.5, 0.8], [0.03, 0.3], center=center, random_state=3).fit(X, y, Z)
    scores = np.array([own["score"] for own in model.selection_results_]).reshape(3, 2, 2).max(axis=2)
    best = np.maximum.accumulate(np.r_[0, scores.ravel()])  # before each noise and depth
    rises = (scores.ravel() > best[:-1]).reshape(3, 2)
    expected = {}
    for noise in range(3):
        followed = center and rises[noise, 1]
        expected[noise] = [140, 140 if followed else 90]
    chosen = [0.3, 0.5, 0.8].index(model.best_params_["noise"])
    for depth in range(model.best_params_["n_layers"]):
        expected[chosen][depth] += 81  # the labelled rows once more, for the weights of the classifier
    assert list(passed.values()) == [n for noise in range(3) for n in expected[noise]]
    assert not rises[:, 1].all()


@pytest.mark.parametrize("selection", list(RULES))
def test_hinge_scores_are_those_of_explicit_features(shifted, selection):
    X, y, Z = shifted
    has_label = y != None  # noqa: E711 (element by element)
    model = MSDAClassifier(
        2, 0.6, CS, selection=selection, classifier="hinge", center="domains", dtype="float64", random_state=0
    ).fit(X, y, Z)
    H, T = built(X, Z, 0.6, 2, center=True)
    H, labels = H[has_label], y[has_label].astype(str)
    scale = np.mean((H**2).sum(axis=1))
    for own in model.selection_results_:
        splits = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(0))
        machine = partial(OneAgainstRest, own["C"] / scale)
        expected = RULES[selection](machine, H, labels, T, splits.split(labels, labels))
        assert abs(own["score"] - expected) < 1.5 / len(labels)  # a row on the border may fall either side


def test_the_paper_s_rule_is_sklearn_s_cross_validation(shifted):
    X, y, Z = shifted
    keep = y != None  # noqa: E711 (element by element)
    X, y = X[keep], y[keep].astype(str)
    options = {"center": "domains", "dtype": "float64", "n_folds": 4, "random_state": 1}
    model = MSDAClassifier(1, 0.5, [0.1, 1.0], **options).fit(X, y, Z)
    H, _ = built(X, Z, 0.5, 1, center=True)
    scale = np.mean((H**2).sum(axis=1))
    for own in model.selection_results_:
        folds = StratifiedKFold(4, shuffle=True, random_state=np.random.RandomState(1))
        found = cross_val_predict(ridge(own["C"] / scale), H, y, cv=folds)
        assert_allclose(own["score"], np.mean(found == y))


@pytest.mark.parametrize("selection", list(RULES))
@pytest.mark.parametrize("junk", ["shuffled", "one", "unknown", "missing"])
def test_labels_of_the_target_never_matter(shifted, selection, junk, rng):
    X, y, Z = shifted
    poison = {
        "shuffled": rng.permutation(np.resize(["low", "mid", "top"], len(Z))),
        "one": np.full(len(Z), "mid"),
        "unknown": np.full(len(Z), "no class of the source"),
        "missing": np.full(len(Z), np.nan),
    }[junk].astype(object)
    domain = np.repeat([0, -1], [len(X), len(Z)])
    model = MSDAClassifier(DEPTHS, NOISES, CS, selection=selection, random_state=0)
    expected = model.fit(X, y, Z).predict_proba(Z)
    results, params = model.selection_results_, model.best_params_
    model.fit(np.vstack([X, Z]), np.concatenate([y, poison]), sample_domain=domain)
    assert model.selection_results_ == results
    assert model.best_params_ == params
    assert_array_equal(model.predict_proba(Z), expected)


def test_a_choice_at_the_edge_is_a_warning_and_a_note(shifted):
    X, y, Z = shifted
    with pytest.warns(UndriftWarning, match=r"the chosen C=.* is at the edge of \[.*\]: a better value"):
        model = MSDAClassifier(1, 0.5, [1e-6, 1e6], random_state=0).fit(X, y, Z)
    assert len(model.selection_notes_) == 1
    assert "edge" in model.selection_notes_[0]
    assert model.selection_edges_ == ["C"]


def test_notes():
    grid = [
        Candidate(p, n, C, score=0.5) for p in (0.5, 0.6, 0.7) for n in (1, 2, 3) for C in (0.1, 1.0, 10.0)
    ]
    middle = Candidate(0.6, 2, 1.0, score=0.9)
    assert note_ties_and_edges(middle, [*grid, middle]) == []
    (tie,) = note_ties_and_edges(middle, [*grid, middle, Candidate(0.6, 2, 1.0, score=0.9)])
    assert str(tie) == "1 other candidate tied with the chosen one; the simplest was taken"
    later = Candidate(0.6, 2, 1.0, score=0.9)
    (kept,) = note_ties_and_edges(later, [*grid, middle, later])
    assert str(kept) == "1 other candidate tied with the chosen one; the preferred one was kept"
    better = Candidate(0.6, 2, 3.0, score=0.91)
    assert note_ties_and_edges(middle, [*grid, middle, later, better]) == []  # no tie for the highest
    corner = Candidate(0.7, 3, 1.0, score=0.9)
    assert len(note_ties_and_edges(corner, [*grid, corner])) == 2
    shallow = Candidate(0.6, 1, 1.0, score=0.9)
    assert note_ties_and_edges(shallow, [*grid, shallow]) == []  # fewer than one layer there cannot be
    alone = Candidate(0.5, 1, 1.0)
    assert note_ties_and_edges(alone, [alone]) == []


def test_the_first_of_equals_is_taken_and_said_so():
    X = np.tile(np.eye(2), (10, 1))
    model = MSDAClassifier([1, 2, 3], [0.4, 0.5], [0.5, 1.0], random_state=0).fit(X, np.tile([0, 1], 10))
    assert model.best_params_ == {"noise": 0.4, "n_layers": 1, "C": 0.5}
    assert "11 other candidates tied" in model.selection_notes_[0]
    assert model.selection_edges_ == ["noise", "C"]


def test_nothing_to_choose_needs_no_folds(shifted):
    X, _, Z = shifted
    few = MSDAClassifier(1, 0.5, 1.0).fit(X[:3], ["a", "b", "b"], Z)
    assert len(few.selection_results_) == 1
    assert np.isnan(few.selection_results_[0]["score"])
    assert few.selection_results_[0]["chosen"]


def test_grids_may_be_arrays_in_any_order(shifted):
    X, y, Z = shifted
    results = [
        MSDAClassifier(np.array([3, 1]), (0.8, 0.5), CS[::-1], random_state=0)
        .fit(X, y, Z)
        .selection_results_,
        MSDAClassifier([1, 3], [0.5, 0.8], CS, random_state=0).fit(X, y, Z).selection_results_,
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": [0.5, 1.0]}, "noise=1.0 must be"),
        ({"noise": []}, "noise=.* is empty"),
        ({"C": [1, 0]}, "C=0 must be above 0"),
        ({"n_layers": [1, 0]}, "n_layers=0 must be at least 1"),
        ({"selection": "oracle"}, "selection='oracle' is not known; choose one of 'source-cv', 'reverse'"),
        ({"classifier": "forest"}, "classifier='forest' is not known"),
    ],
)
def test_bad_grids(shifted, options, message):
    X, y, Z = shifted
    with pytest.raises(ValueError, match=message):
        MSDAClassifier(**options).fit(X, y, Z)


def test_reverse_needs_a_target(shifted):
    X, y, _ = shifted
    y = np.where(y == None, "low", y)  # noqa: E711 (element by element)
    with pytest.raises(ValueError, match="needs target rows"):
        MSDAClassifier(1, 0.5, [0.1, 1], selection="reverse").fit(X, y)


def test_too_few_rows_to_choose(shifted):
    X, _, Z = shifted
    with pytest.raises(ValueError, match="at least 2 labelled rows of every class"):
        MSDAClassifier(1, 0.5, [0.1, 1]).fit(X[:4], [0, 0, 0, 1], Z)


SEVERAL = check_grid([0.7, 0.6, 0.8], [3, 1], [1.0, 0.1])


def test_values_are_in_order_and_what_was_named_first_is_preferred():
    assert Grid((0.6, 0.7, 0.8), (1, 3), (0.1, 1.0), (0.7, 3, 1.0)) == SEVERAL
    assert SEVERAL.n_candidates == 12
    assert check_grid(0.5, np.array([2]), (3.0,)) == single_candidate(0.5, 2, 3.0)
    assert single_candidate(0.5, 2, 3.0).n_candidates == 1


@pytest.mark.parametrize("selection", ["one-se", "source-cv", "reverse"])
def test_all_is_offered_where_every_class_has_two_rows(selection):
    assert restrict_grid(SEVERAL, selection, np.array([0, 0, 1, 1]), has_target=True) is SEVERAL


def test_a_class_of_one_row_leaves_one_se_with_what_is_preferred():
    codes = np.array([0, 0, 0, 1])
    assert restrict_grid(SEVERAL, "one-se", codes, has_target=True) == single_candidate(0.7, 3, 1.0)
    assert restrict_grid(SEVERAL, "source-cv", codes, has_target=True) is SEVERAL  # which folds will refuse


def test_what_cannot_be_compared_is_refused():
    codes = np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match='selection="reverse" needs target rows'):
        restrict_grid(SEVERAL, "reverse", codes, has_target=False)
    for selection in ("one-se", "source-cv"):
        assert restrict_grid(SEVERAL, selection, codes, has_target=False) is SEVERAL
    alone = single_candidate(0.5, 1, 1.0)
    assert restrict_grid(alone, "reverse", codes, has_target=False) is alone


def test_the_odds_of_a_row_are_at_most_twenty_times_the_mean(rng):
    """One labelled row that looks like the target more than all others would decide alone."""
    rows = rng.normal(size=(300, 3))
    rows[:, 0] += np.repeat([-2, 2], [200, 100])
    rows[7, 0] = 30.0
    is_target, scores = np.repeat([-1, 1], [200, 100]), np.empty(300)
    even, odd = np.arange(0, 300, 2), np.arange(1, 300, 2)
    for half, other in ((even, odd), (odd, even)):
        scores[other] = Ridge(alpha=1.0).fit(rows[half], is_target[half]).predict(rows[other])
    odds = np.exp(2 * scores[:200])
    expected = np.minimum(odds, 20 * odds.mean())
    assert np.flatnonzero(expected < odds).tolist() == [7]
    assert_allclose(target_odds(rows @ rows.T, 200, 1.0), expected, rtol=1e-8)
