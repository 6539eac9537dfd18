"""The search over noise, depth and C: one stack and one running Gram matrix per noise level."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .._core import (
    Array,
    Blocks,
    Layer,
    Moments,
    PivotSplit,
    Rows,
    add_domain_centred_gram,
    choose_pivots,
    denoise,
    domain_centred_gram,
    fit_layers,
    fit_pivot_layer,
    mean_square,
    moments,
    pooled_scatter,
    submatrix,
)
from .._inputs import Place, binarize_rows, gather_rows, on_cluster, place_rows
from ..errors import UndriftWarning
from ..representation import draw_rows
from .data import TrainingRows, stack_rows
from .extra_features import Branch, add_block
from .grid import Grid
from .propagation import Arrivals, by_themselves, domain_means, with_their_domains
from .safeguard import SourceOnly, source_only
from .selection import NEED_TARGET, ONE_SE, RULES, Candidate, Problem, Rule, chosen_one

RULE_ROWS = 2000  # target rows that a selection rule looks at, drawn at random where there are more
ANCHOR_LIMIT = 12_000  # rows of a Gram matrix that has room for target rows
SELF_TRAINING_ROWS = 8_000  # target rows that self-training labels, drawn at random where there are more


@dataclass(frozen=True)
class Anchors:
    """The rows whose inner products are kept: labelled ones first, then target rows if a rule wants them."""

    X: Rows
    domain: np.ndarray  # (n,) position of each row's domain among the means
    position: np.ndarray  # (n,) row number of each row within its domain; ascending for each domain
    n_labelled: int
    blocks: Sequence[Rows] = ()  # the same rows of every extra block


@dataclass(frozen=True)
class Found:
    """A candidate with its stack, and the inner products of the anchors at its depth."""

    candidate: Candidate
    layers: list[Layer]
    means: list[np.ndarray] | None  # for h^0, ..., h^l: (n_domains, d_t)
    shares: list[float]  # what the inner products of h^0, ..., h^l were multiplied by
    K: Array  # (n_anchors, n_anchors)
    scale: float  # mean of its diagonal over labelled rows: C / scale is what solvers take
    branches: Sequence[Branch] = ()  # of the extra blocks


@dataclass(frozen=True)
class _Running:
    """A stack as far as it has grown, with the sum of its layers' inner products."""

    layers: list[Layer]
    means: list[np.ndarray] | None
    K: Array
    shares: list[float]
    branches: Sequence[Branch] = ()

    def then(self, layer: Layer, means: np.ndarray | None, K: Array, share: float) -> _Running:
        """Return the stack with one more layer on top; `K` is the sum with it."""
        more = None if self.means is None or means is None else [*self.means, means]
        return _Running([*self.layers, layer], more, K, [*self.shares, share], self.branches)


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
    place: Place
    max_upper_rows: int | None = None  # all by default
    balance: bool = False  # whether every layer's inner products count alike
    cautious: bool = False  # whether what is preferred is left only for what is clearly better
    best: Found | None = None
    preferred: Found | None = None
    candidates: list[Candidate] = field(default_factory=list)
    split: PivotSplit | None = None  # with n_pivots
    judged: np.ndarray | None = None  # anchors that the rule looks at, if not all
    without: dict[float, SourceOnly] = field(default_factory=dict)  # by C, where target rows are anchors

    @property
    def found(self) -> Found:
        """The candidate that is chosen, with its stack; there is one once `steps` has run."""
        if self.best is None:
            raise RuntimeError(
                "a callback stopped the fit before the first candidate: there is nothing to keep"
            )
        if self.preferred is None or self.grid.n_candidates == 1:
            return self.best
        n, preferred = len(self.problem.codes), self.preferred.candidate
        chosen = chosen_one([self.best.candidate, preferred], ONE_SE, self.grid.preferred, n)
        return self.preferred if chosen is preferred else self.best

    @property
    def chosen(self) -> Candidate:
        """The candidate that is chosen."""
        return self.found.candidate

    @property
    def default(self) -> tuple[float, int, float] | None:
        """Noise, depth and C that are taken unless others are clearly better; None without caution."""
        return self.grid.preferred if self.cautious else None

    @property
    def final(self) -> Search:
        """The search whose stack is kept."""
        return self

    def forget(self) -> None:
        """Let go of what was learnt; the candidates' scores stay."""
        self.best = self.preferred = None

    @property
    def n_steps(self) -> int:
        """Number of layers to learn."""
        return len(self.grid.noises) * max(self.grid.depths)

    def steps(self) -> Iterator[None]:
        """Explore the grid; yields once per layer."""
        domains = self._domains()
        if self.grid.n_candidates > 1 and self.rule in [RULES[name] for name in NEED_TARGET]:
            n, n_anchors = self.anchors.n_labelled, self.anchors.X.shape[0]
            self.judged = judged_rows(n, n_anchors, self.random_state)
        # every noise level shares the first scatter and inner products; the last to take them frees them
        n_noises, stats = len(self.grid.noises), []
        if self.n_pivots is None:
            stats = [pooled_scatter(domains)] * n_noises
        else:
            self.split = choose_pivots(domains, self.anchors.X.shape[1], self.n_pivots, self.random_state)
        upper = self._upper()
        elsewhere = upper is not None or any(on_cluster(X) for X in self.rows.domains.values())
        starts = [self._start()] * n_noises
        for noise in self.grid.noises:
            options = {"noise": noise, **self.options}
            if self.split is None:
                first = denoise(stats.pop(), **options)
            else:
                first = fit_pivot_layer(domains, self.split.pivots, self.split.parts, **options)
            start = starts.pop()
            arrivals = self._arrivals(elsewhere)
            stack = self._stack(upper or domains, first, options, start, arrivals, shared=bool(starts))
            del start
            yield from stack

    def _start(self) -> _Running:
        """Inner products of the anchors as they are."""
        own = [X.total(moments) if on_cluster(X) else moments(X) for X in self.rows.domains.values()]
        means, share = self._centring(dict(enumerate(own)))
        G = domain_centred_gram(self.place.move_rows(self.anchors.X), means, self.anchors.domain)
        if self.balance:
            G *= share
        n_labelled = len(self.problem.codes)
        if len(G) > n_labelled == len(self.rows.y):  # now, since the rest is added to G where it is
            X, domain = self.anchors.X, self.anchors.domain
            self.without = {C: source_only(G, self.problem, C, X, means, domain, share) for C in self.grid.Cs}
        branches = []
        for rows, E in zip(self.rows.blocks, self.anchors.blocks, strict=True):
            domains = [place_rows(block, self.place) for block in rows.domains.values()]
            args = domains, self.anchors.domain, self.center, self._norm(own)
            G, branch = add_block(G, self.place.move_rows(E), *args)
            branches.append(branch)
        return _Running([], None if means is None else [means], G, [share], branches)

    def _stack(
        self,
        domains: Sequence[Blocks],
        first: Layer,
        options: dict[str, Any],
        running: _Running,
        arrivals: Arrivals,
        shared: bool,
    ) -> Iterator[None]:
        """Grow the stack of one noise level and score its depths; others may share where it starts."""
        depth = max(self.grid.depths)
        for grown in fit_layers(domains, depth, partial(denoise, **options), first):
            arrived = arrivals(grown, self._wanted(last=len(running.layers) + 1 == depth))
            means, share = self._centring(arrived.moments)
            K = running.K + 0 if shared else running.K  # a copy where the sum so far is still wanted
            K = add_domain_centred_gram(K, arrived.rows, means, self.anchors.domain, share)
            running = running.then(grown.layer, means, K, share)
            if len(running.layers) in self.grid.depths:
                self._score(options["noise"], running)
            shared = any(own is not None and own.K is K for own in (self.best, self.preferred))
            if shared and means is not None:
                for k in set(range(len(means))) - set(arrived.moments):
                    means[k] = grown.domains[k].total(moments).mean
            del arrived
            yield

    def _arrivals(self, elsewhere: bool) -> Arrivals:
        """How the anchors come to each depth; `elsewhere` if not all rows of their domains pass here."""
        if elsewhere:
            return by_themselves(self.first_rows(self.anchors.X), self.place)
        return with_their_domains(self.anchors.domain, self.anchors.position)

    def _wanted(self, last: bool) -> Collection[int]:
        """Domains whose moments the inner products of a depth need.

        At the last depth, where no layer follows, rows would be pushed through for their moments alone: only
        those of domains that hold anchors. The others follow if the candidate is the best so far.
        """
        if self.balance or (self.center and not last):
            return range(len(self.rows.domains))
        return set(self.anchors.domain.tolist()) if self.center else ()

    def _centring(self, found: dict[int, Moments]) -> tuple[np.ndarray | None, float]:
        """Means to subtract from one layer's rows, and the share of their inner products."""
        means = domain_means(found, len(self.rows.domains)) if self.center else None
        return means, layer_share(list(found.values()), self.center) if self.balance else 1.0

    def _norm(self, domains: Sequence[Moments]) -> float:
        """Mean square norm that one layer's rows have in the sum of inner products."""
        return 1.0 if self.balance else mean_square(domains, self.center) or 1.0

    def _score(self, noise: float, running: _Running) -> None:
        K, layers = running.K, running.layers
        scale = float(K.diagonal()[: self.anchors.n_labelled].mean()) or 1.0
        Cs = [C / scale for C in self.grid.Cs]
        choosing = self.grid.n_candidates > 1
        scores = self.rule(judged(K, self.judged), self.problem, Cs) if choosing else np.full(len(Cs), np.nan)
        for C, score in zip(self.grid.Cs, scores, strict=True):
            candidate = Candidate(noise, len(layers), C, float(score))
            self.candidates.append(candidate)
            found = Found(candidate, layers, running.means, running.shares, K, scale, running.branches)
            if self.best is None or candidate.score > self.best.candidate.score:
                self.best = found
            if self.cautious and (noise, len(layers), C) == self.grid.preferred:
                self.preferred = found

    def _domains(self) -> list[Blocks]:
        return self._placed(list(self.rows.domains.values()))

    def _upper(self) -> list[Blocks] | None:
        """Return the rows that upper layers, and the means of hidden rows, are learnt from, if not all."""
        some = self._sampled(self.rows)
        return None if some is None else self._placed(some)

    def _sampled(self, rows: TrainingRows) -> list[Rows] | None:
        return draw_rows(list(rows.domains.values()), self.max_upper_rows, self.random_state)

    def _placed(self, domains: Sequence[Rows]) -> list[Blocks]:
        return [place_rows(self.first_rows(X), self.place, self.n_pivots or 0) for X in domains]

    def first_rows(self, X: Rows) -> Rows:
        """What the first layer sees of `X`."""
        return binarize_rows(X) if self.binarize else X


