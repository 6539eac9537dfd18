"""A campaign against bad input, faults and load; docs/reliability.md shows what it printed.

    python benchmarks/campaign.py [--write docs/reliability.md] [--short] [--parts models,faults] [--jobs 2]

Every part runs in a process, `--jobs` of them at a time, and is ended at its limit. Prints what was tried and
what happened, as a table at the end, with status 1 if there was a traceback, a partial output, a file left
behind, a wrong line or growing memory, or if a part did not come to its end. `--write` puts the table between
the marks of a page. `--short` takes about a minute and is run by the tests. `--list` names the parts; a word
such as `faults` stands for all that begin with it.
"""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "src"))
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
os.environ.setdefault("OMP_NUM_THREADS", "1")

import campaign_load as load
import safetensors.numpy
from campaign_faults import (
    ADAPT,
    COMMANDS,
    FULL,
    MODEL,
    REVIEW,
    SHORT,
    SLOW,
    import_everything,
    prepare,
    try_dask,
    try_faults,
)

import undrift
from tests.helpers.faults import run_with_fault
from tests.helpers.hostile_files import (
    LINES,
    describe_outcome,
    list_changed_files,
    list_written_files,
    read_expected,
    write_gigabytes,
)
from tests.helpers.hostile_models import change_model, write_large_files
from tests.helpers.model_files import parts_of

PREDICT = ["predict", *MODEL, *REVIEW]
FUZZED = ("model", "header", "csv", "tsv", "jsonl", "json")
FAILURES = ("traceback", "wrong line or status", "partial output", "file left behind", "growth of memory")
FORMATS = {
    "CSV": (".csv",),
    "TSV": (".tsv",),
    "JSON lines, JSON": (".jsonl", ".json"),
    "Parquet": (".parquet",),
    "spreadsheets": (".xlsx",),
    "compressed (.gz, .bz2, .xz, .zst)": (".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst"),
}
LARGEST_MULTIPLE, SLACK = 30, 16 << 20  # of a model file, and bytes: what loading may take
MARKS = "<!-- campaign -->", "<!-- end -->"


class Tally:
    """What was tried, and everything that should not have happened."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.failures: Counter[str] = Counter()

    def fail(self, what: str, said: str = "", kind: str = "wrong line or status") -> None:
        self.failures["traceback" if "Traceback" in said else kind] += 1
        print(f"FAILED {what}\n{said[-1500:]}", file=sys.stderr)

    def add(self, what: str, number: int, outcome: str) -> None:
        self.rows.append([what, f"{number:,}", outcome])
        print(*self.rows[-1], sep=" | ", flush=True)


def check_one_line(tally: Tally, what: str, done) -> None:
    """A command succeeds, or says in one line what was wrong."""
    if "Traceback" in done.said or done.status not in (0, 2):
        tally.fail(f"{what}: status {done.status}", done.said)
    elif done.status == 2:
        lines = [line for line in done.said.splitlines() if line.startswith("undrift: ")]
        if len(lines) != 1:
            tally.fail(f"{what}: {len(lines)} lines", done.said)


def join_counts(counts: Counter) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items(), reverse=True))


# -- model files ---------------------------------------------------------------------------------------


def try_models(tally: Tally, base: Path, n_files: int) -> None:
    """Change a model file at random, sign it again, and predict with it."""
    import_everything(base, {"predict": COMMANDS["predict"]})
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
            counts["refused" if done.status else "predict"] += 1
        tally.add("model files changed and signed again", n_files, join_counts(counts))
        multiples = {}
        for path in write_large_files(base / "model.safetensors", folder):
            size, taken = path.stat().st_size, load.measure_loading(path)
            multiples[path.name] = taken / size
            if taken > LARGEST_MULTIPLE * size + SLACK:
                what = f"{path.name}, {size:,} bytes: loading takes {taken:,}"
                tally.fail(what, kind="growth of memory")
        outcome = ", ".join(f"{name}: {multiple:.1f}" for name, multiple in multiples.items())
        tally.add(
            "model files made to take memory", len(multiples), f"times their size taken by loading: {outcome}"
        )


# -- data files ----------------------------------------------------------------------------------------


def try_inputs(tally: Tally, base: Path, n_each: int, has_gigabytes: bool, is_written: bool = False) -> None:
    """Predict the rows of hostile files, each of which has a line that it must give."""
    import_everything(base, {"predict": COMMANDS["predict"]})
    files: dict[str, bytes | None] = {**list_written_files(), **list_changed_files(n_each)}
    expected, seen = read_expected(), {}
    counts: dict[str, Counter] = {name: Counter() for name in FORMATS}
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
                tally.fail(f"{name}: files are left", done.said, kind="file left behind")
            (format,) = (each for each, endings in FORMATS.items() if name[name.index(".") :] in endings)
            counts[format]["refused" if done.status else "read"] += 1
    if is_written:
        LINES.write_text("".join(f"{name}\t{line}\n" for name, line in seen.items()), encoding="utf-8")
    for format, count in counts.items():
        tally.add(f"data files: {format}", count.total(), join_counts(count))


# -- load and fuzzing ----------------------------------------------------------------------------------


def try_readers(tally: Tally, base: Path, n_readers: int) -> None:
    """Read one model from many processes and threads, and with several numbers of threads."""
    with tempfile.TemporaryDirectory() as place:
        load.read_at_once(tally, Path(place), n_readers)
        load.predict_in_threads(tally, Path(place), n_readers)
        for command in ([*ADAPT, "--model", "new.safetensors"], [*PREDICT, "--input", "kitchen.csv"]):
            load.compare_thread_counts(tally, base, Path(place), command)


def try_fuzzing(tally: Tally, base: Path, target: str, seconds: float) -> None:
    """Fuzz a reader of files."""
    command = [sys.executable, Path(__file__).with_name("fuzz.py"), target, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    counted = re.search(r"number_of_executed_units: (\d+)", said)
    has_failed = bool(done.returncode) or counted is None
    if has_failed:
        tally.fail(f"fuzzing {target}: status {done.returncode}", said)
    how = "atheris, coverage-guided" if "libfuzzer" in said else "Hypothesis"
    outcome = f"{'stopped by an error' if has_failed else 'no crash'}; {seconds / 60:.1f} minutes, {how}"
    tally.add(f"fuzzed: {target}", int(counted[1]) if counted else 0, outcome)


# -- parts ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Something to try in a process, and how many minutes it may take on a busy machine."""

    run: object
    sizes: tuple
    short: tuple | None  # none: not in the short version
    minutes: float = 8


