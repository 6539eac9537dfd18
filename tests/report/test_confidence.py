"""Probabilities against counting by hand: coverage, reliability, confusion; nothing is stretched."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.report.tables import adaptation_tables


@pytest.fixture(scope="module")
def counted(adapter, reviews):
    """Probability of every prediction, its class, and the truth (None where there is none)."""
    _, _, kitchen, truth = reviews
    P = adapter.predict_proba(kitchen, sample_domain=np.full(len(kitchen), -1))
    return P, P.argmax(axis=1), np.array([{"negative": 0, "positive": 1}.get(label, -1) for label in truth])


def test_coverage_counts_mistakes_among_the_surest(report, counted):
    P, codes, truth = counted
    rows = report.to_dict()["confidence"]["coverage"]
    assert [row["coverage"] for row in rows] == pytest.approx(np.arange(1, 21) / 20)
    order = np.argsort(-P.max(axis=1), kind="stable")
    for row in (rows[7], rows[-1]):
        kept = order[: round(row["coverage"] * len(order))]
        known = kept[truth[kept] >= 0]
        n_wrong = int((codes[known] != truth[known]).sum())
        interval = stats.binomtest(n_wrong, len(known)).proportion_ci(method="wilson")
        assert_allclose(row["measured"]["error"], n_wrong / len(known), rtol=1e-12)
        assert_allclose([row["measured"]["low"], row["measured"]["high"]], interval, rtol=1e-6, atol=1e-9)
        assert row["threshold"] == pytest.approx(P.max(axis=1)[kept].min())


def test_the_expected_curve_ends_at_the_expected_error(unscored):
    data = unscored.to_dict()
    rows, expected = data["confidence"]["coverage"], data["verdict"]["expected_error"]["error"]
    assert rows[-1]["expected"] == pytest.approx(expected)
    assert all(row["measured"] is None for row in rows)
    counts = np.array(data["confidence"]["confusion"]["counts"])
    assert counts.sum() == pytest.approx(data["verdict"]["agreement"]["n_rows"], abs=1)
    assert 1 - np.trace(counts) / counts.sum() == pytest.approx(expected, abs=1e-3)


def test_reliability_groups_rows_by_probability(report, counted):
    P, codes, truth = counted
    p = P.max(axis=1)
    rows = report.to_dict()["confidence"]["reliability"]
    assert sum(row["n_rows"] for row in rows) <= (truth >= 0).sum()
    for row in rows:
        low = int(10 * row["probability"]) / 10
        chosen = (truth >= 0) & (p >= low) & (p < low + 0.1 + 1e-12)
        assert row["n_rows"] == chosen.sum() >= 10
        assert_allclose(row["right"], np.mean(codes[chosen] == truth[chosen]), rtol=1e-12)
        assert row["low"] < row["right"] <= row["high"] + 1e-12


def test_the_confusion_matrix_counts_labelled_rows(report, counted):
    _, codes, truth = counted
    confusion = report.to_dict()["confidence"]["confusion"]
    assert confusion["is_measured"]
    for t in range(2):
        for p in range(2):
            assert confusion["counts"][t][p] == ((truth == t) & (codes == p)).sum()
    shown = adaptation_tables(report.to_dict())["confusion"]
    assert [[int(cell[1].replace(",", "")) for cell in cells] for _, cells in shown["rows"]] == [
        [int(n) for n in row] for row in confusion["counts"]
    ]


def test_every_prediction_is_in_the_histogram_once_and_no_bin_crosses_a_half(unscored, counted):
    histogram = unscored.to_dict()["confidence"]["histogram"]
    assert np.sum(histogram["counts"]) == len(counted[1])
    assert [sum(row) for row in histogram["counts"]] == np.bincount(counted[1]).tolist()
    assert_allclose(histogram["edges"], 0.5 + np.arange(11) / 20, atol=1e-9)


def test_half_a_point_is_one_shade(report):
    data = report.to_dict()
    grid = data["selection"][0]
    for i, cell in enumerate(grid["cells"]):
        cell["value"] = 0.07 + 0.005 * (i % 2)
    (shown,) = adaptation_tables(data)["selection"]
    assert {cell[2] for _, cells in shown["rows"] for cell in cells} == {0}
    grid["cells"][0]["value"] = 0.07 + 0.045
    (shown,) = adaptation_tables(data)["selection"]
    assert max(cell[2] for _, cells in shown["rows"] for cell in cells) == 2


def test_of_many_classes_the_most_frequent_mistakes_are_listed(report):
    data = report.to_dict()
    counts = [[0.0] * 10 for _ in range(10)]
    counts[3][4] = 7.0
    data["classes"] = [f"c{i}" for i in range(10)]
    data["confidence"]["confusion"]["counts"] = counts
    shown = adaptation_tables(data)["confusion"]
    assert shown["rows"] == []
    assert shown["mistakes"] == [("c3", "c4", "7")]
    assert shown["title"] == "Most frequent mistake: c3 taken for c4 (7 rows)"
