"""Method `undrift` against the classifier that users have, and against NumPy and scikit-learn alone."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from lab.tests.helpers import oracles as by_hand
from lab.tests.helpers.oracles import SEED, TASKS, bench_of, find_all, made_corpus, of_part
from undrift import MSDAClassifier
from undrift.errors import UndriftWarning
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods.cells import Cell
from undrift_lab.plan import Setting

pytestmark = pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # of few rows


@pytest.fixture(scope="module")
def corpus():
    return made_corpus()


@pytest.fixture
def bench(corpus):
    return bench_of(corpus, Setting())


def run_all(bench, parameters=None, **setting):
    """Outcome of each task."""
    own = replace(bench, setting=replace(bench.setting, **setting), parameters={"undrift": parameters or {}})
    cells = [Cell("undrift", *task) for task in TASKS]
    found = find_all(own, cells)
    assert len(found) == len(TASKS)
    return {(outcome.cell.source, outcome.cell.target): outcome for outcome in found}


def fitted(corpus, rows, source, target, seen=lambda domain: np.arange(len(domain)), **changes):
    """The classifier as a user fits it: labels of the source's train rows, and the rows `seen` of all.

    Every domain is two: its test rows, and its others. Those of the target are numbered -1 and -2.
    """
    numbers = {name: (k, k + len(corpus.domains)) for k, name in enumerate(corpus.domains)}
    numbers[target] = (-1, -2)
    X, y, domain = [], [], []
    for name, own in corpus.domains.items():
        kept = seen(own)
        n_first = len(kept)
        if set(own.test) <= set(kept):
            kept, n_first = np.concatenate([own.test, without_test_rows(own)]), len(own.test)
        domain += np.repeat(numbers[name], [n_first, len(kept) - n_first]).tolist()
        X.append(rows[name][kept])
        y.append([own.y[i] if name == source and i in own.train else np.nan for i in kept])
    model = MSDAClassifier(**{"random_state": SEED} | changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndriftWarning)  # of choices at the edge of these small grids
        return model.fit(np.vstack(X), np.concatenate(y), sample_domain=domain)


def without_test_rows(domain):
    return np.array([i for i in range(len(domain)) if i not in domain.test])


CHANGES = [
    {},
    {"self_training": False},
    {"center": False},
    {"center": "domains"},
    {"noise": 0.5, "n_layers": 2, "C": 3.0},
    {"ridge": 10.0, "n_layers": 2},
    {"n_pivots": 9, "n_layers": 2},
]


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")  # of choices at the edge of these small grids
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_outcomes_are_those_of_the_text_classifier(bench, corpus, changes):
    rows = by_hand.tfidf(corpus, 5.0)
    for task, outcome in run_all(bench, changes).items():
        model = fitted(corpus, rows, *task, **changes)
        test, _ = of_part(corpus, rows, task[1], "test")
        assert {name: outcome.params[name] for name in model.best_params_} == model.best_params_
        assert outcome.params["self_training"] is model.self_training
        assert outcome.params["center"] == model.center
        np.testing.assert_array_equal(outcome.predicted, model.predict(test, sample_domain=[-1] * len(test)))


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("undrift-pair", {}),
        ("balanced-pair", {"border": "balanced"}),
        ("uncentred-pair", {"center": False}),
    ],
)
def test_a_pair_is_fitted_on_the_sources_train_rows_and_the_target_alone(bench, corpus, method, changes):
    (task, *_), full = TASKS, corpus.domains
    source, target = (full[name] for name in task)
    n = len(source.train)
    alone = Domain(task[0], X=source.X[source.train], y=source.y[source.train], train=np.arange(n))
    two = Corpus("two", {task[0]: alone, task[1]: target})
    rows = by_hand.tfidf(two, 5.0)
    model = MSDAClassifier(random_state=SEED, **changes).fit(rows[task[0]], alone.y, rows[task[1]])
    (outcome,) = find_all(bench, [Cell(method, *task)])
    test, truth = of_part(two, rows, task[1], "test")
    np.testing.assert_array_equal(outcome.predicted, model.predict(test))
    assert outcome.details["expected_error"] == pytest.approx(model.expected_error_[0]["error"], rel=1e-5)
    errors = (model.classes_[model.find_readings(test).argmax(axis=2)] != truth).mean(axis=1)
    assert outcome.details["readings"] == pytest.approx(dict(zip(model.model_.names, errors, strict=True)))


def test_parameters_and_device_are_those_of_the_run(bench):
    for outcome in run_all(bench, {"noise": 0.5, "C": 2.0}).values():
        assert {name: outcome.params[name] for name in ("noise", "C", "n_layers")} == {
            "noise": 0.5, "C": 2.0, "n_layers": 5,
        }  # fmt: skip
    for failure in run_all(replace(bench, device="abacus")).values():
        assert failure.message.startswith("NoDevice: device='abacus' is not known")


def test_inductive_learns_from_all_rows_but_the_test_parts(bench, corpus):
    rows = by_hand.tfidf(corpus, 5.0, inductive=True)
    for task, outcome in run_all(bench, {"n_layers": 2}, inductive=True).items():
        unseen = fitted(corpus, rows, *task, without_test_rows, n_layers=2)
        test, _ = of_part(corpus, rows, task[1], "test")
        np.testing.assert_array_equal(outcome.predicted, unseen.predict(test))
        assert {name: outcome.params[name] for name in unseen.best_params_} == unseen.best_params_
