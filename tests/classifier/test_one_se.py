"""The one-standard-error rule: what is named first is kept unless another candidate is clearly better."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from undrift import MSDAClassifier, UndriftWarning
from undrift.classifier.selection import RULES, Candidate, choose_candidate, find_rule, is_clearly_better

pytestmark = pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")

PREFERRED = (0.6, 2, 0.3)
LISTS = {"noise": [0.6, 0.5, 0.8], "n_layers": [2, 1, 3], "C": [0.3, 0.03, 3.0]}
GRID = [(p, n, C) for p in (0.5, 0.6, 0.8) for n in (1, 2, 3) for C in (0.03, 0.3, 3.0)]


@pytest.mark.parametrize(
    ("best", "preferred", "n", "clear"),
    [
        (0.5, 0.375, 16, False),  # ahead by the standard error, sqrt(1/4 / 16) = 1/8, to the last bit
        (0.5, 0.375 - 2**-20, 16, True),
        (0.5, 0.375 + 2**-20, 16, False),
        (0.5, 0.375, 17, True),
        (0.5, 0.375, 15, False),
        (0.9375, 0.875, 15, False),  # sqrt(15/16 * 1/16 / 15) = 1/16
        (0.9375, 0.86, 15, True),  # the error of the better, not of the preferred: that is 0.09
        (1.0, 1.0, 10, False),
        (1.0, 0.9, 10, True),  # nothing wrong: no error
        (0.0, 0.0, 10, False),
    ],
)
def test_clearly_better_is_by_more_than_a_standard_error(best, preferred, n, clear):
    assert is_clearly_better(best, preferred, n) is clear


def graded(scores):
    """Candidates of one noise and C each, from less to more noise."""
    return [Candidate(noise, 1, 1.0, score) for noise, score in scores.items()]


def test_the_chosen_one():
    own = graded({0.5: 0.52, 0.6: 0.50, 0.7: 0.56, 0.8: 0.56})
    preferred = (0.6, 1, 1.0)
    assert choose_candidate(own, "source-cv", preferred, 100).noise == 0.7  # the first of equals
    assert choose_candidate(own, "reverse", preferred, 100).noise == 0.7
    assert choose_candidate(own, "one-se", preferred, 100).noise == 0.7  # .06 above, beyond .0496
    assert choose_candidate(own, "one-se", preferred, 60).noise == 0.6  # within .064
    assert choose_candidate(own, "one-se", (0.5, 1, 1.0), 100).noise == 0.5  # .04 above
    assert choose_candidate(own, "one-se", (0.8, 1, 1.0), 100).noise == 0.8  # a tie with one that comes first


def test_it_is_scored_by_cross_validation_on_the_source():
    assert find_rule("one-se") is RULES["source-cv"]
    assert all(find_rule(name) is rule for name, rule in RULES.items())


@pytest.fixture
def rows(rng):
    """100 labelled rows of two classes, and 40 rows of a target."""
    y = np.arange(100) % 2
    X = rng.poisson(0.5 + 0.7 * y[:, None] * rng.gamma(0.3, size=8)).astype(float)
    return X, y, rng.poisson(rng.gamma(0.5, size=(40, 1)) + rng.gamma(0.5, size=8)).astype(float)


@pytest.fixture
def told(monkeypatch):
    """Replace cross-validation by what the test says; 0.5 where it says nothing."""

    def tell(scores):
        points = iter(GRID)

        def rule(K, problem, Cs):
            assert len(problem.codes) == 100
            return np.array([scores.get(next(points), 0.5) for _ in Cs])

        monkeypatch.setattr("undrift.classifier.selection.source_cv", rule)

    return tell


def assert_same_classifier(found, expected, Z):
    assert_allclose(found.decision_function(Z), expected.decision_function(Z), rtol=1e-9, atol=1e-12)
    for own, other in ((found.coef_, expected.coef_), (found.intercept_, expected.intercept_)):
        assert len(own) == len(other)
        for part, same in zip(own, other, strict=True):
            assert_allclose(part, same, rtol=1e-9, atol=1e-12)
    assert found.representation_.n_layers == expected.representation_.n_layers
    assert found.representation_.noise == expected.representation_.noise
    assert_allclose(
        found.representation_.transform(Z), expected.representation_.transform(Z), rtol=1e-9, atol=1e-12
    )


def single(point, **options):
    noise, n_layers, C = point
    return MSDAClassifier(n_layers, noise, C, dtype="float64", random_state=0, **options)


OTHERS = [(0.5, 3, 3.0), (0.6, 1, 0.3), (0.6, 2, 0.03), (0.6, 3, 3.0), (0.8, 2, 0.3)]
WAYS = [
    {},
    {"center": False, "classifier": "hinge"},
    {"balance_layers": True, "self_training": True},
]


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("score", "clear"), [(0.54, False), (0.56, True)])  # standard errors .0498, .0496
def test_the_first_values_are_kept_unless_another_is_clearly_better(rows, told, other, score, clear, options):
    X, y, Z = rows
    told({other: score})
    model = MSDAClassifier(**LISTS, selection="one-se", dtype="float64", random_state=0, **options)
    model.fit(X, y, Z)
    chosen = other if clear else PREFERRED
    assert tuple(model.best_params_.values()) == chosen
    results = model.selection_results_
    assert [(own["noise"], own["n_layers"], own["C"]) for own in results] == GRID
    assert [own["score"] for own in results] == [score if point == other else 0.5 for point in GRID]
    assert [own["chosen"] for own in results] == [point == chosen for point in GRID]
    expected = single(chosen, **options).fit(X, y, Z)
    assert_same_classifier(model, expected, Z)
    if "self_training" in options:
        assert_allclose(model.predict_proba(Z), expected.predict_proba(Z), rtol=1e-9)
        assert model.self_training_rounds_ == expected.self_training_rounds_


def test_the_order_of_a_list_says_what_is_preferred(rows, told):
    X, y, Z = rows
    noises = []
    for first in ([0.5, 0.6, 0.8], [0.8, 0.5, 0.6]):
        told({(0.6, 3, 3.0): 0.54})
        lists = LISTS | {"noise": first}
        model = MSDAClassifier(**lists, selection="one-se", random_state=0).fit(X, y, Z)
        noises.append(model.best_params_["noise"])
        assert (model.best_params_["n_layers"], model.best_params_["C"]) == (2, 0.3)
    assert noises == [0.5, 0.8]


def test_real_scores_are_those_of_source_cv(rows):
    X, y, Z = rows
    free = MSDAClassifier(**LISTS, selection="source-cv", random_state=0).fit(X, y, Z)
    scores = [own["score"] for own in free.selection_results_]
    best, worst = max(scores), min(scores)
    assert 0 < best - worst < np.sqrt(best * (1 - best) / 100)
    preferred = GRID[scores.index(worst)]
    names = ("noise", "n_layers", "C")
    lists = {name: [own, *LISTS[name]] for name, own in zip(names, preferred, strict=True)}
    lists = {name: list(dict.fromkeys(own)) for name, own in lists.items()}
    model = MSDAClassifier(**lists, selection="one-se", random_state=0).fit(X, y, Z)
    assert [own["score"] for own in model.selection_results_] == scores
    assert tuple(model.best_params_.values()) == preferred
    assert tuple(free.best_params_.values()) == GRID[scores.index(best)]


def test_a_class_of_one_row_takes_the_first_values(rows):
    X, y, Z = rows
    y = np.where(np.arange(100) == 7, 2, y)
    model = MSDAClassifier(**LISTS, selection="one-se", dtype="float64", random_state=0).fit(X, y, Z)
    assert tuple(model.best_params_.values()) == PREFERRED
    (only,) = model.selection_results_
    assert (np.isnan(only["score"]), only["chosen"]) == (True, True)
    assert_same_classifier(model, single(PREFERRED).fit(X, y, Z), Z)
    assert_array_equal(model.classes_, [0, 1, 2])
    with pytest.raises(ValueError, match="at least 2 labelled rows of every class"):
        MSDAClassifier(**LISTS, selection="source-cv").fit(X, y, Z)


def test_a_tie_is_told_as_what_it_was(rows, told):
    X, y, Z = rows
    told({})
    model = MSDAClassifier(**LISTS, selection="one-se", random_state=0).fit(X, y, Z)
    assert tuple(model.best_params_.values()) == PREFERRED
    (note,) = model.selection_notes_
    assert note == "26 other candidates tied with the chosen one; the preferred one was kept"


def test_no_target_is_needed(rows):
    X, y, _ = rows
    model = MSDAClassifier(**LISTS, selection="one-se", random_state=0).fit(X, y)
    assert len(model.selection_results_) == 27


def test_a_choice_at_the_edge_is_still_a_warning(rows, told):
    X, y, Z = rows
    told({(0.8, 2, 0.3): 0.9})
    with pytest.warns(UndriftWarning, match=r"the chosen noise=0.8 is at the edge of \[0.5, 0.6, 0.8\]"):
        MSDAClassifier(**LISTS, selection="one-se", random_state=0).fit(X, y, Z)


def test_values_that_are_kept_are_no_edge(rows, told):
    X, y, Z = rows
    told({})
    model = MSDAClassifier([3, 1], [0.8, 0.5], 1.0, selection="one-se", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, Z)
    assert model.best_params_ == {"noise": 0.8, "n_layers": 3, "C": 1.0}
    assert not [note for note in model.selection_notes_ if "edge" in note]
