"""Choose noise, depth and C by cross-validation on the labelled source, where lists of values were given.

This is the paper's rule. All depths and all C of one noise level share one stack and its running Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import PivotSplit
from ..inputs import Place, check_count, check_noise, check_positive
from .domains import Domains, find_equal_rows
from .layers import Anchors, Level, grow_levels
from .solve import Labels, source_cv
from .source_only import SourceOnly, fit_source_only


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
class Chosen(Level):
    """The chosen candidate at its depth."""

    candidate: Candidate

    @property
    def C(self) -> float:
        """C in units of the inner products."""
        return self.candidate.C / self.scale


@dataclass(frozen=True)
class Base:
    """Everything before a target is looked at: domains, chosen layers, classifiers of the source alone."""

    domains: Domains
    anchors: Anchors
    labels: Labels  # of the labelled anchors
    weight: np.ndarray  # (n_labelled,) of all labelled rows
    center: str | bool  # "classes", "domains" or False
    place: Place
    chosen: Chosen
    candidates: list[Candidate]
    source_only: SourceOnly | None  # None without target anchors
    split: PivotSplit | None  # with n_pivots

    @property
    def is_aligned(self) -> bool:
        """Whether the classes of targets are aligned with the source's."""
        return self.center == "classes" and len(self.anchors.target_codes) > 0


@dataclass
class Search:
    """Learns layers one after another, scores the candidates at every depth, and keeps the best.

    `make_layers` returns a `LayerFitter`, or anything that has its `fit` and `split`. The folds are drawn
    from `random_state`, where there is something to choose.
    """

    domains: Domains
    anchors: Anchors
    grid: Grid
    center: str | bool
    place: Place
    make_layers: Callable[[], Any]
    keeps_hidden: bool
    random_state: np.random.RandomState

    def __post_init__(self) -> None:
        domains, anchors = self.domains, self.anchors
        self._split: PivotSplit | None = None
        self._weight = domains.balanced_weight() if self.center == "classes" else domains.weight
        codes, weight = domains.y[anchors.labelled], self._weight[anchors.labelled]
        first = find_equal_rows(anchors.X[: anchors.n_labelled])
        self._labels = Labels(codes, len(domains.classes), weight, first)
        self._folds = self._labels.draw_folds(self.random_state) if self.grid.n_candidates > 1 else []
        if self._folds is None:
            raise ValueError(
                "choosing among candidates needs at least 2 labelled rows of every class; "
                "give single values for noise, n_layers and C, or label more rows"
            )
        self._candidates: list[Candidate] = []
        self._best: Chosen | None = None
        self._source_only: dict[float, SourceOnly] = {}  # by C
        self.n_steps = len(self.grid.noises) * max(self.grid.depths)

    def steps(self) -> Iterator[None]:
        """Explore the grid; yields once per layer."""
        layers, depth = self.make_layers(), max(self.grid.depths)
        self._split = layers.split
        given = self.domains, self.anchors, layers, self.grid.noises, depth, self.center, self.place
        for level in grow_levels(*given, keeps_hidden=self.keeps_hidden):
            if level.depth == 0:
                if len(self.anchors.target_codes):
                    parts = level.K, self._labels, self.anchors, level.stack
                    self._source_only = {C: fit_source_only(*parts, C) for C in self.grid.Cs}
                continue
            if level.depth in self.grid.depths:
                self._compare(level)
            yield

    def _compare(self, level: Level) -> None:
        """Score all C at one depth; keep its Gram matrix if the best candidate so far is there."""
        candidates = []
        for C in self.grid.Cs:
            score = float("nan")
            if self._folds:
                score = source_cv(level.K, self._labels, self._folds, C / level.scale)
            candidates.append(Candidate(level.noise, level.depth, C, score))
        self._candidates += candidates
        best = max(candidates, key=lambda candidate: candidate.score)
        if self._best is None or best.score > self._best.candidate.score:
            K = level.K + 0 if self._folds else level.K  # the next layer is added to it in place
            self._best = Chosen(**{**vars(level), "K": K}, candidate=best)

    def result(self) -> Base:
        """Return the best candidate so far, with everything that adaptation needs."""
        chosen = self._best
        assert chosen is not None
        known = self.domains, self.anchors, self._labels, self._weight, self.center, self.place
        source_only = self._source_only.get(chosen.candidate.C)
        return Base(*known, chosen, self._candidates, source_only, self._split)
