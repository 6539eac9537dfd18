"""Layers of every noise level, learnt from the rows of all domains, and the Gram matrix at their depths.

Inner products of ``[h^0, ..., h^l]``, which is never built, are sums over its layers. At every layer the rows
of a domain are less the centre of that domain, and scaled so that their mean square norm is 1: all layers
then count alike. The centres themselves are further rows, so that a story that moves a domain needs no row
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..core import (
    Array,
    FittedLayer,
    Form,
    Layer,
    LayerOptions,
    LayerSolver,
    Moments,
    PivotSplit,
    Rows,
    StoredBlocks,
    StreamedBlocks,
    add_domain_centred_gram,
    array_ops,
    choose_pivots,
    domain_centred_cross,
    domain_centred_gram,
    fit_layers,
    hidden_rows,
    mean_square,
    moments,
    primal_weights,
    row_slices,
    stack_rows,
    take_rows,
)
from ..inputs import Place, check_choice, check_pivots, half_of_memory, on_cluster, place_rows
from .anchors import Anchors, Seed, combine_midpoints
from .least_squares import Gram
from .problem import Problem
from .settings import LayerSettings

PIVOT_CHOICES = {"auto": 1.0, "few": 0.5, "many": 1.6}  # against the usual number of pivots


@dataclass(frozen=True)
class Learning:
    """Layers of every noise level, each of which is learnt when it is iterated to."""

    by_noise: Mapping[float, Iterable[FittedLayer]]
    split: PivotSplit | None = None  # with pivots


def learn_layers(
    problem: Problem, settings: LayerSettings, place: Place, seed: Seed, noises: Sequence[float] | None = None
) -> Learning:
    """Learn layers from the rows of all domains; sums over the input serve all noise levels.

    The noise is that of the settings, unless there are several. Rows are computed at `place`, in whose
    precision the layers are to be iterated.
    """
    rows, noises = list(problem.rows.values()), noises or (settings.noise,)
    n_pivots = count_pivots(problem, settings)
    blocks = [place_rows(X, place, n_pivots or 0) for X in rows]
    split = None
    if n_pivots is not None:
        split = choose_pivots(blocks, rows[0].shape[1], n_pivots, check_random_state(seed))
    solvers = [LayerSolver(blocks, split)] * len(noises)  # freed with the last of them

    def learn(noise: float) -> Iterator[FittedLayer]:
        options = LayerOptions(noise=noise, ridge=settings.ridge, activation="tanh")
        yield from fit_layers(blocks, settings.n_layers, options, solvers.pop().fit(**options))

    return Learning({noise: learn(noise) for noise in noises}, split)


def count_pivots(problem: Problem, settings: LayerSettings) -> int | None:
    """Return the number of features that the first layer reconstructs; None for all of them."""
    given, d = settings.n_pivots, next(iter(problem.rows.values())).shape[1]
    if not isinstance(given, str):
        return None if given is None else check_pivots(given, d)
    check_choice(given, "n_pivots", tuple(PIVOT_CHOICES))
    most = round(PIVOT_CHOICES[given] * settings.most_pivots)
    limit = limit_pivots(settings, most, d, sum(problem.sizes), half_of_memory())
    return None if limit >= d else limit


def limit_pivots(settings: LayerSettings, most: int, d: int, n_rows: int, memory: float) -> int:
    """Return the largest number of pivots that the rows can use and the memory can hold.

    Layers of p pivots, the first of d features, and the systems that they solve are
    ``p (d + (n_layers + 3) p)`` numbers of four bytes, which may take half of the memory.
    """
    n_squares = settings.n_layers + 3
    fitting = int((np.sqrt(d**2 + n_squares * memory / 2) - d) / (2 * n_squares))
    useful = max(settings.most_pivots // 2, settings.pivots_per_row * n_rows)
    return max(1, min(most, fitting, useful))


@dataclass(frozen=True)
class Stack:
    """Layers on the input, and the centre and the scale of each of ``h^0, ..., h^l``."""

    layers: tuple[Layer, ...]
    means: tuple[np.ndarray, ...]  # of every depth, (n_domains, d_t): the centres
    shares: tuple[float, ...]  # of every depth, the factor of its inner products
    origin: np.ndarray  # (n_domains,) weights of the centres: their mean is where centres are measured from


@dataclass(frozen=True)
class Level:
    """A stack of some depth, and the inner products of the anchors and the centres there."""

    noise: float
    stack: Stack
    gram: Gram
    form: Form  # in which the first layer was solved for
    hidden: tuple[tuple[Array, ...], ...] | None  # centred anchors at every layer, in parts, where kept

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.stack.layers)

    def read(self, X: Rows, place: Place) -> Iterator[tuple[Rows, np.ndarray | None]]:
        """Yield the given anchors at the input and at every layer, and the centres yet to be subtracted."""
        yield X, self.stack.means[0]
        if self.hidden is not None:
            yield from ((stack_rows(parts), None) for parts in self.hidden)
        else:
            layers, means = place.move_layers(self.stack.layers), self.stack.means[1:]
            yield from zip(hidden_rows(layers, place.move_rows(X)), means, strict=True)

    def combine(self, anchors: Anchors, dual: np.ndarray, place: Place) -> list[np.ndarray]:
        """Return ``sum_i dual_i (h_i - mean_domain(i))`` over anchors, at the input and at every layer.

        Hidden rows that are not kept are computed again, a block at a time.
        """
        n, width = len(anchors.domain), max(means.shape[1] for means in self.stack.means[1:])
        blocks = [slice(0, n)] if self.hidden is not None else row_slices(n, width)
        combined = [np.zeros((), np.float32)] * len(self.stack.means)
        for rows in blocks:
            for depth, (H, means) in enumerate(self.read(anchors.X[rows], place)):
                combined[depth] = combined[depth] + primal_weights(H, means, anchors.domain[rows], dual[rows])
        return combined


def grow_levels(
    problem: Problem,
    anchors: Anchors,
    learning: Learning,
    depths: Sequence[int],
    place: Place,
    *,
    keeps_hidden: bool,
) -> Iterator[Level | None]:
    """Learn layer after layer at every noise level; yield a level at the wanted depths, None at the others.

    With `keeps_hidden` the anchors are kept at every layer, so that none is computed again. Inner products
    are folded while hidden rows are there: half of the matrix says all.
    """
    reader, domain = _AnchorReader(problem, anchors, place), anchors.domain
    totals = [X.total(moments) if on_cluster(X) else moments(X) for X in problem.rows.values()]
    means, share = reader.measure(anchors.X, totals)
    bottom = Stack((), (means,), (share,), reader.origin)
    first = start_gram(place.move_rows(anchors.X), domain, reader.origin, means, share)
    noises = list(learning.by_noise)
    for noise, layers in learning.by_noise.items():
        folded = first if noise == noises[-1] else first + 0
        stack, hidden = bottom, list[tuple[Array]]()
        reader.start()
        form: Form | None = None
        for grown in layers:
            form = form or grown.form
            depth = len(stack.layers) + 1
            H, totals = reader.read(grown, is_last=depth == max(depths))
            means, share = reader.measure(H, totals)
            folded = add_layer(folded, H, domain, reader.origin, means, share)
            stack = Stack(
                (*stack.layers, grown.layer), (*stack.means, means), (*stack.shares, share), stack.origin
            )
            if keeps_hidden:
                hidden.append((H[: len(domain)],))
            del H
            if depth not in depths:
                yield None
                continue
            gram = Gram(array_ops(folded).unfold(folded), anchors.n_labelled, domain)
            yield Level(noise, stack, gram, form, tuple(hidden) if keeps_hidden else None)


def read_level(
    anchors: Anchors, stack: Stack, noise: float, form: Form, place: Place, *, keeps_hidden: bool = False
) -> Level:
    """Return the level of layers that were learnt before; `keeps_hidden` as for `grow_levels`."""
    rows, domain, kept = place.move_rows(anchors.X), anchors.domain, list[tuple[Array]]()
    folded = start_gram(rows, domain, stack.origin, stack.means[0], stack.shares[0])
    layers = place.move_layers(stack.layers)
    for hidden, means, share in zip(
        hidden_rows(layers, rows), stack.means[1:], stack.shares[1:], strict=True
    ):
        H = array_ops(hidden).empty_like(hidden, (len(domain) + len(stack.origin), hidden.shape[1]))
        H[: len(domain)] = hidden
        folded = add_layer(folded, H, domain, stack.origin, means, share)
        kept += [(H[: len(domain)],)] if keeps_hidden else []
    gram = Gram(array_ops(folded).unfold(folded), anchors.n_labelled, domain)
    return Level(noise, stack, gram, form, tuple(kept) if keeps_hidden else None)


def extend_level(level: Level, anchors: Anchors, place: Place) -> Level:
    """Return the level with anchors that were added at the end; only these are read, if rows are kept."""
    stack, products, n, n_all = level.stack, level.gram.products, len(level.gram.domain), len(anchors.domain)
    ops, added, parts = array_ops(products), place.move_rows(anchors.X[n:]), list[Array]()
    K = ops.empty_like(products, (n_all + len(stack.origin),) * 2)
    K[:n, :n], K[:n, n_all:] = products[:n, :n], products[:n, n:]
    K[n_all:, :n], K[n_all:, n_all:] = products[n:, :n], products[n:, n:]
    K[n:n_all] = 0
    all_known = level.read(place.move_rows(anchors.X[:n]), place)
    all_new = chain([added], hidden_rows(place.move_layers(stack.layers), added))
    for (known, subtracted), new, means, share in zip(
        all_known, all_new, stack.means, stack.shares, strict=True
    ):
        centres, owner = _find_centres(means, anchors.domain, stack.origin)
        own, of_known = owner[n:n_all], None if subtracted is None else owner[:n]
        with ops.full_precision():
            K[n:n_all, :n] += share * domain_centred_cross(new, known, centres, own, of_known)
            rest = _add_centres(new, means)
            K[n:n_all, n:] += share * domain_centred_cross(new, rest, centres, own, owner[n:])
        if new is not added:
            parts.append(new - ops.like(means, new)[own])
    K[:, n:n_all] = K[n:n_all].T
    hidden = None
    if level.hidden is not None:
        hidden = tuple((*kept, part) for kept, part in zip(level.hidden, parts, strict=True))
    return replace(level, gram=Gram(K, anchors.n_labelled, anchors.domain), hidden=hidden)


def _add_centres(X: Rows, means: np.ndarray) -> Rows:
    """Return rows at the input, or at a layer, and then the centres of the domains."""
    added = sp.csr_array(means.astype(X.dtype)) if sp.issparse(X) else array_ops(X).like(means, X)
    return stack_rows([X, added])


def start_gram(X: Rows, domain: np.ndarray, origin: np.ndarray, means: np.ndarray, share: float) -> Array:
    """Return the inner products at the input, folded."""
    ops = array_ops(X)
    with ops.full_precision():
        K = domain_centred_gram(_add_centres(X, means), *_find_centres(means, domain, origin))
    K *= share
    return ops.fold(K)


def add_layer(
    folded: Array, H: Array, domain: np.ndarray, origin: np.ndarray, means: np.ndarray, share: float
) -> Array:
    """Add the inner products after a layer to folded ones, in their memory.

    `H` has the anchors and one more row for each domain. It is overwritten by them less what is subtracted.
    """
    ops = array_ops(H)
    H[len(domain) :] = ops.like(means, H)
    centres, owner = _find_centres(means, domain, origin)
    with ops.full_precision():  # so that no rounding makes the matrix indefinite
        return add_domain_centred_gram(folded, H, centres, owner, share)


def _find_centres(means: np.ndarray, domain: np.ndarray, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what is subtracted: for anchors the centre of their domain, for centres the origin."""
    owner = np.concatenate([domain, np.full(len(means), len(means))])
    return np.vstack([means, origin @ means]), owner


