"""Layers of every noise level, learnt from the rows of all domains, and their running Gram matrix.

Inner products of ``[h^0, ..., h^l]``, which is never built, are sums over its layers. Every layer is centred
by domain and scaled to a mean square norm of 1, so that all layers count alike.

Anchors are the rows whose inner products are kept. Up to `GRAM_LIMIT` labelled rows all are anchors. Above it
a sample of them is, and the classifier itself is trained on sums over all rows (`solve`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from ..core import (
    Array,
    Blocks,
    FittedLayer,
    Layer,
    LayerSolver,
    Moments,
    PivotSplit,
    Rows,
    add_domain_centred_gram,
    array_ops,
    domain_centred_gram,
    fit_layers,
    mean_square,
    moments,
    stack_rows,
    take_rows,
)
from ..inputs import Place, check_choice, check_pivots, gather_rows, half_of_memory, on_cluster
from . import constants
from .align import combine_midpoints
from .domains import UNLABELLED, Domains, Name
from .solve import draw_labelled_rows, mean_diagonal


@dataclass(frozen=True)
class Stack:
    """Layers on the input, and the centre and the scale of each of ``h^0, ..., h^l``."""

    layers: tuple[Layer, ...]
    means: tuple[np.ndarray, ...]  # each (n_domains, d_t); zeros without centring
    shares: tuple[float, ...]  # factors of their inner products

    def move_means(self, moves: Sequence[np.ndarray] | None) -> list[np.ndarray]:
        """Return the vectors to subtract from rows that `moves`, (d_t, n_domains) each, are added to."""
        if moves is None:
            return list(self.means)
        return [means - move.T for means, move in zip(self.means, moves, strict=True)]


def score_centres(centres: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Score the centre of each domain: (n_domains, n_outputs)."""
    return np.sum([centre @ w for centre, w in zip(centres, weights, strict=True)], axis=0, dtype=float)


class LayerFitter:
    """Learns the layers of every noise level from rows of each domain; sums over the input serve all levels.

    `split` has the pivots of the first layer (section 4).
    """

    def __init__(
        self, domains: list[Blocks], split: PivotSplit | None = None, *, ridge: float = constants.RIDGE
    ) -> None:
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


def count_pivots(n_pivots: Any, d: int, n_rows: int, n_layers: int) -> int | None:
    """Return the number of features that the first layer reconstructs; None for all d of them."""
    if not isinstance(n_pivots, str):
        return None if n_pivots is None else check_pivots(n_pivots, d)
    most = constants.MOST_PIVOTS[check_choice(n_pivots, "n_pivots", tuple(constants.MOST_PIVOTS))]
    limit = limit_pivots(most, d, n_rows, n_layers, half_of_memory())
    return None if limit >= d else limit


def limit_pivots(most: int, d: int, n_rows: int, n_layers: int, memory: float) -> int:
    """Return the largest number of pivots, `most` at most, that the rows can use and the memory can hold.

    Layers of p pivots, the first of d features, and the systems that they solve are
    ``p (d + (n_layers + 3) p)`` numbers of four bytes, which may take half of the memory.
    """
    n_squares = n_layers + 3
    fitting = int((np.sqrt(d**2 + n_squares * memory / 2) - d) / (2 * n_squares))
    return max(1, min(most, fitting, max(constants.LEAST_PIVOTS, constants.PIVOTS_PER_ROW * n_rows)))


@dataclass(frozen=True)
class Anchors:
    """Labelled rows first, then target rows."""

    X: Rows
    domain: np.ndarray  # (n,) position of each row's domain
    position: np.ndarray  # (n,) row number of each row within its domain; ascending for each domain
    labelled: np.ndarray  # (n_labelled,) numbers of the labelled anchors among all labelled rows
    target_codes: np.ndarray  # (n - n_labelled,) classes of the target anchors, `UNLABELLED` for most
    needs_sums: bool  # whether labelled rows that are no anchors are trained on too

    @property
    def n_labelled(self) -> int:
        """Number of labelled anchors."""
        return len(self.labelled)

    def list_target_rows(self, domains: Domains) -> list[np.ndarray]:
        """Return the anchors of every target, counted from the first target anchor."""
        groups = [np.flatnonzero(self.domain[self.n_labelled :] == k) for k in domains.target_positions]
        if not all(map(len, groups)):
            raise ValueError(
                f"{len(groups)} targets are too many to align one by one: join small ones, or use "
                'center="domains"'
            )
        return groups


