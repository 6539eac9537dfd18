"""One stack for all tasks of a corpus, and what its classifiers need of the rows.

The layers of a noise level are learnt once from the rows of all domains. Classifiers are trained on inner
products alone; the sums over levels are the Gram matrices of every depth. Of ``[h^0, ..., h^l]`` only the
labelled rows are kept, for the scores of those that are predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from undrift.core import Array, LayerOptions, LayerSolver, Rows, array_ops, choose_pivots, fit_layers, moments
from undrift.core.blocks import as_slice
from undrift.inputs import Place

from ..corpora.corpus import Corpus
from ..parts import Part, part_rows
from .resources import measure_time

Parts = list[tuple[str, np.ndarray, Any]]  # domain, row numbers, and blocks of these rows


@dataclass(frozen=True)
class Level:
    """One depth of a stack: 0 is the input. `seconds` are those of the way from the rows."""

    depth: int
    seconds: float
    rows: Callable[[str, np.ndarray], Rows]  # domain, row numbers -> their values at this depth


def row_products(A: Rows, B: Rows) -> Array:
    """``A B'``, dense."""
    return np.asarray((A @ B.T).toarray()) if sp.issparse(A) else A @ B.T


class LabelledRows:
    """Labelled rows of some domains at all levels added so far, beside one another.

    The inner products of a domain's train rows are summed as levels come. Test rows are scored by their
    values: their inner products with all sources are more, and take longer.
    """

    def __init__(self, corpus: Corpus, sources: Iterable[str], targets: Iterable[str]) -> None:
        train = [(name, "train") for name in dict.fromkeys(sources)]
        test = [(name, "test") for name in dict.fromkeys(targets)]
        self._rows = {part: part_rows(corpus, part) for part in [*train, *test]}
        self._same = {part: (part[0], "train") for part in test if self._equals_train(part)}
        self._levels: dict[Part, list[Rows]] = {part: [] for part in self._rows if part not in self._same}
        self._grams: dict[str, Array] = {name: None for name, _ in train}

    def _equals_train(self, part: Part) -> bool:
        train = self._rows.get((part[0], "train"))
        return train is not None and np.array_equal(train, self._rows[part])

    def add(self, level: Level) -> None:
        """Add the rows of one level."""
        for part, levels in self._levels.items():
            levels.append(level.rows(part[0], self._rows[part]))
        for source, total in self._grams.items():
            X = self._take((source, "train"))[-1]
            K = row_products(X, X)
            if total is not None:
                K += total
            self._grams[source] = K

    def gram(self, source: str) -> np.ndarray:
        """Return the inner products of a domain's train rows; the next addition makes another array."""
        return array_ops(self._grams[source]).to_numpy(self._grams[source])

    def weigh(self, source: str, coef: np.ndarray) -> list[Array]:
        """Return weights of the columns of every level, from those of a domain's train rows."""
        return [X.T @ array_ops(X).like(coef, X) for X in self._take((source, "train"))]

    def score(self, target: str, weights: Sequence[Array]) -> np.ndarray:
        """Return the products of a domain's test rows with weights."""
        levels = zip(self._take((target, "test")), weights, strict=True)
        scores: Any = sum(X @ weight for X, weight in levels)
        return array_ops(scores).to_numpy(scores)

    def _take(self, part: Part) -> list[Rows]:
        """Return the rows of a part at every level."""
        return self._levels[self._same.get(part, part)]


class SharedStack:
    """Stacks of any noise level over the same domains; the first scatter serves all levels.

    The rows of the corpus are the input block, h^0; `first` is what the first layer sees of them, such as
    their presence. With `n_pivots` the first layer has so many outputs (section 4), `seed` is of its parts.
    An `inductive` stack is learnt without the test rows, which go through its layers all the same.
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
        inductive: bool = False,
    ) -> None:
        self._corpus, self._place, self._seed = corpus, place or Place(), seed
        self._activation = activation
        self._width = next(iter(corpus.domains.values())).X.shape[1]
        self._n_pivots = n_pivots if n_pivots is not None and n_pivots < self._width else None
        rows = {name: np.arange(len(domain)) for name, domain in corpus.domains.items()}
        unseen = {
            name: np.sort(domain.test) if inductive else rows[name][:0]
            for name, domain in corpus.domains.items()
        }
        self._seen = {name: np.setdiff1d(rows[name], unseen[name]) for name in rows}
        self._unseen = {name: own for name, own in unseen.items() if len(own)}
        self._domains, self._later = (
            {name: self._store(first(corpus.domains[name].X[own])) for name, own in part.items()}
            for part in (self._seen, self._unseen)
        )

    def _store(self, X: Rows) -> Any:
        return self._place.store_rows(X, self._n_pivots or self._width)

    def levels(self, noise: float, n_layers: int) -> Iterator[Level]:
        """Yield the input and each layer's output; a level is valid until the next one is asked for."""
        yield Level(0, 0.0, self._input_rows)
        _, seconds = self._shared
        layers = self._fit_layers(noise, n_layers)
        for depth in range(1, n_layers + 1):
            parts, spent = self._measure(next, layers)
            seconds += spent
            yield Level(depth, seconds, partial(_gather, parts))

    @cached_property
    def _shared(self) -> tuple[LayerSolver, float]:
        """What solves for first layers, with the scatter of the input or its pivots, and its seconds."""
        return self._measure(self._make_solver)

    def _make_solver(self) -> LayerSolver:
        domains, split = list(self._domains.values()), None
        if self._n_pivots is not None:
            rng = np.random.RandomState(self._seed)
            split = choose_pivots(domains, self._width, self._n_pivots, rng)
        solver = LayerSolver(domains, split)
        if split is None:
            _ = solver.moments.mean  # what all noise levels share is learnt now
        return solver

    def _measure(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
        with self._place.set_precision():
            return measure_time(function, *arguments)

    def _fit_layers(self, noise: float, n_layers: int) -> Iterator[Parts]:
        """Learn layer by layer and bring all rows through it; their moments say that they have arrived."""
        options = LayerOptions(noise=noise, ridge=1e-5, activation=self._activation)
        later = self._later
        solver, _ = self._shared
        for fitted in fit_layers(list(self._domains.values()), n_layers, options, solver.fit(**options)):
            domains = dict(zip(self._domains, fitted.domains, strict=True))
            later = {name: blocks.map(fitted.layer) for name, blocks in later.items()}
            for blocks in domains.values():
                _ = blocks.total(moments).mean
            seen = [(name, self._seen[name], blocks) for name, blocks in domains.items()]
            yield [*seen, *((name, self._unseen[name], blocks) for name, blocks in later.items())]

    def _input_rows(self, domain: str, rows: np.ndarray) -> Rows:
        return self._place.move_rows(self._corpus.domains[domain].X[rows])


def _gather(parts: Parts, domain: str, rows: np.ndarray) -> Array:
    """Rows of a domain by ascending number, all in one part, copied from the blocks as they pass."""
    numbers, blocks = next((own, b) for name, own, b in parts if name == domain and np.isin(rows, own).all())
    places, pieces, start = np.searchsorted(numbers, rows), [], 0
    for block in blocks:
        first, last = np.searchsorted(places, (start, start + block.shape[0]))
        pieces.append(block[as_slice(places[first:last] - start)])
        start += block.shape[0]
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    import torch

    return torch.cat(pieces)
