"""Closed-form domain adaptation: train here, predict there."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._registry import register_cluster as _register_cluster
from ._version import __version__
from .errors import UndriftError, UndriftWarning

if _TYPE_CHECKING:
    from .classifier import MSDAClassifier, MSDARegressor, SelfTraining
    from .persist import load_model, save_model
    from .report import adaptation_report
    from .representation import MDA, MSDA
    from .text import DistilledText, TermVectorizer, TextAdapter, text_classifier, text_regressor

_register_cluster(lambda: _import_module("undrift.distributed"))

__all__ = [
    "MDA",
    "MSDA",
    "DistilledText",
    "MSDAClassifier",
    "MSDARegressor",
    "SelfTraining",
    "TermVectorizer",
    "TextAdapter",
    "UndriftError",
    "UndriftWarning",
    "__version__",
    "adaptation_report",
    "load_model",
    "save_model",
    "text_classifier",
    "text_regressor",
]

_PACKAGES = (
    "representation",
    "classifier",
    "skada",
    "text",
    "persist",
)  # all at once: any model can be loaded


def __getattr__(name: str) -> object:
    """Import what is used first: estimators bring scikit-learn, and `adaptation_report` needs an extra."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for package in ("report",) if name == "adaptation_report" else _PACKAGES:
        module = _import_module(f"undrift.{package}")
        globals().update({public: getattr(module, public) for public in __all__ if hasattr(module, public)})
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
