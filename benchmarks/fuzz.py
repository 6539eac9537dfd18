"""Fuzzing of everything that reads files: model files, re-signed model files, CSV, JSON lines, JSON.

    python benchmarks/fuzz.py TARGET [--seconds 60]        TARGET: header, model, csv, tsv, jsonl, json

Coverage-guided where atheris is installed (pip install atheris), else by Hypothesis. A file must be read, or
be refused with the exception for it (`ModelFileError`, `TableError`) in one line; anything else ends the
program with a traceback. The last lines say how many files were tried.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import atheris
except ImportError:
    atheris = None

import numpy as np
import safetensors.numpy

with atheris.instrument_imports(include=["undrift"]) if atheris else contextlib.nullcontext():
    from undrift import (
        MSDA,
        DistilledText,
        MSDAClassifier,
        MSDARegressor,
        TextAdapter,
        load_model,
        save_model,
    )
    from undrift.persist import ModelFileError
    from undrift.tables import TableError, open_table
    from undrift.text import TermVectorizer

from tests.helpers.hostile_models import change_model

TARGETS = ("header", "model", "csv", "tsv", "jsonl", "json")
LARGEST = 1 << 17  # bytes of a file
TABLES = {
    "csv": [
        b'review,stars\n"a ""good"" book",5\nbad,\n',
        b"review;stars\r\nx;1\r\n\xff\n",
        b"\xef\xbb\xbfreview\n\xe4\xb8\xad\n",
    ],
    "tsv": [b"review\tstars\na b\t5\n", 'review\tstars\né\t"\n'.encode("utf-16")],
    "jsonl": [
        b'{"review": "a", "stars": 5}\n{"review": null}\n',
        b'{"review": "\\ud800", "x": [1, {"a": 1e999}]}\n',
    ],
    "json": [
        b'[{"review": "a", "stars": 5}, {"review": 1.5}]',
        b'[{"data": {"review": "a"}, "annotations": []}]',
    ],
}


def make_models(folder: Path) -> list[Path]:
    """Write a small model of each kind."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.6, (40, 8)).astype(np.float32)
    y = np.array(["a", "b"])[np.arange(20) % 2]
    words = [f"word{number}" for number in range(8)]
    documents = [" ".join(np.repeat(words, row.astype(int))) for row in X]
    adapter = TextAdapter(TermVectorizer(), MSDAClassifier(1)).fit(documents[:20], y, documents[20:])
    models = {
        "layers": MSDA(1, n_pivots=4).fit(X),
        "classifier": MSDAClassifier(n_layers=1).fit(X[:20], y, X[20:]),
        "ratings": MSDARegressor(n_layers=1).fit(X[:20], np.arange(20.0), X[20:]),
        "text": adapter,
        "distilled": adapter.distill(documents[20:] * 2),
    }
    for name, model in models.items():
        save_model(model, folder / name, update_state=name != "text")
    return [folder / name for name in models]


def split_model(data: bytes):
    """Return metadata and arrays of a safetensors file; raises what a broken one raises."""
    arrays = safetensors.numpy.load(data)
    n = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + n]).get("__metadata__", {}), arrays


def change_signed(data: bytes, seed: int) -> bytes:
    """Return a model file with some changes and a digest that is right."""
    metadata, arrays = split_model(data)
    metadata, arrays = change_model(random.Random(seed), metadata, arrays)
    return safetensors.numpy.save(arrays, metadata=metadata)


def check_one_line(error: Exception) -> None:
    if "\n" in str(error):
        raise RuntimeError("a message of several lines") from error


def try_model(path: Path) -> None:
    """Load a model file and use it."""
    try:
        model = load_model(path)
    except ModelFileError as error:
        return check_one_line(error)
    takes_text = isinstance(model, TextAdapter | DistilledText)
    takes_text = takes_text or not hasattr(model, "n_features_in_")
    rows = ["word1 word2", "", "unknown"] if takes_text else np.eye(3, model.n_features_in_)
    for name in ("transform", "predict"):
        if hasattr(model, name):
            getattr(model, name)(rows)


def try_table(path: Path) -> None:
    """Read a table to its end."""
    try:
        table = open_table(path)
        for rows in table:
            for column in rows.columns:
                rows.column(column)
    except TableError as error:
        check_one_line(error)


def make_target(name: str, folder: Path):
    """Return a function that tries the bytes of a file, and the files to start from."""
    is_model = name in ("header", "model")
    path = folder / (f"try.{name}" if not is_model else "try.safetensors")
    start = [file.read_bytes() for file in make_models(folder)] if is_model else TABLES[name]
    attempt = try_model if is_model else try_table

    def try_bytes(data: bytes) -> None:
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt(path)

    return try_bytes, start


def run_atheris(name: str, seconds: float, folder: Path) -> None:
    """Fuzz until the time is over; libFuzzer then ends the process."""
    corpus = folder / "corpus"
    corpus.mkdir()
    try_bytes, start = make_target(name, folder)
    for number, content in enumerate(start):
        (corpus / str(number)).write_bytes(content)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        try:
            changed = change_signed(data, seed)
        except Exception:
            changed = change_signed(random.Random(seed).choice(start), seed)
        return changed if len(changed) <= max_size else data

    arguments = [sys.argv[0], f"-max_total_time={int(seconds)}", f"-max_len={LARGEST}", "-timeout=60"]
    arguments += [
        "-rss_limit_mb=3000",
        "-print_final_stats=1",
        "-verbosity=0",
        f"-artifact_prefix={folder}/",
        str(corpus),
    ]
    options = {"custom_mutator": mutate} if name == "model" else {}
    atheris.Setup(arguments, try_bytes, **options)
    atheris.Fuzz()


def run_hypothesis(name: str, seconds: float, folder: Path) -> None:
    """Try changes that Hypothesis draws until the time is over."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    try_bytes, start = make_target(name, folder)
    n_tried, end = 0, time.monotonic() + seconds

    @settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(start),
        st.integers(0, 2**32),
        st.binary(max_size=8),
        st.floats(0, 1),
        st.integers(0, 20),
    )
    def attempt(content: bytes, seed: int, inserted: bytes, place: float, n_cut: int) -> None:
        nonlocal n_tried
        n_tried += 1
        if name == "model":
            return try_bytes(change_signed(content, seed))
        i = int(place * len(content))
        return try_bytes(content[:i] + inserted + content[i + n_cut :])

    while n_tried == 0 or time.monotonic() < end:
        attempt()
    print(f"stat::number_of_executed_units: {n_tried}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--hypothesis", action="store_true", help="even where atheris is installed")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder is None:  # libFuzzer ends the process without any cleaning up
        memory = Path("/dev/shm")
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
            command = [sys.executable, *sys.argv, "--folder", place]
            sys.exit(subprocess.run(command, check=False).returncode)
    run = run_hypothesis if arguments.hypothesis or atheris is None else run_atheris
    run(arguments.target, arguments.seconds, arguments.folder)


if __name__ == "__main__":
    main()
