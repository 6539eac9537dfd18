"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from .anchors import draw_scored_rows
from .calibration import EXPECTED_ERROR_RECORD
from .data import check_domain_numbers, list_row_keys
from .distillation import DistilledClassifier, Taught, ask_teacher, distill
from .estimator import MSDAClassifier
from .extra_features import accept_old_names, check_extra
from .grams import CentredRows, RunningGram, centre_rows, inner_products, layer_share
from .layers import LayerFitter
from .linear import SOLVERS, hinge, predict_codes, signs
from .regressor import MSDARegressor
from .selection import NEED_TARGET, RULES, SELECTIONS, Problem, check_grid, draw_folds, find_rule, source_cv
from .self_training import SelfTraining, fit_dual
from .shares import check_shares
from .targets import HeldOut
from .together import FittedTask, TargetUpdates, fit_together
from .updating import LabelledRows, UpdateState
