"""Time and memory: what learning costs, and how many inner products fit into memory at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undrift.errors import UndriftError
from undrift.inputs import OnHost, OnTorch, Place, half_of_memory

PROCESS = Path("/proc/self")  # of Linux; elsewhere the peak of a process cannot be reset
_RESET_PEAK = "5"  # to clear_refs: the peak starts again from what is resident now


@dataclass(frozen=True)
class Cost:
    """Seconds, and the peak of memory in gigabytes of 10^9 bytes; None where the system does not know it."""

    seconds: float = 0.0
    peak_gigabytes: float | None = None

    def __add__(self, later: Cost) -> Cost:
        """Cost of one after the other: times add up, of two peaks the higher stays."""
        peaks = [cost.peak_gigabytes for cost in (self, later) if cost.peak_gigabytes is not None]
        return Cost(self.seconds + later.seconds, max(peaks, default=None))

    @property
    def memory(self) -> dict[str, float]:
        """The peak as a record has it: no entry where it is not known."""
        return {} if self.peak_gigabytes is None else {"peak_gigabytes": round(self.peak_gigabytes, 4)}


def measure_cost(device: str, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Cost]:
    """Return what `function` returns, and its cost.

    On a CUDA device the peak is that of torch's allocations there; otherwise that of the whole process's
    resident memory, with all that was in it before. Two of these at once would disturb each other.
    """
    reset, peak = meter_memory(device)
    is_known = reset()
    result, seconds = measure_time(function, *arguments)
    return result, Cost(seconds, peak() if is_known else None)


def measure_time(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what `function` returns, and the seconds it took."""
    began = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - began


def device_of(place: Place) -> str:
    """Name of the device whose memory a place uses; the host's is "cpu"."""
    return place.device if isinstance(place, OnTorch) else "cpu"


def meter_memory(device: str) -> tuple[Callable[[], bool], Callable[[], float | None]]:
    """Return a function that resets the peak of memory, if it can, and one that reads it, in gigabytes."""
    return _gpu_meter(device) if device.startswith("cuda") else (_reset_peak, _resident_peak)


def _gpu_meter(device: str) -> tuple[Callable[[], bool], Callable[[], float]]:
    import torch

    def reset() -> bool:
        torch.cuda.reset_peak_memory_stats(device)
        return True

    return reset, lambda: torch.cuda.max_memory_allocated(device) / 1e9


def _reset_peak() -> bool:
    """Let the process's peak start anew; return whether it did."""
    try:
        (PROCESS / "clear_refs").write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def _resident_peak() -> float | None:
    lines = (PROCESS / "status").read_text().splitlines()
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return kilobytes[0] * 1024 / 1e9 if kilobytes else None


class TooLarge(UndriftError):
    """Inner products that do not fit into this machine's memory: whose, how much, and what to do."""


def check_bytes(name: str, n_bytes: float, limit: float) -> None:
    """Refuse inner products that take more memory than `limit`."""
    if n_bytes > limit:
        raise TooLarge(
            f"the inner products of {name} take {n_bytes / 1e9:.3g} GB, but only {limit / 1e9:.3g} GB of "
            "memory may be used: set corpus.max_rows in the plan, or use a machine with more memory"
        )


def find_memory_limit(place: Place) -> float:
    """Return a quarter of this machine's memory, or half of what a device has to spare."""
    limit = half_of_memory()
    if not isinstance(place, OnHost):
        import torch

        from undrift.core.torch import free_bytes

        limit = min(limit, free_bytes(torch.device(place.device)))
    return limit / 2
