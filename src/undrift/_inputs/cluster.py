"""Rows on a cluster: the package that knows them registers itself here, and is loaded when they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_loaders: list[Callable[[], Any]] = []


def register_cluster(load: Callable[[], Any]) -> None:
    """Name the function that imports the package for rows on a cluster."""
    _loaders[:] = [load]


def load_cluster() -> Any:
    """Import the package for rows on a cluster: `cluster_rows`, `blockwise`, `lazy_hidden`."""
    return _loaders[0]()
