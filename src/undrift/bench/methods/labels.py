"""Methods that are given some target labels, as many as their names say: `labels-50`.

Half of the target's rows, which the seed decides, may be labelled; the other half is predicted. Layers are
learnt from the rows of the task's two domains.

labels
    `text_classifier` with `y_target`; rows are drawn at random. `labels-0` has none.
asked
    The same; rows are those that `ask` of `labels-0` returns.
second-source
    `text_classifier` without `y_target`: the labelled rows, drawn at random, are a second source.
augmented
    A linear SVM on the source and the labels, drawn at random: every feature once for both domains, and once
    for each (Daume 2007).
target-only
    A linear SVM on the labels alone, drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from ..._core import Rows, stack_rows
from ...classifier import FittedTask, MSDAClassifier, fit_together
from ..catalogue import split_label_method
from ..corpora import part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Failure, FailureLog, Outcome, Unit, group_cells
from .resources import measure_time
from .undrift import configure_undrift

SVM_CS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class LabelTask:
    """Rows of a source and of a target, some of whose labels may be had."""

    X: Rows  # source
    y: np.ndarray  # NaN for rows that are not labelled
    target: Rows
    truth: np.ndarray
    pool: np.ndarray  # target rows that may be labelled, in the order in which they are drawn
    test: np.ndarray  # the others
    length: float
    new_classifier: Callable[[], MSDAClassifier]

    def fit_all(
        self, labelled: Mapping[Cell, np.ndarray], *, is_asked: bool = False
    ) -> Iterator[tuple[Cell, FittedTask | Exception]]:
        """Learn from the labels of some target rows for every cell; layers are learnt once."""
        n, n_target = len(self.y), len(self.truth)
        y, domain = np.full(n + n_target, np.nan), np.repeat([0, -2], [n, n_target])
        y[:n] = self.y
        tasks: dict[Cell, tuple[np.ndarray, ...]] = {}
        for cell, rows in labelled.items():
            y_target = np.full(n + n_target, np.nan)
            y_target[n + rows] = self.truth[rows]
            tasks[cell] = (y, domain, y_target)
        X = stack_rows([self.X, self.target])
        return fit_together(self.new_classifier(), X, tasks, keeps_state=is_asked)

    def predict(self, classifier: MSDAClassifier) -> np.ndarray:
        """Predict the test rows."""
        return classifier.predict(self.target[self.test])

    def predict_with_second_source(self, labelled: np.ndarray) -> np.ndarray:
        """Learn from the labelled rows as a second source, and predict the test rows."""
        rest = np.setdiff1d(np.arange(len(self.truth)), labelled)
        X = stack_rows([self.X, self.target[labelled], self.target[rest]])
        y = np.concatenate([self.y, self.truth[labelled], np.full(len(rest), np.nan)])
        domain = np.repeat([0, 1, -3], [len(self.y), len(labelled), len(rest)])
        ((_, fitted),) = fit_together(self.new_classifier(), X, {"second source": (y, domain)})
        if isinstance(fitted, Exception):
            raise fitted
        return self.predict(fitted.classifier)

    def predict_augmented(self, labelled: np.ndarray) -> np.ndarray:
        """Learn from source and labels, with features for both domains and for each."""
        is_labelled = ~np.isnan(self.y)
        source, shared = self.X[is_labelled] / self.length, self.target / self.length
        zero, none = sp.csr_array(source.shape), sp.csr_array(shared.shape)
        source, target = sp.hstack([source, source, zero]).tocsr(), sp.hstack([shared, none, shared]).tocsr()
        y = np.concatenate([self.y[is_labelled], self.truth[labelled]])
        return _fit_svm(sp.vstack([source, target[labelled]]).tocsr(), y).predict(target[self.test])

    def predict_from_target(self, labelled: np.ndarray) -> np.ndarray:
        """Learn from the labels alone; with one class among them, that class is predicted."""
        y, rows = self.truth[labelled], self.target / self.length
        if len(np.unique(y)) == 1:
            return np.full(len(self.test), y[0])
        return _fit_svm(rows[labelled], y).predict(rows[self.test])


def _fit_svm(X: Rows, y: np.ndarray) -> Any:
    """Linear SVM with the C that is best in cross-validation, 1 where a class has a single row."""
    smallest = np.unique(y, return_counts=True)[1].min()
    if smallest < 2:
        return LinearSVC().fit(X, y)
    folds = StratifiedKFold(min(5, smallest), shuffle=True, random_state=0)
    return GridSearchCV(LinearSVC(), {"C": SVM_CS}, cv=folds).fit(X, y)


def label_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """One unit for each task; the rows that are predicted are half of the target's."""
    units = []
    for target, same_target in group_cells(cells, "target").items():
        domain = bench.corpus.domains[target]
        labelled = np.random.RandomState(bench.seed).permutation(np.union1d(domain.train, domain.test))
        pool, test = np.array_split(labelled, 2)
        halves = replace(domain, train=pool, test=np.sort(test))
        corpus = replace(bench.corpus, domains={**bench.corpus.domains, target: halves})
        split = replace(bench, corpus=corpus)
        for group in group_cells(same_target, "source").values():
            units.append(Unit(group, partial(_run_task, split, group), corpus=corpus))
    return units