def draw_anchors(
    domains: Domains,
    n_columns: int,
    random_state: np.random.RandomState,
    *,
    seed: object,
    self_training: bool,
) -> Anchors:
    """Draw the anchors among labelled rows and target rows.

    Target rows that have a label are always among them, and those that a teacher labelled are preferred.
    `n_columns` counts the columns of the input and all layers together. Labelled rows have a `seed` of their
    own: nothing else that is drawn depends on how many they are.
    """
    labelled = np.arange(len(domains.y))
    n_labelled = count_labelled_anchors(len(labelled), n_columns)
    if n_labelled < len(labelled):
        labelled = draw_labelled_rows(domains.y, n_labelled, check_random_state(seed))
    allotted = _allot_target_anchors(domains, n_labelled, self_training)
    matrices, domain = [domains.labelled[labelled]], [domains.domain[labelled]]
    position, codes = [domains.position[labelled]], [np.zeros(0, dtype=int)]
    for k, name in zip(domains.target_positions, domains.targets, strict=True):
        drawn = _draw_target_rows(domains, name, allotted[name], random_state)
        if len(drawn) == 0:
            continue
        matrices.append(gather_rows(domains.rows[name][drawn]))
        domain.append(np.full(len(drawn), k))
        position.append(drawn)
        codes.append(domains.codes[name][drawn])
    parts = np.concatenate(domain), np.concatenate(position), labelled, np.concatenate(codes)
    needs_sums = len(labelled) < len(domains.y) and n_columns <= constants.MOST_COLUMNS
    return Anchors(stack_rows(matrices), *parts, needs_sums)


