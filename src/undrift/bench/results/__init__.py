"""Records of runs, and what is made of them: measures, tables, verdicts."""

from .balance import balance_table, group_by_share, varies_shares
from .comparison import PEERS_PLAN, mean_errors
from .expected import are_met, check_bars, load_bars, verdict_table
from .labels import group_by_labels, labels_table, mean_label_error, varies_labels
from .measures import (
    REFERENCE,
    Difference,
    Where,
    by_task,
    differences,
    errors_by_task,
    failures,
    mean_error,
    mean_of,
    mean_ratio,
    peak_gigabytes,
    places,
    sort_places,
    task,
    where,
)
from .page import fill_page, fill_pages, make_table
from .published import AMAZON, HIGH_DIMENSION, PAPER, SAME_ROWS, same_test_rows
from .records import Journal, Record, Unwritable, journal, merge_records, read
from .table import published_rows, results_table

__all__ = [
    "AMAZON",
    "HIGH_DIMENSION",
    "PAPER",
    "PEERS_PLAN",
    "REFERENCE",
    "SAME_ROWS",
    "Difference",
    "Journal",
    "Record",
    "Unwritable",
    "Where",
    "are_met",
    "balance_table",
    "by_task",
    "check_bars",
    "differences",
    "errors_by_task",
    "failures",
    "fill_page",
    "fill_pages",
    "group_by_labels",
    "group_by_share",
    "journal",
    "labels_table",
    "load_bars",
    "make_table",
    "mean_error",
    "mean_errors",
    "mean_label_error",
    "mean_of",
    "mean_ratio",
    "merge_records",
    "peak_gigabytes",
    "places",
    "published_rows",
    "read",
    "results_table",
    "same_test_rows",
    "sort_places",
    "task",
    "varies_labels",
    "varies_shares",
    "verdict_table",
    "where",
]
