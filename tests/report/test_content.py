"""What a report holds, against counting by hand and scipy; words that fit the numbers."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tests.report.test_evidence import weighted_interval
from undrift.explain import term_weight
from undrift.report import Report, adaptation_report, report_adaptation
from undrift.report.data import DomainRows, ReportData, Word
from undrift.report.evidence import cut_pieces
from undrift.report.verdict import Verdict, judge
from undrift.results import Chance, Comparison, Score
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
    known = {word for text in books for word in words(text)}
    is_new = [word not in known for text in kitchen for word in words(text)]
    assert_allclose(target["unseen_share"], np.mean(is_new), rtol=1e-12)


def test_the_table_of_files_tells_new_words_from_unknown_ones(given):
    (target,) = given.target_rows
    page = report_adaptation(replace(given, target_rows=[replace(target, unseen_share=0.0)])).to_html()
    cells = re.findall(
        r"<td[^>]*>([^<]*)</td></tr>", re.search(r'<table id="domains".*?</table>', page, re.DOTALL)[0]
    )
    assert cells == ["", "0.0%"]


def test_the_picture_shows_a_way_from_a_labelled_word_to_a_new_one(data, adapter):
    idea, classifier, terms = data["idea"], adapter.classifier_, adapter.vectorizer_.terms_
    layer = classifier.representation_.layers_[0]
    column = {term: j for j, term in enumerate(terms)}
    known, new = column[idea["labelled"]["term"]], column[idea["new"]["term"]]
    assert classifier.labelled_counts_[known] == idea["labelled"]["n_labelled"] > 0
    assert classifier.labelled_counts_[new] == 0
    (output,) = term_weight(classifier, terms, idea["new"]["term"])["outputs"]
    assert data["classes"][idea["code"]] == ("positive" if output["weight"] > 0 else "negative")
    assert_allclose(idea["new"]["effect"], abs(output["weight"]), atol=1e-4)
    for row, links in zip(idea["between"], idea["links"], strict=True):
        assert classifier.labelled_counts_[column[row["term"]]] == row["n_labelled"] > 0
        assert_allclose(links, layer.coef[[known, new], column[row["term"]]], atol=1e-4)
        assert links[1] > 0


def test_words_that_made_the_difference_are_plain_and_mostly_new_here(data, reviews):
    found = data["difference"]
    for row in [row for row in found["terms"] if " " not in row["term"]][:5]:
        shares = [np.mean([row["term"] in words(text) for text in reviews[i]]) for i in (0, 2)]
        assert_allclose([row["source"], row["target"]], shares, atol=1e-6)
    assert 0 < found["new_share"] <= 1
    pushes = [term["effect"] for term in found["terms"]]
    assert pushes == sorted(pushes, reverse=True)
    assert pushes[-1] > 0
    assert sum(pushes) <= 1
    assert all((term["rarity"] == 2) == (term["n_labelled"] == 0) for term in found["terms"])
    listed = [term["term"] for term in data["difference"]["terms"]]
    assert len(set(listed)) == len(listed)
    assert sum(" " not in term for term in listed) > len(listed) / 2
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_columns_and_models_that_do_not_fit_are_refused(adapter, reviews):
    books, y, kitchen, truth = reviews
    with pytest.raises(ValueError, match=r"^y has 599 entries for 600 rows; give one for each$"):
        adaptation_report(adapter, books, y[:-1], kitchen)
    with pytest.raises(ValueError, match=r"^truth has 599 entries for 600 rows; give one for each$"):
        adaptation_report(adapter, books, y, kitchen, truth=truth[:-1])
    with pytest.raises(ValueError, match=r"^adaptation_report shows one target, given without a name"):
        adaptation_report(adapter, books, y, {"kitchen": kitchen})
    with pytest.raises(TypeError, match=r"^a report is of a TextAdapter or an MSDAClassifier, got Distilled"):
        adaptation_report(adapter.distill(kitchen), books, y, kitchen)


def test_a_large_target_is_sampled_and_small_weights_are_left_out(adapter, reviews, set_limits):
    books, y, kitchen, truth = reviews
    report = adaptation_report(adapter, books, y, kitchen, truth=truth, max_rows=200)
    card = report.to_dict()["domains"][1]
    assert (card["n_rows"], card["n_sampled"]) == (len(kitchen), 200)
    assert "200 of them, taken at random, are reported on" in report.to_html()
    books, y, kitchen, _ = reviews
    set_limits(MOST_BYTES=5_000)
    report = adaptation_report(adapter, books, y, kitchen)
    sentence = report.to_dict()["sentence"]
    assert 50 < len(sentence["terms"].split("\n")) < len(adapter.terms_) / 2
    assert len(json.dumps(sentence)) < 8_000
    assert 'id="try"' in report.to_html()


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
    word = Word(term, 1, 1.0, n_labelled=0, rarity=2, source=0.0, target=0.1)
    (mark,) = [piece for piece in cut_pieces(document, [word]) if "code" in piece]
    assert mark == {"text": found, "code": 1, "strength": 3, "is_new": True}


@pytest.fixture(scope="module")
def counted(adapter, reviews):
    """Probability of every prediction, its class, and the truth (None where there is none)."""
    _, _, kitchen, truth = reviews
    P = adapter.predict_proba(kitchen)
    return P, P.argmax(axis=1), np.array([{"negative": 0, "positive": 1}.get(label, -1) for label in truth])


def test_coverage_counts_mistakes_among_the_surest(report, counted):
    P, codes, truth = counted
    rows = report.to_dict()["coverage"]
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
    rows, expected = data["coverage"], data["verdict"]["expected_error"]["error"]
    assert rows[-1]["expected"] == pytest.approx(expected)
    assert all(row["measured"] is None for row in rows)


@pytest.mark.parametrize(("n_wrong", "n"), [(0, 12), (3, 40), (200, 1000), (7, 7)])
def test_the_interval_of_an_error_is_wilsons(n_wrong, n):
    ours = Score.measure(np.arange(n) < n_wrong, np.ones(n))
    theirs = stats.binomtest(n_wrong, n).proportion_ci(method="wilson")
    assert_allclose([ours.error, ours.low, ours.high], [n_wrong / n, *theirs], rtol=1e-6, atol=1e-9)


def test_weights_make_up_for_unequal_shares_of_the_sample():
    weight, wrong = np.repeat([1.0, 5.0], [30, 30]), np.repeat([1, 0, 1, 0], [12, 18, 3, 27]).astype(bool)
    ours = Score.measure(wrong, weight).to_dict()
    assert_allclose(list(ours.values()), weighted_interval(weight, wrong.astype(float)), rtol=1e-9)
    assert ours["error"] == pytest.approx((12 + 15) / 180)
    even = Score.measure(wrong, np.full(60, 3.0)).to_dict()
    assert_allclose(list(even.values()), weighted_interval(np.ones(60), wrong.astype(float)), rtol=1e-9)
    gain = Comparison.count(~wrong, wrong, weight).gain
    assert gain.gain == pytest.approx(1 - 2 * (12 + 15) / 180)
    assert gain.low < gain.gain < gain.high


def test_a_comparison_counts_predictions_corrected_and_made_wrong():
    before, after = np.array([1, 1, 1, 0, 0], bool), np.array([0, 0, 1, 1, 0], bool)
    found = Comparison.count(before, after, np.ones(5))
    assert (found.n_corrected, found.n_spoilt, found.n_rows) == (2, 1, 5)
    assert (found.before.error, found.after.error) == (0.6, 0.4)
    none = np.zeros(50, dtype=bool)
    ours = Comparison.count(none, none, np.ones(50)).gain
    assert ours.gain == 0.0
    assert -0.1 < ours.low < 0 < ours.high < 0.1
    assert ours.low == pytest.approx(-ours.high)


def test_the_verdict_is_scored_where_there_are_labels(report, adapter, reviews):
    _, _, kitchen, truth = reviews
    own = report.to_dict()["verdict"]
    known = [i for i, label in enumerate(truth) if label is not None]
    wrong = adapter.predict([kitchen[i] for i in known]) != np.array([truth[i] for i in known])
    assert_allclose(own["whole"]["adapted"]["error"], wrong.mean(), rtol=1e-12)
    assert own["whole"]["n_rows"] == len(known)
    assert own["basis"] == "measured"
    assert own["answer"] == "yes"
    assert own["headline"].startswith(f"Adaptation helped: {wrong.mean():.1%} of the predictions are wrong")
    assert own["chance"]["error"] == pytest.approx(0.5, abs=0.1)
    assert report.to_html().count("The estimate without these labels was about") == 1


def test_without_labels_the_verdict_says_so_and_claims_no_gain(unscored, report):
    own = unscored.to_dict()["verdict"]
    assert (own["basis"], own["answer"], own["whole"]) == ("expected", "unknown", None)
    assert "helped" not in own["headline"]
    assert own["sure"].startswith("Whether adaptation helped is not known without labels")
    assert "chance" not in own["sure"]  # whatever the interval reaches
    # the very bound it states: errors cannot differ by more than the share that changed
    gain = report.to_dict()["verdict"]["whole"]["difference"]["gain"]
    assert abs(gain) <= own["agreement"]["changed"] + 0.1


def advise(n_deck=0, error=None, corrected=0, spoilt=0, chance=None):
    """Advise on 5,000 predictions, 200 changed; `error` is measured on 100 labels, else 10% are expected."""
    scored = {}
    if error is not None:
        before = 100 * error + corrected - spoilt
        scored["t"] = Comparison(
            100, 100.0, 100.0, before, before, 100 * error, 100 * error, 0.0, corrected, spoilt
        )
    guess = chance and Chance("a", chance)
    return Verdict(5000, 200, scored, Score(0.1, 0.05, 0.15), guess).advise(n_deck)


@pytest.mark.parametrize(
    ("situation", "said", "unsaid"),
    [
        ({}, "Label 100 target rows drawn at random", "on this page"),
        ({}, "to within about 6 points", "four times"),
        ({}, "Or use the predictions as they are.", "Do not"),
        ({"n_deck": 60}, "Label 60 rows on this page: this measures", "doubtful"),
        ({"error": 0.05, "corrected": 30}, "Use the predictions.", "Do not"),
        ({"error": 0.05, "corrected": 30, "n_deck": 60}, "label the doubtful rows on this page", "Label "),
        ({"error": 0.65, "corrected": 30}, "Do not rely on single predictions", "Use the predictions"),
        ({"error": 0.4, "spoilt": 30}, "Use the baseline", "Use the predictions"),
        ({"error": 0.4, "spoilt": 3, "corrected": 3}, "four times as many halve", "Use the"),
        ({"error": 0.4, "n_deck": 60}, "label the doubtful rows", "four times"),
        ({"error": 0.5, "corrected": 30, "chance": 0.5}, "Do not use these predictions", "Use the"),
    ],
)
def test_advice_fits_the_situation(situation, said, unsaid):
    steps = advise(**situation)
    assert any(said in step for step in steps)
    assert not any(unsaid in step for step in steps)


def guesses(truth, adapted, before, n_targets=1, weights=None, border="error"):
    """A report's verdict on predictions that are given."""
    X, labels = np.eye(len(truth)), ["a", "b"]
    model = SimpleNamespace(
        classes_=np.array(labels), readings_={}, targets_={}, target_names_=[], target_shares=None,
        target_shares_=[],
        target_shares_interval_=[], expected_error_=[], border=border,
    )  # fmt: skip
    model.labelled_counts_ = np.ones(len(truth))
    targets = [DomainRows(f"t{i}", X, None, truth, adapted, X, weights) for i in range(n_targets)]
    baseline = SimpleNamespace(predict=lambda rows: np.array(before))
    terms = [str(j) for j in range(len(truth))]
    given = ReportData(model, terms, [DomainRows("s", X[:0])], targets, given_baseline=baseline)
    return Report(judge(given).to_dict(), {}).to_dict()


