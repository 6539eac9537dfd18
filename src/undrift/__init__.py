"""Closed-form domain adaptation: train here, predict there."""

from importlib import import_module as _import_module

from ._inputs import register_cluster as _register_cluster
from ._version import __version__
from .classifier import MSDAClassifier
from .errors import UndriftWarning
from .persist import load_model, save_model
from .representation import MDA, MSDA
from .text import TermVectorizer, TextAdapter

_register_cluster(lambda: _import_module("undrift.distributed"))

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
