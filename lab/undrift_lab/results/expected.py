"""Results against the bars of `lab/plans/expected.toml`, and answers to the paper's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic.dataclasses import dataclass as checked_dataclass

from ..plan import STRICT, Count, check_table, find_plan_file, read_toml
from .frame import Where, average_tasks, make_frame
from .records import Record
from .tables import write_table

# the keys of which a bar has one, with those that may stand beside it
CRITERIA: Mapping[str, Sequence[str]] = {
    "at_most": (),
    "at_least": (),
    "value": ("tolerance",),
    "than": ("near", "at_least_tasks", "times"),  # one of them
    "best_of": ("at_least_tasks",),
    "worse_than": ("at_most_tasks", "by"),
    "never_above": ("by",),
}
MEASURES = {  # columns of the data frame
    "mean_error": "transfer_error", "represent_seconds": "represent_seconds", "share_error": "share_gap",
    "expected_error_gap": "error_gap", "calibration_error": "calibration_error", "f1": "f1",
    "share_coverage": "share_held", "error_coverage": "error_held", "confidently_wrong": "is_sure",
}  # fmt: skip
ESTIMATED = ("share_error", "expected_error_gap", "calibration_error", "share_coverage", "error_coverage")
Result = tuple[bool | None, int, str]  # whether it is met (None without a task), number of tasks, numbers


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
        "calibration_error", "share_coverage", "error_coverage", "confidently_wrong", "f1",
    ] = "mean_error"  # fmt: skip
    claim: bool = False
    at_most: float | None = None  # the mean over tasks
    at_least: float | None = None
    value: float | None = None  # up to `tolerance`
    tolerance: float = 0.0
    than: Where | None = None  # lower than there: by a factor, or `near` it, or on many tasks
    times: float = 1.0
    near: float | None = None
    at_least_tasks: int | None = None
    best_of: tuple[str, ...] | None = None  # none of these methods is better, on many tasks
    worse_than: str | None = None  # by more than `by` on few tasks
    at_most_tasks: int | None = None
    never_above: tuple[str, ...] | None = None  # on the mean, by more than `by`, in any of the variants
    by: float = 0.0

    def __post_init__(self) -> None:
        kinds = [name for name in CRITERIA if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"give one of {', '.join(CRITERIA)}; got {', '.join(kinds) or 'none'}")
        optional = ("near", "at_least_tasks", "at_most_tasks")
        beside = [name for name in optional if getattr(self, name) is not None]
        foreign = [name for name in beside if name not in CRITERIA[kinds[0]]]
        if foreign or len(beside) > 1:
            raise ValueError(f"{kinds[0]} does not go with {', '.join(foreign or beside)}")
        for kind, name in (("best_of", "at_least_tasks"), ("worse_than", "at_most_tasks")):
            if kinds[0] == kind and getattr(self, name) is None:
                raise ValueError(f"{kind} needs {name}")

    def check(self, frame: pd.DataFrame, distances: pd.DataFrame) -> Result:
        """Compare results with it."""
        if self.measure == "distances_grown":
            frame = distances
        if self.never_above is not None:
            return self._compare_variants(frame, self.never_above)
        others = [] if self.than is None else [self.than]
        others += [self._place(name) for name in [*(self.best_of or []), *filter(None, [self.worse_than])]]
        ours, *theirs = self.measure_all(frame, *others)
        if ours.empty:
            return None, 0, ""
        if self.than is not None:
            return self._check_lower(ours, theirs[0])
        if self.best_of is not None:
            return self._check_best(ours, theirs)
        if self.worse_than is not None:
            return self._check_harm(ours, theirs[0])
        return self._check_mean(frame, ours)

    def measure_all(self, frame: pd.DataFrame, *others: Where) -> list[pd.Series]:
        """Measure the method and others by task, over the tasks that all of them have."""
        measured = [self._measure(place, frame) for place in (self._place(self.method), *others)]
        common = [task for task in measured[0].index if all(task in values.index for values in measured)]
        return [values[common] for values in measured]

    def _measure(self, place: Where, frame: pd.DataFrame, column: str = "") -> pd.Series:
        name = column or MEASURES.get(self.measure, "value")
        if not self.variants:
            return average_tasks(place.of(frame), name)
        each = {v: average_tasks(replace(place, variant=v).of(frame), name) for v in self.variants}
        return pd.concat([values.rename(lambda task, v=v: f"{v} {task}") for v, values in each.items()])

    def _check_mean(self, frame: pd.DataFrame, ours: pd.Series) -> Result:
        mean, n_tasks, without = float(ours.mean()), len(ours), ""
        if self.measure in ESTIMATED:  # a method may decline to estimate
            n_tasks = len(self._measure(self._place(self.method), frame, "transfer_error"))
            without = f"; {n_tasks - len(ours)} without" if len(ours) < n_tasks else ""
        if self.value is not None:
            is_met = abs(mean - self.value) <= self.tolerance
            wanted = f"expected {self._show(self.value)} ± {self._show(self.tolerance)}"
        elif self.at_most is not None:
            is_met, wanted = mean <= self.at_most, f"at most {self._show(self.at_most)}"
        else:
            least = self.at_least or 0.0
            is_met, wanted = mean >= least, f"at least {self._show(least)}"
        return is_met, n_tasks, f"{self._show(mean)}, {wanted}{without}"

    def _check_lower(self, ours: pd.Series, theirs: pd.Series) -> Result:
        mean, other = float(ours.mean()), float(theirs.mean())
        numbers = f"{self._show(mean)} against {self._show(other)}"
        if self.near is not None:
            return abs(mean - other) <= self.near, len(ours), f"{numbers}, within {self._show(self.near)}"
        if self.at_least_tasks is not None:
            n_lower = int((ours < theirs).sum())
            counted = f"lower on {n_lower} of {len(ours)} tasks; mean {numbers}"
            return n_lower >= self.at_least_tasks, len(ours), counted
        return mean * self.times < other, len(ours), numbers

    def _check_best(self, ours: pd.Series, theirs: Sequence[pd.Series]) -> Result:
        beaten = [task for task in ours.index if any(values[task] < ours[task] for values in theirs)]
        n_best = len(ours) - len(beaten)
        named = f"; not on {', '.join(beaten)}" if beaten else ""
        counted = f"best on {n_best} of {len(ours)} tasks{named}"
        return n_best >= (self.at_least_tasks or 0), len(ours), counted

    def _check_harm(self, ours: pd.Series, theirs: pd.Series) -> Result:
        # errors are counts over a number of rows: exactly `by` must not become more by rounding
        worse = list(ours.index[ours - theirs > self.by + 1e-9])
        named = f": {', '.join(worse)}" if worse else ""
        counted = f"worse by more than {100 * self.by:g} points on {len(worse)} of {len(ours)} tasks{named}"
        return len(worse) <= (self.at_most_tasks or 0), len(ours), counted

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


@dataclass(frozen=True)
class Verdict:
    """Whether the tasks at hand meet a bar (None: there are none), how many they are, and the numbers.

    Records of a trial, with fewer rows or columns than the plan has, do not count; `has_trial` tells that
    they are all there is.
    """

    bar: Bar
    met: bool | None
    n_tasks: int
    numbers: str
    has_trial: bool = False

    @property
    def complete(self) -> bool:
        """Whether all tasks that the bar is about are there; if not, `met` says nothing of it."""
        return self.n_tasks >= self.bar.n_tasks

    @property
    def word(self) -> str:
        """Verdict in a word: bars pass or fail, claims hold or do not, and neither with tasks missing."""
        if self.met is None:
            return "trial" if self.has_trial else "no results"
        if not self.complete:
            return "incomplete"
        return (("no", "yes") if self.bar.claim else ("FAIL", "pass"))[bool(self.met)]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        names = {"says": self.bar.says, "verdict": self.word, "found": self.summary}
        return {**names, "n_tasks": self.n_tasks, "n_tasks_expected": self.bar.n_tasks}

    @property
    def summary(self) -> str:
        """The numbers, and how much is missing."""
        if self.met is None or self.complete:
            return self.numbers
        kind = "pairs" if self.bar.measure == "distances_grown" else "tasks"
        return f"{self.numbers}; incomplete, {self.n_tasks} of {self.bar.n_tasks} {kind}"


def load_bars(path: str | Path) -> list[Bar]:
    """Read the bars of a TOML file, ``[[bar]]`` by ``[[bar]]``; there must be one."""
    table = read_toml(find_plan_file(path))
    bars, given = [], table.get("bar", [])
    if set(table) - {"bar"}:
        raise ValueError(f"{path}: {min(set(table) - {'bar'})} is not known; give tables [[bar]]")
    if not given or not isinstance(given, list):
        raise ValueError(f"{path} has no bars: give what is expected, each in a table [[bar]]")
    for number, entry in enumerate(given, start=1):
        try:
            bars.append(parse_bar(entry))
        except ValueError as error:
            raise ValueError(f"{path}, bar {number}: {error}") from None
    return bars


def parse_bar(table: Any) -> Bar:
    """Make the bar that a table ``[[bar]]`` describes."""
    if isinstance(table, dict) and isinstance(table.get("than"), dict):
        place = {"plan": table.get("plan"), "variant": table.get("variant", "main")}
        table = {**table, "than": {**place, **table["than"]}}
    return check_table(Bar, table)


def check_bars(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Compare the records with every bar."""
    full = [record for record in records if not record.get("trial")]
    frames = [(make_frame(given), _frame_distances(given)) for given in (full, records)]
    verdicts = []
    for bar in bars:
        met, n_tasks, numbers = bar.check(*frames[0])
        has_trial = met is None and bar.check(*frames[1])[0] is not None
        verdicts.append(Verdict(bar, met, n_tasks, numbers, has_trial))
    return verdicts


def _frame_distances(records: Sequence[Record]) -> pd.DataFrame:
    """Return the pairs of domains whose distance was measured, and whether it grew."""
    columns = ["plan", "variant", "method", "task", "value"]
    measured = [r for r in records if r.get("kind") == "distance" and "failed" not in r]
    rows = [
        [
            *(r[name] for name in columns[:3]),
            f"{r['source']}->{r['target']}",
            float(r["distance_after"] > r["distance_before"]),
        ]
        for r in measured
    ]
    return pd.DataFrame(rows, columns=columns)


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    rows = [[v.bar.says, v.word, str(v.n_tasks), v.summary] for v in verdicts]
    return write_table(["expected", "verdict", "tasks", "measured"], rows, 4)


def are_met(verdicts: Sequence[Verdict], partial: bool = False) -> bool:
    """Tell whether no bar is missed and none is without all its tasks.

    With `partial`, an incomplete bar does not count, as long as any bar has results.
    """
    if any(v.word == "FAIL" for v in verdicts):
        return False
    if partial:
        return any(v.met is not None for v in verdicts)
    return all(v.complete for v in verdicts)
