"""Domains from what `fit` is given, and the domain of rows that are predicted."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone

from undrift import MSDAClassifier
from undrift.method.domains import UNLABELLED, check_domains
from undrift.method.solve import draw_labelled_rows

X = np.arange(12.0).reshape(6, 2)
TARGET = np.full((3, 2), 7.0)
Y = [1, 0, 1, 0, 1, 0]


def domains_of(*args, **options):
    return check_domains(BaseEstimator(), *args, **options)


def labels_of(domains):
    return domains.classes[domains.y]


def test_plain_form():
    domains = domains_of(X, Y, TARGET)
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
    domains = domains_of(X, Y, {"a": TARGET, "b": TARGET[:2] + 1, 3: sp.csr_array(TARGET[:1])})
    assert domains.names == ["source", "a", "b", 3]
    assert domains.sizes == [6, 3, 2, 1]
    assert_array_equal(domains.rows["b"], TARGET[:2] + 1)
    assert_array_equal(domains.rows[3].toarray(), TARGET[:1])
    several = domains_of(
        X, Y, {"kitchen": TARGET.tolist()}, sample_domain=[0, 0, 0, 1, 1, 1], dtype="float32"
    )
    assert (several.names, several.targets) == ([0, 1, "kitchen"], ["kitchen"])
    assert {rows.dtype for rows in several.rows.values()} == {np.dtype("float32")}
    with pytest.raises(TypeError, match="pass a dict that names them"):
        domains_of(X, Y, [TARGET, TARGET])


def test_source_rows_without_a_label_stay_in_the_source():
    domains = domains_of(X, [1, None, 1, 0, None, 0], TARGET)
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
    domains = domains_of(X, y)
    assert domains.names == ["source", "target"]
    assert_array_equal(domains.rows["source"], X[[0, 2, 3, 5]])
    assert_array_equal(domains.rows["target"], X[[1, 4]])
    assert domains.classes.dtype.kind in "Uf"
    assert len(domains.classes) == 2


def test_minus_one_is_a_label_like_any_other():
    domains = domains_of(X, [-1, 1, -1, 1, -1, 1])
    assert (domains.names, domains.targets) == (["source"], [])
    assert_array_equal(labels_of(domains), [-1, 1, -1, 1, -1, 1])


@pytest.mark.parametrize("junk", [None, np.nan, "a", "never seen"])
def test_stacked_form_ignores_what_y_holds_for_target_rows(junk):
    y = np.array(["a", junk, "b", None, junk, "b"], dtype=object)
    domains = domains_of(X, y, sample_domain=[3, -2, 0, 0, -1, 0])
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
    domains = domains_of(X, Y, TARGET, sample_weight=weight)
    assert_array_equal(domains.codes["source"], [1, 0, UNLABELLED, 0, 1, 0])
    assert_array_equal(domains.weight, [1, 2, 3, 0.5, 1])
    assert_allclose(np.bincount(domains.y, domains.balanced_weight()), [3.75, 3.75])
    y_target = {"b": [None, 0, 1]}
    domains = domains_of(X, Y, {"a": TARGET, "b": X[:3]}, y_target=y_target)
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
        ((X, Y, TARGET), {"y_target": [0, 7, 0]}, "holds 7, which is not a class"),
        ((X, Y), {"sample_weight": [1, 2]}, "one number for each of the 6 rows"),
        ((X, Y), {"sample_weight": [1, 2, -1, 1, 1, 1]}, "sample_weight of row 2 is -1"),
        ((X, Y), {"sample_weight": [1, 0, 1, 0, 1, 0]}, "0 for every row of class 0"),
    ],
)
def test_errors(args, options, message):
    with pytest.raises(ValueError, match=message):
        domains_of(*args, **options)


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


def test_domains_by_number_are_those_of_the_fit(counts):
    y, domain = np.arange(60) % 2, np.repeat([0, 1, -1], 20)
    found = MSDAClassifier(1).fit(counts, y, sample_domain=domain)
    bare = found._score_rows(counts.astype("float32"))[:, 0]
    expected = bare + found.intercept_[np.repeat([0, 1, 2], 20), 0]
    assert_allclose(found.decision_function(counts, sample_domain=domain), expected, rtol=1e-6)
    assert_allclose(found.decision_function(counts), bare + found.intercept_[2, 0], rtol=1e-6)
    with pytest.raises(ValueError, match=r"sample_domain holds \[-7\]"):
        found.predict(counts, sample_domain=-7)
    with pytest.raises(ValueError, match="either target or sample_domain"):
        found.predict(counts, target=-1, sample_domain=domain)
    named = MSDAClassifier(1).fit(counts, y, {"a": counts[:20] + 1, "b": counts[20:] * 2})
    with pytest.raises(ValueError, match="2 targets; name one of them: target='a', 'b'"):
        named.predict(counts)
    with pytest.raises(ValueError, match="target='c' is not among them"):
        named.predict(counts, target="c")


def test_without_targets_sources_are_pooled_by_their_sizes(counts):
    y, domain = np.arange(60) % 2, np.repeat([0, 1], [20, 40])
    found = MSDAClassifier(1, center="domains").fit(counts, y, sample_domain=domain)
    pooled = found.intercept_[0, 0] / 3 + 2 * found.intercept_[1, 0] / 3
    bare = found._score_rows(counts.astype("float32"))[:, 0]
    assert_allclose(found.decision_function(counts), bare + pooled, rtol=1e-6)


def test_sparse_rows_are_not_copied_where_all_are_taken():
    X, Z = sp.csr_matrix(np.eye(4, dtype="float32")), sp.csr_matrix(np.eye(3, 4, dtype="float32"))
    domains = check_domains(MSDAClassifier(), X, np.array([0, 1, 0, 1]), Z)
    assert np.shares_memory(domains.labelled.data, X.data)
    assert np.shares_memory(domains.rows["source"].data, X.data)
