"""Choose how wide intervals of the error without labels are: `VoteSettings.error_spread`, families left out.

    python lab/scripts/intervals.py lab/results/kinds.jsonl

Log odds of the error are taken to be off by a normal number of that standard deviation. For every family the
smallest one is chosen at which intervals of 90% hold on 90% of the tasks of each other family that has six
and more. It is reported on the family left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from undrift.method import Settings
from undrift_lab.results.frame import make_frame, reach_error, tell_sure
from undrift_lab.results.kinds import group_tasks
from undrift_lab.results.records import read

LEVEL = 0.9
LEAST_TASKS = 6  # of a family, so that 90% of them means something
SPREADS = np.arange(0.5, 2.55, 0.05)


def widen(tasks: pd.DataFrame, spread: float) -> pd.DataFrame:
    """Return by task whether its interval of this spread holds, how wide it is, and whether it is sure."""
    low, high = reach_error(tasks["expected_error"], spread)
    error = tasks["transfer_error"]
    return pd.DataFrame(
        {"holds": error.between(low, high), "width": high - low, "is_sure": tell_sure(error, high)}
    ).astype(float)


def find_worst(tasks: pd.DataFrame, spread: float) -> float:
    """Return how many intervals hold in the family where fewest do."""
    holds = widen(tasks, spread)["holds"].groupby(tasks["family"])
    return float(holds.mean()[holds.size() >= LEAST_TASKS].min())


def choose(tasks: pd.DataFrame) -> float:
    """Return the smallest spread whose intervals hold often enough in every family."""
    return float(next(spread for spread in SPREADS if find_worst(tasks, spread) >= LEVEL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=Path)
    grouped = group_tasks(make_frame(read(parser.parse_args().records)))
    ours = grouped.records[grouped.records["method"] == "undrift"].set_index("task_of_variant")
    tasks = ours.dropna(subset=["expected_error"]).join(grouped.about["family"])
    found = {}
    for family, own in tasks.groupby("family"):
        spread = choose(tasks[tasks["family"] != family])
        found[family] = {"tasks": len(own), "spread": spread, **widen(own, spread).mean()}
    table = pd.DataFrame(found).T
    print(table.round(2).to_string())
    print(f"mean over families left out: {table[['holds', 'width', 'is_sure']].mean().round(3).to_dict()}")
    in_use = Settings().votes.error_spread
    means = widen(tasks, in_use).groupby(tasks["family"]).mean().mean().round(3).to_dict()
    print(f"all families: {choose(tasks):.2f}; in use: {in_use:g}, {means}")


if __name__ == "__main__":
    main()
