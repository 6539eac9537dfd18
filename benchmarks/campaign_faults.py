"""Faults for the campaign: at every stage of every command, on small and read-only disks, and on Dask."""

import contextlib
import csv
import importlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.helpers.bench_corpus import write_corpus
from tests.helpers.faults import (
    CALL_FAULTS,
    SIGNALS,
    STATUS,
    Outcome,
    can_mount,
    run_from_start,
    run_on_disk,
    run_with_fault,
    thin,
)
from tests.helpers.review_files import make_review_texts, write_csv
from undrift import TextAdapter, load_model
from undrift.persist import ModelFileError

MODEL = ["--model", "model.safetensors"]
REVIEW = ["--text", "review"]
SMALL = ["--max-features", "80", "--layers", "1"]
ADAPT = ["adapt", "--source", "books.csv", "--target", "kitchen.csv", *REVIEW, "--label", "stars", *SMALL]
COMMANDS = {
    "adapt": [*ADAPT, "--out", "out.csv", "--model", "new.safetensors", "--distilled", "small.safetensors"],
    "adapt --report": [*ADAPT, "--out", "out.csv", "--report", "report.html"],
    "predict": ["predict", *MODEL, *REVIEW, "--input", "kitchen.csv", "--out", "out.csv"],
    "distill": ["distill", *MODEL, "--target", "kitchen.csv", *REVIEW, "--out", "small.safetensors"],
    "ask": ["ask", *MODEL, "--input", "kitchen.csv", *REVIEW, "--n", "5", "--out", "out.csv"],
    "update": [
        "update",
        *MODEL,
        "--labels",
        "labels.csv",
        *REVIEW,
        "--label",
        "stars",
        "--out",
        "new.safetensors",
    ],
    "bench run": ["bench", "run", "plan.toml", "--results", "results.jsonl", "--data", "data", "--jobs", "1"],
    "bench report": ["bench", "report", "records.jsonl", "--out", "report.html"],
}
PLAN = """
methods = ["svm", "msda-1"]
noise = [0.8]
n_folds = 3
[corpus]
loader = "amazon-bow"
max_features = 30
"""
OUTPUTS = ["out.csv", "new.safetensors", "small.safetensors", "report.html"]
OLD = b"the old output\n"
CHANGING = ("seconds", "date", "machine", "gigabytes")  # what differs between two runs of a benchmark


@dataclass(frozen=True)
class Depth:
    """How many points of a command are struck."""

    n_points: int  # that do something to a file, at most
    n_changes: int  # of a series that changes files; two of one that reads them
    n_calls: int
    n_starts: int
    n_pairs: int  # of two runs at once
    n_disks: int


EVERY = 10**6
SHORT = Depth(2, 2, 1, 1, 1, 2)
FULL = Depth(EVERY, EVERY, 8, 3, 4, 10)
SLOW = Depth(EVERY, 6, 8, 3, 4, 6)  # of the rows that `adapt` writes; `predict` writes them in the same way


def prepare(folder: Path) -> None:
    """Write the input files of all commands, a model and results."""
    texts = make_review_texts(60, 0.2, seed=0)
    for name in ("books", "kitchen"):
        reviews, labels = texts[name]
        labels = labels if name == "books" else [""] * len(labels)
        write_csv(folder / f"{name}.csv", {"review": reviews, "stars": labels})
    reviews, labels = texts["kitchen"]
    labelled = [(text, label) for text, label in zip(reviews, labels, strict=True) if label][:10]
    write_csv(folder / "labels.csv", {"review": [t for t, _ in labelled], "stars": [y for _, y in labelled]})
    (folder / "plan.toml").write_text(PLAN)
    write_corpus(folder / "data" / "amazon-bow")
    for command, made, kept in (
        ([*ADAPT, "--out", "out.csv", *MODEL], "model.safetensors", "model.safetensors"),
        (COMMANDS["bench run"], "results.jsonl", "records.jsonl"),
    ):
        done = run_with_fault(command, folder)
        assert done.status == 0, done.said
        (folder / made).rename(folder / kept)
    (folder / "out.csv").unlink()


