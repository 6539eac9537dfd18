"""Results against the bars of `paper/expected.toml`, and answers to the paper's claims."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
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
    criterion: Callable[..., tuple[bool | None, int, str]]
    options: Mapping[str, Any]
    variant: str = "main"
    variants: Sequence[str] = ()
    measure: str = "mean_error"
    claim: bool = False

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure={self.measure!r} is not known; choose one of {', '.join(MEASURES)}")
        if not (isinstance(self.n_tasks, int) and self.n_tasks >= 1):
            raise ValueError(f"n_tasks={self.n_tasks!r} is not a number of tasks; give a whole number from 1")

    def values(
        self, records: Sequence[Record], *others: Where, plan: str | None = None
    ) -> list[dict[str, float]]:
        """Measure the method and others by task, over the tasks that all of them have."""
        places = (Where(plan or self.plan, self.variant, self.method), *others)
        measured = [self._measure(place, records) for place in places]
        common = [task for task in measured[0] if all(task in values for values in measured)]
        return [{task: values[task] for task in common} for values in measured]

    def _measure(self, place: Where, records: Sequence[Record]) -> dict[str, float]:
        if not self.variants:
            return _values(self.measure, place, records)
        each = {name: _values(self.measure, replace(place, variant=name), records) for name in self.variants}
        return {f"{name} {task}": value for name, values in each.items() for task, value in values.items()}

    def count_tasks(self, records: Sequence[Record]) -> int:
        """Count the tasks of the method, with a value or without."""
        places = [Where(self.plan, name, self.method) for name in self.variants or [self.variant]]
        return sum(len(by_task(place.of(records), "transfer_error")) for place in places)

    def show(self, value: float) -> str:
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
        return (("no", "yes") if self.bar.claim else ("FAIL", "pass"))[self.met]

    @property
    def summary(self) -> str:
        """The numbers, and how much is missing."""
        if self.met is None or self.complete:
            return self.numbers
        kind = "pairs" if self.bar.measure == "distances_grown" else "tasks"
        return f"{self.numbers}; incomplete, {self.n_tasks} of {self.bar.n_tasks} {kind}"


def _values(measure: str, place: Where, records: Sequence[Record]) -> dict[str, float]:
    """Measure by task; of distances, 1 for each pair of domains where it grows, else 0."""
    if measure in ESTIMATES:
        estimated = [{**r, measure: measure_estimate(r, measure)} for r in place.of(records)]
        return by_task([record for record in estimated if record[measure] is not None], measure)
    if measure != "distances_grown":
        name = "transfer_error" if measure == "mean_error" else measure
        return by_task([record for record in place.of(records) if record.get(name) is not None], name)
    distances = [
        r for r in records if r.get("kind") == "distance" and "failed" not in r and where(r) == place
    ]
    grown = [{**r, "grown": float(r["distance_after"] > r["distance_before"])} for r in distances]
    return by_task(grown, "grown")


# Criteria: whether it is met (None without a task), the number of tasks, the numbers in words. Their keyword
# arguments are the keys that a bar may give.
Result = tuple[bool | None, int, str]
NOTHING: Result = (None, 0, "")


def _check_mean(bar: Bar, records: Sequence[Record], holds: Callable[[float], bool], wanted: str) -> Result:
    (ours,) = bar.values(records)
    if not ours:
        return NOTHING
    mean, n_tasks, without = fmean(ours.values()), len(ours), ""
    if bar.measure in ESTIMATES:  # a method may decline to estimate
        n_tasks = bar.count_tasks(records)
        without = f"; {n_tasks - len(ours)} without" if len(ours) < n_tasks else ""
    return holds(mean), n_tasks, f"{bar.show(mean)}, {wanted}{without}"


def _at_most(bar: Bar, records: Sequence[Record], *, at_most: float) -> Result:
    return _check_mean(bar, records, lambda mean: mean <= at_most, f"at most {bar.show(at_most)}")


def _at_least(bar: Bar, records: Sequence[Record], *, at_least: float) -> Result:
    return _check_mean(bar, records, lambda mean: mean >= at_least, f"at least {bar.show(at_least)}")


def _value(bar: Bar, records: Sequence[Record], *, value: float, tolerance: float = 0.0) -> Result:
    wanted = f"expected {bar.show(value)} ± {bar.show(tolerance)}"
    return _check_mean(bar, records, lambda mean: abs(mean - value) <= tolerance, wanted)


def _lower(
    bar: Bar,
    records: Sequence[Record],
    *,
    than: Where,
    margin: float = 0.0,
    times: float = 1.0,
    near: float | None = None,
    at_least_tasks: int | None = None,
) -> Result:
    """Lower than another method on the mean, by a margin or a factor; near it; or lower on many tasks."""
    ours, theirs = bar.values(records, than)
    if not ours:
        return NOTHING
    mean, other = fmean(ours.values()), fmean(theirs.values())
    numbers = f"{bar.show(mean)} against {bar.show(other)}"
    if near is not None:
        return abs(mean - other) <= near, len(ours), f"{numbers}, within {bar.show(near)}"
    if at_least_tasks is not None:
        n_lower = sum(ours[task] < theirs[task] for task in ours)
        counted = f"lower on {n_lower} of {len(ours)} tasks; mean {numbers}"
        return n_lower >= at_least_tasks, len(ours), counted
    return mean * times < other - margin, len(ours), numbers


def _best_of(bar: Bar, records: Sequence[Record], *, best_of: Sequence[str], at_least_tasks: int) -> Result:
    """None of several methods is better, on many tasks."""
    ours, *others = bar.values(records, *(Where(bar.plan, bar.variant, name) for name in best_of))
    if not ours:
        return NOTHING
    beaten = [task for task, error in ours.items() if any(values[task] < error for values in others)]
    n_best = len(ours) - len(beaten)
    named = f"; not on {', '.join(beaten)}" if beaten else ""
    return n_best >= at_least_tasks, len(ours), f"best on {n_best} of {len(ours)} tasks{named}"


def _worse_than(
    bar: Bar,
    records: Sequence[Record],
    *,
    worse_than: str,
    at_most_tasks: int,
    by: float = 0.0,
    and_plans: Sequence[str] = (),
) -> Result:
    """Worse than another method by more than `by` on few tasks, of further plans too."""
    n_tasks, worse = 0, []
    for plan in (bar.plan, *and_plans):
        ours, others = bar.values(records, Where(plan, bar.variant, worse_than), plan=plan)
        n_tasks += len(ours)
        # errors are counts over a number of rows: exactly `by` must not become more by rounding
        worse += [f"{plan} {task}" for task in ours if ours[task] - others[task] > by + 1e-9]
    if not n_tasks:
        return NOTHING
    named = f": {', '.join(worse)}" if worse else ""
    counted = f"worse by more than {100 * by:g} points on {len(worse)} of {n_tasks} tasks{named}"
    return len(worse) <= at_most_tasks, n_tasks, counted


def _never_above(
    bar: Bar, records: Sequence[Record], *, never_above: Sequence[str], by: float = 0.0
) -> Result:
    """On the mean over tasks above none of several methods by more than `by`, in any of the variants."""
    n_tasks, above, worst = 0, [], -1.0
    for variant in bar.variants or [bar.variant]:
        places = [Where(bar.plan, variant, name) for name in (bar.method, *never_above)]
        ours, *others = (_values(bar.measure, place, records) for place in places)
        common = [task for task in ours if all(task in values for values in others)]
        n_tasks += len(common)
        for name, values in zip(never_above, others, strict=True) if common else ():
            gap = fmean(ours[task] - values[task] for task in common)
            worst = max(worst, gap)
            above += [f"{variant} ({name}, {100 * gap:+.2f})"] if gap > by + 1e-9 else []
    if not n_tasks:
        return NOTHING
    named = f": {', '.join(above)}" if above else ""
    return not above, n_tasks, f"at most {100 * worst:+.2f} points, {100 * by:+.2f} allowed{named}"


CRITERIA: Mapping[str, Callable[..., Result]] = {
    "at_most": _at_most,
    "at_least": _at_least,
    "value": _value,
    "than": _lower,
    "best_of": _best_of,
    "worse_than": _worse_than,
    "never_above": _never_above,
}
EXCLUSIVE = ({"near"}, {"at_least_tasks"}, {"margin", "times"})  # of the keys beside `than`


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
    shared = {*NEEDED, "variant", "variants", "measure", "claim"}
    if "variants" in table:
        check_strings(table["variants"], "variants")
    check_keys(table, shared.union(*map(_keys, CRITERIA.values())), "")
    kinds = [kind for kind in CRITERIA if kind in table]
    if len(kinds) != 1:
        raise ValueError(f"give one of {', '.join(CRITERIA)}; got {', '.join(kinds) or 'none'}")
    _check_needed(table, NEEDED, "a bar")
    options = {key: value for key, value in table.items() if key not in shared}
    _check_options(kinds[0], options)
    if "than" in options:
        check_keys(options["than"], {"plan", "variant", "method"}, "than.")
        _check_needed(options["than"], ["method"], "than")
        place = {"plan": table["plan"], "variant": table.get("variant", "main"), **options["than"]}
        options["than"] = Where(**place)
    given = {key: table[key] for key in shared if key in table}
    return Bar(criterion=CRITERIA[kinds[0]], options=options, **given)


def _keys(criterion: Callable[..., Result]) -> dict[str, Parameter]:
    """Return the keys that a criterion takes."""
    parameters = signature(criterion).parameters
    return {name: each for name, each in parameters.items() if each.kind is Parameter.KEYWORD_ONLY}


def _check_options(kind: str, options: Mapping[str, Any]) -> None:
    keys = _keys(CRITERIA[kind])
    foreign = [key for key in options if key not in keys]
    for group in EXCLUSIVE if kind == "than" else ():
        if group & set(options):
            foreign += [key for key in options if key not in {"than", *group}]
            break
    if foreign:
        raise ValueError(f"{kind} does not go with {', '.join(foreign)}")
    _check_needed(options, [name for name, key in keys.items() if key.default is Parameter.empty], kind)


def _check_needed(table: Mapping[str, Any], names: Sequence[str], what: str) -> None:
    missing = [name for name in names if name not in table]
    if missing:
        raise ValueError(f"{what} needs {', '.join(missing)}")


def check_bars(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Compare the records with every bar."""
    full = [record for record in records if not record.get("trial")]
    verdicts = []
    for bar in bars:
        met, n_tasks, numbers = bar.criterion(bar, full, **bar.options)
        has_trial = met is None and bar.criterion(bar, records, **bar.options)[0] is not None
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
