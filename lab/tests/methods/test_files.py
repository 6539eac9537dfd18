"""Tasks on two files: records of every method, labels learnt in draws."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from undrift_lab.methods import Cell, CellRecord, Failure
from undrift_lab.methods.files import N_DRAWS, TwoFiles, solve, weight_rows
from undrift_lab.methods.svm import choose_linear_C
from undrift_lab.plan import load_plan, parse_plan
from undrift_lab.results.frame import reach_error
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

WORDS = {"sport": "goal match team", "art": "paint stage film", "money": "bank share price"}
KINDS = """
fit_on = "files"
max_features = 100
methods = ["svm-tfidf", "nb-features", "undrift", "updated-3", "updated-asked-7"]
[corpus]
loader = "news_topics"
max_rows = 60
[[variants]]
name = "news"
tasks = ["a->b", "b->a"]
"""


def write_news(folder, n=60, seed=0):
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    for name, own in (("a", "today local"), ("b", "wire report")):
        lines = []
        for i in range(n):
            label = list(WORDS)[i % 3]
            text = " ".join(rng.choice(f"{WORDS[label]} {own} the of".split(), 6))
            lines.append(json.dumps({"text": text, "label": label}) + "\n")
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news")
    write_news(folder / "news_topics")
    return folder


def make_task(rng, *methods, n=60):
    y = np.arange(n) % 3
    source, target = (rng.poisson(0.3 + 1.5 * (np.arange(30) % 3 == y[:, None])) for _ in range(2))
    cells = tuple(Cell(method, "a", "b") for method in methods)
    return TwoFiles(cells, source.astype(float), y, target.astype(float), y, 30)


def test_a_run_records_every_method_on_three_classes(news, tmp_path):
    plan, results = tmp_path / "kinds.toml", tmp_path / "k.jsonl"
    plan.write_text(KINDS)
    summary = run(load_plan(plan), results, Request(news, jobs=1))
    assert (summary.n_new, summary.n_failed) == (10, 0)
    records = {(r["method"], r["source"]): r for r in read(results)}
    assert {r["kind"] for r in records.values()} == {"transfer"}
    ours = records["undrift", "a"]
    assert ours["n_classes"] == 3
    assert (ours["n_train"], ours["n_test"]) == (60, 60)
    said = [ours["expected_low"], ours["expected_high"]]
    assert [end.item() for end in reach_error(pd.Series([ours["expected_error"]]))] == pytest.approx(
        said, abs=2e-3
    )
    assert ours["interval_holds"] in (0.0, 1.0)
    assert ours["form"] in ("rows", "parts", "terms")
    asked, random = records["updated-asked-7", "a"], records["updated-3", "a"]
    assert (asked["n_target_labels"], asked["asked"]) == (7, True)
    assert (random["n_target_labels"], random["asked"]) == (3, False)
    assert "n_target_labels" not in ours
    assert run(load_plan(plan), results, Request(news, jobs=1)).n_new == 0


def test_the_svm_is_a_linear_one_on_tfidf_of_both_files(rng):
    task = make_task(rng, "svm-tfidf")
    (finding,) = solve(task)
    both = np.vstack([task.source, task.target])
    X = TfidfTransformer(sublinear_tf=True).fit_transform(both).astype(np.float32)
    svm = LinearSVC(C=choose_linear_C(X[:60], task.y)).fit(X[:60], task.y)
    predicted = svm.predict(X[60:])
    assert finding.values["transfer_error"] == np.mean(predicted != task.truth)
    assert finding.values["macro_f1"] == f1_score(task.truth, predicted, average="macro")
    np.testing.assert_allclose(weight_rows(task).source.toarray(), X[:60].toarray(), atol=1e-6)


def test_errors_after_labels_are_of_the_rows_without_one(rng):
    findings = solve(make_task(rng, "undrift", "updated-asked-8", "updated-asked-2", "updated-4"))
    assert [finding.cell.method for finding in findings] == [
        "undrift", "updated-4", "updated-asked-8", "updated-asked-2",
    ]  # fmt: skip
    assert [finding.values.get("n_target_labels") for finding in findings] == [None, 4, 8, 2]
    for finding in findings[1:]:  # a share of those rows in every draw
        n_scored = N_DRAWS * (60 - finding.values["n_target_labels"])
        assert finding.values["transfer_error"] * n_scored == pytest.approx(
            round(finding.values["transfer_error"] * n_scored)
        )
    assert all(isinstance(finding, CellRecord) for finding in findings)


@pytest.mark.parametrize("method", ["updated-9", "updated-asked-9"])
def test_labels_of_a_class_that_the_source_lacks_leave_the_others(rng, method):
    task = make_task(rng, "undrift", method)
    lacking = replace(task, source=task.source[task.y < 2], y=task.y[task.y < 2])
    findings = solve(lacking)
    assert [type(finding) for finding in findings] == [CellRecord] * 2
    assert findings[1].values["n_target_labels"] == 9


def test_a_method_that_fails_leaves_the_others(rng):
    task = make_task(rng, "svm-tfidf", "skada-coral")
    one_class = TwoFiles(task.cells, task.source, task.y * 0, task.target, task.truth, 30)
    findings = solve(one_class)
    assert [type(finding) for finding in findings] == [Failure, Failure]
    empty = TwoFiles(task.cells, [], task.y, [], task.truth, 30)
    findings = solve(empty)
    assert [finding.cell for finding in findings] == list(task.cells)
    assert "no words" in findings[0].message


def test_only_methods_of_two_files_may_be_in_such_a_plan():
    table = {"corpus": {"loader": "airline"}, "fit_on": "files", "methods": ["msda-3"]}
    with pytest.raises(ValueError, match='fit_on = "files" does not go with method msda-3'):
        parse_plan("kinds", table)


def test_the_plan_of_kinds_has_six_pairs_of_a_corpus_at_most():
    plan = load_plan("kinds")
    whole = [variant for variant in plan.variants if variant.target_share is None]
    assert max(len(variant.tasks) for variant in whole) == 6
    assert {variant.fit_on for variant in plan.variants} == {"files"}
    assert {plan.corpus_of(variant).max_rows for variant in plan.variants} == {2500}
    uneven = [variant for variant in plan.variants if variant.target_share is not None]
    assert {plan.corpus_of(variant).loader for variant in uneven} == {"amazon-bow", "fdu-mtl"}
    assert sum(len(variant.tasks) for variant in uneven) == 48
