"""Records of runs, and what is made of them: measures, tables, verdicts."""

from . import published, records
from .differences import REFERENCE, Difference, differences
from .expected import check, load_bars, satisfied, verdict_table
from .measures import (
    Where,
    by_task,
    errors_by_task,
    failures,
    mean_error,
    mean_of,
    mean_ratio,
    ordered,
    peak_gigabytes,
    places,
    task,
    where,
)
from .page import filled, lost
from .records import Journal, Record, Unwritable, journal, read
from .regret import MEASURES, regret_table
from .table import results_table, side_by_side

__all__ = [
    "MEASURES",
    "REFERENCE",
    "Difference",
    "Journal",
    "Record",
    "Unwritable",
    "Where",
    "by_task",
    "check",
    "differences",
    "errors_by_task",
    "failures",
    "filled",
    "journal",
    "load_bars",
    "lost",
    "mean_error",
    "mean_of",
    "mean_ratio",
    "ordered",
    "peak_gigabytes",
    "places",
    "published",
    "read",
    "records",
    "regret_table",
    "results_table",
    "satisfied",
    "side_by_side",
    "task",
    "verdict_table",
    "where",
]
