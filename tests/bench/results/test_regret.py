"""Candidates by every rule against Gram matrices built by hand; regret from records made by hand."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.bench.runner.test_run import all_rows
from tests.helpers.bench_corpus import write_corpus
from undrift import MSDA
from undrift.bench import Request, load_plan, read, run
from undrift.bench.corpora import load_corpus
from undrift.bench.methods.baselines import weight_tfidf
from undrift.bench.results.page import fill_page
from undrift.bench.results.regret import (
    best_rule,
    candidate_sets,
    gather_trials,
    regret_table,
    verdicts,
)
from undrift.classifier import anchors
from undrift.classifier.linear import SOLVERS
from undrift.classifier.selection import RULES, Problem, draw_folds
from undrift.text.adapter import text_classifier

NOISES, DEPTHS, CS = (0.5, 0.8), (1, 3), (0.1, 1.0, 5.0)
PLAN = """
kind = "regret"
methods = ["undrift"]
noise = [0.5, 0.8]
depths = [1, 3]
C = [0.1, 1.0, 5.0]
n_folds = 3
small_grid = { noise = [0.5], C = [1.0] }
[corpus]
loader = "amazon-bow"
max_features = 30
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "dear.toml"
    path.write_text(PLAN)
    return load_plan(path)


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("regret")
    (folder / "dear.toml").write_text(PLAN)
    summary = run(load_plan(folder / "dear.toml"), folder / "r.jsonl", Request(data=data))
    assert (summary.n_before, summary.n_new, summary.n_failed) == (0, 6, 0)
    return folder / "r.jsonl"


def candidates(records, source, target):
    own = [r for r in records if (r["source"], r["target"]) == (source, target)]
    found = {(c["noise"], c["n_layers"], c["C"]): c for r in own for c in r["candidates"]}
    assert len(found) == sum(len(r["candidates"]) for r in own)
    return found


def tfidf(data, plan):
    return weight_tfidf(load_corpus(plan.corpus, data, 30), 5.0)


def gram_by_hand(corpus, source, target, noise, depth):
    """Inner products of source train rows and all target rows: each layer centred, then scaled alike."""
    X, domain = corpus.rows()
    X = X.toarray().astype(np.float64)
    Z, K = MSDA(depth, noise).fit(X).transform(X), 0.0
    names = list(corpus.domains)
    kept = [names.index(name) for name in (source, target)]
    rows = np.concatenate(
        [np.flatnonzero(domain == kept[0])[corpus.domains[source].train], np.flatnonzero(domain == kept[1])]
    )
    for layer in range(depth + 1):
        H = Z[:, 30 * layer : 30 * (layer + 1)].copy()
        for k in range(len(names)):
            H[domain == k] -= H[domain == k].mean(axis=0)
        H /= np.sqrt(np.mean(np.sum(H**2, axis=1)))
        K = K + H[rows] @ H[rows].T
    return K


def test_scores_are_those_of_the_rules_on_a_gram_matrix_built_by_hand(finished, data, plan):
    corpus, found = tfidf(data, plan), candidates(read(finished), "books", "toys")
    assert set(found) == {(p, n, C) for p in NOISES for n in DEPTHS for C in CS}
    codes = (corpus.domains["books"].y[corpus.domains["books"].train] > 0).astype(int)
    split = draw_folds(codes, 3, np.random.RandomState(0))
    problem = Problem(codes, 2, np.ones(40), split, SOLVERS["least-squares"])
    for noise in NOISES:
        for depth in DEPTHS:
            K = gram_by_hand(corpus, "books", "toys", noise, depth)
            scaled = [C / np.trace(K[:40, :40]) * 40 for C in CS]
            for name, rule in RULES.items():
                own = [found[noise, depth, C]["scores"][name] for C in CS]
                assert_allclose(own, rule(K, problem, scaled), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("measure", "trained"), [("error", False), ("self_trained_error", True)])
def test_errors_are_those_of_the_classifier_on_the_targets_test_rows(finished, data, plan, measure, trained):
    corpus, found = tfidf(data, plan), candidates(read(finished), "toys", "dvd")
    X, y, domain = all_rows(corpus, "toys", "dvd")
    dvd = corpus.domains["dvd"]
    for noise, depth, C in [(0.5, 1, 5.0), (0.8, 3, 0.1)]:
        model = text_classifier(noise=noise, n_layers=depth, C=C, self_training=trained, center="domains")
        model.fit(X, y, sample_domain=np.where(domain < -1, 1, domain))
        wrong = model.predict(dvd.X[dvd.test], sample_domain=-1) != dvd.y[dvd.test]
        assert found[noise, depth, C][measure] == np.mean(wrong)
    assert any(own["error"] != own["self_trained_error"] for own in found.values())


