"""Work that is given up: nobody waits for it."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from undrift._processes import WorkerPool, exit_process


def test_without_an_error_work_is_waited_for():
    done = []
    with WorkerPool(2) as pool:
        pool.submit(lambda: (time.sleep(0.1), done.append(1)))
    assert done == [1]


def test_with_an_error_it_is_not_and_nothing_more_begins():
    go_on, begun = threading.Event(), threading.Event()

    def busy():
        begun.set()
        go_on.wait(600)

    pool = WorkerPool(1)
    first, second = pool.submit(busy), pool.submit(busy)
    begun.wait(600)
    with pytest.raises(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    assert not first.done()
    assert second.cancelled()
    go_on.set()
    first.result(60)


def test_leaving_with_idle_workers_is_an_ordinary_exit():
    pool = WorkerPool(2)
    pool.submit(int).result()
    with pytest.raises(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    with pytest.raises(SystemExit) as ended:
        exit_process(3)
    assert ended.value.code == 3


BUSY = """
import time
from undrift._processes import WorkerPool, exit_process
pool = WorkerPool(1)
pool.submit(time.sleep, 600)
pool.abandon()
print("said", end="")
exit_process(5)
"""


def test_leaving_does_not_wait_for_busy_ones_and_loses_no_word():
    done = subprocess.run(
        [sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, "said", "")


def test_a_call_apart_is_as_one_here_but_for_the_process():
    with WorkerPool(2) as pool:
        assert pool.call_in_subprocess(divmod, 17, 5) == (3, 2)
        assert pool.call_in_subprocess(os.getpid) != os.getpid()
        assert pool.call_in_subprocess(print, "no answer") is None
        with pytest.raises(ZeroDivisionError, match="by zero"):
            pool.call_in_subprocess(divmod, 17, 0)
        with pytest.raises(ChildProcessError, match="a subprocess ended with status 7 and no answer"):
            pool.call_in_subprocess(os._exit, 7)
        with pytest.raises(ChildProcessError, match="ended with status 1 and no answer"):
            pool.call_in_subprocess(sys.exit, 1)


def test_a_call_apart_imports_nothing_from_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "numbers.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    with WorkerPool(1) as pool:
        assert pool.call_in_subprocess(divmod, 17, 5) == (3, 2)


def test_a_call_apart_ends_when_it_is_given_up():
    pool = WorkerPool(1)
    call = pool.submit(pool.call_in_subprocess, time.sleep, 600)
    while not pool._children:
        time.sleep(0.01)
    pool.abandon()
    with pytest.raises(ChildProcessError, match="no answer"):
        call.result(60)
    with pytest.raises(ChildProcessError, match="has been stopped"):
        pool.call_in_subprocess(os.getpid)


PARENT = """
import os, pathlib, signal, sys, time
from undrift._processes import WorkerPool
sys.path.insert(0, sys.argv[1])
import busy
pool, begun = WorkerPool(1), pathlib.Path(sys.argv[1], "begun")
pool.submit(pool.call_in_subprocess, busy.touch_and_sleep, str(begun))
end = time.monotonic() + 60
while not begun.exists():
    assert time.monotonic() < end
    time.sleep(0.01)
(child,) = pool._children
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


BUSY_APART = """
import pathlib, time

def touch_and_sleep(path):
    pathlib.Path(path).touch()
    time.sleep(600)
"""


def test_a_process_ends_with_the_one_that_asked(tmp_path):
    (tmp_path / "busy.py").write_text(BUSY_APART)
    arguments = [sys.executable, "-c", PARENT, str(tmp_path)]
    said = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
    end = time.monotonic() + 60
    while alive(int(said.stdout)):
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(number):
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
