"""Distances are measured on what the classifier sees: centred, balanced, presence where x > 0."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift import MSDAClassifier
from undrift.report.distances import seen_gram
from undrift.report.inputs import DomainRows


def layer_values(classifier, X):
    """Terms and layers of rows, one after another."""
    values, H = [X], (X > 0).astype(float)
    for layer in classifier.representation_.layers_:
        H = layer(H)
        values.append(H)
    return values


@pytest.fixture
def rows():
    """Two sources and a target with entries of either sign."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 6)) + shift for n, shift in ((60, 0.0), (50, 0.5), (70, 1.0))]


@pytest.mark.parametrize("center", ["classes", "domains", False])
@pytest.mark.parametrize("balance_layers", [True, False])
def test_seen_rows_give_the_scores_of_the_classifier(rows, center, balance_layers):
    """Rows built by hand give the classifier's scores, so they are what it sees; their Gram is ours."""
    X = np.concatenate(rows)
    number, code = (np.repeat(values, [60, 50, 70]) for values in ([0, 1, -1], [0, 1, 2]))
    y = np.where(X[:, 0] > X[:, 1], "a", "b").astype(object)
    y[number < 0] = None
    classifier = MSDAClassifier(
        2, 0.5, binarize=True, center=center, balance_layers=balance_layers, dtype="float64", fallback=False
    ).fit(X, y, sample_domain=number)
    seen, scores = [], np.zeros(len(X))
    for H, weights in zip(layer_values(classifier, X), classifier.coef_, strict=True):
        Z = H - np.stack([H[code == k].mean(axis=0) for k in range(3)])[code] if center else H
        share = 1 / np.mean(np.sum(Z**2, axis=1)) if balance_layers else 1.0
        scores += Z @ weights[:, 0]
        seen.append(np.sqrt(share) * Z)
    steps = classifier.decision_function(X, sample_domain=number) - scores - classifier.centred_intercept_[0]
    if center == "classes":  # domains have been moved as wholes
        assert abs(steps[code == 2].mean()) > 1e-3
        steps -= np.array([steps[code == k].mean() for k in range(3)])[code]
    assert_allclose(steps, 0, atol=1e-9)
    domains = [DomainRows(str(k), n, own) for k, (n, own) in enumerate(zip((0, 1, -1), rows, strict=True))]
    Z = np.concatenate(seen, axis=1)
    assert_allclose(seen_gram(classifier, X, code, domains), Z @ Z.T, rtol=1e-7, atol=1e-9)


def test_the_report_has_both_distances(report):
    target = report.to_dict()["domains"][1]
    assert target["before"] != target["after"]