def test_targets_are_pooled_by_rows_and_rows_by_weight():
    truth = ["a", "b"] * 50
    one, two = (guesses(truth, [*truth[:90], *["a"] * 10], ["a"] * 100, n) for n in (1, 2))
    assert (two["whole"]["n_rows"], two["whole"]["n_corrected"]) == (200, 2 * one["whole"]["n_corrected"])
    assert two["whole"]["adapted"]["error"] == one["whole"]["adapted"]["error"] == 0.05
    assert [row["name"] for row in two["scored"]] == ["t0", "t1"]
    assert two["scored"][0]["n_rows"] == 100
    truth, adapted = ["a", "b"] * 20, ["a", "b"] * 15 + ["a"] * 10
    own = guesses(truth, adapted, ["b"] * 40, weights=[1.0] * 30 + [0.0] * 6 + [5.0] * 4)
    assert own["whole"]["n_rows"] == 34
    assert own["whole"]["adapted"]["error"] == pytest.approx(10 / 50)
    assert own["chance"]["error"] == pytest.approx(0.5)


def test_chance_and_no_change_are_called_so():
    own = guesses(["a", "b"] * 50, ["a"] * 100, ["a", "b"] * 50)
    assert (own["answer"], own["chance"]["error"]) == ("chance", 0.5)
    assert own["headline"] == (
        "No better than chance: 50.0% of the predictions are wrong; always answering a is wrong for 50%."
    )
    # errors of 8% where 10% are of the rarer class: better, but not certainly
    truth = ["a"] * 90 + ["b"] * 10
    own = guesses(truth, [*["a"] * 90, *["b"] * 2, *["a"] * 8], truth)
    assert "not certain that this is better than chance: always answering a is wrong for 10%" in own["sure"]
    own = guesses(["a", "b"] * 50, ["a", "b"] * 50, ["a"] * 100)
    assert own["answer"] == "yes"
    assert "chance" not in own["headline"] + own["sure"]
    balanced = guesses(["a", "b"] * 50, ["a"] * 100, ["a", "b"] * 50, border="balanced")
    assert balanced["chance"] is None
    own = guesses(["a", "b"] * 50, [*["a", "b"] * 49, "b", "b"], [*["a", "b"] * 49, "b", "b"])
    assert own["answer"] == "same"
    assert own["headline"] == "Adaptation changed no prediction: 1.0% are wrong, with it and without."
    assert "0.0 to 0.0" not in own["sure"]


def test_labels_of_the_source_that_look_wrong_are_shown_with_their_texts(adapter, reviews):
    from undrift.report import adaptation_report

    books, y, kitchen, _ = reviews
    data = adaptation_report(adapter, books, y, kitchen, names=("books", "kitchen")).to_dict()
    suspects = data["suspects"]
    known = [i for i, label in enumerate(y) if label is not None]
    labels, p = adapter.predict_held_out([books[i] for i in known])
    codes = [list(adapter.classes_).index(label) for label in labels]
    own = dict(zip(known, p[np.arange(len(p)), codes], strict=True))
    assert suspects["of"] == sum(label is not None for label in y)
    assert suspects["n"] == sum(value <= 0.1 for value in own.values()) > 0
    shown = [row["own"] for row in suspects["rows"]]
    assert shown == pytest.approx(sorted(own.values())[: len(shown)])
    for row in suspects["rows"]:
        i = row["row"] - 1
        assert (row["source"], row["label"]) == ("books", y[i])
        assert row["suggested"] != row["label"]
        assert books[i].startswith(row["text"][:40])
