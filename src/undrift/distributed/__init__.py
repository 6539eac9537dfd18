"""Rows on a Dask cluster: the same results as in memory. Needs the `dask` extra."""

from .cluster import ClusterLost, Stage, assign_workers, compute, connect, literal, persist, tree_sum
from .lazy import blockwise, lazy_hidden, send_model
from .rows import BlockFacts, OnDask, cluster_rows, n_bytes
