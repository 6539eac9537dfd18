"""`MSDAClassifier`: the method, from rows of every domain to the votes of the readings."""

from .anchors import Anchors
from .asking import choose_for_estimate
from .calibrate import class_probabilities, find_border, fit_temperature
from .classifier import MSDAClassifier
from .fit import Fitted, Memory, fit_level
from .judge import Facts
from .least_squares import predict_codes
from .model import Model, shift_probabilities
from .problem import TARGET, Name, check_domain_numbers, check_problem, list_row_keys
from .settings import AnchorSettings, Settings
from .shares import check_shares
from .targets import (
    MOST_STORIES,
    MUCH_DISAGREEMENT,
    Readings,
    TargetResults,
    describe_target,
    describe_torn,
    is_open,
    list_heard,
    measure_disagreement,
)
from .teacher import Given, Words
