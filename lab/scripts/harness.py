"""What the benchmarks share: real data, contenders in separate processes, a table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

# what is measured is the library beside this folder, installed or not
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "src"), str(Path(__file__).resolve().parents[1])]

RESULTS = Path(__file__).resolve().parents[1] / "results"
DOMAINS = ("books", "dvd", "electronics", "kitchen")


def data_folder() -> Path:
    if "UNDRIFT_DATA" not in os.environ:
        raise SystemExit("set UNDRIFT_DATA to the folder that holds the corpora")
    return Path(os.environ["UNDRIFT_DATA"])


def amazon_presence(n_rows: int | None, n_columns: int | None, dtype: str) -> sp.csr_matrix:
    """Presence of terms in the four-domain benchmark: 27,677 x 5,000, or evenly spaced rows of it."""
    from sklearn.datasets import load_svmlight_files

    folder = data_folder() / "amazon-bow"
    files = [str(folder / f"{name}_{part}.svmlight.gz") for name in DOMAINS for part in ("train", "test")]
    X = sp.vstack(load_svmlight_files(files, n_features=5000, zero_based=True)[::2]).tocsr()
    if n_rows is not None and n_rows < X.shape[0]:
        X = X[np.linspace(0, X.shape[0] - 1, n_rows).astype(int)]
    X = X[:, :n_columns].astype(dtype)
    X.data[:] = 1
    return X


def draw_share(y: np.ndarray, rows: np.ndarray, share: float, most: int, seed: int) -> np.ndarray:
    """Draw as many of the rows as possible, at most `most`, of which `share` have label 1."""
    rows = np.random.default_rng(seed).permutation(rows)
    ones, zeros = rows[y[rows] == 1], rows[y[rows] == 0]
    n = int(min([most, *(len(part) / s for part, s in ((ones, share), (zeros, 1 - share)) if s > 0)]))
    n_ones = round(n * share)
    return np.sort(np.concatenate([ones[:n_ones], zeros[: n - n_ones]]))


def check_device(name: str) -> str:
    """Return `name`, or end the program with one line if there is no such device."""
    from undrift.inputs.device import NoDevice, check_place

    try:
        check_place(name)
    except (NoDevice, ImportError) as error:
        raise SystemExit(str(error)) from None
    return name


def time_call(action: Callable[[], object]) -> tuple[object, float]:
    start = time.perf_counter()
    value = action()
    return value, time.perf_counter() - start


# tells the largest memory of the process that it runs in; that of a parent counts in the usage of a child
LAUNCH = """
import atexit, runpy, sys

def tell():
    with open("/proc/self/status") as file:
        print(*(line.split()[1] for line in file if line.startswith("VmHWM")), file=sys.stderr)

atexit.register(tell)
runpy.run_module("undrift", run_name="__main__", alter_sys=True)
"""


def run_undrift(
    folder: Path, arguments: Sequence[str], version: Path | None = None
) -> tuple[dict, dict[str, float]]:
    """Run a command of undrift in a folder; return its JSON, and `seconds`, `cpu_seconds` and `gigabytes`.

    It is that of this checkout, or of the checkout `version`.
    """
    source = (version or Path(__file__).parents[2]).resolve() / "src"
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", LAUNCH, *arguments, "--json"]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout), {
        "seconds": seconds,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "gigabytes": int(done.stderr.split()[-1]) * 1024 / 1e9,
    }


def print_record(record: dict) -> None:
    """Print a contender's record for the process that started it."""
    print(json.dumps(record))


def run_contender(name: str, arguments: Sequence[str], repeats: int = 1, key: str = "seconds") -> dict:
    """Run this script as `name` in `repeats` processes, and return the record with the least `key`."""
    records = []
    for _ in range(repeats):
        command = [sys.executable, sys.argv[0], *arguments, "--contender", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        records.append(json.loads(done.stdout.splitlines()[-1]))
    return min(records, key=lambda record: record[key])


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option that `store` obeys."""
    parser.add_argument("--store", action="store_true", help="keep the result in lab/results, for the pages")


def store(name: str, rows: Sequence[dict], device: str = "cpu") -> None:
    """Write rows of a table as ``lab/results/NAME.json``, where the command has ``--store``."""
    from undrift_lab.runner.recording import describe_machine

    arguments = [argument for argument in sys.argv[1:] if argument != "--store"]
    result = {
        "command": " ".join(["python", f"lab/scripts/{Path(sys.argv[0]).name}", *arguments]),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": describe_machine(device),
        "rows": list(rows),
    }
    if "--store" in sys.argv:
        text = json.dumps(result, ensure_ascii=False, indent=1)
        (RESULTS / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def report(title: str, records: dict[str, dict], **summary: object) -> None:
    """Print a table for people and the same as one line of JSON."""
    print(title)
    for name, record in records.items():
        cells = (f"{key} {_format(value)}" for key, value in record.items())
        print(f"  {name:<24} " + "   ".join(cells))
    for key, value in summary.items():
        print(f"  {key:<24} {_format(value)}")
    machine = {
        "cpu_count": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    print(json.dumps({"title": title, "records": records, **summary, **machine}))


def _format(value: object) -> str:
    if isinstance(value, list):
        return " ".join(_format(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)
