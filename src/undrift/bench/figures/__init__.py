"""The paper's figures as data; `undrift.report` draws them."""

from .data import ablation_figures, all_figures, choose_figures

__all__ = ["ablation_figures", "all_figures", "choose_figures"]
