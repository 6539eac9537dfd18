"""Stacking (section 3.3, Algorithm 2): each layer is a denoiser of the rows before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .array import Array, Rows
from .blocks import Blocks
from .denoise import Layer
from .scatter import Scatter, scatter


@dataclass(frozen=True)
class Grown:
    """A new layer on top of a stack, and the rows of every domain after it."""

    layer: Layer
    domains: list[Blocks]
    means: list[Array] | None  # of each domain's rows before the layer; None if nobody formed them


def pooled_scatter(domains: Sequence[Blocks]) -> tuple[Scatter, list[Array]]:
    """Scatter of the rows of all domains, and the mean row of each."""
    pooled, means = None, []
    for blocks in domains:
        own = blocks.total(scatter)
        means.append(own.mean)
        pooled = own if pooled is None else pooled + own
    assert pooled is not None, "no domains"
    return pooled, means


def grow(
    domains: Sequence[Blocks], n_layers: int, solve: Callable[[Scatter], Layer], first: Layer | None = None
) -> Iterator[Grown]:
    """Yield `n_layers` layers, greedily (Algorithm 2), each the answer of `solve` to a scatter.

    `first` is a first layer found otherwise (section 4, or a grid that shares its scatter).
    """
    for t in range(n_layers):
        if t == 0 and first is not None:
            layer, means = first, None
        else:
            pooled, means = pooled_scatter(domains)
            layer = solve(pooled)
        domains = [blocks.map(layer) for blocks in domains]
        yield Grown(layer, list(domains), means)


def hidden(layers: Sequence[Layer], X: Rows) -> Iterator[Array]:
    """Yield h^1, ..., h^l of the rows of `X`, one at a time."""
    for layer in layers:
        X = layer(X)
        yield X
