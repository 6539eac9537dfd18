"""Every method of the benchmark against plain NumPy and scikit-learn: rows, labels, C, sizes and noise."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from lab.tests.helpers import oracles as by_hand
from lab.tests.helpers.oracles import (
    SEED,
    SIZES,
    TASKS,
    bench_of,
    cv_accuracy,
    find_all,
    made_corpus,
    of_part,
    searched,
    transferred,
)
from undrift import MSDA
from undrift_lab.baselines import CODA, SCL
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods.baselines import Candidate, Representation, classify_by_source, classify_shared
from undrift_lab.methods.cells import Cell, GridPoint, Outcome
from undrift_lab.methods.svm import (
    bench_problem,
    choose_C,
    in_domain_error,
    predict_targets,
)
from undrift_lab.parts import load_corpus
from undrift_lab.plan import C_MULTIPLES, Setting, load_plan
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

CS = C_MULTIPLES
RULES = {"authors": (1.0,), "searched": CS}


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture
def bench(corpus):
    return bench_of(corpus, Setting())


def with_setting(bench, **changes):
    return replace(bench, setting=replace(bench.setting, **changes))


def given(bench, family, *methods, tasks=TASKS):
    """All that a family finds."""
    cells = [Cell(method, *task) for method in methods or [family] for task in tasks]
    return find_all(bench, cells)


def outcomes(found):
    by_cell = {
        (own.cell.method, own.cell.source, own.cell.target): own for own in found if isinstance(own, Outcome)
    }
    assert len(by_cell) == sum(isinstance(own, Outcome) for own in found)
    return by_cell


def run_all(bench, family):
    """Outcome of each task."""
    found = {key[1:]: own for key, own in outcomes(given(bench, family)).items()}
    assert list(found) == TASKS
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("method", "rows"), [("svm", by_hand.dense), ("svm-tfidf", by_hand.tfidf)])
def test_an_svm_on_the_rows(bench, corpus, method, rows, rule):
    Z = rows(corpus)
    for task, own in run_all(with_setting(bench, c_rule=rule), method).items():
        C = searched(*of_part(corpus, Z, task[0], "train"), RULES[rule])
        assert own.params == {"C": C}
        np.testing.assert_array_equal(own.predicted, transferred(corpus, Z, *task, C))


def test_pca_chooses_its_size_and_C_on_the_source(bench):
    corpus, sizes, chosen = made_corpus(n_terms=120), (50, 100), set()
    Z = {size: by_hand.principal(corpus, size) for size in sizes}
    for rule, Cs in RULES.items():
        for task, own in run_all(with_setting(replace(bench, corpus=corpus), c_rule=rule), "pca").items():
            train = {size: of_part(corpus, Z[size], task[0], "train") for size in sizes}
            size, C = by_hand.best({(size, C): cv_accuracy(*train[size], C) for size in sizes for C in Cs})
            assert own.params == {"n_components": size, "C": C}
            np.testing.assert_array_equal(own.predicted, transferred(corpus, Z[size], *task, C))
            chosen.add((size, C))
    assert {size for size, _ in chosen} == set(sizes)
    assert len({C for _, C in chosen}) > 1


def label_source(corpus, source):
    """Labels of the source's train rows among all rows, and domains: 0 for the source, -1 for others."""
    y, domain = [], []
    for name, each in corpus.domains.items():
        known = [name == source and i in each.train for i in range(len(each))]
        y.append(np.where(known, each.y, np.nan))
        domain += [0 if name == source else -1] * len(each)
    return np.concatenate(y), domain


