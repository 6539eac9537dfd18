"""What a report holds, against counting by hand."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift import MSDAClassifier, TermVectorizer, TextAdapter
from undrift.explain import reconstruction, term_weight
from undrift.report import adaptation_report
from undrift.report.documents import pieces
from undrift.report.inputs import DomainRows, Evidence
from undrift.report.terms import snippet
from undrift.text import words


@pytest.fixture(scope="module")
def data(report):
    return report.to_dict()


def test_it_is_plain_json(data):
    assert json.loads(json.dumps(data, allow_nan=False)) == data


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


def test_the_browser_knows_what_a_layer_of_pivots_reconstructs(reviews):
    books, y, kitchen, _ = reviews
    classifier = MSDAClassifier(1, 0.7, n_pivots=60, random_state=0)
    adapter = TextAdapter(TermVectorizer(150, length=5.0), classifier).fit(books, y, kitchen)
    browser = adaptation_report(adapter, books, y, kitchen).to_dict()["terms"]
    stack, terms, n_pivots = adapter.classifier_.representation_, adapter.terms_, 0
    assert not browser["reconstructs"]
    for name, row in zip(browser["names"], browser["rows"], strict=False):
        explained = reconstruction(stack, terms, name, 4)
        for packed, side in ((row[5], "from"), (row[6], "to")):
            expected = {term: weight for term, weight in explained[side] if weight > 0}
            assert_allclose(packed[1::2], list(expected.values()), atol=1e-3)
            assert not packed or browser["names"][packed[0]] in expected
        n_pivots += bool(row[5])
    assert n_pivots == 60


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
        told = reconstruction(layer, terms, term, 4)
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


def test_changed_documents_changed_and_their_contributions_add_up_to_the_score(data, adapter, reviews):
    _, _, kitchen, truth = reviews
    shown = data["changes"]["documents"]
    assert len(shown) == 6
    assert data["changes"]["n_changed"] == data["verdict"]["agreement"]["n_changed"]
    for own in shown:
        text = kitchen[own["row"] - 1]
        assert own["from"] != own["to"] == adapter.predict([text])[0]
        assert own["outcome"] == ("corrected" if truth[own["row"] - 1] == own["to"] else "became wrong")
        assert "".join(piece["text"] for piece in own["pieces"]) == text
        score = abs(adapter.decision_function([text], sample_domain=[-1])[0])
        parts = [own["start"], own["others"], *(word["contribution"] for word in own["words"])]
        assert_allclose(sum(parts), own["score"], atol=1e-9)  # what is written adds up
        assert_allclose(own["score"], score, atol=2e-3)
        assert own["probability"] == pytest.approx(adapter.predict_proba([text], sample_domain=[-1]).max())
        for word in own["words"]:
            assert data["classes"][word["code"]] == own["to" if word["contribution"] > 0 else "from"]


def test_with_three_classes_the_surest_changed_documents_come_first():
    """Scores of the winner do not say how sure it is; its probability does."""
    from undrift import MSDAClassifier
    from undrift.report import adaptation_report

    rng = np.random.default_rng(1)
    X, Z = (rng.poisson(0.7, (300, 24)).astype(float) for _ in range(2))
    Z[:, 12:] += rng.poisson(0.4, (300, 12))
    y = [f"c{k}" for k in (X[:, :12].reshape(300, 3, 4).sum(axis=2) + rng.random((300, 3))).argmax(axis=1)]
    model = MSDAClassifier(2, 0.5, random_state=0).fit(X, y, Z)
    own = adaptation_report(model, X, y, Z).to_dict()
    shown = own["changes"]["documents"]
    probabilities = [document["probability"] for document in shown]
    assert len(shown) > 2
    assert probabilities == sorted(probabilities, reverse=True)
    numbers = np.full(1, -1)
    for document in shown:
        row = Z[[document["row"] - 1]]
        scores = model.decision_function(row, sample_domain=numbers)[0]
        lead = scores[document["codes"][1]] - scores[document["codes"][0]]
        assert_allclose(document["score"], lead, atol=2e-3)
        assert lead > 0
    evidence = Evidence(model, [], [DomainRows("s", 0, X, labels=y), DomainRows("t", -1, Z)])
    changed = evidence.source_only_codes[-1] != evidence.adapted_codes[-1]
    sure = model.predict_proba(Z, sample_domain=np.full(300, -1)).max(axis=1)[
        changed & ((Z > 0).sum(axis=1) > 5)
    ]
    assert_allclose(probabilities, np.sort(sure)[::-1][: len(shown)])


def test_the_grid_shows_what_the_rule_gave(data, adapter):
    (grid,) = data["selection"]
    results = adapter.classifier_.selection_results_
    assert grid["rule"] == "reverse"
    assert len(grid["cells"]) == len(results) == 9
    for cell in grid["cells"]:
        (own,) = [r for r in results if (r["noise"], r["n_layers"]) == (cell["noise"], cell["n_layers"])]
        assert_allclose(cell["value"], 1 - own["score"], rtol=1e-12)
        assert cell["chosen"] == own["chosen"]


def test_a_large_target_is_sampled_and_the_page_says_so(adapter, reviews):
    from undrift.report import adaptation_report

    books, y, kitchen, truth = reviews
    report = adaptation_report(adapter, books, y, kitchen, truth=truth, max_rows=200)
    card = report.to_dict()["domains"][1]
    assert (card["n_rows"], card["n_sampled"]) == (len(kitchen), 200)
    assert "200 of them, taken at random, are reported on" in report.to_html()


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
    (mark,) = [piece for piece in pieces(document, [word]) if "code" in piece]
    assert mark == {"text": found, "code": 1, "strength": 3, "is_new": True}
    assert found in snippet(document, term)


def test_a_stronger_term_is_marked_before_a_weaker_one_that_overlaps():
    terms = [
        {"term": "not good", "contribution": -0.9, "code": 0, "is_new": False},
        {"term": "good", "contribution": 0.2, "code": 1, "is_new": False},
        {"term": "or", "contribution": 0.01, "code": 1, "is_new": False},  # too little for a colour
    ]
    found = [(p["text"], p.get("code"), p.get("strength")) for p in pieces("not good or good", terms)]
    assert found == [("not good", 0, 3), (" or ", None, None), ("good", 1, 1)]


def test_a_long_document_is_cut_to_a_snippet():
    text = "x " * 100 + "sturdy" + " y" * 100
    assert re.fullmatch(r"….{80,90}sturdy.{80,90}…", snippet(text, "sturdy"))


def test_of_terms_that_stand_together_the_telling_one_is_listed(data):
    listed = [term["term"] for term in data["difference"]["terms"]]
    rows = {name: row[1:5] for name, row in zip(data["terms"]["names"], data["terms"]["rows"], strict=False)}
    assert len({tuple(rows[term]) for term in listed}) == len(listed)
    assert sum(" " not in term for term in listed) > len(listed) / 2