def _draw_target_rows(
    domains: Domains, name: Name, n: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw n rows of a target, first those that a teacher labelled; and all that have a label."""
    codes = domains.codes[name]
    if len(codes) <= n:
        return np.arange(len(codes))
    if name in domains.words:
        order = random_state.permutation(len(codes))
        is_silent = domains.words[name].codes[order] == UNLABELLED
        drawn = order[np.argsort(is_silent, kind="stable")[:n]]
    else:
        drawn = random_state.choice(len(codes), n, replace=False) if n else np.arange(0)
    return np.union1d(drawn, np.flatnonzero(codes != UNLABELLED))


def count_labelled_anchors(n: int, n_columns: int) -> int:
    """Return how many of n labelled rows are anchors.

    Rows of too many columns for sums of their products are trained on by inner products, of a sample.
    """
    most = constants.GRAM_LIMIT
    if n <= most:
        return n
    return min(constants.SAMPLED_ROWS, most) if n_columns <= constants.MOST_COLUMNS else most


def _allot_target_anchors(domains: Domains, n_labelled: int, self_training: bool) -> dict[Name, int]:
    """Return how many rows of each target become anchors, beside `n_labelled` labelled rows.

    All of a target that is smaller than an equal part, and equal parts of the others. With many targets there
    are more, so that the class shares of each can be estimated, up to `ANCHOR_LIMIT`.
    """
    n_left = constants.COMPARED_ROWS
    if self_training:
        is_sample = n_labelled <= constants.SAMPLED_ROWS < len(domains.y)
        n_others = constants.ANCHOR_LIMIT - (0 if is_sample else n_labelled)
        n_left = min(constants.TARGET_ROWS, max(n_others, n_left))
    n_left = max(n_left, min(constants.LEAST_ROWS * len(domains.targets), constants.ANCHOR_LIMIT))
    sizes = {name: len(domains.codes[name]) for name in domains.targets}
    allotted: dict[Name, int] = {}
    for i, name in enumerate(sorted(sizes, key=lambda name: sizes[name])):
        allotted[name] = min(sizes[name], n_left // (len(sizes) - i))
        n_left -= allotted[name]
    return allotted


@dataclass(frozen=True)
class Level:
    """One depth of a stack, and the inner products of the anchors summed up to it."""

    noise: float
    stack: Stack
    K: Array  # (n_anchors, n_anchors)
    mean_products: np.ndarray  # (n_anchors, n_domains) of the centred anchors and the centres
    scale: float  # mean of the diagonal of K over labelled rows
    hidden: list[Array] | None  # the anchors at every layer, where they are kept

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.stack.layers)


def grow_levels(
    domains: Domains,
    anchors: Anchors,
    layers: Any,
    noises: Sequence[float],
    n_layers: int,
    center: str | bool,
    place: Place,
    *,
    keeps_hidden: bool,
) -> Iterator[Level]:
    """Yield the input, then every depth of every noise level. `K` of a level changes with the next one.

    `layers` is a `LayerFitter`, or anything that has its `fit`. With `keeps_hidden` anchors are kept at every
    layer, so that none is computed again.
    """
    reader, n, domain = _AnchorReader(domains, anchors, center, place), anchors.n_labelled, anchors.domain
    totals = [X.total(moments) if on_cluster(X) else moments(X) for X in domains.rows.values()]
    means, share = reader.measure(anchors.X, totals)
    X, bottom = place.move_rows(anchors.X), Stack((), (means,), (share,))
    first, first_products = share * domain_centred_gram(X, means, domain), share * _project(X, means, domain)
    yield Level(0.0, bottom, first, first_products, mean_diagonal(first, n), None)
    for i, noise in enumerate(noises):
        is_last = i == len(noises) - 1
        K, products, stack = first if is_last else first + 0, first_products, bottom
        hidden: list[Array] | None = [] if keeps_hidden else None
        reader.start()
        for grown in layers.fit(noise, n_layers, is_last=is_last):
            H, totals = reader.read(grown)
            means, share = reader.measure(H, totals)
            if hidden is not None:
                hidden.append(H + 0)  # centring overwrites
            products = products + share * _project(H, means, domain)
            K = add_domain_centred_gram(K, H, means, domain, share)
            del H
            stack = Stack((*stack.layers, grown.layer), (*stack.means, means), (*stack.shares, share))
            yield Level(noise, stack, K, products, mean_diagonal(K, n), hidden)


def _project(H: Rows, means: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Return inner products of centred rows with the centres of all domains: (n, n_domains)."""
    ops = array_ops(H)
    return ops.to_numpy(H @ ops.like(means.T, H)) - (means @ means.T)[domain]


class _AnchorReader:
    """Brings the anchors to the next depth, and finds the centre of every domain and the scale there."""

    def __init__(self, domains: Domains, anchors: Anchors, center: str | bool, place: Place) -> None:
        self._anchors, self._center, self._place = anchors, bool(center), place
        self._is_remote = any(map(on_cluster, domains.rows.values()))
        codes, domain = domains.y[anchors.labelled], anchors.domain[: anchors.n_labelled]
        self._midpoints = combine_midpoints(codes, domain, counts_alike=center == "classes")

    def start(self) -> None:
        """Return to the input."""
        self._rows = self._place.move_rows(self._anchors.X) if self._is_remote else None

    def read(self, grown: FittedLayer) -> tuple[Array, list[Moments]]:
        """Return the anchors after a layer, and the moments of every domain there."""
        if self._is_remote:
            self._rows = grown.layer(self._rows)
            return self._rows + 0, [blocks.total(moments) for blocks in grown.domains]
        domain, position, intercept = self._anchors.domain, self._anchors.position, grown.layer.intercept
        H, totals = array_ops(intercept).empty_like(intercept, (len(domain), len(intercept))), []
        for k, blocks in enumerate(cast(list[Iterable[Rows]], grown.domains)):
            places = np.flatnonzero(domain == k)
            if not len(places) and grown.moments is not None:
                totals.append(grown.moments[k])
            else:
                totals.append(take_rows(blocks, position[places], H, places))
        return H, totals

    def measure(self, rows: Rows, totals: Sequence[Moments]) -> tuple[np.ndarray, float]:
        """Return the centre of every domain, (n_domains, d), and the factor of inner products.

        The centre is the mean of the domain, or the midpoint of a source's classes. The factor makes the mean
        square norm of the rows of all domains 1. `rows` are the anchors.
        """
        share = 1 / (mean_square(totals, self._center) or 1.0)
        means, ops = np.array([total.mean for total in totals]), array_ops(rows)
        if not self._center:
            return np.zeros_like(means), share
        labelled = rows[: self._anchors.n_labelled].T
        for k, average in self._midpoints.items():
            means[k] = ops.to_numpy(labelled @ ops.like(average, rows))
        return means, share
