"""Threads and processes that work for a run, and leaving without those that are still at it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NoReturn

NAME = "undrift-worker"  # what the names of the threads begin with
GRACE_SECONDS = 0.2  # in which a thread that has nothing to do ends
IDLE_SECONDS = 60  # after which a process that has nothing to do ends


class Workers(ThreadPoolExecutor):
    """A pool of threads, and of as many processes where asked for.

    As a context it waits for what is under way if all went well. After an error or an interrupt it does
    not: processes are killed, and threads, which cannot be, are left to themselves (see `leave`).
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__(n_workers, thread_name_prefix=NAME, initializer=_deaf)
        self._n_workers = n_workers
        self._processes: Any = None

    def processes(self) -> Executor:
        """Processes for what holds Python's lock, where threads would not help; to be called in a thread."""
        from joblib.externals.loky import get_reusable_executor

        self._processes = get_reusable_executor(self._n_workers, timeout=IDLE_SECONDS)
        return self._processes

    def give_up(self) -> None:
        """Begin nothing more, and wait for nothing."""
        self.shutdown(wait=False, cancel_futures=True)
        if self._processes is not None:
            self._processes.shutdown(wait=False, kill_workers=True)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.give_up()


def leave(status: int) -> NoReturn:
    """End the process. Python itself would wait for threads that were given up; this does not."""
    try:
        end = time.monotonic() + GRACE_SECONDS
        given_up = [thread for thread in threading.enumerate() if thread.name.startswith(NAME)]
        for thread in given_up:
            thread.join(max(0.0, end - time.monotonic()))
        busy = any(thread.is_alive() for thread in given_up)
    except KeyboardInterrupt:  # once more, by someone who does not want to wait
        busy = True
    if busy:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


def _deaf() -> None:
    """Keep interrupts from this thread and, which is the point, from processes that it starts.

    A terminal interrupts all of them at once. The main thread hears it, and decides for the others.
    """
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
