"""A run that is interrupted or killed, in processes of their own: it ends at once, and goes on from there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.tests.helpers.corpus import write_corpus
from undrift_lab.results.records import read

AT_ONCE = 60  # seconds: less than anything here would still take, more than a busy machine needs
pytestmark = pytest.mark.posix  # processes get signals

STOPPED = "undrift-lab: stopped; what is done is kept, and the same command goes on from there\n"
SLOW = """
methods = ["coda"]
[corpus]
loader = "amazon-bow"
[parameters.coda]
min_df = 1
max_rounds = 1000
"""
# a unit that notices nothing until it is done, as in a long call of a library
DEAF = """
import sys, time
from undrift_lab.methods import baselines
baselines.classify_targets = lambda *arguments: time.sleep(600)
sys.argv[0] = "undrift"
"""


@pytest.fixture
def start(tmp_path):
    """Start a program on a plan; what it says goes to a file."""
    begun = []
    # children heed SIGINT, which those of a job in a shell's background inherit as ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def started(program, plan, data):
        (tmp_path / "plan.toml").write_text(plan)
        arguments = [str(tmp_path / "plan.toml"), "--results", str(tmp_path / "r.jsonl"), "--data", str(data)]
        with (tmp_path / "said").open("w") as said:
            begun.append(
                subprocess.Popen(
                    [sys.executable, *program, *arguments, "--jobs", "2"], stderr=said, start_new_session=True
                )
            )
        return begun[-1]

    yield started
    signal.signal(signal.SIGINT, before)
    for process in begun:
        process.kill()
        process.wait()


def wait_until(condition, process):
    end = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < end
        time.sleep(0.05)


def n_records(tmp_path, kind):
    path = tmp_path / "r.jsonl"
    return sum(r["kind"] == kind for r in read(path)) if path.exists() else 0


def processes():
    """Every process, but those that have ended and were not asked for, and its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def children(process):
    return {number for number, parent in processes().items() if parent == process.pid}


def interrupted(process, kind=signal.SIGINT):
    """Interrupt all processes of a terminal, as Ctrl-C does; the status, once the first has ended."""
    os.killpg(process.pid, kind)
    return process.wait(AT_ONCE)


COMMAND = ("-m", "undrift_lab", "run")


@pytest.mark.parametrize(
    ("how", "status", "says"), [(signal.SIGINT, 130, STOPPED), (signal.SIGTERM, 143, "")], ids=["int", "term"]
)
def test_while_a_thread_is_deaf(start, data, tmp_path, how, status, says):
    program = ("-c", DEAF + "from undrift_lab.cli import main; main()", "run")
    process = start(program, 'methods = ["svm"]\n[corpus]\nloader = "amazon-bow"\n', data)
    wait_until(lambda: n_records(tmp_path, "in-domain") == 3, process)
    assert interrupted(process, how) == status
    assert (tmp_path / "said").read_text() == says


def test_while_processes_are_at_work(start, tmp_path):
    write_corpus(tmp_path / "data" / "amazon-bow", n_rows=400, n_terms=300)
    process = start(COMMAND, SLOW, tmp_path / "data")
    wait_until(lambda: len(children(process)) >= 3, process)  # two at work, and what counts their resources
    at_work = children(process)
    assert interrupted(process) == 130
    assert (tmp_path / "said").read_text().endswith(STOPPED)  # processes that were starting may say more
    end = time.monotonic() + AT_ONCE
    while at_work & set(processes()):  # none is left behind
        assert time.monotonic() < end
        time.sleep(0.05)
    assert {record["kind"] for record in read(tmp_path / "r.jsonl")} == {"in-domain"}
