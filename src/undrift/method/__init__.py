"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from .classifier import MSDAClassifier
from .constants import EXPECTED_ERROR_RECORD, FEW_TAUGHT
from .distill import DistilledClassifier, Taught, ask_teacher, distill
from .domains import TARGET, check_domain_numbers, check_domains, list_row_keys
from .shares import check_shares
from .solve import predict_codes
from .update import choose_for_estimate
