"""The benchmarked methods: what each learns, and its predictions."""

from .candidates import points
from .cells import Bench, Cell, CellRecord, Failure, Finding, GridPoint, Outcome, Point, Unit, call_here
from .distances import domain_pairs
from .representation import RepresentationCache, file_name
from .stacks import SharedStack
from .svm import in_domain_error
from .units import cut_into_units
