"""A campaign against bad input and faults: hostile model files, hostile data files, faults at every write.

    python benchmarks/campaign.py [--short] [--parts models,inputs,faults] [--seconds 60]

Prints a table of what was tried and what happened, with status 1 if there was a traceback, a partial output
or a file left behind. `--short` takes about a minute and is run by the tests. `--seconds` is how long model
files are changed at random.
"""

import argparse
import bz2
import csv
import gzip
import importlib
import io
import json
import lzma
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import safetensors.numpy

from tests.helpers.faults import FAULTS, STATUS, run_with_fault
from tests.helpers.hostile_models import change_model
from tests.helpers.model_files import parts_of
from tests.helpers.review_files import make_review_texts, write_csv

SMALL = ["--max-features", "80", "--layers", "1"]
ADAPT = ["adapt", "--source", "books.csv", "--target", "kitchen.csv", "--text", "review", "--label", "stars"]
PREDICT = ["predict", "--model", "model.safetensors", "--text", "review"]
COMMANDS = {
    "adapt": [
        *ADAPT,
        *SMALL,
        "--out",
        "out.csv",
        "--model",
        "new.safetensors",
        "--distilled",
        "small.safetensors",
    ],
    "adapt --report": [*ADAPT, *SMALL, "--out", "out.csv", "--report", "report.html"],
    "predict": [*PREDICT, "--input", "kitchen.csv", "--out", "out.csv"],
    "distill": [
        "distill",
        "--model",
        "model.safetensors",
        "--target",
        "kitchen.csv",
        "--text",
        "review",
        "--out",
        "small.safetensors",
    ],
    "ask": [
        "ask",
        "--model",
        "model.safetensors",
        "--input",
        "kitchen.csv",
        "--text",
        "review",
        "--n",
        "5",
        "--out",
        "out.csv",
    ],
    "update": [
        "update",
        "--model",
        "model.safetensors",
        "--labels",
        "labels.csv",
        "--text",
        "review",
        "--label",
        "stars",
        "--out",
        "new.safetensors",
    ],
}
OUTPUTS = ["out.csv", "new.safetensors", "small.safetensors", "report.html"]
OLD = b"the old output\n"


def prepare(folder: Path) -> None:
    """Write the input files of all commands, and a model."""
    texts = make_review_texts(120, 0.2, seed=0)
    for name in ("books", "kitchen"):
        reviews, labels = texts[name]
        labels = labels if name == "books" else [""] * len(labels)
        write_csv(folder / f"{name}.csv", {"review": reviews, "stars": labels})
    reviews, labels = texts["kitchen"]
    labelled = [(text, label) for text, label in zip(reviews, labels, strict=True) if label][:10]
    write_csv(folder / "labels.csv", {"review": [t for t, _ in labelled], "stars": [y for _, y in labelled]})
    done = run_with_fault([*ADAPT, *SMALL, "--out", "out.csv", "--model", "model.safetensors"], folder)
    assert done.status == 0, done.said
    (folder / "out.csv").unlink()


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


def check_one_line(tally: Tally, what: str, done, names=()) -> None:
    """A command succeeds, or says in one line what was wrong."""
    if "Traceback" in done.said or done.status not in (0, 2):
        tally.fail(f"{what}: status {done.status}", done.said)
    elif done.status == 2:
        lines = [line for line in done.said.splitlines() if line.startswith("undrift: ")]
        if len(lines) != 1 or not any(name in lines[0] for name in names or [""]):
            tally.fail(f"{what}: {len(lines)} lines", done.said)


# -- model files ---------------------------------------------------------------------------------------


def try_models(tally: Tally, base: Path, seconds: float, n_min: int) -> None:
    """Change a model file at random, sign it again, and predict with it."""
    metadata, arrays = parts_of(base / "model.safetensors")
    counts, peak, seed, end = Counter(), 0.0, 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        shutil.copytree(base, folder)
        while seed < n_min or time.monotonic() < end:
            changed, changed_arrays = change_model(random.Random(seed), metadata, arrays)
            safetensors.numpy.save_file(changed_arrays, folder / "model.safetensors", metadata=changed)
            done = run_with_fault([*PREDICT, "--input", "kitchen.csv", "--out", "out.csv"], folder)
            check_one_line(tally, f"model {seed}", done)
            counts["refused" if done.status else "predicts"] += 1
            seed += 1
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    tally.add("model files changed and signed again", seed, dict(counts), f"peak {peak:.2f} GB")


# -- data files ----------------------------------------------------------------------------------------


