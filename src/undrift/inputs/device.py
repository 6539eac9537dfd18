"""Where to compute: NumPy on this machine's processors, or torch on a device; arrays of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from ..core import (
    Array,
    Blocks,
    HostShelf,
    Layer,
    Rows,
    StoredBlocks,
    StreamedBlocks,
    array_ops,
    hidden_rows,
    numpy_ops,
    split_rows,
)
from ..errors import UndriftError
from .parameters import half_of_memory

HOST = (1, 3, 11)  # DLPack's kDLCPU, kDLCUDAHost and kDLROCMHost: memory that NumPy can read
CUDA = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged


class NoDevice(UndriftError):
    """The device is not one that this machine, or its PyTorch, has."""


@dataclass(frozen=True)
class Place:
    """NumPy and SciPy on this machine's processors, or torch on a device. Results are NumPy arrays."""

    device: str | None = None  # of torch; None for NumPy
    precision: str = "highest"  # on a device; "high": products of float32 round their operands to 11 bits
    memory_budget: float | None = None  # bytes that rows may take there; by default about half of all

    @property
    def _torch(self) -> ModuleType:
        """The core for tensors, imported when it is first needed."""
        from ..core import torch

        return torch

    def store_rows(self, X: Rows, width: int = 0) -> StoredBlocks:
        """Store the rows of one matrix, and hidden rows of the given width."""
        if self.device is not None:
            shelf = self._torch.DeviceShelf(self.device, self.memory_budget)
            return StoredBlocks(self._torch.split_for_device(X, width), shelf)
        # of one domain, of which there are two in most fits
        budget = half_of_memory() / 2 if self.memory_budget is None else self.memory_budget
        return StoredBlocks(split_rows(X, width), HostShelf(budget))

    def stream_rows(self, source: Iterable[Rows]) -> Blocks:
        """Read the rows again for every pass."""
        there = source if self.device is None else self._torch.StreamToDevice(source, self.device)
        return StreamedBlocks(there)

    def move_rows(self, X: Rows) -> Rows:
        """Return rows where the computation takes place."""
        return X if self.device is None else self._torch.TensorBlock.of(X).to(self.device).dense()

    def set_precision(self) -> AbstractContextManager[None]:
        """Return a context in which products have the precision of this place."""
        context: AbstractContextManager[None] = nullcontext()
        return context if self.device is None else self._torch.precision(self.precision)

    def move_layers(self, layers: Sequence[Layer]) -> Sequence[Layer]:
        """Return layers where the rows are."""
        if self.device is None:
            return layers
        return [self._torch.to_device(layer, self.device) for layer in layers]

    def to_host(self, layer: Layer) -> Layer:
        """Return a layer with NumPy arrays."""
        host: Layer = layer if self.device is None else self._torch.to_host(layer)
        return host

    def hidden(self, layers: Sequence[Layer], X: Rows) -> Iterator[np.ndarray]:
        """Yield h^1, ..., h^l of the rows of `X`, which are there; on a device they pass in blocks."""
        if self.device is None:
            yield from hidden_rows(layers, X)
            return
        rows = self.store_rows(X, max((len(layer.intercept) for layer in layers), default=0))
        for layer in layers:
            with self.set_precision():  # and not while the caller works
                rows = rows.map(layer)
                piece = np.concatenate([to_host(block) for block in rows])
            yield piece


def check_place(device: object, memory_budget: float | None = None, there: str | None = None) -> Place:
    """Return the place that `device` names: "cpu", or a device of torch.

    Rows on an accelerator, `there`, stay there, unless another device is named.
    """
    if not isinstance(device, str):
        raise TypeError(f"device must be a string such as 'cpu' or 'cuda', got {device!r}")
    if device == "cpu":
        device = there or device
    return Place(None if device == "cpu" else check_device(device), memory_budget=memory_budget)


def check_device(name: str) -> str:
    """Return the name of a device that torch can use; the prefix ``torch:`` is removed."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device={name!r} needs the `torch` extra: pip install 'undrift[torch]'; or pass device='cpu'"
        ) from None
    try:
        device = torch.device(name.removeprefix("torch:"))
        if device.type not in ("cpu", "cuda"):
            torch.zeros(1, device=device).cpu()  # torch accepts names of devices that it was not built for
    except (RuntimeError, AssertionError):
        raise NoDevice(
            f"device={name!r} is not known to the PyTorch that is installed; pass 'cpu', 'cuda' or 'cuda:1' "
            "for a GPU, 'torch:cpu' for torch without one"
        ) from None
    if device.type == "cuda":
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if n_devices == 0:
            raise NoDevice(
                f"device={name!r}, but PyTorch sees no CUDA GPU here: install a CUDA build of PyTorch "
                "(https://pytorch.org/get-started) and the GPU's driver, or pass device='cpu'"
            )
        if (device.index or 0) >= n_devices:
            raise NoDevice(f"device={name!r}, but there are {n_devices} GPUs, counted from 0")
    return str(device)


def find_accelerator(X: Rows) -> str | None:
    """Return torch's name for the device of an array outside the host's memory; None for all others."""
    device = getattr(X, "__dlpack_device__", None)
    if device is None or isinstance(X, np.ndarray):
        return None
    kind, index = device()
    if kind in HOST:
        return None
    return f"cuda:{index}" if kind in CUDA else str(X.device)


def dense_tensor(X: Array) -> Array:
    """View an array as a tensor without a gradient; floats of 16 bits become float32."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"a {type(X).__name__} on a GPU needs the `torch` extra: pip install 'undrift[torch]'; "
            "or pass it as a NumPy array"
        ) from None
    X = (X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)).detach()
    if X.layout is not torch.strided:
        raise TypeError(
            f"a sparse tensor ({X.layout}) is not accepted: pass a SciPy sparse matrix, or X.to_dense()"
        )
    return X.float() if X.is_floating_point() and X.itemsize < 4 else X


def check_tensor(X: Array) -> Array | None:
    """Return rows on an accelerator as a float32 or float64 tensor there.

    None for rows of the host, and for anything but a finite real matrix, which the checks for NumPy arrays
    then refuse.
    """
    if find_accelerator(X) is None:
        return None
    X = dense_tensor(X)
    if X.ndim != 2 or 0 in X.shape or X.is_complex():
        return None
    X = X if X.is_floating_point() else X.double()
    # the sum of finite values hardly ever overflows, and is quick to compute
    return X if bool(X.sum().isfinite()) or bool(X.isfinite().all()) else None


def to_host(A: Array) -> Array:
    """Return an array of any library as a NumPy array; anything else is returned unchanged."""
    if isinstance(A, np.ndarray) or not hasattr(A, "__dlpack_device__"):
        return A
    if find_accelerator(A) is None and array_ops(A) is numpy_ops:
        return np.asarray(A)
    A = dense_tensor(A)
    return array_ops(A).to_numpy(A)
