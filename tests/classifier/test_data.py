import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone

from undrift import MSDAClassifier
from undrift.classifier.anchors import draw_labelled_rows
from undrift.classifier.data import check_training_rows

X = np.arange(12.0).reshape(6, 2)
TARGET = np.full((3, 2), 7.0)


def rows_of(*args, **options):
    return check_training_rows(BaseEstimator(), *args, **options)


def test_plain_form():
    rows = rows_of(X, [1, 0, 1, 0, 1, 0], TARGET)
    assert list(rows.domains) == [0, -1]
    assert rows.targets == [-1]
    assert_array_equal(rows.domains[0], X)
    assert_array_equal(rows.domains[-1], TARGET)
    assert_array_equal(rows.labelled, X)
    assert_array_equal(rows.y, [1, 0, 1, 0, 1, 0])
    assert_array_equal(rows.domain, np.zeros(6))


def test_several_targets_are_domains_of_their_own():
    rows = rows_of(X, [1, 0, 1, 0, 1, 0], [TARGET, TARGET[:2] + 1, sp.csr_array(TARGET[:1])])
    assert list(rows.domains) == [0, -1, -2, -3]
    assert_array_equal(rows.domains[-2], TARGET[:2] + 1)
    assert_array_equal(rows.domains[-3].toarray(), TARGET[:1])


def test_a_list_of_lists_is_one_target():
    rows = rows_of(X, [1, 0, 1, 0, 1, 0], TARGET.tolist())
    assert list(rows.domains) == [0, -1]
    assert_array_equal(rows.domains[-1], TARGET)


def test_source_rows_without_a_label_stay_in_the_source():
    rows = rows_of(X, [1, None, 1, 0, None, 0], TARGET)
    assert_array_equal(rows.domains[0], X)
    assert_array_equal(rows.labelled, X[[0, 2, 3, 5]])
    assert_array_equal(rows.y, [1, 1, 0, 0])
    assert rows.y.dtype.kind == "i"


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", "a", None, "b"],
        np.array(["a", None, "b", "a", np.nan, "b"], dtype=object),
        np.array([1, np.nan, 2, 1, np.nan, 2]),
    ],
)
def test_without_a_target_the_unlabelled_rows_are_it(y):
    rows = rows_of(X, y)
    assert list(rows.domains) == [0, -1]
    assert_array_equal(rows.domains[0], X[[0, 2, 3, 5]])
    assert_array_equal(rows.domains[-1], X[[1, 4]])
    assert rows.y.dtype.kind in "Uf"
    assert len(set(rows.y.tolist())) == 2


def test_all_labelled_and_no_target_is_one_domain():
    rows = rows_of(X, [1, 0, 1, 0, 1, 0])
    assert list(rows.domains) == [0]
    assert rows.targets == []


def test_minus_one_is_a_label_like_any_other():
    rows = rows_of(X, [-1, 1, -1, 1, -1, 1])
    assert list(rows.domains) == [0]
    assert_array_equal(rows.y, [-1, 1, -1, 1, -1, 1])


@pytest.mark.parametrize("junk", [None, np.nan, "a", "never seen"])
def test_stacked_form_ignores_what_y_holds_for_target_rows(junk):
    y = np.array(["a", junk, "b", None, junk, "b"], dtype=object)
    rows = rows_of(X, y, sample_domain=[3, -2, 0, 0, -1, 0])
    assert list(rows.domains) == [0, 3, -1, -2]
    assert_array_equal(rows.domains[0], X[[2, 3, 5]])
    assert_array_equal(rows.domains[3], X[[0]])
    assert_array_equal(rows.domains[-2], X[[1]])
    assert_array_equal(rows.labelled, X[[0, 2, 5]])
    assert_array_equal(rows.y, ["a", "b", "b"])
    assert_array_equal(rows.domain, [3, 0, 0])


