"""Regret of choosing without target labels: what a rule's choice costs against the best in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...classifier import ONE_SE, is_clearly_better
from .measures import task
from .records import Record
from .table import failure_notes

MEASURES = ("self_trained_error", "error")
HINDSIGHT, SINGLE, FIXED = "best in hindsight", "best single candidate", "fixed"
N_RESAMPLES = 4000


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
    """Every candidate on every task of a corpus; candidates from less noise, fewer layers, smaller C on."""

    corpus: str
    tasks: list[str]
    points: list[Point]
    errors: np.ndarray  # (n_tasks, n_candidates)
    scores: Mapping[str, np.ndarray]  # of each rule: (n_tasks, n_candidates)
    preset: Point | None  # the method's own values, or those that it prefers
    n_train: np.ndarray  # (n_tasks,) labelled rows
    small_grid: Mapping[str, Sequence[float]]

    def only(self, wanted: Callable[[Point], bool]) -> Trials:
        """Return the same tasks with fewer candidates."""
        kept = [i for i, point in enumerate(self.points) if wanted(point)]
        scores = {rule: own[:, kept] for rule, own in self.scores.items()}
        return replace(
            self, points=[self.points[i] for i in kept], errors=self.errors[:, kept], scores=scores
        )


@dataclass(frozen=True)
class Verdict:
    """What the choices of one rule cost; all are fractions."""

    rule: str
    mean_error: float
    regret: float  # against the best candidate of each task
    low: float  # of its 95 % bootstrap interval over tasks
    high: float
    beyond_single: float  # against the one candidate that is best for all tasks


def trials(records: Sequence[Record], measure: str = MEASURES[0]) -> list[Trials]:
    """Gather records by corpus, tasks with all candidates alone."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.get("kind") == "regret" and "failed" not in record:
            groups.setdefault((record["plan"], record["variant"]), []).append(record)
    return [_gathered(own, measure) for own in groups.values()]


def _gathered(records: Sequence[Record], measure: str) -> Trials:
    found: dict[str, dict[Point, Mapping[str, Any]]] = {}
    for record in records:
        for own in record["candidates"]:
            point = Point(own["noise"], own["n_layers"], own["C"])
            found.setdefault(task(record), {})[point] = own
    points = sorted(
        {point for own in found.values() for point in own}, key=lambda p: (p.noise, p.n_layers, p.C)
    )
    whole = [name for name, own in found.items() if len(own) == len(points)]
    last = records[-1]
    rules = list(last["candidates"][0]["scores"])

    def matrix(value: Callable[[Mapping[str, Any]], float]) -> np.ndarray:
        rows = [[value(found[name][point]) for point in points] for name in whole]
        return np.array(rows).reshape(len(whole), len(points))

    scores = {rule: matrix(lambda own, rule=rule: own["scores"][rule]) for rule in rules}  # type: ignore[misc]
    variant = "" if last["variant"] == "main" else f" ({last['variant']})"
    preset = None if last.get("preset") is None else Point(**last["preset"])
    n_train = {task(record): record["n_train"] for record in records}
    return Trials(
        last["corpus"] + variant, whole, points, matrix(lambda own: own[measure]), scores, preset,
        np.array([n_train[name] for name in whole]), last.get("small_grid", {}),
    )  # fmt: skip


def candidate_sets(own: Trials) -> dict[str, Trials]:
    """The sets of candidates to look at: all, those with C = 1, and the plan's smaller grid."""
    names = {"noise": "noise", "depths": "n_layers", "C": "C"}

    def in_small_grid(point: Point) -> bool:
        return all(getattr(point, names[key]) in values for key, values in own.small_grid.items())

    found = {"all": own}
    for name, wanted in (("C = 1", lambda point: point.C == 1.0), ("small grid", in_small_grid)):
        fewer = own.only(wanted)
        if 1 < len(fewer.points) < len(own.points):
            found[name] = fewer
    return found


def picked(own: Trials, rule: str) -> np.ndarray:
    """Positions, one for each task, of the candidates that a rule chooses, the first of equals."""
    return np.argmax(own.scores[rule], axis=1)


