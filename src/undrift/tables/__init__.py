"""Row tables in files: CSV, TSV, JSON lines and Parquet, read in bounded memory and written atomically."""

from .files import TableError, shard_paths
from .rows import MISSING, NumberColumns, Rows, require_column, union_of, with_added
from .table import Table, open_table
from .writing import check_writable, write_table
