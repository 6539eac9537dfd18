"""Stacks of layers (section 3.3, Algorithm 2), and a first layer for many features (section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil

import numpy as np

from ..errors import warn
from .array import Array, Rows, array_ops, stack_rows
from .blocks import Blocks, sum_in_place
from .denoise import Layer, LayerOptions, SingularSystem, denoise, denoise_onto
from .form import Form, choose_form, hidden_form
from .row_form import NeedsColumns, denoise_in_rows
from .scatter import Moments, Scatter, cross_scatter, mean_square, moments, scatter


@dataclass(frozen=True)
class FittedLayer:
    """A layer of a stack, and the rows of every domain after it."""

    layer: Layer
    domains: list[Blocks]
    form: Form  # in which it was solved for
    moments: Sequence[Moments] | None = None  # of these rows, where they are known


@dataclass(frozen=True)
class PivotSplit:
    """The features that the first layer reconstructs, and the random parts that it reconstructs them from."""

    pivots: np.ndarray
    parts: list[np.ndarray]


class LayerSolver:
    """Fits a layer on the rows of all domains, for any noise, in the form that :mod:`.form` chooses.

    Computes once all that does not depend on the noise. With a `split`, the layer reconstructs its pivots.
    `is_hidden` says that the rows are the output of a layer.
    """

    def __init__(
        self, domains: Sequence[Blocks], split: PivotSplit | None = None, *, is_hidden: bool = False
    ) -> None:
        self._domains, self._split = domains, split
        n_pivots = None if split is None else len(split.pivots)
        gathered: list[list[Rows]] = []

        def is_few(n: int, d: int) -> bool:
            n += sum(block.shape[0] for rows in gathered for block in rows)
            return (hidden_form(n, d) if is_hidden else choose_form(n, d, n_pivots)) == "rows"

        for blocks in domains:  # until there is a row too many
            few = blocks.gather(is_few)
            if few is None:
                break
            gathered.append(few)
        is_whole = len(gathered) == len(domains)
        self._rows = stack_rows([block for rows in gathered for block in rows]) if is_whole else None
        self._sizes = [sum(block.shape[0] for block in rows) for rows in gathered]
        self._scatter: Scatter | None = None

    @property
    def form(self) -> Form:
        """The form that layers are solved for in."""
        if self._rows is not None:
            return "rows"
        return "terms" if self._split is None or len(self._split.parts) == 1 else "parts"

    def fit(self, *, noise: float, ridge: float, activation: str) -> FittedLayer:
        """Fit the layer of one noise level, and return it with the rows of every domain after it."""
        options = LayerOptions(noise=noise, ridge=ridge, activation=activation)
        if self._rows is not None:
            pivots = None if self._split is None else self._split.pivots
            try:
                layer, hidden = denoise_in_rows(self._rows, **options, targets=pivots)
                edges = pairwise(np.cumsum([0, *self._sizes]).tolist())
                parts = [hidden[start:stop] for start, stop in edges]
                domains = [blocks.map(layer, h) for blocks, h in zip(self._domains, parts, strict=True)]
                return FittedLayer(layer, domains, "rows")
            except NeedsColumns:  # a system that is singular, for whatever rows
                self._rows = None
        if self._split is None:
            layer = denoise(self.scatter, **options)
        else:
            layer = fit_pivot_layer(self._domains, self._split.pivots, self._split.parts, **options)
        return FittedLayer(layer, [blocks.map(layer) for blocks in self._domains], self.form)

    @property
    def scatter(self) -> Scatter:
        """Scatter of the rows of all domains."""
        if self._scatter is None:
            self._scatter = sum_in_place(blocks.total(scatter) for blocks in self._domains)
        return self._scatter

    @property
    def moments(self) -> Moments:
        """Moments of the rows of all domains."""
        return self.scatter.moments if self._rows is None else moments(self._rows)


def fit_layers(
    domains: Sequence[Blocks], n_layers: int, options: LayerOptions, first: FittedLayer | None = None
) -> Iterator[FittedLayer]:
    """Fit `n_layers` layers one after another (Algorithm 2), yielding each.

    `first` is a first layer that has been fitted already (section 4, or a grid that shares its solver).
    """
    given = domains
    for t in range(n_layers):
        if t == 0 and first is not None:
            fitted = first
        else:
            solver = LayerSolver(domains, is_hidden=t > 0)
            if t == 1:
                _check_variation(solver.moments, given)
            fitted = solver.fit(**options)
            del solver  # and the sums that it holds
        domains = fitted.domains
        yield fitted


def _check_variation(hidden: Moments, given: Sequence[Blocks]) -> None:
    """Warn of a first layer whose output is the same for all rows, though these differ."""
    is_zero = not hidden.to_host().energy.any()  # the system that is solved next says so
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


def choose_pivots(domains: Sequence[Blocks], d: int, n_pivots: int, rng: np.random.RandomState) -> PivotSplit:
    """Choose the features that occur in most of the rows, ties by column, and split all d at random.

    The parts are ``ceil(d / n_pivots)`` of nearly equal size.
    """
    counts = sum_in_place(
        blocks.total(lambda rows: array_ops(rows).nonzero_counts(rows)) for blocks in domains
    )
    order = np.argsort(-array_ops(counts).to_numpy(counts), kind="stable")
    parts = np.array_split(rng.permutation(d), ceil(d / n_pivots))
    return PivotSplit(np.sort(order[:n_pivots]), [np.sort(part) for part in parts])


def fit_pivot_layer(
    domains: Sequence[Blocks],
    pivots: np.ndarray,
    parts: Sequence[np.ndarray],
    noise: float,
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
            layer = denoise_onto(sum_in_place(blocks.total(products) for blocks in domains), noise, ridge)
        except SingularSystem as error:
            raise error.with_names(part.tolist()) from None
        if coef is None:
            n_features = sum(len(part) for part in parts)
            coef = array_ops(layer.coef).empty_like(layer.coef, (n_features, len(pivots)))
        coef[part] = layer.coef / len(parts)
        intercept = intercept + layer.intercept / len(parts)
    return Layer(coef, intercept, activation)
