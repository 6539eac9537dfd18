"""Regret of choosing without target labels: what a rule's choice costs against the best in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .measures import bootstrap_interval, task
from .records import Record
from .tables import failure_notes, format_points, table_lines

HINDSIGHT, SINGLE, FIXED = "best in hindsight", "best single candidate", "fixed"


@dataclass(frozen=True)
class Point:
    """A candidate."""

    noise: float
    n_layers: int
    C: float

    def __str__(self) -> str:
        return f"noise {self.noise:g}, {self.n_layers} layers, C {self.C:g}"


@dataclass(frozen=True, eq=False)
class Trials:
    """Every candidate on every task of a corpus; candidates in order of noise, layers and C."""

    corpus: str
    tasks: list[str]
    points: list[Point]
    errors: np.ndarray  # (n_tasks, n_candidates)
    scores: Mapping[str, np.ndarray]  # of each rule: (n_tasks, n_candidates)
    preset: Point | None  # the method's fixed values, or those that it prefers
    small_grid: Mapping[str, Sequence[float]]

    def only(self, is_wanted: Callable[[Point], bool]) -> Trials:
        """Return the same tasks with fewer candidates."""
        columns = [i for i, point in enumerate(self.points) if is_wanted(point)]
        return replace(
            self,
            points=[self.points[i] for i in columns],
            errors=self.errors[:, columns],
            scores={rule: scores[:, columns] for rule, scores in self.scores.items()},
        )


@dataclass(frozen=True)
class Verdict:
    """What the choices of one rule cost; all are fractions."""

    rule: str
    mean_error: float
    regret: float  # against the best candidate of each task
    low: float  # of its 95% bootstrap interval over domains
    high: float
    beyond_single: float  # against the one candidate that is best for all tasks


def gather_trials(records: Sequence[Record]) -> list[Trials]:
    """Gather records by corpus; only tasks with all candidates count."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.get("kind") == "regret" and "failed" not in record:
            groups.setdefault((record["plan"], record["variant"]), []).append(record)
    return [_gather_group(group) for group in groups.values()]


def _gather_group(records: Sequence[Record]) -> Trials:
    by_task: dict[str, dict[Point, Mapping[str, Any]]] = {}
    for record in records:
        for candidate in record["candidates"]:
            point = Point(candidate["noise"], candidate["n_layers"], candidate["C"])
            by_task.setdefault(task(record), {})[point] = candidate
    points = sorted(
        {point for candidates in by_task.values() for point in candidates},
        key=lambda p: (p.noise, p.n_layers, p.C),
    )
    whole = [name for name, candidates in by_task.items() if len(candidates) == len(points)]
    last = records[-1]

    def matrix(value: Callable[[Mapping[str, Any]], float]) -> np.ndarray:
        rows = [[value(by_task[name][point]) for point in points] for name in whole]
        return np.array(rows).reshape(len(whole), len(points))

    scores = {
        rule: matrix(lambda candidate, rule=rule: candidate["scores"][rule])  # type: ignore[misc]
        for rule in last["candidates"][0]["scores"]
    }
    variant = "" if last["variant"] == "main" else f" ({last['variant']})"
    preset = None if last.get("preset") is None else Point(**last["preset"])
    errors, grid = matrix(lambda candidate: candidate["self_trained_error"]), last.get("small_grid", {})
    return Trials(last["corpus"] + variant, whole, points, errors, scores, preset, grid)


def candidate_sets(trials: Trials) -> dict[str, Trials]:
    """The sets of candidates to look at: all, those with C = 1, and the plan's smaller grid."""
    names = {"noise": "noise", "depths": "n_layers", "C": "C"}

    def is_in_small_grid(point: Point) -> bool:
        return all(getattr(point, names[key]) in values for key, values in trials.small_grid.items())

    sets = {"all": trials}
    for name, is_wanted in (("C = 1", lambda point: point.C == 1.0), ("small grid", is_in_small_grid)):
        fewer = trials.only(is_wanted)
        if 1 < len(fewer.points) < len(trials.points):
            sets[name] = fewer
    return sets


