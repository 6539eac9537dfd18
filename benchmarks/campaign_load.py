"""Load for the campaign: many rows, many updates, many readers, and what the number of threads changes."""

import contextlib
import csv
import gc
import hashlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from undrift import MSDAClassifier, TermVectorizer, TextAdapter, load_model, save_model
from undrift.datasets import make_reviews
from undrift.persist import ModelFileError

GROWTH = 1.02, 8 << 20  # of what a process holds at a tenth of the work, and bytes
N_READERS = 64
UPDATED_ROWS = 50
LARGEST_DIFFERENCE = 2e-5  # of a score, between numbers of threads


def read_resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def report_growth(tally, what: str, n: int, held: list[int], seconds: float, must_hold: bool) -> None:
    """Compare what was held after each tenth of the work."""
    megabytes = ", ".join(f"{size / 1e6:.0f}" for size in held)
    tally.add(what, n, f"MB held after each tenth: {megabytes}; {seconds:.0f} s")
    if must_hold and max(held) > GROWTH[0] * held[0] + GROWTH[1]:
        tally.fail(f"{what}: memory grows, {megabytes} MB", kind="growth of memory")


def measure_loading(path: Path) -> int:
    """Return by how many bytes a process grows at most while it loads a model file, or refuses it."""
    read, write = os.pipe()

    def load(pipe: int) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
        before = read_resident()
        with contextlib.suppress(ModelFileError):
            load_model(path)
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        os.write(pipe, str(int(peak) * 1024 - before).encode())

    call_in_fork(load, write)
    grown = int(os.read(read, 100))
    os.close(read)
    os.close(write)
    return grown


def make_models(folder: Path, n_rows: int = 300) -> list[str]:
    """Write a model, a distilled one and another; returns target documents."""
    corpus = make_reviews(n_rows, domains=["books", "kitchen"], random_state=0)
    source, target = corpus.domains["books"], corpus.domains["kitchen"]
    for seed, name in enumerate(("model", "other")):
        adapter = TextAdapter(TermVectorizer(300), MSDAClassifier(2 - seed, random_state=seed))
        adapter.fit(source.texts, source.y, target.texts)
        save_model(adapter, folder / f"{name}.safetensors")
        if name == "model":
            save_model(adapter.distill(target.texts), folder / "small.safetensors")
    return list(target.texts)