def import_everything(base: Path, commands: dict[str, list[str]]) -> None:
    """Import what the commands import, so that a fork need not."""
    for command in commands.values():
        with tempfile.TemporaryDirectory() as place:
            Path(place, "modules").touch()
            run_in_copy(base, Path(place), command)
            for name in Path(place, "modules").read_text().split():
                if name not in sys.modules and not name.startswith("__"):
                    try:
                        importlib.import_module(name)
                    except ImportError:  # not a module of a file
                        continue


def run_in_copy(base: Path, place: Path, command, fault=None, at=0, limits=(), on_calls=False) -> Outcome:
    """Run a command in a copy of the folder, in which its outputs exist already."""
    copy_base(base, place, command)
    return run_with_fault(command, place / "work", fault, at, limits, on_calls)


def copy_base(base: Path, place: Path, command) -> dict[str, bytes]:
    """Copy the folder; returns the outputs that exist in it already."""
    shutil.copytree(base, place / "work")
    outputs = {name: OLD for name in OUTPUTS if name in command}
    for name, content in outputs.items():
        (place / "work" / name).write_bytes(content)
    return outputs


@dataclass
class Trial:
    """A command, what it gives without a fault, and where what should not have happened is noted."""

    tally: object
    base: Path
    name: str
    command: list[str]
    clean: Outcome
    counts: Counter

    def check(self, kind: str, what: str, done: Outcome, statuses, may_leave: bool = False) -> None:
        """Count a fault, and check what it left: no traceback, old or whole outputs, no other files."""
        self.counts[kind] += 1
        what = f"{self.name}, {what}"
        if "Traceback" in done.said or done.status not in statuses:
            self.tally.fail(f"{what}: status {done.status}", done.said)
            return
        lines = [line for line in done.said.splitlines() if line.startswith("undrift: ")]
        if done.status == 2 and len(lines) != 1:
            self.tally.fail(f"{what}: {len(lines)} lines", done.said)
        self.compare_outputs(what, done, may_be_old=True)
        if not may_leave:
            self.check_litter(what, done)

    def check_again(self, what: str, place: Path) -> None:
        """Run the command again: it gives what it gives without a fault, and removes what was left."""
        done, what = run_with_fault(self.command, place / "work"), f"{self.name}, {what}, run again"
        if done.status:
            self.tally.fail(f"{what}: status {done.status}", done.said)
        self.compare_outputs(what, done, may_be_old=False)
        self.check_litter(what, done)

    def compare_outputs(self, what: str, done: Outcome, may_be_old: bool) -> None:
        """Every output is the old one, or the whole new one; results are some of the records, or all."""
        for name in OUTPUTS:
            if name not in self.clean.files:
                continue
            content = done.files.get(name, b"")
            is_whole = content == self.clean.files[name] or (name.endswith("html") and b"</html>" in content)
            if not (is_whole or (may_be_old and content == OLD)):
                self.tally.fail(f"{what}: {name} is neither the old nor the new one", kind="partial output")
        if "results.jsonl" in self.clean.files:
            records, wanted = (
                read_records(each.files.get("results.jsonl", b"")) for each in (done, self.clean)
            )
            if records - wanted or (not may_be_old and records != wanted):
                what = f"{what}: {records.total()} records, and {wanted.total()} are due"
                self.tally.fail(what, kind="partial output")

    def check_litter(self, what: str, done: Outcome) -> None:
        if set(done.files) - set(self.clean.files):
            left = sorted(set(done.files) - set(self.clean.files))
            self.tally.fail(f"{what}: left {left}", kind="file left behind")


