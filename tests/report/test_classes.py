"""Errors by class, against scikit-learn and counting by hand."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import precision_recall_fscore_support

from undrift.report.adaptation import describe_classes
from undrift.report.evidence import Difference, find_idea
from undrift.results import Mistake, confuse, error_interval, list_mistakes, measure_classes, rate_classes


@pytest.fixture
def labelled():
    """True classes, three of them with a fourth that cannot be predicted; predictions and weights."""
    rng = np.random.default_rng(0)
    truth, codes = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    codes[:120] = np.minimum(truth[:120], 2)
    return truth, codes, rng.choice([1.0, 3.0], 200)


def test_measured_rates_are_those_of_scikit_learn(labelled):
    truth, codes, weight = labelled
    found = measure_classes(truth, codes, weight, ["a", "b", "c"])
    precision, recall, _, n = precision_recall_fscore_support(
        truth, codes, labels=[0, 1, 2], sample_weight=weight
    )
    assert_allclose([found[label]["precision"] for label in "abc"], precision)
    assert_allclose([found[label]["recall"] for label in "abc"], recall)
    assert_allclose([found[label]["share"] for label in "abc"], n / weight.sum())
    assert [found[label]["n"] for label in "abc"] == [int((truth == k).sum()) for k in range(3)]
    own = weight[truth == 1]
    assert found["b"]["recall_interval"] == error_interval(
        found["b"]["recall"], own.sum() ** 2 / (own**2).sum()
    )


def test_a_class_without_rows_has_no_rate():
    found = measure_classes(np.array([0, 0]), np.array([0, 1]), np.ones(2), ["a", "b", "c"])
    assert found["b"] == {
        "n": 0, "share": 0, "precision": 0, "recall": None,
        "precision_interval": error_interval(0, 1), "recall_interval": None,
    }  # fmt: skip
    assert found["c"]["precision"] is None


def test_expected_mistakes_sum_probabilities():
    P = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.5, 0.4], [0.0, 0.1, 0.9]])
    table = confuse(P, P.argmax(axis=1))
    assert_allclose(4 * table, [[1.3, 0.1, 0.0], [0.5, 0.5, 0.1], [0.2, 0.4, 0.9]])
    assert_allclose(1 - np.trace(table), np.mean(1 - P.max(axis=1)))
    rates = rate_classes(table, ["a", "b", "c"])
    assert rates["a"] == pytest.approx({"share": 1.4 / 4, "precision": 1.3 / 2, "recall": 1.3 / 1.4})
    assert list_mistakes(table, ["a", "b", "c"], 2) == [
        Mistake("b", "a", pytest.approx(0.5 / 4)),
        Mistake("c", "b", pytest.approx(0.4 / 4)),
    ]


@pytest.mark.parametrize("is_scored", [True, False])
def test_a_report_tells_the_errors_of_every_class(topic_reports, is_scored):
    data = topic_reports(10, is_scored).to_dict()
    (target,) = data["by_class"]
    assert list(target["expected"]) == data["classes"]
    expected = np.array(target["confusion"]["expected"])
    assert expected.shape == (10, 10)
    assert expected.sum() == pytest.approx(1, abs=1e-3)
    for rates in target["expected"].values():
        assert set(rates) == {"share", "precision", "recall"}
    if not is_scored:
        assert (target["measured"], target["confusion"]["measured"], target["basis"]) == (
            None,
            None,
            "expected",
        )
        return
    measured = np.array(target["confusion"]["measured"])
    assert measured.shape == (11, 11)
    error = data["verdict"]["whole"]["adapted"]["error"]
    assert 1 - np.trace(measured) == pytest.approx(error, abs=1e-3)
    first = target["mistakes"][0]
    place = data["classes"].index(first["truth"]), data["classes"].index(first["predicted"])
    assert measured[place] == pytest.approx(first["share"], abs=1e-4)
    assert first["share"] == pytest.approx((measured - np.diag(np.diag(measured))).max(), abs=1e-4)


def test_expected_rates_are_those_of_the_fit(given):
    """A fit that knows the errors of its classes is believed."""
    rates = {label: {"share": 0.5, "precision": 0.25, "recall": 0.75} for label in given.classes}
    known = {**given.classifier.targets_[given.targets[0].domain], "by_class": rates}
    classifier = copy(given.classifier)
    classifier.targets_ = {given.targets[0].domain: known}
    (target,) = replace(given, classifier=classifier).targets
    assert describe_classes(target)["expected"] == rates


def test_the_picture_has_clear_words_or_is_left_out(given):
    column = {term: j for j, term in enumerate(given.terms)}
    labelled = given.sources[0]
    X = np.asarray((labelled.X[np.flatnonzero(labelled.known)] != 0).todense())
    y = labelled.known_labels()

    def picture(terms):
        return find_idea(given, Difference(1.0, [given.word(column[term], 0, 0.1) for term in terms]))

    new = [
        term for term, j in column.items() if given.classifier.labelled_counts_[j] == 0 and " " not in term
    ]
    idea = picture(new)
    for word, least in [(idea.labelled, 0.75), *((own, 0.6) for own in idea.between)]:
        rows = y[X[:, column[word.term]]]
        assert len(rows) == word.n_labelled >= 10
        assert np.mean(rows == given.classes[idea.code]) > least
    assert picture([term for term in ("the", "it", "2022") if term in column]) is None
    assert picture([]) is None