def call_in_fork(function, *arguments) -> None:
    """Call a function in a fork, whose memory is counted apart; raises if it fails."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{function.__name__} failed")


def soak_predict(tally, base: Path, n_rows: int, n_words: int = 4) -> None:
    """Predict many short rows with a distilled model; note the memory after each tenth."""
    with tempfile.TemporaryDirectory() as place:
        predict_many(tally, Path(place), n_rows, n_words)


def predict_many(tally, folder: Path, n_rows: int, n_words: int) -> None:
    """Predict rows in a process, and check each of them."""
    texts = [" ".join(text.replace('"', "").split()[:n_words]) for text in make_models(folder)]
    with (folder / "many.csv").open("w") as file:
        file.write("id,text\n")
        file.writelines(f'{i},"{text}"\n' for i, text in enumerate(islice(cycle(texts), n_rows)))

    def predict(pipe: int) -> None:
        from undrift.jobs import run_predict
        from undrift.tables import open_table

        model, table = load_model(folder / "small.safetensors"), open_table(folder / "many.csv", text="text")
        n_noted = 0
        for done in run_predict(model, table, "text", folder / "out.csv"):
            if done.n_rows * 10 >= n_rows * (n_noted + 1):
                n_noted += 1
                os.write(pipe, f"{read_resident()} ".encode())

    read, write = os.pipe()
    began = time.monotonic()
    call_in_fork(predict, write)
    seconds = time.monotonic() - began
    held = [int(size) for size in os.read(read, 10_000).split()]
    os.close(read)
    os.close(write)
    what = f"`predict`, rows of {n_words} words, a distilled model"
    report_growth(tally, what, n_rows, held, seconds, n_rows >= 1_000_000)
    check_many(tally, what, folder, texts, n_rows)


def check_many(tally, what: str, folder: Path, texts: list[str], n_rows: int) -> None:
    """Every row is in the output, in order, with the prediction that its text gets alone."""
    expected = load_model(folder / "small.safetensors").predict(texts).tolist()
    with (folder / "out.csv").open(newline="") as file:
        rows = csv.reader(file)
        header, n_read = next(rows), 0
        place = header.index("prediction")
        for n_read, row in enumerate(rows, start=1):
            i = n_read - 1
            if row[0] != str(i) or row[place] != str(expected[i % len(texts)]):
                tally.fail(f"{what}: row {i} is {row}", kind="partial output")
                break
    if n_read != n_rows:
        tally.fail(f"{what}: {n_read} of {n_rows} rows", kind="partial output")


def soak_updates(tally, base: Path, n_updates: int) -> None:
    """Label and withdraw rows of one model again and again; it ends as it began.

    The class shares are known: to estimate them takes four times as long, and keeps nothing.
    """
    corpus = make_reviews(2 * UPDATED_ROWS, domains=["books", "kitchen"], random_state=0)
    source, target = corpus.domains["books"], corpus.domains["kitchen"]
    classifier = MSDAClassifier(1, target_shares={0: 0.5, 1: 0.5}, random_state=0)
    adapter = TextAdapter(TermVectorizer(100), classifier).fit(source.texts, source.y, target.texts)
    texts = list(target.texts)

    def update(pipe: int) -> None:
        before = adapter.decision_function(texts)
        labels = adapter.classes_.tolist()
        for i in range(n_updates):
            pair, is_withdrawn = i % (UPDATED_ROWS // 2), i // (UPDATED_ROWS // 2) % 2
            given = [None, None] if is_withdrawn else random.Random(i).choices(labels, k=2)
            adapter.update(texts[2 * pair : 2 * pair + 2], given)
            if (i + 1) * 10 % n_updates == 0:
                gc.collect()
                os.write(pipe, f"{read_resident()} ".encode())
        adapter.update(texts, [None] * len(texts))
        assert np.abs(adapter.decision_function(texts) - before).max() < 1e-5

    read, write = os.pipe()
    began = time.monotonic()
    call_in_fork(update, write)
    held = [int(size) for size in os.read(read, 10_000).split()]
    os.close(read)
    os.close(write)
    what, seconds = "`update`, labels added and withdrawn, class shares known", time.monotonic() - began
    report_growth(tally, what, n_updates, held, seconds, n_updates >= 1000)


def read_at_once(tally, folder: Path, n_readers: int = N_READERS, n_rounds: int = 3) -> None:
    """Processes load one model and predict at the same time, while another replaces it."""
    texts = make_models(folder)[:50]
    names = ("model", "other")
    wanted = {hash_scores(load_model(folder / f"{name}.safetensors"), texts) for name in names}
    contents = [(folder / f"{name}.safetensors").read_bytes() for name in names]
    gate, answers = os.pipe(), os.pipe()
    children = []
    for _ in range(n_readers):
        children.append(os.fork())
        if children[-1] == 0:
            os.close(gate[1])
            os.read(gate[0], 1)  # returns when the parent opens the gate
            for _ in range(n_rounds):
                try:
                    answer = hash_scores(load_model(folder / "model.safetensors"), texts)
                except BaseException as error:
                    answer = repr(error)[:200]
                os.write(answers[1], f"{answer}\n".encode())
            os._exit(0)
    os.close(gate[1])
    os.close(gate[0])
    os.close(answers[1])
    writing = threading.Event()
    writer = threading.Thread(target=replace_again_and_again, args=(folder, contents, writing))
    writer.start()
    with os.fdopen(answers[0]) as file:
        given = file.read().splitlines()
    writing.set()
    writer.join()
    statuses = [os.waitpid(child, 0)[1] for child in children]
    wrong = [answer for answer in given if answer not in wanted]
    if wrong or any(statuses) or len(given) != n_readers * n_rounds:
        tally.fail(f"{n_readers} readers: {len(given)} answers, wrong: {wrong[:3]}")
    what = f"processes that load and predict at once, {n_rounds} times each, while the model is replaced"
    tally.add(what, n_readers, f"{len(given)} answers, {len(wrong)} wrong")


def replace_again_and_again(folder: Path, contents: list[bytes], is_over: threading.Event) -> None:
    from undrift._files import replace_file

    for content in cycle(contents):
        with replace_file(folder / "model.safetensors") as new:
            new.write_bytes(content)
        if is_over.wait(0.01):
            return


def hash_scores(model, texts: list[str]) -> str:
    return hashlib.sha256(np.round(model.decision_function(texts), 5).tobytes()).hexdigest()


def predict_in_threads(tally, folder: Path, n_threads: int = N_READERS) -> None:
    """Threads share one model, large and distilled: each gets what one thread alone gets."""
    texts = make_models(folder)
    for name in ("model", "small"):
        model = load_model(folder / f"{name}.safetensors")
        parts = [texts[i : i + 40] for i in range(n_threads)]
        alone = [model.decision_function(part) for part in parts]
        results: list = [None] * n_threads

        def predict(i, model=model, parts=parts, results=results):
            results[i] = model.decision_function(parts[i])

        threads = [threading.Thread(target=predict, args=(i,)) for i in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        n_wrong = sum(r is None or not np.array_equal(r, a) for r, a in zip(results, alone, strict=True))
        if n_wrong:
            tally.fail(f"{n_threads} threads, {name}: {n_wrong} differ")
        tally.add(f"threads that share one model ({name})", n_threads, f"{n_wrong} differ")


def compare_thread_counts(tally, base: Path, folder: Path, command: list[str], counts=(1, 2, 4)) -> None:
    """The same bytes with the same number of threads; with another, the same predictions and close scores."""
    outputs = [run_with_threads(base, folder, command, n) for n in (*counts, counts[-1])]
    if outputs[-1] != outputs[-2]:
        tally.fail(f"{command[0]}, {counts[-1]} threads twice: other bytes")
    tables = [list(csv.DictReader(io.StringIO(output["out.csv"].decode()))) for output in outputs]
    largest, n_changed = 0.0, 0
    for table in tables[1:]:
        for row, other in zip(tables[0], table, strict=True):
            n_changed += row["prediction"] != other["prediction"]
            largest = max(largest, abs(float(row["score"]) - float(other["score"])))
    if n_changed or largest > LARGEST_DIFFERENCE:
        tally.fail(f"{command[0]}, threads {counts}: {n_changed} predictions, scores by {largest:.1e}")
    outcome = (
        f"{n_changed} predictions differ, scores by at most {largest:.1e}; twice with the same: same bytes"
    )
    tally.add(f"`{command[0]}` with {', '.join(map(str, counts))} threads", len(outputs), outcome)


def run_with_threads(base: Path, folder: Path, command: list[str], n_threads: int) -> dict[str, bytes]:
    """Run a command in a copy of a folder; returns the predictions and the model, if it writes one."""
    work = Path(tempfile.mkdtemp(dir=folder), "work")
    shutil.copytree(base, work)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(n_threads))
    full = [sys.executable, "-m", "undrift", *command, "--out", "out.csv"]
    subprocess.run(full, cwd=work, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in work.glob("[on][ue][tw].*")}
