"""The first layer for many features: section 4 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np

from .array import array_ops
from .blocks import Blocks, sum_in_place
from .denoise import Layer, Noise, SingularSystem, denoise_onto, select_noise
from .scatter import cross_scatter


def most_frequent(counts: np.ndarray, n_pivots: int) -> np.ndarray:
    """Return the `n_pivots` features that occur in most rows, ties by column, in column order."""
    return np.sort(np.argsort(-counts, kind="stable")[:n_pivots])


def random_parts(d: int, n_pivots: int, rng: np.random.RandomState) -> list[np.ndarray]:
    """Split d features at random into ``ceil(d / n_pivots)`` parts of nearly equal size."""
    return [np.sort(part) for part in np.array_split(rng.permutation(d), ceil(d / n_pivots))]


@dataclass(frozen=True)
class PivotSplit:
    """Which features the first layer reconstructs, and the random parts it reconstructs them from."""

    pivots: np.ndarray
    parts: list[np.ndarray]


def choose_pivots(domains: Sequence[Blocks], d: int, n_pivots: int, rng: np.random.RandomState) -> PivotSplit:
    """Find the most frequent of d features in one pass over the rows, and split all of them at random."""
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
    """Layer that reconstructs the pivots from each part and averages the answers, eq. (9).

    The average of affine maps is one affine map, so this is an ordinary layer. One part is in
    memory at a time, at the price of one pass over the rows for each.
    """
    coef, intercept = None, 0.0
    for part in parts:
        products = partial(cross_scatter, part=part, pivots=pivots)
        try:
            own = denoise_onto(
                sum_in_place(blocks.total(products) for blocks in domains), select_noise(noise, part), ridge
            )
        except SingularSystem as error:
            raise error.with_names(part.tolist()) from None
        if coef is None:
            n_features = sum(len(each) for each in parts)
            coef = array_ops(own.coef).empty_like(own.coef, (n_features, len(pivots)))
        coef[part] = own.coef / len(parts)
        intercept = intercept + own.intercept / len(parts)
    return Layer(coef, intercept, activation)
