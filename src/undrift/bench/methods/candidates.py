"""What every candidate of noise, depth and C scores by each label-free rule, and what it is really worth."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..._core import Array, submatrix
from ...classifier import (
    NEED_TARGET,
    SOLVERS,
    MSDAClassifier,
    Problem,
    SelfTraining,
    check_grid,
    draw_folds,
    draw_scored_rows,
    find_rule,
    fit_dual,
    predict_codes,
)
from ...corpora import Corpus
from ...metrics import transfer_error
from ..corpora import Part, part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, CellRecord, Failure, FailureLog, Point
from .resources import MemoryBudget, memory_budget
from .stacks import RunningGrams, SharedStack, join_blocks
from .svm import authors_C, source_codes
from .undrift import configure_undrift


def points(cells: Sequence[Cell], noises: Sequence[float], depths: Sequence[int]) -> list[Point]:
    """Everything that has a record, noise level by noise level and depth by depth."""
    return [
        (cell.source, cell.target, noise, depth) for noise in noises for depth in depths for cell in cells
    ]


def candidate_records(bench: Bench, cells: Sequence[Cell]) -> Iterator[CellRecord | Failure]:
    """Yield for each task, noise level and depth not known yet what all values of C are worth.

    Domains are centred on their means, unless the plan says that they are not centred at all. Errors are
    those of the target's test rows, without self-training and with it. One stack for each noise level serves
    all tasks.
    """
    scorer, setting = CandidateScorer(bench, *configure_undrift(bench, center="domains")), bench.setting
    missing = [p for p in points(cells, setting.noise, setting.depths) if p not in bench.known_points]
    n_left = Counter(point[:2] for point in missing)
    for cell in cells:
        scorer.failure_log.capture([cell], scorer.check, cell)
    for noise in setting.noise:
        left = [point for point in missing if point[2] == noise]
        tasks = {point[:2] for point in left}
        needed = [
            cell for cell in cells if (cell.source, cell.target) in tasks and cell not in scorer.failure_log
        ]
        for group in scorer.budget.group({cell: _pairs(cell) for cell in needed}):
            for cell, values in scorer.score_noise(noise, group, left):
                task = cell.source, cell.target
                n_left[task] -= 1
                where = f"{'->'.join(task)}, noise {noise:g}, depth {values['n_layers']}"
                yield CellRecord(cell, values, where if n_left[task] else None)
    yield from scorer.failure_log.failures()


@dataclass(frozen=True)
class CandidateScorer:
    """Scores candidates of method `undrift` on the tasks of one corpus."""

    bench: Bench
    model: MSDAClassifier
    length: float
    failure_log: FailureLog = field(default_factory=FailureLog)  # tasks that failed while others go on

    @cached_property
    def corpus(self) -> Corpus:
        """The tf-idf rows."""
        return weight_tfidf(self.bench.corpus, self.length)

    @cached_property
    def stack(self) -> SharedStack:
        """The stacks, on the rows of all domains."""
        return SharedStack(
            self.corpus,
            center=bool(self.model.center),
            place=self.bench.place,
            activation=self.model.activation,
            ridge=self.model.ridge,
            n_pivots=None if self.model.n_pivots == "auto" else self.model.n_pivots,
            seed=self.bench.seed,
        )

    @cached_property
    def budget(self) -> MemoryBudget:
        """Memory for inner products."""
        return memory_budget(self.corpus, self.bench.place)

    def check(self, cell: Cell) -> None:
        """Refuse a task whose source has one class alone, or that has too many rows."""
        source_codes(self.corpus, cell.source)
        self.budget.check(f"task {cell.source}->{cell.target}", _pairs(cell))

    def score_noise(
        self, noise: float, cells: Sequence[Cell], left: Sequence[Point]
    ) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Yield tasks with the values of their records at one noise level, depth by depth."""
        grams = RunningGrams(self.corpus, dict.fromkeys(pair for cell in cells for pair in _pairs(cell)))
        for level in self.stack.levels(noise, max(depth for *_, depth in left)):
            grams.add(level, balance=self.model.balance_layers)
            point = {"noise": noise, "n_layers": level.depth}
            source_scores: dict[tuple[str, str], np.ndarray] = {}
            for cell in cells:
                if (cell.source, cell.target, noise, level.depth) not in left or cell in self.failure_log:
                    continue
                for values in self.failure_log.capture(
                    [cell], self._score_task, grams, cell, point, source_scores
                ):
                    yield cell, values

    def _score_task(
        self,
        grams: RunningGrams,
        cell: Cell,
        point: dict[str, Any],
        source_scores: dict[tuple[str, str], np.ndarray],
    ) -> dict[str, Any]:
        """Values of one record; `source_scores` has, and gets, what rules say of the source alone."""
        began = time.perf_counter()
        classes, codes = source_codes(self.corpus, cell.source)
        n = len(codes)
        random_state = np.random.RandomState(self.bench.seed)  # drawn from in the order of `fit`
        folds = draw_folds(codes, self.model.n_folds, random_state)
        problem = Problem(codes, len(classes), np.ones(n), folds, SOLVERS[self.model.classifier])
        rows = draw_scored_rows(n, n + len(self.corpus.domains[cell.target]), random_state)
        K = join_blocks(*(grams.peek(pair) for pair in _pairs(cell)))
        Cs = [C * authors_C(K[:n, :n]) for C in self.bench.setting.C]
        scores = {}
        for rule in self.bench.setting.rules:
            if rule in NEED_TARGET:
                seen = K if rows is None else submatrix(K, rows, rows)
                scores[rule] = find_rule(rule)(seen, problem, Cs)
                continue
            if (rule, cell.source) not in source_scores:
                source_scores[rule, cell.source] = find_rule(rule)(K[:n, :n], problem, Cs)
            scores[rule] = source_scores[rule, cell.source]
        candidates = [
            {
                **point,
                "C": C,
                "scores": {rule: float(values[i]) for rule, values in scores.items()},
                "error": self._measure_error(cell, K, problem, Cs[i], None),
                "self_trained_error": self._measure_error(cell, K, problem, Cs[i], self._self_training),
            }
            for i, C in enumerate(self.bench.setting.C)
        ]
        return {
            **point,
            "candidates": candidates,
            "preset": self._preset(),
            "small_grid": self.bench.setting.small_grid,
            "n_train": n,
            "n_test": len(part_rows(self.corpus, (cell.target, "test"))),
            "seconds": round(time.perf_counter() - began, 6),
        }

    @property
    def _self_training(self) -> SelfTraining:
        value = self.model.self_training
        return value if isinstance(value, SelfTraining) else SelfTraining()

    def _measure_error(
        self, cell: Cell, K: Array, problem: Problem, C: float, self_training: SelfTraining | None
    ) -> float:
        classes, _ = source_codes(self.corpus, cell.source)
        test = part_rows(self.corpus, (cell.target, "test"))
        codes = predict_target_codes(K, problem, C, test, self_training)
        return transfer_error(part_labels(self.corpus, cell.target, "test"), classes[codes])

    def _preset(self) -> dict[str, Any]:
        """The model's values, or those that it prefers."""
        noise, n_layers, C = check_grid(self.model.noise, self.model.n_layers, self.model.C).preferred
        return {"noise": noise, "n_layers": n_layers, "C": C}


def predict_target_codes(
    K: Array, problem: Problem, C: float, test: np.ndarray, self_training: SelfTraining | None
) -> np.ndarray:
    """Train on the labelled rows, which come first in `K`, and predict the target's rows numbered `test`.

    `K` holds the inner products of the labelled source rows and of all target rows; C is in its units.
    """
    n = len(problem.codes)
    dual = fit_dual(K, problem, C, self_training).model
    K_test = K[n:][test]
    return predict_codes(dual.scores(K_test if self_training is not None else K_test[:, :n]))


def _pairs(cell: Cell) -> tuple[tuple[Part, Part], ...]:
    """Blocks of a task's Gram matrix: source train rows, target rows with them, and among themselves."""
    source, target = (cell.source, "train"), (cell.target, "all")
    return (source, source), (target, source), (target, target)