def _run_task(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome | Failure]:
    """Fit ours without labels, which asks for some; then with labels, all together; then the baselines."""
    failure_log, task = FailureLog(), _take_task(bench, cells[0])
    kinds = {cell: split_label_method(cell.method) for cell in cells}
    without = Cell("labels-0", cells[0].source, cells[0].target)
    first: list[FittedTask] = []
    if without in kinds or any(kind == "asked" for kind, _ in kinds.values()):
        for _, fitted in task.fit_all({without: task.pool[:0]}, is_asked=True):
            if isinstance(fitted, Exception):
                raise fitted
            first.append(fitted)
    if without in kinds:
        yield _describe_outcome(task, without, first[0])
    labelled = {cell: task.pool[:n] for cell, (kind, n) in kinds.items() if kind == "labels" and n}
    asked = {cell: n for cell, (kind, n) in kinds.items() if kind == "asked"}
    if asked:  # rows are chosen one after another, so that fewer are the first of more
        rows = task.pool[first[0].classifier.ask(task.target[task.pool], max(asked.values()))]
        labelled |= {cell: rows[:n] for cell, n in asked.items()}
    for cell, fitted in task.fit_all(labelled):
        if isinstance(fitted, Exception):
            yield Failure(cell, fitted)
        else:
            yield _describe_outcome(task, cell, fitted)
    for cell, (kind, n) in kinds.items():
        if kind not in ("labels", "asked"):
            yield from failure_log.capture([cell], _run_baseline, task, cell, kind, n)
    yield from failure_log.failures()


def _describe_outcome(task: LabelTask, cell: Cell, fitted: FittedTask) -> Outcome:
    n, predicted = split_label_method(cell.method)[1], task.predict(fitted.classifier)
    params = {"n_target_labels": n, "label_weight": fitted.classifier.label_weight_}
    details = {"n_target_labels": n, "expected_error": None}
    return Outcome(cell, predicted, params, fitted.layer_seconds, fitted.seconds, details=details)


def _run_baseline(task: LabelTask, cell: Cell, kind: str, n: int) -> Outcome:
    predict = {
        "second-source": task.predict_with_second_source,
        "augmented": task.predict_augmented,
        "target-only": task.predict_from_target,
    }[kind]
    predicted, seconds = measure_time(predict, task.pool[:n])
    details = {"n_target_labels": n, "expected_error": None}
    return Outcome(cell, predicted, {"n_target_labels": n}, 0.0, seconds, details=details)


def _take_task(bench: Bench, cell: Cell) -> LabelTask:
    """Return the rows of a task as tf-idf; the target's train rows are those that may be labelled."""
    classifier, length = configure_undrift(bench)
    domains = {name: bench.corpus.domains[name] for name in (cell.source, cell.target)}
    pair = weight_tfidf(replace(bench.corpus, domains=domains), length)
    source, target = pair.domains[cell.source], pair.domains[cell.target]
    y = np.full(len(source), np.nan)
    y[part_rows(pair, (cell.source, "train"))] = part_labels(pair, cell.source, "train")
    new_classifier = partial(lambda model: type(model)(**model.get_params()), classifier)
    truth = np.asarray(target.y, dtype=float)
    return LabelTask(source.X, y, target.X, truth, target.train, target.test, length, new_classifier)
