"""Records as a data frame: numbers of methods over their tasks, on which tables, figures and checks agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

from undrift.method import Settings

from ..catalogue import METHODS
from .records import DISTANCES, Record

HARM = 0.01  # more error than another method by more than this is harm
SURE = 0.05  # error above the upper end of its interval by more than this is confidently wrong
KEY = ["plan", "variant", "method", "source", "target", "seed"]
NUMBERS = [
    "transfer_error", "transfer_ratio", "transfer_loss", "baseline_in_domain_error", "represent_seconds",
    "n_features", "n_test", "expected_error", "expected_low", "expected_high",
]  # fmt: skip


def make_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return the latest successful transfer record of every task and seed, with the errors of its estimates.

    Added are `task`, `error_gap` (how far the expected error is off), `error_held` (whether its interval
    holds the error), and `is_sure` (whether the error is above the upper end by more than `SURE`); NaN where
    there is no estimate.
    """
    given = [r for r in records if r.get("kind") == "transfer" and "failed" not in r]
    frame = pd.DataFrame([{"seed": 0, **r} for r in given])
    frame = frame.reindex(
        columns=list(
            dict.fromkeys([*KEY, "corpus", "machine", "date", "method_version", *NUMBERS, *frame.columns])
        )
    )
    frame = frame.drop_duplicates(KEY, keep="last").reset_index(drop=True)
    frame[NUMBERS] = frame[NUMBERS].astype(float)
    frame["method_version"] = frame["method_version"].astype(float).fillna(0)  # 0: not recorded
    frame["task"] = frame["source"].astype(str) + "->" + frame["target"].astype(str)
    error, low, high = (frame[name] for name in ("transfer_error", "expected_low", "expected_high"))
    frame["error_gap"] = (frame["expected_error"] - error).abs()
    frame["error_held"] = error.between(low, high).where(low.notna()).astype(float)
    frame["is_sure"] = tell_sure(error, high)
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


def count_harm(
    ours: pd.DataFrame, theirs: pd.DataFrame, name: str = "transfer_error", by: float = HARM
) -> str:
    """Count the tasks, variant by variant, whose error is above that of another method by more than `by`."""
    both = [frame.groupby(["variant", "task"], sort=False)[name].mean() for frame in (ours, theirs)]
    gaps = (both[0] - both[1]).dropna()
    return f"{int((gaps > by + 1e-9).sum())} of {len(gaps)}" if len(gaps) else ""
