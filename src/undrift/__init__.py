"""Closed-form domain adaptation: train here, predict there."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._version import __version__
from .errors import UndriftError, UndriftWarning

if _TYPE_CHECKING:
    from .method import MSDAClassifier
    from .msda import MDA, MSDA
    from .persist import load_model, save_model
    from .report import adaptation_report
    from .text import DistilledText, TermVectorizer, TextAdapter

__all__ = [
    "MDA",
    "MSDA",
    "DistilledText",
    "MSDAClassifier",
    "TermVectorizer",
    "TextAdapter",
    "UndriftError",
    "UndriftWarning",
    "__version__",
    "adaptation_report",
    "load_model",
    "save_model",
]

_PACKAGES = ("msda", "method", "text", "persist")  # all at once: any model can be loaded


def __getattr__(name: str) -> object:
    """Import the packages of a name when it is first used: estimators bring scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for package in ("report",) if name == "adaptation_report" else _PACKAGES:
        module = _import_module(f"undrift.{package}")
        globals().update({public: getattr(module, public) for public in __all__ if hasattr(module, public)})
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