def test_a_record_for_each_task_noise_and_depth(finished, data, plan):
    records = read(finished)
    assert len(records) == 6 * 4
    assert {r["kind"] for r in records} == {"regret"}
    assert {len(r["candidates"]) for r in records} == {3}
    assert records[0]["preset"] == {"noise": 0.7, "n_layers": 5, "C": 1.0}
    assert records[0]["small_grid"] == {"noise": [0.5], "C": [1.0]}
    assert {(r["n_train"], r["n_test"]) for r in records} == {(40, 40)}
    before = finished.read_bytes()
    assert run(plan, finished, Request(data=data)).n_before == 6
    assert finished.read_bytes() == before


@pytest.mark.parametrize("n_kept", [1, 8, 23])
def test_it_goes_on_where_it_was_and_repeats_nothing(finished, data, plan, tmp_path, n_kept):
    lines = finished.read_text().splitlines(keepends=True)
    results = tmp_path / "r.jsonl"
    results.write_text("".join(lines[:n_kept]))
    seen = []
    summary = run(plan, results, Request(data=data, progress=lambda *step: seen.append(step)))
    n_before = 5 if n_kept == 23 else 0
    assert (summary.n_before, summary.n_new, summary.n_failed) == (n_before, 6 - n_before, 0)
    assert len(seen) == 1 + 24 - n_kept

    def known(path):
        return [{k: v for k, v in r.items() if not k.endswith("seconds")} for r in read(path)]

    assert known(results) == known(finished)


def test_a_failure_is_recorded_and_can_be_tried_again(data, plan, tmp_path, monkeypatch):
    from undrift.bench.methods import candidates

    predict = candidates.predict_target_codes

    def broken(K, problem, C, test, self_training):
        n = len(problem.codes)
        if self_training and C * K[:n, :n].diagonal().mean() == pytest.approx(5.0):
            raise ArithmeticError("no such luck\nand more")
        return predict(K, problem, C, test, self_training)

    monkeypatch.setattr(candidates, "predict_target_codes", broken)
    request, results = Request(data=data, tasks=["books->*"]), tmp_path / "r.jsonl"
    assert run(plan, results, request).n_failed == 2
    assert {r["failed"] for r in read(results)} == {"ArithmeticError: no such luck"}
    assert run(plan, results, request).n_new == 0
    monkeypatch.undo()
    again = run(plan, results, Request(data=data, tasks=["books->*"], retry_failed=True))
    assert (again.n_new, again.n_failed) == (2, 0)
    assert run(plan, results, request).n_before == 2
    assert gather_trials(read(results))[0].tasks == ["books->dvd", "books->toys"]


CHOOSING = """
methods = ["undrift"]
n_folds = 3
[corpus]
loader = "amazon-bow"
max_features = 30
[parameters.undrift]
center = "domains"
[[variants]]
name = "source-cv"
changes = { noise = [0.8, 0.5], n_layers = [1, 3], C = [0.1, 1.0, 5.0], selection = "source-cv" }
[[variants]]
name = "one-se"
changes = { noise = [0.8, 0.5], n_layers = [3, 1], C = [0.1, 1.0, 5.0], selection = "one-se" }
[[variants]]
name = "reverse"
changes = { noise = [0.8, 0.5], n_layers = [1, 3], C = [0.1, 1.0, 5.0], selection = "reverse" }
[[variants]]
name = "importance-cv"
changes = { noise = [0.5, 0.8], n_layers = [1, 3], selection = "importance-cv", self_training = false }
"""
NAMES = ("noise", "n_layers", "C")