def layer_share(domains: Sequence[Moments], center: bool) -> float:
    """What makes the mean square norm of a layer's rows 1, over the rows of all domains."""
    return 1 / (mean_square(domains, center) or 1.0)


def judged_rows(n_labelled: int, n: int, random_state: np.random.RandomState) -> np.ndarray | None:
    """Draw the rows that a rule looks at: the labelled ones, which come first, and `RULE_ROWS` of the others.

    None where there are no more.
    """
    if n - n_labelled <= RULE_ROWS:
        return None
    drawn = random_state.choice(n - n_labelled, RULE_ROWS, replace=False)
    return np.concatenate([np.arange(n_labelled), n_labelled + np.sort(drawn)])


def judged(K: Array, rows: np.ndarray | None) -> Array:
    """Inner products of the rows that a rule looks at."""
    return K if rows is None else submatrix(K, rows, rows)


def n_target_anchors(estimator: Any, rows: TrainingRows, grid: Grid, n_labelled: int) -> int:
    """How many target rows a classifier's selection, self-training and caution want among the anchors."""
    wanted = grid.n_candidates > 1 and estimator.selection in NEED_TARGET
    if estimator.self_training and rows.targets:
        if n_labelled == len(rows.y):
            return min(max(ANCHOR_LIMIT - n_labelled, RULE_ROWS), SELF_TRAINING_ROWS)
        warnings.warn(
            f"self-training is left out: a Gram matrix holds {n_labelled:,} of the {len(rows.y):,} labelled "
            "rows, and the classifier is solved for without one",
            UndriftWarning,
            stacklevel=5,
        )
    cautious = estimator.fallback and rows.targets and n_labelled == len(rows.y)
    return RULE_ROWS if wanted or cautious else 0


