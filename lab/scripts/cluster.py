"""`undrift adapt` on a Dask cluster of two workers, one of which is killed: time, memory and the error.

The rows are the labelled reviews of amazon-20, again and again: those of nineteen domains are the source,
those of one the target. A worker is killed once it has added up its first rows of the second layer. Dask
starts it again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from harness import add_store, data_folder, report, run_undrift, store

STAGE = "undrift-scatter-1-"  # sums over the rows of the second layer


def read_reviews(target: str) -> tuple[list[dict], list[dict]]:
    """Return labelled reviews of all other domains, and those of the target."""
    source, rows = [], []
    for path in sorted((data_folder() / "amazon-20").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            labelled = [row for row in map(json.loads, file) if row["label"] is not None]
        (rows if path.name.startswith(f"{target}.") else source).extend(labelled)
    return source, rows


def write_shards(folder: Path, rows: Iterator[dict], n_rows: int, n_shards: int) -> None:
    """Write rows as files of JSON lines."""
    folder.mkdir()
    for shard in range(n_shards):
        n = n_rows * (shard + 1) // n_shards - n_rows * shard // n_shards
        lines = (json.dumps(row, ensure_ascii=False) for row in islice(rows, n))
        (folder / f"{shard:03}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def watch_memory(pids: list[int], largest: dict[int, float], done: threading.Event) -> None:
    """Keep the largest resident memory of processes, in gigabytes."""
    while not done.wait(0.5):
        for pid in pids:
            status = Path(f"/proc/{pid}/status")
            if status.exists():
                sizes = [line.split()[1] for line in status.read_text().splitlines() if "VmHWM" in line]
                largest[pid] = max([largest.get(pid, 0.0), *(int(size) * 1024 / 1e9 for size in sizes)])


def run_job(arguments: argparse.Namespace, is_killed: bool) -> dict[str, float]:
    """Run the job once on a new cluster; return what it took and its error."""
    from distributed import Client, LocalCluster
    from distributed.diagnostics.plugin import SchedulerPlugin

    class Killer(SchedulerPlugin):
        """Kills a worker, once."""

        name = "killer"
        pids: dict[str, int] = {}
        n_killed = 0

        def transition(self, key, start, finish, *args, **kwargs):  # type: ignore[no-untyped-def]
            name = key[0] if isinstance(key, tuple) else key
            if self.n_killed or (start, finish) != ("processing", "memory") or not name.startswith(STAGE):
                return
            self.n_killed += 1
            os.kill(self.pids[kwargs["worker"]], signal.SIGKILL)

    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 60}
    with tempfile.TemporaryDirectory() as name, LocalCluster(n_workers=2, **options) as cluster:
        folder, killer, done = Path(name), Killer(), threading.Event()
        source, target = read_reviews(arguments.target)
        write_shards(folder / "source", cycle(source), arguments.rows, arguments.shards)
        write_shards(folder / "target", cycle(target), arguments.target_rows, 4)
        with Client(cluster) as client:
            killer.pids = client.run(os.getpid)
            if is_killed:
                cluster.scheduler.add_plugin(killer)
            largest: dict[int, float] = {}
            watched = [list(killer.pids.values()), largest, done]
            watcher = threading.Thread(target=watch_memory, args=watched, daemon=True)
            watcher.start()
            start = time.perf_counter()
            command = "adapt --source source --target target --text text --label label --target-label label"
            command += (
                f" --out out.csv --device {cluster.scheduler_address} --max-features {arguments.features}"
            )
            summary, cost = run_undrift(folder, command.split())
            seconds = time.perf_counter() - start
            done.set()
            watcher.join()
    (found,) = summary["targets"]
    return {
        "seconds": seconds,
        "client_gigabytes": cost["gigabytes"],
        "worker_gigabytes": max(largest.values()),
        "n_killed": killer.n_killed,
        "error": found["adapted_error"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="labelled rows of the source")
    parser.add_argument("--target-rows", type=int, default=10_000)
    parser.add_argument("--target", default="kitchen_housewares")
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--features", type=int, default=5_000)
    parser.add_argument("--alone", action="store_true", help="also run the job without a killed worker")
    add_store(parser)
    arguments = parser.parse_args()
    names = {"one of two workers killed": True} | ({"two workers": False} if arguments.alone else {})
    records = {name: run_job(arguments, is_killed) for name, is_killed in names.items()}
    rows = [
        {
            "run": name,
            "seconds": f"{record['seconds']:.0f}",
            "client, GB": f"{record['client_gigabytes']:.1f}",
            "worker, GB": f"{record['worker_gigabytes']:.1f}",
            "killed": record["n_killed"],
            "wrong, %": f"{100 * record['error']:.1f}",
        }
        for name, record in records.items()
    ]
    store("cluster", rows)
    report("undrift adapt on a cluster", records)


if __name__ == "__main__":
    main()
