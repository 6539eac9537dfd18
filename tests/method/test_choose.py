"""The choice among lists of values, against cross-validation on explicit features."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedKFold

from tests.helpers.exact import ExactClassifier
from tests.helpers.explicit import solve, to_signs
from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier
from undrift.core import Layer
from undrift.method.fit import Grid, check_grid

NOISES, DEPTHS, CS = [0.5, 0.8], [1, 3], [0.03, 0.3, 3.0]


@pytest.fixture
def shifted(rng):
    """Source rows, labels in three classes (or none), and target rows in which features changed places."""
    topics = rng.gamma(0.5, size=(90, 3))
    words = rng.gamma(0.5, size=(3, 8))
    X = rng.poisson(topics @ words + 0.1) + np.linspace(0, 0.01, 90)[:, None]  # all rows differ
    y = np.array(["low", "mid", "top"])[np.argmax(topics + 0.3 * rng.normal(size=(90, 3)), axis=1)]
    y = y.astype(object)
    y[::10] = None
    Z = rng.poisson(rng.gamma(0.5, size=(50, 3)) @ words[:, [1, 0, 2, 3, 4, 5, 7, 6]] + 0.1).astype(float)
    return X, y, Z


def built(X, Z, y, noise, depth, is_centred):
    """[h^0 ... h^l] of source and target, written out, every layer of mean square norm 1."""
    both, pieces = np.vstack([X, Z]), []
    for H in [both, *(h for _, h in algorithm_2(both, noise, depth))]:
        means = np.array([H[: len(X)].mean(axis=0), H[len(X) :].mean(axis=0)])
        domain = np.repeat([0, 1], [len(X), len(Z)])
        size = np.mean(((H - means[domain]) ** 2).sum(axis=1))
        midpoint = np.mean([H[: len(X)][y == label].mean(axis=0) for label in np.unique(y)], axis=0)
        centres = np.array([midpoint, means[1] if is_centred else midpoint])
        pieces.append((H - centres[domain]) / np.sqrt(size))
    built = np.hstack(pieces)
    return built[: len(X)], built[len(X) :]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", ["domains", False])
def test_scores_are_those_of_cross_validation_on_explicit_features(shifted, center, form):
    X, y, Z = shifted
    has_label = y != None  # noqa: E711 (element by element)
    X, y = X[has_label], y[has_label].astype(str)
    options = {"center": center, "self_training": False, "random_state": 3}
    model = ExactClassifier(DEPTHS, NOISES, CS, **options).fit(form(X), y, form(Z))
    codes, expected = np.unique(y, return_inverse=True)[1], []
    whole = np.bincount(codes)
    for noise in NOISES:
        for depth in DEPTHS:
            H = built(X, Z, y, noise, depth, center == "domains")[0]
            size = np.mean((H**2).sum(axis=1))
            for C in CS:
                folds = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(3))
                right = []
                for train, test in folds.split(H, codes):
                    weight = (len(codes) / (3 * whole))[codes[train]]
                    w, b = solve(H[train], to_signs(codes[train], 3), C / size, weight)
                    right.append((H[test] @ w + b).argmax(axis=1) == codes[test])
                score = np.mean(np.concatenate(right))
                expected.append({"noise": noise, "n_layers": depth, "C": C, "score": score})
    names = ("noise", "n_layers", "C", "score")
    found = [{name: own[name] for name in names} for own in model.selection_results_]
    assert len({own["score"] for own in expected}) > 3
    assert [own | {"score": None} for own in found] == [own | {"score": None} for own in expected]
    assert_allclose([own["score"] for own in found], [own["score"] for own in expected], rtol=1e-12)
    best = expected[int(np.argmax([own["score"] for own in expected]))]
    assert model.best_params_ == {name: best[name] for name in names[:3]}
    assert [own["chosen"] for own in model.selection_results_].count(True) == 1
    H, T = built(X, Z, y, best["noise"], best["n_layers"], center == "domains")
    size, weight = np.mean((H**2).sum(axis=1)), (len(codes) / (3 * whole))[codes]
    w, b = solve(H, to_signs(codes, 3), best["C"] / size, weight)
    (reading,) = model._last.verdict.readings
    assert_allclose(reading.scores, T @ w + b, rtol=1e-8, atol=1e-8)


def test_no_row_is_pushed_through_a_layer_twice(shifted, spy):
    """But the anchors that are trained on, for the weights of the candidate that is chosen from several."""
    X, y, Z = shifted
    calls = spy(Layer, "__call__")

    def count_rows():
        passed = Counter()
        for layer, rows, *_ in calls:
            passed[id(layer)] += rows.shape[0]
        return passed.values()

    MSDAClassifier(2, 0.3, random_state=3, n_pivots=None).fit(X, y, Z)
    assert set(count_rows()) <= {0, 140}  # 0 where a layer was applied by its factors
    calls.clear()
    model = MSDAClassifier([1, 2], [0.3, 0.5, 0.8], random_state=3).fit(X, y, Z)
    n_again = sum(n - 140 for n in count_rows() if n)
    assert n_again in (0, model.best_params_["n_layers"] * 131)


@pytest.mark.parametrize("junk", ["shuffled", "one", "unknown", "missing"])
def test_labels_of_the_target_never_matter(shifted, junk, rng):
    X, y, Z = shifted
    poison = {
        "shuffled": rng.permutation(np.resize(["low", "mid", "top"], len(Z))),
        "one": np.full(len(Z), "mid"),
        "unknown": np.full(len(Z), "no class of the source"),
        "missing": np.full(len(Z), np.nan),
    }[junk].astype(object)
    domain = np.repeat([0, -1], [len(X), len(Z)])
    model = MSDAClassifier(DEPTHS, NOISES, CS, random_state=0)
    expected = model.fit(X, y, Z).predict_proba(Z)
    results, params = model.selection_results_, model.best_params_
    model.fit(np.vstack([X, Z]), np.concatenate([y, poison]), sample_domain=domain)
    assert model.selection_results_ == results
    assert model.best_params_ == params
    assert_array_equal(model.predict_proba(Z), expected)


def test_few_rows_and_equal_candidates(shifted):
    X, _, Z = shifted
    few = MSDAClassifier(1, 0.5, 1.0).fit(X[:3], ["a", "b", "b"], Z)
    assert len(few.selection_results_) == 1
    assert np.isnan(few.selection_results_[0]["score"])
    assert few.selection_results_[0]["chosen"]
    X, _, Z = shifted
    with pytest.raises(ValueError, match="at least 2 labelled rows of every class"):
        MSDAClassifier(1, 0.5, [0.1, 1]).fit(X[:4], [0, 0, 0, 1], Z)
    X = np.tile(np.eye(2), (10, 1))
    model = MSDAClassifier([1, 2, 3], [0.4, 0.5], [0.5, 1.0], random_state=0).fit(X, np.tile([0, 1], 10))
    assert model.best_params_ == {"noise": 0.4, "n_layers": 1, "C": 0.5}


def test_grids_may_be_arrays_in_any_order(shifted):
    X, y, Z = shifted
    grids = (np.array([3, 1]), (0.8, 0.5), CS[::-1]), ([1, 3], [0.5, 0.8], CS)
    results = [MSDAClassifier(*grid, random_state=0).fit(X, y, Z).selection_results_ for grid in grids]
    assert results[0] == results[1]
    assert check_grid([0.7, 0.6, 0.8], [3, 1], 1.0) == Grid((0.6, 0.7, 0.8), (1, 3), (1.0,))
    assert check_grid([0.7, 0.6, 0.8], [3, 1], 1.0).n_candidates == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": [0.5, 1.0]}, "noise=1.0 must be"),
        ({"noise": []}, "noise=.* is empty"),
        ({"C": [1, 0]}, "C=0 must be above 0"),
        ({"n_layers": [1, 0]}, "n_layers=0 must be at least 1"),
    ],
)
def test_bad_grids(shifted, options, message):
    X, y, Z = shifted
    with pytest.raises(ValueError, match=message):
        MSDAClassifier(**options).fit(X, y, Z)
