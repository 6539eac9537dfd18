"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from .anchors import draw_scored_rows
from .calibration import EXPECTED_ERROR_RECORD
from .distillation import DistilledClassifier, Taught, ask_teacher, distill
from .estimator import MSDAClassifier
from .extra_features import accept_old_names, check_extra
from .grams import CentredRows, RunningGram, centre_rows, inner_products, layer_share
from .layers import LayerFitter
from .linear import SOLVERS, hinge, predict_codes, signs
from .regressor import MSDARegressor
from .selection import (
    NEED_TARGET,
    ONE_SE,
    RULES,
    SELECTIONS,
    Candidate,
    Grid,
    Problem,
    check_grid,
    choose_candidate,
    draw_folds,
    find_rule,
    is_clearly_better,
    source_cv,
)
from .self_training import SelfTraining, fit_dual
from .shares import check_shares
from .targets import HeldOut
from .together import FittedTask, TargetUpdates, fit_together
from .updating import LabelledRows, UpdateState, list_row_keys

__all__ = [
    "EXPECTED_ERROR_RECORD",
    "NEED_TARGET",
    "ONE_SE",
    "RULES",
    "SELECTIONS",
    "SOLVERS",
    "Candidate",
    "CentredRows",
    "DistilledClassifier",
    "FittedTask",
    "Grid",
    "HeldOut",
    "LabelledRows",
    "LayerFitter",
    "MSDAClassifier",
    "MSDARegressor",
    "Problem",
    "RunningGram",
    "SelfTraining",
    "TargetUpdates",
    "Taught",
    "UpdateState",
    "accept_old_names",
    "ask_teacher",
    "centre_rows",
    "check_extra",
    "check_grid",
    "check_shares",
    "choose_candidate",
    "distill",
    "draw_folds",
    "draw_scored_rows",
    "find_rule",
    "fit_dual",
    "fit_together",
    "hinge",
    "inner_products",
    "is_clearly_better",
    "layer_share",
    "list_row_keys",
    "predict_codes",
    "signs",
    "source_cv",
]
