"""Rows on a Dask cluster: `map` and `total` on blocks that stay on their workers.

A total is summed on the workers, in a tree, and one value comes here; a layer is solved for here and
sent once. Hidden rows stay on the worker that made them, and every block can be computed again from its
source when a worker dies.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed
from dask.sizeof import sizeof
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..core import (
    BLOCK_ENTRIES,
    CrossScatter,
    IsFew,
    Layer,
    Moments,
    RowCoef,
    Rows,
    Scatter,
    array_ops,
    row_slices,
    split_rows,
    stack_rows,
)
from ..inputs import check_matrix, check_place, column_sums, gather_rows, place_rows
from .cluster import Stage, assign_workers, compute, find_client, find_workers, literal, persist, tree_sum

T = TypeVar("T")
SUM_ROWS = 4096  # a scatter costs d^2 to add, however few the rows of its block: not fewer than these


def n_bytes(noun: Any) -> int:
    """Size of a noun by its fields: Dask places and spills by size, and would see an empty object."""
    return sum(sizeof(getattr(noun, field.name)) for field in fields(noun))


for _noun in (Scatter, CrossScatter, Moments, Layer, RowCoef):
    sizeof.register(_noun, n_bytes)


@dataclass(frozen=True)
class BlockFacts:
    """Size and type of one block, as the client knows them."""

    n_rows: int
    n_columns: int
    dtype: np.dtype
    sparse: bool


class SentLayer:
    """A layer and its copy on the cluster, sent when it is first needed; one for all domains."""

    _all: WeakValueDictionary[int, SentLayer] = WeakValueDictionary()

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self._on_cluster: Delayed | None = None

    @classmethod
    def find(cls, layer: Layer) -> SentLayer:
        """Return the entry of `layer`; while it lives, no other object has the layer's identity."""
        sent = cls._all.get(id(layer)) or cls(layer)
        cls._all[id(layer)] = sent
        return sent

    @property
    def on_cluster(self) -> Delayed:
        """The layer in the graph."""
        if self._on_cluster is None:
            (self._on_cluster,) = persist(literal(self.layer, "layer"))
        return self._on_cluster


