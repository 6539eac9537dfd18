"""Threads and processes that work for a run, and leaving without those that are still at it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

NAME = "undrift-worker"  # what the names of the threads begin with
GRACE_SECONDS = 0.2  # in which a thread that has nothing to do ends
CHILD = "from undrift._processes import serve; serve()"


class WorkerPool(ThreadPoolExecutor):
    """A pool of threads, each of which may have something done by a process of its own.

    As a context it waits for what is under way if all went well. After an error or an interrupt it does
    not: processes are killed, and threads, which cannot be, are left to themselves (see `exit_process`).
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__(n_workers, thread_name_prefix=NAME)
        self._children: set[subprocess.Popen[bytes]] = set()
        self._changing = threading.Lock()
        self._abandoned = False

    def call_in_subprocess(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a process, as what holds Python's lock should be; it must be importable."""
        with self._changing:
            if self._abandoned:
                raise ChildProcessError("the run has been stopped")
            child = _started()
            self._children.add(child)
        with child:
            try:
                return _answer(child, pickle.dumps((function, arguments)))
            finally:
                child.kill()
                with self._changing:
                    self._children.discard(child)

    def abandon(self) -> None:
        """Begin nothing more, and wait for nothing."""
        self.shutdown(wait=False, cancel_futures=True)
        with self._changing:
            self._abandoned = True
            for child in self._children:
                child.kill()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.abandon()


def exit_process(status: int) -> NoReturn:
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


def serve() -> None:
    """Be the process of `WorkerPool.call_in_subprocess`: one call, its answer, the end."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what the function prints is no answer
        function, arguments = pickle.load(sys.stdin.buffer)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            answer = pickle.dumps((function(*arguments), None))
        except Exception as error:
            answer = pickle.dumps((None, error))
        answers.write(answer)


def _started() -> subprocess.Popen[bytes]:
    """Start a process that imports from where this one does, in a session that no terminal interrupts."""
    places = os.pathsep.join(place or os.getcwd() for place in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD],  # -P: the working folder is no place to import from by itself
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": places},
        start_new_session=True,
    )


def _answer(child: subprocess.Popen[bytes], question: bytes) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(question)
        child.stdin.flush()  # and stays open: its end would be that of this process
        found = child.stdout.read()
    except BrokenPipeError:
        found = b""
    if not found:
        raise ChildProcessError(f"a process ended with status {child.wait()} and no answer")
    value, error = pickle.loads(found)
    if error is not None:
        raise error
    return value


def _end_with_parent() -> None:
    """Wait for the end of what the parent says, which is the parent's."""
    os.read(0, 1)
    os._exit(1)
