"""The fit, from a problem to a model: layers, one Gram matrix, the labelled rows, the stories, the votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..core import Form, NotPositiveDefinite, PivotSplit, Rows, array_ops, choose_pivots, hidden_rows
from ..inputs import Place, check_count, check_noise, check_positive, place_rows, to_host
from .align import class_directions
from .anchors import Anchors
from .calibrate import fit_temperature
from .gram import Gram, Stack
from .judge import Facts, Verdict, judge
from .layers import LayerFitter, Level, count_pivots, grow_levels, read_level
from .least_squares import Conditioned, LeastSquares, draw_folds, predict_codes, signs
from .model import Model, build_model
from .problem import Problem, find_equal_rows
from .readings import Evidence
from .settings import Settings
from .shares import SourceScores


@dataclass(frozen=True)
class Grid:
    """Candidates: values of noise, depth and C in ascending order."""

    noises: tuple[float, ...]
    depths: tuple[int, ...]
    Cs: tuple[float, ...]

    @property
    def n_candidates(self) -> int:
        """Number of points."""
        return len(self.noises) * len(self.depths) * len(self.Cs)

    @property
    def n_steps(self) -> int:
        """Number of layers to learn."""
        return len(self.noises) * max(self.depths)


def check_grid(noise: Any, n_layers: Any, C: Any) -> Grid:
    """Return the grid that a user gave: for each parameter a value, or a list to choose from."""
    noises = [check_noise(value) for value in _list_values(noise, "noise")]
    depths = [check_count(value, "n_layers") for value in _list_values(n_layers, "n_layers")]
    Cs = [check_positive(value, "C") for value in _list_values(C, "C")]
    return Grid(tuple(sorted(noises)), tuple(sorted(depths)), tuple(sorted(Cs)))


def _list_values(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) == 0:
            raise ValueError(f"{name}={value!r} is empty; give a value or a list of values")
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return [value]


@dataclass(frozen=True)
class Candidate:
    """One point of the grid and its score in cross-validation; NaN where there was nothing to choose."""

    noise: float
    n_layers: int
    C: float
    score: float = float("nan")


@dataclass(frozen=True)
class Learnt:
    """Layers that were learnt, at the best candidate."""

    level: Level
    candidate: Candidate
    candidates: list[Candidate]
    split: PivotSplit | None  # with pivots


class Search:
    """Learns layer after layer, scores the candidates at every depth, and keeps the best.

    The score is the accuracy in cross-validation on the labelled source (section 3.4; the paper's rule).
    """

    def __init__(
        self,
        problem: Problem,
        anchors: Anchors,
        grid: Grid,
        n_pivots: Any,
        settings: Settings,
        place: Place,
        seed: Any,
    ) -> None:
        self._problem, self._anchors, self._grid = problem, anchors, grid
        self._settings, self._place, self._seed = settings, place, seed
        layers, rows = replace(settings.layers, n_layers=max(grid.depths)), list(problem.rows.values())
        d = anchors.X.shape[1]
        self._n_pivots = count_pivots(n_pivots, d, sum(problem.sizes), layers)
        self._folds = None
        if grid.n_candidates > 1:
            self._folds = _draw_folds(anchors, settings, seed)
            if self._folds is None:
                raise ValueError(
                    "choosing among candidates needs at least 2 labelled rows of every class; "
                    "give single values for noise, n_layers and C, or label more rows"
                )
        self.width = self._n_pivots or d  # of hidden rows
        self._best: Learnt | None = None
        self._candidates: list[Candidate] = []
        self._rows = rows

    def steps(self, *, keeps_hidden: bool) -> Iterator[None]:
        """Explore the grid; yields once per layer."""
        random_state, grid = check_random_state(self._seed), self._grid
        blocks = [place_rows(X, self._place, self._n_pivots or 0) for X in self._rows]
        d, split = self._anchors.X.shape[1], None
        if self._n_pivots is not None:
            split = choose_pivots(blocks, d, self._n_pivots, random_state)
        fitter = LayerFitter(blocks, split, self._settings.layers.ridge)
        given = self._problem, self._anchors, fitter, grid.noises, grid.depths, self._place
        for level in grow_levels(*given, keeps_hidden=keeps_hidden):
            if level is not None:
                self._compare(level, split)
            yield

    def _compare(self, level: Level, split: PivotSplit | None) -> None:
        """Score all C at one depth, and keep the level if the best candidate so far is there."""
        n_classes, candidates = len(self._problem.classes), []
        for C in self._grid.Cs:
            score = float("nan")
            if self._folds is not None:
                with refuse_large(C):
                    source = learn_labelled(self._anchors, level.gram, C, n_classes)
                codes = predict_codes(source.score_held_out(self._folds))
                score = float(np.mean(codes == self._anchors.codes[: level.gram.n_labelled]))
            candidates.append(Candidate(level.noise, level.depth, C, score))
        self._candidates += candidates
        best = max(candidates, key=lambda candidate: candidate.score)
        if self._best is None or best.score > self._best.candidate.score:
            self._best = Learnt(level, best, self._candidates, split)

    def result(self) -> Learnt:
        """Return the best candidate so far."""
        assert self._best is not None
        return self._best


def _draw_folds(anchors: Anchors, settings: Settings, seed: Any) -> Any:
    n = anchors.n_labelled
    first = find_equal_rows(anchors.X[:n])
    return draw_folds(anchors.codes[:n], first, settings.anchors.n_folds, check_random_state(seed))


@contextmanager
def refuse_large(C: float) -> Iterator[None]:
    """Say that C is too large where systems of least squares are no longer positive definite."""
    try:
        yield
    except NotPositiveDefinite:
        raise ValueError(f"C={C:g} is too large for inner products of this size; lower C") from None


def learn_labelled(anchors: Anchors, gram: Gram, C: float, n_classes: int) -> LeastSquares:
    """Train on the labelled anchors, all classes alike."""
    n = gram.n_labelled
    K = gram.products[:n, :n]
    with array_ops(K).full_precision():
        return LeastSquares.fit(K, signs(anchors.codes[:n], n_classes), C / gram.scale, anchors.weight)


def gather_evidence(
    anchors: Anchors, gram: Gram, source: LeastSquares, C: float, facts: Facts, settings: Settings
) -> Evidence:
    """Score held-out labelled rows, and condition the targets on the labelled rows."""
    n, n_classes = gram.n_labelled, len(facts.classes)
    codes, folds = anchors.codes[:n], _draw_folds(anchors, settings, facts.seed)
    scores = source.scores if folds is None else source.score_held_out(folds)
    conditioned = Conditioned.of(gram, source, class_directions(codes, n_classes))
    temperature = fit_temperature(scores, codes, anchors.weight)
    held_out, positions = SourceScores(scores, codes, n_classes), range(facts.n_sources, len(facts.names))
    groups = [np.flatnonzero(anchors.domain[n:] == k) for k in positions]
    given = conditioned, held_out, temperature, groups, list(positions)
    return Evidence(*given, anchors.target_codes, C / gram.scale)


@dataclass(frozen=True)
class Memory:
    """What a fit is repeated from with labels: rows and layers. All else follows from these."""

    anchors: Anchors
    facts: Facts
    means: list[np.ndarray]  # of every depth, the centres of the domains
    shares: list[float]  # of every depth, the factor of its inner products
    origin: np.ndarray
    noise: float
    form: Form  # of the first layer
    C: float

    def stack(self, layers: Sequence[Any]) -> Stack:
        """Return the stack with its layers."""
        return Stack(tuple(layers), tuple(self.means), tuple(self.shares), self.origin)


@dataclass(frozen=True)
class Fitted:
    """Result of a fit."""

    model: Model
    verdict: Verdict
    evidence: Evidence = field(repr=False)
    memory: Memory = field(repr=False)
    level: Level = field(repr=False)
    place: Place = field(repr=False)


def fit_level(
    anchors: Anchors,
    level: Level,
    C: float,
    facts: Facts,
    settings: Settings,
    place: Place,
    last: Fitted | None = None,
) -> Fitted:
    """Fit everything above the layers.

    `last` is a fit of the same rows with other labels of targets: what does not depend on these serves again.
    """
    gram = level.gram.suit(C, settings.rounds.label_weight)
    with refuse_large(C):
        source = learn_labelled(anchors, gram, C, len(facts.classes))
        if last:
            evidence = replace(last.evidence, codes=anchors.target_codes)
        else:
            evidence = gather_evidence(anchors, gram, source, C, facts, settings)
        verdict = judge(evidence, anchors, gram, facts, settings, last.verdict if last else None)
    rows = level.hidden if level.hidden is not None else read_rows(anchors.X, level.stack, place)
    model = build_model(
        level.stack, chain([anchors.X], rows), anchors.domain, source, evidence.conditioned, verdict, facts
    )
    stack = level.stack
    kept = replace(anchors, X=to_host(anchors.X))
    memory = Memory(
        kept, facts, list(stack.means), list(stack.shares), stack.origin, level.noise, level.form, C
    )
    return Fitted(model, verdict, evidence, memory, level, place)


def read_rows(X: Rows, stack: Stack, place: Place) -> Iterator[Rows]:
    """Yield rows at every layer."""
    return hidden_rows(place.move_layers(stack.layers), place.move_rows(X))


def refit(memory: Memory, layers: Sequence[Any], settings: Settings, place: Place) -> Fitted:
    """Fit again from memory, with the labels that it holds."""
    with place.set_precision():
        n_entries = memory.anchors.X.shape[0] * sum(len(layer.intercept) for layer in layers)
        given = memory.anchors, memory.stack(layers), memory.noise, memory.form, place
        level = read_level(*given, keeps_hidden=n_entries <= settings.anchors.kept_entries)
        return fit_level(memory.anchors, level, memory.C, memory.facts, settings, place)
