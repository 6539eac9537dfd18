"""Rows on a Dask cluster: the same two verbs, the same answer. Needs the `dask` extra."""

from .cluster import ClusterLost, connected
from .lazy import blockwise, lazy_hidden
from .rows import OnDask, cluster_rows

__all__ = ["ClusterLost", "OnDask", "blockwise", "cluster_rows", "connected", "lazy_hidden"]
