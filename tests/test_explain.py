import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tests.helpers.exact import ExactClassifier
from undrift import MSDA
from undrift.explain import (
    document_terms,
    effective_weights,
    position_of,
    reconstruction,
    score_contributions,
    term_weight,
    top_terms,
)

pytestmark = pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
TERMS = ["good", "bad", "page turner", "boring", "energy efficient", "flimsy", "the", "the lid"]


def draw_reviews(rng, n, good_column, bad_column):
    """Rows and labels: shared words for both opinions, and words of one domain beside them."""
    X, y = np.zeros((n, 8)), rng.integers(2, size=n)
    for shared, specific, label in ((0, good_column, 1), (1, bad_column, 0)):
        rows = np.flatnonzero(y == label)
        X[rows, shared] = rng.uniform(size=len(rows)) < 0.7
        X[rows, specific] = rng.uniform(size=len(rows)) < 0.7
    X[:, 6] = rng.integers(3, size=n)
    return X, np.array(["negative", "positive"])[y]


@pytest.fixture
def domains(rng):
    books, labels = draw_reviews(rng, 200, 2, 3)
    kitchen, _ = draw_reviews(rng, 200, 4, 5)
    kitchen[:, 7] = kitchen[:, 6] > 1
    return books, labels, kitchen


def fit_classifier(domains, **options):
    books, labels, kitchen = domains
    return ExactClassifier(**{"n_layers": 2, "noise": 0.5, "self_training": False, **options}).fit(
        books, labels, kitchen
    )