def chosen(results):
    """What each variant chose for each task, and the error of that."""
    transfers = [r for r in read(results) if r["kind"] == "transfer"]
    return {
        (r["variant"], r["source"], r["target"]): ({name: r["params"][name] for name in NAMES}, r)
        for r in transfers
    }


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # choices at the edge of a tiny grid
@pytest.mark.parametrize("rule_rows", [2000, 30])
def test_the_method_chooses_as_the_classifier_does(finished, data, tmp_path, monkeypatch, rule_rows):
    monkeypatch.setattr(anchors, "RULE_ROWS", rule_rows)
    (tmp_path / "choosing.toml").write_text(CHOOSING)
    plan, results = load_plan(tmp_path / "choosing.toml"), tmp_path / "r.jsonl"
    assert run(plan, results, Request(data=data)).n_failed == 0
    found, corpus = chosen(results), tfidf(data, plan)
    assert len({str(own) for own, _ in found.values()}) > 3
    for (variant, source, target), (own, record) in found.items():
        X, y, domain = all_rows(corpus, source, target)
        (setting,) = [each for each in plan.variants if each.name == variant]
        model = text_classifier(**setting.changes, center="domains", n_folds=3, random_state=0)
        model.fit(X, y, sample_domain=np.where(domain < -1, 1, domain))
        assert own == model.best_params_
        rows = corpus.domains[target]
        wrong = model.predict(rows.X[rows.test], sample_domain=-1) != rows.y[rows.test]
        assert record["transfer_error"] == np.mean(wrong)
        assert record["grid_seconds"] > 0
        if rule_rows == 2000 and variant != "importance-cv":  # as the records of regret have it
            of_regret = candidates(read(finished), source, target)
            assert tuple(own.values()) == picked_by_hand(of_regret, variant, preferred=(0.8, 3, 0.1))


def picked_by_hand(candidates, variant, preferred):
    """The first of the highest; with one-se what is preferred unless a standard error of 40 rows below."""
    rule = "source-cv" if variant == "one-se" else variant
    scores = {point: own["scores"][rule] for point, own in candidates.items()}
    best = max(scores, key=lambda point: (scores[point], [-v for v in point]))
    n_more = 40 * (scores[best] - scores[preferred])  # rows that are right
    within = n_more <= np.sqrt(40 * scores[best] * (1 - scores[best]))
    return preferred if variant == "one-se" and within else best


def test_fewer_rows_are_judged_where_there_are_many(data, plan, finished, tmp_path, monkeypatch):
    monkeypatch.setattr(anchors, "RULE_ROWS", 30)
    run(plan, tmp_path / "r.jsonl", Request(data=data, tasks=["books->dvd"]))
    some, every = (candidates(read(path), "books", "dvd") for path in (tmp_path / "r.jsonl", finished))
    codes = np.arange(40) % 2
    random_state = np.random.RandomState(0)
    split = draw_folds(codes, 3, random_state)
    drawn = 40 + np.sort(random_state.choice(80, 30, replace=False))
    rows = np.concatenate([np.arange(40), drawn])
    K = gram_by_hand(tfidf(data, plan), "books", "dvd", 0.5, 1)[np.ix_(rows, rows)]
    problem = Problem(codes, 2, np.ones(40), split, SOLVERS["least-squares"])
    scale = 40 / np.trace(K[:40, :40])
    for point, own in some.items():
        assert own["scores"]["source-cv"] == every[point]["scores"]["source-cv"]
        assert own["scores"]["importance-cv"] != every[point]["scores"]["importance-cv"]
        assert own["self_trained_error"] == every[point]["self_trained_error"]  # learns from all rows
    for name in ("reverse", "importance-cv"):
        expected = RULES[name](K, problem, [scale])
        assert_allclose(some[0.5, 1, 1.0]["scores"][name], expected[0], rtol=1e-4)


def relabelled(folder, domain):
    """The tiny corpus with every label of one domain turned round."""
    write_corpus(folder)
    for part in ("train", "test"):
        path = folder / f"{domain}_{part}.svmlight"
        turned = [{"+": "-", "-": "+"}[line[0]] + line[1:] for line in path.read_text().splitlines()]
        path.write_text("\n".join(turned) + "\n")


@pytest.mark.filterwarnings("ignore:the chosen .* is at the edge")
def test_labels_of_the_target_change_no_choice_and_no_score(finished, data, plan, tmp_path):
    relabelled(tmp_path / "amazon-bow", "dvd")
    (tmp_path / "choosing.toml").write_text(CHOOSING)
    only = ["books->dvd", "toys->dvd"]
    choosing, results = load_plan(tmp_path / "choosing.toml"), {}
    for name, folder in (("true", data), ("turned", tmp_path)):
        results[name] = tmp_path / f"{name}.jsonl"
        run(choosing, results[name], Request(data=folder, tasks=only))
        run(plan, results[name], Request(data=folder, tasks=only))
    before, after = (chosen(path) for path in results.values())
    for key, (own, record) in before.items():
        assert after[key][0] == own
        assert after[key][1]["transfer_error"] == pytest.approx(1 - record["transfer_error"])
    for source in ("books", "toys"):
        one, other = (candidates(_of_regret(path), source, "dvd") for path in results.values())
        assert all(one[point]["scores"] == other[point]["scores"] for point in one)
        assert all(one[point]["error"] == pytest.approx(1 - other[point]["error"]) for point in one)


