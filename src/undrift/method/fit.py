"""The fit, from a problem to a model: layers, one Gram matrix, the labelled rows, the stories, the votes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np

from ..core import Form, Layer, NotPositiveDefinite, PivotSplit, Rows
from ..inputs import Place, check_count, check_noise, check_positive, choose_place, to_host, track_steps
from .anchors import Anchors, Facts, Seed, draw_anchors, set_labels
from .judge import Verdict, judge
from .layers import Learning, Level, Stack, count_pivots, extend_level, grow_levels, learn_layers, read_level
from .model import Model, take_log_shares
from .problem import UNLABELLED, Problem, RowKey, list_row_keys
from .readings import Evidence, Linear, Moved, gather_evidence, measure_accuracy
from .settings import LayerSettings, Settings


@dataclass(frozen=True)
class Grid:
    """Candidates: values of noise, depth and C in ascending order."""

    noises: tuple[float, ...]
    depths: tuple[int, ...]
    Cs: tuple[float, ...]

    @classmethod
    def of(cls, settings: LayerSettings) -> Grid:
        """Return the one candidate of the settings."""
        return cls((settings.noise,), (settings.n_layers,), (settings.C,))

    @property
    def n_candidates(self) -> int:
        """Number of points."""
        return len(self.noises) * len(self.depths) * len(self.Cs)


def check_grid(noise: object, n_layers: object, C: object) -> Grid:
    """Return the grid that a user gave: for each parameter a value, or a list to choose from."""
    noises = [check_noise(value) for value in _list_values(noise, "noise")]
    depths = [check_count(value, "n_layers") for value in _list_values(n_layers, "n_layers")]
    Cs = [check_positive(value, "C") for value in _list_values(C, "C")]
    return Grid(tuple(sorted(noises)), tuple(sorted(depths)), tuple(sorted(Cs)))


def _list_values(value: object, name: str) -> Sequence[object]:
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) == 0:
            raise ValueError(f"{name}={value!r} is empty; give a value or a list of values")
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return [value]


class Candidate(TypedDict):
    """One point of the grid and its score in cross-validation; NaN where there was nothing to choose."""

    noise: float
    n_layers: int
    C: float
    score: float


@dataclass(frozen=True)
class Learnt:
    """Layers that were learnt, at the best candidate."""

    level: Level
    best: Candidate
    candidates: list[Candidate]
    split: PivotSplit | None = None  # with pivots


@dataclass(frozen=True)
class Memory:
    """What a fit is repeated from with labels: rows and layers. All else follows from these."""

    anchors: Anchors
    facts: Facts
    stack: Stack  # without its layers, which the representation has
    noise: float
    form: Form  # of the first layer
    C: float


@dataclass(frozen=True)
class Fitted:
    """Result of a fit."""

    model: Model
    verdict: Verdict
    evidence: Evidence = field(repr=False)
    memory: Memory = field(repr=False)
    learnt: Learnt = field(repr=False)
    place: Place = field(repr=False)


def fit_problem(
    problem: Problem,
    settings: Settings,
    place: Place,
    *,
    grid: Grid | None = None,
    learning: Learning | None = None,
    seed: Seed = None,
    verbose: bool = False,
) -> Fitted:
    """Learn the layers, read the targets under every story, and let the readings vote.

    With a `grid` cross-validation on the labelled rows chooses noise, depth and C, else they are those of
    the settings. Other layers than those of `learn_layers` may be given as `learning`.
    """
    anchors = draw_anchors(problem, settings.anchors, seed)
    facts, folds = Facts.of(problem, anchors, seed), None
    grid = grid or Grid.of(settings.layers)
    if grid.n_candidates > 1:
        folds = anchors.draw_folds(settings.anchors.n_folds, seed)
        if folds is None:
            raise ValueError(
                "choosing among candidates needs at least 2 labelled rows of every class; "
                "give single values for noise, n_layers and C, or label more rows"
            )
    depth = max(grid.depths)
    settings = replace(settings, layers=replace(settings.layers, n_layers=depth))
    width = count_pivots(problem, settings.layers) or anchors.X.shape[1]
    keeps_hidden = folds is None and anchors.X.shape[0] * width * depth <= settings.anchors.kept_entries
    with place.set_precision():
        learning = learning or learn_layers(problem, settings.layers, place, seed, grid.noises)
        levels = grow_levels(problem, anchors, learning, grid.depths, place, keeps_hidden=keeps_hidden)
        steps = track_steps(levels, len(grid.noises) * depth, verbose=verbose)
        learnt = choose_level(steps, anchors, grid.Cs, folds, learning.split)
        return _fit_above(anchors, learnt, facts, settings, place)


def choose_level(
    levels: Iterable[Level | None],
    anchors: Anchors,
    Cs: Sequence[float],
    folds: Sequence[np.ndarray] | None,
    split: PivotSplit | None = None,
) -> Learnt:
    """Score all C at every level by the accuracy on the labelled source; keep the level of the best.

    That is the paper's rule (section 3.4): cross-validation, the first of equals. Without `folds` there is
    one candidate.
    """
    best: tuple[Level, Candidate] | None = None
    candidates = list[Candidate]()
    for level in levels:
        if level is None:
            continue
        for C in Cs:
            score = float("nan")
            if folds is not None:
                with refuse_large(C):
                    score = measure_accuracy(anchors, level.gram, C, folds)
            candidates.append({"noise": level.noise, "n_layers": level.depth, "C": C, "score": score})
            if best is None or score > best[1]["score"]:
                best = level, candidates[-1]
    assert best is not None
    return Learnt(*best, candidates, split)


@contextmanager
def refuse_large(C: float) -> Iterator[None]:
    """Say that C is too large where systems of least squares are no longer positive definite."""
    try:
        yield
    except NotPositiveDefinite:
        raise ValueError(f"C={C:g} is too large for inner products of this size; lower C") from None


def _fit_above(
    anchors: Anchors,
    learnt: Learnt,
    facts: Facts,
    settings: Settings,
    place: Place,
    last: Fitted | None = None,
) -> Fitted:
    """Fit everything above the layers.

    `last` is a fit of the same rows with other labels of targets: what does not depend on these serves again.
    """
    level, stack, C = learnt.level, learnt.level.stack, learnt.best["C"]
    with refuse_large(C):
        if last:
            evidence = replace(last.evidence, anchors=anchors)
        else:
            evidence = gather_evidence(anchors, facts, level.gram, C, settings)
        verdict = judge(evidence, settings, last.verdict if last else None)
    model = build_model(level, evidence, verdict, place)
    kept = replace(anchors, X=to_host(anchors.X))
    memory = Memory(kept, facts, replace(stack, layers=()), level.noise, level.form, C)
    return Fitted(model, verdict, evidence, memory, learnt, place)


def learn_labels(
    memory: Memory,
    X: Rows,
    domain: np.ndarray,
    codes: np.ndarray,
    layers: Sequence[Layer],
    settings: Settings,
    device: str,
    last: Fitted | None = None,
) -> Fitted:
    """Fit again from memory, with labels of rows of the targets, which are withdrawn where `UNLABELLED`.

    `last` is the fit that the memory is of, where it is at hand: then only new rows are read.
    """
    anchors = set_labels(memory.anchors, X, domain, codes)
    facts = memory.facts.widen(anchors)
    place = choose_place([anchors.X], device) if last is None else last.place
    with place.set_precision():
        if last is None:
            n_entries = anchors.X.shape[0] * sum(len(layer.intercept) for layer in layers)
            keeps_hidden = n_entries <= settings.anchors.kept_entries
            stack = replace(memory.stack, layers=tuple(layers))
            level = read_level(anchors, stack, memory.noise, memory.form, place, keeps_hidden=keeps_hidden)
            candidate = Candidate(noise=memory.noise, n_layers=len(layers), C=memory.C, score=float("nan"))
            learnt = Learnt(level, candidate, [candidate])
        else:
            learnt = last.learnt
            if len(anchors.codes) > len(last.memory.anchors.codes):
                learnt = replace(learnt, level=extend_level(learnt.level, anchors, place))
                last = None
        return _fit_above(anchors, learnt, facts, settings, place, last)


def list_unlabelled(memory: Memory | None, X: Rows, domain: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the rows without a label, of equal ones the first, how many equal each, and known labels."""
    known = set()
    if memory is not None:
        anchors = memory.anchors
        rows = anchors.n_labelled + np.flatnonzero(anchors.target_codes != UNLABELLED)
        if len(rows):
            known = set(list_row_keys(to_host(anchors.X)[rows].astype(X.dtype), anchors.domain[rows]))
    groups = dict[RowKey, list[int]]()
    for row, key in enumerate(list_row_keys(X, domain)):
        if key not in known:
            groups.setdefault(key, []).append(row)
    first, counts = [group[0] for group in groups.values()], [len(group) for group in groups.values()]
    return np.array(first, dtype=int), np.array(counts, dtype=int), len(known)


