"""The search over noise, depth and C: one stack and one running Gram matrix per noise level."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._core import (
    Array,
    Blocks,
    FittedLayer,
    Moments,
    PivotSplit,
    Rows,
    array_ops,
    choose_pivots,
    mean_square,
    moments,
    submatrix,
)
from .._inputs import Place, binarize_rows, on_cluster, place_rows
from ..representation import draw_rows
from .alignment import combine_midpoints, group_outputs
from .anchors import (
    Anchors,
    Propagate,
    draw_scored_rows,
    propagate_alone,
    propagate_with_domains,
    stack_domain_means,
)
from .data import TrainingRows
from .extra_features import add_extra
from .grams import RunningGram, Stack, layer_share
from .layers import LayerFitter, SharedFitter, SharedLayers
from .linear import Dual
from .selection import NEED_TARGET, ONE_SE, Candidate, Grid, Problem, choose_candidate, find_rule
from .source_only import SourceOnly, fit_source_only


@dataclass(frozen=True)
class SearchSpec:
    """What to search: the rows, the candidates, the rule that compares them, and how layers are learnt."""

    rows: TrainingRows
    anchors: Anchors
    problem: Problem
    grid: Grid
    selection: str
    center: str | bool  # "classes", "domains" or False
    balance: bool  # whether every layer's inner products count alike
    binarize: bool
    layer_options: dict[str, Any]  # ridge, activation
    n_pivots: int | None
    max_upper_rows: int | None  # None: upper layers learn from all rows
    place: Place
    shared: SharedLayers | None = None  # layers learnt once for several tasks
    keeps_hidden: bool = False  # whether the anchors of every layer are kept, so that none is computed twice

    @cached_property
    def midpoints(self) -> dict[int, np.ndarray]:
        """Combinations of the labelled anchors that replace the means of sources, by position.

        With ``center="classes"`` the mean of the class means, which does not depend on the classes' shares;
        with "domains", and for tags and numbers, only for sources that lack a class.
        """
        codes, domain = self.problem.codes, self.anchors.domain[: self.anchors.n_labelled]
        has_classes = self.problem.outputs is None
        codes = codes if has_classes else group_outputs(self.problem.Y, domain)
        return combine_midpoints(codes, domain, counts_alike=has_classes and self.center == "classes")

    def find_means(self, totals: dict[int, Moments], rows: Rows) -> np.ndarray | None:
        """Return what is subtracted from the rows of every domain, of shape (n_domains, d).

        The mean of the domain, or what `midpoints` say. `rows` are the anchors.
        """
        if not self.center:
            return None
        means, ops = stack_domain_means(totals, len(self.rows.domains)), array_ops(rows)
        labelled = rows[: self.anchors.n_labelled].T
        for k, average in self.midpoints.items():
            means[k] = ops.to_numpy(labelled @ ops.like(average, rows))
        return means

    def first_rows(self, X: Rows) -> Rows:
        """Return what the first layer sees of `X`."""
        return binarize_rows(X) if self.binarize else X

    @property
    def default(self) -> tuple[float, int, float] | None:
        """Noise, depth and C that are taken unless others are clearly better; None if the rule has none."""
        return self.grid.preferred if self.selection == ONE_SE else None


@dataclass(frozen=True)
class FittedCandidate:
    """A candidate with its stack, and the inner products of the anchors at its depth."""

    candidate: Candidate
    stack: Stack
    extra: tuple[Stack, ...]  # of every set of extra features, without layers
    K: Array  # (n_anchors, n_anchors)
    scale: float  # mean of its diagonal over labelled rows
    mean_products: np.ndarray | None  # (n_anchors, n_domains) of the centred anchors and the domains' means

    @property
    def C(self) -> float:
        """The candidate's C as solvers take it, for inner products that are not scaled."""
        return self.candidate.C / self.scale


@dataclass(frozen=True)
class SearchResult:
    """What a search chose, from which candidates, and the source-only classifier at the chosen C."""

    spec: SearchSpec
    chosen: FittedCandidate
    candidates: list[Candidate]
    default: tuple[float, int, float] | None  # what is taken unless another candidate is clearly better
    source_only: SourceOnly | None  # None without target anchors, or where not all labelled rows are anchors
    split: PivotSplit | None  # with n_pivots
    hidden: list[Array] | None = None  # anchors of every layer of the one candidate, if they are kept

    @property
    def candidate(self) -> Candidate:
        """The chosen entry of `candidates`."""
        return self.chosen.candidate

    @cached_property
    def start(self) -> Dual:
        """The classifier of the labelled anchors alone."""
        n = len(self.spec.problem.codes)
        return self.spec.problem.fit(self.chosen.K[:n, :n], np.arange(n), self.chosen.C)


