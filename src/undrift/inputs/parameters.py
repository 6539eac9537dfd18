"""Parameters and labels at the boundary: errors name the parameter, the value seen and a remedy.

A label is missing if it is None, NaN or a missing value of pandas; 1, 1.0 and "1" have one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..machine import measure_memory

Column: TypeAlias = ArrayLike | Sequence[Hashable]  # a value for each row, None or NaN where there is none
T = TypeVar("T")
_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


def _check_real(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    return float(value)


def check_noise(value: object) -> float:
    """Return a corruption probability, in [0, 1)."""
    number = _check_real(value, "noise")
    if not 0 <= number < 1:
        hint = ": at 1 every feature is always missing, nothing can be learnt; try 0.9" if number == 1 else ""
        raise ValueError(f"noise={value!r} must be at least 0 and below 1{hint}")
    return number


def check_positive(value: object, name: str, *, zero: bool = False, hint: str = "") -> float:
    """Return a positive (or, with `zero`, non-negative) finite number."""
    number = _check_real(value, name)
    if not ((number >= 0 if zero else number > 0) and number < float("inf")):
        bound = "at least 0" if zero else "above 0"
        raise ValueError(f"{name}={value!r} must be {bound} and finite" + (f"; {hint}" if hint else ""))
    return number


def check_count(value: object, name: str, *, hint: str = "") -> int:
    """Return an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    number = int(value)
    if number < 1:
        raise ValueError(f"{name}={value!r} must be at least 1" + (f"; {hint}" if hint else ""))
    return number


def check_pivots(value: object, d: int) -> int:
    """Return a number of pivots, at most the number of features."""
    hint = "leave it None to reconstruct every feature"
    n_pivots = check_count(value, "n_pivots", hint=hint)
    if n_pivots > d:
        raise ValueError(f"n_pivots={value!r} is more than the {d} features of X; {hint}")
    return n_pivots


def check_choice(value: T, name: str, choices: Sequence[str | bool | None]) -> T:
    """Return a value that is one of `choices`."""
    if not isinstance(value, str | bool | None) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r} is not known; choose one of {allowed}")
    return value


def half_of_memory() -> float:
    """Return half of the memory of this machine, or of its container, in bytes."""
    return measure_memory() / 2


def missing_mask(y: np.ndarray) -> np.ndarray:
    """Mark the labels that are missing."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype == object:
        return np.array([is_missing(label) for label in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def is_missing(label: object) -> bool:
    """Tell whether a label is None, NaN, or a missing value of pandas, which refuses to be compared."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def settle_labels(y: Column | None) -> Column | None:
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


def spell_label(label: object) -> str:
    """Write a label as text, the same for 1, 1.0, "1" and "1.0" of different files."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    text = str(label)
    number = _WHOLE_NUMBER.fullmatch(text)
    return number[1] if number else text
