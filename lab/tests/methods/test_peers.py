"""Peers against stubs: what a package is given, what becomes of its predictions, failures and time."""

import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

from lab.tests.helpers.corpus import write_corpus
from undrift_lab.catalogue import PEERS, Peer
from undrift_lab.methods import peers
from undrift_lab.parts import load_corpus
from undrift_lab.plan import load_plan
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

rng = np.random.default_rng(0)


class Stub:
    """Nearest class mean on the rows given, as a method of skada and of adapt is called."""

    fitted = []

    def __init__(self, base, **settings):
        self.base, self.settings = base, settings

    def get_params(self, deep=True):
        return {"base": self.base, **self.settings}

    def fit(self, X, y, target=None, sample_domain=None):
        Stub.fitted.append((self, X, y, target, sample_domain))
        rows = X if sample_domain is None else X[sample_domain > 0]
        labels = y if sample_domain is None else y[sample_domain > 0]
        self.means = np.array([rows[labels == k].mean(axis=0) for k in np.unique(labels)])
        return self

    def predict(self, X, sample_domain=None):
        return ((X[:, None] - self.means[None]) ** 2).sum(axis=2).argmin(axis=1)


@pytest.fixture
def stubs(monkeypatch):
    Stub.fitted = []
    for name in ("skada", "adapt", "adapt.feature_based"):
        module = types.ModuleType(name)
        module.Method = Stub
        monkeypatch.setitem(sys.modules, name, module)


