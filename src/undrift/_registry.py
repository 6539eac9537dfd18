"""What higher packages register here: the package for rows on a cluster, and classes that can be saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C", bound=type)
SAVABLE: dict[str, type] = {}  # classes that a model file may name, by name

_cluster_loaders: list[Callable[[], Any]] = []


def savable(cls: C) -> C:
    """Register a class, by its name, as one that model files may hold."""
    SAVABLE[cls.__name__] = cls
    return cls


def register_cluster(load: Callable[[], Any]) -> None:
    """Register the function that imports the package for rows on a cluster."""
    _cluster_loaders[:] = [load]


def load_cluster() -> Any:
    """Import the package for rows on a cluster, which has `cluster_rows`, `blockwise` and `lazy_hidden`."""
    return _cluster_loaders[0]()