def _of_regret(path):
    return [r for r in read(path) if r["kind"] == "regret"]


def made(corpus, source, errors, scores, noise=0.5, depth=1, plan=None, **more):
    """A record of two values of C, 1 and 3, by hand; `scores` of each rule at both."""
    return {
        "kind": "regret",
        "plan": plan or f"regret-{corpus}",
        "variant": "main",
        "corpus": corpus,
        "method": "undrift",
        "source": source,
        "target": "toys",
        "noise": noise,
        "n_layers": depth,
        "candidates": [
            {
                "noise": noise,
                "n_layers": depth,
                "C": C,
                "scores": {rule: own[i] for rule, own in scores.items()},
                "error": errors[i] + 0.1,
                "self_trained_error": errors[i],
            }
            for i, C in enumerate((1.0, 3.0))
        ],
        "preset": {"noise": 0.7, "n_layers": 1, "C": 1.0},
        "small_grid": {"noise": [0.7], "depths": [1]},
        "n_train": 100,
        **more,
    }


@pytest.fixture
def by_hand():
    """Two corpora of two tasks; candidates (noise, C) are (.5, 1), (.5, 3), (.7, 1), (.7, 3)."""
    return [
        # errors of a: .10 .20 .30 .40, best .10; of b: .50 .40 .20 .30, best .20
        made("one", "a", (0.10, 0.20), {"reverse": (0.1, 0.9), "importance-cv": (0.5, 0.0)}),
        made("one", "a", (0.30, 0.40), {"reverse": (0.9, 0.2), "importance-cv": (0.2, 0.0)}, noise=0.7),
        made("one", "b", (0.50, 0.40), {"reverse": (0.1, 0.2), "importance-cv": (0.5, 0.0)}),
        made("one", "b", (0.20, 0.30), {"reverse": (0.3, 0.4), "importance-cv": (0.4, 0.0)}, noise=0.7),
        # errors of a: .10 .10 .20 .30; b: .20 .30 .15 .40
        made("two", "a", (0.10, 0.10), {"reverse": (0.5, 0.4), "importance-cv": (0.1, 0.0)}),
        made("two", "a", (0.20, 0.30), {"reverse": (0.1, 0.2), "importance-cv": (0.2, 0.0)}, noise=0.7),
        made("two", "b", (0.20, 0.30), {"reverse": (0.5, 0.4), "importance-cv": (0.1, 0.0)}),
        made("two", "b", (0.15, 0.40), {"reverse": (0.1, 0.2), "importance-cv": (0.2, 0.0)}, noise=0.7),
    ]


def test_regret_by_hand(by_hand):
    one, two = gather_trials(by_hand)
    assert one.tasks == ["a->toys", "b->toys"]
    assert_allclose(one.errors, [[0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.2, 0.3]])
    found = {v.rule: (v.mean_error, v.regret, v.beyond_single) for v in verdicts(one)}
    single = 0.25  # (.7, 1): .30 and .20; the others .30, .30, .35
    assert_allclose(found["best in hindsight"], (0.15, 0, 0.15 - single), atol=1e-12)
    assert_allclose(found["best single candidate"], (0.25, 0.1, 0), atol=1e-12)
    assert_allclose(found["fixed"], (0.25, 0.1, 0), atol=1e-12)
    assert_allclose(found["reverse"], (0.25, 0.1, 0), atol=1e-12)
    assert_allclose(found["importance-cv"], (0.3, 0.15, 0.05), atol=1e-12)
    assert best_rule(verdicts(one)).rule == "reverse"
    assert best_rule(verdicts(two)).rule == "reverse"
    assert_allclose([v.regret for v in verdicts(two)], [0, 0.025, 0.05, 0.025, 0.05], atol=1e-12)


def test_one_se_is_left_out_since_its_preset_was_chosen_with_these_labels():
    records = [
        made("one", "a", errors, {"source-cv": (0.84, 0.80)}, noise=noise)
        for noise, errors in ((0.5, (0.1, 0.2)), (0.7, (0.3, 0.4)))
    ]
    rules = [verdict.rule for verdict in verdicts(gather_trials(records)[0])]
    assert rules == ["best in hindsight", "best single candidate", "fixed", "source-cv"]