def test_tuned_scl_keeps_negative_weights_and_chooses_rows_and_scale(bench, corpus):
    options = {"n_components": 4, "n_pivots": 8, "min_df": 45}
    X, task = np.vstack(list(by_hand.dense(corpus).values())), TASKS[0]
    tuned = with_setting(replace(bench, parameters={"scl": options}), c_rule="searched", tuned=True)
    own = run_all(tuned, "scl")[task]
    y, domain = label_source(corpus, task[0])
    model = SCL(**options, clip_negative=False).fit(X, y, sample_domain=domain)
    Z, accuracy = {}, {}
    for name, rows in (("counts", by_hand.dense(corpus)), ("tfidf", by_hand.tfidf(corpus))):
        for scale in (0.5, 1.0, 2.0, 5.0):
            projected = model.set_params(scale=scale).transform(X)[:, X.shape[1] :]
            both = np.hstack([np.vstack(list(rows.values())), projected])
            Z[name, scale] = by_hand.split_by_domain(corpus, both)
            for C in CS:
                accuracy[name, scale, C] = cv_accuracy(*of_part(corpus, Z[name, scale], task[0], "train"), C)
    name, scale, C = by_hand.best(accuracy)
    assert own.params == {"n_pivots": 8, "scale": scale, "rows": name, "C": C}
    np.testing.assert_array_equal(own.predicted, transferred(corpus, Z[name, scale], *task, C))


def test_scl_knows_the_labels_of_the_source_and_the_rows_of_all(bench, corpus):
    options = {"n_components": 4, "n_pivots": 8, "min_df": 45}  # which not every term has in both
    X = np.vstack(list(by_hand.dense(corpus).values()))
    pivots = {}
    for task, own in run_all(replace(bench, parameters={"scl": options}), "scl").items():
        y, domain = label_source(corpus, task[0])
        model = SCL(**options).fit(X, y, sample_domain=domain)
        pivots[task[0]] = set(model.pivots_)
        Z = by_hand.split_by_domain(corpus, model.transform(X))
        assert own.params == {"n_pivots": len(model.pivots_), "C": 1.0}
        np.testing.assert_array_equal(own.predicted, transferred(corpus, Z, *task, 1.0))
    assert len({frozenset(each) for each in pivots.values()}) == 3  # labels of another source choose others


def test_coda_learns_from_train_rows_and_all_target_rows(bench, corpus):
    options = {"max_rounds": 2, "min_df": 2, "n_per_round": 8}
    own = replace(bench, parameters={"coda": options})
    tasks = TASKS[1:3]
    for task, found in zip(tasks, given(own, "coda", tasks=tasks), strict=True):
        X, y = of_part(corpus, by_hand.dense(corpus), task[0], "train")
        model = CODA(random_state=SEED, **options).fit(X, y, corpus.domains[task[1]].X.toarray())
        test, _ = of_part(corpus, by_hand.dense(corpus), task[1], "test")
        assert (found.cell.source, found.cell.target) == task
        assert found.params == {"n_rounds": len(model.rounds_)}
        np.testing.assert_array_equal(found.predicted, model.predict(test))


def test_sda_is_an_svm_on_hidden_rows_alone(bench, corpus):
    from undrift_lab.baselines import SDA

    X = np.vstack(list(by_hand.dense(corpus).values()))
    options = {"n_layers": 2, "n_hidden": (12, 5), "n_epochs": 2}
    model = SDA(random_state=SEED, device="cpu", **options).fit(X)
    Z = by_hand.split_by_domain(corpus, model.transform(X))
    own = replace(bench, parameters={"sda": {**options, "n_hidden": [12, 5]}})  # a list, as in TOML
    for task, found in run_all(own, "sda").items():
        assert found.params == {"n_layers": 2, "C": 1.0}
        np.testing.assert_allclose(found.details["losses"], model.losses_, atol=1e-4)
        np.testing.assert_array_equal(found.predicted, transferred(corpus, Z, *task, 1.0))


def test_the_time_of_a_representation_is_its_own(bench, corpus):
    rows = {name: own.X for name, own in corpus.domains.items()}
    cells = [Cell("slow", *task) for task in TASKS]

    def slow(bench, source):
        return Representation([Candidate({"size": 3}, rows)], 1000.0, {"losses": 2.0})

    for classify in (classify_shared, classify_by_source):
        for own in classify(bench, cells, slow):
            assert own.represent_seconds == 1000.0
            assert 0 < own.classify_seconds < 1000
            assert own.params == {"size": 3, "C": 1.0}
            assert own.details == {"losses": 2.0}


