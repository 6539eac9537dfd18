"""Labels: which are missing (None, NaN, a missing value of pandas), and one spelling for 1, 1.0 and "1"."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


def missing_mask(y: np.ndarray) -> np.ndarray:
    """Mark the labels that are missing; a row of several columns is, if all of them are."""
    if y.ndim == 2:
        return np.isnan(y).all(axis=1) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
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


def spell_label(label: Any) -> str:
    """Write a label as text, the same for 1, 1.0, "1" and "1.0" of different files.

    Examples
    --------
    >>> [spell_label(label) for label in (1, 1.0, "1", "1.0", 1.5, "good")]
    ['1', '1', '1', '1', '1.5', 'good']
    """
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    text = str(label)
    number = _WHOLE_NUMBER.fullmatch(text)
    return number[1] if number else text
