"""Candidates compared on fewer rows, the chosen one learnt with all of them."""

import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier
from undrift.classifier import selection as selection_module
from undrift.classifier import two_stage

pytestmark = pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")

N_COMPARED = 40
LISTS = {"n_layers": [2, 1], "noise": [0.6, 0.3], "C": [0.3, 30.0]}


@pytest.fixture
def rows(rng):
    """120 labelled rows in three classes, one of which has three rows, and 50 rows of a target."""
    y = np.where(np.arange(120) < 3, 2, np.arange(120) % 2)[rng.permutation(120)]
    X = rng.poisson(0.5 + 0.5 * rng.gamma(0.4, size=(3, 8))[y]).astype(float)
    return X, y, rng.poisson(0.3 + rng.gamma(0.4, size=(50, 8))).astype(float)


@pytest.fixture
def small_grams(monkeypatch):
    monkeypatch.setattr(two_stage, "LARGE_GRAM", 60)
    monkeypatch.setattr(two_stage, "COMPARED_ROWS", N_COMPARED)


@pytest.fixture
def anchors_seen(monkeypatch):
    """How many labelled rows and anchors every search had."""
    seen, real = [], two_stage.draw_anchors

    def spy(rows, keep, n_target, random_state):
        found = real(rows, keep, n_target, random_state)
        seen.append((found.n_labelled, found.X.shape[0]))
        return found

    monkeypatch.setattr(two_stage, "draw_anchors", spy)
    return seen


def drawn_by_hand(y, random_state):
    """Rows in random order, but the first two of every class before all others; 40 of them, ascending."""
    early, late, n_seen = [], [], {}
    for i in random_state.permutation(len(y)):
        n_seen[y[i]] = n_seen.get(y[i], 0) + 1
        (early if n_seen[y[i]] <= 2 else late).append(i)
    return np.sort((early + late)[:N_COMPARED])


def scores_by_hand(X, y, Z, selection, seed):
    """Scores of all candidates on the rows drawn, from the concatenation; the stack sees all rows."""
    random_state = np.random.RandomState(seed)
    keep = drawn_by_hand(y, np.random.RandomState(seed))
    labels = y[keep]
    splits = list(
        StratifiedKFold(min(5, np.bincount(labels).min()), shuffle=True, random_state=random_state).split(
            labels, labels
        )
    )
    scores = []
    for noise in (0.3, 0.6):
        for depth in (1, 2):
            rows = np.vstack([X, Z])
            H = np.hstack([rows, *(h for _, h in algorithm_2(rows, noise, depth))])
            T = H[len(X) :] - H[len(X) :].mean(axis=0)
            H = (H[: len(X)] - H[: len(X)].mean(axis=0))[keep]
            for C in (0.3, 30.0):
                machine = RidgeClassifier(alpha=np.mean((H**2).sum(axis=1)) / C, solver="cholesky")
                found = np.empty_like(labels)
                for train, test in splits:
                    machine.fit(H[train], labels[train])
                    if selection == "reverse":
                        machine.fit(T, machine.predict(T))
                    found[test] = machine.predict(H[test])
                scores.append(np.mean(found == labels))
    return scores


