"""Checks of what a plan holds: keys that are known, values of the right kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

_KINDS: tuple[tuple[type, type, str], ...] = (
    (bool, bool, "true or false"),
    (int, Integral, "an integer"),
    (float, Real, "a number"),
    (str, str, "a string"),
)


def check_keys(table: Any, allowed: AbstractSet[str], prefix: str) -> None:
    """Refuse a key that is not known, and name the one that was meant."""
    if not isinstance(table, Mapping):
        raise ValueError(f"{prefix.rstrip('.') or 'a plan'} must be a table, got {table!r}")
    for key in table:
        if key not in allowed:
            close = get_close_matches(key, allowed, 1)
            known = f"known are {', '.join(sorted(allowed))}" if allowed else "nothing can be set here"
            hint = f"did you mean {prefix}{close[0]}?" if close else known
            raise ValueError(f"{prefix}{key} is not known; {hint}")


def check_like(value: Any, default: Any, name: str) -> None:
    """Refuse a value of another kind than a default: a truth, a number, a string or a list of strings."""
    for of, kind, said in _KINDS:
        if isinstance(default, of):
            if not isinstance(value, kind) or (isinstance(value, bool) and of is not bool):
                raise ValueError(f"{name}={value!r} must be {said}")
            return
    if isinstance(default, Sequence):
        check_strings(value, name)


def check_plain(value: Any, name: str) -> None:
    """Refuse what no parameter is, such as a date or a table."""
    for own in value if isinstance(value, list) else [value]:
        if not isinstance(own, str | Real):
            raise ValueError(f"{name}={value!r} must be a number, true or false, a string, or a list of such")


def check_list(value: Any, name: str) -> Sequence[Any]:
    """Return a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{name}={value!r} must be a list")
    return value


def check_strings(value: Any, name: str) -> tuple[str, ...]:
    """Return names, at least one and none twice."""
    values = tuple(check_list(value, name))
    if not values or not all(isinstance(each, str) for each in values):
        raise ValueError(f"{name}={value!r} must be a list of names, at least one")
    if len(set(values)) < len(values):
        raise ValueError(f"{name} names one twice: {', '.join(values)}")
    return values
