"""Targets that are samples with a given class share, and what `undrift` is compared with there."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from lab.tests.helpers.corpus import DOMAINS
from undrift import MSDAClassifier
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods.baselines import weight_tfidf
from undrift_lab.methods.cells import Cell
from undrift_lab.methods.undrift import stack_tasks
from undrift_lab.metrics import calibration_error
from undrift_lab.parts import load_corpus, sample_target
from undrift_lab.plan import load_plan
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

pytestmark = pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # of few rows

METHODS = ("source-only", "uncentred", "centred", "undrift", "oracle", "balanced")
PLAN = """
methods = ["source-only", "uncentred", "centred", "undrift", "oracle", "balanced"]
baseline_variant = "few"
[corpus]
loader = "amazon-bow"
max_features = 30
[parameters.undrift]
noise = 0.7
n_layers = 2
[[variants]]
name = "few"
target_share = 0.25
[[variants]]
name = "many"
target_share = 0.75
max_target_rows = 40
[[variants]]
name = "other corpus"
target_share = 0.5
targets = ["dvd"]
corpus = { loader = "amazon-bow", max_features = 20 }
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "shares.toml"
    path.write_text(PLAN)
    return load_plan(path)


@pytest.fixture(scope="module")
def finished(plan, data, tmp_path_factory):
    results = tmp_path_factory.mktemp("shares") / "r.jsonl"
    summary = run(plan, results, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (2 * 6 * 6 + 6 * 2, 0)
    return results


def found(results):
    records = [r for r in read(results) if r["kind"] == "transfer"]
    return {(r["variant"], r["method"], r["source"], r["target"]): r for r in records}


def test_a_sample_has_the_share_and_only_labelled_rows_of_the_target(data, plan):
    corpus = load_corpus(plan.corpus, data, 30)
    dvd = corpus.domains["dvd"]
    for share, max_rows, n in ((0.25, 2500, 53), (0.75, 40, 40), (0.5, 2500, 80)):
        sample, numbers = sample_target(corpus, "dvd", share, max_rows, seed=0)
        rows = sample.domains["dvd"]
        assert (len(rows), np.sum(rows.y > 0)) == (n, round(share * n))
        assert rows.test.tolist() == list(range(n))
        assert not len(rows.train)
        assert (dvd.X[numbers] != rows.X).nnz == 0
        assert (rows.y == dvd.y[numbers]).all()
        assert sample.domains["books"] is corpus.domains["books"]
    first, second = (sample_target(corpus, "dvd", 0.25, 20, seed)[0].domains["dvd"].X for seed in (0, 1))
    assert (first != second).nnz


def test_methods_are_the_classifier_on_the_sample_and_all_rows_of_the_other_domains(finished, data, plan):
    changes = {
        "uncentred": {"center": False},
        "centred": {"center": "domains"},
        "undrift": {},
        "balanced": {"border": "balanced"},
        "oracle": {"target_shares": {-1: 0.75, 1: 0.25}},
    }
    corpus = weight_tfidf(sample_target(load_corpus(plan.corpus, data, 30), "toys", 0.25, 2500, 0)[0], 5.0)
    X, domain = corpus.rows()
    domain = np.where(domain == DOMAINS.index("toys"), -1, domain)
    toys, y = corpus.domains["toys"], np.full(len(domain), np.nan)
    books = corpus.domains["books"]
    y[np.flatnonzero(domain == 0)[books.train]] = books.y[books.train]
    true = np.mean(toys.y > 0)
    for method, changed in changes.items():
        if method == "oracle":
            changed = {"target_shares": {-1.0: 1 - true, 1.0: true}}
        model = MSDAClassifier(noise=0.7, n_layers=2, random_state=0, **changed)
        model.fit(X, y, sample_domain=domain)
        record, predicted = found(finished)["few", method, "books", "toys"], model.predict(toys.X)
        assert record["transfer_error"] == np.mean(predicted != toys.y)
        assert record["balanced_error"] == pytest.approx(1 - balanced_accuracy_score(toys.y, predicted))
        p = model.predict_proba(toys.X)
        assert record["calibration_error"] == pytest.approx(calibration_error(p, model.classes_, toys.y))
        shares, expected = model.target_shares_[0], model.expected_error_[0]
        assert record["estimated_share"] == (None if method == "oracle" else pytest.approx(shares[1.0]))
        assert record["expected_error"] == pytest.approx(expected["error"])


def test_source_only_is_least_squares_on_tf_idf_rows_of_the_source(finished, data, plan):
    corpus = weight_tfidf(sample_target(load_corpus(plan.corpus, data, 30), "toys", 0.25, 2500, 0)[0], 5.0)
    dvd, toys = corpus.domains["dvd"], corpus.domains["toys"]
    X, y = dvd.X[dvd.train].toarray().astype(float), dvd.y[dvd.train]
    C = 1 / np.mean(np.sum(X**2, axis=1))  # of the losses' sum; the intercept is not penalised
    A = np.column_stack([X, np.ones(len(X))])
    penalty = np.diag([*np.full(X.shape[1], 1 / C), 0.0])
    w = np.linalg.solve(A.T @ A + penalty, A.T @ y)
    wrong = np.sign(toys.X.toarray() @ w[:-1] + w[-1]) != toys.y
    record = found(finished)["few", "source-only", "dvd", "toys"]
    assert record["transfer_error"] == np.mean(wrong)
    assert record["target_share"] == 0.25
    assert not {"estimated_share", "expected_error", "calibration_error"} & set(record)


def test_records_name_the_share_the_corpus_and_the_in_domain_error_of_it(finished):
    records = found(finished)
    pairs = list(permutations(DOMAINS, 2))
    tasks = [(v, m, *pair) for v in ("few", "many") for m in METHODS for pair in pairs]
    tasks += [("other corpus", m, *pair) for m in METHODS for pair in pairs if pair[1] == "dvd"]
    assert set(records) == set(tasks)
    shares = {"few": 0.25, "many": 0.75, "other corpus": 0.5}
    assert all(record["target_share"] == shares[record["variant"]] for record in records.values())
    assert {r["n_test"] for r in records.values()} == {53, 40, 80}
    assert {r["n_features"] for key, r in records.items() if key[0] == "other corpus"} == {20}
    in_domain = [(r["variant"], r["target"]) for r in read(finished) if r["kind"] == "in-domain"]
    assert sorted(in_domain) == [("few", "books"), ("few", "dvd"), ("few", "toys"), ("other corpus", "dvd")]


def test_a_run_resumes_and_takes_methods_tasks_and_fewer_rows(finished, plan, data, tmp_path):
    summary = run(plan, finished, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (0, 0)
    request = Request(data=data, methods=["undrift", "source-only"], tasks=["books->toys"])
    assert run(plan.smaller(10, None), tmp_path / "r.jsonl", request).n_new == 4
    assert all(record["trial"] for record in read(tmp_path / "r.jsonl"))
    assert not any("trial" in record for record in read(finished))
    some = Request(data=data, methods=["source-only"], variants=["f*"], tasks=["books->toys"])
    assert run(plan, tmp_path / "s.jsonl", some).n_new == 1
    (key, record), *_ = found(tmp_path / "s.jsonl").items()
    assert record["transfer_error"] == found(finished)[key]["transfer_error"]
    with pytest.raises(ValueError, match="no variant is like x; there are few, many, other corpus"):
        run(plan, tmp_path / "t.jsonl", Request(data=data, variants=["x"]))
    assert {r["n_test"] for r in found(tmp_path / "r.jsonl").values()} == {13}


def test_the_calibration_error_is_the_gap_of_confidence_and_accuracy_by_bin():
    p = np.array([0.55, 0.57, 0.95, 0.93, 1.0, 0.2])
    p = np.column_stack([1 - p, p])
    truth = np.array([1, 0, 1, 1, 0, 0])
    by_hand = (abs(1.12 - 1) + abs(2.88 - 2) + abs(0.8 - 1)) / 6
    assert calibration_error(p, np.array([0, 1]), truth) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("inductive", "is_split", "numbers"),
    [
        (False, False, {10: -2, 11: -2, 12: -2, 13: -2}),
        (False, True, {12: -2, 10: -4, 11: -4, 13: -4}),
        (True, False, {10: -2, 11: -2, 13: -2}),
        (True, True, {10: -2, 11: -2, 13: -4}),
    ],
)
def test_rows_of_a_target_that_are_like_the_predicted_ones_are_a_target(inductive, is_split, numbers):
    parts = {"train": np.array([0, 1]), "test": np.array([2]), "unlabelled": np.array([3])}
    y = np.array([0.0, 1.0, 1.0, np.nan])
    rows = {name: np.arange(4.0)[:, None] + start for name, start in (("a", 0), ("b", 10))}
    corpus = Corpus("both", {name: Domain(name, X=X, y=y, **parts) for name, X in rows.items()})
    cell = Cell("undrift", "a", "b")
    X, tasks = stack_tasks(corpus, [cell], inductive=inductive, is_split=is_split)
    labels, domain = tasks[cell]
    assert {
        int(x): number for x, number in zip(X[:, 0], domain.tolist(), strict=True) if number < 0
    } == numbers
    assert dict(zip(X[~np.isnan(labels), 0], labels[~np.isnan(labels)], strict=True)) == {0: 0, 1: 1}
