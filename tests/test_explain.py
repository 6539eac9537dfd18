import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from undrift import MSDAClassifier
from undrift.explain import (
    document_terms,
    effective_weights,
    new_terms,
    position_of,
    reconstruction,
    term_weight,
    top_terms,
)

TERMS = ["good", "bad", "page turner", "boring", "energy efficient", "flimsy", "the", "the lid"]


def reviews(rng, n, own_good, own_bad):
    """Rows and labels: shared words for both opinions, and words of one domain beside them."""
    X, y = np.zeros((n, 8)), rng.integers(2, size=n)
    for shared, own, label in ((0, own_good, 1), (1, own_bad, 0)):
        rows = np.flatnonzero(y == label)
        X[rows, shared] = rng.uniform(size=len(rows)) < 0.7
        X[rows, own] = rng.uniform(size=len(rows)) < 0.7
    X[:, 6] = rng.integers(3, size=n)
    return X, np.array(["negative", "positive"])[y]


@pytest.fixture
def domains(rng):
    books, labels = reviews(rng, 200, 2, 3)
    kitchen, _ = reviews(rng, 200, 4, 5)
    kitchen[:, 7] = kitchen[:, 6] > 1
    return books, labels, kitchen


def fitted(domains, **options):
    books, labels, kitchen = domains
    return MSDAClassifier(**{"n_layers": 2, "noise": 0.5, "dtype": "float64", **options}).fit(
        books, labels, kitchen
    )


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "identity"])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_effective_weights_are_slopes_of_the_score(domains, activation, n_layers):
    """By differences, at the mean target row."""
    model, step = fitted(domains, activation=activation, n_layers=n_layers), 1e-5
    mean = domains[2].mean(axis=0)
    ahead, behind = (model.decision_function(mean + sign * step * np.eye(8)) for sign in (1, -1))
    assert_allclose(effective_weights(model)[:, 0], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)


