"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from .calibrate import class_probabilities, find_border, fit_temperature
from .classifier import MSDAClassifier
from .constants import DISTILL_RIDGES, DISTILL_ROWS, EXPECTED_ERROR_RECORD, FEW_TAUGHT
from .domains import TARGET, Name, check_domain_numbers, check_domains, list_row_keys
from .shares import check_shares
from .solve import predict_codes
from .targets import BatchReference, TargetModel
from .update import choose_for_estimate
