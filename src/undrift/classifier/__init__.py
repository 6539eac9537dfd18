"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from .data import stack_rows
from .estimator import MSDAClassifier
from .extra_features import checked_blocks
from .grid import Grid, checked_grid
from .linear import SOLVERS, hinge, signs, winners
from .search import judged, judged_rows, layer_share
from .selection import (
    NEED_TARGET,
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

__all__ = [
    "NEED_TARGET",
    "ONE_SE",
    "RULES",
    "SELECTIONS",
    "SOLVERS",
    "Candidate",
    "Grid",
    "MSDAClassifier",
    "Problem",
    "SelfTraining",
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
