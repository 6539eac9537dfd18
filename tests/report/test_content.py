"""What a report holds, against counting by hand."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift.explain import document_terms, reconstruction, term_weight
from undrift.report.changed_documents import pieces
from undrift.report.terms import drawn_terms, snippet
from undrift.text import words


@pytest.fixture(scope="module")
def data(report):
    return report.to_dict()


def test_it_is_plain_json(data):
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_cards_count_rows_labels_and_unseen_words(data, reviews):
    books, y, kitchen, _ = reviews
    source, target = data["domains"]
    assert (source["role"], target["role"]) == ("source", "target")
    assert (source["n_rows"], target["n_rows"]) == (len(books), len(kitchen))
    assert source["labels"] == dict(sorted(Counter(label for label in y if label).items()))
    known = {word for text, label in zip(books, y, strict=True) if label for word in words(text)}
    found = [word for text in kitchen for word in words(text)]
    assert_allclose(target["unseen_share"], np.mean([word not in known for word in found]), rtol=1e-12)
    for side in ("before", "after"):
        assert 0 <= target[side]["low"] <= target[side]["distance"] <= target[side]["high"] <= 2


def test_points_are_shares_of_documents_with_the_term(data, reviews):
    books, _, kitchen, _ = reviews
    points = {point["term"]: point for point in data["shift"]["points"]}
    for term in ("sturdy", "the", "boring"):
        if term in points:
            shares = [np.mean([term in words(text) for text in own]) for own in (books, kitchen)]
            assert_allclose([points[term]["source"], points[term]["target"]], shares, atol=1e-6)
    assert len(points) == data["shift"]["n_terms"] == 900


def test_examples_contain_their_term(data):
    with_examples = [p for p in data["shift"]["points"] if "in target" in p and " " not in p["term"]]
    assert len(with_examples) > 100
    for point in with_examples:
        assert point["term"] in words(point["in target"])


def test_the_browser_agrees_with_the_explanations(data, adapter):
    browser, classifier, terms = data["terms"], adapter.classifier_, adapter.vectorizer_.terms_
    layer = classifier.representation_.layers_[0]
    assert browser["n_listed"] == len(terms)
    for i in (0, 17, 400):
        code, weight, n_labelled, _, _, sources, reached = browser["rows"][i]
        term = browser["names"][i]
        (output,) = term_weight(classifier, terms, term)["outputs"]
        assert_allclose(weight, abs(output["weight"]), atol=1e-4)
        assert browser["classes"][code] == ("positive" if output["weight"] > 0 else "negative")
        assert n_labelled == term_weight(classifier, terms, term)["n_labelled"]
        told = reconstruction(layer, terms, term, 6)
        for packed, side in ((sources, "from"), (reached, "to")):
            names = [browser["names"][j] for j in packed[::2]]
            expected = {name: weight for name, weight in told[side] if weight > 0}
            assert_allclose(sorted(packed[1::2]), sorted(expected.values()), atol=1e-3)
            assert names[0] in expected


def test_words_that_made_the_difference_are_mostly_new_here(data):
    found = data["difference"]
    assert 0 < found["new_share"] <= 1
    pushes = [term["push"] for term in found["terms"]]
    assert pushes == sorted(pushes, reverse=True)
    assert pushes[-1] > 0
    assert sum(pushes) <= 1
    assert all((term["rarity"] == 2) == (term["n_labelled"] == 0) for term in found["terms"])


def test_changed_documents_changed_and_are_explained(data, adapter, reviews):
    _, _, kitchen, truth = reviews
    shown = data["changes"]["documents"]
    assert 0 < len(shown) <= 12
    assert data["changes"]["n_changed"] == data["verdict"]["agreement"]["n_changed"]
    for own in shown:
        text = kitchen[own["row"] - 1]
        assert own["from"] != own["to"] == adapter.predict([text])[0]
        assert own["outcome"] == ("corrected" if truth[own["row"] - 1] == own["to"] else "became wrong")
        assert "".join(piece["text"] for piece in own["pieces"]) == text
        told = document_terms(
            adapter.classifier_, adapter.vectorizer_.terms_, adapter.vectorizer_.transform([text]), 8
        )
        assert [mover["term"] for mover in own["movers"]] == [mover["term"] for mover in told]


def test_the_grid_shows_what_the_rule_gave(data, adapter):
    (grid,) = data["selection"]
    results = adapter.classifier_.selection_results_
    assert grid["rule"] == "reverse"
    assert len(grid["cells"]) == len(results) == 9
    for cell in grid["cells"]:
        (own,) = [r for r in results if (r["noise"], r["n_layers"]) == (cell["noise"], cell["n_layers"])]
        assert_allclose(cell["value"], 1 - own["score"], rtol=1e-12)
        assert cell["chosen"] == own["chosen"]


def test_every_row_is_in_the_histogram_once(data, reviews):
    (own,) = data["scores"]
    counts = {series["name"]: sum(series["counts"]) for series in own["series"]}
    truth = reviews[3]
    assert sum(counts.values()) == len(truth)
    assert counts["no label"] == truth.count(None)
    whole = data["verdict"]["whole"]
    assert counts["wrong"] == round(whole["adapted"]["error"] * whole["n_rows"])


def test_a_large_target_is_sampled_and_the_page_says_so(adapter, reviews):
    from undrift.report import adaptation_report

    books, y, kitchen, truth = reviews
    report = adaptation_report(adapter, books, y, kitchen, truth=truth, max_rows=200)
    card = report.to_dict()["domains"][1]
    assert (card["n_rows"], card["n_sampled"]) == (len(kitchen), 200)
    assert "200 of them, taken at random, are reported on" in report.to_html()


def test_few_terms_are_drawn_of_many():
    rng = np.random.default_rng(0)
    table = {name: rng.random(500) for name in ("source", "target", "reach")}
    chosen = drawn_terms(table, 100)
    assert len(chosen) == len(set(chosen)) == 100
    assert np.argmax(table["reach"]) in chosen
    assert np.argmax(table["source"] + table["target"]) in chosen


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
    (mark,) = [p for p in pieces(document, [{"term": term, "effect": 1.0, "n_labelled": 0}]) if "effect" in p]
    assert (mark["text"], mark["new"], mark["strength"]) == (found, True, 3)
    assert found in snippet(document, term)


def test_a_stronger_term_is_marked_before_a_weaker_one_that_overlaps():
    movers = [
        {"term": "not good", "effect": -0.9, "n_labelled": 3},
        {"term": "good", "effect": 0.2, "n_labelled": 3},
    ]
    found = pieces("not good, good", movers)
    assert [(p["text"], p.get("effect")) for p in found] == [("not good", -0.9), (", ", None), ("good", 0.2)]


def test_a_long_document_is_cut_to_a_snippet():
    text = "x " * 100 + "sturdy" + " y" * 100
    assert re.fullmatch(r"….{0,40}sturdy.{0,40}…", snippet(text, "sturdy"))


def test_of_terms_that_stand_together_the_telling_one_is_listed(data):
    listed = [term["term"] for term in data["difference"]["terms"]]
    rows = {name: row[1:5] for name, row in zip(data["terms"]["names"], data["terms"]["rows"], strict=False)}
    assert len({tuple(rows[term]) for term in listed}) == len(listed)
    assert sum(" " not in term for term in listed) > len(listed) / 2
