"""Method `undrift`: `text_classifier` on tf-idf rows, as shipped; layers are learnt once for all tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._core import stack_rows
from ...classifier import FittedTask, MSDAClassifier, fit_together
from ...corpora import Corpus
from ...text import TFIDF_LENGTH, text_classifier
from ..corpora import part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Failure, FailureLog, Outcome, Unit
from .resources import measure_time, memory_budget
from .svm import source_codes


def undrift_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """All tasks together."""
    return [Unit(cells, partial(_fit_tasks, bench, cells))]


def configure_undrift(bench: Bench) -> tuple[MSDAClassifier, float]:
    """Return the classifier with the changes of the plan, and the length of tf-idf rows."""
    changes: dict[str, Any] = {"n_folds": bench.setting.n_folds, "n_pivots": bench.setting.n_pivots}
    changes |= {**bench.parameters_of("undrift"), **bench.setting.changes}
    length = changes.pop("length", TFIDF_LENGTH)
    return text_classifier(device=bench.device, random_state=bench.seed, **changes), length


def _fit_tasks(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome | Failure]:
    """Fit groups of tasks whose Gram matrices fit into memory together, and predict their test rows."""
    failure_log = FailureLog()
    for cell in cells:
        failure_log.capture([cell], source_codes, bench.corpus, cell.source)
    classifier, length = configure_undrift(bench)
    corpus = weight_tfidf(bench.corpus, length)
    for group in _group_by_memory(bench, [cell for cell in cells if cell not in failure_log]):
        X, tasks = stack_tasks(corpus, group, inductive=bench.setting.inductive)
        for cell, fitted in fit_together(classifier, X, tasks):
            if isinstance(fitted, Exception):
                yield Failure(cell, fitted)
            else:
                yield from failure_log.capture([cell], _predict, corpus, length, cell, fitted)
    yield from failure_log.failures()


def _predict(corpus: Corpus, length: float, cell: Cell, fitted: FittedTask) -> Outcome:
    classifier = fitted.classifier
    test = corpus.domains[cell.target].X[part_rows(corpus, (cell.target, "test"))]
    predicted, seconds = measure_time(classifier.predict, test)
    n_candidates = len(classifier.selection_results_)
    return Outcome(
        cell,
        predicted,
        _describe(classifier, length),
        fitted.layer_seconds,
        fitted.seconds + seconds,
        fitted.search_seconds if n_candidates > 1 else 0.0,
    )


def _describe(classifier: MSDAClassifier, length: float) -> dict[str, Any]:
    chosen = {name: classifier.best_params_[name] for name in ("noise", "n_layers", "C")}
    return chosen | {
        **{name: getattr(classifier, name) for name in ("center", "balance_layers", "classifier")},
        "self_training": bool(classifier.self_training),
        "length": length,
    }


def stack_tasks(
    corpus: Corpus, cells: Sequence[Cell], *, inductive: bool
) -> tuple[Any, Mapping[Cell, tuple[np.ndarray, np.ndarray]]]:
    """Stack the rows of all domains; for each task, return labels and domains of these rows.

    The labels are those of the source's train rows, all others NaN. An `inductive` task has no rows of the
    test parts.
    """
    blocks, labels, numbers = [], [], []
    for k, domain in enumerate(corpus.domains.values()):
        rows = np.arange(len(domain))
        if inductive:
            rows = np.setdiff1d(rows, domain.test)
        blocks.append(domain.X[rows])
        labels.append(np.where(np.isin(rows, domain.train), np.asarray(domain.y, dtype=float)[rows], np.nan))
        numbers.append(np.full(len(rows), k))
    y, number, names = np.concatenate(labels), np.concatenate(numbers), list(corpus.domains)
    tasks = {
        cell: (
            np.where(number == names.index(cell.source), y, np.nan),
            np.where(number == names.index(cell.target), -1 - number, number),
        )
        for cell in cells
    }
    return stack_rows(blocks), tasks


def _group_by_memory(bench: Bench, cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cut tasks into groups whose Gram matrices and rows fit into memory together, at least one in each."""
    limit = memory_budget(bench.corpus, bench.place).n_bytes
    domains = bench.corpus.domains
    row_bytes = sum(8 * getattr(domain.X, "nnz", np.size(domain.X)) for domain in domains.values())
    groups: list[list[Cell]] = []
    n_bytes = 0
    for cell in cells:
        n_anchors = len(domains[cell.source].train) + len(domains[cell.target])
        task_bytes = 8 * n_anchors**2 + row_bytes
        n_bytes += task_bytes
        if not groups or n_bytes > limit:
            groups.append([])
            n_bytes = task_bytes
        groups[-1].append(cell)
    return groups
