"""The jobs of the command line: files in, predictions, a model and a summary out."""

from .adapt import AdaptResult, run_adapt
from .inputs import AdaptJob, ShowStage
from .predict import PredictProgress, run_predict

__all__ = ["AdaptJob", "AdaptResult", "PredictProgress", "ShowStage", "run_adapt", "run_predict"]
