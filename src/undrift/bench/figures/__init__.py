"""Figures as data, and as SVG or PNG."""

from .data import ablation_figures, all_figures, named
from .draw import FORMATS, draw

__all__ = ["FORMATS", "ablation_figures", "all_figures", "draw", "named"]