def cautiously_picked(own: Trials, preferred: int) -> np.ndarray:
    """Positions of the candidates that "one-se" chooses: what is preferred unless clearly beaten."""
    scores, best = own.scores["source-cv"], picked(own, "source-cv")
    better = [
        is_clearly_better(each[i], each[preferred], n)
        for each, i, n in zip(scores, best, own.n_train, strict=True)
    ]
    return np.where(better, best, preferred)


def verdicts(own: Trials) -> list[Verdict]:
    """What hindsight, fixed values and every rule give."""
    n, best = len(own.tasks), np.argmin(own.errors, axis=1)
    choices = {HINDSIGHT: best, SINGLE: np.full(n, np.argmin(own.errors.mean(axis=0)))}
    if own.preset in own.points:
        choices[FIXED] = np.full(n, own.points.index(own.preset))
    choices |= {rule: picked(own, rule) for rule in own.scores}
    if own.preset in own.points and "source-cv" in own.scores:
        choices[ONE_SE] = cautiously_picked(own, own.points.index(own.preset))
    return [_verdict(own, name, choice) for name, choice in choices.items()]


def _verdict(own: Trials, name: str, choice: np.ndarray) -> Verdict:
    errors = own.errors[np.arange(len(choice)), choice]
    regrets = errors - own.errors.min(axis=1)
    rng = np.random.default_rng(0)
    means = regrets[rng.integers(len(regrets), size=(N_RESAMPLES, len(regrets)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    single = float(own.errors.mean(axis=0).min())
    mean = float(errors.mean())
    return Verdict(name, mean, float(regrets.mean()), float(low), float(high), mean - single)


def best_rule(found: Sequence[Verdict]) -> Verdict:
    """The rule with least regret, of those that could have been used."""
    return min((v for v in found if v.rule not in (HINDSIGHT, SINGLE, FIXED)), key=lambda v: v.regret)


def regret_table(records: Sequence[Record], measure: str = MEASURES[0]) -> str:
    """Markdown: regret of every rule on every corpus, of the rule chosen on one on others; what failed."""
    every = [own for own in trials(records, measure) if own.tasks]
    judged = {
        (own.corpus, name): (some, verdicts(some))
        for own in every
        for name, some in candidate_sets(own).items()
    }
    rows = [
        "| corpus | candidates | chosen by | tasks | mean error, % | regret, points | 95 % interval "
        "| against the best single candidate |",
        "| --- | --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for (corpus, name), (some, found) in judged.items():
        for v in found:
            what = f"{name} ({len(some.points)})"
            rows.append(
                f"| {corpus} | {what} | {_said(some, v)} | {len(some.tasks)} | {_points(v.mean_error)} "
                f"| {_points(v.regret)} | {_interval(v)} | {_points(v.beyond_single, '+')} |"
            )
    across = list(_across({key: found for key, (_, found) in judged.items()}))
    failed = failure_notes([record for record in records if record.get("kind") == "regret"])
    return "\n\n".join("\n".join(part) for part in (rows, across, failed) if part) + "\n"


def _across(judged: Mapping[tuple[str, str], Sequence[Verdict]]) -> Iterator[str]:
    """Rule with least regret on one corpus, and its regret on another."""
    pairs = [(a, b) for a in judged for b in judged if a[0] != b[0] and a[1] == b[1]]
    if pairs:
        yield "| candidates | chosen on | rule | regret there | reported on | regret | 95 % interval |"
        yield "| --- | --- | --- | ---: | --- | ---: | --- |"
    for (there, name), (here, _) in pairs:
        rule = best_rule(judged[there, name])
        for again in [v for v in judged[here, name] if v.rule == rule.rule]:
            yield (
                f"| {name} | {there} | {rule.rule} | {_points(rule.regret)} | {here} "
                f"| {_points(again.regret)} | {_interval(again)} |"
            )


def _said(own: Trials, verdict: Verdict) -> str:
    """Name of what chose, with the values where they are the same for all tasks."""
    if verdict.rule == SINGLE:
        return f"{SINGLE}: {own.points[int(np.argmin(own.errors.mean(axis=0)))]}"
    return f"{FIXED}: {own.preset}" if verdict.rule == FIXED else verdict.rule


def _points(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.2f}"


def _interval(verdict: Verdict) -> str:
    return f"{_points(verdict.low)} to {_points(verdict.high)}"
