"""What learning costs: the time it took, and the most memory held meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._inputs import OnTorch, Place

PROCESS = Path("/proc/self")  # of Linux; elsewhere a process cannot forget its peak
_FORGET_PEAK = "5"  # to clear_refs: the peak starts again from what is resident now


@dataclass(frozen=True)
class Cost:
    """Seconds, and the peak of memory in gigabytes of 10^9 bytes; None where the system does not tell it."""

    seconds: float = 0.0
    peak_gigabytes: float | None = None

    def __add__(self, later: Cost) -> Cost:
        """Cost of one after the other: times add up, of two peaks the higher stays."""
        peaks = [own.peak_gigabytes for own in (self, later) if own.peak_gigabytes is not None]
        return Cost(self.seconds + later.seconds, max(peaks, default=None))

    @property
    def memory(self) -> dict[str, float]:
        """The peak as a record has it: no entry where it is not known."""
        return {} if self.peak_gigabytes is None else {"peak_gigabytes": round(self.peak_gigabytes, 4)}


def measured(device: str, function: Callable[..., Any], *arguments: Any) -> tuple[Any, Cost]:
    """Return what `function` does, and its cost.

    On a CUDA device the peak is that of torch's allocations there; otherwise that of the whole process's
    resident memory, with all that it held before. Two of these at once would disturb each other.
    """
    forget, peak = _gpu_meter(device) if device.startswith("cuda") else (_forget_peak, _resident_peak)
    known = forget()
    began = time.perf_counter()
    done = function(*arguments)
    seconds = time.perf_counter() - began
    return done, Cost(seconds, peak() if known else None)


def device_of(place: Place) -> str:
    """Name of the device whose memory a place uses; the host's is "cpu"."""
    return place.device if isinstance(place, OnTorch) else "cpu"


def _gpu_meter(device: str) -> tuple[Callable[[], bool], Callable[[], float]]:
    import torch

    def forget() -> bool:
        torch.cuda.reset_peak_memory_stats(device)
        return True

    return forget, lambda: torch.cuda.max_memory_allocated(device) / 1e9


def _forget_peak() -> bool:
    """Let the process's peak start anew; tell whether it did."""
    try:
        (PROCESS / "clear_refs").write_text(_FORGET_PEAK)
    except OSError:
        return False
    return True


def _resident_peak() -> float | None:
    lines = (PROCESS / "status").read_text().splitlines()
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return kilobytes[0] * 1024 / 1e9 if kilobytes else None
