"""Method `undrift` against the classifier that users have, and against NumPy and scikit-learn alone."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from lab.tests.helpers import oracles as by_hand
from lab.tests.helpers.oracles import SEED, TASKS, bench_of, find_all, made_corpus, of_part
from undrift import MSDA, MSDAClassifier
from undrift.errors import UndriftWarning
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods.cells import Cell
from undrift_lab.methods.undrift import WithoutFallback
from undrift_lab.plan import Setting


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Numbers as by hand, in float64."""
    monkeypatch.setattr(MSDAClassifier, "_dtype", "float64")


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture
def bench(corpus):
    return bench_of(corpus, Setting())


def run_all(bench, **setting):
    """Outcome of each task."""
    own = replace(bench, setting=replace(bench.setting, **setting))
    cells = [Cell("undrift", *task) for task in TASKS]
    found = find_all(own, cells)
    assert len(found) == len(TASKS)
    return {(outcome.cell.source, outcome.cell.target): outcome for outcome in found}


def fitted(corpus, rows, source, target, seen=lambda domain: np.arange(len(domain)), **changes):
    """The classifier as a user fits it: labels of the source's train rows, and the rows `seen` of all.

    Where classes are aligned, every domain is two: its test rows, and its others. Those of the target are
    numbered -1 and -2.
    """
    numbers = {name: (k, k + len(corpus.domains)) for k, name in enumerate(corpus.domains)}
    numbers[target] = (-1, -2)
    X, y, domain = [], [], []
    is_split = changes.get("center", "classes") == "classes"
    for name, own in corpus.domains.items():
        kept = seen(own)
        n_first = len(kept)
        if is_split and set(own.test) <= set(kept):
            kept, n_first = np.concatenate([own.test, without_test_rows(own)]), len(own.test)
        domain += np.repeat(numbers[name], [n_first, len(kept) - n_first]).tolist()
        X.append(rows[name][kept])
        y.append([own.y[i] if name == source and i in own.train else np.nan for i in kept])
    kind = MSDAClassifier if changes.pop("fallback", True) else WithoutFallback
    model = kind(**{"random_state": SEED} | changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndriftWarning)  # of choices at the edge of these small grids
        return model.fit(np.vstack(X), np.concatenate(y), sample_domain=domain)


def without_test_rows(domain):
    return np.array([i for i in range(len(domain)) if i not in domain.test])


CHANGES = [
    {},
    {"self_training": False},
    {"center": False},
    {"length": 1.0},
    {"fallback": False},
    {"noise": 0.5, "n_layers": 2, "C": 3.0},
    {"ridge": 10.0, "n_layers": 2},
    {"noise": 0.9, "n_layers": [1, 3], "C": [0.1, 2.0]},
]


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # of choices at the edge of these small grids
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_outcomes_are_those_of_the_text_classifier(bench, corpus, changes):
    length = changes.get("length", 5.0)
    rows = by_hand.tfidf(corpus, length)
    parameters = {name: value for name, value in changes.items() if name != "length"}
    for task, outcome in run_all(bench, changes=changes).items():
        model = fitted(corpus, rows, *task, **parameters)
        test, _ = of_part(corpus, rows, task[1], "test")
        assert {name: outcome.params[name] for name in model.best_params_} == model.best_params_
        assert outcome.params["length"] == length
        assert outcome.params["self_training"] is model.self_training
        assert outcome.params["center"] == model.center
        np.testing.assert_array_equal(outcome.predicted, model.predict(test, sample_domain=[-1] * len(test)))


def fit_pair(bench, corpus, method, **parameters):
    """Return the outcome of a method for a pair, the model on these rows alone, and the test rows."""
    setting = replace(bench, setting=replace(bench.setting, changes={"self_training": False}))
    (task, *_), full = TASKS, corpus.domains
    source, target = (full[name] for name in task)
    train = source.train
    alone = Domain(task[0], X=source.X[train], y=source.y[train], train=np.arange(len(train)))
    two = Corpus("two", {task[0]: alone, task[1]: target})
    rows = by_hand.tfidf(two, 5.0)
    model = fitted(two, rows, *task, self_training=False, **parameters)
    (outcome,) = find_all(setting, [Cell(method, *task)])
    return outcome, model, of_part(two, rows, task[1], "test")[0]


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("undrift-pair", {}),
        ("balanced-pair", {"border": "balanced"}),
        ("uncentred-pair", {"center": False, "fallback": False}),
    ],
)
def test_a_pair_is_fitted_on_the_sources_train_rows_and_the_target_alone(bench, corpus, method, parameters):
    outcome, model, test = fit_pair(bench, corpus, method, **parameters)
    np.testing.assert_array_equal(outcome.predicted, model.predict(test, sample_domain=[-1] * len(test)))


