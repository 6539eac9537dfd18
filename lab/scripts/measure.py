"""Measure the records of undrift again, and what they are compared with: many runs of plans, several at once.

    python lab/scripts/measure.py FOLDER --device cuda --jobs 8 --seconds 580 --plans full
    python lab/scripts/measure.py FOLDER --kind cpu --jobs 2 --seconds 580
    for plan in full kinds small dimensions multi balance teachers; do
        undrift-lab merge lab/results/$plan.jsonl FOLDER/$plan-*.jsonl --out lab/results/$plan.jsonl
    done

Runs are in the order of their value; each has a file of its own in FOLDER. After `--seconds` none is begun,
and those under way are stopped. Started again, all go on where they were.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
LABELS = (3, 5, 10, 30)
KINDS = ",".join(["undrift", *(f"{name}-{n}" for name in ("updated", "updated-asked") for n in LABELS)])
PEERS = "svm-tfidf,logistic-tfidf,nb-features,self-training,skada-coral,skada-subspace"
OURS = "undrift,undrift-pair"
TWENTY = ("apparel", "baby", "beauty", "books", "camera_photo", "computer_video_games", "dvd", "electronics")
TWENTY += ("gourmet_food", "grocery", "health_personal_care", "jewelry_watches", "kitchen_housewares")
TWENTY += ("magazines", "music", "outdoor_living", "software", "sports_outdoors", "toys_games", "video")
N_PARTS = 4  # of the sources of plan full, that processes share


@dataclass(frozen=True)
class Run:
    """One run of a plan: what of it, and on what kind of machine."""

    plan: str
    variants: str
    methods: str
    tasks: str = "*"
    seed: int = 0
    kind: str = "gpu"
    threads: int = 2  # tasks at once, or threads

    @property
    def name(self) -> str:
        parts = [self.plan, self.variants, self.tasks, str(self.seed), self.methods.partition(",")[0]]
        return "-".join("".join(c for c in part if c.isalnum() or c in "._") or "all" for part in parts)


def list_runs() -> list[Run]:
    """List all runs, the most valuable first."""
    runs = [Run("full", "main", "sda", threads=4), Run("full", "main", "msda-1,msda-3,msda-5")]
    runs += [Run("small", "authors,searched", "sda"), Run("dimensions", "5000,30000", "sda")]
    runs.append(Run("full", "files", "*", threads=8))
    for part in range(N_PARTS):
        tasks = ",".join(f"{name}->*" for name in TWENTY[part::N_PARTS])
        runs.append(Run("full", "main", "undrift", tasks))
    runs.append(Run("kinds", "*", KINDS, threads=8))
    runs += [Run("small", "shipped,inductive", OURS), Run("multi", "20000 terms,inductive", OURS)]
    shares = ("amazon .10,amazon .20", "amazon .35,amazon .50", "amazon .65,amazon .80", "amazon .90")
    runs += [Run("balance", variants, "undrift,oracle") for variants in (*shares, "fdu-mtl*")]
    runs.append(Run("teachers", "*", "undrift,undrift+teacher", threads=4))
    runs.append(Run("full", "authors,main", "svm", kind="cpu", threads=8))
    runs.append(Run("kinds", "*", PEERS, kind="cpu", threads=16))
    return runs


def start(run: Run, folder: Path, device: str) -> subprocess.Popen:
    """Start a run; its file begins with the in-domain errors that are known."""
    path, known = folder / f"{run.name}.jsonl", LAB / f"results/{run.plan}.jsonl"
    if not path.exists() and known.exists():
        lines = known.read_text(encoding="utf-8").splitlines(keepends=True)
        records = [(line, json.loads(line)) for line in lines]
        kept = [line for line, r in records if r["kind"] == "in-domain" and r["seed"] == run.seed]
        path.write_text("".join(kept), encoding="utf-8")
    command = [sys.executable, "-m", "undrift_lab", "run", run.plan, "--results", str(path), "--log"]
    command += ["--variants", run.variants, "--tasks", run.tasks, "--seed", str(run.seed)]
    command += [] if run.methods == "*" else ["--methods", run.methods]
    command += ["--jobs", str(run.threads), "--device", device if run.kind == "gpu" else "cpu"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1" if run.kind == "cpu" else str(min(run.threads, 2))}
    with open(folder / f"{run.name}.log", "a", encoding="utf-8") as log:
        return subprocess.Popen(command, stderr=log, stdout=log, env=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kind", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--plans", help="names separated by commas; all by default")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--list", action="store_true", help="show the runs, and begin none")
    options = parser.parse_args()
    plans = None if options.plans is None else options.plans.split(",")
    left = [run for run in list_runs() if run.kind == options.kind and (plans is None or run.plan in plans)]
    if options.list:
        print("\n".join(f"{run.name}: {run.methods}" for run in left))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    deadline, running = time.monotonic() + options.seconds, {}
    while (left or running) and time.monotonic() < deadline:
        while left and len(running) < options.jobs:
            run = left.pop(0)
            running[run.name] = start(run, options.folder, options.device)
        time.sleep(0.5)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            seconds = options.seconds - (deadline - time.monotonic())
            print(f"{seconds:.0f} s: {name} ended with {running.pop(name).returncode}", flush=True)
    for process in running.values():
        process.terminate()
    for process in running.values():
        process.wait()
    print(
        f"stopped: {', '.join(running) or 'none'}; not begun: {', '.join(run.name for run in left) or 'none'}"
    )


if __name__ == "__main__":
    main()
