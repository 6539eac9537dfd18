"""Cluster against one process: the same stack on the same rows, time, bytes moved and memory.

    python lab/scripts/dask_scale.py                 # 10^6 rows x 3,000 terms, 2 layers
    python lab/scripts/dask_scale.py --rows 50000    # a twentieth of that
    python lab/scripts/dask_scale.py --text          # adapt --dask local:2 over 20 shards; needs UNDRIFT_DATA

Rows are made by the process that works on them (68 terms each, frequencies as in amazon-bow's 3,000 most
frequent terms), before the clock starts. The single process may use as many threads as there are workers. On
a machine that others use too, compare processor seconds: waiting for a processor is no overhead.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from harness import data_folder, print_record, relative_errors, report, run_contender, weights_of

ROWS_A_BLOCK = 10_000
TERMS_A_ROW = 68.0


def term_frequencies(d: int) -> np.ndarray:
    """Shares of rows in which terms occur: a power law, cut at .8, with `TERMS_A_ROW` in the mean."""
    low, high = 0.0, 1e3
    for _ in range(60):  # bisection for the scale of the law
        scale = (low + high) / 2
        shares = np.minimum(0.8, scale / np.arange(2, d + 2) ** 0.75)
        low, high = (scale, high) if shares.sum() < min(TERMS_A_ROW, 0.5 * d) else (low, scale)
    return shares


def make_block(number: int, n: int, d: int, dtype: str) -> sp.csr_matrix:
    """Make rows of term presence; two hidden topics make half of the terms correlate."""
    rng, shares = np.random.default_rng(number), term_frequencies(d)
    topic = rng.random(n) < 0.5
    indices, indptr = [], [0]
    for start in range(0, n, 1000):  # dense for a moment, a thousand rows at a time
        topics = topic[start : start + 1000, None]
        tilt = np.where(np.arange(d) % 2 == topics, 1.5, 0.5)
        present = rng.random((len(topics), d), dtype=np.float32) < shares * tilt
        rows, columns = present.nonzero()
        indices.append(columns.astype(np.int32))
        indptr += (indptr[-1] + np.cumsum(np.bincount(rows, minlength=len(topics)))).tolist()
    columns = np.concatenate(indices)
    return sp.csr_matrix((np.ones(len(columns), dtype), columns, np.array(indptr, np.int32)), shape=(n, d))


def block_sizes(n_rows: int) -> list[int]:
    return [min(ROWS_A_BLOCK, n_rows - start) for start in range(0, n_rows, ROWS_A_BLOCK)]


def make_stack(args: argparse.Namespace):
    from undrift import MSDA

    return MSDA(args.layers, noise=0.7, memory_budget="8 GB", n_pivots=args.pivots, random_state=0)


def run_single(args: argparse.Namespace) -> dict:
    made = [make_block(i, n, args.terms, args.dtype) for i, n in enumerate(block_sizes(args.rows))]
    X = sp.vstack(made, format="csr")
    del made
    start, worked = time.perf_counter(), time.process_time()
    fitted = make_stack(args).fit(X)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - worked
    np.savez(Path(args.folder) / "single.npz", **weights_of(fitted.layers_))
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "terms_a_row": X.nnz / X.shape[0]}


def peak_of_workers(client) -> float:
    """Largest resident memory of a worker so far, in gigabytes."""

    def peak() -> float:
        from pathlib import Path

        (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e9

    return max(client.run(peak).values())


def sent_by_workers(client) -> float:
    """Bytes that workers have sent to other processes so far, in gigabytes."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values()) / 1e9


def processor_seconds(client) -> float:
    """Processor time of client, scheduler (which is in the client's process) and workers so far."""
    return time.process_time() + sum(client.run(time.process_time).values())


def loopback_gigabytes() -> float:
    """Bytes through this machine's loopback interface so far, in gigabytes: every message of the cluster."""
    (line,) = [x for x in Path("/proc/net/dev").read_text().splitlines() if x.strip().startswith("lo:")]
    return int(line.split()[1]) / 1e9


