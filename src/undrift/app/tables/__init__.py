"""Files of rows: CSV, TSV, JSON, spreadsheets and Parquet, read in bounded memory and written atomically."""

from .files import TableError, join_kinds, list_texts, list_values, with_added, write_text
from .paths import is_pattern, is_table, shard_paths
from .reading import Table, common_delimiter, open_table
from .writing import Style, check_file, check_table, write_table
