"""Results against the bars of `paper/expected.toml`, and answers to the paper's claims."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ..keys import check_keys, check_list, check_strings
from ..plan import find_plan_file
from .measures import ESTIMATES, Where, by_task, measure_estimate, where
from .records import Record
from .tables import table_lines

MEASURES = ("mean_error", "represent_seconds", "distances_grown", *ESTIMATES)
NEEDED = ("says", "plan", "method", "n_tasks")
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
MUST = {"best_of": ("at_least_tasks",), "worse_than": ("at_most_tasks",)}
Result = tuple[bool | None, int, str]  # whether it is met (None without a task), number of tasks, numbers


@dataclass(frozen=True)
class Bar:
    """One line that results must reach (or, of a claim of the paper, may or may not).

    It is about `n_tasks` tasks (of distances: pairs of domains); with fewer there is no verdict. With
    `variants` it is about the tasks of all of them.
    """

    says: str
    plan: str
    method: str
    n_tasks: int
    variant: str = "main"
    variants: Sequence[str] = ()
    measure: str = "mean_error"
    claim: bool = False
    at_most: float | None = None  # the mean over tasks
    at_least: float | None = None
    value: float | None = None  # up to `tolerance`
    tolerance: float = 0.0
    than: Where | None = None  # lower than there: by a factor, or `near` it, or on many tasks
    times: float = 1.0
    near: float | None = None
    at_least_tasks: int | None = None
    best_of: Sequence[str] | None = None  # none of these methods is better, on many tasks
    worse_than: str | None = None  # by more than `by` on few tasks
    at_most_tasks: int = 0
    never_above: Sequence[str] | None = None  # on the mean, by more than `by`, in any of the variants
    by: float = 0.0

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure={self.measure!r} is not known; choose one of {', '.join(MEASURES)}")
        if not (isinstance(self.n_tasks, int) and self.n_tasks >= 1):
            raise ValueError(f"n_tasks={self.n_tasks!r} is not a number of tasks; give a whole number from 1")

    @property
    def criterion(self) -> str:
        """The one of `CRITERIA` that it has."""
        return next(name for name in CRITERIA if getattr(self, name) is not None)

    def values(self, records: Sequence[Record], *others: Where) -> list[dict[str, float]]:
        """Measure the method and others by task, over the tasks that all of them have."""
        measured = [self._measure(place, records) for place in (self._place(self.method), *others)]
        common = [task for task in measured[0] if all(task in values for values in measured)]
        return [{task: values[task] for task in common} for values in measured]

    def check(self, records: Sequence[Record]) -> Result:
        """Compare the records with it."""
        if self.never_above is not None:
            return self._compare_variants(records, self.never_above)
        others = [self._place(name) for name in [*(self.best_of or []), *filter(None, [self.worse_than])]]
        ours, *theirs = self.values(records, *filter(None, [self.than]), *others)
        if not ours:
            return None, 0, ""
        checks: dict[str, Callable[..., Result]] = {
            "than": self._check_lower, "best_of": self._check_best, "worse_than": self._check_harm,
        }  # fmt: skip
        return checks.get(self.criterion, self._check_mean)(records, ours, *theirs)

    def _check_mean(self, records: Sequence[Record], ours: Mapping[str, float]) -> Result:
        mean, n_tasks, without = fmean(ours.values()), len(ours), ""
        if self.measure in ESTIMATES:  # a method may decline to estimate
            places = [Where(self.plan, name, self.method) for name in self.variants or [self.variant]]
            n_tasks = sum(len(by_task(place.of(records))) for place in places)
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

    def _check_lower(
        self, records: Sequence[Record], ours: Mapping[str, float], theirs: Mapping[str, float]
    ) -> Result:
        mean, other = fmean(ours.values()), fmean(theirs.values())
        numbers = f"{self._show(mean)} against {self._show(other)}"
        if self.near is not None:
            return abs(mean - other) <= self.near, len(ours), f"{numbers}, within {self._show(self.near)}"
        if self.at_least_tasks is not None:
            n_lower = sum(ours[task] < theirs[task] for task in ours)
            counted = f"lower on {n_lower} of {len(ours)} tasks; mean {numbers}"
            return n_lower >= self.at_least_tasks, len(ours), counted
        return mean * self.times < other, len(ours), numbers

    def _check_best(
        self, records: Sequence[Record], ours: Mapping[str, float], *others: Mapping[str, float]
    ) -> Result:
        beaten = [task for task, error in ours.items() if any(values[task] < error for values in others)]
        n_best = len(ours) - len(beaten)
        named = f"; not on {', '.join(beaten)}" if beaten else ""
        counted = f"best on {n_best} of {len(ours)} tasks{named}"
        return n_best >= (self.at_least_tasks or 0), len(ours), counted

    def _check_harm(
        self, records: Sequence[Record], ours: Mapping[str, float], theirs: Mapping[str, float]
    ) -> Result:
        # errors are counts over a number of rows: exactly `by` must not become more by rounding
        worse = [task for task in ours if ours[task] - theirs[task] > self.by + 1e-9]
        named = f": {', '.join(worse)}" if worse else ""
        counted = f"worse by more than {100 * self.by:g} points on {len(worse)} of {len(ours)} tasks{named}"
        return len(worse) <= self.at_most_tasks, len(ours), counted

    def _compare_variants(self, records: Sequence[Record], methods: Sequence[str]) -> Result:
        n_tasks, above, worst = 0, [], -1.0
        for variant in self.variants or [self.variant]:
            here = replace(self, variant=variant, variants=())
            ours, *others = here.values(records, *map(here._place, methods))
            n_tasks += len(ours)
            for name, values in zip(methods, others, strict=True) if ours else ():
                gap = fmean(ours[task] - values[task] for task in ours)
                worst = max(worst, gap)
                above += [f"{variant} ({name}, {100 * gap:+.2f})"] if gap > self.by + 1e-9 else []
        named = f": {', '.join(above)}" if above else ""
        numbers = f"at most {100 * worst:+.2f} points, {100 * self.by:+.2f} allowed{named}"
        return (not above, n_tasks, numbers) if n_tasks else (None, 0, "")

    def _place(self, method: str) -> Where:
        return Where(self.plan, self.variant, method)

    def _measure(self, place: Where, records: Sequence[Record]) -> dict[str, float]:
        if not self.variants:
            return _values(self.measure, place, records)
        each = {name: _values(self.measure, replace(place, variant=name), records) for name in self.variants}
        return {f"{name} {task}": value for name, values in each.items() for task, value in values.items()}

    def _show(self, value: float) -> str:
        """Write a value with its unit."""
        return f"{value:.3g} s" if self.measure == "represent_seconds" else f"{value:.2%}"


def _values(measure: str, place: Where, records: Sequence[Record]) -> dict[str, float]:
    """Measure by task; of distances, 1 for each pair of domains where it grows, else 0."""
    if measure == "distances_grown":
        given = [
            r for r in records if r.get("kind") == "distance" and "failed" not in r and where(r) == place
        ]
        values: list[float | None] = [float(r["distance_after"] > r["distance_before"]) for r in given]
    else:
        given, name = place.of(records), "transfer_error" if measure == "mean_error" else measure
        values = [measure_estimate(r, name) for r in given]
    measured = [{**r, "value": value} for r, value in zip(given, values, strict=True) if value is not None]
    return by_task(measured, "value")


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
        return (("no", "yes") if self.bar.claim else ("FAIL", "pass"))[self.met]

    @property
    def summary(self) -> str:
        """The numbers, and how much is missing."""
        if self.met is None or self.complete:
            return self.numbers
        kind = "pairs" if self.bar.measure == "distances_grown" else "tasks"
        return f"{self.numbers}; incomplete, {self.n_tasks} of {self.bar.n_tasks} {kind}"


def load_bars(path: str | Path) -> list[Bar]:
    """Read the bars of a TOML file, ``[[bar]]`` by ``[[bar]]``; there must be one."""
    try:
        table = tomllib.loads(find_plan_file(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    try:
        check_keys(table, {"bar"}, "")
        given = check_list(table.get("bar", []), "bar")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not given:
        raise ValueError(f"{path} has no bars: give what is expected, each in a table [[bar]]")
    bars = []
    for number, entry in enumerate(given, start=1):
        try:
            bars.append(parse_bar(entry))
        except ValueError as error:
            raise ValueError(f"{path}, bar {number}: {error}") from None
    return bars


def parse_bar(table: Any) -> Bar:
    """Make the bar that a table ``[[bar]]`` describes."""
    if not isinstance(table, Mapping):
        raise ValueError(f"it must be a table, got {table!r}")
    check_keys(table, {field.name for field in fields(Bar)}, "")
    if "variants" in table:
        check_strings(table["variants"], "variants")
    kinds = [kind for kind in CRITERIA if kind in table]
    if len(kinds) != 1:
        raise ValueError(f"give one of {', '.join(CRITERIA)}; got {', '.join(kinds) or 'none'}")
    _check_needed(table, NEEDED, "a bar")
    beside = list(dict.fromkeys(key for keys in CRITERIA.values() for key in keys if key in table))
    foreign = [key for key in beside if key not in CRITERIA[kinds[0]]]
    if kinds[0] == "than" and len(beside) > 1:
        kinds, foreign = beside[:1], beside[1:]
    if foreign:
        raise ValueError(f"{kinds[0]} does not go with {', '.join(foreign)}")
    _check_needed(table, MUST.get(kinds[0], ()), kinds[0])
    if "than" in table:
        check_keys(table["than"], {"plan", "variant", "method"}, "than.")
        _check_needed(table["than"], ["method"], "than")
        place = {"plan": table["plan"], "variant": table.get("variant", "main"), **table["than"]}
        table = {**table, "than": Where(**place)}
    return Bar(**table)


def _check_needed(table: Mapping[str, Any], names: Sequence[str], what: str) -> None:
    missing = [name for name in names if name not in table]
    if missing:
        raise ValueError(f"{what} needs {', '.join(missing)}")


def check_bars(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Compare the records with every bar."""
    full = [record for record in records if not record.get("trial")]
    verdicts = []
    for bar in bars:
        met, n_tasks, numbers = bar.check(full)
        has_trial = met is None and bar.check(records)[0] is not None
        verdicts.append(Verdict(bar, met, n_tasks, numbers, has_trial))
    return verdicts


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    rows = [[v.bar.says, v.word, str(v.n_tasks), v.summary] for v in verdicts]
    return "\n".join(table_lines(["expected", "verdict", "tasks", "measured"], rows, 4)) + "\n"


def are_met(verdicts: Sequence[Verdict], partial: bool = False) -> bool:
    """Tell whether no bar is missed and none is without all its tasks.

    With `partial`, an incomplete bar does not count, as long as any bar has results.
    """
    if any(v.word == "FAIL" for v in verdicts):
        return False
    if partial:
        return any(v.met is not None for v in verdicts)
    return all(v.complete for v in verdicts)
