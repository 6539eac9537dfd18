"""Ours beyond the paper: tf-idf, domain-centred layers and least squares, all at their defaults."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ..adapter import TFIDF_LENGTH
from ..classifier import MSDAClassifier
from ..linear import SOLVERS, signs, winners
from .cells import Bench, Cell, Outcome, Unit, by_source
from .classify import authors_C
from .plain import tfidf_corpus
from .stacks import Part, RunningGrams, SharedStack, part_rows


def classifier(bench: Bench) -> MSDAClassifier:
    """Say what the method is: the classifier whose parameters everything here follows."""
    return MSDAClassifier(**bench.own("undrift"), random_state=bench.seed)


def ours_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """One stack of all domains serves all tasks."""
    return [Unit(cells, partial(_outcomes, bench, cells))]


def target_codes(
    model: MSDAClassifier, K: np.ndarray, codes: np.ndarray, n_classes: int, test: np.ndarray
) -> np.ndarray:
    """Predict the target's rows numbered `test`.

    `K` holds the inner products of the labelled source rows, which come first, and of all target rows
    with them and among themselves: what a classifier that learns from its own predictions needs.
    """
    n = len(codes)
    own, weight = K[:n, :n], np.ones(n)
    dual = SOLVERS[model.classifier](own, signs(codes, n_classes), model.C * authors_C(own), weight)
    return winners(dual.scores(K[n + test, :n]))


def _outcomes(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome]:
    model = classifier(bench)
    corpus = tfidf_corpus(bench.corpus, TFIDF_LENGTH)
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
        grams.add(level)
    params = {"noise": model.noise, "n_layers": model.n_layers, "C": model.C, "center": model.center}
    for own in by_source(cells).values():
        for cell in own:
            began = time.perf_counter()
            problem, classes = bench.problem(cell.source)
            test = part_rows(corpus, (cell.target, "test"))
            found = target_codes(model, _joint(grams, cell), problem.codes, len(classes), test)
            seconds = time.perf_counter() - began
            yield Outcome(cell, classes[found], params, level.seconds, seconds)


def _pairs(cell: Cell) -> tuple[tuple[Part, Part], ...]:
    """Blocks of a task's Gram matrix: source train rows, target rows with them, and among themselves."""
    source, target = (cell.source, "train"), (cell.target, "all")
    return (source, source), (target, source), (target, target)


def _joint(grams: RunningGrams, cell: Cell) -> np.ndarray:
    within, across, target = (grams[pair] for pair in _pairs(cell))
    return np.block([[within, across.T], [across, target]])
