"""Stacks of layers (section 3.3, Algorithm 2), and a first layer for many features (section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any, cast

import numpy as np

from ..errors import warn
from .array import Array, Rows, array_ops, stack_rows
from .blocks import Blocks, StoredBlocks, sum_in_place
from .denoise import Layer, Noise, SingularSystem, denoise, denoise_onto, select_noise
from .row_form import NeedsColumns, denoise_in_rows, prefers_rows
from .scatter import Moments, Scatter, cross_scatter, mean_square, moments, scatter, sum_columns


@dataclass(frozen=True)
class FittedLayer:
    """A layer of a stack, and the rows of every domain after it."""

    layer: Layer
    domains: list[Blocks]
    moments: Sequence[Moments] | None = None  # of these rows, where they are known


@dataclass(frozen=True)
class PivotSplit:
    """The features that the first layer reconstructs, and the random parts that it reconstructs them from."""

    pivots: np.ndarray
    parts: list[np.ndarray]


class LayerSolver:
    """Fits a layer on the rows of all domains, for any noise, in the rows or in the columns.

    Computes once all that does not depend on the noise. With a `split`, the layer reconstructs its pivots.
    """

    def __init__(self, domains: Sequence[Blocks], split: PivotSplit | None = None) -> None:
        self._domains, self._split = domains, split
        self._rows = gather_few_rows(domains, None if split is None else len(split.pivots))
        self._scatter: Scatter | None = None

    def fit(self, *, noise: Noise, ridge: float, activation: str) -> FittedLayer:
        """Fit the layer of one noise level, and return it with the rows of every domain after it."""
        options: dict[str, Any] = {"noise": noise, "ridge": ridge, "activation": activation}
        if self._rows is not None:
            pivots = None if self._split is None else self._split.pivots
            try:
                return self._map_seen(*denoise_in_rows(self._rows, **options, targets=pivots))
            except NeedsColumns:
                self._rows = None
        if self._split is None:
            layer = denoise(self.scatter, **options)
        else:
            layer = fit_pivot_layer(self._domains, self._split.pivots, self._split.parts, **options)
        return FittedLayer(layer, [blocks.map(layer) for blocks in self._domains])

    @property
    def scatter(self) -> Scatter:
        """Scatter of the rows of all domains."""
        if self._scatter is None:
            self._scatter = sum_in_place(blocks.total(scatter) for blocks in self._domains)
        return self._scatter

    @property
    def moments(self) -> Moments:
        """Moments of the rows of all domains."""
        return sum_columns(self.scatter) if self._rows is None else moments(self._rows)

    def _map_seen(self, layer: Layer, hidden: np.ndarray) -> FittedLayer:
        """Give every domain its part of the hidden rows."""
        domains = cast(Sequence[StoredBlocks], self._domains)
        edges = np.cumsum([0, *(blocks.shape[0] for blocks in domains)]).tolist()
        parts = [hidden[start:stop] for start, stop in pairwise(edges)]
        return FittedLayer(layer, [b.map(layer, part) for b, part in zip(domains, parts, strict=True)])


def gather_few_rows(domains: Sequence[Blocks], n_targets: int | None) -> Rows | None:
    """Return the rows of all domains in one matrix, where a layer is fitted in the rows; None elsewhere.

    Rows that are streamed, on a device, on a cluster or above the memory budget are fitted in the columns.
    """
    stored = [blocks for blocks in domains if isinstance(blocks, StoredBlocks)]
    if len(stored) < len(domains) or not all(blocks.fits_memory() for blocks in stored):
        return None
    n, d = sum(blocks.shape[0] for blocks in stored), stored[0].shape[1]
    density = sum(blocks.n_stored for blocks in stored) / max(n * d, 1)
    if not prefers_rows(n, d, n_targets or d, density):
        return None
    return stack_rows([block for blocks in stored for block in blocks])


def fit_layers(
    domains: Sequence[Blocks], n_layers: int, options: Mapping[str, Any], first: FittedLayer | None = None
) -> Iterator[FittedLayer]:
    """Fit `n_layers` layers one after another (Algorithm 2), yielding each.

    `options` are `noise`, `ridge` and `activation`.
    `first` is a first layer that has been fitted already (section 4, or a grid that shares its solver).
    """
    given = domains
    for t in range(n_layers):
        if t == 0 and first is not None:
            fitted = first
        else:
            solver = LayerSolver(domains)
            if t == 1:
                _check_variation(solver.moments, given)
            fitted = solver.fit(**options)
        domains = fitted.domains
        yield fitted


def _check_variation(hidden: Moments, given: Sequence[Blocks]) -> None:
    """Warn of a first layer whose output is the same for all rows, though these differ."""
    is_zero = hidden.energy == 0  # the system that is solved next says so
    if is_zero or mean_square([hidden], True) > 0:
        return
    if mean_square([sum_in_place(blocks.total(moments) for blocks in given)], True) > 0:
        message = (
            "after the first layer all rows are the same up to rounding, so that layers add nothing: most "
            "features are far from 0, where the activation is flat and noise that sets them to 0 hides what "
            "differs between rows; scale the columns to [0, 1] with few large values, or subtract their means"
        )
        warn(message)


def hidden_rows(layers: Sequence[Layer], X: Rows) -> Iterator[Array]:
    """Yield h^1, ..., h^l of the rows of `X`, one at a time."""
    for layer in layers:
        X = layer(X)
        yield X


def most_frequent(counts: np.ndarray, n_pivots: int) -> np.ndarray:
    """Return the `n_pivots` features that occur in most rows, ties by column, in column order."""
    return np.sort(np.argsort(-counts, kind="stable")[:n_pivots])


def random_parts(d: int, n_pivots: int, rng: np.random.RandomState) -> list[np.ndarray]:
    """Split d features at random into ``ceil(d / n_pivots)`` parts of nearly equal size."""
    return [np.sort(part) for part in np.array_split(rng.permutation(d), ceil(d / n_pivots))]


def choose_pivots(domains: Sequence[Blocks], d: int, n_pivots: int, rng: np.random.RandomState) -> PivotSplit:
    """Choose the most frequent of d features, in one pass over the rows, and split all d at random."""
    counts = sum_in_place(
        blocks.total(lambda rows: array_ops(rows).nonzero_counts(rows)) for blocks in domains
    )
    return PivotSplit(
        most_frequent(array_ops(counts).to_numpy(counts), n_pivots), random_parts(d, n_pivots, rng)
    )


def fit_pivot_layer(
    domains: Sequence[Blocks],
    pivots: np.ndarray,
    parts: Sequence[np.ndarray],
    noise: Noise,
    ridge: float,
    activation: str,
) -> Layer:
    """Fit the layer that reconstructs the pivots from each part and averages the results, eq. (9).

    The average of affine maps is one affine map, so this is an ordinary layer. One part is in memory at a
    time, at the price of one pass over the rows for each.
    """
    coef, intercept = None, 0.0
    for part in parts:
        products = partial(cross_scatter, part=part, pivots=pivots)
        try:
            layer = denoise_onto(
                sum_in_place(blocks.total(products) for blocks in domains), select_noise(noise, part), ridge
            )
        except SingularSystem as error:
            raise error.with_names(part.tolist()) from None
        if coef is None:
            n_features = sum(len(part) for part in parts)
            coef = array_ops(layer.coef).empty_like(layer.coef, (n_features, len(pivots)))
        coef[part] = layer.coef / len(parts)
        intercept = intercept + layer.intercept / len(parts)
    return Layer(coef, intercept, activation)
