"""Seconds that something takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def measure_time(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what `function` returns, and the seconds it took."""
    began = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - began
