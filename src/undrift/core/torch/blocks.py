"""Blocks of rows on a torch device, and layers there.

Rows are copied to the device in blocks; CSR rows are made dense there, where they are used. Blocks that do
not fit the device stay on the host and are copied for each pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch

from ..array import Array, Rows
from ..blocks import split_rows
from ..denoise import Layer
from ..row_form import CentredRows, RowCoef
from .ops import to_numpy

Device: TypeAlias = torch.device | str
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

    def to(self, device: Device) -> TensorBlock:
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


def free_bytes(device: torch.device) -> float:
    """Return how many bytes rows may take on `device`."""
    if device.type != "cuda":
        return float("inf")
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return SHARE * (free + cached)


class DeviceShelf:
    """Keeps blocks on a torch device where they fit, and the others on the host.

    `memory_budget` has the bytes of the device that rows may take; by default most of those that are free.
    """

    def __init__(self, device: Device, memory_budget: float | None = None) -> None:
        self.device = torch.empty(0, device=device).device  # with its number, where the name has none
        self._budget = memory_budget

    def place(self, block: Rows) -> TensorBlock:
        """Return a given block as it is kept."""
        held = TensorBlock.of(block)
        is_there = all(part.device == self.device for part in held.tensors)
        return held if is_there or not self._take(held.n_bytes) else held.to(self.device)

    def fits(self, n_bytes: float) -> bool:
        """Tell whether hidden rows of this size are kept on the device."""
        return n_bytes <= (free_bytes(self.device) if self._budget is None else self._budget)

    def keep(self, hidden: torch.Tensor, n_bytes: float) -> TensorBlock:
        """Return a block of hidden rows as it is kept."""
        held = TensorBlock.of(hidden)
        return held if self._take(held.n_bytes) else held.to("cpu")

    def load(self, kept: TensorBlock) -> Iterator[torch.Tensor]:
        """Yield a block as a dense matrix on the device."""
        yield kept.to(self.device).dense()

    def _take(self, n_bytes: float) -> bool:
        """Tell whether a block fits the device; its bytes are then taken from the budget."""
        fits = self.fits(n_bytes)
        if fits and self._budget is not None:
            self._budget -= n_bytes
        return fits


class StreamToDevice:
    """Blocks read again for every pass, each dense and on the device while it is used."""

    def __init__(self, source: Iterable[Rows], device: Device) -> None:
        self._source, self._device = source, device

    def __iter__(self) -> Iterator[torch.Tensor]:
        """Yield the blocks on the device."""
        return (TensorBlock.of(block).to(self._device).dense() for block in self._source)


def split_for_device(X: Rows, width: int = 0) -> list[Rows]:
    """Cut the rows of `X` into blocks for a device, dense there, as are hidden rows of the given width."""
    return split_rows(X, max(width, X.shape[1]), BLOCK_ENTRIES)


def to_device(layer: Layer, device: Device) -> Layer:
    """Return `layer` with its arrays on a torch device."""

    def move(array: Array) -> torch.Tensor:
        return tensor(array).to(device)

    coef = layer.coef
    if isinstance(coef, RowCoef):
        mean = None if coef.given.mean is None else move(coef.given.mean)
        coef = replace(
            coef,
            given=CentredRows(TensorBlock.of(coef.given.rows).to(torch.device(device)).dense(), mean),
            scale=move(coef.scale),
            inverse=move(coef.inverse),
        )
    else:
        coef = move(coef)
    return Layer(coef, move(layer.intercept), layer.activation)


def to_host(layer: Layer) -> Layer:
    """Return `layer` with NumPy arrays; waits for the device."""
    coef, system = layer.coef, layer.system
    if isinstance(coef, RowCoef):
        rows, mean = to_numpy(coef.given.rows), coef.given.mean
        given = CentredRows(rows) if mean is None else CentredRows(sp.csr_array(rows), to_numpy(mean))
        coef = replace(coef, given=given, scale=to_numpy(coef.scale), inverse=to_numpy(coef.inverse))
    else:
        coef = to_numpy(coef)
    if system is not None:
        system = replace(system, damping=to_numpy(system.damping), centre=to_numpy(system.centre))
    return Layer(coef, to_numpy(layer.intercept), layer.activation, system)
