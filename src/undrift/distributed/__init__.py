"""Rows on a Dask cluster: the same two verbs, the same answer. Needs the `dask` extra."""

from .cluster import ClusterLost, computed, connected
from .lazy import blockwise, lazy_hidden, sent_model
from .rows import OnDask, cluster_rows
from .shards import (
    Output,
    Shard,
    Surveyed,
    exact_frequencies,
    predicted,
    survey,
    text_rows,
    write_shards,
)

__all__ = [
    "ClusterLost",
    "OnDask",
    "Output",
    "Shard",
    "Surveyed",
    "blockwise",
    "cluster_rows",
    "computed",
    "connected",
    "exact_frequencies",
    "lazy_hidden",
    "predicted",
    "sent_model",
    "survey",
    "text_rows",
    "write_shards",
]
