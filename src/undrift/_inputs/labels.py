"""Labels that are not there: None, NaN, or a missing value of pandas."""

from __future__ import annotations

from typing import Any

import numpy as np


def missing(y: np.ndarray) -> np.ndarray:
    """Tell which labels are None or NaN."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype == object:
        return np.array([is_missing(label) for label in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def is_missing(label: Any) -> bool:
    """Tell whether a label is None, NaN, or a missing value of pandas, which refuses to be compared."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True