def test_rows_take_the_precision_asked_for():
    rows = rows_of(X, [1, 0, 1, 0, 1, 0], TARGET, dtype="float32")
    assert {own.dtype for own in rows.domains.values()} == {np.dtype("float32")}
    assert rows_of(X, [1, 0, 1, 0, 1, 0], dtype="float64").labelled.dtype == np.float64


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        ((X, None), {}, "requires y to be passed"),
        ((X, [1, 0]), {}, "inconsistent numbers of samples"),
        ((X, [1] * 6), {}, "only 1 class, .*1"),
        ((X, [None] * 6), {}, "no row has a label"),
        ((X, [0, 1, 0, 1, 0, 1]), {"sample_domain": [-1] * 6}, "no row has a label"),
        ((X, [0, 1, np.inf, 1, 0, 1]), {}, "y contains infinity"),
        ((X, [0.5, 1.5, 2.5, 0.1, 0.2, 0.3]), {}, "Unknown label type"),
        ((X, [0, 1, 0, 1, 0, 1], TARGET), {"sample_domain": [0] * 6}, "not both"),
        ((X, [0, 1, 0, 1, 0, 1]), {"sample_domain": [0, 0]}, "one integer for each of the 6 rows"),
        ((X, [0, 1, 0, 1, 0, 1]), {"sample_domain": [0.5] * 6}, "one integer for each"),
        ((X, [0, 1, 0, 1, 0, 1], TARGET[:, :1]), {}, "1 features.*expecting 2"),
        ((X, [0, 1, 0, 1, 0, 1], TARGET * np.nan), {}, "contains NaN"),
    ],
)
def test_errors(args, options, message):
    with pytest.raises(ValueError, match=message):
        rows_of(*args, **options)


def test_a_nan_in_a_list_of_strings_is_no_label(counts):
    y = ["good", "bad", *["good", "bad"] * 14, float("nan"), None, *["good"] * 28]
    found = MSDAClassifier(1).fit(counts, y)
    assert found.classes_.tolist() == ["bad", "good"]


def test_missing_values_of_pandas_are_no_labels(counts):
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(["good", "bad", pandas.NA, *["good"] * 57], dtype="string")
    assert MSDAClassifier(1).fit(counts, y).classes_.tolist() == ["bad", "good"]


def test_dense_source_and_sparse_target(counts):
    y = np.arange(60) % 2
    model = MSDAClassifier(1, self_training=True, random_state=0)
    sparse = clone(model).fit(counts, y, sp.csr_array(counts[:20]))
    assert_allclose(
        sparse.decision_function(counts),
        model.fit(counts, y, counts[:20]).decision_function(counts),
        rtol=1e-3,
        atol=1e-4,
    )


def test_rare_classes_are_among_the_rows_that_candidates_are_compared_on():
    codes = np.zeros(1000, dtype=int)
    codes[[3, 700]] = 1
    for seed in range(20):
        drawn = draw_labelled_rows(codes, 50, np.random.RandomState(seed))
        assert len(drawn) == 50 == len(set(drawn))
        assert {3, 700} <= set(drawn)
        assert (np.diff(drawn) > 0).all()


def test_score_takes_the_domain_of_its_rows(counts):
    y = np.arange(60) % 2
    found = MSDAClassifier(1).fit(counts, y, counts[:20] + 1)
    expected = np.mean(found.predict(counts, sample_domain=0) == y)
    assert found.score(counts, y, sample_domain=0) == expected
    assert found.score(counts, y) == np.mean(found.predict(counts) == y)


def test_sparse_rows_are_not_copied_where_all_are_taken():
    X, Z = sp.csr_matrix(np.eye(4, dtype="float32")), sp.csr_matrix(np.eye(3, 4, dtype="float32"))
    rows = check_training_rows(MSDAClassifier(), X, np.array([0, 1, 0, 1]), Z)
    assert np.shares_memory(rows.labelled.data, X.data)
    assert np.shares_memory(rows.domains[0].data, X.data)
    dense = check_training_rows(MSDAClassifier(), X.toarray(), np.array([0, 1, 0, 1]), Z.toarray())
    assert not np.shares_memory(dense.labelled, dense.domains[0])