class _AnchorReader:
    """Brings the anchors to the next depth, and finds the centre of every domain and the scale there."""

    def __init__(self, problem: Problem, anchors: Anchors, place: Place) -> None:
        self._anchors, self._place, self._n_domains = anchors, place, len(problem.rows)
        self._is_remote = any(map(on_cluster, problem.rows.values()))
        codes, domain = problem.y[anchors.labelled], anchors.domain[: anchors.n_labelled]
        self._midpoints = combine_midpoints(codes, domain)
        counts = np.bincount(domain, minlength=self._n_domains)
        self.origin = counts / counts.sum()

    def start(self) -> None:
        """Return to the input."""
        self._rows = self._place.move_rows(self._anchors.X) if self._is_remote else None

    def read(self, grown: FittedLayer, *, is_last: bool) -> tuple[Array, list[Moments]]:
        """Return the anchors after a layer, with room for one more row a domain, and the domains' moments.

        After the last layer the other rows are let go.
        """
        domain, position, intercept = self._anchors.domain, self._anchors.position, grown.layer.intercept
        shape = len(domain) + self._n_domains, len(intercept)
        if self._is_remote:
            self._rows = grown.layer(self._rows)
            H = array_ops(self._rows).empty_like(self._rows, shape)
            H[: len(domain)] = self._rows
            return H, [blocks.total(moments) for blocks in grown.domains]
        H, totals = array_ops(intercept).empty_like(intercept, shape), []
        for k, blocks in enumerate(cast(list[StoredBlocks | StreamedBlocks], grown.domains)):
            places = np.flatnonzero(domain == k)
            if not len(places) and grown.moments is not None:
                totals.append(grown.moments[k])
            else:
                rows = blocks.drain() if is_last else blocks
                totals.append(take_rows(rows, position[places], H, places))
        return H, totals

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
