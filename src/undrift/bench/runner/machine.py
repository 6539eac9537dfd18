"""What a run ran on, in words."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def description(device: str = "cpu") -> str:
    """Processor, cores, the GPU if one is used, and the versions of what does the arithmetic."""
    parts = [f"{_processor()}, {os.cpu_count()} cores"]
    if device != "cpu":
        import torch

        if device.startswith("cuda"):
            parts.append(torch.cuda.get_device_name(device))
        parts.append(f"torch {torch.__version__}")
    import numpy
    import sklearn

    return "; ".join([*parts, f"numpy {numpy.__version__}", f"scikit-learn {sklearn.__version__}"])


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
