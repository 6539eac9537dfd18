"""Regret of choosing without target labels: what a rule's choice costs against the best in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...classifier import ONE_SE, is_clearly_better
from .measures import bootstrap_interval, task
from .records import Record
from .table import failure_notes

MEASURES = ("self_trained_error", "error")
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
    n_train: np.ndarray  # (n_tasks,) labelled rows
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
    low: float  # of its 95% bootstrap interval over tasks
    high: float
    beyond_single: float  # against the one candidate that is best for all tasks


def gather_trials(records: Sequence[Record], measure: str = MEASURES[0]) -> list[Trials]:
    """Gather records by corpus; only tasks with all candidates count."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.get("kind") == "regret" and "failed" not in record:
            groups.setdefault((record["plan"], record["variant"]), []).append(record)
    return [_gather_group(group, measure) for group in groups.values()]


def _gather_group(records: Sequence[Record], measure: str) -> Trials:
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
    n_train = {task(record): record["n_train"] for record in records}
    return Trials(
        last["corpus"] + variant, whole, points, matrix(lambda candidate: candidate[measure]), scores, preset,
        np.array([n_train[name] for name in whole]), last.get("small_grid", {}),
    )  # fmt: skip


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


def choose_candidates(trials: Trials, rule: str) -> np.ndarray:
    """Positions, one for each task, of the candidates that a rule chooses, the first of equals."""
    return np.argmax(trials.scores[rule], axis=1)


def choose_by_one_se(trials: Trials, preferred: int) -> np.ndarray:
    """Positions of the candidates that "one-se" chooses: what is preferred unless clearly beaten."""
    scores, best = trials.scores["source-cv"], choose_candidates(trials, "source-cv")
    is_better = [
        is_clearly_better(row[i], row[preferred], n)
        for row, i, n in zip(scores, best, trials.n_train, strict=True)
    ]
    return np.where(is_better, best, preferred)


def verdicts(trials: Trials) -> list[Verdict]:
    """What hindsight, fixed values and every rule give."""
    n, best = len(trials.tasks), np.argmin(trials.errors, axis=1)
    choices = {HINDSIGHT: best, SINGLE: np.full(n, np.argmin(trials.errors.mean(axis=0)))}
    has_preset = trials.preset in trials.points
    preset = trials.points.index(trials.preset) if has_preset and trials.preset else 0
    if has_preset:
        choices[FIXED] = np.full(n, preset)
    choices |= {rule: choose_candidates(trials, rule) for rule in trials.scores}
    if has_preset and "source-cv" in trials.scores:
        choices[ONE_SE] = choose_by_one_se(trials, preset)
    return [_verdict(trials, name, choice) for name, choice in choices.items()]


def _verdict(trials: Trials, name: str, choice: np.ndarray) -> Verdict:
    errors = trials.errors[np.arange(len(choice)), choice]
    regrets = errors - trials.errors.min(axis=1)
    mean, single = float(errors.mean()), float(trials.errors.mean(axis=0).min())
    interval = bootstrap_interval(regrets[:, None])
    return Verdict(name, mean, float(regrets.mean()), *interval, mean - single)


def best_rule(given: Sequence[Verdict]) -> Verdict:
    """The rule with least regret, of those that could have been used."""
    return min((v for v in given if v.rule not in (HINDSIGHT, SINGLE, FIXED)), key=lambda v: v.regret)


def regret_table(records: Sequence[Record], measure: str = MEASURES[0]) -> str:
    """Markdown: regret of every rule on every corpus, of the rule chosen on one on others; what failed."""
    by_set = {
        (trials.corpus, name): (some, verdicts(some))
        for trials in gather_trials(records, measure)
        if trials.tasks
        for name, some in candidate_sets(trials).items()
    }
    rows = [
        "| corpus | candidates | chosen by | tasks | mean error, % | regret, points | 95% interval "
        "| against the best single candidate |",
        "| --- | --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for (corpus, name), (some, given) in by_set.items():
        rows += [
            f"| {corpus} | {name} ({len(some.points)}) | {_name_choice(some, v)} | {len(some.tasks)} "
            f"| {_points(v.mean_error)} | {_points(v.regret)} | {_interval(v)} "
            f"| {_points(v.beyond_single, '+')} |"
            for v in given
        ]
    across = list(_across({key: given for key, (_, given) in by_set.items()}))
    failed = failure_notes([record for record in records if record.get("kind") == "regret"])
    return "\n\n".join("\n".join(part) for part in (rows, across, failed) if part) + "\n"


def _across(by_set: Mapping[tuple[str, str], Sequence[Verdict]]) -> Iterator[str]:
    """Rule with least regret on one corpus, and its regret on another."""
    pairs = [(a, b) for a in by_set for b in by_set if a[0] != b[0] and a[1] == b[1]]
    if pairs:
        yield "| candidates | chosen on | rule | regret there | reported on | regret | 95% interval |"
        yield "| --- | --- | --- | ---: | --- | ---: | --- |"
    for (there, name), (here, _) in pairs:
        rule = best_rule(by_set[there, name])
        for again in [v for v in by_set[here, name] if v.rule == rule.rule]:
            yield (
                f"| {name} | {there} | {rule.rule} | {_points(rule.regret)} | {here} "
                f"| {_points(again.regret)} | {_interval(again)} |"
            )


def _name_choice(trials: Trials, verdict: Verdict) -> str:
    """Name what chose, with the values where they are the same for all tasks."""
    if verdict.rule == SINGLE:
        return f"{SINGLE}: {trials.points[int(np.argmin(trials.errors.mean(axis=0)))]}"
    return f"{FIXED}: {trials.preset}" if verdict.rule == FIXED else verdict.rule


def _points(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.2f}"


def _interval(verdict: Verdict) -> str:
    return f"{_points(verdict.low)} to {_points(verdict.high)}"
