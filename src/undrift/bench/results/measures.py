"""Numbers of a method over its tasks, from records: what tables, figures and checks agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from ..catalogue import METHODS, WITH_LABELS, split_label_method
from .records import Record

REFERENCE = "all"  # the variant of an ablation plan that the others are compared with
PEERS_PLAN = "peers"
MIN_DOMAINS = 10  # with fewer, intervals of a bootstrap over domains are too narrow to be shown
LARGER_CLASS = "larger class"  # calls every row of a target the class of which it has more
BY_SHARE = (LARGER_CLASS, "source-only", "uncentred", "centred", "undrift", "oracle", "balanced")
COMPARED_WITH = {  # estimates of a record that have a truth
    "share_error": ("estimated_share", "target_share"),
    "expected_error_gap": ("expected_error", "transfer_error"),
}
ESTIMATES = {
    "share_error": "share, off by",
    "expected_error_gap": "expected error, off by",
    "calibration_error": "calibration error",
}


@dataclass(frozen=True)
class Where:
    """A method under one setting of one plan."""

    plan: str
    variant: str
    method: str

    def of(self, records: Iterable[Record]) -> list[Record]:
        """Return the successful transfer records here, the latest for each task and seed."""
        latest: dict[Any, Record] = {}
        for r in records:
            is_here = (
                r.get("plan") == self.plan and r["variant"] == self.variant
            )  # the first tells most apart
            if is_here and r.get("kind") == "transfer" and r["method"] == self.method and "failed" not in r:
                latest[task(r), r.get("seed")] = r
        return list(latest.values())


def where(record: Record) -> Where:
    """Plan, variant and method of a record."""
    return Where(record["plan"], record["variant"], record["method"])


def task(record: Record) -> str:
    """Name of a record's task."""
    return f"{record['source']}->{record['target']}"


def places(records: Iterable[Record]) -> list[Where]:
    """Every method under every setting that has a result, in order of appearance."""
    return list(dict.fromkeys(where(r) for r in records if r.get("kind") == "transfer" and "failed" not in r))


def sort_places(given: Sequence[Where]) -> list[Where]:
    """Sort methods in the contract's order and by depth; plans and variants stay as they come."""
    plans = list(dict.fromkeys(place.plan for place in given))
    settings = list(dict.fromkeys((place.plan, place.variant) for place in given))

    def rank(place: Where) -> tuple[int, int, int, str]:
        family = "msda-1" if place.method.startswith("msda-") else place.method
        method = METHODS.index(family) if family in METHODS else len(METHODS)
        setting = settings.index((place.plan, place.variant))
        return plans.index(place.plan), setting, method, place.method.zfill(10)

    return sorted(given, key=rank)


def mean_of(records: Sequence[Record], name: str) -> float | None:
    """Mean of a number over records that have it."""
    values = [record[name] for record in records if record.get(name) is not None]
    return fmean(values) if values else None


def mean_ratio(records: Sequence[Record]) -> float | None:
    """Mean transfer ratio (section 5: ratios are averaged, losses are not)."""
    return mean_of(records, "transfer_ratio")


def peak_gigabytes(records: Sequence[Record]) -> float | None:
    """Highest peak of memory among records that have one."""
    return max((r["peak_gigabytes"] for r in records if r.get("peak_gigabytes") is not None), default=None)


def list_hardware(record: Record) -> list[str]:
    """Processor and, where a run had one, device: a description less the versions of packages."""
    packages = ("torch ", "numpy ", "scikit-learn ")
    parts = (record.get("machine") or "").split("; ")
    return [part for part in parts if part and not part.startswith(packages)]


def by_task(records: Sequence[Record], name: str = "transfer_error") -> dict[str, float]:
    """A number of each task, its error if not said otherwise: the mean over seeds."""
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(task(record), []).append(record[name])
    return {name: fmean(numbers) for name, numbers in values.items()}


