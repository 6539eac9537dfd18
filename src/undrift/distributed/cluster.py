"""What is asked of Dask itself: a cluster, a value sent to it, an answer, and its failures in our words."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from typing import Any

from ..errors import UndriftError

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


def literal(value: Any, stage: str) -> Delayed:
    """Put a value in the graph as one node, sent once however many tasks use it."""
    return delayed(value, name=f"undrift-{stage}-{_token()}", traverse=False)


def _token() -> str:
    return os.urandom(16).hex()


class Stage:
    """A family of tasks that do the same to different blocks, under one name on the dashboard."""

    def __init__(self, name: str) -> None:
        self._name, self._n_tasks = f"undrift-{name}-{_token()}", 0

    def __call__(self, fn: Any, *arguments: Any, home: str | None = None) -> Delayed:
        """Return the lazy value of ``fn(*arguments)``, computed at `home` as long as that worker lives."""
        self._n_tasks += 1
        key = (self._name, self._n_tasks - 1)
        # the scheduler would move rows to a worker that has less to do, which costs more than it saves
        place = dask.annotate(workers=[home], allow_other_workers=True) if home else nullcontext()
        with place:
            return delayed(fn, pure=False, traverse=False)(*arguments, dask_key_name=key)


def tree_sum(values: Sequence[Delayed], name: str, homes: Sequence[Any] | None = None) -> Delayed:
    """Add values in a tree: first those of one home, so that one sum leaves each worker."""
    stage, groups = Stage(f"{name}-sum"), dict[Any, list[Delayed]]()
    for value, home in zip(values, homes or [None] * len(values), strict=True):
        groups.setdefault(home, []).append(value)
    return _summed([_summed(group, stage, home) for home, group in groups.items()], stage)


def _summed(values: list[Delayed], stage: Stage, home: str | None = None) -> Delayed:
    while len(values) > 1:
        groups = [values[i : i + TREE_WIDTH] for i in range(0, len(values), TREE_WIDTH)]
        values = [group[0] if len(group) == 1 else stage(_added, *group, home=home) for group in groups]
    return values[0]


def _added(*values: Any) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def client_of(values: Sequence[Any]) -> Any:
    """Return the client of the cluster that would compute `values`; None for a scheduler of this process."""
    owner = getattr(get_scheduler(collections=list(values)), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def homes_of(blocks: Sequence[Delayed]) -> list[Any]:
    """Return the worker that has each block, or what the block is made from; None where nobody knows."""
    client = client_of(blocks)
    if client is None:
        return [None] * len(blocks)
    from distributed import futures_of

    futures = [futures_of(block)[:1] for block in blocks]
    with asked():
        owners = client.who_has([own for found in futures for own in found])
    return [min(owners.get(found[0].key, ()), default=None) if found else None for found in futures]


def spread(sizes: Sequence[int], values: Sequence[Delayed]) -> list[Any]:
    """Share out blocks of these sizes, which are nowhere yet, among the workers that compute `values`."""
    client = client_of(values)
    if client is None:
        return [None] * len(sizes)
    with asked():
        workers = sorted(client.nthreads().items())
    if not workers:  # they may come later
        return [None] * len(sizes)
    loads = {address: 0.0 for address, _ in workers}
    n_threads, homes = dict(workers), []
    for size in sizes:
        home = min(loads, key=lambda address: loads[address] + size / n_threads[address])
        loads[home] += size / n_threads[home]
        homes.append(home)
    return homes


def computed(*values: Delayed) -> tuple[Any, ...]:
    """Compute lazy values and bring them here."""
    with retold():
        return dask.compute(*values, traverse=False)


def kept(*values: Delayed) -> tuple[Delayed, ...]:
    """Start computing values and leave them on the workers of a cluster; elsewhere they stay lazy.

    The cluster remembers how each was made, and makes it again should its worker die.
    """
    if client_of(values) is None:
        return values
    # a layer is part of the graph on purpose: a value without a recipe would be lost with its worker
    with retold(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return dask.persist(*values, traverse=False)


@contextmanager
def retold() -> Iterator[None]:
    """Tell the failures of a cluster in one line that says what to do."""
    try:
        yield
    except CancelledError as error:
        raise ClusterLost(
            "the Dask scheduler was lost, and the rows with it: nothing was written; "
            "start a scheduler and run again"
        ) from error
    except OSError as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise  # a file that a worker cannot read, say
        raise unreachable(error) from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise ClusterLost(
            f"a task ended every worker that tried it ({error}); the usual cause is memory: "
            "give smaller row blocks, or workers with more"
        ) from error


@contextmanager
def asked() -> Iterator[None]:
    """As `retold`, for questions to the scheduler: no file is read, so what fails is the connection."""
    try:
        with retold():
            yield
    except ClusterLost:
        raise
    except OSError as error:
        raise unreachable(error) from error


def unreachable(error: OSError) -> ClusterLost:
    """Return the complaint about a scheduler that does not answer."""
    return ClusterLost(f"the Dask scheduler cannot be reached: {error}; check its address")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield a client of the cluster at `address`, for the tasks inside the ``with`` block.

    Parameters
    ----------
    address : str
        ``local`` or ``local:N`` starts N worker processes on this machine (one for each processor by
        default) and stops them at the end; ``tcp://host:port`` is a scheduler that runs already.
    """
    n_workers = _n_workers(address)
    from distributed import Client, LocalCluster

    if n_workers is None:
        with _client(address) as client:
            yield client
        return
    options = {"threads_per_worker": max(1, _n_processors() // n_workers), "dashboard_address": "127.0.0.1:0"}
    # what goes wrong on a worker is raised here; its log would tell it twice
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
    """Number of local workers that an address asks for; None for the address of a scheduler."""
    local = re.fullmatch(r"local(?::([1-9]\d*))?", address)
    if local:
        return int(local[1]) if local[1] else _n_processors()
    if re.match(r"(tcp|tls|ucx|ws|wss)://.", address):
        return None
    raise ValueError(
        f"{address!r} is no cluster: write local, local:N with N workers, or the scheduler's tcp://host:port"
    )


def _n_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
