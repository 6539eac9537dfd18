"""How the rows whose inner products are kept come to each depth: with their domains, or by themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np

from .._core import Array, FittedLayer, Moments, Rows, array_ops, moments, take_rows
from .._inputs import Place


@dataclass(frozen=True)
class Arrived:
    """Rows at a new depth, which may be written to, and moments of the domains that were asked for."""

    rows: Array  # (n, d)
    moments: dict[int, Moments]  # by position of the domain


# brings rows to the depth of a new layer; the positions are those of the domains whose moments are wanted
Arrivals = Callable[[FittedLayer, Collection[int]], Arrived]


def with_their_domains(domain: np.ndarray, position: np.ndarray) -> Arrivals:
    """Take copies as all rows pass: nothing is computed twice.

    Parameters
    ----------
    domain, position : int arrays of shape (n,)
        Each row's domain, and its number there; ascending for each domain.
    """

    def arrived(grown: FittedLayer, wanted: Collection[int]) -> Arrived:
        coef = grown.layer.coef
        H, found = array_ops(coef).empty_like(coef, (len(domain), coef.shape[1])), {}
        for k, blocks in enumerate(cast(list[Iterable[Rows]], grown.domains)):
            places = np.flatnonzero(domain == k)
            if len(places) or k in wanted:
                found[k] = take_rows(blocks, position[places], H, places)
        return Arrived(H, found)

    return arrived


def by_themselves(X: Rows, place: Place) -> Arrivals:
    """Push rows `X` through every layer: where those of their domains are elsewhere, or a sample."""
    H = place.move_rows(X)

    def arrived(grown: FittedLayer, wanted: Collection[int]) -> Arrived:
        nonlocal H
        H = grown.layer(H)
        return Arrived(H + 0, {k: grown.domains[k].total(moments) for k in sorted(wanted)})

    return arrived


def domain_means(found: dict[int, Moments], n_domains: int) -> np.ndarray:
    """Means of the domains, of shape (n_domains, d); NaN for those that are not known yet."""
    width = len(next(iter(found.values())).mean)
    means = np.full((n_domains, width), np.nan)
    for k, own in found.items():
        means[k] = own.mean
    return means
