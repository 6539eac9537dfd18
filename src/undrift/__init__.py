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

_HOMES = {
    "msda": ("MDA", "MSDA"),
    "method": ("MSDAClassifier",),
    "text": ("DistilledText", "TermVectorizer", "TextAdapter"),
    "persist": ("load_model", "save_model"),
    "report": ("adaptation_report",),
}


def __getattr__(name: str) -> object:
    """Import the package of a name when it is first used: estimators bring scikit-learn."""
    for package, names in _HOMES.items():
        if name in names:
            module = _import_module(f"undrift.{package}")
            globals().update({public: getattr(module, public) for public in names})
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