def read_records(content: bytes) -> Counter:
    """Count the results, less what differs between runs, a last line without its end, and failures."""
    records = [json.loads(line) for line in content.split(b"\n")[:-1]]
    records = [record for record in records if "failed" not in record]
    kept = [{k: v for k, v in record.items() if not k.endswith(CHANGING)} for record in records]
    return Counter(json.dumps(record, sort_keys=True) for record in kept)


def try_faults(tally, base: Path, name: str, depth: Depth) -> None:
    """Let every fault happen at points of a command."""
    command = COMMANDS[name]
    import_everything(base, {name: command})
    with tempfile.TemporaryDirectory() as place:
        clean = run_in_copy(base, Path(place), command)
    if clean.status:
        tally.fail(f"{name} without a fault", clean.said)
        return
    trial = Trial(tally, base, name, command, clean, Counter())
    points = clean.choose_points(depth.n_points, depth.n_changes)
    strike_everywhere(trial, {at: clean.list_faults(at) for at in points}, on_calls=False)
    inside = thin(range(20, clean.n_calls - 20), depth.n_calls)  # not the first and last steps of Python
    strike_everywhere(trial, dict.fromkeys(inside, CALL_FAULTS), on_calls=True)
    run_two_at_once(trial, clean.choose_points(depth.n_pairs))
    limit_resources(trial)
    strike_at_start(trial, depth.n_starts)
    shrink_disks(trial, depth.n_disks)
    outcome = ", ".join(f"{n} {kind}" for kind, n in trial.counts.items())
    n_places = f"{len(points)} of {clean.n_points} things done to files"
    tally.add(f"faults: `{name}`", trial.counts.total(), f"at {n_places}, {len(inside)} calls: {outcome}")


def strike_everywhere(trial: Trial, faults: dict[int, tuple[str, ...]], on_calls: bool) -> None:
    """Let faults happen at points; after a kill, run again."""
    for at in faults:
        for fault in faults[at]:
            what = f"{fault} at {'call' if on_calls else 'point'} {at}"
            with tempfile.TemporaryDirectory() as place:
                arguments = trial.base, Path(place), trial.command, fault, at
                done = run_in_copy(*arguments, on_calls=on_calls)
                statuses = {0, STATUS.get(fault, 2)}
                if trial.name == "bench run":
                    statuses |= {1}  # what failed is recorded, and tried again on demand
                trial.check(fault, what, done, statuses, may_leave=fault == "killed")
                if fault == "killed":
                    trial.check_again(what, Path(place))


def run_two_at_once(trial: Trial, points) -> None:
    """Run the whole command while it is at a point."""
    for at in points:
        with tempfile.TemporaryDirectory() as place:
            done = run_in_copy(trial.base, Path(place), trial.command, "another run", at)
            said = Path(place, "said by the other")
            trial.check("two runs", f"another run at point {at}", done, {0, 2})
            if said.exists() and "Traceback" in said.read_text():
                trial.tally.fail(f"{trial.name}, another run at point {at}", said.read_text())
            trial.check_again(f"another run at point {at}", Path(place))


def limit_resources(trial: Trial) -> None:
    """Limit the size of files, and memory."""
    limits = [(resource.RLIMIT_FSIZE, size) for size in (400, 5_000, 20_000, 60_000)]
    if trial.name != "bench run":  # Python waits for ever for a thread that had no memory to begin
        limits += [(resource.RLIMIT_AS, size) for size in (0, 1 << 18, 1 << 20, 4 << 20)]
    for name, size in limits:
        kind = "large file" if name == resource.RLIMIT_FSIZE else "little memory"
        with tempfile.TemporaryDirectory() as place:
            done = run_in_copy(trial.base, Path(place), trial.command, limits=[(name, size)])
            statuses = {0, 1, 2} if trial.name == "bench run" else {0, 2}
            trial.check(kind, f"{kind}, {size:,} bytes", done, statuses)