class OnDask:
    """Rows of one domain in blocks on a cluster, with the methods of a matrix that a fit needs.

    As :class:`~undrift.core.blocks.StoredBlocks`: `map` is lazy, and a layer's output takes the place of the
    rows before it. Only a cluster can spill, so only there are hidden rows kept. The first layer's output on
    sparse rows is never kept: it is dense, and costs little to compute again.
    """

    def __init__(self, blocks: Sequence[Delayed], facts: Sequence[BlockFacts], device: str = "cpu"):
        self._blocks = list(blocks)
        self._sizes = [block.n_rows for block in facts]
        self._sparse = any(block.sparse for block in facts)
        self._n_columns = max(block.n_columns for block in facts)
        dtypes = {block.dtype for block in facts}
        self.dtype, self._is_mixed = np.result_type(*dtypes), len(dtypes) > 1
        self._device = device  # of the estimator: where workers do their arithmetic
        self._layers: tuple[SentLayer, ...] = ()
        self._before: OnDask | None = None
        self._hidden: list[Delayed] | None = None  # blocks after the layers, where they are kept

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns, before any layer."""
        return sum(self._sizes), self._n_columns

    def _like(self, **changes: Any) -> OnDask:
        other = object.__new__(OnDask)
        vars(other).update(vars(self), **changes)
        return other

    @classmethod
    def stack(cls, domains: Sequence[OnDask]) -> OnDask:
        """Return the rows of several domains, none of them behind a layer, one after another."""
        facts = [
            BlockFacts(n, rows.shape[1], rows.dtype, rows._sparse) for rows in domains for n in rows._sizes
        ]
        return cls([block for rows in domains for block in rows._blocks], facts, domains[0]._device)

    def gather(self, is_few: IsFew) -> list[Rows] | None:
        """Bring the rows here, as one matrix, where they are few and behind no layer; None elsewhere."""
        return [self.collect()] if not self._layers and is_few(*self.shape) else None

    def map(self, layer: Layer, hidden: object = None) -> OnDask:
        """Return the same rows after `layer`, computed on the workers when they are needed."""
        return self._like(_layers=(*self._layers, SentLayer.find(layer)), _before=self, _hidden=None)

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum of `fn` over blocks, added on the workers; one value comes here."""
        blocks, pending = self._find_deepest()
        keeps = len(self._layers) > int(self._sparse) and find_client(self._blocks) is not None
        if keeps and pending:
            hidden, workers = self._make_hidden(blocks, pending)
            (result, *self._hidden) = persist(self._sum_blocks(hidden, (), fn, workers), *hidden)
            ancestor = self._before
            while ancestor is not None:  # workers drop shallower rows, each block once its successor is there
                ancestor._hidden, ancestor = None, ancestor._before
        else:
            (result,) = persist(self._sum_blocks(blocks, pending, fn, find_workers(blocks)))
        return compute(result)[0]

    def _find_deepest(self) -> tuple[list[Delayed], tuple[SentLayer, ...]]:
        """Return the deepest blocks at hand, and the layers that they have yet to pass."""
        ancestor: OnDask | None = self
        while ancestor is not None:
            if ancestor._hidden is not None:
                return ancestor._hidden, self._layers[len(ancestor._layers) :]
            ancestor = ancestor._before
        return self._blocks, self._layers

    def _make_hidden(
        self, blocks: list[Delayed], pending: tuple[SentLayer, ...]
    ) -> tuple[list[Delayed], list[str | None]]:
        """Lazy hidden rows, in blocks small enough that a worker can hold a few, and where they will be."""
        stage, device = Stage(f"hidden-{len(self._layers)}"), self._device
        layers = [sent.on_cluster for sent in pending]
        workers = find_workers(blocks)
        if blocks is self._blocks:
            width = max(sent.layer.coef.shape[1] for sent in self._layers)
            cuts = [
                (block, worker, rows)
                for block, worker, n in zip(blocks, workers, self._sizes, strict=True)
                for rows in row_slices(n, width, max(BLOCK_ENTRIES, SUM_ROWS * width))
            ]
        else:
            cuts = [(block, worker, slice(None)) for block, worker in zip(blocks, workers, strict=True)]
        made = [stage(_hidden, block, rows, device, *layers, worker=worker) for block, worker, rows in cuts]
        return made, [worker for _, worker, _ in cuts]

    def _sum_blocks(
        self,
        blocks: Sequence[Delayed],
        pending: tuple[SentLayer, ...],
        fn: Callable[[Rows], T],
        workers: Sequence[str | None],
    ) -> Delayed:
        name = _stage_name(fn, len(self._layers))
        stage, device, task = Stage(name), self._device, literal(fn, "function")
        layers = [sent.on_cluster for sent in pending]
        partials = [
            stage(_sum_block, block, task, device, *layers, worker=worker)
            for block, worker in zip(blocks, workers, strict=True)
        ]
        return tree_sum(partials, name, workers)

    def __getitem__(self, which: np.ndarray) -> OnDask:
        """Return the rows that a mask, or increasing row numbers, choose."""
        which = np.asarray(which)
        numbers = np.flatnonzero(which) if which.dtype == bool else which
        edges = np.cumsum([0, *self._sizes])
        stage, blocks, facts = Stage("take"), [], []
        for block, (first, last) in zip(self._blocks, pairwise(edges.tolist()), strict=True):
            chosen = numbers[slice(*np.searchsorted(numbers, [first, last]))] - first
            if len(chosen) == 0 and len(numbers):
                continue
            whole = len(chosen) == last - first
            blocks.append(block if whole else stage(operator.getitem, block, literal(chosen, "numbers")))
            facts.append(BlockFacts(len(chosen), self.shape[1], self.dtype, self._sparse))
        return OnDask(blocks, facts, self._device)

    def astype(self, dtype: DTypeLike, copy: bool = False) -> OnDask:
        """Return the rows in another precision."""
        stage, dtype = Stage("cast"), np.dtype(dtype)
        if dtype == self.dtype and not self._is_mixed:
            return self
        blocks = [stage(_cast, block, dtype) for block in self._blocks]
        return self._like(_blocks=blocks, dtype=dtype, _is_mixed=False)

    def map_with_values(self, fn: Callable, name: str, values: np.ndarray, *others: Delayed) -> list[Delayed]:
        """Lazy ``fn(block, values of its rows, *others)`` of blocks; `values` has an item for each row."""
        stage, task = Stage(name), literal(fn, "function")
        edges = np.cumsum([0, *self._sizes]).tolist()
        pieces = [literal(values[first:last], "values") for first, last in pairwise(edges)]
        return [
            stage(operator.call, task, block, piece, *others)
            for block, piece in zip(self._blocks, pieces, strict=True)
        ]

    def collect(self) -> Rows:
        """Bring the rows here, as one matrix."""
        return stack_rows(list(compute(*self._blocks)))


LazyRows: TypeAlias = da.Array | OnDask | Sequence[Any]  # a Dask array, or blocks: delayed, or futures

gather_rows.register(OnDask, OnDask.collect)
column_sums.register(OnDask, lambda rows: rows.total(column_sums))
place_rows.register(OnDask, lambda rows, place, width=0: rows)


def _stage_name(fn: Callable, depth: int) -> str:
    """Return the name of the tasks of a total: its function, and the depth of the rows."""
    named = getattr(fn, "func", fn)
    name = getattr(named, "__name__", "total").strip("<>").replace("_", "-")
    return f"{name}-{depth}"


