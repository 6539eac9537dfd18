"""Two settings on the same tasks: the mean difference of their errors, and how sure one can be of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .measures import Where, places, task
from .records import Record

REFERENCE = "all"  # the variant of an ablation plan that the others are compared with
N_DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """Mean over tasks (and seeds) of one error less another, with the bounds of its bootstrap interval."""

    where: Where
    mean: float
    low: float
    high: float
    n_tasks: int
    n_seeds: int
    n_worse: int  # tasks whose error is higher here


def differences(records: Sequence[Record], plan: str) -> list[Difference]:
    """Every variant of an ablation plan against its variant "all", method by method."""
    here = [place for place in places(records) if place.plan == plan and place.variant != REFERENCE]
    found = [difference(records, place, Where(plan, REFERENCE, place.method)) for place in here]
    return [own for own in found if own is not None]


def difference(records: Sequence[Record], here: Where, there: Where) -> Difference | None:
    """Compare two places, task by task and seed by seed; None where they share no task."""
    ours, theirs = (_errors(place.of(records)) for place in (here, there))
    common = [run for run in ours if run in theirs]
    if not common:
        return None
    seeds = list(dict.fromkeys(seed for _, seed in common))
    tasks = [name for name in dict.fromkeys(name for name, _ in common)
             if all((name, seed) in ours and (name, seed) in theirs for seed in seeds)]  # fmt: skip
    if not tasks:
        return None
    D = np.array([[ours[name, seed] - theirs[name, seed] for seed in seeds] for name in tasks])
    low, high = bootstrap_interval(D)
    n_worse = int(np.sum(D.mean(axis=1) > 1e-12))
    return Difference(here, float(D.mean()), low, high, len(tasks), len(seeds), n_worse)


def bootstrap_interval(D: np.ndarray, n_draws: int = N_DRAWS, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of the mean of `D` (tasks down, seeds across), both drawn anew with replacement.

    All tasks of a draw have the same seeds, as a seed is that of a run over all tasks.
    """
    rng = np.random.default_rng(seed)
    n_tasks, n_seeds = D.shape
    rows = (
        rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), n_draws) / n_tasks
    )  # how often each is drawn
    columns = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), n_draws) / n_seeds
    means = np.einsum("bt,ts,bs->b", rows, D, columns, optimize=True)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _errors(records: Sequence[Record]) -> dict[tuple[str, int | None], float]:
    return {(task(record), record.get("seed")): record["transfer_error"] for record in records}
