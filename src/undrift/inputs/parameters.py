"""Parameters and labels at the boundary: errors name the parameter, the value seen and a remedy.

A label is missing if it is None, NaN or a missing value of pandas; 1, 1.0 and "1" have one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..machine import measure_memory

Column: TypeAlias = ArrayLike | Sequence[Hashable]  # a value for each row, None or NaN where there is none
_WHOLE_NUMBER = re.compile(r"(-?\d+)\.0+")


def _number(value: Any, name: str, kind: type, kind_name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind_name}, got {value!r} of type {type(value).__name__}")


def check_noise(value: Any) -> float:
    """Return a corruption probability, in [0, 1)."""
    _number(value, "noise", Real, "a number")
    if not 0 <= value < 1:
        hint = ": at 1 every feature is always missing, nothing can be learnt; try 0.9" if value == 1 else ""
        raise ValueError(f"noise={value!r} must be at least 0 and below 1{hint}")
    return float(value)


def check_positive(value: Any, name: str, *, zero: bool = False, hint: str = "") -> float:
    """Return a positive (or, with `zero`, non-negative) finite number."""
    _number(value, name, Real, "a number")
    if not ((value >= 0 if zero else value > 0) and value < float("inf")):
        bound = "at least 0" if zero else "above 0"
        raise ValueError(f"{name}={value!r} must be {bound} and finite" + (f"; {hint}" if hint else ""))
    return float(value)


def check_count(value: Any, name: str, *, hint: str = "") -> int:
    """Return an integer of at least 1."""
    _number(value, name, Integral, "an integer")
    if value < 1:
        raise ValueError(f"{name}={value!r} must be at least 1" + (f"; {hint}" if hint else ""))
    return int(value)


def check_pivots(value: Any, d: int) -> int:
    """Return a number of pivots, at most the number of features."""
    hint = "leave it None to reconstruct every feature"
    if check_count(value, "n_pivots", hint=hint) > d:
        raise ValueError(f"n_pivots={value!r} is more than the {d} features of X; {hint}")
    return int(value)


def check_choice(value: Any, name: str, choices: Sequence[Any]) -> Any:
    """Return a value that is one of `choices`."""
    if not isinstance(value, str | None) or value not in choices:
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
