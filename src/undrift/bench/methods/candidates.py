"""What every candidate of noise, depth and C scores by each label-free rule, and what it is really worth."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._core import Array
from ...classifier import Problem, check_grid
from ...metrics import transfer_error
from ..corpora import part_labels, part_rows
from .cells import Bench, Cell, CellRecord, Failure, Point
from .ours import Ours, check_task, ours, target_codes
from .svm import source_codes


def points(cells: Sequence[Cell], noises: Sequence[float], depths: Sequence[int]) -> list[Point]:
    """Everything that is recorded apart, noise level by noise level and depth by depth."""
    return [
        (cell.source, cell.target, noise, depth) for noise in noises for depth in depths for cell in cells
    ]


def candidate_records(bench: Bench, cells: Sequence[Cell]) -> Iterator[CellRecord | Failure]:
    """Yield for each task, noise level and depth not known yet what all values of C are worth.

    Errors are those of the target's test rows, without self-training and with it. One stack for each noise
    level serves all tasks.
    """
    method, setting = ours(bench), bench.setting
    missing = [p for p in points(cells, setting.noise, setting.depths) if p not in bench.known_points]
    n_left = Counter(point[:2] for point in missing)
    for cell in cells:
        method.failure_log.capture([cell], check_task, bench, cell)
    for noise in setting.noise:
        left = [point for point in missing if point[2] == noise]
        needed = [cell for cell in cells if any(point[:2] == (cell.source, cell.target) for point in left)]
        for group in method.groups(needed):
            for cell, values in _score_level(method, noise, group, left):
                task = cell.source, cell.target
                n_left[task] -= 1
                where = f"{'->'.join(task)}, noise {noise:g}, depth {values['n_layers']}"
                yield CellRecord(cell, values, where if n_left[task] else None)
    yield from method.failure_log.failures()


def _score_level(
    method: Ours, noise: float, cells: Sequence[Cell], left: Sequence[Point]
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Tasks and values of one noise level and of tasks that learn together, depth by depth."""
    setting = method.bench.setting
    for level, grams in method.levels(noise, max(depth for *_, depth in left), cells):
        here = [cell for cell in cells if (cell.source, cell.target, noise, level.depth) in left]
        began = time.perf_counter()
        for cell, K, problem, scores in method.scored(grams, here, setting.rules, setting.C):
            point = {"noise": noise, "n_layers": level.depth}
            for candidates in method.failure_log.capture(
                [cell], _score_candidates, method, cell, K, problem, scores
            ):
                values = {
                    **point,
                    "candidates": [point | candidate for candidate in candidates],
                    "preset": _preset(method),
                    "small_grid": setting.small_grid,
                    "n_train": len(problem.codes),
                    "n_test": len(part_rows(method.corpus, (cell.target, "test"))),
                    "seconds": round(time.perf_counter() - began, 6),
                }
                yield cell, values
            began = time.perf_counter()


def _score_candidates(
    method: Ours, cell: Cell, K: Array, problem: Problem, scores: dict[str, np.ndarray]
) -> list[dict[str, Any]]:
    """One entry for each C: scores of the rules, and errors."""
    truth = part_labels(method.corpus, cell.target, "test")
    test = part_rows(method.corpus, (cell.target, "test"))
    classes, _ = source_codes(method.corpus, cell.source)
    plain = clone(method.model).set_params(self_training=False)
    trained = clone(method.model).set_params(self_training=method.model.self_training or True)
    return [
        {
            "C": C,
            "scores": {rule: float(values[i]) for rule, values in scores.items()},
            "error": transfer_error(truth, classes[target_codes(plain, K, problem, test, C)]),
            "self_trained_error": transfer_error(truth, classes[target_codes(trained, K, problem, test, C)]),
        }
        for i, C in enumerate(method.bench.setting.C)
    ]


def _preset(method: Ours) -> dict[str, Any]:
    """The method's own values, or those that it prefers."""
    noise, n_layers, C = check_grid(method.model.noise, method.model.n_layers, method.model.C).preferred
    return {"noise": noise, "n_layers": n_layers, "C": C}
