"""Records as a data frame: numbers of methods over their tasks, on which tables, figures and checks agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

from undrift.method import Settings

from ..catalogue import METHODS
from .records import DISTANCES, Record

LARGER_CLASS = "larger class"  # calls every row of a target the class of which it has more
MIN_DOMAINS = 10  # with fewer, intervals of a bootstrap over domains are too narrow to be shown
HARM = 0.01  # more error than another method by more than this is harm
SURE = 0.05  # error above the upper end of its interval by more than this is confidently wrong
KEY = ["plan", "variant", "method", "source", "target", "seed"]
NUMBERS = [
    "transfer_error", "transfer_ratio", "transfer_loss", "baseline_in_domain_error", "represent_seconds",
    "classify_seconds", "grid_seconds", "n_features", "n_test", "n_duplicates",
    "error_without_duplicates", "target_share", "balanced_error", "f1", "estimated_share", "share_low",
    "share_high", "expected_error", "expected_low", "expected_high", "calibration_error", "n_target_labels",
]  # fmt: skip


def make_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return the latest successful transfer record of every task and seed, with the errors of its estimates.

    Added are `task`, `share_gap` and `error_gap` (absolute errors of the estimates), `share_held` and
    `error_held` (whether the interval holds the truth), and `is_sure` (whether the error is above the upper
    end by more than `SURE`); NaN where there is no estimate.
    """
    given = [r for r in records if r.get("kind") == "transfer" and "failed" not in r]
    frame = pd.DataFrame([{"seed": 0, **r} for r in given])
    frame = frame.reindex(
        columns=list(
            dict.fromkeys(
                [*KEY, "corpus", "machine", "date", "method_version", "fell_back", *NUMBERS, *frame.columns]
            )
        )
    )
    frame = frame.drop_duplicates(KEY, keep="last").reset_index(drop=True)
    frame[NUMBERS] = frame[NUMBERS].astype(float)
    frame["method_version"] = frame["method_version"].astype(float).fillna(0)  # 0: not recorded
    frame["task"] = frame["source"].astype(str) + "->" + frame["target"].astype(str)
    error, share = frame["transfer_error"], frame["target_share"]
    frame["share_gap"] = (frame["estimated_share"] - share).abs()
    frame["error_gap"] = (frame["expected_error"] - error).abs()
    for name, truth, end in (("share_held", share, "share"), ("error_held", error, "expected")):
        low, high = frame[f"{end}_low"], frame[f"{end}_high"]
        frame[name] = truth.between(low, high).where(low.notna()).astype(float)
    frame["is_sure"] = tell_sure(error, frame["expected_high"])
    return frame


def tell_sure(error: pd.Series, high: pd.Series) -> pd.Series:
    """Tell which errors are above the upper end of their interval by more than `SURE`; NaN without one."""
    return (error > high + SURE).where(high.notna()).astype(float)


def reach_error(expected: pd.Series, spread: float | None = None) -> tuple[pd.Series, pd.Series]:
    """Return the ends of the 90% intervals of expected errors without labels, as the library says them.

    The log odds of the error are normal around those expected, with a standard deviation of `spread`, by
    default that of the settings. No other number of a record enters.
    """
    reach = norm.ppf(0.95) * (Settings().votes.error_spread if spread is None else spread)
    low, high = (expit(logit(expected) + side * reach) for side in (-1, 1))
    return low, high


def frame_distances(records: Iterable[Record]) -> pd.DataFrame:
    """Return the pairs of domains whose distance was measured, and whether it grew."""
    measured = [{"params": None, **r} for r in records if r.get("kind") == "distance" and "failed" not in r]
    columns = ["plan", "variant", "method", "source", "target", "params", *DISTANCES]
    frame = pd.DataFrame(measured, columns=columns)
    frame["task"] = frame["source"] + "->" + frame["target"]
    return frame.assign(grows=(frame["distance_after"] > frame["distance_before"]).astype(float))


def find_failures(records: Iterable[Record]) -> list[Record]:
    """Return the records of what failed and has not succeeded since."""
    last: dict[Any, Record] = {}
    for record in records:
        if record.get("kind") in ("transfer", "distance"):
            last[tuple(record.get(name) for name in ("kind", *KEY))] = record
    return [record for record in last.values() if "failed" in record]


@dataclass(frozen=True)
class Where:
    """A method under one setting of one plan."""

    plan: str = ""
    variant: str = ""
    method: str = ""

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return its rows."""
        is_here = (frame["plan"] == self.plan) & (frame["variant"] == self.variant)
        return frame[is_here & (frame["method"] == self.method)]

    def mean(self, frame: pd.DataFrame, method: str) -> float:
        """Return the mean error of a method here."""
        return mean_over_tasks(replace(self, method=method).of(frame))


def average_tasks(frame: pd.DataFrame, name: str = "transfer_error") -> pd.Series:
    """Return a number of every task, the mean over seeds; tasks without one are left out."""
    return frame.groupby("task", sort=False)[name].mean().dropna()


def first_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave the seed that all methods have, so that means are of the same samples."""
    return frame[frame["seed"] == frame["seed"].min()]


