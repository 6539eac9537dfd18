"""Use Dask: connections, stages of tasks, sums in a tree, and one-line messages for failures."""

from __future__ import annotations

import logging
import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from functools import reduce
from typing import Any

from ..errors import UndriftError
from ..machine import count_processors

try:
    import dask
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
except ImportError:
    raise ImportError("rows on a cluster need the `dask` extra: pip install 'undrift[dask]'") from None

SILENT = logging.CRITICAL + 1
TREE_WIDTH = 4  # values that are added at once


class ClusterLost(OSError, UndriftError):
    """The scheduler, or every worker that a task was tried on, is gone."""


def literal(value: object, stage: str) -> Delayed:
    """Put a value in the graph as one node, sent once however many tasks use it."""
    return delayed(value, name=f"undrift-{stage}-{_token()}", traverse=False)


def _token() -> str:
    return os.urandom(16).hex()


class Stage:
    """A family of tasks that do the same to different blocks, under one name on the dashboard."""

    def __init__(self, name: str) -> None:
        self._name, self._n_tasks = f"undrift-{name}-{_token()}", 0

    def __call__(self, fn: Callable, *arguments: object, worker: str | None = None) -> Delayed:
        """Return the lazy value of ``fn(*arguments)``, computed by `worker` as long as it lives."""
        self._n_tasks += 1
        key = (self._name, self._n_tasks - 1)
        # the scheduler would move rows to a worker that has less to do, which costs more than it saves
        place = dask.annotate(workers=[worker], allow_other_workers=True) if worker else nullcontext()
        with place:
            return delayed(fn, pure=False, traverse=False)(*arguments, dask_key_name=key)


def tree_sum(values: Sequence[Delayed], name: str, workers: Sequence[str | None] | None = None) -> Delayed:
    """Add values in a tree: first those of one worker, so that one sum leaves each."""
    stage, groups = Stage(f"{name}-sum"), dict[str | None, list[Delayed]]()
    for value, worker in zip(values, workers or [None] * len(values), strict=True):
        groups.setdefault(worker, []).append(value)
    return _sum_in_tree([_sum_in_tree(group, stage, worker) for worker, group in groups.items()], stage)


def _sum_in_tree(values: list[Delayed], stage: Stage, worker: str | None = None) -> Delayed:
    while len(values) > 1:
        groups = [values[i : i + TREE_WIDTH] for i in range(0, len(values), TREE_WIDTH)]
        values = [group[0] if len(group) == 1 else stage(_sum, *group, worker=worker) for group in groups]
    return values[0]


def _sum(*values: Any) -> Any:
    return reduce(operator.add, values)


def find_client(values: Sequence[Delayed]) -> Any:
    """Return the client of the cluster that would compute `values`; None for a scheduler of this process."""
    owner = getattr(get_scheduler(collections=list(values)), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def find_workers(blocks: Sequence[Delayed]) -> list[str | None]:
    """Return the worker that holds each block, or its input; None where that is not known."""
    client = find_client(blocks)
    if client is None:
        return [None] * len(blocks)
    from distributed import futures_of

    futures = [futures_of(block)[:1] for block in blocks]
    with translate_errors(reads_files=False):
        holders = client.who_has([future for group in futures for future in group])
    return [min(holders.get(group[0].key, ()), default=None) if group else None for group in futures]


def assign_workers(sizes: Sequence[int], values: Sequence[Delayed]) -> list[str | None]:
    """Choose a worker for each block of these sizes, so that the cluster's load is balanced."""
    client = find_client(values)
    if client is None:
        return [None] * len(sizes)
    with translate_errors(reads_files=False):
        workers = sorted(client.nthreads().items())
    if not workers:  # they may come later
        return [None] * len(sizes)
    loads = {address: 0.0 for address, _ in workers}
    n_threads, assigned = dict(workers), []
    for size in sizes:
        worker = min(loads, key=lambda address: loads[address] + size / n_threads[address])
        loads[worker] += size / n_threads[worker]
        assigned.append(worker)
    return assigned


def compute(*values: Delayed) -> tuple[Any, ...]:
    """Compute lazy values and bring them here."""
    with translate_errors():
        return dask.compute(*values, traverse=False)


def persist(*values: Delayed) -> tuple[Delayed, ...]:
    """Start computing values and leave them on the workers of a cluster; elsewhere they stay lazy.

    The cluster knows how each was made, and makes it again if its worker dies.
    """
    if find_client(values) is None:
        return values
    # a layer is part of the graph on purpose: a value without a recipe would be lost with its worker
    with translate_errors(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return dask.persist(*values, traverse=False)


@contextmanager
def translate_errors(reads_files: bool = True) -> Iterator[None]:
    """Raise the failures of a cluster as `ClusterLost`, in one line with a remedy.

    Where no file is read, every OSError is one of the connection.
    """
    try:
        yield
    except (CancelledError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "after shutdown" not in str(error):  # of a scheduler that ends
            raise
        raise ClusterLost(
            "the Dask scheduler was lost, and the rows with it: nothing was written; "
            "start a scheduler and run again"
        ) from error
    except OSError as error:
        if reads_files and type(error).__module__.partition(".")[0] != "distributed":
            raise  # a file that a worker cannot read, say
        raise ClusterLost(f"the Dask scheduler cannot be reached: {error}; check its address") from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise ClusterLost(
            f"a task ended every worker that tried it ({error}); the usual cause is memory: "
            "give smaller row blocks, or workers with more"
        ) from error


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Yield a client of the cluster at `address`, for the tasks inside the ``with`` block.

    ``local`` or ``local:N`` starts N worker processes on this machine (one for each processor by default) and
    stops them at the end; ``tcp://host:port`` is a scheduler that runs already.
    """
    n_workers = _n_workers(address)
    from distributed import Client, LocalCluster
    from distributed.utils import silence_logging_cmgr

    # failures of a worker or the scheduler are raised here; the log would repeat them
    if n_workers is None:
        with silence_logging_cmgr(SILENT), _client(address) as client:
            yield client
        return
    options = {
        "threads_per_worker": max(1, count_processors() // n_workers),
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        LocalCluster(n_workers=n_workers, silence_logs=SILENT, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _client(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address)
    except OSError as error:
        raise ClusterLost(
            f"no Dask scheduler answers at {address}: start one with `dask scheduler`, or check the address"
        ) from error


def _n_workers(address: str) -> int | None:
    """Return the number of local workers that an address asks for; None for a scheduler's address."""
    local = re.fullmatch(r"local(?::([1-9]\d*))?", address)
    if local:
        return int(local[1]) if local[1] else count_processors()
    if re.match(r"(tcp|tls|ucx|ws|wss)://.", address):
        return None
    raise ValueError(
        f"{address!r} is no cluster: write local, local:N with N workers, or the scheduler's tcp://host:port"
    )
