"""A campaign against bad input, faults and load; docs/reliability.md shows what it printed.

    python benchmarks/campaign.py [--short] [--parts models,inputs,faults,dask,load,fuzz] [--seconds 120]

Prints a table of what was tried and what happened, with status 1 if there was a traceback, a partial output,
a file left behind, a wrong line or growing memory. `--short` takes about a minute and is run by the tests.
`--seconds` is how long each reader of files is fuzzed.
"""

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import campaign_load as load
import safetensors.numpy
from campaign_faults import ADAPT, COMMANDS, MODEL, REVIEW, import_everything, prepare, try_dask, try_faults

from tests.helpers.faults import run_with_fault
from tests.helpers.hostile_files import (
    LINES,
    describe_outcome,
    list_changed_files,
    list_written_files,
    read_expected,
    write_gigabytes,
)
from tests.helpers.hostile_models import change_model
from tests.helpers.model_files import parts_of

PREDICT = ["predict", *MODEL, *REVIEW]
PARTS = ("models", "inputs", "faults", "dask", "load", "fuzz")
FUZZED = ("model", "header", "csv", "tsv", "jsonl", "json")
N_SOAK_ROWS, N_UPDATES = 10_000_000, 10_000
SHORT = ["predict", "update", "bench run"]  # that faults happen to in the short version


class Tally:
    """What was tried, and everything that should not have happened."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.failures: list[str] = []

    def fail(self, what: str, said: str = "") -> None:
        self.failures.append(what)
        print(f"FAILED {what}\n{said[-1500:]}", file=sys.stderr)

    def add(self, *cells) -> None:
        self.rows.append([str(cell) for cell in cells])
        print(*cells, sep=" | ", flush=True)


def check_one_line(tally: Tally, what: str, done) -> None:
    """A command succeeds, or says in one line what was wrong."""
    if "Traceback" in done.said or done.status not in (0, 2):
        tally.fail(f"{what}: status {done.status}", done.said)
    elif done.status == 2:
        lines = [line for line in done.said.splitlines() if line.startswith("undrift: ")]
        if len(lines) != 1:
            tally.fail(f"{what}: {len(lines)} lines", done.said)


# -- model files ---------------------------------------------------------------------------------------


def try_models(tally: Tally, base: Path, n_files: int) -> None:
    """Change a model file at random, sign it again, and predict with it."""
    metadata, arrays = parts_of(base / "model.safetensors")
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        shutil.copy(base / "kitchen.csv", folder)
        for seed in range(n_files):
            changed, changed_arrays = change_model(random.Random(seed), metadata, arrays)
            safetensors.numpy.save_file(changed_arrays, folder / "model.safetensors", metadata=changed)
            done = run_with_fault([*PREDICT, "--input", "kitchen.csv", "--out", "out.csv"], folder)
            check_one_line(tally, f"model {seed}", done)
            counts["refused" if done.status else "predicts"] += 1
    tally.add("model files changed and signed again", n_files, dict(counts), f"peak {measure_peak():.2f} GB")


# -- data files ----------------------------------------------------------------------------------------


def try_inputs(tally: Tally, base: Path, n_each: int, has_gigabytes: bool, is_written: bool) -> None:
    """Predict the rows of hostile files, each of which has a line that it must give."""
    files: dict[str, bytes | None] = {**list_written_files(), **list_changed_files(n_each)}
    expected, seen = read_expected(), {}
    counts: dict[str, Counter] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        shutil.copy(base / "model.safetensors", folder)
        files |= dict.fromkeys(write_gigabytes(folder) if has_gigabytes else ())
        for name, content in files.items():
            if content is not None:
                (folder / name).write_bytes(content)
            done = run_with_fault([*PREDICT, "--input", name, "--out", "out.csv"], folder, reads=False)
            check_one_line(tally, name, done)
            seen[name] = describe_outcome(done.status, done.said)
            if seen[name] != expected.get(name) and not is_written:
                tally.fail(f"{name}: {seen[name]!r}, and not {expected.get(name)!r}", done.said)
            (folder / name).unlink()
            (folder / "out.csv").unlink(missing_ok=True)
            if {path.name for path in folder.iterdir()} - set(files) != {"model.safetensors"}:
                tally.fail(f"{name}: files are left", done.said)
            counts.setdefault(name[name.index(".") :], Counter())["refused" if done.status else "read"] += 1
    if is_written:
        LINES.write_text("".join(f"{name}\t{line}\n" for name, line in seen.items()), encoding="utf-8")
    for ending, count in counts.items():
        tally.add(f"data files {ending}", sum(count.values()), dict(count), f"peak {measure_peak():.2f} GB")


# -- load and fuzzing ----------------------------------------------------------------------------------


def try_load(tally: Tally, base: Path, is_short: bool) -> None:
    """Predict many rows, update many times, read from many processes and threads."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        load.read_at_once(tally, folder, 8 if is_short else load.N_READERS)
        load.predict_in_threads(tally, folder, 8 if is_short else load.N_READERS)
        load.compare_thread_counts(tally, base, folder, ADAPT, (1, 2) if is_short else (1, 2, 4))
        load.soak_updates(tally, folder, 20 if is_short else N_UPDATES, must_hold=not is_short)
        load.soak_predict(tally, folder, 20_000 if is_short else N_SOAK_ROWS)


def try_fuzzing(tally: Tally, targets, seconds: float) -> None:
    """Fuzz the readers of files, each in a process."""
    for target in targets:
        command = [sys.executable, Path(__file__).with_name("fuzz.py"), target, "--seconds", str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        counted = re.search(r"number_of_executed_units: (\d+)", said)
        if done.returncode or counted is None:
            tally.fail(f"fuzzing {target}: status {done.returncode}", said)
        how = "coverage-guided (atheris)" if "libfuzzer" in said else "Hypothesis"
        tally.add(f"fuzzed: {target}", counted[1] if counted else 0, how, f"{seconds / 60:.1f} minutes")


def measure_peak() -> float:
    """Return the most memory that any command took, in GB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: all")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--command", default="", help="only this one, of those that faults happen to")
    parser.add_argument("--write-lines", action="store_true", help="write what data files must give anew")
    arguments = parser.parse_args()
    began, tally, parts, is_short = time.monotonic(), Tally(), arguments.parts.split(","), arguments.short
    with tempfile.TemporaryDirectory() as place:
        base = Path(place, "base")
        base.mkdir()
        prepare(base)
        if {"models", "inputs"} & set(parts):
            import_everything(base, {"predict": COMMANDS["predict"]})
        if "models" in parts:
            try_models(tally, base, 40 if is_short else 400)
        if "inputs" in parts:
            try_inputs(tally, base, 3 if is_short else 30, not is_short, arguments.write_lines)
        if "faults" in parts:
            commands = SHORT if is_short else [arguments.command] if arguments.command else list(COMMANDS)
            try_faults(tally, base, *((2, 1, 1) if is_short else (10, 4, 3)), commands)
        if "dask" in parts:
            try_dask(tally, base, 1 if is_short else 3)
        if "load" in parts:
            try_load(tally, base, is_short)
        if "fuzz" in parts:
            try_fuzzing(tally, FUZZED[::2] if is_short else FUZZED, 1 if is_short else arguments.seconds)
    print("\n| tried | number | outcome | |\n| --- | ---: | --- | --- |")
    for row in tally.rows:
        print("| " + " | ".join(row) + " |")
    minutes = (time.monotonic() - began) / 60
    print(f"\n{len(tally.failures)} failures; {minutes:.0f} minutes; at most {measure_peak():.2f} GB")
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
