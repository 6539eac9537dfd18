"""Ours beyond the paper: the settings of `text_classifier` on tf-idf rows, one set for all corpora."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..._core import Array, stack_rows, submatrix
from ...classifier import (
    NEED_TARGET,
    SOLVERS,
    Candidate,
    Grid,
    MSDAClassifier,
    Problem,
    SelfTraining,
    check_grid,
    choose_candidate,
    draw_folds,
    draw_scored_rows,
    find_rule,
    predict_codes,
    self_train,
)
from ...corpora import Corpus
from ...text import TFIDF_LENGTH, text_classifier
from ..corpora import Part, part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Failure, FailureLog, Outcome, Unit, group_by_source
from .resources import memory_budget
from .stacks import Level, RunningGrams, SharedStack, join_blocks
from .svm import authors_C, source_codes


def settings(bench: Bench) -> tuple[MSDAClassifier, float]:
    """Say what the method is: the classifier whose parameters all here follows, and the length of tf-idf."""
    shared = {"n_folds": bench.setting.n_folds, "n_pivots": bench.setting.n_pivots}
    changes = {**shared, **bench.parameters_of("undrift"), **bench.setting.changes}
    length = changes.pop("length", TFIDF_LENGTH)
    return text_classifier(random_state=bench.seed, **changes), length


def ours_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """One stack of all domains for each noise level serves all tasks, unless test rows must stay unseen."""
    outcomes = _inductive_outcomes if bench.setting.inductive else _outcomes
    return [Unit(cells, partial(outcomes, bench, cells))]


def check_task(bench: Bench, cell: Cell) -> None:
    """Refuse a task whose source has one class alone, or that has too many rows."""
    source_codes(bench.corpus, cell.source)
    if not bench.setting.inductive:  # else the classifier takes care of itself
        budget = memory_budget(bench.corpus, bench.place)
        budget.check(f"task {cell.source}->{cell.target}", _pairs(cell))


def target_codes(
    model: MSDAClassifier, K: Array, problem: Problem, test: np.ndarray, C: float | None = None
) -> np.ndarray:
    """Predict the target's rows numbered `test`, at the model's C or another.

    `K` holds the inner products of the labelled source rows, which come first, and of all target rows
    with them and among themselves: what a classifier that learns from its own predictions needs.
    """
    n = len(problem.codes)
    C = (model.C if C is None else C) * authors_C(K[:n, :n])
    if model.self_training:
        options = SelfTraining() if model.self_training is True else model.self_training
        dual, _ = self_train(K, problem, C, options)
        return predict_codes(dual.scores(K[n:][test]))
    dual = problem.fit(K[:n, :n], np.arange(n), C)
    return predict_codes(dual.scores(K[n:, :n][test]))


@dataclass(frozen=True)
class Ours:
    """The method on one corpus: its parameters, the tf-idf rows, and the stacks that serve all tasks."""

    bench: Bench
    model: MSDAClassifier
    length: float
    corpus: Corpus
    stack: SharedStack
    failure_log: FailureLog = field(default_factory=FailureLog)  # tasks that failed while others go on

    def groups(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Cut tasks into groups whose inner products fit into memory, each with stacks of its own."""
        left = {cell: _pairs(cell) for cell in cells if cell not in self.failure_log}
        return memory_budget(self.corpus, self.bench.place).group(left)

    def levels(
        self, noise: float, n_layers: int, cells: Sequence[Cell]
    ) -> Iterator[tuple[Level, RunningGrams]]:
        """Yield each level of a stack with the inner products that `cells` need, up to that level."""
        grams = RunningGrams(self.corpus, dict.fromkeys(pair for cell in cells for pair in _pairs(cell)))
        for level in self.stack.levels(noise, n_layers):
            grams.add(level, balance=self.model.balance_layers)
            yield level, grams

    def problem(self, cell: Cell) -> tuple[Problem, np.ndarray, np.ndarray | None]:
        """Return a task's labelled problem, its classes, and the rows that selection rules look at."""
        classes, codes = source_codes(self.corpus, cell.source)
        random_state = np.random.RandomState(self.bench.seed)  # drawn from in the order of `fit`
        split = draw_folds(codes, self.model.n_folds, random_state)
        solver = SOLVERS[self.model.classifier]
        problem = Problem(codes, len(classes), np.ones(len(codes)), split, solver)
        n = len(codes) + len(self.corpus.domains[cell.target])
        return problem, classes, draw_scored_rows(len(codes), n, random_state)

    def scored(
        self, grams: RunningGrams, cells: Sequence[Cell], rules: Sequence[str], Cs: Sequence[float]
    ) -> Iterator[tuple[Cell, Array, Problem, dict[str, np.ndarray]]]:
        """Yield each task with its Gram matrix, and what the rules make of every C; no target label is seen.

        Rules that do not look at the target are asked once for each source.
        """
        source_scores: dict[tuple[str, str], np.ndarray] = {}
        for cell in [each for each in cells if each not in self.failure_log]:
            yield from self.failure_log.capture([cell], self._score, grams, cell, rules, Cs, source_scores)

    def _score(
        self,
        grams: RunningGrams,
        cell: Cell,
        rules: Sequence[str],
        Cs: Sequence[float],
        source_scores: dict[tuple[str, str], np.ndarray],
    ) -> tuple[Cell, Array, Problem, dict[str, np.ndarray]]:
        """Score one task; `source_scores` has, and gets, what rules say of its source alone."""
        problem, _, rows = self.problem(cell)
        K, n = gram(grams, cell), len(problem.codes)
        seen, scaled = K if rows is None else submatrix(K, rows, rows), [C * authors_C(K[:n, :n]) for C in Cs]
        found = {}
        for rule in rules:
            if rule in NEED_TARGET:
                found[rule] = find_rule(rule)(seen, problem, scaled)
                continue
            if (rule, cell.source) not in source_scores:
                source_scores[rule, cell.source] = find_rule(rule)(K[:n, :n], problem, scaled)
            found[rule] = source_scores[rule, cell.source]
        return cell, K, problem, found


