"""Classes that a model file may name: each registers itself where it is defined."""

from __future__ import annotations

from typing import TypeVar

C = TypeVar("C", bound=type)
SAVABLE: dict[str, type] = {}


def savable(cls: C) -> C:
    """Register a class, by its name, as one that model files may hold."""
    SAVABLE[cls.__name__] = cls
    return cls