def test_a_representation_is_remembered_for_its_own_width(bench, corpus):
    wide = run_all(bench, "svm-tfidf")
    few = corpus.map(lambda X: X[:, :12])
    narrow = run_all(replace(bench, corpus=few), "svm-tfidf")
    for task in TASKS:
        for own, found in ((corpus, wide), (few, narrow)):
            expected = transferred(own, by_hand.tfidf(own), *task, 1.0)
            np.testing.assert_array_equal(found[task].predicted, expected)
    assert any((wide[task].predicted != narrow[task].predicted).any() for task in TASKS)


NOISES = (0.3, 0.6, 0.9)


@pytest.mark.parametrize("rule", RULES)
def test_msda_chooses_noise_and_C_for_each_source_and_depth(bench, corpus, rule):
    own, depths = with_setting(bench, c_rule=rule, noise=NOISES), (1, 3)
    found = given(own, "msda", "msda-1", "msda-3")
    points = [point for point in found if isinstance(point, GridPoint)]
    assert len(points) == len(NOISES) * len(depths) * 3
    scores, C_of = {}, {}
    for noise in NOISES:
        for depth in depths:
            Z = by_hand.msda(corpus, noise, depth)
            for source in SIZES:
                train = of_part(corpus, Z, source, "train")
                tried = {C: cv_accuracy(*train, C) for C in RULES[rule]}
                C = by_hand.best(tried)
                C_of[source, depth, noise], scores[source, depth, noise] = C, tried[C]
    for p in points:
        key = p.source, p.depth, p.noise
        assert (p.fitted_on, p.C, p.score) == ("all", C_of[key], pytest.approx(scores[key], rel=1e-9))
    seconds = sum({p.noise: p.seconds for p in points}.values())  # each noise level is learnt once
    for (_, *task), outcome in outcomes(found).items():
        assert outcome.grid_seconds == pytest.approx(seconds, rel=1e-9)
        depth = outcome.params["n_layers"]
        noise = by_hand.best({p: scores[task[0], depth, p] for p in NOISES})
        C = C_of[task[0], depth, noise]
        assert outcome.params == {"noise": noise, "n_layers": depth, "C": C}
        assert outcome.details["cv_error"] == pytest.approx(1 - scores[task[0], depth, noise], abs=1e-6)
        Z = by_hand.msda(corpus, noise, depth)
        np.testing.assert_array_equal(outcome.predicted, transferred(corpus, Z, *task, C))
    assert {key[0] for key in outcomes(found)} == {"msda-1", "msda-3"}
    assert len({own.params["noise"] for own in outcomes(found).values()}) > 1


@pytest.mark.parametrize("rule", RULES)
def test_a_single_noise_is_taken_untried_and_leaves_C_to_choose(bench, corpus, rule):
    found = given(with_setting(bench, noise=(0.6,), c_rule=rule), "msda", "msda-2")
    Z = by_hand.msda(corpus, 0.6, 2)
    for (_, *task), outcome in outcomes(found).items():
        C = searched(*of_part(corpus, Z, task[0], "train"), RULES[rule])
        assert outcome.params == {"noise": 0.6, "n_layers": 2, "C": C}
        np.testing.assert_array_equal(outcome.predicted, transferred(corpus, Z, *task, C))
        assert rule == "searched" or outcome.details["cv_error"] is None
    if rule == "authors":
        assert len(outcomes(found)) == len(found) == 6  # and no point of a grid


@pytest.mark.parametrize(
    "options", [{"activation": "relu"}, {"activation": "sigmoid"}, {"n_pivots": 7}, {"n_pivots": 50}]
)
def test_the_settings_of_a_variant_reach_the_stack(bench, corpus, options, set_limits):
    set_limits(C_MULTIPLES=(100.0,))
    corpus = corpus.map(lambda X: X * 0.01)  # so that the layers, which see presence, decide
    own = with_setting(replace(bench, corpus=corpus), noise=(0.6,), c_rule="searched", **options)
    X = np.vstack(list(by_hand.dense(corpus).values()))
    model, present = MSDA(2, 0.6, random_state=SEED, include_input=False, **options), (X > 0).astype(float)
    if options.get("n_pivots", 0) > X.shape[1]:  # as many columns need none
        model.set_params(n_pivots=None)
    Z = by_hand.split_by_domain(corpus, np.hstack([X, model.fit(present).transform(present)]))
    for (_, *task), outcome in outcomes(given(own, "msda", "msda-2")).items():
        np.testing.assert_array_equal(outcome.predicted, transferred(corpus, Z, *task, 100.0))


