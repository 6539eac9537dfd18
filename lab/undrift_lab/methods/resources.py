"""Seconds that something takes, and how many inner products fit into memory at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from undrift.inputs import OnHost, Place, half_of_memory


def measure_time(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what `function` returns, and the seconds it took."""
    began = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - began


def find_memory_limit(place: Place) -> float:
    """Return a quarter of this machine's memory, or half of what a device has to spare."""
    limit = half_of_memory()
    if not isinstance(place, OnHost):
        import torch

        from undrift.core.torch import free_bytes

        limit = min(limit, free_bytes(torch.device(place.device)))
    return limit / 2
