"""One stack for all tasks of a corpus, and the running inner products that its classifiers need.

The layers of a noise level are learnt once from the rows of all domains. Classifiers know rows by inner
products alone, so a level gives those between *parts* (the train rows of one domain, the test rows of
another), and the sums over levels are the Gram matrices of every depth; ``[h^0, ..., h^l]`` is never built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._core import Array, Moments, Rows, array_ops, as_slice, blocks_with_offsets, choose_pivots, moments
from ..._inputs import OnHost, Place
from ...classifier import CentredRows, LayerFitter, RunningGram, centre_rows, inner_products, layer_share
from ...corpora import Corpus
from ..corpora import Part, part_rows
from .resources import Cost, device_of, measure_cost


@dataclass(frozen=True)
class Level:
    """One depth of a stack: 0 is the input. `cost` is that of the way from the rows."""

    depth: int
    cost: Cost
    rows: Callable[[str, np.ndarray], Rows]  # domain, row numbers -> their values at this depth
    means: Mapping[str, Array] | None  # of each domain, to be subtracted
    share: float  # what makes the mean square norm of all rows 1

    @property
    def seconds(self) -> float:
        """Time from the rows to this depth."""
        return self.cost.seconds

    def take(self, corpus: Corpus, part: Part) -> CentredRows:
        """Values of the rows of a part."""
        mean = None if self.means is None else self.means[part[0]]
        return centre_rows(self.rows(part[0], part_rows(corpus, part)), mean)


def row_products(A: Rows, B: Rows) -> Array:
    """``A B'``, dense."""
    return inner_products(CentredRows(A), CentredRows(B))


class RunningGrams:
    """Inner products between pairs of parts, summed over the levels added so far."""

    def __init__(self, corpus: Corpus, pairs: Iterable[tuple[Part, Part]]) -> None:
        self._corpus = corpus
        self._sums = {pair: RunningGram() for pair in pairs}

    def add(self, level: Level, *, balance: bool = False) -> None:
        """Add the inner products of one level; with `balance`, all levels count alike."""
        parts = dict.fromkeys(part for pair in self._sums for part in pair)
        rows = {part: level.take(self._corpus, part) for part in parts}
        for (left, right), total in self._sums.items():
            total.add_products(rows[left], rows[right], level.share if balance else 1.0)

    def remove(self, pair: tuple[Part, Part]) -> None:
        """Free a pair that nobody needs any more."""
        self._sums.pop(pair, None)

    def peek(self, pair: tuple[Part, Part]) -> Array:
        """Return a sum to read from until the next level is added, where it is: on a device or not."""
        return self._sums[pair].peek()

    def __getitem__(self, pair: tuple[Part, Part]) -> np.ndarray:
        """Return a sum as a NumPy array that will not change."""
        K = self.peek(pair)
        return np.array(array_ops(K).to_numpy(K))


class SharedStack:
    """Stacks of any noise level over the same domains; the first scatter serves all levels.

    Parameters
    ----------
    corpus : Corpus
        Its rows are the input block, h^0.
    first : callable
        What the first layer sees of rows, such as their presence.
    center : bool
        Whether the mean of a row's domain is subtracted at every depth.
    place : Place
        Where rows live and arithmetic is done.
    activation : str
    ridge : float
    n_pivots : int, optional
        Outputs of the first layer where there are more columns (section 4).
    seed : int
        Of the random parts with `n_pivots`.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        first: Callable[[Rows], Rows] = lambda X: X,
        center: bool = False,
        place: Place | None = None,
        activation: str = "tanh",
        ridge: float = 1e-5,
        n_pivots: int | None = None,
        seed: int = 0,
    ) -> None:
        self._corpus, self._center = corpus, center
        self._place = place or OnHost()
        self._options: dict[str, Any] = {"ridge": ridge, "activation": activation}
        width = next(iter(corpus.domains.values())).X.shape[1]
        self._n_pivots = n_pivots if n_pivots is not None and n_pivots < width else None
        self._seed, self._width = seed, width
        self._domains = [
            self._place.store_rows(first(domain.X), self._n_pivots or width)
            for domain in corpus.domains.values()
        ]

    def levels(self, noise: float, n_layers: int) -> Iterator[Level]:
        """Yield the input and each layer's output; a level is valid until the next one is asked for."""
        yield Level(0, Cost(), self._input_rows, *self._describe(self._input_moments))
        fitter, cost = self._shared
        layers = fitter.fit(noise, n_layers)
        for depth in range(1, n_layers + 1):
            level, layer_cost = self._measure(self._grow_layer, layers)
            cost += layer_cost
            yield Level(depth, cost, *level)

    @cached_property
    def _shared(self) -> tuple[LayerFitter, Cost]:
        """What learns the layers, with the scatter of the input or its pivots, and what that cost."""
        return self._measure(self._make_fitter)

    def _make_fitter(self) -> LayerFitter:
        split = None
        if self._n_pivots is not None:
            rng = np.random.RandomState(self._seed)
            split = choose_pivots(self._domains, self._width, self._n_pivots, rng)
        fitter = LayerFitter(self._domains, None, self._options, split)
        if (device := device_of(self._place)).startswith("cuda"):
            import torch

            torch.cuda.synchronize(device)
        return fitter

    def _measure(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Cost]:
        with self._place.set_precision():
            return measure_cost(device_of(self._place), function, *arguments)

    def _grow_layer(self, stack: Iterator[Any]) -> tuple[Any, ...]:
        """Learn the next layer and bring all rows through it; their moments say that they have arrived."""
        domains = dict(zip(self._corpus.domains, next(stack).domains, strict=True))
        moments_by_domain = {name: blocks.total(moments) for name, blocks in domains.items()}
        return partial(_gather, domains), *self._describe(moments_by_domain)

    def _describe(self, domains: Mapping[str, Moments]) -> tuple[dict[str, Array] | None, float]:
        """Means to subtract, and the share of a level in balanced sums."""
        means = {name: each.total / each.n for name, each in domains.items()} if self._center else None
        return means, layer_share(list(domains.values()), self._center)

    def _input_rows(self, domain: str, rows: np.ndarray) -> Rows:
        return self._place.move_rows(self._corpus.domains[domain].X[rows])

    @cached_property
    def _input_moments(self) -> dict[str, Moments]:
        return {name: moments(domain.X) for name, domain in self._corpus.domains.items()}


def _gather(domains: Mapping[str, Any], domain: str, rows: np.ndarray) -> Array:
    """Rows of a domain by ascending number, copied from the blocks as they pass."""
    pieces = []
    for block, start in blocks_with_offsets(domains[domain]):
        first, last = np.searchsorted(rows, (start, start + block.shape[0]))
        pieces.append(block[as_slice(rows[first:last] - start)])
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    import torch

    return torch.cat(pieces)


def join_blocks(within: Array, across: Array, other: Array) -> Array:
    """``[[within, across'], [across, other]]``, where its blocks are."""
    if isinstance(within, np.ndarray):
        return np.block([[within, across.T], [across, other]])
    import torch

    return torch.cat([torch.cat([within, across.T], dim=1), torch.cat([across, other], dim=1)])
