"""Rows in blocks: in memory, in a temporary file, on a device, or read again for every pass.

Each class has `map`, which applies a layer lazily, and `total`, which reads every block once and sums over
them, so that a layer's product, its activation and the next scatter are computed on a block while it is in
cache. *Blocks are rows, parts are columns.*
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from .array import Array, Rows
from .denoise import Layer
from .scatter import Moments, moments

T = TypeVar("T")
IsFew: TypeAlias = Callable[[int, int], bool]  # takes numbers of rows and columns

# Entries of a block of hidden rows: large enough for full speed, small enough that a second one is cheap.
BLOCK_ENTRIES = 2**25


class Shelf(Protocol):
    """Where blocks are kept: in memory or a temporary file, or on a device."""

    def place(self, block: Rows) -> Rows:
        """Return a given block as it is kept."""

    def fits(self, n_bytes: float) -> bool:
        """Tell whether hidden rows of this size are kept where they are computed."""

    def keep(self, hidden: Array, n_bytes: float) -> Rows:
        """Return a block as it is kept, of hidden rows that have `n_bytes` in all."""

    def load(self, kept: Rows) -> Iterator[Rows]:
        """Yield a block for use."""


class Blocks(Protocol):
    """Rows of one domain, in blocks."""

    def map(self, layer: Layer, hidden: Array | None = None) -> Blocks:
        """Return the same rows after `layer`: `hidden`, where they are known, or computed when needed."""

    def gather(self, is_few: IsFew) -> list[Rows] | None:
        """Return the blocks where they are few and in memory, or not behind a layer; None elsewhere."""

    def total(self, fn: Callable[[Rows], T]) -> T:
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


class HostShelf:
    """Keeps blocks in memory; hidden rows that are more than `memory_budget` bytes in temporary files."""

    def __init__(self, memory_budget: float = float("inf")) -> None:
        self.memory_budget = memory_budget

    def place(self, block: Rows) -> Rows:
        """Return a given block as it is kept."""
        return block

    def fits(self, n_bytes: float) -> bool:
        """Tell whether hidden rows of this size are kept in memory."""
        return n_bytes <= self.memory_budget

    def keep(self, hidden: np.ndarray, n_bytes: float) -> np.ndarray:
        """Return a block as it is kept, of hidden rows that have `n_bytes` in all."""
        if self.fits(n_bytes):
            return hidden
        with tempfile.TemporaryFile(prefix="undrift-") as file:  # removed when the array is freed, however
            reserve(file.fileno(), hidden.nbytes)
            kept = np.memmap(file, dtype=hidden.dtype, mode="w+", shape=hidden.shape)
        kept[:] = hidden
        forget_pages(kept)
        return kept

    def load(self, kept: Rows) -> Iterator[Rows]:
        """Yield a block for use; pages of a temporary file are given back after that."""
        yield kept
        forget_pages(kept)


class StoredBlocks:
    """Rows of this process, with the rows after a layer kept once they have been computed.

    Rows after a layer take the place of the hidden rows before it, block by block: there is never more than
    one depth. Those that are asked for again are computed again. The given blocks are never written to. The
    `shelf` is memory by default.
    """

    def __init__(self, blocks: Sequence[Rows], shelf: Shelf | None = None) -> None:
        self._shelf: Shelf = shelf or HostShelf()
        self.sizes = [block.shape[0] for block in blocks]
        self.width, self.itemsize = blocks[0].shape[1], blocks[0].dtype.itemsize
        self._before: StoredBlocks | None = None  # the rows that `_layer` is applied to
        self._layer: Layer | None = None
        self._kept: list[Rows] | None = [self._shelf.place(block) for block in blocks]

    @property
    def _n_bytes(self) -> int:
        return sum(self.sizes) * self.width * self.itemsize

    def gather(self, is_few: IsFew) -> list[Rows] | None:
        """Return the blocks where they are few, and in memory if they are hidden rows; None elsewhere."""
        is_at_hand = self._before is None or self._shelf.fits(self._n_bytes)
        return list(self) if is_at_hand and is_few(sum(self.sizes), self.width) else None

    def map(self, layer: Layer, hidden: Array | None = None) -> StoredBlocks:
        """Return the same rows after `layer`: `hidden`, or computed when they are needed."""
        mapped: StoredBlocks = object.__new__(type(self))
        vars(mapped).update(vars(self), width=len(layer.intercept), _before=self, _layer=layer, _kept=None)
        if hidden is not None:
            edges = np.cumsum([0, *self.sizes]).tolist()
            parts = (hidden[start:stop] for start, stop in pairwise(edges))
            mapped._kept = [self._shelf.keep(part, mapped._n_bytes) for part in parts]
        return mapped

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum `fn` over the blocks; computes and keeps those that `map` deferred."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[Rows]:
        """Yield the rows, block by block; a block is valid until the next one is yielded."""
        if self._kept is not None:
            for block in self._kept:
                yield from self._shelf.load(block)
            return
        kept = []
        for block in self.drain():
            kept.append(self._shelf.keep(block, self._n_bytes))
            yield block
        self._kept = kept

    def drain(self) -> Iterator[Rows]:
        """Yield the rows, block by block, and let go of each block after it, unless it was given."""
        if self._before is None or self._layer is None:
            yield from self
            return
        kept, self._kept = self._kept, None
        if kept is None:
            yield from map(self._layer, self._before.drain())
        while kept:
            yield from self._shelf.load(kept.pop(0))


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


def forget_pages(rows: Rows) -> None:
    """Allow the system to free the pages that cache a memory-mapped array."""
    mapped = getattr(rows, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class StreamedBlocks:
    """Rows read again for every pass, from an iterable of blocks that can be iterated more than once.

    Hidden rows are never kept: they are computed from each block as it is read.
    """

    def __init__(self, source: Iterable[Rows], layers: tuple[Layer, ...] = ()) -> None:
        self._source, self._layers = source, layers

    def map(self, layer: Layer, hidden: Array | None = None) -> StreamedBlocks:
        """Return the same rows after `layer`, computed as they are read; `hidden` is not kept."""
        return StreamedBlocks(self._source, (*self._layers, layer))

    def gather(self, is_few: IsFew) -> list[Rows] | None:
        """Return the blocks of the source where they are few; reading stops where they are not."""
        if self._layers:
            return None
        gathered, n = [], 0
        for block in self._source:
            n += block.shape[0]
            if not is_few(n, block.shape[1]):
                return None
            gathered.append(block)
        return gathered

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum `fn` over the blocks, in one pass over the source."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[Array]:
        """Yield the rows, block by block."""
        for block in self._source:
            for layer in self._layers:
                block = layer(block)
            yield block

    drain = __iter__  # nothing is kept


def take_rows(blocks: Iterable[Rows], rows: np.ndarray, out: Array, places: np.ndarray) -> Moments:
    """Copy rows, given by ascending numbers, into the rows `places` of `out`; return the moments of all rows.

    One pass over the blocks of one domain. `out` has at least ``len(rows)`` rows.
    """
    start, total = 0, None
    for block in blocks:
        first, last = np.searchsorted(rows, (start, start + block.shape[0]))
        if first < last:
            out[as_slice(places[first:last])] = block[as_slice(rows[first:last] - start)]
        total = moments(block) if total is None else total + moments(block)
        start += block.shape[0]
    assert total is not None
    return total


def as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """Return ascending row numbers as a slice where they are contiguous, which avoids a copy."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
