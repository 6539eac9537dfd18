"""A classifier that fell back is reported as such: nothing on the page calls its predictions adapted."""

import re
import warnings

import pytest
from markupsafe import escape

from undrift import MSDAClassifier, TermVectorizer, TextAdapter, UndriftWarning
from undrift.report import adaptation_report


@pytest.fixture(scope="module")
def documents():
    """A target that shares no word with the labelled source, and its truth."""
    source = [f"good fine page{i % 9}" if i % 2 else f"bad dull page{i % 9}" for i in range(120)]
    target = [f"gut schön seite{i % 9}" if i % 2 else f"schlecht öde seite{i % 9}" for i in range(120)]
    labels = ["positive" if i % 2 else "negative" for i in range(120)]
    return source, labels, target, labels


def report_on(documents, truth, fallback=True):
    source, labels, target, known = documents
    adapter = TextAdapter(TermVectorizer(200), MSDAClassifier(1, 0.5, fallback=fallback, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndriftWarning)
        adapter.fit(source, labels, target)
    assert adapter.classifier_.caution_["fell_back"] is fallback
    return adaptation_report(adapter, source, labels, target, truth=known if truth else None)


def shown_text(report):
    page = re.sub(r"<(script|style)\b.*?</\1>", "", report.to_html(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


@pytest.mark.parametrize("truth", [True, False])
def test_a_fallback_is_called_one_and_nothing_is_called_adapted(documents, truth):
    report = report_on(documents, truth)
    verdict, text = report.to_dict()["verdict"], shown_text(report)
    assert (verdict["answer"], verdict["fell_back"], verdict["predictor"]) == (
        "fallback", True, "source-only",
    )  # fmt: skip
    start = "50.0% of the source-only" if truth else "the predictions are those of the source-only"
    assert verdict["headline"].startswith(f"Not adapted: {start}")
    assert "source → target (not adapted)" in text
    (reason,) = report.to_dict()["blocking"]
    assert text.count(str(escape(reason))) == 1, "the reason stands once, at the top"
    assert "Adaptation helped" not in text
    assert not re.search(r"\badapted (error|errs|classifier|,)", text)
    assert ("source-only: 50.0%" in text) is truth
    assert ("no better than chance" in verdict["headline"]) is truth
    assert text.count("There is no expected error after a fallback") == (not truth)
    assert (verdict["expected_error"], report.to_dict()["domains"][1]["target_shares"]) == (None, None)
    assert "classes aligned" not in text


def test_the_baseline_is_the_svm_beside_the_fallback(documents):
    report = report_on(documents, truth=True)
    rows = re.findall(r"<td>target</td><td>([^<]*)</td><td class", report.to_html())
    assert rows[:2] == ["source-only", "baseline"]


def test_without_a_fallback_the_predictions_are_adapted(documents):
    verdict = report_on(documents, truth=True, fallback=False).to_dict()["verdict"]
    assert (verdict["fell_back"], verdict["predictor"]) == (False, "adapted")
    assert verdict["answer"] != "fallback"


def test_a_fallback_says_that_layers_were_not_used(documents):
    text = shown_text(report_on(documents, truth=False))
    assert "Used: the source-only classifier, on terms alone, C " in text
    assert "Not used, because of the fallback: noise 0.5, 1 layer." in text
    assert "no prediction changed" not in text
