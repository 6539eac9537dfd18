"""What a report holds, against counting by hand."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.explain import term_weight
from undrift.report import adaptation_report
from undrift.report.charts import tabulate_confusion
from undrift.report.evidence import cut_pieces, snippet
from undrift.text import words


@pytest.fixture(scope="module")
def data(report):
    return report.to_dict()


def test_cards_count_rows_labels_and_unseen_words(data, adapter, reviews):
    books, y, kitchen, _ = reviews
    source, target = data["domains"]
    assert (source["role"], target["role"]) == ("source", "target")
    assert (source["n_rows"], target["n_rows"]) == (len(books), len(kitchen))
    assert source["n_labelled"] == sum(label is not None for label in y)
    rows = adapter.vectorizer_.transform(kitchen)
    is_word = np.array([" " not in term for term in adapter.terms_])[rows.indices]
    is_new = np.asarray(adapter.classifier_.labelled_counts_)[rows.indices] == 0
    assert_allclose(target["unseen_share"], is_new[is_word].mean(), rtol=1e-12)


def test_points_are_shares_of_documents_with_the_term(data, reviews):
    books, _, kitchen, _ = reviews
    points = {point["term"]: point for point in data["map"]["points"]}
    shares = np.array([[point["source"], point["target"]] for point in points.values()])
    assert (shares[:, 0] == 0).sum() == ((shares > 0).all(axis=1)).sum() == 80  # new, and shared
    assert 0 < (shares[:, 1] == 0).sum() <= 80
    assert data["map"]["n_terms"] == 900
    for term in list(points)[:5]:
        if " " not in term:
            shares = [np.mean([term in words(text) for text in own]) for own in (books, kitchen)]
            assert_allclose([points[term]["source"], points[term]["target"]], shares, atol=1e-6)


def test_the_picture_shows_a_way_from_a_labelled_word_to_a_new_one(data, adapter):
    idea, classifier, terms = data["idea"], adapter.classifier_, adapter.vectorizer_.terms_
    layer = classifier.representation_.layers_[0]
    column = {term: j for j, term in enumerate(terms)}
    known, new = column[idea["labelled"]["term"]], column[idea["new"]["term"]]
    assert classifier.labelled_counts_[known] == idea["labelled"]["n_labelled"] > 0
    assert classifier.labelled_counts_[new] == 0
    (output,) = term_weight(classifier, terms, idea["new"]["term"])["outputs"]
    assert idea["class"] == ("positive" if output["weight"] > 0 else "negative")
    assert_allclose(idea["new"]["weight"], abs(output["weight"]), atol=1e-4)
    for row in idea["between"]:
        assert classifier.labelled_counts_[column[row["term"]]] > 0
        assert_allclose(row["from_new"], layer.coef[new, column[row["term"]]], atol=1e-4)
        assert row["from_new"] > 0
    assert idea["new"]["term"] in words(idea["example"])


def test_words_that_made_the_difference_are_plain_and_mostly_new_here(data):
    found = data["difference"]
    assert 0 < found["new_share"] <= 1
    pushes = [term["push"] for term in found["terms"]]
    assert pushes == sorted(pushes, reverse=True)
    assert pushes[-1] > 0
    assert sum(pushes) <= 1
    assert all((term["rarity"] == 2) == (term["n_labelled"] == 0) for term in found["terms"])
    listed = [term["term"] for term in data["difference"]["terms"]]
    assert len(set(listed)) == len(listed)
    assert sum(" " not in term for term in listed) > len(listed) / 2
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_large_target_is_sampled_and_large_weights_are_left_out(adapter, reviews, set_limits):
    books, y, kitchen, truth = reviews
    report = adaptation_report(adapter, books, y, kitchen, truth=truth, max_rows=200)
    card = report.to_dict()["domains"][1]
    assert (card["n_rows"], card["n_sampled"]) == (len(kitchen), 200)
    assert "200 of them, taken at random, are reported on" in report.to_html()
    books, y, kitchen, _ = reviews
    set_limits(MOST_BYTES=5_000)
    report = adaptation_report(adapter, books, y, kitchen)
    assert report.to_dict()["sentence"] is None
    assert 'id="try"' not in report.to_html()


@pytest.mark.parametrize(
    ("document", "term", "found"),
    [
        ("It did n't break", "didn't break", "did n't break"),
        ("A Page-Turner!", "page turner", "Page-Turner"),
        ("can’t stop", "can't", "can’t"),
        ("<b>Sturdy</b> pan", "sturdy", "Sturdy"),
    ],
)
def test_terms_are_found_as_they_were_written(document, term, found):
    word = {"term": term, "contribution": 1.0, "code": 1, "is_new": True}
    (mark,) = [piece for piece in cut_pieces(document, [word]) if "code" in piece]
    assert mark == {"text": found, "code": 1, "strength": 3, "is_new": True}
    assert found in snippet(document, term)


def test_a_long_document_is_cut_to_a_snippet():
    text = "x " * 100 + "sturdy" + " y" * 100
    assert re.fullmatch(r"….{80,90}sturdy.{80,90}…", snippet(text, "sturdy"))


@pytest.fixture(scope="module")
def counted(adapter, reviews):
    """Probability of every prediction, its class, and the truth (None where there is none)."""
    _, _, kitchen, truth = reviews
    P = adapter.predict_proba(kitchen)
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


def test_the_confusion_matrix_counts_labelled_rows(report, counted):
    _, codes, truth = counted
    confusion = report.to_dict()["confidence"]["confusion"]
    assert confusion["is_measured"]
    for t in range(2):
        for p in range(2):
            assert confusion["counts"][t][p] == ((truth == t) & (codes == p)).sum()
    shown = tabulate_confusion(report.to_dict())
    assert [[int(cell[1].replace(",", "")) for cell in cells] for _, cells in shown["rows"]] == [
        [int(n) for n in row] for row in confusion["counts"]
    ]


def test_of_many_classes_the_most_frequent_mistakes_are_listed(report):
    data = report.to_dict()
    counts = [[0.0] * 10 for _ in range(10)]
    counts[3][4] = 7.0
    data["classes"] = [f"c{i}" for i in range(10)]
    data["confidence"]["confusion"]["counts"] = counts
    shown = tabulate_confusion(data)
    assert shown["rows"] == []
    assert shown["mistakes"] == [("c3", "c4", "7")]
    assert shown["title"] == "Most frequent mistake: c3 taken for c4 (7 rows)"