def mean_over_tasks(records: Sequence[Record], name: str = "transfer_error") -> float:
    """Mean over tasks of the mean over seeds."""
    return fmean(by_task(records, name).values())


def failures(records: Iterable[Record]) -> list[Record]:
    """Records of what failed and has not succeeded since."""
    last: dict[Any, Record] = {}
    for record in records:
        if record.get("kind") in ("transfer", "distance", "regret"):
            last[record["kind"], where(record), task(record), record.get("seed")] = record
    return [record for record in last.values() if "failed" in record]


def varies_shares(records: Sequence[Record]) -> bool:
    """Tell whether the records are of a plan in which the same target comes with several class shares."""
    seen: dict[tuple[str, str, str], set[float]] = {}
    for record in records:
        if record.get("target_share") is not None:
            key = record["plan"], record["corpus"], record["target"]
            seen.setdefault(key, set()).add(record["target_share"])
    return any(len(shares) > 1 for shares in seen.values())


def add_larger_class(records: Sequence[Record]) -> list[Record]:
    """Add records of `LARGER_CLASS` for every task whose class shares are given: the least to beat."""
    added: dict[Any, Record] = {}
    for r in records:
        if r.get("kind") == "transfer" and "failed" not in r and r.get("target_share") is not None:
            share = min(r["target_share"], 1 - r["target_share"])
            added[r["plan"], r["variant"], task(r)] = {
                **{name: r[name] for name in ("kind", "plan", "variant", "corpus", "source", "target")},
                **{"method": LARGER_CLASS, "target_share": r["target_share"], "transfer_error": share},
                **{"balanced_error": 0.5, "represent_seconds": 0.0, "classify_seconds": 0.0},
            }
    return [*records, *added.values()]


def group_by_share(records: Sequence[Record]) -> dict[str, dict[str, dict[float, list[Record]]]]:
    """Group successful records by corpus, method (as `BY_SHARE` has them) and share of the target."""
    groups: dict[str, dict[str, dict[float, list[Record]]]] = {}
    records = add_larger_class(records)
    ranks = {name: i for i, name in enumerate(BY_SHARE)}
    for place in sorted(places(records), key=lambda p: (ranks.get(p.method, len(ranks)), p.method)):
        for record in place.of(records):
            by_share = groups.setdefault(record["corpus"], {}).setdefault(place.method, {})
            by_share.setdefault(record["target_share"], []).append(record)
    return groups


def measure_estimate(record: Record, name: str) -> float | None:
    """How far an estimate of a record is off, as a fraction; None where there is no estimate."""
    if name not in COMPARED_WITH:
        return record.get(name)
    estimate, truth = (record.get(key) for key in COMPARED_WITH[name])
    return None if estimate is None or truth is None else abs(estimate - truth)


def varies_labels(records: Sequence[Record]) -> bool:
    """Tell whether the records are of a plan with several numbers of target labels."""
    return len({record["n_target_labels"] for record in records if "n_target_labels" in record}) > 1


def group_by_labels(records: Sequence[Record]) -> dict[tuple[str, float], dict[str, dict[int, list[Record]]]]:
    """Group successful records by corpus and share, method and number of labels; "none" is ours without."""
    groups: dict[tuple[str, float], dict[str, dict[int, list[Record]]]] = {}
    for record in records:
        if "n_target_labels" in record and "failed" not in record:
            name, n = split_label_method(record["method"])
            methods = groups.setdefault((record["corpus"], record["target_share"]), {})
            methods.setdefault(name if n else "none", {}).setdefault(n, []).append(record)
    ranks = ("none", *WITH_LABELS)
    return {
        key: dict(sorted(methods.items(), key=lambda item: ranks.index(item[0])))
        for key, methods in sorted(groups.items())
    }