def test_a_stack_of_the_pair_sees_its_two_domains_alone(bench, corpus):
    own = with_setting(bench, noise=(0.5, 0.9), fit_on="pair")
    found = given(own, "msda", "msda-2")
    for source, target in TASKS:
        pair = Corpus("pair", {name: corpus.domains[name] for name in (source, target)})
        rows = {noise: by_hand.msda(pair, noise, 2) for noise in (0.5, 0.9)}
        tried = {noise: cv_accuracy(*of_part(pair, rows[noise], source, "train"), 1.0) for noise in rows}
        points = [
            p for p in found if isinstance(p, GridPoint) and (p.source, p.fitted_on) == (source, target)
        ]
        assert {p.noise: p.score for p in points} == pytest.approx(tried, rel=1e-9)
        outcome = outcomes(found)["msda-2", source, target]
        noise = by_hand.best(tried)
        assert outcome.params["noise"] == noise
        np.testing.assert_array_equal(outcome.predicted, transferred(pair, rows[noise], source, target, 1.0))


def test_an_inductive_stack_is_learnt_without_the_test_rows(bench, corpus):
    own = with_setting(bench, noise=(0.5,), fit_on="pair", inductive=True)
    for (_, source, target), outcome in outcomes(given(own, "msda", "msda-2")).items():
        domains = [corpus.domains[name] for name in (source, target)]
        X = {each.name: each.X.toarray() for each in domains}
        seen = np.vstack([np.delete(X[each.name], each.test, axis=0) for each in domains])
        model = MSDA(2, 0.5, include_input=False).fit((seen > 0).astype(float))
        Z = {name: np.hstack([rows, model.transform((rows > 0).astype(float))]) for name, rows in X.items()}
        np.testing.assert_array_equal(outcome.predicted, transferred(corpus, Z, source, target, 1.0))


def test_what_an_earlier_run_explored_is_believed(bench, corpus):
    """Points of other stacks, and of noise levels that are not asked for, are not."""
    known = [
        GridPoint("books", "all", 0.5, 2, 0.1, 0.4, 1.0),
        GridPoint("books", "all", 0.9, 2, 10.0, 0.99, 1.0),
        GridPoint("books", "all", 0.2, 2, 1.0, 1.0, 1.0),
        GridPoint("books", "dvd", 0.5, 2, 1.0, 1.0, 1.0),
        GridPoint("dvd", "all", 0.5, 2, 1.0, 1.0, 1.0),
    ]
    own = replace(with_setting(bench, noise=(0.5, 0.9), c_rule="searched"), grid=known)
    found = given(own, "msda", "msda-2", tasks=[("books", "dvd")])
    (outcome,) = found
    assert outcome.params == {"noise": 0.9, "n_layers": 2, "C": 10.0}
    expected = transferred(corpus, by_hand.msda(corpus, 0.9, 2), "books", "dvd", 10.0)
    np.testing.assert_array_equal(outcome.predicted, expected)


@pytest.mark.parametrize("rule", RULES)
def test_the_error_at_home_is_that_of_the_targets_own_svm(bench, corpus, rule):
    rows = by_hand.dense(corpus)
    for target in SIZES:
        Z, y = of_part(corpus, rows, target, "train")
        _, truth = of_part(corpus, rows, target, "test")
        wrong = transferred(corpus, rows, target, target, searched(Z, y, RULES[rule])) != truth
        assert in_domain_error(with_setting(bench, c_rule=rule), target) == np.mean(wrong)
        assert 0 < np.mean(wrong) < 0.5


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_shared", [1, 44])
def test_where_parts_overlap_the_error_at_home_is_cross_validated(bench, corpus, rule, n_shared):
    own = corpus.domains["dvd"]
    test = own.train if n_shared == 44 else np.append(own.test, own.train[0])
    overlapping = Corpus("made", {"dvd": replace(own, test=test)})
    Z, y = of_part(overlapping, by_hand.dense(overlapping), "dvd", "train")
    expected = 1 - cv_accuracy(Z, y, searched(Z, y, RULES[rule]))
    found = in_domain_error(with_setting(replace(bench, corpus=overlapping), c_rule=rule), "dvd")
    assert found == pytest.approx(expected, rel=1e-9)