def verdicts(trials: Trials) -> list[Verdict]:
    """What hindsight, fixed values and every rule give.

    The rule "one-se" is left out: what it prefers was chosen with target labels of these corpora.
    """
    n, best = len(trials.tasks), np.argmin(trials.errors, axis=1)
    choices = {HINDSIGHT: best, SINGLE: np.full(n, np.argmin(trials.errors.mean(axis=0)))}
    if trials.preset is not None and trials.preset in trials.points:
        choices[FIXED] = np.full(n, trials.points.index(trials.preset))
    choices |= {rule: np.argmax(scores, axis=1) for rule, scores in trials.scores.items()}  # first of equals
    return [_verdict(trials, name, choice) for name, choice in choices.items()]


def _verdict(trials: Trials, name: str, choice: np.ndarray) -> Verdict:
    errors = trials.errors[np.arange(len(choice)), choice]
    regrets = errors - trials.errors.min(axis=1)
    mean, single = float(errors.mean()), float(trials.errors.mean(axis=0).min())
    interval = bootstrap_interval(regrets[:, None], trials.tasks)
    return Verdict(name, mean, float(regrets.mean()), *interval, mean - single)


def best_rule(given: Sequence[Verdict]) -> Verdict:
    """The rule with least regret, of those that could have been used."""
    return min((v for v in given if v.rule not in (HINDSIGHT, SINGLE, FIXED)), key=lambda v: v.regret)


def regret_table(records: Sequence[Record]) -> str:
    """Markdown: regret of every rule on every corpus; of what was chosen on one, on others; what failed."""
    by_set = {
        (trials.corpus, name): (some, verdicts(some))
        for trials in gather_trials(records)
        if trials.tasks
        for name, some in candidate_sets(trials).items()
    }
    rows = [
        [
            corpus, f"{name} ({len(some.points)})", _name_choice(some, v), str(len(some.tasks)),
            format_points(v.mean_error), format_points(v.regret), _interval(v),
            format_points(v.beyond_single, "+.2f"),
        ]
        for (corpus, name), (some, given) in by_set.items()
        for v in given
    ]  # fmt: skip
    names = ["corpus", "candidates", "chosen by", "tasks", "mean error, %", "regret, points", "95% interval"]
    parts = [table_lines([*names, "against the best single candidate"], rows, 3)]
    across = list(_across(by_set))
    if across:
        names = ["candidates", "chosen on", "chosen", "reported on", "regret there", "regret", "95% interval"]
        parts.append(table_lines(names, across, 4))
    failed = failure_notes([record for record in records if record.get("kind") == "regret"])
    return "\n\n".join("\n".join(part) for part in [*parts, failed] if part) + "\n"


def _across(by_set: Mapping[tuple[str, str], tuple[Trials, Sequence[Verdict]]]) -> Iterator[list[str]]:
    """What is best on one corpus, a rule and a single candidate, and the regret of it on another."""
    for (there, name), (trials, given) in by_set.items():
        best = trials.points[int(np.argmin(trials.errors.mean(axis=0)))]
        rule, single = best_rule(given), next(v for v in given if v.rule == SINGLE)
        for (here, other_name), (others, again) in by_set.items():
            if here == there or other_name != name:
                continue
            repeated = [v for v in again if v.rule == rule.rule]
            reported = [(rule.rule, rule, v) for v in repeated]
            if best in others.points:
                choice = np.full(len(others.tasks), others.points.index(best))
                reported.append((f"{SINGLE}: {best}", single, _verdict(others, SINGLE, choice)))
            for label, before, now in reported:
                regrets = map(format_points, (before.regret, now.regret))
                yield [name, there, label, here, *regrets, _interval(now)]


def _name_choice(trials: Trials, verdict: Verdict) -> str:
    """Name what chose, with the values where they are the same for all tasks."""
    if verdict.rule == SINGLE:
        return f"{SINGLE}: {trials.points[int(np.argmin(trials.errors.mean(axis=0)))]}"
    return f"{FIXED}: {trials.preset}" if verdict.rule == FIXED else verdict.rule


def _interval(verdict: Verdict) -> str:
    return f"{format_points(verdict.low)} to {format_points(verdict.high)}"