def strike_at_start(trial: Trial, n_starts: int) -> None:
    """Send signals during the imports of the first second."""
    with tempfile.TemporaryDirectory() as place:
        copy_base(trial.base, Path(place), trial.command)
        whole = run_from_start(trial.command, Path(place, "work"))
    trial.compare_outputs(f"{trial.name}, as a program and not a fork", whole, may_be_old=False)
    for fault in SIGNALS:
        # before `main` is called and after it has returned, Python itself answers Ctrl-C, with a traceback
        first = whole.n_calls if fault == "interrupted" else 0
        for at in thin(range(first, whole.n_points), n_starts):
            with tempfile.TemporaryDirectory() as place:
                copy_base(trial.base, Path(place), trial.command)
                done = run_from_start(trial.command, Path(place, "work"), fault, at)
                statuses = {0, STATUS[fault], -SIGNALS[fault]}
                trial.check("at the start", f"{fault} at import {at}", done, statuses, fault == "killed")


def shrink_disks(trial: Trial, n_sizes: int) -> None:
    """Run on file systems that are full after so many pages, and on a read-only one."""
    if not can_mount():
        return
    size = sum(
        len(trial.clean.files[name]) for name in (*OUTPUTS, "results.jsonl") if name in trial.clean.files
    )
    for n_free in [None, *(4096 * n for n in thin(range(size // 4096 + 3), n_sizes))]:
        with tempfile.TemporaryDirectory() as place:
            outputs = copy_base(trial.base, Path(place), trial.command)
            done = run_on_disk(trial.command, Path(place, "work"), n_free, outputs)
            kind = "read-only disk" if n_free is None else "small disk"
            trial.check(kind, f"{kind}, {n_free} bytes free", done, {0, 1, 2} if n_free == 0 else {0, 2})


# -- Dask ----------------------------------------------------------------------------------------------

CLUSTER = """
import os, signal, sys, time
from distributed import LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

role, number, at, pid_file = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

class Striker(SchedulerPlugin):
    name, n_done = "striker", 0
    def transition(self, key, start, finish, *arguments, **options):
        if (start, finish) != ("processing", "memory") or "undrift" not in str(key):
            return
        self.n_done += 1
        if self.n_done - 1 == at and role != "nobody":
            open(pid_file + " struck", "w").close()
            if role == "worker":
                os.kill(pids[options["worker"]], number)
            elif role == "scheduler":
                os.kill(os.getpid(), number)
            else:
                os.kill(int(open(pid_file).read()), number)
        if role == "nobody":
            print(self.n_done, flush=True)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores it
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": 60}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, **options)
    from distributed import Client
    with Client(cluster) as client:
        pids = client.run(os.getpid)
    cluster.scheduler.add_plugin(Striker())
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""
ON_DASK = [
    "adapt",
    "--source",
    "books-*.csv",
    "--target",
    "kitchen-*.csv",
    *REVIEW,
    "--label",
    "stars",
    *SMALL,
]
ON_DASK += ["--out", "out", "--model", "new.safetensors"]


DASK_OUTCOMES: defaultdict = defaultdict(lambda: "otherwise", {0: "to the same predictions", 2: "one line"})
DASK_OUTCOMES |= {-9: "killed, and run again", 143: "ended, old outputs", 130: "ended, old outputs"}


def prepare_shards(base: Path, folder: Path, n_shards: int = 4) -> None:
    """Divide the files of two domains."""
    (folder / "out").mkdir(parents=True)
    for name in ("books", "kitchen"):
        header, *lines = (base / f"{name}.csv").read_text().splitlines(keepends=True)
        for i in range(n_shards):
            (folder / f"{name}-{i}.csv").write_text("".join([header, *lines[i::n_shards]]))
            if name == "kitchen":
                (folder / "out" / f"{name}-{i}.csv").write_bytes(OLD)
    (folder / "new.safetensors").write_bytes(OLD)


def run_on_dask(place: Path, role: str, fault: str = "killed", at: int = 0) -> tuple[Outcome, int]:
    """Run the command on a cluster; who plays `role` is struck when the n-th task is done."""
    program = [sys.executable, "-c", CLUSTER, role, str(int(SIGNALS[fault])), str(at), str(place / "pid")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(program, text=True, start_new_session=True, **pipes) as cluster:
        address = cluster.stdout.readline().strip()
        done = run_with_fault([*ON_DASK, "--dask", address], place / "work")
        n_tasks = 0
        if role == "nobody":
            cluster.stdin.close()
            n_tasks = len(cluster.stdout.read().split())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(cluster.pid, signal.SIGKILL)
    return done, n_tasks


def try_dask(tally, base: Path, n_points: int) -> None:
    """Strike workers, the scheduler and the client when so many tasks are done."""
    with tempfile.TemporaryDirectory() as place:
        prepare_shards(base, Path(place, "work"))
        clean, n_tasks = run_on_dask(Path(place), "nobody")
    if clean.status or n_tasks == 0:
        tally.fail(f"Dask without a fault, {n_tasks} tasks", clean.said)
        return
    for role, fault in product(("worker", "scheduler", "client"), SIGNALS):
        counts: Counter = Counter()
        points = thin(range(n_tasks * 9 // 10), n_points)  # some tasks are there in some runs only
        for at in points:
            what = f"Dask, {role} {fault} at task {at} of {n_tasks}"
            with tempfile.TemporaryDirectory() as place:
                prepare_shards(base, Path(place, "work"))
                done, _ = run_on_dask(Path(place), role, fault, at)
                counts[done.status] += 1
                if not Path(place, "pid struck").exists():
                    tally.fail(f"{what}: not that many tasks")
                expected = {"worker": {0}, "scheduler": {0, 2}, "client": {0, STATUS[fault]}}[role]
                if done.status not in expected or "Traceback" in done.said:
                    tally.fail(f"{what}: status {done.status}", done.said)
                check_shards(
                    tally, what, done, clean, may_be_old=done.status != 0, may_leave=done.status == -9
                )
                if done.status == -9:
                    again, _ = run_on_dask(Path(place), "nobody")
                    check_shards(tally, f"{what}, run again", again, clean, may_be_old=False, may_leave=False)
        outcome = ", ".join(f"{n} {DASK_OUTCOMES[status]}" for status, n in counts.items())
        where = ", ".join(str(at + 1) for at in points)
        tally.add(
            f"faults on Dask: {role} {fault}", counts.total(), f"after task {where} of {n_tasks}: {outcome}"
        )


def is_alike(content: bytes, clean: bytes) -> bool:
    """Tell whether two outputs are the same but for the last digits: sums are in the order of the workers."""
    if clean[8:9] == b"{":  # a model, whose digest is checked
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(content)
            with contextlib.suppress(ModelFileError):
                return type(load_model(file.name)) is TextAdapter
        return False
    if content == clean or b"score" not in content.partition(b"\n")[0]:
        return content == clean
    rows, wanted = (list(csv.DictReader(io.StringIO(each.decode()))) for each in (content, clean))
    if len(rows) != len(wanted):
        return False
    for row, other in zip(rows, wanted, strict=True):
        numbers = [float(each.pop(name)) for each in (row, other) for name in ("score", "probability")]
        if row != other or abs(numbers[0] - numbers[2]) + abs(numbers[1] - numbers[3]) > 1e-4:
            return False
    return True


def check_shards(tally, what: str, done: Outcome, clean: Outcome, may_be_old: bool, may_leave: bool) -> None:
    """Every file is the old one or has the predictions of a run without a fault."""
    for name, content in clean.files.items():
        seen = done.files.get(name, b"")
        if not (is_alike(seen, content) or (may_be_old and seen == OLD)):
            tally.fail(f"{what}: {name} is neither the old nor the new one", kind="partial output")
    left = set(done.files) - set(clean.files)
    if left and not may_leave:
        tally.fail(f"{what}: left {sorted(left)}", kind="file left behind")