def make_task(n=60, n_columns=12):
    y = np.repeat([-1, 1], n // 2)
    X = rng.poisson(1.0 + 2.0 * (y[:, None] * (np.arange(n_columns) < 6) > 0)).astype(np.float32)
    return sp.csr_array(X), y


def fit(peer):
    (X, y), (X_target, y_target) = make_task(), make_task()
    return X, X_target, y_target, peers.fit_task(peer, X, y, X_target, X_target, 0)


def test_logistic_regression_on_components_is_what_the_others_start_from():
    from sklearn.linear_model import LogisticRegression

    (X, y), (X_target, _) = make_task(), make_task()
    predicted, params, _, _ = peers.fit_task(
        Peer("sklearn", "logistic", {}, {}, (4,)), X, y, X_target, X_target, 0
    )
    both = np.vstack([X.toarray(), X_target.toarray()]).astype(float)
    V = np.linalg.svd(both, full_matrices=False)[2][:4].T
    model = LogisticRegression(C=params["C"], max_iter=1000).fit(X @ V, y)
    assert params["components"] == 4
    assert (predicted == model.predict(X_target @ V)).all()


@pytest.mark.parametrize("package", ["skada", "adapt.feature_based"])
def test_a_dense_peer_gets_components_of_both_domains_and_no_target_label(stubs, package):
    monkey = {"verbose": 0, "random_state": 0} if package != "skada" else {}
    X_source, X_target, y_target, result = fit(Peer(package, "Method", {"a": 3}, {}, (4,)))
    predicted, params, cost, seconds = result
    assert np.mean(predicted == y_target) > 0.9
    assert set(predicted) <= {-1, 1}
    assert params == {"components": 4, "a": 3}
    assert cost > 0
    assert seconds >= 0
    ((model, X, y, target, domains),) = Stub.fitted
    assert model.settings == {"a": 3, **monkey}
    both = np.vstack([X_source.toarray(), X_target.toarray()])
    given = X if target is None else np.vstack([X, target])
    # singular components keep the inner products of the best approximation of rank four
    U, s, _ = np.linalg.svd(both.astype(float), full_matrices=False)
    approximation = (U[:, :4] * s[:4] ** 2) @ U[:, :4].T
    np.testing.assert_allclose(given @ given.T, approximation, atol=0.02 * s[0] ** 2)
    if package == "skada":
        assert (y[60:] == -1).all()
        assert (domains == np.repeat([peers.SOURCE, peers.TARGET], 60)).all()


def test_the_setting_with_the_best_label_free_score_is_fitted(stubs, set_limits):
    scores = {1: 0.2, 2: 0.9, 3: 0.9}
    set_limits(_score_without_labels=lambda model, *rest: scores[model.settings["a"]])
    params = fit(Peer("skada", "Method", {}, {"a": (1, 2, 3)}, (4,)))[-1][1]
    assert params["a"] == 2  # the first of equals


def test_naive_bayes_features_are_presence_times_the_log_count_ratio():
    X, y = sp.csr_array(np.array([[2.0, 0, 1], [0, 3, 1], [1, 0, 0]])), np.array([0, 1, 0])
    p, q = np.array([1, 2, 2]) / 5, np.array([3, 1, 2]) / 6  # with one count added
    expected = (X.toarray() > 0) * np.log(p / q)
    np.testing.assert_allclose(peers.NaiveBayesFeatures().fit(X, y).transform(X).toarray(), expected)
    with pytest.raises(ValueError, match="two classes, but there are 3"):
        peers.NaiveBayesFeatures().fit(X, np.array([0, 1, 2]))


def test_em_finds_and_predicts_for_the_targets_shares(rng):
    y, truth = np.repeat([0, 1], 500), rng.random(20_000) < 0.8
    likelihood = np.exp(2 * rng.normal(2 * truth - 1, 1))  # two normal distributions of distance 2
    p = np.column_stack([1 - likelihood / (1 + likelihood), likelihood / (1 + likelihood)])  # at equal shares
    np.testing.assert_allclose(peers.estimate_prior_ratio(p, y), [0.2 / 0.5, 0.8 / 0.5], atol=0.02)
    alike = peers.estimate_prior_ratio(np.tile([0.5, 0.5], (10, 1)), y)
    np.testing.assert_allclose(alike, [1, 1])  # rows that say nothing leave the shares
    codes, truth = np.repeat([0, 1], 300), np.repeat([0, 1], [450, 50])
    X, target = (sp.csr_array(rng.normal(2.0 * c[:, None] - 1, 1.5, (len(c), 1))) for c in (codes, truth))
    predictions = {}
    for name in ("logistic", "logistic-em"):
        predicted, *_ = peers.fit_task(Peer("sklearn", name), X, codes, target, target, 0)
        predictions[name] = predicted
    assert predictions["logistic-em"].mean() < 0.7 * predictions["logistic"].mean()
    assert (predictions["logistic-em"] != truth).mean() < (predictions["logistic"] != truth).mean()


PLAN = """
methods = ["svm-tfidf", "self-training", "nb-features", "logistic-tfidf", "skada-coral"]
[corpus]
loader = "amazon-bow"
[[variants]]
name = "whole"
[[variants]]
name = "few"
target_share = 0.25
[[variants]]
name = "inductive"
inductive = true
methods = ["svm-tfidf", "logistic-tfidf"]
"""


@pytest.mark.parametrize("inductive", [False, True])
def test_an_inductive_task_is_given_no_test_rows_to_learn_from(tmp_path, spy, inductive):
    calls = spy(peers, "fit_task")
    write_corpus(tmp_path / "amazon-bow")
    (tmp_path / "p.toml").write_text(
        f'methods = ["self-training"]\ninductive = {str(inductive).lower()}\n'
        '[corpus]\nloader = "amazon-bow"\n'
    )
    plan = load_plan(tmp_path / "p.toml")
    run(plan, tmp_path / "r.jsonl", Request(data=tmp_path, jobs=1, tasks=["books->dvd"]))
    ((_, X, _, X_target, X_test, _),) = calls
    n_train, n_seen, n_test = X.shape[0], X_target.shape[0], X_test.shape[0]
    domain = load_corpus(plan.corpus, tmp_path, 30).domains["dvd"]
    assert (n_test, n_seen) == (len(domain.test), len(domain) - inductive * len(domain.test))
    assert n_train > 0


def test_peers_run_in_a_plan_and_a_missing_package_is_a_recorded_failure(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skada", None)
    write_corpus(tmp_path / "amazon-bow")
    (tmp_path / "p.toml").write_text(PLAN)
    request = Request(data=tmp_path, jobs=1, tasks=["books->*"])
    run(load_plan(tmp_path / "p.toml"), tmp_path / "r.jsonl", request)
    records = [r for r in read(tmp_path / "r.jsonl") if r["kind"] == "transfer"]
    assert len(records) == 2 * (5 + 5 + 2)
    failed = {r["method"]: r["failed"] for r in records if "failed" in r}
    assert list(failed) == ["skada-coral"]
    assert failed["skada-coral"].startswith("ModuleNotFoundError")
    ours = [r for r in records if r["method"] in PEERS and "failed" not in r]
    assert all(r["represent_seconds"] > 0 and r["params"]["C"] in peers.C_GRID for r in ours)
    assert {r["target_share"] for r in records if r["variant"] == "few" and "failed" not in r} == {0.25}
    assert all(r["transfer_error"] < 0.5 for r in ours)