def build_model(
    level: Level,
    evidence: Evidence,
    verdict: Verdict,
    place: Place,
) -> Model:
    """Return the model of a verdict.

    Prediction needs no training row: ``w_t = sum_i coef_i h^t(x_i)`` for every layer.
    """
    facts = evidence.facts
    is_linear = [isinstance(reading.classifier, Linear) for reading in verdict.readings]
    order = np.argsort(is_linear, kind="stable")
    readings = [verdict.readings[r] for r in order]
    deep = [reading.classifier for reading in readings if isinstance(reading.classifier, Moved)]
    linear = [reading.classifier for reading in readings if isinstance(reading.classifier, Linear)]
    coef, intercepts = combine_layers(level, evidence, deep, place)
    for classifier in linear:
        coef[0] = np.hstack([coef[0], classifier.weights])
        intercepts.append(np.tile(classifier.intercept, (len(facts.names), 1)))
    intercept = np.array(intercepts)
    intercept[:, facts.n_sources :] += np.array([reading.borders for reading in readings])
    intercept[:, : facts.n_sources] += np.array([reading.natural for reading in readings])[:, None]
    sizes = np.array(facts.sizes[: facts.n_sources])
    mean = sizes @ intercept[:, : facts.n_sources] / sizes.sum()
    intercept = np.concatenate([intercept, mean[:, None]], axis=1)
    prior = np.zeros((len(facts.names) + 1, len(facts.classes)))
    if facts.is_balanced:
        prior[:] = take_log_shares(facts.source_shares)
        for k, each in enumerate(verdict.estimates, start=facts.n_sources):
            prior[k] = take_log_shares(each.shares)
    votes = verdict.votes[:, order]
    of_sources = votes.mean(axis=0) if len(votes) else np.ones(len(readings))
    teachers, trust = {name for told in evidence.lessons for name in told}, np.zeros(len(votes))
    if len(teachers) == 1:
        trust = readings[0].teacher_weight  # the only story
    return Model(
        coef=coef,
        intercept=intercept,
        temperature=np.array([reading.temperature for reading in readings]),
        votes=np.vstack([np.tile(of_sources, (facts.n_sources, 1)), votes, of_sources[None]]),
        shift=np.zeros(prior.shape),
        names=[reading.story.name for reading in readings],
        sentences=[reading.story.sentence for reading in readings],
        prior=prior,
        teacher_weight=np.concatenate([np.zeros(facts.n_sources), trust, [0.0]]),
    )


