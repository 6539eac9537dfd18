"""What every candidate of noise, depth and C scores by each label-free rule, and what it is really worth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import clone

from ..._core import Array
from ...classifier import Problem, checked_grid
from ...metrics import transfer_error
from .cells import Bench, Cell, Failure
from .classify import labels, source_codes
from .ours import Ours, check_task, ours, target_codes
from .stacks import part_rows

Point = tuple[str, str, float, int]  # source, target, noise, depth


def points(bench_cells: Sequence[Cell], noises: Sequence[float], depths: Sequence[int]) -> list[Point]:
    """Everything that is recorded apart, noise level by noise level and depth by depth."""
    return [
        (cell.source, cell.target, noise, depth)
        for noise in noises
        for depth in depths
        for cell in bench_cells
    ]


def candidate_records(
    bench: Bench, cells: Sequence[Cell], known: AbstractSet[Point]
) -> Iterator[dict[str, Any] | Failure]:
    """Yield for each task, noise level and depth not `known` yet what all values of C are worth.

    Errors are those of the target's test rows, without self-training and with it. One stack for each noise
    level serves all tasks.
    """
    method, setting = ours(bench), bench.setting
    for cell in cells:
        with method.mishaps.of(cell):
            check_task(bench, cell)
    for noise in setting.noise:
        left = [p for p in points(cells, [noise], setting.depths) if p not in known]
        own = [cell for cell in cells if any(p[:2] == (cell.source, cell.target) for p in left)]
        for group in method.groups(own):
            yield from _level_records(method, noise, group, left)
    yield from method.mishaps.failures()


def _level_records(
    method: Ours, noise: float, cells: Sequence[Cell], left: Sequence[Point]
) -> Iterator[dict[str, Any]]:
    """Records of one noise level and of tasks that learn together, depth by depth."""
    setting = method.bench.setting
    for level, grams in method.levels(noise, max(depth for *_, depth in left), cells):
        here = [cell for cell in cells if (cell.source, cell.target, noise, level.depth) in left]
        began = time.perf_counter()
        for cell, K, problem, scores in method.scored(grams, here, setting.rules, setting.C):
            point = {"noise": noise, "n_layers": level.depth}
            found: list[dict[str, Any]] = []
            with method.mishaps.of(cell):
                found += [point | own for own in _candidates(method, cell, K, problem, scores)]
            if cell not in method.mishaps:
                yield {
                    **asdict(cell),
                    **point,
                    "candidates": found,
                    "preset": _preset(method),
                    "small_grid": setting.small_grid,
                    "n_train": len(problem.codes),
                    "n_test": len(part_rows(method.corpus, (cell.target, "test"))),
                    "seconds": round(time.perf_counter() - began, 6),
                }
            began = time.perf_counter()


def _candidates(
    method: Ours, cell: Cell, K: Array, problem: Problem, scores: dict[str, np.ndarray]
) -> Iterator[dict[str, Any]]:
    """One entry for each C: scores of the rules, and errors."""
    truth = labels(method.corpus, cell.target, "test")
    test = part_rows(method.corpus, (cell.target, "test"))
    classes, _ = source_codes(method.corpus, cell.source)
    plain = clone(method.model).set_params(self_training=False)
    trained = clone(method.model).set_params(self_training=method.model.self_training or True)
    for i, C in enumerate(method.bench.setting.C):
        yield {
            "C": C,
            "scores": {rule: float(own[i]) for rule, own in scores.items()},
            "error": transfer_error(truth, classes[target_codes(plain, K, problem, test, C)]),
            "self_trained_error": transfer_error(truth, classes[target_codes(trained, K, problem, test, C)]),
        }


def _preset(method: Ours) -> dict[str, Any]:
    """The method's own values, or those that it prefers."""
    noise, n_layers, C = checked_grid(method.model.noise, method.model.n_layers, method.model.C).preferred
    return {"noise": noise, "n_layers": n_layers, "C": C}