def test_the_interval_is_over_domains(by_hand):
    (single,) = [v for v in verdicts(gather_trials(by_hand)[0]) if v.rule == "best single candidate"]
    assert (single.low, single.high) == (pytest.approx(0.0), pytest.approx(0.2))  # regrets .2 and .0
    (rule,) = [v for v in verdicts(gather_trials(by_hand)[1]) if v.rule == "importance-cv"]
    assert (rule.low, rule.high) == (pytest.approx(0.0), pytest.approx(0.1))


def test_sets_of_candidates(by_hand):
    sets = candidate_sets(gather_trials(by_hand)[0])
    assert {name: [str(p) for p in own.points] for name, own in sets.items() if name != "all"} == {
        "C = 1": ["noise 0.5, 1 layers, C 1", "noise 0.7, 1 layers, C 1"],
        "small grid": ["noise 0.7, 1 layers, C 1", "noise 0.7, 1 layers, C 3"],
    }
    assert_allclose(sets["small grid"].errors, [[0.3, 0.4], [0.2, 0.3]])
    assert_allclose(sets["C = 1"].scores["reverse"], [[0.1, 0.9], [0.1, 0.3]])


def test_tasks_that_are_not_finished_or_failed_do_not_count(by_hand):
    unfinished = made("one", "c", (0.0, 0.0), {"reverse": (1, 1), "importance-cv": (1, 1)})
    failed = {**unfinished, "source": "d", "failed": "out of luck"}
    assert gather_trials([*by_hand, unfinished, failed])[0].tasks == ["a->toys", "b->toys"]


def test_the_table_and_the_rule_of_one_corpus_on_the_other(by_hand):
    table = regret_table(by_hand)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert [
        "one", "all (4)", "reverse", "2", "25.00", "10.00", "10.00 to 10.00", "+0.00",
    ] in rows  # fmt: skip
    assert [
        "one", "all (4)", "fixed: noise 0.7, 1 layers, C 1", "2", "25.00", "10.00", "0.00 to 20.00", "+0.00",
    ] in rows  # fmt: skip
    assert ["all", "one", "reverse", "two", "10.00", "2.50", "0.00 to 5.00"] in rows
    assert ["all", "two", "reverse", "one", "2.50", "10.00", "10.00 to 10.00"] in rows
    # the best single candidate of one corpus is (.7, 1), whose regrets on the other are .1 and 0
    single = "best single candidate: noise 0.7, 1 layers, C 1"
    assert ["all", "one", single, "two", "10.00", "5.00", "0.00 to 10.00"] in rows
    alone = regret_table([r for r in by_hand if r["corpus"] == "one"])
    assert "chosen on" not in alone
    assert "| two |" not in alone
    failed = {**made("one", "c", (0.0, 0.0), {}), "failed": "no luck"}
    assert regret_table([*by_hand, failed]) == f"{table}\nFailed: undrift on c->toys (no luck).\n"


def test_a_page_has_a_slot_for_it(by_hand):
    page = "before\n<!-- bench table: regret -->\nold\n<!-- end -->\nafter\n"
    assert fill_page(page, by_hand) == (
        f"before\n<!-- bench table: regret -->\n{regret_table(by_hand)}<!-- end -->\nafter\n"
    )
    assert fill_page(page, []) == page


def test_the_command(by_hand, tmp_path, capsys):
    from undrift.cli import main

    results = tmp_path / "r.jsonl"
    results.write_text("".join(json.dumps(record) + "\n" for record in by_hand))
    with pytest.raises(SystemExit) as ended:
        main(["bench", "table", str(results)])
    assert (ended.value.code, capsys.readouterr().out) == (0, regret_table(by_hand))


def test_the_grid_decides_the_digest_and_the_smaller_one_does_not(tmp_path, plan):
    def digest(text):
        (tmp_path / "dear.toml").write_text(text)
        own = load_plan(tmp_path / "dear.toml")
        return own.digest(own.variants[0], "undrift")

    assert digest(PLAN.replace("depths = [1, 3]", "depths = [1, 2]")) != digest(PLAN)
    assert digest(PLAN.replace("C = [1.0] }", "C = [5.0] }")) == digest(PLAN)
    plain = PLAN.replace('kind = "regret"', "")
    assert digest(plain.replace("depths = [1, 3]", "depths = [1, 2]")) == digest(plain)
