"""Checks of results against bars, and of the paper's claims: paper/expected.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from .keys import check_keys, check_list
from .measures import Where, by_task, where
from .records import Record

MEASURES = ("mean_error", "represent_seconds", "distances_grown")
Values = dict[str, float]  # by task


@dataclass(frozen=True)
class Bar:
    """One line that results must reach (or, of a claim of the paper, may or may not).

    It is about `n_tasks` tasks (of distances: pairs of domains); with fewer there is no verdict. Exactly one
    of these is asked: `at_most`; `at_least`; `value` within `tolerance`; with `than`, to be lower than
    another method on the same tasks (by `margin`; `times` as low; on `at_least_tasks` of them) or `near` it;
    to be the best of several methods, `best_of`, on `at_least_tasks` of the tasks; or, with `worse_than`, to
    be worse than another method by more than `by` on `at_most_tasks` of the tasks, those of `and_plans`
    counted too.
    """

    says: str
    plan: str
    method: str
    n_tasks: int
    variant: str = "main"
    measure: str = "mean_error"
    claim: bool = False
    at_most: float | None = None
    at_least: float | None = None
    value: float | None = None
    tolerance: float = 0.0
    than: Mapping[str, str] | None = None
    margin: float = 0.0
    times: float = 1.0
    near: float | None = None
    at_least_tasks: int | None = None
    best_of: Sequence[str] | None = None
    worse_than: str | None = None
    by: float = 0.0
    at_most_tasks: int | None = None
    and_plans: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure={self.measure!r} is not known; choose one of {', '.join(MEASURES)}")
        if not (isinstance(self.n_tasks, int) and self.n_tasks >= 1):
            raise ValueError(f"n_tasks={self.n_tasks!r} is not a number of tasks; give a whole number from 1")
        kinds = ("at_most", "at_least", "value", "than", "best_of", "worse_than")
        asked = [name for name in kinds if getattr(self, name) is not None]
        if len(asked) != 1:
            raise ValueError(f"give one of {', '.join(kinds)}; got {', '.join(asked) or 'none'}")
        if self.best_of is not None and self.at_least_tasks is None:
            raise ValueError("best_of needs at_least_tasks")
        if (self.worse_than is None) != (self.at_most_tasks is None):
            raise ValueError("worse_than and at_most_tasks need each other")


@dataclass(frozen=True)
class Verdict:
    """What came of a bar: whether the tasks at hand meet it (None: there are none), how many, the numbers."""

    bar: Bar
    met: bool | None
    n_tasks: int
    numbers: str

    @property
    def complete(self) -> bool:
        """Whether all tasks that the bar is about are there; if not, `met` says nothing of it."""
        return self.n_tasks >= self.bar.n_tasks

    @property
    def word(self) -> str:
        """Verdict in a word: bars pass or fail, claims hold or do not, and neither with tasks missing."""
        if self.met is None:
            return "no results"
        if not self.complete:
            return "incomplete"
        words = ("no", "yes") if self.bar.claim else ("FAIL", "pass")
        return words[self.met]

    @property
    def found(self) -> str:
        """The numbers, and how much is missing."""
        if self.met is None or self.complete:
            return self.numbers
        kind = "pairs" if self.bar.measure == "distances_grown" else "tasks"
        return f"{self.numbers}; incomplete, {self.n_tasks} of {self.bar.n_tasks} {kind}"


def load_bars(path: str | Path) -> list[Bar]:
    """Read the bars of a TOML file, ``[[bar]]`` by ``[[bar]]``; there must be one."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    try:
        check_keys(table, {"bar"}, "")
        given = check_list(table.get("bar", []), "bar")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not given:
        raise ValueError(f"{path} has no bars: give what is expected, each in a table [[bar]]")
    known, bars = {field.name for field in fields(Bar)}, []
    for number, own in enumerate(given, start=1):
        try:
            if not isinstance(own, Mapping):
                raise ValueError(f"it must be a table, got {own!r}")
            check_keys(own, known, "")
            bars.append(Bar(**own))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, bar {number}: {error}") from None
    return bars


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    rows = [f"| {own.bar.says} | {own.word} | {own.n_tasks} | {own.found} |" for own in verdicts]
    return "\n".join(["| expected | verdict | tasks | found |", "| --- | --- | ---: | --- |", *rows]) + "\n"


def satisfied(verdicts: Sequence[Verdict], partial: bool = False) -> bool:
    """Tell whether no bar is missed and none is without all its tasks.

    With `partial`, what is incomplete is let pass, as long as anything at all could be judged.
    """
    if any(own.word == "FAIL" for own in verdicts):
        return False
    if partial:
        return any(own.met is not None for own in verdicts)
    return all(own.complete for own in verdicts)