class Search:
    """Explores a grid layer by layer. What is best so far is known after every step."""

    def __init__(self, spec: SearchSpec, random_state: np.random.RandomState) -> None:
        self.spec = spec
        self._random_state = random_state
        self._candidates: list[Candidate] = []
        self._best: FittedCandidate | None = None
        self._default: FittedCandidate | None = None
        self._source_only: dict[float, SourceOnly] = {}  # by C
        self._split: PivotSplit | None = None
        self._hidden: list[Array] | None = [] if spec.keeps_hidden else None

    @property
    def n_steps(self) -> int:
        """Number of layers to learn."""
        return len(self.spec.grid.noises) * max(self.spec.grid.depths)

    def result(self) -> SearchResult:
        """Return what is chosen of the candidates so far."""
        if self._best is None:
            raise RuntimeError(
                "a callback stopped the fit before the first candidate: there is nothing to keep"
            )
        chosen, default = self._best, self._default
        if default is not None and self.spec.grid.n_candidates > 1:
            pair, n = [chosen.candidate, default.candidate], len(self.spec.problem.codes)
            if choose_candidate(pair, ONE_SE, self.spec.grid.preferred, n) is default.candidate:
                chosen = default
        source_only = self._source_only.get(chosen.candidate.C)
        choice = chosen, self._candidates, self.spec.default, source_only
        return SearchResult(self.spec, *choice, self._split, self._hidden)

    def steps(self) -> Iterator[None]:
        """Explore the grid; yields once per layer."""
        spec, noises = self.spec, self.spec.grid.noises
        scored_rows = self._draw_scored_rows()
        if spec.shared is None:
            layers: LayerFitter | SharedFitter = self._make_fitter()
        else:
            layers = spec.shared.join(list(spec.rows.domains), self._make_fitter)
        self._split = layers.split
        start, stack, extra = self._start()
        for i, noise in enumerate(noises):
            is_last = i == len(noises) - 1
            fitted = layers.fit(noise, max(spec.grid.depths), is_last=is_last)
            gram = start if is_last else start.copy()
            score = partial(self._score, noise, gram, extra, scored_rows)
            propagate = self._propagate(layers.is_sample)
            yield from self._grow(fitted, gram, stack, propagate, score)

    def _make_fitter(self) -> LayerFitter:
        spec = self.spec
        domains, split = self._place(list(spec.rows.domains.values())), None
        if spec.n_pivots is not None:
            width = spec.anchors.X.shape[1]
            split = choose_pivots(domains, width, spec.n_pivots, self._random_state)
        drawn = draw_rows(list(spec.rows.domains.values()), spec.max_upper_rows, self._random_state)
        upper = None if drawn is None else self._place(drawn)
        return LayerFitter(domains, upper, spec.layer_options, split)

    def _draw_scored_rows(self) -> np.ndarray | None:
        spec = self.spec
        if spec.grid.n_candidates == 1 or spec.selection not in NEED_TARGET:
            return None
        return draw_scored_rows(spec.anchors.n_labelled, spec.anchors.X.shape[0], self._random_state)

    def _start(self) -> tuple[RunningGram, Stack, tuple[Stack, ...]]:
        """Sum the inner products of the input and of extra features; fit the source-only classifiers."""
        spec, anchors = self.spec, self.spec.anchors
        totals = [X.total(moments) if on_cluster(X) else moments(X) for X in spec.rows.domains.values()]
        means, share = self._centring(dict(enumerate(totals)), anchors.X)
        gram = RunningGram()
        gram.add_rows(spec.place.move_rows(anchors.X), means, anchors.domain, share)
        n_anchors, n_labelled = anchors.X.shape[0], len(spec.problem.codes)
        if n_anchors > n_labelled and spec.problem.outputs is None:
            args = anchors.X, means, anchors.domain, share
            self._source_only = {
                C: fit_source_only(gram.peek(), spec.problem, C, *args) for C in spec.grid.Cs
            }
        norm = 1.0 if spec.balance else mean_square(totals, bool(spec.center)) or 1.0
        extra = []
        for rows, E in zip(spec.rows.extra, anchors.extra, strict=True):
            totals = [place_rows(X, spec.place).total(moments) for X in rows.domains.values()]
            E_means = spec.find_means(dict(enumerate(totals)), E)
            extra.append(add_extra(gram, spec.place.move_rows(E), totals, E_means, anchors.domain, norm))
        return gram, Stack((), None if means is None else (means,), (share,)), tuple(extra)

    def _grow(
        self, layers: Iterator[FittedLayer], gram: RunningGram, stack: Stack, propagate: Propagate, score: Any
    ) -> Iterator[None]:
        """Grow the stack of one noise level and score its depths."""
        spec, depth = self.spec, max(self.spec.grid.depths)
        for grown in layers:
            is_last = len(stack.layers) + 1 == depth
            propagated = propagate(grown, self._measured_domains(is_last))
            means, share = self._centring(propagated.moments, propagated.rows)
            if self._hidden is not None:
                self._hidden.append(propagated.rows + 0)  # those of `propagated` may be overwritten
            gram.add_rows(propagated.rows, means, spec.anchors.domain, share)
            known = propagated.moments
            del propagated
            stack = stack.add_layer(grown.layer, means, share)
            if len(stack.layers) in spec.grid.depths:
                score(stack, grown, known)
            yield

    def _propagate(self, is_sample: bool) -> Propagate:
        """Choose how the anchors come to each depth."""
        spec, anchors = self.spec, self.spec.anchors
        if is_sample or any(on_cluster(X) for X in spec.rows.domains.values()):
            return propagate_alone(spec.first_rows(anchors.X), spec.place)
        return propagate_with_domains(anchors.domain, anchors.position)

    def _measured_domains(self, is_last: bool) -> Collection[int]:
        """Return the domains whose moments the inner products of a depth need.

        At the last depth only domains with anchors are measured now; the others are measured later, if this
        candidate is the best so far.
        """
        if self.spec.balance or (self.spec.center and not is_last):
            return range(len(self.spec.rows.domains))
        return set(self.spec.anchors.domain.tolist()) if self.spec.center else ()

    def _centring(self, totals: dict[int, Moments], rows: Rows) -> tuple[np.ndarray | None, float]:
        """Return the means to subtract from one layer's rows, and the share of their inner products.

        `rows` are the anchors at that layer.
        """
        spec = self.spec
        share = layer_share(list(totals.values()), bool(spec.center)) if spec.balance else 1.0
        return spec.find_means(totals, rows), share

    def _score(
        self,
        noise: float,
        gram: RunningGram,
        extra: tuple[Stack, ...],
        scored_rows: np.ndarray | None,
        stack: Stack,
        grown: FittedLayer,
        known: Collection[int],
    ) -> None:
        """Score all C at one depth; keep the Gram matrix where the best, or the preferred, candidate is."""
        spec, grid, K = self.spec, self.spec.grid, gram.peek()
        scale = float(K.diagonal()[: spec.anchors.n_labelled].mean()) or 1.0
        scores = np.full(len(grid.Cs), np.nan)
        if grid.n_candidates > 1:
            seen = K if scored_rows is None else submatrix(K, scored_rows, scored_rows)
            scores = find_rule(spec.selection)(seen, spec.problem, [C / scale for C in grid.Cs])
        depth = len(stack.layers)
        candidates = [
            Candidate(noise, depth, C, float(score)) for C, score in zip(grid.Cs, scores, strict=True)
        ]
        self._candidates += candidates
        best = max(candidates, key=lambda candidate: candidate.score)
        is_best = self._best is None or best.score > self._best.candidate.score
        default = next((c for c in candidates if c.point == spec.default), None)
        if not is_best and default is None:
            return
        stack = self._complete_means(stack, grown, known)
        parts = stack, extra, gram.hold(), scale, gram.mean_products
        if is_best:
            self._best = FittedCandidate(best, *parts)
        if default is not None:
            self._default = FittedCandidate(default, *parts)

    def _complete_means(self, stack: Stack, grown: FittedLayer, known: Collection[int]) -> Stack:
        """Add the means, at the last depth, of domains that no anchor is from."""
        missing = set(range(len(grown.domains))) - set(known)
        if stack.means is None or not missing:
            return stack
        means = stack.means[-1].copy()
        for k in missing:
            means[k] = grown.domains[k].total(moments).mean
        return stack.replace_top_means(means)

    def _place(self, domains: Sequence[Rows]) -> list[Blocks]:
        spec = self.spec
        return [place_rows(spec.first_rows(X), spec.place, spec.n_pivots or 0) for X in domains]