def some_of_every_class(codes: np.ndarray, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """Draw n rows at random, two of every class among them where there are two; in ascending order."""
    drawn = random_state.permutation(len(codes))
    rank = np.empty(len(codes), dtype=int)  # how many of its class were drawn before
    for code in np.unique(codes):
        own = np.flatnonzero(codes[drawn] == code)
        rank[own] = np.arange(len(own))
    return np.sort(drawn[np.argsort(rank >= 2, kind="stable")[:n]])


def taken_of_targets(rows: TrainingRows, n_target: int) -> dict[int, int]:
    """How many rows of each target become anchors, of `n_target` wanted in all."""
    n_each = n_target // max(len(rows.targets), 1)
    return {number: min(n_each, rows.domains[number].shape[0]) for number in rows.targets if n_each}


def anchors(
    rows: TrainingRows, keep: np.ndarray, n_target: int, random_state: np.random.RandomState
) -> Anchors:
    """Take the labelled rows `keep` and up to `n_target` target rows as anchors."""
    position = {number: i for i, number in enumerate(rows.domains)}
    views: list[list[Rows]] = [[own.labelled[keep]] for own in (rows, *rows.blocks)]  # X, then extra blocks
    domain = [np.array([position[number] for number in rows.domain[keep]])]
    numbers = [rows.position[keep]]
    for number, n_taken in taken_of_targets(rows, n_target).items():
        chosen = np.arange(rows.domains[number].shape[0])
        if len(chosen) > n_taken:
            chosen = np.sort(random_state.choice(len(chosen), n_taken, replace=False))
        for view, own in zip(views, (rows, *rows.blocks), strict=True):
            view.append(gather_rows(own.domains[number][chosen]))
        domain.append(np.full(len(chosen), position[number]))
        numbers.append(chosen)
    X, *blocks = map(stack_rows, views)
    return Anchors(X, np.concatenate(domain), np.concatenate(numbers), len(keep), blocks)
