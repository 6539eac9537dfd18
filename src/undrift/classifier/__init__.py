"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from .data import stack_rows
from .estimator import MSDAClassifier
from .extra_features import checked_blocks
from .grid import Grid, check_comparable, checked_grid
from .linear import SOLVERS, hinge, signs, winners
from .search import judged, judged_rows, layer_share
from .selection import (
    ACCURACIES,
    NEED_TARGET,
    ONE_C,
    ONE_SE,
    RULES,
    SELECTIONS,
    Candidate,
    Problem,
    chosen_one,
    clearly_better,
    folds,
    scoring,
    source_cv,
)
from .self_training import SelfTraining, self_trained
from .source_weights import SOURCE_WEIGHTS

__all__ = [
    "ACCURACIES",
    "NEED_TARGET",
    "ONE_C",
    "ONE_SE",
    "RULES",
    "SELECTIONS",
    "SOLVERS",
    "SOURCE_WEIGHTS",
    "Candidate",
    "Grid",
    "MSDAClassifier",
    "Problem",
    "SelfTraining",
    "check_comparable",
    "checked_blocks",
    "checked_grid",
    "chosen_one",
    "clearly_better",
    "folds",
    "hinge",
    "judged",
    "judged_rows",
    "layer_share",
    "scoring",
    "self_trained",
    "signs",
    "source_cv",
    "stack_rows",
    "winners",
]
