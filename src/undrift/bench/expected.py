"""Checks of results against bars, and of the paper's claims: paper/expected.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .measures import Where, errors_by_task, mean_error, mean_of
from .records import Record

MEASURES = ("mean_error", "represent_seconds", "distances_grown")


@dataclass(frozen=True)
class Bar:
    """One line that results must reach (or, of a claim of the paper, may or may not).

    Exactly one of these is asked: `at_most`; `at_least`; `value` within `tolerance`; with `than`, to be lower
    than another method (by `margin`; `times` as low; on `n_tasks` of the tasks) or `near` it; to be the best
    of several methods, `best_of`, on `n_tasks` of the tasks; or, with `worse_than`, to be worse than another
    method by more than `by` on `at_most_tasks` of the tasks, those of `and_plans` counted too.
    """

    says: str
    plan: str
    method: str
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
    n_tasks: int | None = None
    best_of: Sequence[str] | None = None
    worse_than: str | None = None
    by: float = 0.0
    at_most_tasks: int | None = None
    and_plans: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure={self.measure!r} is not known; choose one of {', '.join(MEASURES)}")
        kinds = ("at_most", "at_least", "value", "than", "best_of", "worse_than")
        asked = [name for name in kinds if getattr(self, name) is not None]
        if len(asked) != 1:
            raise ValueError(f"give one of {', '.join(kinds)}; got {', '.join(asked) or 'none'}")
        if self.best_of is not None and self.n_tasks is None:
            raise ValueError("best_of needs n_tasks")
        if (self.worse_than is None) != (self.at_most_tasks is None):
            raise ValueError("worse_than and at_most_tasks need each other")


@dataclass(frozen=True)
class Verdict:
    """What came of a bar: met or not (None: nothing to judge by), and the numbers."""

    bar: Bar
    met: bool | None
    found: str

    @property
    def word(self) -> str:
        """Verdict in a word: bars pass or fail, claims hold or do not."""
        if self.met is None:
            return "no results"
        words = ("no", "yes") if self.bar.claim else ("FAIL", "pass")
        return words[self.met]


def load_bars(path: str | Path) -> list[Bar]:
    """Read the bars of a TOML file, ``[[bar]]`` by ``[[bar]]``."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    known, bars = {field.name for field in fields(Bar)}, []
    for number, own in enumerate(table.get("bar", []), start=1):
        unknown = set(own) - known
        if unknown:
            raise ValueError(f"{path}, bar {number}: {', '.join(sorted(unknown))} is not known")
        try:
            bars.append(Bar(**own))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, bar {number}: {error}") from None
    return bars


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    rows = [f"| {own.bar.says} | {own.word} | {own.found} |" for own in verdicts]
    return "\n".join(["| expected | verdict | found |", "| --- | --- | --- |", *rows]) + "\n"


def check(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Judge every bar by the records."""
    return [_judged(bar, records) for bar in bars]


def _judged(bar: Bar, records: Sequence[Record]) -> Verdict:
    here = Where(bar.plan, bar.variant, bar.method)
    mine = _measured(bar.measure, here, records)
    if mine is None:
        return Verdict(bar, None, "")
    if bar.worse_than is not None:
        return _harmed(bar, records)
    if bar.than is not None:
        there = Where(**{"plan": bar.plan, "variant": bar.variant, **bar.than})
        return _compared(bar, here, there, mine, records)
    if bar.best_of is not None:
        return _ranked(bar, here, records)
    shown = _shown(bar.measure, mine)
    if bar.at_most is not None:
        return Verdict(bar, mine <= bar.at_most, f"{shown}, at most {_shown(bar.measure, bar.at_most)}")
    if bar.at_least is not None:
        return Verdict(bar, mine >= bar.at_least, f"{shown}, at least {_shown(bar.measure, bar.at_least)}")
    assert bar.value is not None
    wanted = f"{_shown(bar.measure, bar.value)} ± {_shown(bar.measure, bar.tolerance)}"
    return Verdict(bar, abs(mine - bar.value) <= bar.tolerance, f"{shown}, expected {wanted}")


def _compared(bar: Bar, here: Where, there: Where, mine: float, records: Sequence[Record]) -> Verdict:
    theirs = _measured(bar.measure, there, records)
    if theirs is None:
        return Verdict(bar, None, "")
    numbers = f"{_shown(bar.measure, mine)} against {_shown(bar.measure, theirs)}"
    if bar.n_tasks is not None:
        ours, others = (errors_by_task(place.of(records)) for place in (here, there))
        common = ours.keys() & others.keys()
        n_won = sum(ours[task] < others[task] for task in common)
        return Verdict(bar, n_won >= bar.n_tasks, f"lower on {n_won} of {len(common)} tasks; mean {numbers}")
    if bar.near is not None:
        return Verdict(
            bar, abs(mine - theirs) <= bar.near, f"{numbers}, within {_shown(bar.measure, bar.near)}"
        )
    return Verdict(bar, mine * bar.times < theirs - bar.margin, numbers)


def _ranked(bar: Bar, here: Where, records: Sequence[Record]) -> Verdict:
    ours = errors_by_task(here.of(records))
    others = [errors_by_task(Where(bar.plan, bar.variant, name).of(records)) for name in bar.best_of or []]
    if not all(others):
        return Verdict(bar, None, "")
    lost = [task for task, error in ours.items() if any(own.get(task, 1.0) < error for own in others)]
    n_best = len(ours) - len(lost)
    beaten = f"; not on {', '.join(lost)}" if lost else ""
    return Verdict(bar, n_best >= (bar.n_tasks or 0), f"best on {n_best} of {len(ours)} tasks{beaten}")


def _harmed(bar: Bar, records: Sequence[Record]) -> Verdict:
    """Count the tasks on which a method is worse than another by more than the bar allows."""
    n_tasks, worse = 0, []
    for plan in (bar.plan, *bar.and_plans):
        ours, others = (
            errors_by_task(Where(plan, bar.variant, str(name)).of(records))
            for name in (bar.method, bar.worse_than)
        )
        common = [task for task in ours if task in others]
        if not common:
            return Verdict(bar, None, "")
        n_tasks += len(common)
        # errors are counts over a number of rows: exactly `by` must not become more by rounding
        worse += [f"{plan} {task}" for task in common if ours[task] - others[task] > bar.by + 1e-9]
    named = f": {', '.join(worse)}" if worse else ""
    found = f"worse by more than {100 * bar.by:g} points on {len(worse)} of {n_tasks} tasks{named}"
    return Verdict(bar, len(worse) <= (bar.at_most_tasks or 0), found)


def _measured(measure: str, where: Where, records: Sequence[Record]) -> float | None:
    if measure == "distances_grown":
        own = [
            r
            for r in records
            if r.get("kind") == "distance" and "failed" not in r and r["plan"] == where.plan
        ]
        grown = [r["distance_after"] > r["distance_before"] for r in own]
        return sum(grown) / len(grown) if grown else None
    own_records = where.of(records)
    return mean_error(own_records) if measure == "mean_error" else mean_of(own_records, measure)


def _shown(measure: str, value: Any) -> str:
    return f"{value:.3g} s" if measure == "represent_seconds" else f"{100 * value:.2f} %"