def list_parts() -> dict[str, Part]:
    """Return all parts by their names, those that take longest first."""
    parts = {
        f"faults {name}": Part(
            try_faults,
            (name, SLOW if name.startswith("adapt") else FULL),
            (name, SHORT) if name in ("predict", "update", "bench run") else None,
            15,
        )
        for name in COMMANDS
    }
    parts |= {
        "dask": Part(try_dask, (3,), None, 15),
        "inputs": Part(try_inputs, (30, True), (3, False), 12),
        "models": Part(try_models, (300,), (40,)),
        "load predict": Part(load.soak_predict, (10_000_000,), (20_000,), 15),
        "load update": Part(load.soak_updates, (10_000,), (20,), 12),
        "load readers": Part(try_readers, (load.N_READERS,), (8,)),
    }
    for name in FUZZED:
        parts[f"fuzz {name}"] = Part(try_fuzzing, (name, 60), (name, 1) if name in FUZZED[::2] else None)
    return parts


def run_part(name: str, base: Path, result: Path, is_short: bool) -> None:
    """Run one part, and write its rows, failures, most memory and minutes as JSON."""
    part, tally, began = list_parts()[name], Tally(), time.monotonic()
    part.run(tally, base, *(part.short if is_short else part.sizes))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    summary = {"rows": tally.rows, "failures": tally.failures, "memory": memory}
    summary |= {"minutes": (time.monotonic() - began) / 60, "source": hash_source(), "short": is_short}
    result.write_text(json.dumps(summary))


