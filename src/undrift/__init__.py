"""Closed-form domain adaptation: train here, predict there."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._inputs import register_cluster as _register_cluster
from ._version import __version__
from .classifier import MSDAClassifier, SelfTraining
from .errors import UndriftError, UndriftWarning
from .persist import load_model, save_model
from .representation import MDA, MSDA
from .text import TermVectorizer, TextAdapter, text_classifier

if _TYPE_CHECKING:
    from .report import adaptation_report

_register_cluster(lambda: _import_module("undrift.distributed"))

__all__ = [
    "MDA",
    "MSDA",
    "MSDAClassifier",
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
]


def __getattr__(name: str) -> object:
    """Import `adaptation_report` when it is first used: it needs the `report` extra."""
    if name == "adaptation_report":
        return _import_module("undrift.report").adaptation_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
