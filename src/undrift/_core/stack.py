"""Stacking (section 3.3, Algorithm 2): each layer is a denoiser of the rows before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .array import Array, Rows
from .blocks import Blocks, sum_in_place
from .denoise import Layer
from .scatter import Scatter, scatter


@dataclass(frozen=True)
class FittedLayer:
    """A new layer on top of a stack, and the rows of every domain after it."""

    layer: Layer
    domains: list[Blocks]


def pooled_scatter(domains: Sequence[Blocks]) -> Scatter:
    """Scatter of the rows of all domains."""
    return sum_in_place(blocks.total(scatter) for blocks in domains)


def fit_layers(
    domains: Sequence[Blocks], n_layers: int, solve: Callable[[Scatter], Layer], first: Layer | None = None
) -> Iterator[FittedLayer]:
    """Yield `n_layers` layers, greedily (Algorithm 2), each the answer of `solve` to a scatter.

    `first` is a first layer found otherwise (section 4, or a grid that shares its scatter).
    """
    for t in range(n_layers):
        layer = first if t == 0 and first is not None else solve(pooled_scatter(domains))
        domains = [blocks.map(layer) for blocks in domains]
        yield FittedLayer(layer, list(domains))


def hidden_rows(layers: Sequence[Layer], X: Rows) -> Iterator[Array]:
    """Yield h^1, ..., h^l of the rows of `X`, one at a time."""
    for layer in layers:
        X = layer(X)
        yield X
