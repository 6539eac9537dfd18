"""What a bar may ask of results: a noun for each kind, which judges records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from .measures import Where, by_task, where
from .records import Record

MEASURES = ("mean_error", "represent_seconds", "distances_grown")
Values = dict[str, float]  # by task


@dataclass(frozen=True)
class About:
    """What is measured, and of which method."""

    plan: str
    method: str
    variant: str = "main"
    measure: str = "mean_error"

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure={self.measure!r} is not known; choose one of {', '.join(MEASURES)}")

    def values(self, records: Sequence[Record], *others: Where, plan: str | None = None) -> list[Values]:
        """What is measured of the method and of others, over the tasks that all of them have."""
        here = Where(plan or self.plan, self.variant, self.method)
        found = [_values(self.measure, place, records) for place in (here, *others)]
        common = [task for task in found[0] if all(task in own for own in found)]
        return [{task: own[task] for task in common} for own in found]

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.3g} s" if self.measure == "represent_seconds" else f"{100 * value:.2f} %"


@dataclass(frozen=True)
class Found:
    """Whether the tasks at hand meet what was asked (None: there are none), how many, and the numbers."""

    met: bool | None
    n_tasks: int
    numbers: str


NOTHING = Found(None, 0, "")


class Asked(Protocol):
    """What one kind of bar asks."""

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""


@dataclass(frozen=True)
class AtMost:
    """The mean is no higher."""

    at_most: float

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        return _of_mean(
            about, records, lambda mean: mean <= self.at_most, f"at most {about.shown(self.at_most)}"
        )


@dataclass(frozen=True)
class AtLeast:
    """The mean is no lower."""

    at_least: float

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        return _of_mean(
            about, records, lambda mean: mean >= self.at_least, f"at least {about.shown(self.at_least)}"
        )


@dataclass(frozen=True)
class Expected:
    """The mean is a value, within a tolerance."""

    value: float
    tolerance: float = 0.0

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        wanted = f"expected {about.shown(self.value)} ± {about.shown(self.tolerance)}"
        return _of_mean(about, records, lambda mean: abs(mean - self.value) <= self.tolerance, wanted)


@dataclass(frozen=True)
class Lower:
    """The mean is lower than that of another method, by a margin, or so many times as low."""

    than: Where
    margin: float = 0.0
    times: float = 1.0

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        return _of_two_means(
            about, records, self.than, lambda mine, other: mine * self.times < other - self.margin
        )


@dataclass(frozen=True)
class Near:
    """The mean is near that of another method."""

    than: Where
    near: float

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        wanted = f", within {about.shown(self.near)}"
        return _of_two_means(
            about, records, self.than, lambda mine, other: abs(mine - other) <= self.near, wanted
        )


@dataclass(frozen=True)
class LowerOnTasks:
    """On so many tasks it is lower than another method."""

    than: Where
    at_least_tasks: int

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        ours, theirs = about.values(records, self.than)
        if not ours:
            return NOTHING
        n_won = sum(ours[task] < theirs[task] for task in ours)
        numbers = _against(about, fmean(ours.values()), fmean(theirs.values()))
        said = f"lower on {n_won} of {len(ours)} tasks; mean {numbers}"
        return Found(n_won >= self.at_least_tasks, len(ours), said)


@dataclass(frozen=True)
class BestOf:
    """On so many tasks none of several methods is better."""

    best_of: Sequence[str]
    at_least_tasks: int

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        places = [Where(about.plan, about.variant, name) for name in self.best_of]
        ours, *others = about.values(records, *places)
        if not ours:
            return NOTHING
        lost = [task for task, error in ours.items() if any(own[task] < error for own in others)]
        n_best = len(ours) - len(lost)
        beaten = f"; not on {', '.join(lost)}" if lost else ""
        return Found(
            n_best >= self.at_least_tasks, len(ours), f"best on {n_best} of {len(ours)} tasks{beaten}"
        )


@dataclass(frozen=True)
class SeldomWorse:
    """On so many tasks at most, of further plans too, it is worse than another method by more than `by`."""

    worse_than: str
    at_most_tasks: int
    by: float = 0.0
    and_plans: Sequence[str] = ()

    def judged(self, about: About, records: Sequence[Record]) -> Found:
        """Judge records."""
        n_tasks, worse = 0, []
        for plan in (about.plan, *self.and_plans):
            ours, others = about.values(records, Where(plan, about.variant, self.worse_than), plan=plan)
            n_tasks += len(ours)
            # errors are counts over a number of rows: exactly `by` must not become more by rounding
            worse += [f"{plan} {task}" for task in ours if ours[task] - others[task] > self.by + 1e-9]
        if not n_tasks:
            return NOTHING
        named = f": {', '.join(worse)}" if worse else ""
        said = f"worse by more than {100 * self.by:g} points on {len(worse)} of {n_tasks} tasks{named}"
        return Found(len(worse) <= self.at_most_tasks, n_tasks, said)


def _of_mean(about: About, records: Sequence[Record], holds: Callable[[float], bool], wanted: str) -> Found:
    (ours,) = about.values(records)
    if not ours:
        return NOTHING
    mean = fmean(ours.values())
    return Found(holds(mean), len(ours), f"{about.shown(mean)}, {wanted}")


def _of_two_means(
    about: About,
    records: Sequence[Record],
    than: Where,
    holds: Callable[[float, float], bool],
    wanted: str = "",
) -> Found:
    ours, theirs = about.values(records, than)
    if not ours:
        return NOTHING
    mine, other = fmean(ours.values()), fmean(theirs.values())
    return Found(holds(mine, other), len(ours), _against(about, mine, other) + wanted)


def _against(about: About, mine: float, other: float) -> str:
    return f"{about.shown(mine)} against {about.shown(other)}"


def _values(measure: str, place: Where, records: Sequence[Record]) -> Values:
    """What is measured, task by task; of distances, 1 for each pair of domains where it grows, else 0."""
    if measure != "distances_grown":
        name = "transfer_error" if measure == "mean_error" else measure
        return by_task([record for record in place.of(records) if record.get(name) is not None], name)
    own = [r for r in records if r.get("kind") == "distance" and "failed" not in r and where(r) == place]
    return by_task([{**r, "grown": float(r["distance_after"] > r["distance_before"])} for r in own], "grown")
