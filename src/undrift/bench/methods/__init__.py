"""The benchmarked methods: what each learns, and its predictions."""

from .candidates import Point, candidate_records, points
from .cells import Bench, Cell, Failure, Finding, GridPoint, Outcome, Unit, here
from .classify import labels
from .distances import domain_pairs, measure_distances
from .in_domain import in_domain_error
from .registry import units
from .representation import Memory, file_name
from .stacks import SharedStack

__all__ = [
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
    "domain_pairs",
    "file_name",
    "here",
    "in_domain_error",
    "labels",
    "measure_distances",
    "points",
    "units",
]