def test_effective_weights_of_several_classes(domains, rng):
    books, _, kitchen = domains
    y = np.array(["a", "b", "c"])[rng.integers(3, size=200)]
    model = MSDAClassifier(2, 0.5, dtype="float64").fit(books, y, kitchen)
    mean, step = kitchen.mean(axis=0), 1e-5
    ahead, behind = (model.decision_function(mean + sign * step * np.eye(8)) for sign in (1, -1))
    assert_allclose(effective_weights(model), (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)
    tops = top_terms(model, TERMS, 2)
    assert {own["class"] for own in tops} <= {"a", "b", "c"}
    assert [own["class"] for own in term_weight(model, TERMS, "good")["outputs"]] == ["a", "b", "c"]


def test_with_pivots(domains):
    model = fitted(domains, n_pivots=4, random_state=0)
    mean, step = domains[2].mean(axis=0), 1e-5
    ahead, behind = (model.decision_function(mean + sign * step * np.eye(8)) for sign in (1, -1))
    assert_allclose(effective_weights(model)[:, 0], (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)
    stack = model.representation_
    layer, pivots = stack.layers_[0], stack.pivots_
    found = reconstruction(layer, TERMS, TERMS[pivots[1]], 8, pivots=pivots)
    assert dict(found["from"]) == {
        TERMS[j]: round(float(layer.coef[j, 1]), 6) for j in range(8) if j != pivots[1]
    }
    assert dict(found["to"]) == {
        TERMS[j]: round(float(layer.coef[pivots[1], i]), 6) for i, j in enumerate(pivots) if i != 1
    }
    (other, *_) = set(range(8)) - set(pivots.tolist())
    assert reconstruction(layer, TERMS, TERMS[other], pivots=pivots)["from"] == []
    assert len(reconstruction(layer, TERMS, TERMS[other], pivots=pivots)["to"]) == 4
    with pytest.raises(ValueError, match="does not map the 8 terms"):
        reconstruction(layer, TERMS, "good")


def test_a_term_without_labels_gets_its_weight_from_the_layers(domains):
    model = fitted(domains)
    for term, sign in (("energy efficient", 1), ("flimsy", -1)):
        found = term_weight(model, TERMS, term)
        assert found["n_labelled"] == 0
        assert found["outputs"][0]["class"] == "positive"
        assert found["outputs"][0]["direct"] == 0
        assert sign * found["outputs"][0]["weight"] > 0.05
    ranks = [term_weight(model, TERMS, term)["outputs"][0]["rank"] for term in TERMS]
    assert sorted(ranks) == list(range(1, 9))
    weights = effective_weights(model)[:, 0]
    assert [TERMS[j] for j in np.argsort(-weights)] == [t for _, t in sorted(zip(ranks, TERMS, strict=True))]


def test_reconstruction_lists_the_largest_weights(domains):
    layer = fitted(domains).representation_.layers_[0]
    found = reconstruction(layer, TERMS, "energy efficient", 3)
    j = 4
    others = [i for i in range(8) if i != j]
    for way, weights in (("from", layer.coef[:, j]), ("to", layer.coef[j])):
        best = sorted(others, key=lambda i: -weights[i])[:3]
        assert [name for name, _ in found[way]] == [TERMS[i] for i in best]
        assert_allclose([weight for _, weight in found[way]], weights[best], atol=1e-6)
    assert found["from"][0][0] == "good"


def test_top_and_new_terms(domains):
    model = fitted(domains)
    weights = effective_weights(model)[:, 0]
    tops = top_terms(model, TERMS, 2)
    assert [own["class"] for own in tops] == ["negative"] * 2 + ["positive"] * 2
    assert [own["term"] for own in tops[2:]] == [TERMS[j] for j in np.argsort(-weights)[:2]]
    assert [own["term"] for own in tops[:2]] == [TERMS[j] for j in np.argsort(weights)[:2]]
    assert_allclose([own["weight"] for own in tops[:2]], -np.sort(weights)[:2])
    unseen = new_terms(model, TERMS, 5)  # "the lid" has a stop word in it
    assert [(own["class"], own["term"]) for own in unseen] == [
        ("negative", "flimsy"),
        ("positive", "energy efficient"),
    ]
    assert all(own["n_labelled"] == 0 and own["weight"] > 0 for own in unseen)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_effects_on_a_document_are_exact(domains, form):
    model = fitted(domains)
    row = np.array([[1.0, 0, 0, 0, 1, 0, 2, 0]])
    found = document_terms(model, TERMS, form(row))
    score = model.decision_function(row)[0]
    assert model.predict(row)[0] == "positive"
    for own in found:
        without = row.copy()
        without[0, TERMS.index(own["term"])] = 0
        assert_allclose(own["effect"], score - model.decision_function(without)[0], rtol=1e-9)
    assert {own["term"] for own in found} == {"good", "energy efficient", "the"}
    sizes = [abs(own["effect"]) for own in found]
    assert sizes == sorted(sizes, reverse=True)
    assert [own["n_labelled"] for own in found if own["term"] == "energy efficient"] == [0]
    assert len(document_terms(model, TERMS, form(row), 2)) == 2
    assert document_terms(model, TERMS, form(row * 0)) == []


def test_effects_speak_for_the_predicted_class(domains):
    model = fitted(domains)
    row = np.array([[0, 1.0, 0, 0, 0, 1, 0, 0]])
    assert model.predict(row)[0] == "negative"
    assert all(own["effect"] > 0 for own in document_terms(model, TERMS, row))


def test_one_document_at_a_time(domains):
    with pytest.raises(ValueError, match="one row is explained at a time, got 2"):
        document_terms(fitted(domains), TERMS, np.ones((2, 8)))


def test_unknown_terms_get_a_suggestion():
    assert position_of("boring", TERMS) == 3
    with pytest.raises(LookupError, match=r"'borring' is not among the 8 terms.*did you mean 'boring'\?"):
        position_of("borring", TERMS)
    with pytest.raises(LookupError, match=r"'zebra' is not among the 8 terms of this model$"):
        position_of("zebra", TERMS)
