"""Stacks of layers (section 3.3, Algorithm 2), and a first layer for many features (section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np

from ..errors import warn
from .array import Array, Rows, array_ops
from .blocks import Blocks, sum_in_place
from .denoise import Layer, Noise, SingularSystem, denoise_onto, select_noise
from .scatter import ROUNDING, Scatter, cross_scatter, mean_square, moments, scatter


@dataclass(frozen=True)
class FittedLayer:
    """A layer of a stack, and the rows of every domain after it."""

    layer: Layer
    domains: list[Blocks]


def pooled_scatter(domains: Sequence[Blocks]) -> Scatter:
    """Scatter of the rows of all domains."""
    return sum_in_place(blocks.total(scatter) for blocks in domains)


def fit_layers(
    domains: Sequence[Blocks], n_layers: int, solve: Callable[[Scatter], Layer], first: Layer | None = None
) -> Iterator[FittedLayer]:
    """Fit `n_layers` layers one after another (Algorithm 2), yielding each; `solve` turns a scatter into one.

    `first` is a first layer that has been fitted already (section 4, or a grid that shares its scatter).
    """
    given = domains
    for t in range(n_layers):
        if t == 0 and first is not None:
            layer = first
        else:
            stats = pooled_scatter(domains)
            if t == 1:
                _check_variation(stats, given)
            layer = solve(stats)
        domains = [blocks.map(layer) for blocks in domains]
        yield FittedLayer(layer, list(domains))


def _check_variation(stats: Scatter, given: Sequence[Blocks]) -> None:
    """Warn of a first layer whose output is the same for all rows, though these differ."""
    ops = array_ops(stats.gram)
    energy, mean = ops.to_numpy(stats.energy), ops.to_numpy(stats.mean)
    is_zero = not energy.any()  # the system that is solved next says so
    if is_zero or energy.sum() - stats.n * float(mean @ mean) > ROUNDING * energy.sum():
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


@dataclass(frozen=True)
class PivotSplit:
    """The features that the first layer reconstructs, and the random parts that it reconstructs them from."""

    pivots: np.ndarray
    parts: list[np.ndarray]


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
