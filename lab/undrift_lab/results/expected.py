"""Results against the bars of `lab/plans/expected.toml`, and answers to the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from annotated_types import Len
from pydantic.dataclasses import dataclass as checked_dataclass

from ..catalogue import depends_on_method
from ..plan import STRICT, Count, check_table, find_plan_file, read_toml
from .frame import Where, average_tasks, frame_distances, make_frame
from .records import Record
from .tables import write_table

MEASURES = {  # columns of the data frame
    "mean_error": "transfer_error", "represent_seconds": "represent_seconds", "distances_grown": "grows",
}  # fmt: skip
SURE_ERRORS = 2  # standard errors over the tasks, within which a difference is a tie
# whether it is met (None without a task), number of tasks, numbers
Result = tuple[bool | Literal["tie"] | None, int, str]


@checked_dataclass(frozen=True, config=STRICT)
class Bar:
    """One line that results must reach (or, of a claim of the paper, may or may not).

    It is about `n_tasks` tasks (of distances: pairs of domains); with fewer there is no verdict.
    """

    says: str
    plan: str
    method: str
    n_tasks: Count
    variant: str = "main"
    measure: Literal["mean_error", "represent_seconds", "distances_grown"] = "mean_error"
    claim: bool = False
    at_most: float | None = None  # the mean over tasks
    at_least: float | None = None
    than: Where | None = None  # lower than there, by a factor of `times`
    times: float = 1.0
    worse_than: tuple[str, ...] | None = None  # than any of them, on few tasks
    at_most_tasks: int = 0
    machine: str = ""  # part of the name of the machine, where only its records count
    missing: str = ""  # why there may be no record of it

    def __post_init__(self) -> None:
        has_bounds = self.at_most is not None or self.at_least is not None
        if has_bounds + (self.than is not None) + (self.worse_than is not None) != 1:
            raise ValueError("give bounds (at_most, at_least), than or worse_than: one of them")
        if self.than is not None:  # in this plan and variant, if it says no other
            here = {"plan": self.plan, "variant": self.variant, **_given(self.than)}
            object.__setattr__(self, "than", Where(**here))

    def check(self, frame: pd.DataFrame) -> Result:
        """Compare results with it."""
        if self.machine:
            frame = frame[frame["machine"].fillna("").str.contains(self.machine)]
        others = [] if self.than is None else [self.than]
        ours, *theirs = self.measure_all(frame, *others, *map(self._place, self.worse_than or ()))
        if ours.empty:
            return None, 0, ""
        if self.than is not None:
            mean, other = float(ours.mean()), float(theirs[0].mean())
            numbers = f"{self._show(mean)} against {self._show(other)}"
            if self._is_tie(ours - theirs[0]):
                return "tie", len(ours), f"{numbers}; within {SURE_ERRORS} standard errors"
            return mean * self.times < other, len(ours), numbers
        return self._check_harm(ours, theirs) if theirs else self._check_mean(ours)

    def _is_tie(self, gaps: pd.Series) -> bool:
        """Tell whether a claim is about a difference of errors that its tasks do not show."""
        is_compared = self.claim and self.measure == "mean_error" and len(gaps) > 1
        return is_compared and abs(float(gaps.mean())) <= SURE_ERRORS * float(gaps.sem())

    def measure_all(self, frame: pd.DataFrame, *others: Where) -> list[pd.Series]:
        """Measure the method and others by task, over the tasks that all of them have."""
        places = [self._place(self.method), *others]
        measured = [average_tasks(place.of(frame), MEASURES[self.measure]) for place in places]
        common = [task for task in measured[0].index if all(task in values.index for values in measured)]
        return [values[common] for values in measured]

    def _check_mean(self, ours: pd.Series) -> Result:
        mean = float(ours.mean())
        bounds = {"at least": self.at_least, "at most": self.at_most}
        wanted = [f"{name} {self._show(bound)}" for name, bound in bounds.items() if bound is not None]
        is_high = self.at_least is None or mean >= self.at_least
        is_low = self.at_most is None or mean <= self.at_most
        return is_high and is_low, len(ours), ", ".join([self._show(mean), *wanted])

    def _check_harm(self, ours: pd.Series, theirs: Sequence[pd.Series]) -> Result:
        gaps = ours - pd.concat(theirs, axis=1).min(axis=1)
        worse = list(ours.index[gaps > 1e-9])  # errors are counts over a number of rows, and rounded
        named = f": {', '.join(worse)}" if worse else ""
        is_met = len(worse) <= self.at_most_tasks
        return is_met, len(ours), f"worse on {len(worse)} of {len(ours)} tasks{named}"

    def _place(self, method: str) -> Where:
        return Where(self.plan, self.variant, method)

    def _show(self, value: float) -> str:
        """Write a value with its unit."""
        return f"{value:.3g} s" if self.measure == "represent_seconds" else f"{value:.2%}"


def _given(place: Where) -> dict[str, str]:
    return {name: value for name, value in asdict(place).items() if value}


@dataclass(frozen=True)
class Verdict:
    """Whether the tasks at hand meet a bar (None: there are none), how many they are, and the numbers."""

    bar: Bar
    met: bool | Literal["tie"] | None
    n_tasks: int
    numbers: str

    @property
    def complete(self) -> bool:
        """Whether all tasks that the bar is about are there; if not, `met` says nothing of it."""
        return self.n_tasks >= self.bar.n_tasks

    @property
    def word(self) -> str:
        """Verdict in a word: bars pass or fail; claims hold, tie or do not; neither with tasks missing."""
        if self.met is None:
            return "not measured" if self.bar.missing else "no results"
        if not self.complete:
            return "incomplete"
        if self.met == "tie":
            return "tie"
        return (("no", "yes") if self.bar.claim else ("FAIL", "pass"))[bool(self.met)]

    @property
    def summary(self) -> str:
        """The numbers, and how much is missing."""
        if self.met is None or self.complete:
            return self.numbers or self.bar.missing
        return f"{self.numbers}; incomplete, {self.n_tasks} of {self.bar.n_tasks} tasks"


@checked_dataclass(frozen=True, config=STRICT)
class Bars:
    """The tables ``[[bar]]`` of a TOML file, at least one."""

    bar: Annotated[tuple[Bar, ...], Len(1)]


def load_bars(path: str | Path) -> tuple[Bar, ...]:
    """Read the bars of a TOML file."""
    try:
        return check_table(Bars, read_toml(find_plan_file(path))).bar
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_bars(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Compare the records with every bar; those of a trial do not count."""
    records = [record for record in records if not record.get("trial")]
    frame, distances = make_frame(records), frame_distances(records)
    frames = [distances if bar.measure == "distances_grown" else frame for bar in bars]
    return [Verdict(bar, *bar.check(own)) for bar, own in zip(bars, frames, strict=True)]


def check_versions(records: Sequence[Record]) -> None:
    """Refuse records of several versions of undrift: a page would lay them side by side."""
    places: dict[Any, set[str]] = {}
    for record in records:
        if "method" in record and depends_on_method(record["method"]):
            places.setdefault(record.get("method_version"), set()).add(str(record.get("plan")))
    if len(places) > 1:
        said = "; ".join(
            f"version {v} in {', '.join(sorted(plans))}" for v, plans in sorted(places.items(), key=str)
        )
        raise ValueError(
            f"records of undrift are of several versions ({said}): measure the older ones again, or "
            "remove them"
        )


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    rows = [[v.bar.says, v.word, str(v.n_tasks), v.summary] for v in verdicts]
    return write_table(["expected", "verdict", "tasks", "measured"], rows, 4)


def are_met(verdicts: Sequence[Verdict], partial: bool = False) -> bool:
    """Tell whether no bar is missed, and none lacks tasks or, without a word on why, all of them.

    With `partial`, an incomplete bar does not count, as long as any bar has results.
    """
    if any(v.word == "FAIL" for v in verdicts):
        return False
    if partial:
        return any(v.met is not None for v in verdicts)
    return all(v.complete or v.word == "not measured" for v in verdicts)