def run_dask(args: argparse.Namespace) -> dict:
    from distributed import Client, LocalCluster, wait

    options = {"threads_per_worker": 1, "memory_limit": args.memory, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=args.workers, **options) as cluster, Client(cluster) as client:
        workers = sorted(client.nthreads())
        blocks = [
            client.submit(make_block, i, n, args.terms, args.dtype, workers=workers[i % len(workers)])
            for i, n in enumerate(block_sizes(args.rows))
        ]
        wait(blocks)
        sent, passed = sent_by_workers(client), loopback_gigabytes()
        start, worked = time.perf_counter(), processor_seconds(client)
        fitted = make_stack(args).fit(blocks)
        seconds, cpu_seconds = time.perf_counter() - start, processor_seconds(client) - worked
        np.savez(Path(args.folder) / "dask.npz", **weights_of(fitted.layers_))
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "sent_by_workers_gigabytes": sent_by_workers(client) - sent,
            "loopback_gigabytes": loopback_gigabytes() - passed,
            "worker_peak_gigabytes": peak_of_workers(client),
            "n_workers_left": len(client.scheduler_info(n_workers=-1)["workers"]),
        }


def compare_rows(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        passed = [*sys.argv[1:], "--folder", folder]
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(args.workers)
        records = {name: run_contender(name, passed) for name in ("single", "dask")}
        errors = relative_errors(Path(folder) / "dask.npz", Path(folder) / "single.npz")
    report(
        f"{args.rows:,} rows x {args.terms:,} terms, {args.layers} layers, {args.dtype}, "
        f"{args.workers} workers of {args.memory}",
        records,
        overhead=records["dask"]["seconds"] / records["single"]["seconds"],
        cpu_overhead=records["dask"]["cpu_seconds"] / records["single"]["cpu_seconds"],
        relative_errors=errors,
    )


def write_text_pair(folder: Path, n_shards: int) -> None:
    """Write fdu-mtl's books (labelled) and kitchen as whole files and as shards."""
    from undrift_lab.corpora.fdu_mtl import load_fdu_mtl

    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    for name in ("books", "kitchen_housewares"):
        domain = corpus.domains[name]
        labels = ["" if y != y else str(int(y)) for y in np.asarray(domain.y, dtype=float)]
        rows = list(zip(domain.texts, labels, strict=True))
        parts = {f"{name}.csv": rows}
        edges = np.linspace(0, len(rows), n_shards + 1).astype(int)
        parts |= {f"{name}-{i}.csv": rows[edges[i] : edges[i + 1]] for i in range(n_shards)}
        for file, part in parts.items():
            with open(folder / file, "w", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows([("text", "label"), *part])


def compare_text(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, answers, records = Path(name), {}, {}
        write_text_pair(folder, 20)
        for run, mark, options in (("plain", "", []), ("dask", "-*", ["--dask", f"local:{args.workers}"])):
            files = [f"{folder}/{domain}{mark}.csv" for domain in ("books", "kitchen_housewares")]
            command = [sys.executable, "-m", "undrift", "adapt", "--source", files[0], "--target", files[1]]
            command += ["--text", "text", "--label", "label", "--out", f"{folder}/{run}-out.csv", *options]
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            records[run] = {"seconds": time.perf_counter() - start}
            with open(folder / f"{run}-out.csv", newline="", encoding="utf-8") as file:
                answers[run] = list(csv.DictReader(file))
        plain, dask = ([row["prediction"] for row in answers[run]] for run in ("plain", "dask"))
        n_different = sum(a != b for a, b in zip(plain, dask, strict=True))
        report("adapt, books -> kitchen, 20 shards each", records, rows=len(plain), n_different=n_different)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--terms", type=int, default=3000)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--pivots", type=int)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=("single", "dask"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        print_record({"single": run_single, "dask": run_dask}[args.contender](args))
    elif args.text:
        compare_text(args)
    else:
        compare_rows(args)


if __name__ == "__main__":
    main()