def combine_layers(
    level: Level, evidence: Evidence, classifiers: Sequence[Moved], place: Place
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the weights of every layer, classifiers side by side, and their intercepts by domain."""
    conditioned, stack = evidence.conditioned, level.stack
    m, n_domains = conditioned.n_targets, len(stack.origin)
    changed = [conditioned.change_source(classifier.coef) for classifier in classifiers]
    anchors = np.hstack(
        [
            np.vstack([labelled, each.coef[:m]])
            for (labelled, _), each in zip(changed, classifiers, strict=True)
        ]
    )
    centres = np.hstack([classifier.coef[m : m + n_domains] for classifier in classifiers])
    coef = []
    combined = level.combine(evidence.anchors, anchors, place)
    for w, means, share in zip(combined, stack.means, stack.shares, strict=True):
        w = w + (means - stack.origin @ means).T @ centres
        coef.append((share * w).astype(np.float32))
    offsets = np.split(score_centres(stack.means, coef), len(classifiers), axis=1)
    intercepts = []
    for (_, intercept), classifier, offset in zip(changed, classifiers, offsets, strict=True):
        by_domain = intercept - offset
        scores = conditioned.score_directions(classifier.coef)
        by_domain[n_domains - classifier.moves.shape[1] :] += classifier.moves.T @ scores
        intercepts.append(by_domain)
    return coef, intercepts


def score_centres(centres: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Score the centre of each domain: (n_domains, n_outputs)."""
    return np.sum([centre @ w for centre, w in zip(centres, weights, strict=True)], axis=0, dtype=float)
