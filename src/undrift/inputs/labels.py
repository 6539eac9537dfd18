"""Labels: which are missing (None, NaN, a missing value of pandas), and one spelling for 1, 1.0 and "1"."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


def missing_mask(y: np.ndarray) -> np.ndarray:
    """Mark the labels that are missing."""
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


def settle_labels(y: Any) -> Any:
    """Return whole numbers as integers: a data frame makes 0 and 1 floats where some labels are missing."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return y
    known = np.array([label for label in labels if not is_missing(label)], dtype=object)
    if not all(isinstance(label, float) and label.is_integer() for label in known):
        return y
    if len(known) == len(labels):
        return labels.astype(np.int64)
    settled = np.full(len(labels), None, dtype=object)
    settled[~missing_mask(labels)] = [int(label) for label in known]
    return settled


def spell_label(label: Any) -> str:
    """Write a label as text, the same for 1, 1.0, "1" and "1.0" of different files."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    text = str(label)
    number = _WHOLE_NUMBER.fullmatch(text)
    return number[1] if number else text
