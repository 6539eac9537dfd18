"""`benchmarks/family.py`: its layers against the expectation over every mask of every entry."""

import importlib
import json
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch")

from undrift._core.scatter import scatter

SCRIPTS = Path(__file__).parents[3] / "benchmarks"
NOISE, RIDGE = 0.7, 1e-5


@pytest.fixture(scope="module", autouse=True)
def scripts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        yield
    for name in ("family", "family_layers"):
        sys.modules.pop(name, None)


@pytest.fixture
def family():
    return importlib.import_module("family_layers")


# three rows of one domain and two of another, over two terms: 2^10 masks
X = np.array([[2.0, 1.0], [0.5, 3.0], [1.0, 0.0], [4.0, 1.0], [3.0, 2.5]])
DOMAIN = np.array([0, 0, 0, 1, 1])


def solved(solve):
    """Weights of the layer of each domain, the intercept last."""
    rows = {name: torch.as_tensor(X[name == DOMAIN]) for name in (0, 1)}
    layers = solve(0, rows, {name: scatter(own) for name, own in rows.items()})
    return {name: torch.vstack([own.coef, own.intercept]).numpy() for name, own in layers.items()}


def masked():
    """Every corruption of the rows, with its probability."""
    for mask in product([0.0, 1.0], repeat=X.size):
        n_kept = sum(mask)
        yield X * np.reshape(mask, X.shape), (1 - NOISE) ** n_kept * NOISE ** (X.size - n_kept)


def expected_weights(constants, penalty=lambda corrupted: np.zeros((2, 2))):
    """Weights on the features and on `constants`, which are never corrupted."""
    d, wide = X.shape[1], X.shape[1] + constants.shape[1]
    P, Q = np.zeros((wide, d)), np.zeros((wide, wide))
    Q[:d, :d] = RIDGE * np.eye(d)
    for corrupted, probability in masked():
        inputs = np.hstack([corrupted, constants])
        P += probability * inputs.T @ X
        Q += probability * inputs.T @ inputs
        Q[:d, :d] += probability * penalty(corrupted)
    return np.linalg.solve(Q, P)


ONES = np.ones((len(X), 1))


def between(corrupted):
    """Scatter of the means of the domains."""
    apart = [corrupted[name == DOMAIN].mean(axis=0) - corrupted.mean(axis=0) for name in DOMAIN]
    return np.transpose(apart) @ np.array(apart)


@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_mmd_has_the_exact_diagonal(family, weight):
    expected = expected_weights(ONES, lambda corrupted: weight * between(corrupted))
    for found in solved(partial(family.mmd, weight=weight)).values():
        assert_allclose(found, expected, rtol=1e-9)


def test_an_intercept_for_each_domain_is_a_constant_for_each(family):
    found, expected = solved(family.within), expected_weights(DOMAIN[:, None] == np.arange(2))
    for name in (0, 1):
        assert_allclose(found[name], expected[[0, 1, 2 + name]], rtol=1e-9)


def test_masking_is_what_the_others_start_from(family):
    for solve in (family.masking, partial(family.per_feature, probability=np.full(2, NOISE))):
        assert_allclose(solved(solve)[1], expected_weights(ONES), rtol=1e-9)


@pytest.mark.parametrize("free", [True, False])
def test_no_step_improves_on_target_regularisation(family, free):
    eta, task = 0.7, family.Task(0, 1)
    own = {name: scatter(torch.as_tensor(X[name == DOMAIN])) for name in (0, 1)}
    z = family.domain_direction(own[0], own[1], 1.0).numpy()
    sides = np.where(DOMAIN == 1, 1.0, -1.0)
    assert_allclose(z, np.linalg.solve(X.T @ X + np.mean(X**2) * 5 * np.eye(2), X.T @ sides), rtol=1e-9)

    def loss(weights):
        W, b = weights[:2], weights[2]
        total = RIDGE * (np.sum(W**2) + eta * np.sum((W @ z) ** 2))
        for corrupted, probability in masked():
            output = corrupted @ W + b
            total += probability * (np.sum((X - output) ** 2) + eta * np.sum((1 - output @ z) ** 2))
        return total

    best = solved(partial(family.target_regularised, task=task, eta=eta, free=free))[0]
    assert np.abs(best[2]).max() > 0 if free else not best[2].any()
    for place in product(range(3 if free else 2), range(2)):
        step = np.zeros((3, 2))
        step[place] = 1.0  # the loss is quadratic, so that these differences are exact
        assert abs(loss(best + step) - loss(best - step)) < 1e-9 * loss(best)


def test_structured_dropout_is_the_limit_of_all_noise(family):
    stats = scatter(torch.as_tensor(X))
    limit = family.denoise(stats, 1 - 1e-9, 0.0)
    found = solved(family.structured)[0]
    assert_allclose(found[:2], limit.coef.numpy(), rtol=1e-4)
    assert_allclose(found[2], limit.intercept.numpy(), rtol=1e-4)


def test_terms_of_one_domain_are_specific_and_shared_ones_are_not():
    family = importlib.import_module("family")
    rates = {"a": np.array([0.2, 0.3, 0.0]), "b": np.array([0.2, 0.0, 0.0]), "c": np.array([0.2, 0.0, 0.0])}
    assert_allclose(family.specificity(rates)[:2], [0, 1], atol=1e-9)


def test_all_variants_run_and_are_told(monkeypatch, capsys):
    family = importlib.import_module("family")
    options = ["--corpora", "reviews", "--rows", "20", "--terms", "40"]
    monkeypatch.setattr(sys, "argv", ["family.py", *options])
    family.main()
    *_, last = capsys.readouterr().out.splitlines()
    records = json.loads(last)["reviews"]
    assert records[0]["variant"] == "masking 0.7"
    assert records[0]["difference"] == 0
    assert len({record["variant"] for record in records}) == len(records) >= 16
    for record in records:
        paired = np.mean(np.array(record["errors"]) - records[0]["errors"])
        assert abs(record["difference"] - paired) < 2e-5
        assert record["interval"][0] <= record["difference"] <= record["interval"][1]