def _sum_block(block: Rows, fn: Callable[[Rows], T], device: str, *layers: Layer) -> T:
    """On a worker: sum of `fn` over one block after `layers`, a piece at a time."""
    place = check_place(device)
    rows = place.stream_rows(split_rows(block, max((layer.coef.shape[1] for layer in layers), default=0)))
    with place.set_precision():
        for layer in place.move_layers(layers):
            rows = rows.map(layer)
        return _on_host(rows.total(fn))


def _hidden(block: Rows, rows: slice, device: str, *layers: Layer) -> np.ndarray:
    """On a worker: hidden rows of (some rows of) one block."""
    place = check_place(device)
    with place.set_precision():
        for h in place.hidden(place.move_layers(layers), block[rows]):
            last = h
    return last


def _on_host(value: T) -> T:
    """Bring arrays back as NumPy's, also those inside a noun."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _on_host(getattr(value, field.name)) for field in fields(value)})
    return array_ops(value).to_numpy(value) if hasattr(value, "dtype") else value


def _cast(block: Rows, dtype: np.dtype) -> Rows:
    return block.astype(dtype, copy=False)


class _AnyRows(BaseEstimator):
    """Stands for the user's estimator where a block is validated, which knows of no other block."""


def _check_block(block: Rows, number: int, dtype: np.dtype | None) -> Rows:
    """On a worker: validate one block."""
    if getattr(block, "ndim", 0) != 2:
        raise TypeError(f"block {number} of X is a {type(block).__name__}, not a two-dimensional matrix")
    if block.shape[0] == 0:
        return block if dtype is None else block.astype(dtype)
    try:
        rows = check_matrix(_AnyRows(), block, reset=True)
    except ValueError as error:
        raise ValueError(f"block {number} of X: {error}") from None
    return rows if dtype is None else rows.astype(dtype, copy=False)


def _describe(block: Rows) -> BlockFacts:
    return BlockFacts(block.shape[0], block.shape[1], np.dtype(block.dtype), sp.issparse(block))


def lazy_blocks(X: LazyRows) -> list[Delayed]:
    """Return the row blocks of a Dask array, or of a list of arrays, delayed values or futures."""
    if isinstance(X, list | tuple):
        return [block for part in X for block in lazy_blocks(part)]
    if not isinstance(X, da.Array):
        return [X if isinstance(X, Delayed) else delayed(X)]  # a future
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got a Dask array of {X.ndim} dimensions")
    blocks = X.to_delayed()
    if blocks.ndim == 2 and blocks.shape[1] > 1:
        raise ValueError(
            f"X is cut into {blocks.shape[1]} column blocks; rows must be whole: X.rechunk({{1: -1}})"
        )
    return list(blocks.ravel())


def cluster_rows(
    estimator: BaseEstimator, X: LazyRows, *, reset: bool, dtype: DTypeLike | None = None
) -> OnDask:
    """Validate rows on a cluster, where they are; a cluster then keeps them until the fit is over.

    `X` is a Dask array, a list of delayed values or futures, or OnDask: row blocks, dense or SciPy sparse,
    whose sizes need not be known. `dtype` is the precision to work in; by default that of the blocks.
    """
    rows = X if isinstance(X, OnDask) else _check_rows(lazy_blocks(X), dtype)
    if rows.shape[0] == 0:
        raise ValueError("X has no blocks with rows; at least one row is needed")
    header = np.broadcast_to(np.zeros(1), (1, rows.shape[1]))
    validate_data(estimator, header, reset=reset, skip_check_array=True)
    return rows._like(_device=getattr(estimator, "device", "cpu")).astype(dtype or rows.dtype)


def _check_rows(blocks: list[Delayed], dtype: DTypeLike | None) -> OnDask:
    """Validate blocks where they are, one by one, and then against each other."""
    stage, dtype = Stage("rows"), None if dtype is None else np.dtype(dtype)
    workers = find_workers(blocks)
    if not any(workers):
        workers = assign_workers([1] * len(blocks), blocks)
    numbers = range(1, len(blocks) + 1)
    checked = persist(
        *(
            stage(_check_block, block, number, dtype, worker=worker)
            for number, block, worker in zip(numbers, blocks, workers, strict=True)
        )
    )
    stage = Stage("facts")
    all_facts = compute(*(stage(_describe, block) for block in checked))
    filled = [(block, facts) for block, facts in zip(checked, all_facts, strict=True) if facts.n_rows]
    if not filled:
        raise ValueError("X has no blocks with rows; at least one row is needed")
    widths = sorted({facts.n_columns for _, facts in filled})
    if len(widths) > 1:
        raise ValueError(f"the blocks of X have {widths[0]} to {widths[-1]} columns; all need the same")
    rows = OnDask([block for block, _ in filled], [facts for _, facts in filled])
    return rows.astype(rows.dtype)  # the higher precision, where blocks differ
