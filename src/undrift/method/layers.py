"""Layers of every noise level, learnt from the rows of all domains, and the Gram matrix at their depths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ..core import (
    Array,
    Blocks,
    FittedLayer,
    Form,
    LayerSolver,
    Moments,
    PivotSplit,
    Rows,
    array_ops,
    fit_layers,
    hidden_rows,
    mean_square,
    moments,
    take_rows,
)
from ..inputs import Place, check_choice, check_pivots, half_of_memory, on_cluster
from .align import combine_midpoints
from .anchors import Anchors
from .gram import Gram, Stack, add_layer, start_gram
from .problem import Problem
from .settings import LayerSettings

PIVOT_CHOICES = {"auto": 1.0, "few": 0.5, "many": 1.6}  # against the usual number of pivots


class LayerFitter:
    """Learns the layers of every noise level from rows of each domain; sums over the input serve all levels.

    `split` has the pivots of the first layer (section 4).
    """

    def __init__(self, domains: list[Blocks], split: PivotSplit | None, ridge: float) -> None:
        self.split, self._domains, self._ridge = split, domains, ridge
        self._solver: LayerSolver | None = LayerSolver(domains, split)  # for every noise level

    def fit(self, noise: float, n_layers: int, *, is_last: bool = False) -> Iterator[FittedLayer]:
        """Yield the layers of one noise level; after the last level the sums that they share are freed."""
        assert self._solver is not None
        options: dict[str, Any] = {"noise": noise, "ridge": self._ridge, "activation": "tanh"}
        first = self._solver.fit(**options)
        if is_last:
            self._solver = None
        yield from fit_layers(self._domains, n_layers, options, first)


def count_pivots(n_pivots: Any, d: int, n_rows: int, settings: LayerSettings) -> int | None:
    """Return the number of features that the first layer reconstructs; None for all d of them."""
    if not isinstance(n_pivots, str):
        return None if n_pivots is None else check_pivots(n_pivots, d)
    check_choice(n_pivots, "n_pivots", tuple(PIVOT_CHOICES))
    most = round(PIVOT_CHOICES[n_pivots] * settings.most_pivots)
    limit = limit_pivots(replace(settings, most_pivots=most), d, n_rows, half_of_memory())
    return None if limit >= d else limit


def limit_pivots(settings: LayerSettings, d: int, n_rows: int, memory: float) -> int:
    """Return the largest number of pivots that the rows can use and the memory can hold.

    Layers of p pivots, the first of d features, and the systems that they solve are
    ``p (d + (n_layers + 3) p)`` numbers of four bytes, which may take half of the memory.
    """
    n_squares = settings.n_layers + 3
    fitting = int((np.sqrt(d**2 + n_squares * memory / 2) - d) / (2 * n_squares))
    useful = max(settings.least_pivots, settings.pivots_per_row * n_rows)
    return max(1, min(settings.most_pivots, fitting, useful))


@dataclass(frozen=True)
class Level:
    """A stack of some depth, and the inner products of the anchors and the centres there."""

    noise: float
    stack: Stack
    gram: Gram
    form: Form  # in which the first layer was solved for
    hidden: tuple[Array, ...] | None  # the anchors at every layer, where they are kept

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.stack.layers)


def grow_levels(
    problem: Problem,
    anchors: Anchors,
    fitter: LayerFitter,
    noises: Sequence[float],
    depths: Sequence[int],
    place: Place,
    *,
    keeps_hidden: bool,
) -> Iterator[Level | None]:
    """Learn layer after layer at every noise level; yield a level at the wanted depths, None at the others.

    With `keeps_hidden` the anchors are kept at every layer, so that none is computed again.
    """
    reader, domain = _AnchorReader(problem, anchors, place), anchors.domain
    totals = [X.total(moments) if on_cluster(X) else moments(X) for X in problem.rows.values()]
    bottom = reader.measure_input(totals)
    first = start_gram(place.move_rows(anchors.X), domain, bottom)
    for i, noise in enumerate(noises):
        is_last = i == len(noises) - 1
        K, stack, hidden = first if is_last else first + 0, bottom, list[Array]()
        reader.start()
        form: Form | None = None
        for grown in fitter.fit(noise, max(depths), is_last=is_last):
            form = form or grown.form
            H, totals = reader.read(grown)
            stack = stack.grow(grown.layer, *reader.measure(H, totals))
            if keeps_hidden:
                hidden.append(H[: len(domain)] + 0)
            K = add_layer(K, H, domain, stack)
            del H
            depth = len(stack.layers)
            if depth not in depths:
                yield None
                continue
            products = K if depth == max(depths) else K + 0
            kept = tuple(hidden) if keeps_hidden else None
            yield Level(noise, stack, Gram(products, anchors.n_labelled, domain), form, kept)


def read_level(
    anchors: Anchors, stack: Stack, noise: float, form: Form, place: Place, *, keeps_hidden: bool = False
) -> Level:
    """Return the level of layers that were learnt before; `keeps_hidden` as for `grow_levels`."""
    rows, domain, kept = place.move_rows(anchors.X), anchors.domain, list[Array]()
    K = start_gram(rows, domain, replace(stack, means=stack.means[:1], shares=stack.shares[:1]))
    for depth, hidden in enumerate(hidden_rows(place.move_layers(stack.layers), rows), start=1):
        H = array_ops(hidden).empty_like(hidden, (len(domain) + len(stack.origin), hidden.shape[1]))
        H[: len(domain)] = hidden
        part = replace(stack, means=stack.means[: depth + 1], shares=stack.shares[: depth + 1])
        K = add_layer(K, H, domain, part)
        kept += [hidden] if keeps_hidden else []
    return Level(
        noise, stack, Gram(K, anchors.n_labelled, domain), form, tuple(kept) if keeps_hidden else None
    )


class _AnchorReader:
    """Brings the anchors to the next depth, and finds the centre of every domain and the scale there."""

    def __init__(self, problem: Problem, anchors: Anchors, place: Place) -> None:
        self._anchors, self._place, self._n_domains = anchors, place, len(problem.rows)
        self._is_remote = any(map(on_cluster, problem.rows.values()))
        codes, domain = problem.y[anchors.labelled], anchors.domain[: anchors.n_labelled]
        self._midpoints = combine_midpoints(codes, domain)
        counts = np.bincount(domain, minlength=self._n_domains)
        self._origin = counts / counts.sum()

    def start(self) -> None:
        """Return to the input."""
        self._rows = self._place.move_rows(self._anchors.X) if self._is_remote else None

    def read(self, grown: FittedLayer) -> tuple[Array, list[Moments]]:
        """Return the anchors after a layer, with room for one more row a domain, and the domains' moments."""
        domain, position, intercept = self._anchors.domain, self._anchors.position, grown.layer.intercept
        shape = len(domain) + self._n_domains, len(intercept)
        if self._is_remote:
            self._rows = grown.layer(self._rows)
            H = array_ops(self._rows).empty_like(self._rows, shape)
            H[: len(domain)] = self._rows
            return H, [blocks.total(moments) for blocks in grown.domains]
        H, totals = array_ops(intercept).empty_like(intercept, shape), []
        for k, blocks in enumerate(cast(list[Iterable[Rows]], grown.domains)):
            places = np.flatnonzero(domain == k)
            if not len(places) and grown.moments is not None:
                totals.append(grown.moments[k])
            else:
                totals.append(take_rows(blocks, position[places], H, places))
        return H, totals

    def measure_input(self, totals: Sequence[Moments]) -> Stack:
        """Return the stack without layers."""
        means, share = self.measure(self._anchors.X, totals)
        return Stack((), (means,), (share,), self._origin)

    def measure(self, rows: Rows, totals: Sequence[Moments]) -> tuple[np.ndarray, float]:
        """Return the centre of every domain, (n_domains, d), and the factor of inner products.

        The centre of a target is its mean, that of a source the midpoint of its classes. The factor makes the
        mean square norm of the rows of all domains 1. `rows` are the anchors.
        """
        share = 1 / (mean_square(totals, True) or 1.0)
        means, ops = np.array([total.mean for total in totals]), array_ops(rows)
        labelled = rows[: self._anchors.n_labelled].T
        for k, average in self._midpoints.items():
            means[k] = ops.to_numpy(labelled @ ops.like(average, rows))
        return means, share
