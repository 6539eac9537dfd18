"""Row tables in files: CSV, TSV, JSON lines and Parquet, streamed in and written whole or not at all."""

from .columns import require_column, union_of, with_added
from .errors import TableError
from .rows import MISSING, Rows
from .shards import is_pattern, shard_paths
from .table import Table, open_table
from .writing import TableWriter, check_writable, write_table

__all__ = [
    "MISSING",
    "Rows",
    "Table",
    "TableError",
    "TableWriter",
    "check_writable",
    "is_pattern",
    "open_table",
    "require_column",
    "shard_paths",
    "union_of",
    "with_added",
    "write_table",
]
