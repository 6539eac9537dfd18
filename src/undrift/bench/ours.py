"""Ours beyond the paper: the settings of `text_classifier` on tf-idf rows, one set for all corpora."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..adapter import TFIDF_LENGTH, text_classifier
from ..classifier import MSDAClassifier
from ..domains import Corpus
from ..linear import SOLVERS, winners
from ..selection import Problem
from ..self_training import SelfTraining, self_trained
from ..training import stack_rows
from .cells import Bench, Cell, Outcome, Unit, by_source
from .classify import authors_C
from .plain import tfidf_corpus
from .stacks import Part, RunningGrams, SharedStack, joined, part_rows


def settings(bench: Bench) -> tuple[MSDAClassifier, float]:
    """Say what the method is: the classifier whose parameters all here follows, and the length of tf-idf."""
    changes = {**bench.own("undrift"), **bench.setting.changes}
    length = changes.pop("length", TFIDF_LENGTH)
    return text_classifier(random_state=bench.seed, **changes), length


def ours_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """One stack of all domains serves all tasks, unless test rows must stay unseen."""
    outcomes = _inductive_outcomes if bench.setting.inductive else _outcomes
    return [Unit(cells, partial(outcomes, bench, cells))]


def target_codes(model: MSDAClassifier, K: Any, problem: Problem, test: np.ndarray) -> np.ndarray:
    """Predict the target's rows numbered `test`.

    `K` holds the inner products of the labelled source rows, which come first, and of all target rows
    with them and among themselves: what a classifier that learns from its own predictions needs.
    """
    n = len(problem.codes)
    C = model.C * authors_C(K[:n, :n])
    if model.self_training:
        options = SelfTraining() if model.self_training is True else model.self_training
        dual, _ = self_trained(K, problem, C, options)
        return winners(dual.scores(K[n:][test]))
    dual = problem.fitted(K[:n, :n], np.arange(n), C)
    return winners(dual.scores(K[n:, :n][test]))


def _outcomes(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome]:
    model, length = settings(bench)
    corpus = tfidf_corpus(bench.corpus, length)
    stack = SharedStack(
        corpus,
        center=model.center,
        place=bench.place,
        activation=model.activation,
        ridge=model.ridge,
        n_pivots=model.n_pivots or bench.setting.n_pivots,
        seed=bench.seed,
    )
    grams = RunningGrams(corpus, dict.fromkeys(pair for cell in cells for pair in _pairs(cell)))
    for level in stack.levels(model.noise, model.n_layers):
        grams.add(level, balance=model.balance_layers)
    for own in by_source(cells).values():
        for cell in own:
            began = time.perf_counter()
            problem, classes = _problem(bench, model, cell.source)
            test = part_rows(corpus, (cell.target, "test"))
            K = joined(*(grams.where_it_is(pair) for pair in _pairs(cell)))
            found = target_codes(model, K, problem, test)
            seconds = time.perf_counter() - began
            yield Outcome(cell, classes[found], _described(model, length), level.seconds, seconds)


def _inductive_outcomes(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome]:
    """Learn each task from all rows but those of the test parts, as `fit` and `predict` do for a user."""
    model, length = settings(bench)
    model.set_params(device=bench.device)
    corpus = tfidf_corpus(bench.corpus, length)
    for cell in cells:
        rows, y, domain = _without_test_rows(corpus, cell)
        began = time.perf_counter()
        model.fit(rows, y, sample_domain=domain)
        seconds = time.perf_counter() - began
        test = part_rows(corpus, (cell.target, "test"))
        predicted = model.predict(corpus.domains[cell.target].X[test])
        yield Outcome(cell, predicted, _described(model, length), seconds, 0.0)


def _without_test_rows(corpus: Corpus, cell: Cell) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of all domains but their test parts, labels of the source's train rows, domain numbers."""
    blocks, labels, numbers = [], [], []
    for k, (name, domain) in enumerate(corpus.domains.items()):
        seen = np.setdiff1d(np.arange(len(domain)), domain.test)
        trained = np.isin(seen, domain.train) & (name == cell.source)
        blocks.append(domain.X[seen])
        labels.append(np.where(trained, np.asarray(domain.y, dtype=float)[seen], np.nan))
        numbers.append(np.full(len(seen), -1 if name == cell.target else k))
    return stack_rows(blocks), np.concatenate(labels), np.concatenate(numbers)


def _problem(bench: Bench, model: MSDAClassifier, source: str) -> tuple[Problem, np.ndarray]:
    problem, classes = bench.problem(source)
    solver = SOLVERS[model.classifier]
    return Problem(problem.codes, problem.n_classes, problem.weight, problem.folds, solver), classes


def _described(model: MSDAClassifier, length: float) -> dict[str, Any]:
    names = ("noise", "n_layers", "C", "center", "balance_layers", "classifier")
    return {name: getattr(model, name) for name in names} | {
        "self_training": bool(model.self_training),
        "length": length,
    }


def _pairs(cell: Cell) -> tuple[tuple[Part, Part], ...]:
    """Blocks of a task's Gram matrix: source train rows, target rows with them, and among themselves."""
    source, target = (cell.source, "train"), (cell.target, "all")
    return (source, source), (target, source), (target, target)
