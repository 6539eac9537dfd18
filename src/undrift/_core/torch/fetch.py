"""Copy layers from a GPU to NumPy while the next one is being fitted.

A copy into pageable memory runs at a fraction of the bus's rate, and page-locked memory is slow to allocate
and too scarce to hand to the user. So an array is copied in chunks, through two page-locked buffers that are
reused: one is being filled while the other is emptied.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch

from ..array import array_ops
from ..denoise import Layer

CHUNK = 2**25  # bytes of each buffer

# one thread, so that the buffers have one user
_COPY_THREAD = ThreadPoolExecutor(1, thread_name_prefix="undrift-fetch")
_BUFFERS: list[torch.Tensor] = []


def to_host(layer: Layer) -> Layer:
    """Return `layer` with NumPy arrays."""
    return start_copy_to_host(layer)()


def start_copy_to_host(layer: Layer) -> Callable[[], Layer]:
    """Start copying `layer` to the host; calling the result waits for its NumPy arrays."""
    coef = layer.coef
    if not (isinstance(coef, torch.Tensor) and coef.is_cuda):
        take = array_ops(coef).to_numpy
        return partial(replace, layer, coef=take(coef), intercept=take(layer.intercept))
    ready = torch.cuda.current_stream(coef.device).record_event()
    return _COPY_THREAD.submit(_copy_layer, layer, ready).result


def _copy_layer(layer: Layer, ready: torch.cuda.Event) -> Layer:
    stream = torch.cuda.Stream(layer.coef.device)
    with torch.cuda.device(layer.coef.device), torch.cuda.stream(stream):
        stream.wait_event(ready)
        return replace(layer, coef=copy_in_chunks(layer.coef), intercept=copy_in_chunks(layer.intercept))


def copy_in_chunks(A: torch.Tensor) -> np.ndarray:
    """Return `A` as a NumPy array in C order, copied through the buffers on the current stream."""
    flat = A.detach().contiguous().view(-1)
    host = torch.empty(flat.shape, dtype=flat.dtype)
    edges = [*range(0, len(flat), CHUNK // flat.itemsize), len(flat)]
    waiting: list[tuple[torch.Tensor, torch.Tensor, torch.cuda.Event | None]] = []
    for i, (start, stop) in enumerate(pairwise(edges)):
        stage = _buffer(i % 2, A.is_cuda).view(flat.dtype)[: stop - start]
        stage.copy_(flat[start:stop], non_blocking=True)
        filled = torch.cuda.current_stream(A.device).record_event() if A.is_cuda else None
        waiting.append((host[start:stop], stage, filled))
        if len(waiting) == 2:
            _empty_buffer(*waiting.pop(0))
    for last in waiting:
        _empty_buffer(*last)
    array: np.ndarray = host.view(A.shape).numpy()
    return array


def _empty_buffer(destination: torch.Tensor, stage: torch.Tensor, filled: torch.cuda.Event | None) -> None:
    if filled is not None:
        filled.synchronize()
    destination.copy_(stage)


def _buffer(i: int, pinned: bool) -> torch.Tensor:
    """Return one of the two buffers, which live as long as the process."""
    while len(_BUFFERS) <= i:
        _BUFFERS.append(torch.empty(CHUNK, dtype=torch.uint8, pin_memory=pinned))
    return _BUFFERS[i]
