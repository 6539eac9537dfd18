"""The jobs of the command line: files in, predictions, a model and a summary out."""

from .adapt import AdaptResult, run_adapt
from .distill import run_distill
from .drift import Batch, check_batch
from .inputs import AdaptJob, DistillJob, name_domains
from .labels import USES
from .predict import PredictProgress, find_domain, predict_rows, run_predict
from .scoring import error_interval, find_chance, gain_interval, is_no_better
from .tasks import TASKS
from .update import PURPOSES, TOOLS, AskJob, UpdateJob, run_ask, run_update
