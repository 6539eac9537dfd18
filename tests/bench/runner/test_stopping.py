"""A run that is interrupted or killed, in processes of their own: it ends at once, and goes on from there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.bench_corpus import write_corpus
from undrift.bench import load_plan, read, run
from undrift.bench.runner.run import Request

AT_ONCE = 60  # seconds: less than anything here would still take, more than a busy machine needs
STOPPED = "undrift: stopped; what is done is kept, and the same command goes on from there\n"

LONG = """
methods = ["svm", "sda"]
[corpus]
loader = "amazon-bow"
[parameters.sda]
n_hidden = 12
n_epochs = 1000000
"""
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
from undrift.bench.methods import baselines
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


COMMAND = ("-m", "undrift", "bench", "run")
ALONE = ("-m", "undrift.bench")


def test_while_sda_trains(start, data, tmp_path):
    pytest.importorskip("torch")
    process = start(ALONE, LONG, data)
    wait_until(lambda: (tmp_path / "said").read_text().count(" of its rows, loss ") > 1, process)
    assert interrupted(process) == 130
    *before, last = (tmp_path / "said").read_text().splitlines(keepends=True)
    assert last == STOPPED
    assert before[-1].startswith("6/12 sda, layer 1, epoch ")
    assert n_records(tmp_path, "transfer") == 6
    assert (tmp_path / "r.jsonl").read_bytes().endswith(b"}\n")
    assert {path.name for path in tmp_path.iterdir()} == {"plan.toml", "r.jsonl", "said"}


@pytest.mark.parametrize(
    ("how", "status", "says"), [(signal.SIGINT, 130, STOPPED), (signal.SIGTERM, 143, "")], ids=["int", "term"]
)
def test_while_a_thread_is_deaf(start, data, tmp_path, how, status, says):
    pytest.importorskip("typer")
    program = ("-c", DEAF + "from undrift.cli import main; main()", "bench", "run")
    process = start(program, 'methods = ["svm"]\n[corpus]\nloader = "amazon-bow"\n', data)
    wait_until(lambda: n_records(tmp_path, "in-domain") == 3, process)
    assert interrupted(process, how) == status
    assert (tmp_path / "said").read_text() == says


def test_while_processes_are_at_work(start, tmp_path):
    pytest.importorskip("typer")
    write_corpus(tmp_path / "data" / "amazon-bow", n_rows=400, n_terms=300)
    process = start(COMMAND, SLOW, tmp_path / "data")
    wait_until(lambda: len(children(process)) == 2, process)
    at_work = children(process)
    assert interrupted(process) == 130
    assert (tmp_path / "said").read_text() == STOPPED
    end = time.monotonic() + AT_ONCE
    while at_work & set(processes()):  # none is left behind
        assert time.monotonic() < end
        time.sleep(0.05)
    assert {record["kind"] for record in read(tmp_path / "r.jsonl")} == {"in-domain"}


TWICE = """
methods = ["sda"]
[corpus]
loader = "amazon-bow"
max_features = 30
[parameters.sda]
n_hidden = 12
n_epochs = 2
[[variants]]
name = "authors"
[[variants]]
name = "searched"
c_rule = "searched"
C = [0.1, 1.0]
"""
# dies when one more record of this kind is to be written, and notes each time that SDA is trained
KILLED = """
import os, signal, sys
from undrift.baselines import SDA
from undrift.bench.results import records
from undrift.bench.__main__ import main

n_left, fit, append = [int(sys.argv[1])], SDA.fit, records.Journal.append

def append_or_die(self, record):
    if record["kind"] == "transfer":
        if not n_left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        n_left[0] -= 1
    append(self, record)

def noted(self, X):
    print("trained")
    sys.stdout.flush()
    return fit(self, X)

records.Journal.append, SDA.fit = append_or_die, noted
sys.exit(main(sys.argv[2:]))
"""


def test_sda_is_trained_once_however_often_a_run_is_killed(data, tmp_path):
    pytest.importorskip("torch")
    plan, results = tmp_path / "twice.toml", tmp_path / "r.jsonl"
    plan.write_text(TWICE)
    arguments = [str(plan), "--results", str(results), "--data", str(data), "--jobs", "1"]
    said = []
    for n in ("0", "2"):  # with nothing classified yet, and between the sources of a variant
        done = subprocess.run(
            [sys.executable, "-c", KILLED, n, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        said += done.stdout.split()
    assert said == ["trained"]
    kept = tmp_path / "r.jsonl.twice-0.sda-30.npz"
    assert kept.exists()
    only = Request(data=data, jobs=1, tasks=["books->dvd"])
    assert run(load_plan(plan), results, only).n_new == 1  # in the second variant
    assert kept.exists()
    assert run(load_plan(plan), results, Request(data=data, jobs=1)).n_new == 9
    assert not kept.exists()
    transfers = [record for record in read(results) if record["kind"] == "transfer"]
    assert len({(r["variant"], r["source"], r["target"]) for r in transfers}) == len(transfers) == 12
    assert len({r["represent_seconds"] for r in transfers}) == 1
    assert len({str(r["losses"]) for r in transfers}) == 1
    at_one_go = tmp_path / "one.jsonl"
    run(load_plan(plan), at_one_go, Request(data=data, jobs=2))
    assert {path.name for path in tmp_path.iterdir()} == {"twice.toml", "r.jsonl", "one.jsonl"}

    def errors(records):
        return {(r["variant"], r["source"], r["target"]): r.get("transfer_error") for r in records}

    assert errors(transfers) == errors(r for r in read(at_one_go) if r["kind"] == "transfer")