def mean_peer_errors(records: Sequence[Record], name: str = "transfer_error") -> dict[str, dict[str, float]]:
    """Mean error of every method in every variant of the plan of peers in which it has all tasks."""
    records = add_larger_class(records)
    errors = {
        place: by_task(place.of(records), name) for place in places(records) if place.plan == PEERS_PLAN
    }
    means: dict[str, dict[str, float]] = {}
    for place, by_name in errors.items():
        n_tasks = max(len(other) for there, other in errors.items() if there.variant == place.variant)
        of_method = means.setdefault(place.method, {})
        if len(by_name) == n_tasks:
            of_method[place.variant] = fmean(by_name.values())
    return means


@dataclass(frozen=True)
class Difference:
    """Mean over tasks (and seeds) of one error less another, with the bounds of its bootstrap interval."""

    where: Where
    mean: float
    low: float
    high: float
    by_target: tuple[float, float]  # least and greatest of the means of single targets
    n_domains: int
    n_tasks: int
    n_seeds: int
    n_worse: int  # tasks whose error is higher here
    worst: float  # the largest difference of a task


def differences(records: Sequence[Record], plan: str) -> list[Difference]:
    """Compare every variant of an ablation plan with its variant "all", method by method."""
    given = [place for place in places(records) if place.plan == plan]
    references = {place.method: place for place in given if place.variant == REFERENCE}
    compared = [
        difference(records, place, references[place.method])
        for place in given
        if place.variant != REFERENCE and place.method in references
    ]
    return [each for each in compared if each is not None]


def difference(records: Sequence[Record], here: Where, there: Where) -> Difference | None:
    """Compare two places, task by task and seed by seed; None where they share no task."""
    ours, theirs = (
        {(task(record), record.get("seed")): record["transfer_error"] for record in place.of(records)}
        for place in (here, there)
    )
    common = [run for run in ours if run in theirs]
    seeds = list(dict.fromkeys(seed for _, seed in common))
    tasks = [
        name
        for name in dict.fromkeys(name for name, _ in common)
        if all((name, seed) in ours and (name, seed) in theirs for seed in seeds)
    ]
    if not tasks:
        return None
    D = np.array([[ours[name, seed] - theirs[name, seed] for seed in seeds] for name in tasks])
    gaps, interval = D.mean(axis=1), bootstrap_interval(D, tasks)
    n_worse, worst = int(np.sum(gaps > 1e-12)), float(gaps.max())
    targets = np.array([name.split("->")[1] for name in tasks])
    means = [float(gaps[targets == target].mean()) for target in dict.fromkeys(targets)]
    n_domains = len({domain for name in tasks for domain in name.split("->")})
    return Difference(
        here, float(D.mean()), *interval, (min(means), max(means)), n_domains, len(tasks), len(seeds),
        n_worse, worst,
    )  # fmt: skip


def bootstrap_interval(
    D: np.ndarray, tasks: Sequence[str], n_draws: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """95% percentile interval of the mean of `D` (tasks down, seeds across), by drawing domains and seeds.

    Tasks that share a domain are not independent of each other, so domains are drawn with replacement: a task
    counts as often as its source was drawn, times how often its target was. All tasks of a draw have the same
    seeds, as a seed is that of a run over all tasks.
    """
    rng = np.random.default_rng(seed)
    pairs = [name.split("->") for name in tasks]
    names = sorted({name for pair in pairs for name in pair})
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), n_draws)
    weights = np.prod([drawn[:, [names.index(pair[k]) for pair in pairs]] for k in (0, 1)], axis=0)
    weights = weights[weights.sum(axis=1) > 0]  # a draw may hold no task
    weights = weights / weights.sum(axis=1, keepdims=True)
    columns = rng.multinomial(D.shape[1], np.full(D.shape[1], 1 / D.shape[1]), len(weights)) / D.shape[1]
    low, high = np.quantile(np.einsum("bt,ts,bs->b", weights, D, columns, optimize=True), [0.025, 0.975])
    return float(low), float(high)