def list_formats(base: Path) -> dict[str, bytes]:
    """The same table in every format."""
    text = (base / "kitchen.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(text.decode())))[:60]
    text = "\n".join(["review,stars", *(f'"{row["review"]}",' for row in rows)]).encode() + b"\n"
    formats = {
        ".csv": text,
        ".tsv": text.replace(b",", b"\t"),
        ".jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in rows),
        ".json": json.dumps(rows).encode(),
        ".csv.gz": gzip.compress(text),
        ".csv.bz2": bz2.compress(text),
        ".csv.xz": lzma.compress(text),
    }
    import openpyxl
    import pyarrow
    import pyarrow.parquet

    sheet = io.BytesIO()
    book = openpyxl.Workbook()
    for row in [["review", "stars"], *([row["review"], row["stars"]] for row in rows)]:
        book.active.append(row)
    book.save(sheet)
    formats[".xlsx"] = sheet.getvalue()
    columns = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), columns)
    formats[".parquet"] = columns.getvalue()
    formats[".csv.zst"] = pyarrow.compress(text, codec="zstd", asbytes=True)
    return formats


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return a file with something wrong at a random place."""
    place = rng.randrange(len(content))
    wrong = [
        b"\0",
        b"\xff\xfe",
        b'"',
        b"\n",
        b"\xed\xa0\x80",
        b"\x1b[2J",
        b"{",
        b"\\",
        b",,,,",
        b"\xef\xbb\xbf",
    ]
    action = rng.randrange(4)
    if action == 0:
        return content[:place]
    if action == 1:
        return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    if action == 2:
        return content[:place] + rng.choice(wrong) + content[place:]
    return content[:place] + content[place + rng.randrange(1, 200) :]


def list_written_files(text: bytes) -> dict[str, bytes]:
    """Files that somebody thought of."""
    lines = text.decode()
    wide = ",".join(f"c{number}" for number in range(100_000))
    return {
        "empty.csv": b"",
        "newline.csv": b"\n",
        "header.csv": b"review,stars\n",
        "nul.csv": b"\0" * 1000,
        "bom.csv": b"\xef\xbb\xbf" + text,
        "utf-16.csv": lines.encode("utf-16"),
        "utf-16-le.csv": lines.encode("utf-16-le"),
        "utf-32.csv": lines.encode("utf-32"),
        "latin-1.csv": "review,stars\nchaud-froid réussi,\n".encode("latin-1"),
        "surrogate.jsonl": b'{"review": "\\ud800 lone"}\n',
        "no column.csv": b"a,b\n1,2\n",
        "wide.csv": f"review,{wide}\nx\n".encode(),
        "long field.csv": b'review\n"' + b"x " * 9_000_000 + b'"\n',
        "long line.jsonl": b'{"review": "' + b"y" * 20_000_000 + b'"}\n',
        "quote.csv": b'review,stars\n"never closed,\n' * 3,
        "ragged.csv": b"review,stars\na,b,c,d\ne\n",
        "nested.jsonl": b'{"review": {"a": [1]}}\n',
        "number.jsonl": b'{"review": 5}\n{"review": null}\n{"review": true}\n',
        "array.jsonl": b"[1, 2]\n",
        "deep.json": b"[" * 100_000,
        "dates.csv": b"review,stars\n2024-01-01,2024\n",
        "text.parquet": text,
        "text.xlsx": text,
        "text.csv.gz": text,
        "text.csv.xz": text,
        "parquet.csv": b"PAR1" + bytes(100) + b"PAR1",
        "crlf.csv": text.replace(b"\n", b"\r\n"),
        "cr.csv": text.replace(b"\n", b"\r"),
        "same names.csv": b"review,review\na,b\n",
        "blank header.csv": b",,\na,b,c\n",
        "infinity.json": b'[{"review": Infinity}]',
        "escape.csv": b"review,stars\n\x1b]0;title\x07\x1b[31mred,\n",
        "zeros.xlsx": b"PK\3\4" + bytes(200),
        "zst.csv.zst": b"\x28\xb5\x2f\xfd" + bytes(50),
    }


def try_inputs(tally: Tally, base: Path, n_each: int) -> None:
    """Predict the rows of hostile files."""
    formats = list_formats(base)
    files = list_written_files(formats[".csv"])
    for ending, content in formats.items():
        for seed in range(n_each):
            files[f"changed-{seed}{ending}"] = change_bytes(content, random.Random(f"{ending}{seed}"))
    counts: dict[str, Counter] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        shutil.copy(base / "model.safetensors", folder)
        for name, content in files.items():
            (folder / name).write_bytes(content)
            before = set(os.listdir(folder))
            done = run_with_fault([*PREDICT, "--input", name, "--out", "out.csv"], folder)
            check_one_line(tally, name, done, names=(name, "review"))
            if set(os.listdir(folder)) - before - ({"out.csv"} if done.status == 0 else set()):
                tally.fail(f"{name}: files are left", done.said)
            counts.setdefault(name[name.index(".") :], Counter())["refused" if done.status else "read"] += 1
            for path in (folder / name, folder / "out.csv"):
                path.unlink(missing_ok=True)
    for ending, count in counts.items():
        tally.add(f"data files {ending}", sum(count.values()), dict(count), "")


# -- faults --------------------------------------------------------------------------------------------


def try_faults(tally: Tally, base: Path, n_points: int) -> None:
    """Let every fault happen at points of every command."""
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory() as place:
            clean = run_in_copy(base, Path(place), command)
        if clean.status:
            tally.fail(f"{name} without a fault", clean.said)
            continue
        points = sorted({round(i * (clean.n_points - 1) / max(n_points - 1, 1)) for i in range(n_points)})
        counts = Counter()
        for fault in FAULTS:
            for point in points:
                what = f"{name}, {fault} at {point} of {clean.n_points}"
                with tempfile.TemporaryDirectory() as place:
                    done = run_in_copy(base, Path(place), command, fault, point)
                    check_fault(tally, what, done, clean, fault)
                    if fault == "killed":
                        again = run_with_fault(command, Path(place, "work"))
                        check_litter(tally, f"{what}, run again", again, clean)
                        compare_outputs(tally, f"{what}, run again", again, clean, allow_old=False)
                counts["survived"] += 1
        limits = [(resource.RLIMIT_FSIZE, size) for size in (100, 20_000)] + [(resource.RLIMIT_AS, 600 << 20)]
        for limit in limits:
            with tempfile.TemporaryDirectory() as place:
                done = run_in_copy(base, Path(place), command, limits=[limit])
                what = f"{name} with a limit of {limit[1]:,} bytes"
                compare_outputs(tally, what, done, clean)
                check_litter(tally, what, done, clean)
                if "Traceback" in done.said:
                    tally.fail(what, done.said)
            counts["survived"] += 1
        tally.add(f"faults: {name}", counts["survived"], f"{len(points)} points of {clean.n_points}", "")


def run_in_copy(base: Path, place: Path, command, fault=None, at=0, limits=()):
    """Run a command in a copy of the folder, in which every output exists already."""
    folder = place / "work"
    shutil.copytree(base, folder)
    for name in OUTPUTS:
        if name in command:
            (folder / name).write_bytes(OLD)
    return run_with_fault(command, folder, fault, at, limits)


def check_fault(tally: Tally, what: str, done, clean, fault: str) -> None:
    if "Traceback" in done.said or done.status not in (0, STATUS.get(fault, 2)):
        tally.fail(f"{what}: status {done.status}", done.said)
    compare_outputs(tally, what, done, clean)
    if fault != "killed":
        check_litter(tally, what, done, clean)


def compare_outputs(tally: Tally, what: str, done, clean, allow_old: bool = True) -> None:
    """Every output is the old one, or the whole new one."""
    for name in OUTPUTS:
        if name not in clean.files:
            continue
        content = done.files.get(name)
        is_whole = content == clean.files[name] or (name.endswith("html") and b"</html>" in (content or b""))
        if not (is_whole or (allow_old and content == OLD)):
            tally.fail(f"{what}: {name} is neither the old nor the new one")


def check_litter(tally: Tally, what: str, done, clean) -> None:
    if set(done.files) - set(clean.files):
        tally.fail(f"{what}: left {sorted(set(done.files) - set(clean.files))}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--parts", default="models,inputs,faults")
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    began, tally, parts = time.monotonic(), Tally(), arguments.parts.split(",")
    for name in ("bench", "cli.app", "jobs", "report"):  # so that forks need not import them
        importlib.import_module(f"undrift.{name}")
    with tempfile.TemporaryDirectory() as place:
        base = Path(place, "base")
        base.mkdir()
        prepare(base)
        if "models" in parts:
            try_models(tally, base, 0 if arguments.short else arguments.seconds, 40)
        if "inputs" in parts:
            try_inputs(tally, base, 3 if arguments.short else 30)
        if "faults" in parts:
            try_faults(tally, base, 2 if arguments.short else 12)
    print("\n| tried | number | outcome | |\n| --- | ---: | --- | --- |")
    for row in tally.rows:
        print("| " + " | ".join(row) + " |")
    print(f"\n{len(tally.failures)} failures; {time.monotonic() - began:.0f} s")
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
