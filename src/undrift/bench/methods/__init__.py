"""The benchmarked methods: what each learns, and its predictions."""

from .candidates import Point, candidate_records, points
from .cells import Bench, Cell, Failure, Finding, GridPoint, Outcome, Unit, here
from .classify import labels
from .distances import distances, domain_pairs
from .in_domain import in_domain_error
from .ours import parameters, resolved
from .registry import LASTING, METHODS, known_method, method_parameters, units
from .representation import Memory, file_name
from .stacks import SharedStack

__all__ = [
    "LASTING",
    "METHODS",
    "Bench",
    "Cell",
    "Failure",
    "Finding",
    "GridPoint",
    "Memory",
    "Outcome",
    "Point",
    "SharedStack",
    "Unit",
    "candidate_records",
    "distances",
    "domain_pairs",
    "file_name",
    "here",
    "in_domain_error",
    "known_method",
    "labels",
    "method_parameters",
    "parameters",
    "points",
    "resolved",
    "units",
]