@pytest.mark.parametrize("options", [{"n_layers": 1}, {"n_layers": 3, "self_training": True}])
def test_effective_weights_are_slopes_of_the_score(domains, options):
    """By differences, at the mean target row."""
    model, step = fit_classifier(domains, **options), 1e-4
    mean = domains[2].mean(axis=0)
    ahead, behind = (model.decision_function(mean + sign * step * np.eye(8)) for sign in (1, -1))
    # balanced layers of small variance have large weights, whose rounding the step divides by
    assert_allclose(effective_weights(model)[:, 0], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


def test_reconstruction_and_weights_with_pivots(domains):
    model = fit_classifier(domains, n_pivots=4, random_state=0)
    mean, step = domains[2].mean(axis=0), 1e-5
    ahead, behind = (model.decision_function(mean + sign * step * np.eye(8)) for sign in (1, -1))
    assert_allclose(effective_weights(model)[:, 0], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)
    stack = model.representation_
    layer, pivots = stack.layers_[0], stack.pivots_
    listed = reconstruction(stack, TERMS, TERMS[pivots[1]], 8)
    assert dict(listed["from"]) == {
        TERMS[j]: round(float(layer.coef[j, 1]), 6) for j in range(8) if j != pivots[1]
    }
    assert dict(listed["to"]) == {
        TERMS[j]: round(float(layer.coef[pivots[1], i]), 6) for i, j in enumerate(pivots) if i != 1
    }
    (other, *_) = set(range(8)) - set(pivots.tolist())
    assert reconstruction(stack, TERMS, TERMS[other])["from"] == []
    assert len(reconstruction(stack, TERMS, TERMS[other])["to"]) == 4
    with pytest.raises(ValueError, match="does not map the 8 terms"):
        reconstruction(MSDA(1).fit(np.eye(5)), TERMS, "good")


def test_weights_of_terms_without_labels_and_their_reconstruction(domains):
    model = fit_classifier(domains)
    for term, sign in (("energy efficient", 1), ("flimsy", -1)):
        weight = term_weight(model, TERMS, term)
        assert weight["n_labelled"] == 0
        assert weight["outputs"][0]["class"] == "positive"
        assert weight["outputs"][0]["direct"] == 0
        assert sign * weight["outputs"][0]["weight"] > 0.05
    ranks = [term_weight(model, TERMS, term)["outputs"][0]["rank"] for term in TERMS]
    assert sorted(ranks) == list(range(1, 9))
    weights = effective_weights(model)[:, 0]
    assert [TERMS[j] for j in np.argsort(-weights)] == [t for _, t in sorted(zip(ranks, TERMS, strict=True))]
    stack = fit_classifier(domains).representation_
    layer = stack.layers_[0]
    listed = reconstruction(stack, TERMS, "energy efficient", 3)
    j = 4
    others = [i for i in range(8) if i != j]
    for way, weights in (("from", layer.coef[:, j]), ("to", layer.coef[j])):
        best = sorted(others, key=lambda i: -weights[i])[:3]
        assert [name for name, _ in listed[way]] == [TERMS[i] for i in best]
        assert_allclose([weight for _, weight in listed[way]], weights[best], atol=1e-6)
    assert listed["from"][0][0] == "good"


def test_top_and_new_terms(domains):
    model = fit_classifier(domains)
    weights = effective_weights(model)[:, 0]
    tops = top_terms(model, TERMS, 2)
    assert [top["class"] for top in tops] == ["negative"] * 2 + ["positive"] * 2
    assert [top["term"] for top in tops[2:]] == [TERMS[j] for j in np.argsort(-weights)[:2]]
    assert [top["term"] for top in tops[:2]] == [TERMS[j] for j in np.argsort(weights)[:2]]
    assert_allclose([top["weight"] for top in tops[:2]], -np.sort(weights)[:2])
    unseen = top_terms(model, TERMS, 5, only_new=True)  # "the lid" has a stop word in it
    assert [(new["class"], new["term"]) for new in unseen] == [
        ("negative", "flimsy"),
        ("positive", "energy efficient"),
    ]
    assert all(new["n_labelled"] == 0 and new["weight"] > 0 for new in unseen)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_effects_on_a_document_are_exact(domains, form):
    model = fit_classifier(domains)
    row = np.array([[1.0, 0, 0, 0, 1, 0, 2, 0]])
    effects = document_terms(model, TERMS, form(row))
    score = model.decision_function(row)[0]
    assert model.predict(row)[0] == "positive"
    for effect in effects:
        without = row.copy()
        without[0, TERMS.index(effect["term"])] = 0
        assert_allclose(effect["effect"], score - model.decision_function(without)[0], rtol=1e-9)
    assert {effect["term"] for effect in effects} == {"good", "energy efficient", "the"}
    sizes = [abs(effect["effect"]) for effect in effects]
    assert sizes == sorted(sizes, reverse=True)
    assert [effect["n_labelled"] for effect in effects if effect["term"] == "energy efficient"] == [0]
    assert len(document_terms(model, TERMS, form(row), 2)) == 2
    assert document_terms(model, TERMS, form(row * 0)) == []


def test_effects_are_positive_for_terms_of_the_predicted_class(domains):
    model = fit_classifier(domains)
    row = np.array([[0, 1.0, 0, 0, 0, 1, 0, 0]])
    assert model.predict(row)[0] == "negative"
    assert all(effect["effect"] > 0 for effect in document_terms(model, TERMS, row))


def test_unknown_terms_get_a_suggestion(domains):
    assert position_of("boring", TERMS) == 3
    with pytest.raises(LookupError, match=r"'borring' is not among the 8 terms.*did you mean 'boring'\?"):
        position_of("borring", TERMS)
    with pytest.raises(LookupError, match=r"'zebra' is not among the 8 terms of this model$"):
        position_of("zebra", TERMS)
    with pytest.raises(ValueError, match="one row is explained at a time, got 2"):
        document_terms(fit_classifier(domains), TERMS, np.ones((2, 8)))


@pytest.mark.parametrize("options", [{}, {"n_layers": 3}, {"center": "domains"}])
def test_contributions_add_up_to_the_score(domains, options):
    model, rows = fit_classifier(domains, **options), domains[2][:6]
    scores = model.decision_function(rows)
    base, contributions = score_contributions(model, rows, np.ones((6, 1)), target="target")
    assert_allclose(base + contributions.sum(axis=1), scores, rtol=1e-8, atol=1e-8)
    assert_allclose(base, model.decision_function(np.zeros((6, 8))))
    assert np.all(contributions[rows == 0] == 0)
    assert np.abs(scores).max() > 0.1


@pytest.mark.slow
def test_contributions_are_the_gradient_along_the_way_from_nothing(domains):
    """By a sum over many small steps of differences of the score."""
    model, row = fit_classifier(domains), domains[2][3]
    steps, total = np.linspace(0, 1, 401), np.zeros(8)
    for middle in (steps[:-1] + steps[1:]) / 2:
        ahead, behind = (model.decision_function(middle * row + sign * 1e-4 * np.eye(8)) for sign in (1, -1))
        total += row * (ahead - behind) / 2e-4 / 400
    _, contributions = score_contributions(model, row[None], np.ones((1, 1)))
    assert_allclose(contributions[0], total, rtol=1e-4, atol=1e-6)
