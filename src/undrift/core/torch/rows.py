"""Blocks of rows on a torch device.

Rows are copied to the device in blocks; CSR rows are made dense there, where they are used. Blocks that do
not fit the device stay on the host and are copied for each pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch

from ..array import Array, Rows, array_ops
from ..blocks import Store, apply_layers, split_rows, sum_in_place
from ..denoise import Layer

T = TypeVar("T")

# Entries of a block: a product of that many fills a GPU, and the space for one more is always there.
BLOCK_ENTRIES = 2**28
SHARE = 0.7  # of a device's free memory that rows may take; the rest is for blocks and scatters


def tensor(array: Array) -> torch.Tensor:
    """View an array as a tensor, without a copy where torch can do that."""
    if isinstance(array, np.ndarray) and min(array.strides, default=0) < 0:
        array = np.ascontiguousarray(array)
    with warnings.catch_warnings():  # about read-only arrays, which are not written to here
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        return torch.as_tensor(array)


@dataclass(frozen=True)
class TensorBlock:
    """One block of rows as tensors: dense, or the three arrays of CSR."""

    tensors: tuple[torch.Tensor, ...]
    shape: tuple[int, int]

    @classmethod
    def of(cls, X: Rows) -> TensorBlock:
        """View `X` as tensors, without a copy."""
        if sp.issparse(X):
            return cls(tuple(map(tensor, (X.data, X.indices, X.indptr))), X.shape)
        return cls((tensor(X),), tuple(X.shape))

    @property
    def n_bytes(self) -> int:
        """Size of the tensors."""
        return sum(part.nbytes for part in self.tensors)

    def to(self, device: Any) -> TensorBlock:
        """Return the block on a device."""
        return replace(self, tensors=tuple(part.to(device) for part in self.tensors))

    def dense(self) -> torch.Tensor:
        """Return the rows as one matrix."""
        if len(self.tensors) == 1:
            return self.tensors[0]
        values, indices, indptr = self.tensors
        X = values.new_zeros(self.shape)
        starts = torch.arange(self.shape[0], device=values.device) * self.shape[1]
        rows = torch.repeat_interleave(starts, indptr.diff(), output_size=len(indices))
        X.view(-1)[rows + indices] = values  # canonical CSR: no entry twice
        return X


@dataclass
class TensorStore(Store):
    """Hidden rows in blocks, each on the device or on the host."""

    blocks: list[TensorBlock] = field(default_factory=list)


def free_bytes(device: torch.device) -> float:
    """Return how many bytes rows may take on `device`."""
    if device.type != "cuda":
        return float("inf")
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return SHARE * (free + cached)


class DeviceBlocks:
    """Rows on a torch device, and hidden rows too where they fit; the others stay on the host.

    As :class:`~undrift.core.blocks.StoredBlocks`: `map` is lazy, a layer's output overwrites that of the
    layer before it, and the given blocks are never written to. `memory_budget` has the bytes of the device
    that rows may take; by default most of those that are free.
    """

    def __init__(self, blocks: Sequence[Rows], device: Any, *, memory_budget: float | None = None) -> None:
        self._device = torch.empty(0, device=device).device  # with its number, where the name has none
        self._budget = free_bytes(self._device) if memory_budget is None else memory_budget
        self._layers: tuple[Layer, ...] = ()
        self._store = TensorStore()
        # the input rows first; rows that do not fit are copied once for each scatter and layer
        self._blocks, self._budget = self._move_to_device([TensorBlock.of(block) for block in blocks])

    def _move_to_device(self, blocks: list[TensorBlock]) -> tuple[list[TensorBlock], float]:
        budget, placed = self._budget, []
        for block in blocks:
            is_there = all(part.device == self._device for part in block.tensors)
            if not is_there and block.n_bytes <= budget:
                budget -= block.n_bytes
                block = block.to(self._device)
            placed.append(block)
        return placed, budget

    def map(self, layer: Layer) -> DeviceBlocks:
        """Return the same rows after `layer`, computed when they are needed."""
        mapped = object.__new__(DeviceBlocks)
        vars(mapped).update(vars(self), _layers=(*self._layers, layer))
        if not self._layers:  # the first layers of several stacks share the blocks, not the store
            mapped._store = TensorStore()
        return mapped

    def total(self, fn: Callable[[Rows], T]) -> T:
        """Sum `fn` over the blocks; computes and stores what `map` left to do."""
        return sum_in_place(fn(block) for block in self)

    def __iter__(self) -> Iterator[torch.Tensor]:
        """Yield the rows on the device, block by block; not to be written to."""
        if self._layers and self._store.precedes(self._layers):
            yield from self._read_stored()
        else:
            for block in self._blocks:
                yield apply_layers(block.to(self._device).dense(), self._layers)

    def _read_stored(self) -> Iterator[torch.Tensor]:
        """Yield the stored rows, applying first the layers that are still to come."""
        store, pending = self._store, self._layers[len(self._store.layers) :]
        before = store.blocks if store.layers else self._blocks
        if not pending:
            yield from (block.to(self._device).dense() for block in before)
            return
        store.layers = ()  # not valid while it is being overwritten
        after: list[TensorBlock] = []
        budget = self._budget
        for block in _drain(before) if before is store.blocks else before:
            rows = apply_layers(block.to(self._device).dense(), pending)
            del block
            output = TensorBlock.of(rows)
            fits = output.n_bytes <= budget
            budget -= output.n_bytes if fits else 0
            after.append(output if fits else output.to("cpu"))
            yield rows
        store.blocks, store.layers = after, self._layers


def _drain(blocks: list[TensorBlock]) -> Iterator[TensorBlock]:
    """Yield the blocks and drop the reference to each, so that its memory is free for the next depth."""
    blocks.reverse()
    while blocks:
        yield blocks.pop()


class StreamToDevice:
    """Blocks read again for every pass, each on the device while it is used."""

    def __init__(self, source: Iterable[Rows], device: Any) -> None:
        self._source, self._device = source, device

    def __iter__(self) -> Iterator[torch.Tensor]:
        """Yield the blocks as dense tensors on the device."""
        return (TensorBlock.of(block).to(self._device).dense() for block in self._source)


def split_for_device(X: Rows, width: int = 0) -> list[Rows]:
    """Cut the rows of `X` into blocks for a device, dense there, as are hidden rows of the given width."""
    return split_rows(X, max(width, X.shape[1]), BLOCK_ENTRIES)


def to_device(layer: Layer, device: Any) -> Layer:
    """Return `layer` with its arrays on a torch device."""
    coef = layer.coef if isinstance(layer.coef, torch.Tensor) else np.asarray(layer.coef)
    coef, intercept = (tensor(part).to(device) for part in (coef, layer.intercept))
    return replace(layer, coef=coef, intercept=intercept)


def to_host(layer: Layer) -> Layer:
    """Return `layer` with NumPy arrays; waits for the device."""
    take = array_ops(layer.intercept).to_numpy
    return replace(layer, coef=take(layer.coef), intercept=take(layer.intercept))


def device_hidden_rows(
    layers: Sequence[Layer], X: Rows, device: Any, *, memory_budget: float | None = None
) -> Iterator[np.ndarray]:
    """Yield h^1, ..., h^l of the rows of `X`, computed on the device that `layers` are on.

    Block by block, each depth gathered on the host; the parameters are those of :class:`DeviceBlocks`.
    """
    width = max((layer.coef.shape[1] for layer in layers), default=0)
    rows = DeviceBlocks(split_for_device(X, width), device, memory_budget=memory_budget)
    for layer in layers[:-1]:
        rows = rows.map(layer)
        yield gather_blocks(rows, X.shape[0])
    for layer in layers[-1:]:  # no layer follows, so its rows are not stored
        yield gather_blocks(map(layer, rows), X.shape[0])


def gather_blocks(blocks: Iterable[torch.Tensor], n: int) -> np.ndarray:
    """Return blocks of rows, `n` in all, as one NumPy array, copied from the device one by one."""
    blocks = iter(blocks)
    first = next(blocks)
    rows = torch.empty((n, first.shape[1]), dtype=first.dtype)
    start = 0
    for block in chain([first], blocks):
        rows[start : start + len(block)] = block
        start += len(block)
    array: np.ndarray = rows.numpy()
    return array
