"""Checks of new rows against the rows of the fit: held-out references, alarms by chance, other rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift.app.drift import (
    check_drift,
    describe_target,
    find_class_directions,
    measure_unseen,
    span_classes,
)
from undrift.text import TermVectorizer

WORDS = [f"w{i}" for i in range(4000)]


def draw_documents(rng, n, tilt=0.0):
    """Draw texts of words with the frequencies of a natural language; `tilt` prefers other words."""
    weights = 1 / np.arange(1, len(WORDS) + 1)
    weights = weights * np.exp(tilt * np.cos(np.arange(len(WORDS))))
    return [" ".join(rng.choice(WORDS, 40, p=weights / weights.sum())) for _ in range(n)]


def make_model(documents, n_terms=20_000):
    vectorizer = TermVectorizer(n_terms).fit(documents)
    return SimpleNamespace(vectorizer_=vectorizer, terms_=vectorizer.terms_, facts_={})


@pytest.mark.parametrize("n_terms", [20_000, 1500])
def test_references_are_those_of_a_fit_without_the_document(rng, n_terms):
    """The oracle chooses the vocabulary again, without each document."""
    documents = draw_documents(rng, 60)
    model = make_model(documents, n_terms)
    reference = describe_target(model, documents)
    least = int(model.vectorizer_.document_frequency_.min()) + 1
    chosen = np.random.default_rng(0).permutation(60)
    for place, i in enumerate(chosen[:10]):
        rest = [text for j, text in enumerate(documents) if j != i]
        counted = TermVectorizer(10**6).fit(rest)
        known = [t for t, n in zip(counted.terms_, counted.document_frequency_, strict=True) if n >= least]
        share = measure_unseen(model, [documents[i]], known)
        assert_allclose(reference["unseen_terms"][place], share[0], rtol=1e-6)


def test_few_batches_of_the_same_rows_are_called_drift():
    """At a level of 0.005 for two tests; 9 of 100 would happen once in a million."""
    rng, alarms = np.random.default_rng(1), 0
    for n_fit in (500, 1500):
        fit = draw_documents(rng, n_fit)
        model = make_model([*draw_documents(rng, 300, tilt=0.5), *fit])
        reference, pool = describe_target(model, fit), draw_documents(rng, 1500)
        for size in (100, 400):
            for _ in range(25):
                drawn = [pool[i] for i in rng.choice(len(pool), size, replace=False)]
                alarms += check_drift(model, reference, drawn).to_dict()["drifted"]
    assert alarms < 9


def test_other_rows_are_drift_and_empty_ones_are_not(rng):
    fit = draw_documents(rng, 600)
    model = make_model(fit)
    reference = describe_target(model, fit)
    other = check_drift(model, reference, draw_documents(rng, 100, tilt=0.4)).to_dict()
    assert other["drifted"]
    assert other["difference"]["drifted"]
    foreign = check_drift(model, reference, [f"ganz andere{i} Worte{i}" for i in range(100)]).to_dict()
    assert foreign["unseen_terms"]["batch"] > 0.9
    assert any("unknown to the model" in reason for reason in foreign["reasons"])
    fit = draw_documents(rng, 300)
    model = make_model(fit)
    found = check_drift(model, describe_target(model, fit), [""] * 5).to_dict()
    assert found["unseen_terms"]["batch"] == 0


@pytest.mark.parametrize(("p", "more", "found"), [(0.006, 0.02, 0), (0.004, 0.02, 2), (0.004, 0.009, 1)])
def test_drift_is_a_rare_chance_and_a_difference_that_counts(rng, set_limits, p, more, found):
    fit = draw_documents(rng, 60)
    model = make_model(fit)
    means = iter([0.2 + more, 0.2, 0.5])  # of terms unknown in the batch and in the fit; of the direction
    set_limits(_compare=lambda *given: p, _mean=lambda *given: next(means))
    checked = check_drift(model, describe_target(model, fit), fit[:10]).to_dict()
    assert (len(checked["reasons"]), checked["drifted"]) == (found, found > 0)


def test_another_mix_of_classes_is_no_drift_and_other_words_are():
    """Classes prefer other words; a batch of the other mix differs along the classes alone."""
    rng = np.random.default_rng(3)

    def draw(n, share, tilt=0.0):
        is_second = np.arange(n) < share * n
        return [draw_documents(rng, 1, tilt + 0.3 * (1 - 2 * second))[0] for second in is_second]

    fit = draw(600, 0.5)
    model = make_model(fit)
    reference = describe_target(model, fit)
    order = np.random.default_rng(0).permutation(600)[: reference["rows"].shape[0]]
    p = np.eye(2)[(order < 300).astype(int)]
    directions = span_classes(reference["rows"], p)
    assert_allclose(directions.T @ directions, np.eye(1), atol=1e-6)
    model.classifier_ = SimpleNamespace(predict_proba=lambda X, target: p)
    assert_allclose(find_class_directions(model, reference, "shop"), directions)
    other_mix = draw(300, 0.1)
    assert check_drift(model, reference, other_mix).drifted
    assert not check_drift(model, reference, other_mix, directions).drifted
    other_words = [
        text.replace("w1 ", "w3900 ").replace("w2 ", "w3901 ").replace("w5 ", "w3902 ")
        for text in draw(300, 0.5)
    ]
    assert check_drift(model, reference, other_words, directions).drifted
