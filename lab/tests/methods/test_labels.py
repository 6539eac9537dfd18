"""Methods with target labels: which rows they learn from, and which they predict."""

from collections import defaultdict
from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from undrift import MSDAClassifier
from undrift.text import TFIDF_LENGTH
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods.baselines import weight_tfidf
from undrift_lab.methods.labels import LabelTask, draw_halves, put_draws
from undrift_lab.parts import load_corpus, sample_target
from undrift_lab.plan import load_plan
from undrift_lab.results.frame import make_frame
from undrift_lab.results.records import read
from undrift_lab.results.tables import labels_table
from undrift_lab.runner import Request, run

PLAN = """
methods = [
    "labels-0", "labels-8", "asked-8", "updated-8", "updated-asked-8", "augmented-8", "target-only-8",
]
target_share = 0.25
tasks = ["books->dvd"]
[corpus]
loader = "amazon-bow"
max_features = 30
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "labels.toml"
    path.write_text(PLAN)
    return load_plan(path)


@pytest.fixture(scope="module")
def records(plan, data, tmp_path_factory):
    results = tmp_path_factory.mktemp("labels") / "r.jsonl"
    summary = run(plan, results, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (7, 0)
    return [record for record in read(results) if record["kind"] == "transfer"]


def test_half_of_the_target_is_predicted_with_labels_of_the_other(plan, records, data):
    corpus = load_corpus(plan.corpus, data, 30)
    sampled, _ = sample_target(corpus, "dvd", 0.25, 2500, 0)
    pair = {name: sampled.domains[name] for name in ("books", "dvd")}
    pair = weight_tfidf(type(corpus)("pair", pair, corpus.terms), TFIDF_LENGTH).domains
    source, target = pair["books"], pair["dvd"]
    y = np.full(len(source), np.nan)
    y[source.train] = source.y[source.train]
    ours = MSDAClassifier(random_state=0)
    ours.fit(source.X, y, target.X)
    random_state, wrong = np.random.RandomState(0), defaultdict(list)
    for _ in range(5):
        pool, test = np.array_split(random_state.permutation(len(target)), 2)
        for name, rows in (("", pool[:8]), ("asked-", pool[ours.ask(target.X[pool], 8)])):
            known = np.full(len(target), np.nan)
            known[rows] = target.y[rows]
            models = {
                "labels-0": ours,
                name or "labels-": clone(ours).fit(source.X, y, target.X, y_target=known),
                f"updated-{name}": copy(ours).update(target.X[rows], target.y[rows]),
            }
            for kind, model in models.items():
                method = kind if kind == "labels-0" else f"{kind}8"
                wrong[method] += (model.predict(target.X[test]) != target.y[test]).tolist()
    by_method = {record["method"]: record for record in records}
    for name, mistakes in wrong.items():
        assert by_method[name]["transfer_error"] == pytest.approx(np.mean(mistakes))
    n_tests = {record["method"]: record["n_test"] / record["n_draws"] for record in records}
    assert set(n_tests.values()) == {len(test)}
    assert {record["n_draws"] for record in records} == {5}
    assert {record["n_target_labels"] for record in records} == {0, 8}


def test_draws_stay_the_same_where_no_draw_predicts_some_row():
    rows = np.arange(300)
    domain = Domain("dvd", X=rows[:, None], y=rows % 2, train=rows[:50], test=rows[50:])
    draws = draw_halves(domain, 0)
    drawn = put_draws(Corpus("one", {"dvd": domain}), "dvd", 0).domains["dvd"]
    assert len(np.unique(drawn.test)) < len(rows)
    assert drawn.test.tolist() == np.concatenate([test for _, test in draws]).tolist()
    again = draw_halves(drawn, 0)
    assert [part.tolist() for draw in again for part in draw] == [
        part.tolist() for draw in draws for part in draw
    ]


def test_labels_have_a_table(records):
    table = labels_table(make_frame(records))
    error = 100 * next(r["transfer_error"] for r in records if r["method"] == "asked-8")
    assert f"| amazon-bow | 25% | asked | 1 | {error:.2f} |" in table


def test_augmented_features_give_the_same_in_any_order():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(2, 160)).astype(float)
    X, target = (sp.csr_array(rng.poisson(0.3 + 0.35 * np.outer(y, np.arange(12) < 4))) for y in truth)
    predicted, chosen = [], []
    for order in ((4, 100), (100, 4)):
        task = LabelTask(X, truth[0], target, truth[1], 5.0, MSDAClassifier())
        by_number = {n: task.predict_augmented(np.arange(n), np.arange(100, 160)).tolist() for n in order}
        predicted.append(by_number)
        chosen.append(task.augmented_C)
    assert predicted[0] == predicted[1]
    assert chosen[0] == chosen[1]
    assert chosen[0][4] != chosen[0][100]
