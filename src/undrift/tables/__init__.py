"""Row tables in files: CSV, TSV, JSON lines and Parquet, read in bounded memory and written atomically."""

from .files import TableError, is_pattern, shard_paths
from .rows import MISSING, NumberColumns, Rows, require_column, union_of, with_added
from .table import Table, open_table
from .writing import TableWriter, check_writable, write_table

__all__ = [
    "MISSING",
    "NumberColumns",
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
