"""Worker threads and subprocesses, and ending the program without waiting for busy ones."""

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

NAME = "undrift-worker"  # prefix of the threads' names
GRACE_SECONDS = 0.2  # enough for an idle thread to end
CHILD = "from undrift._processes import serve; serve()"


class WorkerPool(ThreadPoolExecutor):
    """A pool of threads, which can also call functions in subprocesses.

    As a context it waits for running tasks if the block succeeds. After an error or an interrupt it does not:
    subprocesses are killed, and threads, which cannot be killed, are abandoned (see `exit_process`).
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__(n_workers, thread_name_prefix=NAME)
        self._children: set[subprocess.Popen[bytes]] = set()
        self._changing = threading.Lock()
        self._abandoned = False

    def call_in_subprocess(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call an importable function in a subprocess, which does not hold this one's interpreter lock."""
        with self._changing:
            if self._abandoned:
                raise ChildProcessError("the run has been stopped")
            child = _start_child()
            self._children.add(child)
        with child:
            try:
                return _ask_child(child, pickle.dumps((function, arguments)))
            finally:
                child.kill()
                with self._changing:
                    self._children.discard(child)

    def abandon(self) -> None:
        """Cancel what has not begun, kill the subprocesses, and wait for nothing."""
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
    """End the process without waiting for abandoned threads, as Python would."""
    try:
        end = time.monotonic() + GRACE_SECONDS
        abandoned = [thread for thread in threading.enumerate() if thread.name.startswith(NAME)]
        for thread in abandoned:
            thread.join(max(0.0, end - time.monotonic()))
        busy = any(thread.is_alive() for thread in abandoned)
    except KeyboardInterrupt:  # a second interrupt: do not wait at all
        busy = True
    if busy:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


def serve() -> None:
    """Run as the subprocess of `WorkerPool.call_in_subprocess`: read one call, send its result, exit."""
    with os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # what the function prints must not mix with the reply
        function, arguments = pickle.load(sys.stdin.buffer)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            reply = pickle.dumps((function(*arguments), None))
        except Exception as error:
            reply = pickle.dumps((None, error))
        replies.write(reply)


def _start_child() -> subprocess.Popen[bytes]:
    """Start a subprocess with this one's import path, in a session that a terminal does not interrupt."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD],  # -P: do not import from the working folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )


def _ask_child(child: subprocess.Popen[bytes], request: bytes) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(request)
        child.stdin.flush()  # and stays open: the child exits when it is closed
        reply = child.stdout.read()
    except BrokenPipeError:
        reply = b""
    if not reply:
        raise ChildProcessError(f"a subprocess ended with status {child.wait()} and no answer")
    value, error = pickle.loads(reply)
    if error is not None:
        raise error
    return value


def _end_with_parent() -> None:
    """Block until stdin closes, which means that the parent has exited; then exit too."""
    os.read(0, 1)
    os._exit(1)
