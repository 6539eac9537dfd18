"""Checks of the keys and values of a TOML file, each of which names the key in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

_TYPES: tuple[tuple[type, type, str], ...] = (
    (bool, bool, "true or false"),
    (int, Integral, "an integer"),
    (float, Real, "a number"),
    (str, str, "a string"),
)


def check_keys(table: Any, allowed: AbstractSet[str], prefix: str) -> None:
    """Refuse a key that is not allowed, and suggest the one that was meant."""
    if not isinstance(table, Mapping):
        raise ValueError(f"{prefix.rstrip('.') or 'a plan'} must be a table, got {table!r}")
    for key in table:
        if key not in allowed:
            close = get_close_matches(key, allowed, 1)
            known = f"known are {', '.join(sorted(allowed))}" if allowed else "nothing can be set here"
            hint = f"did you mean {prefix}{close[0]}?" if close else known
            raise ValueError(f"{prefix}{key} is not known; {hint}")


def check_like(value: Any, default: Any, name: str) -> None:
    """Refuse a value of another type than a default: a boolean, a number, a string or a list of strings."""
    for default_type, value_type, wanted in _TYPES:
        if isinstance(default, default_type):
            if not isinstance(value, value_type) or (isinstance(value, bool) and default_type is not bool):
                raise ValueError(f"{name}={value!r} must be {wanted}")
            return
    if isinstance(default, Sequence):
        check_strings(value, name)


def check_plain(value: Any, name: str) -> None:
    """Refuse a value that no parameter takes, such as a date or a table."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, str | Real):
            raise ValueError(f"{name}={value!r} must be a number, true or false, a string, or a list of such")


def check_list(value: Any, name: str) -> Sequence[Any]:
    """Return `value` if it is a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{name}={value!r} must be a list")
    return value


def check_strings(value: Any, name: str) -> tuple[str, ...]:
    """Return `value` as a tuple if it is a list of names, at least one and none twice."""
    values = tuple(check_list(value, name))
    if not values or not all(isinstance(each, str) for each in values):
        raise ValueError(f"{name}={value!r} must be a list of names, at least one")
    if len(set(values)) < len(values):
        raise ValueError(f"{name} names one twice: {', '.join(values)}")
    return values
