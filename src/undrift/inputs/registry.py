"""Names that lower packages know: classes that can be saved, and the package for rows on a cluster."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

C = TypeVar("C", bound=type)
SAVABLE: dict[str, type] = {}  # classes that a model file may name, by name


def savable(cls: C) -> C:
    """Register an estimator or dataclass, by its name, as one that model files may hold."""
    SAVABLE[cls.__name__] = cls
    return cls


def load_cluster() -> Any:
    """Import the package for rows on a cluster, which needs an extra and is above this one."""
    return import_module("undrift.distributed")
