"""Rows in blocks: in memory, in a temporary file, or read again for every pass.

Each class has `map`, which applies a layer lazily, and `total`, which reads every block once and sums over
them, so that a layer's product, its activation and the next scatter are computed on a block while it is in
cache. *Blocks are rows, parts are columns.*
"""

from __future__ import annotations

import mmap
import operator
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from .array import Array, Rows
from .denoise import Layer
from .scatter import Moments, moments

T = TypeVar("T")

# Entries of a block of hidden rows: large enough for full speed, small enough that a second one is cheap.
BLOCK_ENTRIES = 2**25


class Blocks(Protocol):
    """Rows of one domain, in blocks."""

    def map(self, layer: Layer) -> Blocks:
        """Return the same rows after `layer`, computed when they are needed."""

    def total(self, fn: Callable[[Rows], Any]) -> Any:
        """Sum `fn` over the blocks; its results must support addition."""


def row_slices(n: int, width: int, entries: int = 0) -> list[slice]:
    """Cut n rows of the given width into equal blocks of at most `entries`, or `BLOCK_ENTRIES`, entries."""
    n_blocks = min(max(n, 1), ceil(n * width / (entries or BLOCK_ENTRIES)) or 1)
    edges = np.linspace(0, n, n_blocks + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def split_rows(X: Rows, width: int = 0, entries: int = 0) -> list[Rows]:
    """Cut the rows of `X` for hidden rows of the given width; dense blocks are views."""
    return [X[rows] for rows in row_slices(X.shape[0], width or X.shape[1], entries)]


def sum_in_place(values: Iterable[T]) -> T:
    """Sum values into the first of them, which is overwritten where it can be."""
    values = iter(values)
    result = next(values)
    for value in values:
        result += value  # type: ignore[operator]
    return result


def apply_layers(block: Rows, layers: Iterable[Layer]) -> Rows:
    """Return a block after `layers`, one after another."""
    for layer in layers:
        block = layer(block)
    return block


@dataclass
class Store:
    """Hidden rows after `layers`, which the next layer overwrites; not valid while `layers` is empty."""

    rows: np.ndarray | None = None
    layers: tuple[Layer, ...] = ()

    def precedes(self, layers: tuple[Layer, ...]) -> bool:
        """Tell whether `layers` begin with the layers of the stored rows."""
        return len(self.layers) <= len(layers) and all(map(operator.is_, self.layers, layers))


class StoredBlocks:
    """Rows of this process, with their hidden rows stored in memory or in a temporary file.

    The given blocks are never written to. A layer's output overwrites that of the layer before it; rows of a
    depth that has been overwritten are computed again from the blocks.
    """

    def __init__(self, blocks: Sequence[Rows], *, memory_budget: float = float("inf")) -> None:
        self._blocks = list(blocks)
        self._memory_budget = memory_budget
        self._layers: tuple[Layer, ...] = ()
        self._store = Store()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        width = self._layers[-1].coef.shape[1] if self._layers else self._blocks[0].shape[1]
        return sum(block.shape[0] for block in self._blocks), width

    @property
    def n_stored(self) -> int:
        """Number of entries, without the zeros of sparse rows."""
        if self._layers:
            return self.shape[0] * self.shape[1]
        return sum(block.nnz if sp.issparse(block) else block.size for block in self._blocks)

    def fits_memory(self) -> bool:
        """Tell whether the rows may be in memory, dense, once more."""
        n_bytes = self.n_stored * self._blocks[0].dtype.itemsize
        return n_bytes <= self._memory_budget

    def map(self, layer: Layer, hidden: np.ndarray | None = None) -> StoredBlocks:
        """Return the same rows after `layer`: `hidden`, or else computed when they are needed."""
        mapped = StoredBlocks(self._blocks, memory_budget=self._memory_budget)
        mapped._layers = (*self._layers, layer)
        if hidden is not None:
            mapped._store = Store(hidden, mapped._layers)
        elif self._layers:  # the first layers of several stacks may share the blocks, not the store
            mapped._store = self._store
        return mapped

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum `fn` over the blocks; computes and stores the layers that `map` deferred."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[Rows]:
        """Yield the rows, block by block; a block is valid until the next one is yielded."""
        if not self._layers:
            yield from self._blocks
        elif self._store.precedes(self._layers):
            yield from self._read_stored()
        else:
            yield from (apply_layers(block, self._layers) for block in self._blocks)

    def _read_stored(self) -> Iterator[np.ndarray]:
        """Yield the stored rows, applying first the layers that are still to come."""
        store, edges = self._store, np.cumsum([0, *(block.shape[0] for block in self._blocks)]).tolist()
        start, store.layers = len(store.layers), ()  # not valid while it is being overwritten
        pending = self._layers[start:]
        scratch = None  # one block's output, reused: new memory for each block would cost more than the copy
        for block, (first, last) in zip(self._blocks, pairwise(edges), strict=True):
            hidden = store.rows[first:last] if start and store.rows is not None else block
            if pending:
                if scratch is None or len(scratch) < last - first:
                    scratch = output = pending[-1](apply_layers(hidden, pending[:-1]))
                else:
                    output = pending[-1](apply_layers(hidden, pending[:-1]), out=scratch[: last - first])
                if store.rows is None:
                    store.rows = allocate((edges[-1], output.shape[1]), output.dtype, self._memory_budget)
                hidden = store.rows[first:last]
                hidden[:] = output
            yield hidden
            forget_pages(store.rows)
        store.layers = self._layers


def allocate(shape: tuple[int, int], dtype: np.dtype, memory_budget: float) -> np.ndarray:
    """Allocate an array: in memory, or above `memory_budget` bytes in a temporary memory-mapped file."""
    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if n_bytes <= memory_budget:
        return np.empty(shape, dtype)
    # an unnamed file: the system removes it when the array is freed, however the process ends
    with tempfile.TemporaryFile(prefix="undrift-") as file:
        reserve(file.fileno(), n_bytes)
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def reserve(descriptor: int, n_bytes: int) -> None:
    """Reserve the space of a file now: a disk that fills up under a memory map would kill the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except OSError as error:
        raise OSError(
            f"cannot spill {n_bytes / 1e9:.1f} GB of hidden rows to {tempfile.gettempdir()} "
            f"({error.strerror}): point TMPDIR at a larger disk"
        ) from error


def forget_pages(rows: np.ndarray | None) -> None:
    """Allow the system to free the pages that cache a memory-mapped array."""
    mapped = getattr(rows, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class StreamedBlocks:
    """Rows read again for every pass, from an iterable of blocks that can be iterated more than once.

    Nothing is stored: hidden rows are computed from each block as it is read.
    """

    def __init__(self, source: Iterable[Rows], layers: tuple[Layer, ...] = ()) -> None:
        self._source = source
        self._layers = layers

    def map(self, layer: Layer) -> StreamedBlocks:
        """Return the same rows after `layer`."""
        return StreamedBlocks(self._source, (*self._layers, layer))

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum `fn` over the blocks, in one pass over the source."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[Array]:
        """Yield the rows, block by block."""
        return (apply_layers(block, self._layers) for block in self._source)


def take_rows(blocks: Iterable[Rows], rows: np.ndarray, out: Array, places: np.ndarray) -> Moments:
    """Copy rows, given by ascending numbers, into the rows `places` of `out`; return the moments of all rows.

    One pass over the blocks of one domain. `out` has at least ``len(rows)`` rows.
    """

    def copy_block(block: Rows, start: int) -> Moments:
        first, last = np.searchsorted(rows, (start, start + block.shape[0]))
        if first < last:
            out[as_slice(places[first:last])] = block[as_slice(rows[first:last] - start)]
        return moments(block)

    return sum_in_place(copy_block(block, start) for block, start in blocks_with_offsets(blocks))


def blocks_with_offsets(blocks: Iterable[Rows]) -> Iterable[tuple[Rows, int]]:
    """Yield each block with the number of its first row."""
    start = 0
    for block in blocks:
        yield block, start
        start += block.shape[0]


def as_slice(rows: np.ndarray) -> Any:
    """Return ascending row numbers as a slice where they are contiguous, which avoids a copy."""
    if len(rows) == 0:
        return slice(0, 0)
    if rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
