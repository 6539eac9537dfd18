"""The execution seam: where rows live. Two verbs, `map` and `total`, and nothing else.

`map` is lazy; `total` reads every block once, so that a layer's product, its squashing and
the next scatter are done on a block while it is at hand. *Blocks are rows, parts are columns.*
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

from .array import Array, Rows
from .denoise import Layer

T = TypeVar("T")

# Entries of a hidden block: large enough for full speed, small enough that a second one is cheap.
BLOCK_ENTRIES = 2**25


class Blocks(Protocol):
    """Rows of one domain, in blocks."""

    def map(self, layer: Layer) -> Blocks:
        """Return the same rows after `layer`, computed when they are needed."""

    def total(self, fn: Callable[[Rows], Any]) -> Any:
        """Sum of `fn` over blocks; `fn` returns something that adds."""


def row_slices(n: int, width: int, entries: int = 0) -> list[slice]:
    """Cut n rows of the given width into equal blocks of at most `entries`, or `BLOCK_ENTRIES`, entries."""
    n_blocks = min(max(n, 1), ceil(n * width / (entries or BLOCK_ENTRIES)) or 1)
    edges = np.linspace(0, n, n_blocks + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def split_rows(X: Rows, width: int = 0, entries: int = 0) -> list[Rows]:
    """Cut the rows of `X` for hidden rows of the given width; dense blocks are views."""
    return [X[rows] for rows in row_slices(X.shape[0], width or X.shape[1], entries)]


def sum_in_place(values: Iterable[T]) -> T:
    """Sum without a zero to start from. The values are used up: large ones add in place."""
    values = iter(values)
    result = next(values)
    for value in values:
        result += value  # type: ignore[operator]
    return result


def apply_layers(block: Rows, layers: Iterable[Layer]) -> Rows:
    """Push a block through `layers`."""
    for layer in layers:
        block = layer(block)
    return block


@dataclass
class Store:
    """Hidden rows after `layers`, overwritten by those of the next. No layers: rows that are not valid."""

    rows: np.ndarray | None = None
    layers: tuple[Layer, ...] = ()

    def precedes(self, layers: tuple[Layer, ...]) -> bool:
        """Tell whether `layers` go on from the rows stored here."""
        return len(self.layers) <= len(layers) and all(map(operator.is_, self.layers, layers))


class StoredBlocks:
    """Rows held by this process. Hidden rows are kept too, in memory or in a temporary file.

    The blocks belong to the caller and are never written to. A layer's output takes the place of
    the rows before it, so that one copy of the hidden rows exists, whatever the depth; rows of
    a depth that has been overwritten are computed again from the blocks.
    """

    def __init__(self, blocks: Sequence[Rows], *, memory_budget: float = float("inf")) -> None:
        self._blocks = list(blocks)
        self._memory_budget = memory_budget
        self._layers: tuple[Layer, ...] = ()
        self._store = Store()

    def map(self, layer: Layer) -> StoredBlocks:
        """Return the same rows after `layer`, computed when they are needed."""
        mapped = StoredBlocks(self._blocks, memory_budget=self._memory_budget)
        mapped._layers = (*self._layers, layer)
        if self._layers:  # the first layers of several stacks may share the blocks, not the store
            mapped._store = self._store
        return mapped

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum of `fn` over blocks; computes and keeps what `map` left to do."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[Rows]:
        """Yield the rows, block by block; a block is valid until the next one is asked for."""
        if not self._layers:
            yield from self._blocks
        elif self._store.precedes(self._layers):
            yield from self._stored()
        else:
            yield from (apply_layers(block, self._layers) for block in self._blocks)

    def _stored(self) -> Iterator[np.ndarray]:
        """Yield the stored rows, bringing them to this depth where they are not there yet."""
        store, edges = self._store, np.cumsum([0, *(block.shape[0] for block in self._blocks)]).tolist()
        start, store.layers = len(store.layers), ()  # not valid while half of it is overwritten
        pending = self._layers[start:]
        scratch = None  # one block's output, used again: new memory for each would cost more than the copy
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
    """Room for rows: in memory, or above `memory_budget` bytes in a temporary memory-mapped file."""
    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if n_bytes <= memory_budget:
        return np.empty(shape, dtype)
    # an anonymous file: the system removes it when the array goes, however the process ends
    with tempfile.TemporaryFile(prefix="undrift-") as file:
        reserve(file.fileno(), n_bytes)
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def reserve(descriptor: int, n_bytes: int) -> None:
    """Claim the space of a file now: a disk that fills up under a memory map would kill the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, n_bytes)
    except OSError as error:
        raise OSError(
            f"cannot spill {n_bytes / 1e9:.1f} GB of hidden rows to {tempfile.gettempdir()} "
            f"({error.strerror}): point TMPDIR at a larger disk, or raise memory_budget"
        ) from error


def forget_pages(rows: np.ndarray | None) -> None:
    """Let the system take back the memory that caches a memory-mapped array."""
    mapped = getattr(rows, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class StreamedBlocks:
    """Rows that are read again for every pass, from an iterable of blocks that can be iterated again.

    Nothing is kept: hidden rows are computed from the blocks as they come.
    """

    def __init__(self, source: Iterable[Rows], layers: tuple[Layer, ...] = ()) -> None:
        self._source = source
        self._layers = layers

    def map(self, layer: Layer) -> StreamedBlocks:
        """Return the same rows after `layer`."""
        return StreamedBlocks(self._source, (*self._layers, layer))

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum of `fn` over blocks, in one pass over the source."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[Array]:
        """Yield the rows, block by block."""
        return (apply_layers(block, self._layers) for block in self._source)
