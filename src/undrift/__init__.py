"""Closed-form domain adaptation: train here, predict there."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__
from ._warnings import UndriftWarning

if TYPE_CHECKING:
    from .adapter import TextAdapter
    from .classifier import MSDAClassifier
    from .estimators import MDA, MSDA
    from .persist import load_model, save_model
    from .text import TermVectorizer

__all__ = [
    "MDA",
    "MSDA",
    "MSDAClassifier",
    "TermVectorizer",
    "TextAdapter",
    "UndriftWarning",
    "__version__",
    "load_model",
    "save_model",
]

# where each public name is found when it is first asked for: the core alone needs no scikit-learn
_HOMES = {
    "MDA": "estimators",
    "MSDA": "estimators",
    "MSDAClassifier": "classifier",
    "TermVectorizer": "text",
    "TextAdapter": "adapter",
    "load_model": "persist",
    "save_model": "persist",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