RECORDED = """
methods = ["svm", "svm-tfidf"]
seed = 4
c_rule = "searched"
baseline_variant = "wide"
[corpus]
loader = "amazon-bow"
[[variants]]
name = "narrow"
max_features = 20
[[variants]]
name = "wide"
"""


def test_a_record_has_the_loss_and_ratio_of_its_error(data, tmp_path):
    (tmp_path / "two.toml").write_text(RECORDED)
    plan, results = load_plan(tmp_path / "two.toml"), tmp_path / "r.jsonl"
    assert run(plan, results, Request(data=data, jobs=1)).n_failed == 0
    wide = load_corpus(plan.corpus, data, 30)
    corpora = {"wide": wide, "narrow": wide.map(lambda X: X[:, :20])}
    rows = {"svm": by_hand.dense, "svm-tfidf": by_hand.tfidf}

    def error(corpus, Z, source, target):
        C = searched(*of_part(corpus, Z, source, "train"), CS)
        return np.mean(transferred(corpus, Z, source, target, C) != of_part(corpus, Z, target, "test")[1])

    found = [record for record in read(results) if record["kind"] == "transfer"]
    assert len(found) == 2 * 2 * 6
    for record in found:
        corpus, source, target = corpora[record["variant"]], record["source"], record["target"]
        own = error(corpus, rows[record["method"]](corpus), source, target)
        baseline = error(wide, by_hand.dense(wide), target, target)
        assert record["transfer_error"] == own
        assert record["baseline_in_domain_error"] == baseline > 0
        assert record["transfer_loss"] == pytest.approx(own - baseline, rel=1e-9)
        assert record["transfer_ratio"] == pytest.approx(own / baseline, rel=1e-9)
        assert record["n_features"] == {"wide": 30, "narrow": 20}[record["variant"]]


class TestClassify:
    """The C search and the SVM themselves, on inner products."""

    def test_of_equals_the_first(self, corpus):
        problem = bench_problem(bench_of(corpus, Setting()), "books")
        Z, _ = of_part(corpus, by_hand.dense(corpus), "books", "train")
        assert choose_C(Z @ Z.T, problem, (1.0, 1.0 + 1e-9))[0] == 1.0

    def test_a_single_C_is_tried_only_where_its_accuracy_is_wanted(self, corpus):
        problem = bench_problem(bench_of(corpus, Setting()), "dvd")
        Z, y = of_part(corpus, by_hand.dense(corpus), "dvd", "train")
        C, score = choose_C(Z @ Z.T, problem, (0.1,))
        assert C == 0.1
        assert np.isnan(score)
        expected = 0.1, pytest.approx(cv_accuracy(Z, y, 0.1), rel=1e-9)
        assert choose_C(Z @ Z.T, problem, (0.1,), always=True) == expected

    def test_classes_may_be_more_than_two_and_be_words(self):
        rng = np.random.default_rng(0)
        y = np.array(["good", "bad", "odd"])[np.arange(90) % 3]
        X = rng.poisson(1 + 1.5 * (np.arange(90)[:, None] % 3 == np.arange(6) % 3)).astype(float)
        train = np.arange(0, 60)[::-1]
        corpus = Corpus("c", {"a": Domain("a", X=X, y=y, train=train, test=np.arange(60, 90))})
        problem = bench_problem(bench_of(corpus, Setting()), "a")
        K, K_test = X[:60] @ X[:60].T, X[60:] @ X[:60].T
        svm = OneVsRestClassifier(SVC(kernel="linear", C=0.5 / np.mean(np.sum(X[:60] ** 2, axis=1))))
        expected = svm.fit(X[:60], y[:60]).predict(X[60:])
        np.testing.assert_array_equal(predict_targets(K, problem, 0.5, {"a": K_test})["a"], expected)
        assert 0 < np.mean(expected != y[60:]) < 0.5
