"""The jobs of the command line: files in, predictions, a model and a summary out."""

from .adapt import AdaptResult, run_adapt
from .inputs import AdaptJob, ShowStage
from .predict import run_predict

__all__ = ["AdaptJob", "AdaptResult", "ShowStage", "run_adapt", "run_predict"]
