"""The paper's figures as data; `undrift.report` draws them."""

from .data import ablation_figures, all_figures, named, series_numbers

__all__ = ["ablation_figures", "all_figures", "named", "series_numbers"]