@pytest.mark.parametrize("selection", ["one-se", "source-cv", "reverse"])
def test_candidates_are_compared_on_fewer_rows(rows, small_grams, anchors_seen, selection):
    X, y, Z = rows
    options = {"selection": selection, "center": "domains", "dtype": "float64", "random_state": 3}
    model = MSDAClassifier(**LISTS, **options).fit(X, y, Z)
    n_target = 50 if selection == "reverse" else 0
    assert anchors_seen == [(40, 40 + n_target), (120, 120 + n_target)]
    expected = scores_by_hand(X, y, Z, selection, 3)
    assert len(set(expected)) >= 3
    assert_allclose([own["score"] for own in model.selection_results_], expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_every_class_is_among_them(rows, small_grams, monkeypatch, seed):
    X, y, Z = rows
    seen = []

    def rule(K, problem, Cs):
        seen.append(np.bincount(problem.codes, minlength=3))
        return np.zeros(len(Cs))

    monkeypatch.setattr("undrift.classifier.selection.source_cv", rule)
    MSDAClassifier(**LISTS, selection="one-se", random_state=seed).fit(X, y, Z)
    assert len(seen) == 4
    assert all(own.sum() == N_COMPARED and own.min() >= 2 for own in seen)


def test_rows_keep_their_weights_and_the_standard_error_is_that_of_the_rows_compared(
    rows, small_grams, monkeypatch
):
    """Ahead by .06: within the .078 of 40 rows, though beyond the .045 of all 120."""
    X, y, Z = rows
    weights, points = {0: 1.0, 1: 2.0, 2: 5.0}, iter(range(8))

    def rule(K, problem, Cs):
        assert problem.weight.tolist() == [weights[code] for code in problem.codes]
        return np.array([0.56 if next(points) == 0 else 0.5 for _ in Cs])

    monkeypatch.setattr("undrift.classifier.selection.source_cv", rule)
    options = {"selection": "one-se", "center": "domains", "class_weight": weights, "random_state": 0}
    model = MSDAClassifier(**LISTS, **options).fit(X, y, Z)
    assert model.best_params_ == {"noise": 0.6, "n_layers": 2, "C": 0.3}
    assert model.selection_results_[0]["score"] == 0.56


WAYS = {
    "plain": {},
    "the hinge, as they come": {"classifier": "hinge", "center": False},
    "learning from its own predictions": {
        "self_training": True,
        "balance_layers": True,
        "fallback": True,
    },
    "pivots and fewer upper rows": {"n_pivots": 5, "max_upper_rows": 60},
    "extra blocks": {},
}


@pytest.mark.filterwarnings("ignore:adaptation is likely not to help:undrift.UndriftWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("selection", ["one-se", "reverse"])
@pytest.mark.parametrize("best", [(0.6, 2, 0.3), (0.3, 1, 30.0)])
def test_the_chosen_one_is_that_of_a_fit_at_its_values(
    rows, rng, small_grams, monkeypatch, best, selection, way
):
    X, y, Z = rows
    points = iter([(p, n, C) for p in (0.3, 0.6) for n in (1, 2) for C in (0.3, 30.0)])

    def rule(K, problem, Cs):
        assert len(problem.codes) == N_COMPARED
        return np.array([0.9 if next(points) == best else 0.2 for _ in Cs])

    if selection == "one-se":
        monkeypatch.setattr("undrift.classifier.selection.source_cv", rule)
    else:
        monkeypatch.setitem(selection_module.RULES, "reverse", rule)
    extra = {}
    if way == "extra blocks":
        extra = {"extra": [rng.normal(size=(120, 3))], "extra_target": [rng.normal(size=(50, 3))]}
    options = {"dtype": "float64", "random_state": 3, **WAYS[way]}
    model = MSDAClassifier(**LISTS, selection=selection, **options).fit(X, y, Z, **extra)
    assert tuple(model.best_params_.values()) == best
    assert len(model.selection_results_) == 8
    assert [own["chosen"] for own in model.selection_results_].count(True) == 1
    noise, n_layers, C = best
    expected = MSDAClassifier(n_layers, noise, C, **options).fit(X, y, Z, **extra)
    seen = {"extra": extra["extra_target"]} if extra else {}
    assert_allclose(
        model.decision_function(Z, **seen), expected.decision_function(Z, **seen), rtol=1e-9, atol=1e-12
    )
    assert [len(own) for own in model.coef_] == [len(own) for own in expected.coef_]
    for own, other in zip(model.coef_, expected.coef_, strict=True):
        assert_allclose(own, other, rtol=1e-9, atol=1e-12)
    assert_allclose(model.representation_.transform(Z), expected.representation_.transform(Z), rtol=1e-9)
    if model.self_training:
        assert_allclose(model.temperature_, expected.temperature_, rtol=1e-9)
        assert model.caution_ == expected.caution_
        assert model.self_training_rounds_ == expected.self_training_rounds_
    for own, other in zip(model.extra_coef_, expected.extra_coef_, strict=True):
        for part, same in zip(own, other, strict=True):
            assert_allclose(part, same, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
def test_progress_counts_all_layers_whatever_depth_is_chosen(rows, small_grams, monkeypatch, capsys, depth):
    pytest.importorskip("sklearn.callback")
    X, y, Z = rows
    depths, told = iter([1, 2, 3] * 2), []

    class Counter:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **options):
            if context.task_name == "fit":
                told.append(context.max_subtasks)

        def on_fit_task_end(self, estimator, context, **options):
            told.append(context.task_name)

        def teardown(self, estimator, context):
            pass

    monkeypatch.setattr(
        "undrift.classifier.selection.source_cv", lambda K, problem, Cs: [float(next(depths) == depth)]
    )
    model = MSDAClassifier([1, 2, 3], [0.6, 0.3], 0.3, selection="one-se", verbose=True, random_state=0)
    model.set_callbacks(Counter()).fit(X, y, Z)
    assert len(model.representation_.layers_) == depth
    assert told == [9, *["layer"] * 9, "fit"]  # two stacks to compare, and one more
    lines = [line.split(" after ")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == [f"undrift: layer {i}/9" for i in range(1, 10)]


def test_gram_matrices_that_are_not_large_are_all_there_is(rows, monkeypatch, anchors_seen):
    """What counts is how many rows there are, not how many self-training would take."""
    X, y, Z = rows
    options = {"selection": "one-se", "self_training": True, "random_state": 0}
    monkeypatch.setattr(two_stage, "COMPARED_ROWS", N_COMPARED)
    for limit, expected in ((170, [(120, 170)]), (169, [(40, 40), (120, 170)])):
        anchors_seen.clear()
        monkeypatch.setattr(two_stage, "LARGE_GRAM", limit)
        MSDAClassifier(**LISTS, **options).fit(X, y, Z)
        assert anchors_seen == expected
        anchors_seen.clear()
        MSDAClassifier(**LISTS, **options).fit(X, y, [Z[:20], Z[20:]])
        assert anchors_seen == expected
    anchors_seen.clear()
    MSDAClassifier(2, 0.6, **options).fit(X, y, Z)  # nothing to compare
    assert anchors_seen == [(120, 170)]


def test_above_the_limit_of_a_gram_matrix_too(rows, small_grams, monkeypatch, anchors_seen):
    monkeypatch.setattr(two_stage, "GRAM_LIMIT", 80)
    X, y, Z = rows
    model = MSDAClassifier(**LISTS, selection="one-se", dtype="float64", random_state=3).fit(X, y, Z)
    assert anchors_seen == [(40, 40), (80, 130)]
    chosen = model.best_params_
    alone = MSDAClassifier(**chosen, dtype="float64", random_state=3).fit(X, y, Z)
    assert_allclose(model.decision_function(Z), alone.decision_function(Z), rtol=1e-9)


def test_the_comparison_is_freed_before_the_winner_is_refitted(rows, small_grams, monkeypatch):
    held, real = [], two_stage.TwoStageSearch.steps

    def spy(self):
        grams = []
        for _ in real(self):
            if self._comparison is not None:
                grams = [weakref.ref(self._comparison.result().chosen.K)]
            held.append((self._comparison is None, [gram() is None for gram in grams]))
            yield

    monkeypatch.setattr(two_stage.TwoStageSearch, "steps", spy)
    X, y, Z = rows
    MSDAClassifier(**LISTS, selection="one-se", random_state=0).fit(X, y, Z)
    assert held == [(False, [False])] * 4 + [(True, [True])] * 2


@pytest.mark.parametrize(
    ("most", "d", "n_rows", "memory", "expected"),
    [
        (5000, 20_000, 8000, 12e9, 5000),
        (5000, 20_000, 1000, 12e9, 4000),  # no more than four a row
        (5000, 20_000, 100, 12e9, 2500),  # but not very few
        (2500, 20_000, 8000, 12e9, 2500),
        (5000, 300, 8000, 12e9, 5000),  # which is every feature
    ],
)
def test_pivots_are_limited_by_rows(most, d, n_rows, memory, expected):
    assert two_stage.limit_pivots(most, d, n_rows, 5, memory) == expected


@pytest.mark.parametrize("d", [5000, 20_000, 100_000])
def test_pivots_are_limited_by_memory(d):
    """Layers and systems take half of it."""
    p = two_stage.limit_pivots(10**6, d, 10**6, 5, 2e9)
    numbers = [d * p, *[p * p] * 4, *[p * p] * 4]  # layers, and what solving the largest system holds
    assert 0.99e9 < 4 * sum(numbers) <= 1e9


@pytest.mark.parametrize(("n_pivots", "most"), [("auto", 8), ("few", 4)])
def test_pivots_chosen_by_name(monkeypatch, n_pivots, most):
    """As with their number; with no more features than that, every feature is reconstructed."""
    monkeypatch.setattr(two_stage, "MOST_PIVOTS", {"auto": 8, "few": 4})
    monkeypatch.setattr(two_stage, "LEAST_PIVOTS", 1)
    rng = np.random.default_rng(0)
    X, y, Z = rng.poisson(0.4, (40, 12)), np.arange(40) % 2, rng.poisson(0.4, (30, 12))
    options = {"n_layers": 2, "random_state": 0}
    chosen = MSDAClassifier(n_pivots=n_pivots, **options).fit(X, y, Z)
    given = MSDAClassifier(n_pivots=most, **options).fit(X, y, Z)
    assert chosen.representation_.n_pivots == most
    np.testing.assert_array_equal(chosen.decision_function(Z), given.decision_function(Z))
    whole = MSDAClassifier(n_pivots=n_pivots, **options).fit(X[:, :most], y, Z[:, :most])
    assert whole.representation_.n_pivots is None
    with pytest.raises(ValueError, match="n_pivots='some' is not known"):
        MSDAClassifier(n_pivots="some").fit(X, y, Z)


@pytest.mark.parametrize("options", [{}, {"n_pivots": 5}, {"self_training": True}], ids=str)
def test_no_anchor_passes_a_layer_twice_where_memory_allows(rows, options):
    X, y, Z = rows
    passed = {}
    for budget in ("1 GB", 1000.0):
        model = MSDAClassifier(2, 0.6, memory_budget=budget, random_state=0, **options)
        fit = model._prepare(X, y, Z)
        model._run(fit)
        assert (fit.search.result().hidden is not None) == (budget == "1 GB")
        passed[budget] = model.decision_function(Z)
    assert_allclose(passed["1 GB"], passed[1000.0], atol=1e-5)
    with_choice = MSDAClassifier(2, [0.6, 0.3], random_state=0)
    fit = with_choice._prepare(X, y, Z)
    with_choice._run(fit)
    assert fit.search.result().hidden is None


def test_target_rows_and_parts_are_drawn_alike_however_many_labelled_rows_are_anchors(rows, monkeypatch):
    X, y, Z = rows
    searches, real = [], two_stage.Search

    def spy(*args):
        searches.append(real(*args))
        return searches[-1]

    monkeypatch.setattr(two_stage, "Search", spy)
    monkeypatch.setattr("undrift.classifier.anchors.RULE_ROWS", 20)
    for limit in (119, 120):
        monkeypatch.setattr(two_stage, "GRAM_LIMIT", limit)
        MSDAClassifier(1, 0.5, n_pivots=3, random_state=4, fallback=True).fit(X, y, Z)
    anchors = [search.spec.anchors for search in searches]
    positions = [a.position[a.n_labelled :].tolist() for a in anchors]
    assert [a.n_labelled for a in anchors] == [119, 120]
    assert len(positions[0]) == 20
    assert positions[0] == positions[1]
    parts = [[part.tolist() for part in search.result().split.parts] for search in searches]
    assert len(parts[0]) > 1
    assert parts[0] == parts[1]
