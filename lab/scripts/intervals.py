"""Choose how wide intervals of the error without labels are: `VoteSettings.error_spread`, families left out.

    python lab/scripts/intervals.py lab/results/kinds.jsonl

Log odds of a wrong prediction are taken to be off by a normal number of that standard deviation. For every
family the smallest one is chosen at which intervals of 90% hold on 90% of the tasks of all other families,
mean over families. It is reported on the family left out.

A record has the ends of one interval. Between and beyond them the log odds of the error are taken to move in
proportion to the normal number.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

from undrift.method.settings import VoteSettings
from undrift_lab.results.frame import SURE, make_frame
from undrift_lab.results.kinds import group_tasks
from undrift_lab.results.records import read

LEVEL = 0.9
SPREADS = np.arange(0.5, 2.55, 0.05)
LEAST = 1e-3  # of errors, so that log odds stay finite


def widen(tasks: pd.DataFrame, spread: float) -> pd.DataFrame:
    """Return by task whether its interval of this spread holds, how wide it is, and whether it is sure."""
    low, middle, high = (
        logit(tasks[name].clip(LEAST, 1 - LEAST))
        for name in ("expected_low", "expected_error", "expected_high")
    )
    factor = spread / VoteSettings().error_spread
    ends = expit(middle - factor * (middle - low)), expit(middle + factor * (high - middle))
    error = tasks["transfer_error"]
    return pd.DataFrame(
        {"holds": error.between(*ends), "width": ends[1] - ends[0], "is_sure": error > ends[1] + SURE}
    ).astype(float)


def average(tasks: pd.DataFrame, spread: float) -> pd.Series:
    """Return means over families."""
    return widen(tasks, spread).groupby(tasks["family"]).mean().mean()


def choose(tasks: pd.DataFrame) -> float:
    """Return the smallest spread whose intervals hold often enough."""
    return float(next(spread for spread in SPREADS if average(tasks, spread)["holds"] >= LEVEL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=Path)
    grouped = group_tasks(make_frame(read(parser.parse_args().records)))
    ours = grouped.records[grouped.records["method"] == "undrift"].set_index("task_of_variant")
    tasks = ours.dropna(subset=["expected_low"]).join(grouped.about["family"])
    found = {}
    for family, own in tasks.groupby("family"):
        spread = choose(tasks[tasks["family"] != family])
        found[family] = {"tasks": len(own), "spread": spread, **widen(own, spread).mean()}
    table = pd.DataFrame(found).T
    print(table.round(2).to_string())
    print(f"mean over families left out: {table[['holds', 'width', 'is_sure']].mean().round(3).to_dict()}")
    spread, z = choose(tasks), norm.ppf((1 + LEVEL) / 2)
    print(f"all families: {spread:.2f}, which is {z * spread:.1f} of log odds to either side")
    in_use = VoteSettings().error_spread
    print(f"in use: {in_use:g}, {average(tasks, in_use).round(3).to_dict()}")


if __name__ == "__main__":
    main()