def ours(bench: Bench) -> Ours:
    """Set the method up for a corpus."""
    model, length = settings(bench)
    corpus = weight_tfidf(bench.corpus, length)
    stack = SharedStack(
        corpus,
        center=model.center,
        place=bench.place,
        activation=model.activation,
        ridge=model.ridge,
        n_pivots=model.n_pivots,
        seed=bench.seed,
    )
    return Ours(bench, model, length, corpus, stack)


def gram(grams: RunningGrams, cell: Cell) -> Array:
    """A task's Gram matrix, where its blocks are: labelled source rows first, then all target rows."""
    return join_blocks(*(grams.where_it_is(pair) for pair in _pairs(cell)))


def _outcomes(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome | Failure]:
    """Choose for each task where there is a choice; then learn the stacks that were chosen, and classify."""
    method, began = ours(bench), time.perf_counter()
    for cell in cells:
        method.failure_log.capture([cell], check_task, bench, cell)
    cells = [cell for cell in cells if cell not in method.failure_log]
    grid = check_grid(method.model.noise, method.model.n_layers, method.model.C)
    if grid.n_candidates == 1:
        only = Candidate(grid.noises[0], grid.depths[0], grid.Cs[0])
        chosen, grid_seconds = dict.fromkeys(cells, only), 0.0
    else:
        chosen = best_candidates(method, cells, grid)
        grid_seconds = time.perf_counter() - began
    for noise in sorted({candidate.noise for candidate in chosen.values()}):
        own = {cell: candidate for cell, candidate in chosen.items() if candidate.noise == noise}
        for group in method.groups(list(own)):
            yield from _classified(method, noise, {cell: own[cell] for cell in group}, grid_seconds)
    yield from method.failure_log.failures()


