"""Rows on a Dask cluster: the same results as in memory. Needs the `dask` extra."""

from .cluster import ClusterLost, compute, connect
from .lazy import blockwise, lazy_hidden, send_model
from .rows import OnDask, cluster_rows
from .shards import (
    Output,
    Shard,
    ShardSummary,
    count_exact_frequencies,
    predict_shards,
    survey_shards,
    vectorize_shards,
    write_shards,
)
