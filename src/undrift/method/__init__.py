"""`MSDAClassifier`: the method, from rows of every domain to the votes of the readings."""

from .anchors import Anchors, Facts
from .asking import N_QUESTIONS, choose_for_estimate, find_doubts, list_chances, weigh_draws
from .classifier import MSDAClassifier, Purpose
from .fit import Fitted, Memory, fit_problem
from .layers import Learning, Stack, learn_layers
from .model import Model
from .predictor import Predictor
from .problem import (
    TARGET,
    Name,
    Problem,
    Words,
    check_domain_numbers,
    check_shares,
    list_row_keys,
)
from .scores import find_border, fit_temperature, predict_codes
from .settings import PARTS, AnchorSettings, Settings
from .targets import (
    MOST_STORIES,
    MUCH_DISAGREEMENT,
    ExpectedError,
    ReadingFacts,
    Readings,
    TargetFacts,
    describe_target,
    describe_torn,
    is_open,
    list_heard,
    measure_disagreement,
)
from .teacher import Given
