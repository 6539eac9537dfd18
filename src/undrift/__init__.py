"""Closed-form domain adaptation: train here, predict there."""

from ._version import __version__

__all__ = ["__version__"]
