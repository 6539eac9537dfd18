"""The benchmarked methods: what each learns, and its predictions."""

from .cells import Bench, Cell, CellRecord, Failure, Finding, GridPoint, Outcome, describe_failure
from .distances import domain_pairs
from .families import find_outcomes
from .files import TwoFiles, solve
from .stacks import SharedStack
from .svm import in_domain_error
