"""Numbers of a method over its tasks, from records: what tables, figures and checks agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..catalogue import METHODS
from .records import Record


@dataclass(frozen=True)
class Where:
    """A method under one setting of one plan."""

    plan: str
    variant: str
    method: str

    def of(self, records: Iterable[Record]) -> list[Record]:
        """Successful transfer records here, the latest for each task and seed."""
        latest: dict[Any, Record] = {}
        for record in records:
            if record.get("kind") == "transfer" and "failed" not in record and self == where(record):
                latest[task(record), record.get("seed")] = record
        return list(latest.values())


def where(record: Record) -> Where:
    """Return the place of a record."""
    return Where(record["plan"], record["variant"], record["method"])


def task(record: Record) -> str:
    """Name of a record's task."""
    return f"{record['source']}->{record['target']}"


def places(records: Iterable[Record]) -> list[Where]:
    """Every method under every setting that has a result, in order of appearance."""
    return list(dict.fromkeys(where(r) for r in records if r.get("kind") == "transfer" and "failed" not in r))


def ordered(found: Sequence[Where]) -> list[Where]:
    """Plans and variants as they come; methods in the contract's order and by depth, not as they were run."""
    settings = list(dict.fromkeys((place.plan, place.variant) for place in found))
    plans = list(dict.fromkeys(plan for plan, _ in settings))

    def rank(place: Where) -> tuple[int, int, int, str]:
        family = "msda-1" if place.method.startswith("msda-") else place.method
        own = METHODS.index(family) if family in METHODS else len(METHODS)
        return (
            plans.index(place.plan),
            settings.index((place.plan, place.variant)),
            own,
            place.method.zfill(10),
        )

    return sorted(found, key=rank)


def mean_of(records: Sequence[Record], name: str) -> float | None:
    """Mean of a number over records that have it."""
    values = [record[name] for record in records if record.get(name) is not None]
    return fmean(values) if values else None


def mean_error(records: Sequence[Record]) -> float | None:
    """Mean transfer error."""
    return mean_of(records, "transfer_error")


def mean_ratio(records: Sequence[Record]) -> float | None:
    """Mean transfer ratio (section 5: ratios are averaged, losses are not)."""
    return mean_of(records, "transfer_ratio")


def peak_gigabytes(records: Sequence[Record]) -> float | None:
    """Highest peak of memory among records that have one."""
    return max((r["peak_gigabytes"] for r in records if r.get("peak_gigabytes") is not None), default=None)


def errors_by_task(records: Sequence[Record]) -> dict[str, float]:
    """Transfer error of each task."""
    return by_task(records, "transfer_error")


def by_task(records: Sequence[Record], name: str) -> dict[str, float]:
    """A number of each task, the mean over seeds."""
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(task(record), []).append(record[name])
    return {own: fmean(found) for own, found in values.items()}


def failures(records: Iterable[Record]) -> list[Record]:
    """Records of what failed and has not succeeded since."""
    last: dict[Any, Record] = {}
    for record in records:
        if record.get("kind") in ("transfer", "distance", "regret"):
            last[record["kind"], where(record), task(record), record.get("seed")] = record
    return [record for record in last.values() if "failed" in record]