def hash_source() -> str:
    """Return a digest of the library's files."""
    digest, root = hashlib.sha256(), Path(undrift.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def read_result(path: Path, is_short: bool) -> dict | None:
    """Return what a part wrote, if it is of the same source and size."""
    result = json.loads(path.read_text()) if path.exists() else {}
    is_same = (result.get("source"), result.get("short")) == (hash_source(), is_short)
    return result if is_same else None


class Run:
    """A part in a process of its own, which is ended with all its children at the limit."""

    def __init__(self, name: str, folder: Path, is_short: bool, patience: float) -> None:
        self.name, self.result = name, folder / f"{name}.json"
        command = [sys.executable, __file__, "--one", name, "--folder", str(folder)]
        command += ["--short"] if is_short else []
        self.process = subprocess.Popen(command, start_new_session=True)
        self.began, self.minutes = time.monotonic(), patience * list_parts()[name].minutes

    def is_over(self) -> bool:
        if self.process.poll() is None and time.monotonic() - self.began > 60 * self.minutes:
            self.stop()
        return self.process.poll() is not None

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run_parts(
    names: list[str], folder: Path, n_jobs: int, is_short: bool, patience: float = 1.0
) -> dict[str, dict]:
    """Run parts, some at a time; returns what each wrote."""
    began, running = time.monotonic(), []
    results = {name: read_result(folder / f"{name}.json", is_short) for name in names}
    waiting = [name for name in names if results[name] is None]
    n_waiting = len(waiting)
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                running.append(Run(waiting.pop(0), folder, is_short, patience))
            time.sleep(0.05)
            for run in [run for run in running if run.is_over()]:
                running.remove(run)
                is_done = run.process.returncode == 0
                results[run.name] = read_result(run.result, is_short) if is_done else None
                minutes = (time.monotonic() - began) / 60
                state = "done" if is_done else "NOT DONE"
                n_left = len(waiting) + len(running)
                print(f"[{minutes:.1f} min] {run.name}: {state} in {time.monotonic() - run.began:.0f} s, "
                      f"{n_waiting - n_left} of {n_waiting} parts", file=sys.stderr, flush=True)  # fmt: skip
    finally:
        for run in running:
            run.stop()
    return results


def format_results(results: dict[str, dict | None], n_jobs: int) -> str:
    """Return the table of everything tried, and what it comes to."""
    done = [result for result in results.values() if result is not None]
    rows = [row for result in done for row in result["rows"]]
    lines = ["| tried | number | outcome |", "| --- | ---: | --- |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]

    def total(begin: str) -> int:
        return sum(int(row[1].replace(",", "")) for row in rows if row[0].startswith(begin))

    minutes_fuzzed = sum(
        float(minutes) for row in rows for minutes in re.findall(r"([\d.]+) minutes", row[2])
    )
    failures = Counter({kind: sum(result["failures"].get(kind, 0) for result in done) for kind in FAILURES})
    counted = ", ".join(f"{kind}: {n}" for kind, n in failures.items())
    memory = max((result["memory"] for result in done), default=0)
    lines += [
        "",
        f"Together: {total('data files'):,} hostile data files, {total('model files'):,} hostile models, "
        f"{total('faults'):,} faults, {total('fuzzed'):,} inputs fuzzed in {minutes_fuzzed:.0f} minutes.",
        f"**{failures.total()} failures** ({counted}). No command took more than {memory:.2f} GB.",
    ]
    missing = [name for name, result in results.items() if result is None]
    if missing:
        lines += ["", f"Not run to the end: {', '.join(missing)}."]
    about = f"undrift {undrift.__version__} (source {hash_source()}), Python {platform.python_version()}"
    minutes = sum(result["minutes"] for result in done)
    lines += [
        "",
        f"{minutes:.0f} minutes, all parts together, {n_jobs} at a time; {about}, {platform.system()}.",
    ]
    return "\n".join(lines)


def write_page(page: Path, text: str) -> None:
    """Put text between the marks of a page."""
    before, found, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not (found and end):
        raise SystemExit(f"{page} has no {MARKS[0]} and {MARKS[1]}")
    page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}", encoding="utf-8")


def choose_parts(wanted: str, is_short: bool) -> list[str]:
    """Return the names of parts that begin with one of the wanted words."""
    parts = list_parts()
    words = wanted.split(",") if wanted else list(parts)
    unknown = [word for word in words if not any(f"{name} ".startswith(f"{word} ") for name in parts)]
    if unknown:
        raise SystemExit(f"no part {unknown[0]!r}; parts: {', '.join(parts)}")
    return [
        name
        for name, part in parts.items()
        if any(f"{name} ".startswith(f"{word} ") for word in words) and not (is_short and part.short is None)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--parts", default="", help="default: all")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 2), help="parts at a time")
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies the limits of time")
    parser.add_argument("--write", type=Path, help="page that shows the figures")
    parser.add_argument("--keep", type=Path, help="folder of results: parts that are done are not repeated")
    parser.add_argument("--list", action="store_true", help="name the parts, and do nothing")
    parser.add_argument("--write-lines", action="store_true", help="write what data files must give anew")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_part(given.one, given.folder / "base", given.folder / f"{given.one}.json", given.short)
        return 0
    names = choose_parts(given.parts, given.short)
    if given.list:
        print("\n".join(names))
        return 0
    with tempfile.TemporaryDirectory() if given.keep is None else contextlib.nullcontext(given.keep) as place:
        base = Path(place, "base")
        if not base.exists():
            base.mkdir(parents=True)
            prepare(base)
        if given.write_lines:
            try_inputs(Tally(), base, 30, True, is_written=True)
            return 0
        results = run_parts(names, Path(place), given.jobs, given.short, given.patience)
    text = format_results(results, given.jobs)
    print(f"\n{text}")
    if given.write:
        write_page(given.write, text)
    return int(any(result is None or result["failures"] for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
