"""Proxy A-distance between domains, before and after the layers (figure 3 right)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from undrift.core import Rows, stack_rows
from undrift.msda import MSDA

from ..baselines.rows import presence
from ..metrics import DistanceInterval, gram_distance
from ..parts import space_evenly
from .cells import Bench, Cell, CellRecord
from .msda import depth_of
from .resources import measure_time
from .stacks import row_products

N_ROWS = 1000  # of each domain that a distance is measured on


def domain_pairs(domains: Sequence[str]) -> list[tuple[str, str]]:
    """Every pair of domains, once."""
    return list(combinations(domains, 2))


def measure_distances(bench: Bench, cells: Sequence[Cell]) -> Iterator[CellRecord]:
    """Yield the distance of each pair on binary rows, and on ``[x, h^1, ..., h^l]`` of the same rows.

    The cells are of one method. The stack is fitted on all rows; a classifier separates `N_ROWS` of each
    domain, evenly spaced.
    """
    setting, depth = bench.setting, depth_of(cells[0].method)
    domains = {name: presence(domain.X) for name, domain in bench.corpus.domains.items()}
    X = stack_rows(list(domains.values()))
    n_pivots = setting.n_pivots if setting.n_pivots and setting.n_pivots < X.shape[1] else None
    model = MSDA(depth, setting.noise[0], n_pivots=n_pivots, device=bench.device, random_state=bench.seed)
    _, seconds = measure_time(model.fit, X)
    before = {name: X[space_evenly(np.arange(X.shape[0]), N_ROWS)] for name, X in domains.items()}
    after = {name: model.transform(X) for name, X in before.items()}
    measure = delayed(_measure_distance)
    jobs = [measure(rows, cell, bench.seed) for cell in cells for rows in (before, after)]
    found = iter(Parallel(bench.jobs, prefer="threads")(jobs))
    params = {"noise": setting.noise[0], "n_layers": depth, "n_rows": N_ROWS}
    for cell in cells:
        values: dict[str, Any] = {"params": params, "represent_seconds": seconds}
        for name, given in (("distance_before", next(found)), ("distance_after", next(found))):
            values |= {name: given.distance, f"{name}_low": given.low, f"{name}_high": given.high}
        yield CellRecord(cell, values)


def _measure_distance(rows: Mapping[str, Rows], cell: Cell, seed: int) -> DistanceInterval:
    """Measure the distance of two domains from the inner products of their rows."""
    both = stack_rows([rows[cell.source], rows[cell.target]])
    n, Cs = rows[cell.source].shape[0], tuple(10.0**k for k in range(-3, 2))
    return gram_distance(row_products(both, both), n, C=Cs, random_state=seed)
