"""Decks: which rows are in them, and that their weights make the estimate fair."""

import copy
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.report import adaptation_report
from undrift.report.decks import make_decks
from undrift.report.inputs import DomainRows, Evidence

Z = stats.norm.ppf(0.975)


def weighted_interval(weight, wrong):
    """The interval that the page shows, computed here without it."""
    p = np.average(wrong, weights=weight)
    kish = weight.sum() ** 2 / (weight**2).sum()
    variance = ((weight * (wrong - p)) ** 2).sum() / weight.sum() ** 2
    n = min(kish, p * (1 - p) / variance if variance > 0 else math.inf)
    middle, half = p + Z**2 / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return p, (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


@pytest.fixture(scope="module")
def evidence(adapter, reviews):
    books, y, kitchen, _ = reviews
    X = [adapter.vectorizer_.transform(documents) for documents in (books, kitchen)]
    domains = [DomainRows("books", 0, X[0], books, y), DomainRows("kitchen", -1, X[1], kitchen)]
    return Evidence(adapter.classifier_, adapter.terms_, domains)


def test_the_fair_deck_stands_for_all_rows(evidence, reviews):
    deck, kitchen = make_decks(evidence), reviews[2]
    rows = deck["estimate"]
    changed = evidence.source_only_codes[-1] != evidence.adapted_codes[-1]
    assert 58 <= len(rows) <= 62
    assert deck["changed_share"] == pytest.approx(changed.mean())
    position = {text: i for i, text in enumerate(kitchen)}
    for text, predicted, before, _ in rows:
        i = position[text]
        assert (predicted, before) == (evidence.adapted_codes[-1][i], evidence.source_only_codes[-1][i])
    weights = np.array([row[3] for row in rows])
    is_changed = np.array([row[1] != row[2] for row in rows])
    assert_allclose(weights[is_changed].sum(), changed.sum(), rtol=1e-3)
    assert_allclose(weights[~is_changed].sum(), (~changed).sum(), rtol=1e-3)
    # half way between the share of changed rows and one half, in every beginning of the deck too
    part = (changed.mean() + 0.5) / 2
    assert_allclose([is_changed.mean(), is_changed[:20].mean()], [part, part], atol=0.11)


def test_the_estimate_is_right_on_average_and_its_interval_covers_the_truth(evidence):
    """Drawn again and again from a population whose changed rows err more often."""
    rng = np.random.default_rng(0)
    changed = np.arange(3000) < 450
    wrong = rng.random(3000) < np.where(changed, 0.3, 0.06)
    n_changed, covered, errors = round(60 * (0.15 + 0.5) / 2), 0, []
    weight = np.repeat([450 / n_changed, 2550 / (60 - n_changed)], [n_changed, 60 - n_changed])
    for _ in range(1500):
        rows = np.concatenate(
            [rng.choice(450, n_changed, replace=False), rng.choice(np.arange(450, 3000), 60 - n_changed)]
        )
        p, low, high = weighted_interval(weight, wrong[rows].astype(float))
        errors.append(p)
        covered += low <= wrong.mean() <= high
    assert_allclose(np.mean(errors), wrong.mean(), atol=0.004)
    assert covered / 1500 > 0.93


def test_the_other_deck_holds_uncertain_rows_that_the_classifier_asks_for(evidence):
    decks, p = make_decks(evidence), evidence.certainty(-1)
    texts = [row[0] for row in decks["predictions"]]
    taken = {row[0] for row in decks["estimate"]}
    assert len(texts) == len(set(texts)) == 40
    assert not taken & set(texts)
    assert {row[3] for row in decks["predictions"]} == {0.0}
    certainty = dict(zip(evidence.targets[0].documents, p, strict=True))
    free = np.sort([c for text, c in certainty.items() if text not in taken])
    assert max(certainty[text] for text in texts) <= free[160]
    least = sorted((c, text) for text, c in certainty.items() if text not in taken)[:40]
    assert set(texts) != {text for _, text in least}, "rows unlike each other teach more"


def test_without_an_update_state_the_least_certain_rows_are_taken(evidence):
    classifier = copy.copy(evidence.classifier)
    classifier.update_state_ = None
    other = Evidence(classifier, evidence.terms, evidence.domains, evidence.baseline)
    certainty = dict(zip(evidence.targets[0].documents, evidence.certainty(-1), strict=True))
    chosen = [certainty[row[0]] for row in make_decks(other)["predictions"]]
    assert chosen == sorted(chosen)
    assert chosen[0] < np.quantile(list(certainty.values()), 0.02)


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


def test_a_deck_of_long_texts_is_cut(evidence, monkeypatch):
    monkeypatch.setattr("undrift.report.decks.MOST_CHARACTERS", 2_000)
    decks = make_decks(evidence)
    assert 1 <= len(decks["estimate"]) < 40
    assert sum(len(row[0]) for row in decks["estimate"]) <= 2_000