def test_em_on_the_layers_finds_the_most_likely_shares_of_the_predicted_rows(bench, corpus):
    outcome, model, test = fit_pair(bench, corpus, "uncentred-em-pair", center=False, fallback=False)
    p = model.predict_proba(test, sample_domain=[-1] * len(test))
    source = corpus.domains[TASKS[0][0]]
    ratio = p / [np.mean(source.y[source.train] == label) for label in model.classes_]
    shares = np.linspace(0, 1, 100_001)[:, None]
    likelihood = np.log(np.maximum(shares * ratio[:, 1] + (1 - shares) * ratio[:, 0], 1e-300)).sum(axis=1)
    best = shares[likelihood.argmax(), 0]
    expected = model.classes_[(ratio * [1 - best, best]).argmax(axis=1)]
    np.testing.assert_array_equal(outcome.predicted, expected)


def test_outcomes_are_those_of_least_squares_on_centred_layers_of_one_length(bench, corpus):
    changes = {"self_training": False, "noise": 0.6, "n_layers": 2, "C": 0.5}
    changes |= {"center": "domains", "fallback": False}
    Z = by_hand.centred_alike(by_hand.msda_layers(corpus, by_hand.tfidf(corpus, 5.0), 0.6, 2))
    for task, outcome in run_all(bench, changes=changes).items():
        expected = by_hand.transferred_by_least_squares(corpus, Z, *task, 0.5)
        np.testing.assert_array_equal(outcome.predicted, expected)


@pytest.mark.parametrize("where", ["setting", "changes"])
def test_pivots_are_drawn_once_for_all_tasks(bench, corpus, where):
    X = np.vstack(list(by_hand.tfidf(corpus, 5.0).values()))
    hidden = MSDA(2, 0.6, n_pivots=9, random_state=SEED).fit(X).hidden(X)
    layers = [by_hand.split_by_domain(corpus, h) for h in (X, *hidden)]
    changes = {"self_training": False, "noise": 0.6, "n_layers": 2}
    changes |= {"center": "domains", "fallback": False}
    own = {"n_pivots": 9} if where == "setting" else {}
    found = run_all(bench, changes=changes | ({} if own else {"n_pivots": 9}), **own)
    for task, outcome in found.items():
        Z = by_hand.centred_alike(layers)
        expected = by_hand.transferred_by_least_squares(corpus, Z, *task, 1.0)
        np.testing.assert_array_equal(outcome.predicted, expected)


def test_parameters_and_device_are_those_of_the_run(bench):
    own = replace(bench, parameters={"undrift": {"noise": 0.5, "C": 2.0, "length": 3.0}})
    for outcome in run_all(own, changes={"noise": 0.8}).values():
        params = {name: outcome.params[name] for name in ("noise", "C", "length", "n_layers")}
        assert params == {"noise": 0.8, "C": 2.0, "length": 3.0, "n_layers": 5}
    for failure in run_all(replace(bench, device="abacus")).values():
        assert failure.message.startswith("NoDevice: device='abacus' is not known")


def test_inductive_learns_from_all_rows_but_the_test_parts(bench, corpus):
    rows = by_hand.tfidf(corpus, 5.0, inductive=True)
    for task, outcome in run_all(bench, changes={"n_layers": 2}, inductive=True).items():
        unseen = fitted(corpus, rows, *task, without_test_rows, n_layers=2)
        test, _ = of_part(corpus, rows, task[1], "test")
        np.testing.assert_array_equal(outcome.predicted, unseen.predict(test))
        assert {name: outcome.params[name] for name in unseen.best_params_} == unseen.best_params_


@pytest.mark.parametrize("inductive", [False, True])
def test_where_no_labelled_row_has_the_targets_terms_it_falls_back(bench, corpus, inductive):
    n_columns = corpus.domains["books"].X.shape[1]
    apart = {
        name: replace(
            own, X=sp.csr_array(np.roll(np.pad(own.X.toarray(), ((0, 0), (0, 2 * n_columns))), k, axis=1))
        )
        for (name, own), k in zip(corpus.domains.items(), (0, n_columns, 2 * n_columns), strict=True)
    }
    bench = replace(bench, corpus=Corpus("apart", apart))
    rows = by_hand.tfidf(bench.corpus, 5.0, inductive)
    with pytest.warns(UndriftWarning, match="used the source-only classifier"):
        found = run_all(bench, inductive=inductive, changes={"noise": 0.7})
    seen = [without_test_rows] if inductive else []
    for task, outcome in found.items():
        unseen = fitted(bench.corpus, rows, *task, *seen, noise=0.7)
        assert unseen.caution_["fell_back"]
        test, _ = of_part(bench.corpus, rows, task[1], "test")
        np.testing.assert_array_equal(outcome.predicted, unseen.predict(test, target=-1))
