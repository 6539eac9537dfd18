"""Closed-form domain adaptation: train here, predict there."""

from ._version import __version__
from ._warnings import UndriftWarning
from .estimators import MDA, MSDA
from .persist import load_model, save_model

__all__ = ["MDA", "MSDA", "UndriftWarning", "__version__", "load_model", "save_model"]