def mean_over_tasks(frame: pd.DataFrame, name: str = "transfer_error") -> float:
    """Return the mean over tasks of the mean over seeds; NaN without any."""
    return float(average_tasks(frame, name).mean())


def rank_method(method: str) -> tuple[int, str]:
    """Return the place of a method: the contract's order, by depth, then by name."""
    family = "msda-1" if method.startswith("msda-") else method
    return METHODS.index(family) if family in METHODS else len(METHODS), method.zfill(10)


def add_larger_class(frame: pd.DataFrame) -> pd.DataFrame:
    """Add rows of `LARGER_CLASS` for every task whose class shares are known: the least to beat."""
    tasks = frame[frame["target_share"].notna()].drop_duplicates(["plan", "variant", "task"])
    share = tasks["target_share"].clip(upper=1 - tasks["target_share"])
    kept = tasks[["plan", "variant", "corpus", "source", "target", "task", "seed", "target_share"]]
    numbers = {"transfer_error": share, "balanced_error": 0.5, "f1": 0.0}
    return pd.concat([frame, kept.assign(method=LARGER_CLASS, **numbers)], ignore_index=True)


def count_harm(
    ours: pd.DataFrame, theirs: pd.DataFrame, name: str = "transfer_error", by: float = HARM
) -> str:
    """Count the tasks, variant by variant, whose error is above that of another method by more than `by`."""
    both = [frame.groupby(["variant", "task"], sort=False)[name].mean() for frame in (ours, theirs)]
    gaps = (both[0] - both[1]).dropna()
    return f"{int((gaps > by + 1e-9).sum())} of {len(gaps)}" if len(gaps) else ""


@dataclass(frozen=True)
class Difference:
    """Mean over tasks (and seeds) of one error less another, with the bounds of its bootstrap interval."""

    mean: float
    low: float
    high: float
    by_target: tuple[float, float]  # least and greatest of the means of single targets
    n_domains: int
    n_tasks: int
    seeds: tuple[int, ...]
    n_worse: int  # tasks whose error is higher here
    worst: float  # the largest difference of a task


def compare(ours: pd.DataFrame, theirs: pd.DataFrame) -> Difference | None:
    """Compare two methods or variants, task by task and seed by seed; None where they share no task.

    Seeds that lack a task which another seed has are left out.
    """
    tables = [frame.pivot_table("transfer_error", "task", "seed", sort=False) for frame in (ours, theirs)]
    D = tables[0] - tables[1]
    n_tasks = D.notna().sum()
    D = D.loc[:, (n_tasks > 0) & (n_tasks == n_tasks.max())].dropna(axis=0)
    D = D.reindex([task for task in tables[0].index if task in D.index])
    if D.empty:
        return None
    gaps = D.mean(axis=1)
    targets = gaps.groupby([task.split("->")[1] for task in D.index]).mean()
    n_domains = len({domain for task in D.index for domain in task.split("->")})
    low, high = bootstrap_interval(D.to_numpy(), list(D.index))
    by_target, counts = (
        (float(targets.min()), float(targets.max())),
        (n_domains, D.shape[0], tuple(D.columns)),
    )
    worse = int((gaps > 1e-12).sum()), float(gaps.max())
    return Difference(float(gaps.mean()), low, high, by_target, *counts, *worse)


def bootstrap_interval(
    D: np.ndarray, tasks: Sequence[str], n_draws: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """95% percentile interval of the mean of `D` (tasks down, seeds across), by drawing domains and seeds.

    Tasks that share a domain are not independent of each other, so domains are drawn with replacement: a task
    counts as often as its source was drawn, times how often its target was. All tasks of a draw have the same
    seeds, as a seed is that of a run over all tasks.
    """
    rng = np.random.default_rng(seed)
    pairs = [name.split("->") for name in tasks]
    names = sorted({name for pair in pairs for name in pair})
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), n_draws)
    weights = np.prod([drawn[:, [names.index(pair[k]) for pair in pairs]] for k in (0, 1)], axis=0)
    weights = weights[weights.sum(axis=1) > 0]  # a draw may hold no task
    weights = weights / weights.sum(axis=1, keepdims=True)
    columns = rng.multinomial(D.shape[1], np.full(D.shape[1], 1 / D.shape[1]), len(weights)) / D.shape[1]
    low, high = np.quantile(np.einsum("bt,ts,bs->b", weights, D, columns, optimize=True), [0.025, 0.975])
    return float(low), float(high)
