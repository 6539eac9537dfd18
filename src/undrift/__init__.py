"""Closed-form domain adaptation: train here, predict there."""

from ._version import __version__
from ._warnings import UndriftWarning
from .adapter import TextAdapter
from .classifier import MSDAClassifier
from .mda import MDA
from .msda import MSDA
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
