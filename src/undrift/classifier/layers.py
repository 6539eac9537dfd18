"""The layers of a search: learnt for it alone, or once for the searches of several tasks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .._core import (
    Blocks,
    FittedLayer,
    Moments,
    PivotSplit,
    denoise,
    fit_layers,
    fit_pivot_layer,
    mean_square,
    moments,
    pooled_scatter,
)


@dataclass(frozen=True)
class MeasuredLayer(FittedLayer):
    """A new layer, and the moments of every domain after it."""

    moments: Sequence[Moments]


class LayerFitter:
    """Learns the layers of every noise level from the rows of all domains.

    Parameters
    ----------
    domains : list of Blocks
        What the first layer sees of the rows of each domain.
    upper : list of Blocks, optional
        Some of the rows, from which all other layers are learnt; by default all of them.
    layer_options : dict
        `ridge` and `activation`.
    split : PivotSplit, optional
        Pivots of the first layer (section 4).
    """

    def __init__(
        self,
        domains: list[Blocks],
        upper: list[Blocks] | None,
        layer_options: dict[str, Any],
        split: PivotSplit | None,
    ) -> None:
        self.split, self.is_sample = split, upper is not None
        self._domains, self._upper, self._layer_options = domains, upper, layer_options
        self._scatter: Any = pooled_scatter(domains) if split is None else None  # for every noise level

    def fit(self, noise: float, n_layers: int, *, is_last: bool = False) -> Iterator[FittedLayer]:
        """Yield the layers of one noise level; after the last level the scatter of the input is freed."""
        options = {"noise": noise, **self._layer_options}
        if self.split is None:
            first = denoise(self._scatter, **options)
        else:
            first = fit_pivot_layer(self._domains, self.split.pivots, self.split.parts, **options)
        if is_last:
            self._scatter = None
        yield from fit_layers(self._upper or self._domains, n_layers, partial(denoise, **options), first)


class SharedLayers:
    """Layers that the searches of several tasks need, each learnt once, by the first that asks for it.

    The tasks have the same rows in the same domains, and their classifiers the same parameters. Domain k has
    the number k in tasks where it is a source, and -1 - k where it is the target. Searches should proceed
    layer by layer together: rows of a depth that has passed are computed again.
    """

    def __init__(self) -> None:
        self.seconds: dict[tuple[float, int], float] = {}  # from the rows to each noise and depth
        self._fitter: LayerFitter | None = None
        self._names: list[int] = []
        self.total_seconds = 0.0  # of all layers that were learnt
        self._first_seconds = 0.0
        self._growing: dict[float, _GrowingStack] = {}

    def join(self, numbers: Sequence[int], make_fitter: Callable[[], LayerFitter]) -> SharedFitter:
        """Return the layers for a task whose domains have these numbers, in this order."""
        names = [number if number >= 0 else -1 - number for number in numbers]
        if self._fitter is None:
            began = time.perf_counter()
            self._fitter, self._names = make_fitter(), names
            self._first_seconds = self.total_seconds = time.perf_counter() - began
        return SharedFitter(self, self._fitter, [self._names.index(name) for name in names])

    def fit(self, noise: float, n_layers: int) -> Iterator[MeasuredLayer]:
        """Yield the layers of one noise level, learning those that no search has asked for yet."""
        assert self._fitter is not None
        if noise not in self._growing:
            self._growing[noise] = _GrowingStack(self._fitter.fit(noise, sys.maxsize))
        stack = self._growing[noise]
        stack.n_users += 1
        try:
            for t in range(n_layers):
                if t == len(stack.layers):
                    self._learn_next(noise, stack)
                yield stack.layers[t]
        finally:
            stack.n_users -= 1
            if not stack.n_users:
                self._growing.pop(noise, None)

    def _learn_next(self, noise: float, stack: _GrowingStack) -> None:
        began, depth = time.perf_counter(), len(stack.layers)
        fitted = next(stack.fits)
        totals = [blocks.total(moments) for blocks in fitted.domains]
        mean_square(totals, False)  # a number: whatever the device, the rows have arrived
        stack.layers.append(MeasuredLayer(fitted.layer, fitted.domains, totals))
        seconds = time.perf_counter() - began
        self.total_seconds += seconds
        before = self.seconds[noise, depth] if depth else self._first_seconds
        self.seconds[noise, depth + 1] = before + seconds


@dataclass
class _GrowingStack:
    fits: Iterator[FittedLayer]
    layers: list[MeasuredLayer] = field(default_factory=list)
    n_users: int = 0


@dataclass(frozen=True)
class SharedFitter:
    """The shared layers as one task sees them: its domains come in the order of `order`."""

    shared: SharedLayers
    fitter: LayerFitter
    order: list[int]

    @property
    def split(self) -> PivotSplit | None:
        """Pivots of the first layer."""
        return self.fitter.split

    @property
    def is_sample(self) -> bool:
        """Whether only some of the rows pass the layers."""
        return self.fitter.is_sample

    def fit(self, noise: float, n_layers: int, *, is_last: bool = False) -> Iterator[FittedLayer]:
        """Yield the layers of one noise level."""
        for fitted in self.shared.fit(noise, n_layers):
            domains = [fitted.domains[i] for i in self.order]
            yield MeasuredLayer(fitted.layer, domains, [fitted.moments[i] for i in self.order])
