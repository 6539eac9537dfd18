"""Results against the bars of `lab/plans/expected.toml`, and answers to the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
    "mean_error": "transfer_error", "represent_seconds": "represent_seconds", "share_error": "share_gap",
    "expected_error_gap": "error_gap", "calibration_error": "calibration_error", "distances_grown": "grows",
}  # fmt: skip
ESTIMATED = ("share_error", "expected_error_gap", "calibration_error")
SURE_ERRORS = 2  # standard errors over the tasks, within which a difference is a tie
# whether it is met (None without a task), number of tasks, numbers
Result = tuple[bool | Literal["tie"] | None, int, str]


@checked_dataclass(frozen=True, config=STRICT)
class Bar:
    """One line that results must reach (or, of a claim of the paper, may or may not).

    It is about `n_tasks` tasks (of distances: pairs of domains); with fewer there is no verdict. With
    `variants` it is about the tasks of all of them.
    """

    says: str
    plan: str
    method: str
    n_tasks: Count
    variant: str = "main"
    variants: tuple[str, ...] = ()
    measure: Literal[
        "mean_error", "represent_seconds", "distances_grown", "share_error", "expected_error_gap",
        "calibration_error",
    ] = "mean_error"  # fmt: skip
    claim: bool = False
    at_most: float | None = None  # the mean over tasks
    at_least: float | None = None
    than: Where | None = None  # lower than there, by a factor of `times`
    times: float = 1.0
    worse_than: tuple[str, ...] | None = None  # than any of them, by more than `by`, on few tasks
    at_most_tasks: int = 0
    never_above: tuple[str, ...] | None = None  # on the mean, by more than `by`, in any of the variants
    by: float = 0.0
    machine: str = ""  # part of the name of the machine, where only its records count
    missing: str = ""  # why there may be no record of it

    def __post_init__(self) -> None:
        has_bounds = self.at_most is not None or self.at_least is not None
        if has_bounds + sum(x is not None for x in (self.than, self.worse_than, self.never_above)) != 1:
            raise ValueError("give bounds (at_most, at_least), than, worse_than or never_above: one of them")
        if self.than is not None:  # in this plan and variant, if it says no other
            here = {"plan": self.plan, "variant": self.variant, **_given(self.than)}
            object.__setattr__(self, "than", Where(**here))

    def check(self, frame: pd.DataFrame) -> Result:
        """Compare results with it."""
        if self.machine:
            frame = frame[frame["machine"].fillna("").str.contains(self.machine)]
        if self.never_above is not None:
            return self._compare_variants(frame, self.never_above)
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
        return self._check_harm(ours, theirs) if theirs else self._check_mean(frame, ours)

    def _is_tie(self, gaps: pd.Series) -> bool:
        """Tell whether a claim is about a difference of errors that its tasks do not show."""
        is_compared = self.claim and self.measure == "mean_error" and len(gaps) > 1
        return is_compared and abs(float(gaps.mean())) <= SURE_ERRORS * float(gaps.sem())

    def measure_all(self, frame: pd.DataFrame, *others: Where) -> list[pd.Series]:
        """Measure the method and others by task, over the tasks that all of them have."""
        measured = [self._measure(place, frame) for place in (self._place(self.method), *others)]
        common = [task for task in measured[0].index if all(task in values.index for values in measured)]
        return [values[common] for values in measured]

    def _measure(self, place: Where, frame: pd.DataFrame, column: str = "") -> pd.Series:
        name = column or MEASURES[self.measure]
        if not self.variants:
            return average_tasks(place.of(frame), name)
        each = {v: average_tasks(replace(place, variant=v).of(frame), name) for v in self.variants}
        return pd.concat([values.rename(lambda task, v=v: f"{v} {task}") for v, values in each.items()])

    def _check_mean(self, frame: pd.DataFrame, ours: pd.Series) -> Result:
        mean, n_tasks, without = float(ours.mean()), len(ours), ""
        if self.measure in ESTIMATED:  # a method may decline to estimate
            n_tasks = len(self._measure(self._place(self.method), frame, "transfer_error"))
            without = f"; {n_tasks - len(ours)} without" if len(ours) < n_tasks else ""
        bounds = {"at least": self.at_least, "at most": self.at_most}
        wanted = [f"{name} {self._show(bound)}" for name, bound in bounds.items() if bound is not None]
        is_high = self.at_least is None or mean >= self.at_least
        is_low = self.at_most is None or mean <= self.at_most
        return is_high and is_low, n_tasks, ", ".join([self._show(mean), *wanted]) + without

    def _check_harm(self, ours: pd.Series, theirs: Sequence[pd.Series]) -> Result:
        # errors are counts over a number of rows: exactly `by` must not become more by rounding
        gaps = ours - pd.concat(theirs, axis=1).min(axis=1)
        worse = list(ours.index[gaps > self.by + 1e-9])
        named = f": {', '.join(worse)}" if worse else ""
        by = f" by more than {100 * self.by:g} points" if self.by else ""
        return (
            len(worse) <= self.at_most_tasks,
            len(ours),
            f"worse{by} on {len(worse)} of {len(ours)} tasks{named}",
        )

    def _compare_variants(self, frame: pd.DataFrame, methods: Sequence[str]) -> Result:
        n_tasks, above, worst = 0, [], -1.0
        for variant in self.variants or [self.variant]:
            here = replace(self, variant=variant, variants=())
            ours, *others = here.measure_all(frame, *map(here._place, methods))
            n_tasks += len(ours)
            for name, values in zip(methods, others, strict=True) if len(ours) else ():
                gap = float((ours - values).mean())
                worst = max(worst, gap)
                above += [f"{variant} ({name}, {100 * gap:+.2f})"] if gap > self.by + 1e-9 else []
        named = f": {', '.join(above)}" if above else ""
        numbers = f"at most {100 * worst:+.2f} points, {100 * self.by:+.2f} allowed{named}"
        return (not above, n_tasks, numbers) if n_tasks else (None, 0, "")

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
