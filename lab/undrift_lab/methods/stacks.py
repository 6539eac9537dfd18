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
import scipy.sparse as sp

from undrift.core import Array, LayerSolver, Rows, array_ops, choose_pivots, fit_layers, moments
from undrift.core.blocks import as_slice, blocks_with_offsets
from undrift.datasets import Corpus
from undrift.inputs import OnHost, Place

from ..parts import Part, part_rows
from .resources import Cost, device_of, measure_cost


@dataclass(frozen=True)
class Level:
    """One depth of a stack: 0 is the input. `cost` is that of the way from the rows."""

    depth: int
    cost: Cost
    rows: Callable[[str, np.ndarray], Rows]  # domain, row numbers -> their values at this depth

    @property
    def seconds(self) -> float:
        """Time from the rows to this depth."""
        return self.cost.seconds


def row_products(A: Rows, B: Rows) -> Array:
    """``A B'``, dense."""
    return np.asarray((A @ B.T).toarray()) if sp.issparse(A) else A @ B.T


class RunningGrams:
    """Inner products between pairs of parts, summed over the levels added so far."""

    def __init__(self, corpus: Corpus, pairs: Iterable[tuple[Part, Part]]) -> None:
        self._corpus = corpus
        self._sums: dict[tuple[Part, Part], Array] = dict.fromkeys(pairs)

    def add(self, level: Level) -> None:
        """Add the inner products of one level."""
        parts = dict.fromkeys(part for pair in self._sums for part in pair)
        rows = {part: level.rows(part[0], part_rows(self._corpus, part)) for part in parts}
        for (left, right), total in self._sums.items():
            K = row_products(rows[left], rows[right])
            if total is not None:
                K += total
            self._sums[left, right] = K

    def __getitem__(self, pair: tuple[Part, Part]) -> np.ndarray:
        """Return a sum as a NumPy array; the next addition makes another one."""
        return array_ops(self._sums[pair]).to_numpy(self._sums[pair])


class SharedStack:
    """Stacks of any noise level over the same domains; the first scatter serves all levels.

    The rows of the corpus are the input block, h^0; `first` is what the first layer sees of them, such as
    their presence. With `n_pivots` the first layer has so many outputs (section 4), `seed` is of its parts.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        first: Callable[[Rows], Rows] = lambda X: X,
        place: Place | None = None,
        activation: str = "tanh",
        n_pivots: int | None = None,
        seed: int = 0,
    ) -> None:
        self._corpus, self._place = corpus, place or OnHost()
        self._options: dict[str, Any] = {"ridge": 1e-5, "activation": activation}
        width = next(iter(corpus.domains.values())).X.shape[1]
        self._n_pivots = n_pivots if n_pivots is not None and n_pivots < width else None
        self._seed, self._width = seed, width
        self._domains = [
            self._place.store_rows(first(domain.X), self._n_pivots or width)
            for domain in corpus.domains.values()
        ]

    def levels(self, noise: float, n_layers: int) -> Iterator[Level]:
        """Yield the input and each layer's output; a level is valid until the next one is asked for."""
        yield Level(0, Cost(), self._input_rows)
        _, cost = self._shared
        layers = self._fit_layers(noise, n_layers)
        for depth in range(1, n_layers + 1):
            rows, layer_cost = self._measure(self._grow_layer, layers)
            cost += layer_cost
            yield Level(depth, cost, rows)

    @cached_property
    def _shared(self) -> tuple[LayerSolver, Cost]:
        """What solves for first layers, with the scatter of the input or its pivots, and what that cost."""
        return self._measure(self._make_solver)

    def _make_solver(self) -> LayerSolver:
        split = None
        if self._n_pivots is not None:
            rng = np.random.RandomState(self._seed)
            split = choose_pivots(self._domains, self._width, self._n_pivots, rng)
        solver = LayerSolver(self._domains, split)
        if split is None:
            float(solver.moments.energy)  # what all noise levels share is learnt now
        if (device := device_of(self._place)).startswith("cuda"):
            import torch

            torch.cuda.synchronize(device)
        return solver

    def _fit_layers(self, noise: float, n_layers: int) -> Iterator[Any]:
        options = {"noise": noise, **self._options}
        solver, _ = self._shared
        yield from fit_layers(self._domains, n_layers, options, solver.fit(**options))

    def _measure(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Cost]:
        with self._place.set_precision():
            return measure_cost(device_of(self._place), function, *arguments)

    def _grow_layer(self, layers: Iterator[Any]) -> Callable[[str, np.ndarray], Rows]:
        """Learn the next layer and bring all rows through it; their moments say that they have arrived."""
        domains = dict(zip(self._corpus.domains, next(layers).domains, strict=True))
        for blocks in domains.values():
            float(blocks.total(moments).energy)
        return partial(_gather, domains)

    def _input_rows(self, domain: str, rows: np.ndarray) -> Rows:
        return self._place.move_rows(self._corpus.domains[domain].X[rows])


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
