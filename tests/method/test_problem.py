"""The problem from the arguments of `fit`: domains, labels, weights."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone

from undrift import MSDAClassifier, UndriftWarning
from undrift.method.anchors import draw_labelled_rows
from undrift.method.problem import UNLABELLED, check_problem

X = np.arange(12.0).reshape(6, 2)
TARGET = np.full((3, 2), 7.0)
Y = [1, 0, 1, 0, 1, 0]


def make_problem(*args, **options):
    return check_problem(BaseEstimator(), *args, **options)


def labels_of(domains):
    return domains.classes[domains.y]


def test_plain_form():
    domains = make_problem(X, Y, TARGET)
    assert domains.names == ["source", "target"]
    assert domains.targets == ["target"]
    assert domains.target_positions == [1]
    assert_array_equal(domains.rows["source"], X)
    assert_array_equal(domains.rows["target"], TARGET)
    assert_array_equal(domains.labelled, X)
    assert_array_equal(labels_of(domains), Y)
    assert_array_equal(domains.domain, np.zeros(6))
    assert_array_equal(domains.position, np.arange(6))


def test_several_targets_have_their_names():
    domains = make_problem(X, Y, {"a": TARGET, "b": TARGET[:2] + 1, 3: sp.csr_array(TARGET[:1])})
    assert domains.names == ["source", "a", "b", 3]
    assert domains.sizes == [6, 3, 2, 1]
    assert_array_equal(domains.rows["b"], TARGET[:2] + 1)
    assert_array_equal(domains.rows[3].toarray(), TARGET[:1])
    several = make_problem(
        X, Y, {"kitchen": TARGET.tolist()}, sample_domain=[0, 0, 0, 1, 1, 1], dtype="float32"
    )
    assert (several.names, several.targets) == ([0, 1, "kitchen"], ["kitchen"])
    assert {rows.dtype for rows in several.rows.values()} == {np.dtype("float32")}
    with pytest.raises(TypeError, match="pass a dict that names them"):
        make_problem(X, Y, [TARGET, TARGET])


def test_source_rows_without_a_label_stay_in_the_source():
    domains = make_problem(X, [1, None, 1, 0, None, 0], TARGET)
    assert_array_equal(domains.rows["source"], X)
    assert_array_equal(domains.labelled, X[[0, 2, 3, 5]])
    assert_array_equal(domains.position, [0, 2, 3, 5])
    assert_array_equal(labels_of(domains), [1, 1, 0, 0])
    assert domains.classes.dtype.kind == "i"


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", "a", None, "b"],
        np.array(["a", None, "b", "a", np.nan, "b"], dtype=object),
        np.array([1, np.nan, 2, 1, np.nan, 2]),
    ],
)
def test_without_a_target_the_unlabelled_rows_are_it(y):
    domains = make_problem(X, y)
    assert domains.names == ["source", "target"]
    assert_array_equal(domains.rows["source"], X[[0, 2, 3, 5]])
    assert_array_equal(domains.rows["target"], X[[1, 4]])
    assert domains.classes.dtype.kind in "Uf"
    assert len(domains.classes) == 2


def test_minus_one_is_a_label_like_any_other():
    domains = make_problem(X, [-1, 1, -1, 1, -1, 1])
    assert (domains.names, domains.targets) == (["source"], [])
    assert_array_equal(labels_of(domains), [-1, 1, -1, 1, -1, 1])


@pytest.mark.parametrize("junk", [None, np.nan, "a", "never seen"])
def test_stacked_form_ignores_what_y_holds_for_target_rows(junk):
    y = np.array(["a", junk, "b", None, junk, "b"], dtype=object)
    domains = make_problem(X, y, sample_domain=[3, -2, 0, 0, -1, 0])
    assert domains.names == [0, 3, -1, -2]
    assert domains.n_sources == 2
    assert_array_equal(domains.rows[0], X[[2, 3, 5]])
    assert_array_equal(domains.rows[3], X[[0]])
    assert_array_equal(domains.rows[-2], X[[1]])
    assert_array_equal(domains.labelled, X[[2, 5, 0]])  # source by source
    assert_array_equal(labels_of(domains), ["b", "b", "a"])
    assert_array_equal(domains.domain, [0, 0, 1])
    assert_array_equal(domains.position, [0, 2, 0])


def test_rows_of_weight_0_and_labels_of_targets_are_codes():
    weight = [1, 2, 0, 3, 0.5, 1]
    domains = make_problem(X, Y, TARGET, sample_weight=weight)
    assert_array_equal(domains.codes["source"], [1, 0, UNLABELLED, 0, 1, 0])
    assert_array_equal(domains.weight, [1, 2, 3, 0.5, 1])
    assert_allclose(np.bincount(domains.y, domains.balanced_weight()), [3.75, 3.75])
    y_target = {"b": [None, 0, 1]}
    domains = make_problem(X, Y, {"a": TARGET, "b": X[:3]}, y_target=y_target)
    assert_array_equal(domains.codes["a"], [UNLABELLED] * 3)
    assert_array_equal(domains.codes["b"], [UNLABELLED, 0, 1])


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        ((X, None), {}, "requires y to be passed"),
        ((X, [1, 0]), {}, "inconsistent numbers of samples"),
        ((X, [1] * 6), {}, "only 1 class, .*1"),
        ((X, [None] * 6), {}, "no row has a label"),
        ((X, Y), {"sample_domain": [-1] * 6}, "no row has a label"),
        ((X, [0, 1, np.inf, 1, 0, 1]), {}, "y contains infinity"),
        ((X, [0.5, 1.5, 2.5, 0.1, 0.2, 0.3]), {}, "Unknown label type"),
        ((X, Y, TARGET), {"sample_domain": [0, 0, 0, 0, 0, -1]}, "leave X_target out"),
        ((X, Y), {"sample_domain": [0, 0]}, "one integer for each of the 6 rows"),
        ((X, Y), {"sample_domain": [0.5] * 6}, "one integer for each"),
        ((X, Y, TARGET[:, :1]), {}, "1 features.*expecting 2"),
        ((X, Y, TARGET * np.nan), {}, "contains NaN"),
        ((X, Y, {"source": TARGET}), {}, "choose another one"),
        ((X, Y), {"y_target": [0, 1, 0]}, "y_target goes with X_target"),
        ((X, Y, {"a": TARGET}), {"y_target": [0, 1, 0]}, "must be one too"),
        ((X, Y, {"a": TARGET}), {"y_target": {"b": [0, 1, 0]}}, "got the names"),
        ((X, Y, TARGET), {"y_target": [0, 1]}, "2 entries for 3 target rows"),
        ((X, Y), {"sample_weight": [1, 2]}, "one number for each of the 6 rows"),
        ((X, Y), {"sample_weight": [1, 2, -1, 1, 1, 1]}, "sample_weight of row 2 is -1"),
        ((X, Y), {"sample_weight": [1, 0, 1, 0, 1, 0]}, "zero for every row of class 0"),
    ],
)
def test_errors(args, options, message):
    with pytest.raises(ValueError, match=message):
        make_problem(*args, **options)


def test_labels_of_classes_that_the_source_lacks_are_left_out():
    with pytest.warns(UndriftWarning, match=r"y_target: 2 labels left out, .* source lacks \(7\)") as caught:
        problem = make_problem(X, Y, np.vstack([TARGET, [[9.0, 9.0]]]), y_target=[7, 1, None, 7])
    assert caught[0].message.code == "unknown-class"
    assert_array_equal(problem.codes["target"], [UNLABELLED, 1, UNLABELLED, UNLABELLED])


@pytest.mark.filterwarnings("ignore:rows of the target are")
def test_a_missing_value_among_strings_is_no_label(counts):
    y = ["good", "bad", *["good", "bad"] * 14, float("nan"), None, *["good"] * 28]
    series = pd.Series(["good", "bad", pd.NA, *["good"] * 57], dtype="string")
    for labels in (y, series):
        assert MSDAClassifier(1).fit(counts, labels).classes_.tolist() == ["bad", "good"]


def test_dense_source_and_sparse_target(counts):
    y = np.arange(60) % 2
    model = MSDAClassifier(1, random_state=0)
    sparse = clone(model).fit(counts, y, sp.csr_array(counts[:20]))
    dense = model.fit(counts, y, counts[:20])
    both = (fitted.decision_function(counts) for fitted in (sparse, dense))
    assert_allclose(*both, rtol=1e-3, atol=1e-4)


def test_rare_classes_are_among_the_rows_that_are_drawn():
    codes = np.zeros(1000, dtype=int)
    codes[[3, 700]] = 1
    for seed in range(20):
        drawn = draw_labelled_rows(codes, 50, np.random.RandomState(seed))
        assert len(drawn) == 50 == len(set(drawn))
        assert {3, 700} <= set(drawn)
        assert (np.diff(drawn) > 0).all()


def test_sparse_rows_are_not_copied_where_all_are_taken():
    X, Z = sp.csr_matrix(np.eye(4, dtype="float32")), sp.csr_matrix(np.eye(3, 4, dtype="float32"))
    domains = check_problem(MSDAClassifier(), X, np.array([0, 1, 0, 1]), Z)
    assert np.shares_memory(domains.labelled.data, X.data)
    assert np.shares_memory(domains.rows["source"].data, X.data)
