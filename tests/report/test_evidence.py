"""Changed documents add up to their scores; decks of rows to label make the estimate fair."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.report import adaptation_report
from undrift.report.data import Word
from undrift.report.evidence import cut_pieces, explain_changes
from undrift.report.packed import MOST_CHARACTERS, make_decks

Z = stats.norm.ppf(0.975)


def weighted_interval(weight, wrong):
    """The interval that the page shows, computed here without it."""
    p = np.average(wrong, weights=weight)
    kish = weight.sum() ** 2 / (weight**2).sum()
    variance = ((weight * (wrong - p)) ** 2).sum() / weight.sum() ** 2
    n = min(kish, p * (1 - p) / variance if variance > 0 else math.inf)
    middle, half = p + Z**2 / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return p, (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


def test_the_fair_deck_stands_for_all_rows(given, reviews):
    deck, kitchen = make_decks(given), reviews[2]
    rows = deck["estimate"]
    (target,) = given.targets
    changed = target.is_changed
    assert 58 <= len(rows) <= 62
    assert deck["changed_share"] == pytest.approx(changed.mean())
    position = {text: i for i, text in enumerate(kitchen)}
    for text, predicted, before, _ in rows:
        i = position[text]
        assert (predicted, before) == (target.codes[i], target.baseline[i])
    weights = np.array([row[3] for row in rows])
    is_changed = np.array([row[1] != row[2] for row in rows])
    assert_allclose(weights[is_changed].sum(), changed.sum(), rtol=1e-3)
    assert_allclose(weights[~is_changed].sum(), (~changed).sum(), rtol=1e-3)
    assert_allclose([is_changed.mean(), is_changed[:20].mean()], 0.5, atol=0.11)  # also in every beginning


def test_the_other_deck_holds_uncertain_rows_that_the_classifier_asks_for(given):
    decks, p = make_decks(given), given.targets[0].certainty
    texts = [row[0] for row in decks["predictions"]]
    taken = {row[0] for row in decks["estimate"]}
    assert len(texts) == len(set(texts)) == 40
    assert not taken & set(texts)
    assert {row[3] for row in decks["predictions"]} == {0.0}
    certainty = dict(zip(given.target_rows[0].documents, p, strict=True))
    free = np.sort([c for text, c in certainty.items() if text not in taken])
    assert max(certainty[text] for text in texts) <= free[160]
    least = sorted((c, text) for text, c in certainty.items() if text not in taken)[:40]
    assert set(texts) != {text for _, text in least}, "rows unlike each other teach more"


def test_rows_with_a_label_are_not_asked_for_again(report, reviews):
    _, _, kitchen, truth = reviews
    unlabelled = {text for text, label in zip(kitchen, truth, strict=True) if label is None}
    decks = report.to_dict()["decks"]
    assert {row[0] for name in ("estimate", "predictions") for row in decks[name]} <= unlabelled
    assert decks["n_rows"] == truth.count(None)


def test_without_documents_or_without_unlabelled_rows_there_is_no_deck(adapter, reviews):
    books, y, kitchen, truth = reviews
    known = [i for i, label in enumerate(truth) if label is not None][:50]
    full = adaptation_report(adapter, books, y, [kitchen[i] for i in known], truth=[truth[i] for i in known])
    assert full.to_dict()["decks"] is None
    assert 'id="label"' not in full.to_html()
    assert "on this page" not in " ".join(full.to_dict()["next"])


def test_a_deck_of_long_texts_is_cut(given):
    (target,) = given.target_rows
    long = replace(target, documents=[text * 400 for text in target.documents])
    decks = make_decks(replace(given, target_rows=[long]))
    assert 1 <= len(decks["estimate"]) < 40
    assert sum(len(row[0]) for row in decks["estimate"]) <= MOST_CHARACTERS


def test_changed_documents_changed_and_their_contributions_add_up_to_the_score(report, adapter, reviews):
    _, _, kitchen, truth = reviews
    data = report.to_dict()
    shown = data["changes"]
    assert len(shown) == 6
    for own in shown:
        text = kitchen[own["row"] - 1]
        assert own["from"] != own["to"] == adapter.predict([text])[0]
        assert own["outcome"] == ("corrected" if truth[own["row"] - 1] == own["to"] else "became wrong")
        assert "".join(piece["text"] for piece in own["pieces"]) == text
        score = abs(adapter.decision_function([text])[0])
        parts = [own["start"], own["others"], *(word["effect"] for word in own["words"])]
        assert_allclose(sum(parts), own["score"], atol=1e-9)  # what is written adds up
        assert_allclose(own["score"], score, atol=2e-3)
        assert own["probability"] == pytest.approx(adapter.predict_proba([text]).max())
        for word in own["words"]:
            assert data["classes"][word["code"]] == own["to" if word["effect"] > 0 else "from"]


def test_empty_lines_of_a_document_are_left_out(given):
    (target,) = given.target_rows
    torn = replace(target, documents=[text.replace(" ", "\n \n\n") + "\n" for text in target.documents])
    for own in explain_changes(replace(given, target_rows=[torn])):
        text = "".join(piece["text"] for piece in own["pieces"])
        assert "\n" in text
        assert "\n\n" not in text
        assert text == text.strip()


def test_a_stronger_term_is_marked_before_a_weaker_one_that_overlaps():
    terms = [
        Word(*own, n_labelled=9, rarity=0, source=0.1, target=0.1)
        for own in [
            ("not good", 0, -0.9),
            ("good", 1, 0.2),
            ("or", 1, 0.01),
        ]  # the last too weak for a colour
    ]
    assert cut_pieces("not good or good", terms) == [
        {"text": "not good", "code": 0, "strength": 3, "is_new": False},
        {"text": " or "},
        {"text": "good", "code": 1, "strength": 1, "is_new": False},
    ]
