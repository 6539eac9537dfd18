"""Work that is given up: nobody waits for it."""

import subprocess
import sys
import threading
import time

import pytest

from undrift.workers import Workers, leave


def test_without_an_error_work_is_waited_for():
    done = []
    with Workers(2) as pool:
        pool.submit(lambda: (time.sleep(0.1), done.append(1)))
    assert done == [1]


def test_with_an_error_it_is_not_and_nothing_more_begins():
    go_on, begun = threading.Event(), threading.Event()

    def busy():
        begun.set()
        go_on.wait(60)

    pool = Workers(1)
    first, second = pool.submit(busy), pool.submit(busy)
    begun.wait(60)
    with pytest.raises(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    assert not first.done()
    assert second.cancelled()
    go_on.set()
    first.result(60)


def test_leaving_with_idle_workers_is_an_ordinary_exit():
    pool = Workers(2)
    pool.submit(int).result()
    with pytest.raises(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    with pytest.raises(SystemExit) as ended:
        leave(3)
    assert ended.value.code == 3


BUSY = """
import time
from undrift.workers import Workers, leave
pool = Workers(1)
pool.submit(time.sleep, 600)
pool.give_up()
print("said", end="")
leave(5)
"""


def test_leaving_does_not_wait_for_busy_ones_and_loses_no_word():
    done = subprocess.run(
        [sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, "said", "")
