"""The search over noise, depth and C: one stack and one running Gram matrix per noise level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ._core.array import Rows, arithmetic
from ._core.blocks import Blocks, Kept, split_rows
from ._core.denoise import Layer, denoise
from ._core.gram import domain_centred_gram
from ._core.pivots import Split, pivot_layer, random_split
from ._core.stack import grow, pooled_scatter
from .rows import binarized, column_sums, gathered, on_cluster
from .selection import Candidate, Problem, Rule
from .training import TrainingRows, stack_rows

REVERSE_ROWS = 2000  # target rows that reverse validation labels, drawn at random where there are more


@dataclass(frozen=True)
class Grid:
    """What there is to choose from."""

    noises: tuple[float, ...]
    depths: tuple[int, ...]
    Cs: tuple[float, ...]

    @property
    def n_candidates(self) -> int:
        """Number of points."""
        return len(self.noises) * len(self.depths) * len(self.Cs)


@dataclass(frozen=True)
class Anchors:
    """The rows whose inner products are kept: labelled ones first, then target rows if a rule wants them."""

    X: Rows
    domain: np.ndarray  # (n,) position of each row's domain among the means
    n_labelled: int


@dataclass(frozen=True)
class Found:
    """A candidate with its stack, and the inner products of the labelled anchors at its depth."""

    candidate: Candidate
    layers: list[Layer]
    means: list[np.ndarray] | None  # for h^0, ..., h^l: (n_domains, d_t)
    K: np.ndarray  # (n, n), not scaled
    scale: float  # mean of its diagonal: C / scale is what solvers take


@dataclass
class Search:
    """Explores a grid; `best` and `candidates` fill as `steps` goes on."""

    rows: TrainingRows
    anchors: Anchors
    problem: Problem
    grid: Grid
    rule: Rule
    center: bool
    binarize: bool
    options: dict[str, Any]  # ridge, activation
    n_pivots: int | None
    random_state: np.random.RandomState
    memory_budget: float = float("inf")
    best: Found | None = None
    candidates: list[Candidate] = field(default_factory=list)
    split: Split | None = None  # with n_pivots

    @property
    def found(self) -> Found:
        """The best candidate; there is one once `steps` has run."""
        assert self.best is not None
        return self.best

    def steps(self) -> Iterator[None]:
        """Explore the grid; yields once per layer."""
        domains = self._domains()
        if self.n_pivots is None:
            stats = pooled_scatter(domains)  # every noise level shares the first scatter
        else:
            self.split = random_split(domains, self.anchors.X.shape[1], self.n_pivots, self.random_state)
        means = self._input_means()
        K0 = domain_centred_gram(self.anchors.X, means, self.anchors.domain)
        for noise in self.grid.noises:
            options = {"noise": noise, **self.options}
            if self.split is None:
                first = denoise(stats, **options)
            else:
                first = pivot_layer(domains, self.split.pivots, self.split.parts, **options)
            yield from self._stack(domains, first, options, means, K0)

    def _stack(self, domains, first, options, input_means, K) -> Iterator[None]:
        """Grow the stack of one noise level and score its depths."""
        H, layers = self._first_rows(self.anchors.X), []
        means = [input_means] if self.center else None
        for grown in grow(domains, max(self.grid.depths), partial(denoise, **options), first):
            layers.append(grown.layer)
            H = grown.layer(H)
            own = _domain_means(grown.domains, self.rows) if self.center else None
            if means is not None:
                means.append(own)
            K = K + domain_centred_gram(H, own, self.anchors.domain)
            if len(layers) in self.grid.depths:
                self._score(options["noise"], layers, means, K)
            yield

    def _score(
        self, noise: float, layers: list[Layer], means: list[np.ndarray] | None, K: np.ndarray
    ) -> None:
        n = self.anchors.n_labelled
        scale = float(np.mean(np.diagonal(K)[:n])) or 1.0
        Cs = [C / scale for C in self.grid.Cs]
        choosing = self.grid.n_candidates > 1
        scores = self.rule(K, self.problem, Cs) if choosing else np.full(len(Cs), np.nan)
        for C, score in zip(self.grid.Cs, scores, strict=True):
            candidate = Candidate(noise, len(layers), C, float(score))
            self.candidates.append(candidate)
            if self.best is None or candidate.score > self.best.candidate.score:
                self.best = Found(candidate, list(layers), means and list(means), K[:n, :n], scale)

    def _domains(self) -> list[Blocks]:
        width = self.n_pivots or 0
        first = [self._first_rows(X) for X in self.rows.domains.values()]
        return [
            X if on_cluster(X) else Kept(split_rows(X, width), memory_budget=self.memory_budget)
            for X in first
        ]

    def _first_rows(self, X: Rows) -> Rows:
        return binarized(X) if self.binarize else X

    def _input_means(self) -> np.ndarray | None:
        if not self.center:
            return None
        return np.stack([column_sums(X) / X.shape[0] for X in self.rows.domains.values()])


def _domain_means(domains: Sequence[Blocks], rows: TrainingRows) -> np.ndarray:
    """Mean hidden row of each domain, of shape (n_domains, d)."""
    sums = [blocks.total(lambda H: arithmetic(H).column_sums(H)) for blocks in domains]
    return np.stack([own / X.shape[0] for own, X in zip(sums, rows.domains.values(), strict=True)])


def anchors(
    rows: TrainingRows, keep: np.ndarray, n_target: int, random_state: np.random.RandomState
) -> Anchors:
    """Take the labelled rows `keep` and up to `n_target` target rows as anchors."""
    position = {number: i for i, number in enumerate(rows.domains)}
    blocks, domain = [rows.labelled[keep]], [np.array([position[number] for number in rows.domain[keep]])]
    n_each = n_target // max(len(rows.targets), 1)
    for number in rows.targets if n_each else []:
        X = rows.domains[number]
        chosen = np.arange(X.shape[0])
        if len(chosen) > n_each:
            chosen = np.sort(random_state.choice(len(chosen), n_each, replace=False))
        blocks.append(gathered(X[chosen]))
        domain.append(np.full(len(chosen), position[number]))
    return Anchors(stack_rows(blocks), np.concatenate(domain), len(keep))
