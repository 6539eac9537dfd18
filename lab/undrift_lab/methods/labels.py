"""Methods that are given some target labels, as many as their names say: `labels-50`.

Half of the target's rows may be labelled, the other half is predicted, in several draws, which the seed
decides; the rows that are predicted are the halves of all draws together. Layers are learnt from the rows of
the task's two domains.

labels
    `MSDAClassifier`, fitted with the labels of rows drawn at random for every draw; `labels-0` has none.
asked
    The same; rows are those that `ask` of `labels-0` returns.
updated, updated-asked
    The same labels, which `update` of `labels-0` learns.
augmented
    A linear SVM on the source and the labels, drawn at random: every feature once for both domains, and once
    for each (Daume 2007). C is chosen in the first draw.
target-only
    A linear SVM on the labels alone, drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from undrift.core import Rows, stack_rows
from undrift.method import MSDAClassifier

from ..catalogue import split_label_method
from ..corpora.corpus import Corpus, Domain
from ..parts import part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Finding, Outcome, attempt, group_cells
from .resources import measure_time
from .together import FittedTask, fit_together
from .undrift import configure_undrift

SVM_CS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
N_DRAWS = 5
OURS = ("labels", "asked", "updated", "updated-asked")
NO_ROWS = np.array([], dtype=int)

Draw = tuple[np.ndarray, np.ndarray]  # rows that may be labelled, in the order in which they are; the others


@dataclass
class LabelTask:
    """Rows of a source and of a target, some of whose labels may be had."""

    X: Rows  # source
    y: np.ndarray  # NaN for rows that are not labelled
    target: Rows
    truth: np.ndarray
    length: float
    classifier: MSDAClassifier
    augmented_C: dict[int, float] = field(default_factory=dict)  # by number of labels, of the first draw

    def fit(self, *labelled: np.ndarray, keeps_state: bool = False) -> list[FittedTask]:
        """Fit ours with the labels of some target rows, for each of several such."""
        n, n_target = len(self.y), len(self.truth)
        X, domain = stack_rows([self.X, self.target]), np.repeat([0, -2], [n, n_target])
        y, tasks = np.concatenate([self.y, np.full(n_target, np.nan)]), {}
        for i, rows in enumerate(labelled):
            y_target = np.full(n + n_target, np.nan)
            y_target[n + rows] = self.truth[rows]
            tasks[i] = y, domain, y_target
        fits: dict[int, FittedTask] = {}
        for i, fitted in fit_together(self.classifier, X, tasks, keeps_state=keeps_state):
            if isinstance(fitted, Exception):
                raise fitted
            fits[i] = fitted
        return [fits[i] for i in tasks]

    def predict_augmented(self, labelled: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Learn from source and labels, with features for both domains and for each."""
        is_labelled = ~np.isnan(self.y)
        source, shared = self.X[is_labelled] / self.length, self.target / self.length
        zero, none = sp.csr_array(source.shape), sp.csr_array(shared.shape)
        source, target = sp.hstack([source, source, zero]).tocsr(), sp.hstack([shared, none, shared]).tocsr()
        X = sp.vstack([source, target[labelled]]).tocsr()
        y = np.concatenate([self.y[is_labelled], self.truth[labelled]])
        if len(labelled) not in self.augmented_C:
            self.augmented_C[len(labelled)] = _choose_C(X, y)
        return LinearSVC(C=self.augmented_C[len(labelled)]).fit(X, y).predict(target[test])

    def predict_from_target(self, labelled: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Learn from the labels alone; with one class among them, that class is predicted."""
        y, rows = self.truth[labelled], self.target / self.length
        if len(np.unique(y)) == 1:
            return np.full(len(test), y[0])
        return LinearSVC(C=_choose_C(rows[labelled], y)).fit(rows[labelled], y).predict(rows[test])


def _choose_C(X: Rows, y: np.ndarray) -> float:
    """Return the C that is best in cross-validation, 1 where a class has a single row."""
    smallest = np.unique(y, return_counts=True)[1].min()
    if smallest < 2:
        return 1.0
    folds = StratifiedKFold(min(5, smallest), shuffle=True, random_state=0)
    search = GridSearchCV(LinearSVC(), {"C": SVM_CS}, cv=folds, refit=False).fit(X, y)
    return float(search.best_params_["C"])


def draw_halves(domain: Domain, seed: int) -> list[Draw]:
    """Draw the rows that may be labelled, and those to predict, from the labelled rows of a target."""
    random_state, labelled = np.random.RandomState(seed), np.union1d(domain.train, domain.test)
    halves = [np.array_split(random_state.permutation(labelled), 2) for _ in range(N_DRAWS)]
    return [(pool, np.sort(test)) for pool, test in halves]


def put_draws(corpus: Corpus, target: str, seed: int) -> Corpus:
    """Let the test rows of a target be those that are predicted in any draw, and all rows its train rows.

    Draws from the target that is returned are then the same, also where no draw predicts some row.
    """
    domain = corpus.domains[target]
    tests = np.concatenate([test for _, test in draw_halves(domain, seed)])
    drawn = replace(domain, train=np.union1d(domain.train, domain.test), test=tests)
    return replace(corpus, domains={**corpus.domains, target: drawn})


def learn_labels(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Run the tasks of one target, whose test rows are those of `put_draws`."""
    draws = draw_halves(bench.corpus.domains[cells[0].target], bench.seed)
    for group in group_cells(cells, "source").values():
        yield from attempt(group, _run_task, bench, group, draws)


def _run_task(bench: Bench, cells: Sequence[Cell], draws: Sequence[Draw]) -> Iterator[Finding]:
    """Run ours, then the baselines."""
    task = _take_task(bench, cells[0])
    ours = [cell for cell in cells if _split(cell)[0] in OURS]
    if ours:
        yield from _run_ours(task, ours, draws)
    for cell in cells:
        if cell not in ours:
            yield from attempt([cell], _run_baseline, task, cell, draws)


def _run_ours(task: LabelTask, cells: Sequence[Cell], draws: Sequence[Draw]) -> Iterator[Outcome]:
    (without,) = task.fit(NO_ROWS, keeps_state=True)
    ours = without.classifier
    n_asked = max((n for kind, n in map(_split, cells) if "asked" in kind), default=0)
    # rows are chosen one after another, so that fewer are the first of more
    asked = [pool[ours.ask(task.target[pool], n_asked)] if n_asked else pool for pool, _ in draws]
    for cell in cells:
        kind, n = _split(cell)
        rows = [chosen[:n] for chosen in (asked if "asked" in kind else [pool for pool, _ in draws])]
        if "updated" in kind:
            runs = [measure_time(copy(ours).update, task.target[i], task.truth[i]) for i in rows]
            fits = [
                replace(without, classifier=learnt, seconds=without.seconds + spent) for learnt, spent in runs
            ]
        else:
            fits = task.fit(*rows) if n else [without] * len(draws)
        predicted = [
            fit.classifier.predict(task.target[test]) for fit, (_, test) in zip(fits, draws, strict=True)
        ]
        params = {"n_target_labels": n}
        seconds = sum(fit.seconds for fit in fits) / len(fits)
        yield _describe(cell, draws, predicted, params, fits[0].layer_seconds, seconds)


def _split(cell: Cell) -> tuple[str, int]:
    return split_label_method(cell.method)


def _describe(
    cell: Cell,
    draws: Sequence[Draw],
    predicted: Sequence[np.ndarray],
    params: Mapping[str, Any],
    represent: float,
    seconds: float,
) -> Outcome:
    details = {"n_target_labels": params["n_target_labels"], "n_draws": len(draws), "expected_error": None}
    order = np.argsort(np.concatenate([test for _, test in draws]), kind="stable")  # that of `part_rows`
    return Outcome(cell, np.concatenate(predicted)[order], params, represent, seconds, details=details)


def _run_baseline(task: LabelTask, cell: Cell, draws: Sequence[Draw]) -> Outcome:
    kind, n = _split(cell)
    predict = {
        "augmented": task.predict_augmented,
        "target-only": task.predict_from_target,
    }[kind]
    runs = [measure_time(predict, pool[:n], test) for pool, test in draws]
    seconds = sum(spent for _, spent in runs) / len(runs)
    predicted = [predicted for predicted, _ in runs]
    return _describe(cell, draws, predicted, {"n_target_labels": n}, 0.0, seconds)


def _take_task(bench: Bench, cell: Cell) -> LabelTask:
    """Return the rows of a task as tf-idf."""
    classifier, length = configure_undrift(bench)
    domains = {name: bench.corpus.domains[name] for name in (cell.source, cell.target)}
    pair = weight_tfidf(replace(bench.corpus, domains=domains), length)
    source, target = pair.domains[cell.source], pair.domains[cell.target]
    y = np.full(len(source), np.nan)
    y[part_rows(pair, (cell.source, "train"))] = part_labels(pair, cell.source, "train")
    return LabelTask(source.X, y, target.X, np.asarray(target.y, dtype=float), length, classifier)