def best_candidates(method: Ours, cells: Sequence[Cell], grid: Grid) -> dict[Cell, Candidate]:
    """For each task the candidate that the model's rule chooses, the first of equals."""
    rule = method.model.selection
    candidates: dict[Cell, list[Candidate]] = {cell: [] for cell in cells}
    n_labelled = {cell: len(part_labels(method.corpus, cell.source, "train")) for cell in cells}
    for noise, group in product(grid.noises, method.groups(cells)):
        for level, grams in method.levels(noise, max(grid.depths), group):
            if level.depth not in grid.depths:
                continue
            for cell, _, _, scores in method.scored(grams, group, [rule], grid.Cs):
                for C, score in zip(grid.Cs, scores[rule], strict=True):
                    candidates[cell].append(Candidate(noise, level.depth, C, float(score)))
    return {
        cell: choose_candidate(own, rule, grid.preferred, n_labelled[cell])
        for cell, own in candidates.items()
        if cell not in method.failure_log
    }


def _classified(
    method: Ours, noise: float, chosen: Mapping[Cell, Candidate], grid_seconds: float
) -> Iterator[Outcome]:
    """Learn the stack of one noise level and yield, depth by depth, the outcomes of tasks that chose it."""
    deepest = max(candidate.n_layers for candidate in chosen.values())
    for level, grams in method.levels(noise, deepest, list(chosen)):
        here = [cell for cell, candidate in chosen.items() if candidate.n_layers == level.depth]
        for cell in [cell for group in group_by_source(here).values() for cell in group]:
            arguments = (method, grams, level, cell, chosen[cell], grid_seconds)
            yield from method.failure_log.capture([cell], _outcome, *arguments)


def _outcome(
    method: Ours, grams: RunningGrams, level: Level, cell: Cell, chosen: Candidate, grid_seconds: float
) -> Outcome:
    began = time.perf_counter()
    problem, classes, _ = method.problem(cell)
    test = part_rows(method.corpus, (cell.target, "test"))
    found = target_codes(method.model, gram(grams, cell), problem, test, chosen.C)
    seconds = time.perf_counter() - began
    params = _described(method.model, method.length, vars(chosen))
    return Outcome(cell, classes[found], params, level.seconds, seconds, grid_seconds)


def _inductive_outcomes(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome | Failure]:
    """Learn each task from all rows but those of the test parts, as `fit` and `predict` do for a user."""
    model, length = settings(bench)
    model.set_params(device=bench.device)
    corpus = weight_tfidf(bench.corpus, length)
    failure_log = FailureLog()
    for cell in cells:
        failure_log.capture([cell], check_task, bench, cell)
        if cell not in failure_log:
            yield from failure_log.capture([cell], _inductive_outcome, model, length, corpus, cell)
    yield from failure_log.failures()


def _inductive_outcome(model: MSDAClassifier, length: float, corpus: Corpus, cell: Cell) -> Outcome:
    rows, y, domain = _without_test_rows(corpus, cell)
    began = time.perf_counter()
    model.fit(rows, y, sample_domain=domain)
    seconds = time.perf_counter() - began
    test = part_rows(corpus, (cell.target, "test"))
    predicted = model.predict(corpus.domains[cell.target].X[test])
    return Outcome(cell, predicted, _described(model, length, model.best_params_), seconds, 0.0)


def _without_test_rows(corpus: Corpus, cell: Cell) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of all domains but their test parts, labels of the source's train rows, domain numbers."""
    blocks, known, numbers = [], [], []
    for k, (name, domain) in enumerate(corpus.domains.items()):
        seen = np.setdiff1d(np.arange(len(domain)), domain.test)
        trained = np.isin(seen, domain.train) & (name == cell.source)
        blocks.append(domain.X[seen])
        known.append(np.where(trained, np.asarray(domain.y, dtype=float)[seen], np.nan))
        numbers.append(np.full(len(seen), -1 if name == cell.target else k))
    return stack_rows(blocks), np.concatenate(known), np.concatenate(numbers)


def _described(model: MSDAClassifier, length: float, chosen: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: chosen[name] for name in ("noise", "n_layers", "C")}
    return own | {
        **{name: getattr(model, name) for name in ("center", "balance_layers", "classifier")},
        "self_training": bool(model.self_training),
        "length": length,
    }


def _pairs(cell: Cell) -> tuple[tuple[Part, Part], ...]:
    """Blocks of a task's Gram matrix: source train rows, target rows with them, and among themselves."""
    source, target = (cell.source, "train"), (cell.target, "all")
    return (source, source), (target, source), (target, target)
