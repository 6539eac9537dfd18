"""Proxy A-distance between domains, before and after the layers (figure 3 right)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from ..._inputs import binarize_rows
from ...corpora import Corpus
from ...metrics import DistanceInterval, gram_distance_interval
from ..corpora import Part
from .cells import Bench, Cell, CellRecord
from .msda import depth_of
from .stacks import RunningGrams, SharedStack, join_blocks


def domain_pairs(domains: Sequence[str]) -> list[tuple[str, str]]:
    """Every pair of domains, once."""
    return list(combinations(domains, 2))


def measure_distances(bench: Bench, cells: Sequence[Cell]) -> Iterator[CellRecord]:
    """Yield the distance of each pair on binary rows, and on ``[x, h^1, ..., h^l]`` of the same rows.

    The cells are of one method. The stack is fitted on all rows; a classifier separates `n_rows` of each
    domain, evenly spaced.
    """
    noise, depth = bench.setting.noise[0], depth_of(cells[0].method)
    corpus = _mark_rows(bench.corpus.map(binarize_rows, terms=bench.corpus.terms), bench.setting.n_rows)
    stack = SharedStack(corpus, place=bench.place, n_pivots=bench.setting.n_pivots, seed=bench.seed)
    grams = RunningGrams(corpus, dict.fromkeys(block for cell in cells for block in _blocks(cell)))
    levels = stack.levels(noise, depth)
    grams.add(next(levels))
    before = [bench.pool.submit(_measure_distance, *_joint(grams, cell), bench.seed) for cell in cells]
    for level in levels:
        grams.add(level)
    after = [bench.pool.submit(_measure_distance, *_joint(grams, cell), bench.seed) for cell in cells]
    for cell, distance_before, distance_after in zip(cells, before, after, strict=True):
        yield CellRecord(
            cell,
            {
                "params": {"noise": noise, "n_layers": depth, "n_rows": bench.setting.n_rows},
                "represent_seconds": level.seconds,
                **_name_bounds("distance_before", distance_before.result()),
                **_name_bounds("distance_after", distance_after.result()),
            },
        )


def _mark_rows(corpus: Corpus, n_rows: int) -> Corpus:
    """Mark `n_rows` of each domain as its test rows: those that a distance is measured on."""
    domains = {}
    for name, domain in corpus.domains.items():
        n = len(domain)
        rows = np.unique(np.linspace(0, n - 1, min(n_rows, n)).round().astype(int))
        domains[name] = replace(domain, y=np.zeros(n), train=rows[:0], test=rows, unlabelled=rows[:0])
    return Corpus(corpus.name, domains, corpus.terms)


def _blocks(cell: Cell) -> tuple[tuple[Part, Part], ...]:
    a, b = (cell.source, "test"), (cell.target, "test")
    return (a, a), (b, a), (b, b)


def _joint(grams: RunningGrams, cell: Cell) -> tuple[np.ndarray, int]:
    blocks = [grams[block] for block in _blocks(cell)]
    return join_blocks(*blocks), len(blocks[0])


def _measure_distance(K: np.ndarray, n: int, seed: int) -> DistanceInterval:
    """Measure the distance of the first n rows from the others, given all inner products."""
    return gram_distance_interval(K, n, C=tuple(10.0**k for k in range(-3, 2)), random_state=seed)


def _name_bounds(name: str, interval: DistanceInterval) -> dict[str, float]:
    return {name: interval.distance, f"{name}_low": interval.low, f"{name}_high": interval.high}