def check(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Judge every bar by the records."""
    return [_judged(bar, records) for bar in bars]


def _judged(bar: Bar, records: Sequence[Record]) -> Verdict:
    if bar.worse_than is not None:
        return _harmed(bar, records)
    here = Where(bar.plan, bar.variant, bar.method)
    others = [Where(bar.plan, bar.variant, name) for name in bar.best_of or []]
    if bar.than is not None:
        others = [Where(**{"plan": bar.plan, "variant": bar.variant, **bar.than})]
    ours, *theirs = _on_common_tasks([_values(bar.measure, place, records) for place in (here, *others)])
    if not ours:
        return Verdict(bar, None, 0, "")
    if bar.best_of is not None:
        return _ranked(bar, ours, theirs)
    if bar.than is not None:
        return _compared(bar, ours, theirs[0])
    return _bounded(bar, ours)


def _bounded(bar: Bar, ours: Values) -> Verdict:
    mine = fmean(ours.values())
    shown = _shown(bar.measure, mine)
    if bar.at_most is not None:
        met, wanted = mine <= bar.at_most, f"at most {_shown(bar.measure, bar.at_most)}"
    elif bar.at_least is not None:
        met, wanted = mine >= bar.at_least, f"at least {_shown(bar.measure, bar.at_least)}"
    else:
        assert bar.value is not None
        met = abs(mine - bar.value) <= bar.tolerance
        wanted = f"expected {_shown(bar.measure, bar.value)} ± {_shown(bar.measure, bar.tolerance)}"
    return Verdict(bar, met, len(ours), f"{shown}, {wanted}")


def _compared(bar: Bar, ours: Values, theirs: Values) -> Verdict:
    mine, other = fmean(ours.values()), fmean(theirs.values())
    numbers = f"{_shown(bar.measure, mine)} against {_shown(bar.measure, other)}"
    if bar.at_least_tasks is not None:
        n_won = sum(ours[task] < theirs[task] for task in ours)
        said = f"lower on {n_won} of {len(ours)} tasks; mean {numbers}"
        return Verdict(bar, n_won >= bar.at_least_tasks, len(ours), said)
    if bar.near is not None:
        said = f"{numbers}, within {_shown(bar.measure, bar.near)}"
        return Verdict(bar, abs(mine - other) <= bar.near, len(ours), said)
    return Verdict(bar, mine * bar.times < other - bar.margin, len(ours), numbers)


def _ranked(bar: Bar, ours: Values, others: Sequence[Values]) -> Verdict:
    lost = [task for task, error in ours.items() if any(own[task] < error for own in others)]
    n_best = len(ours) - len(lost)
    beaten = f"; not on {', '.join(lost)}" if lost else ""
    met = n_best >= (bar.at_least_tasks or 0)
    return Verdict(bar, met, len(ours), f"best on {n_best} of {len(ours)} tasks{beaten}")


def _harmed(bar: Bar, records: Sequence[Record]) -> Verdict:
    """Count the tasks on which a method is worse than another by more than the bar allows."""
    n_tasks, worse = 0, []
    for plan in (bar.plan, *bar.and_plans):
        both = [Where(plan, bar.variant, str(name)) for name in (bar.method, bar.worse_than)]
        ours, others = _on_common_tasks([_values(bar.measure, place, records) for place in both])
        n_tasks += len(ours)
        # errors are counts over a number of rows: exactly `by` must not become more by rounding
        worse += [f"{plan} {task}" for task in ours if ours[task] - others[task] > bar.by + 1e-9]
    if not n_tasks:
        return Verdict(bar, None, 0, "")
    named = f": {', '.join(worse)}" if worse else ""
    found = f"worse by more than {100 * bar.by:g} points on {len(worse)} of {n_tasks} tasks{named}"
    return Verdict(bar, len(worse) <= (bar.at_most_tasks or 0), n_tasks, found)


def _on_common_tasks(found: Sequence[Values]) -> list[Values]:
    """Means are compared over the same tasks only."""
    common = [task for task in found[0] if all(task in own for own in found)]
    return [{task: own[task] for task in common} for own in found]


def _values(measure: str, place: Where, records: Sequence[Record]) -> Values:
    """What is measured, task by task; of distances, 1 for each pair of domains where it grows, else 0."""
    if measure != "distances_grown":
        name = "transfer_error" if measure == "mean_error" else measure
        return by_task([record for record in place.of(records) if record.get(name) is not None], name)
    own = [r for r in records if r.get("kind") == "distance" and "failed" not in r and where(r) == place]
    return by_task([{**r, "grown": float(r["distance_after"] > r["distance_before"])} for r in own], "grown")


def _shown(measure: str, value: Any) -> str:
    return f"{value:.3g} s" if measure == "represent_seconds" else f"{100 * value:.2f} %"
