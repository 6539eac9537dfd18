"""The jobs of the command line: files in, predictions, a model and a summary out."""

from .adapt import AdaptResult, run_adapt
from .distill import run_distill
from .inputs import AdaptJob, DistillJob, ShowStage
from .predict import PredictProgress, run_predict

__all__ = [
    "AdaptJob",
    "AdaptResult",
    "DistillJob",
    "PredictProgress",
    "ShowStage",
    "run_adapt",
    "run_distill",
    "run_predict",
]
