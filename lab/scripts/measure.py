"""Measure the records of undrift again, and what they are compared with: many runs of plans, several at once.

    python lab/scripts/measure.py FOLDER --device cuda --jobs 8 --seconds 580
    python lab/scripts/measure.py FOLDER --kind cpu --jobs 8 --seconds 580
    for plan in claims small multi peers trust teachers balance beyond labels; do
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
LAYERS = ("uncentred", "uncentred-em", "aligned", "uncentred-self", "uncentred-em-self", "centred")
PAIRS = ",".join(f"{name}-pair" for name in ("undrift", "balanced", *LAYERS))
TRUST = ",".join(["undrift", "balanced", *LAYERS, "confidence,doc,atc,quapy-em,quapy-dys,quapy-kdey"])
OURS = "undrift,undrift-pair,batch,batch-pair"
EM = "undrift-pair,uncentred-self-pair,uncentred-em-self-pair"
SVMS = "svm-tfidf,nb-features"
PEERS = ("amazon .20", "amazon .50", "amazon .80", "fdu-mtl .20", "fdu-mtl .50", "fdu-mtl .80")
NATURAL = ("apparel", "books", "camera_photo", "dvd", "electronics", "health_personal_care")
NATURAL += ("kitchen_housewares", "music")
FDU = ("baby", "books", "camera_photo", "dvd", "electronics", "health_personal_care", "kitchen_housewares")
FDU += ("music", "sports_outdoors", "video")


@dataclass(frozen=True)
class Run:
    """One run of a plan: what of it, and on what kind of machine."""

    plan: str
    variants: str
    methods: str
    tasks: str = "*"
    seed: int = 0
    kind: str = "gpu"

    @property
    def name(self) -> str:
        parts = [self.plan, self.variants, self.tasks, str(self.seed), self.methods.partition(",")[0]]
        return "-".join("".join(c for c in part if c.isalnum() or c in "._") or "all" for part in parts)


def halve(names: tuple[str, ...]) -> list[str]:
    """Return patterns of the tasks to each half of some targets."""
    middle = len(names) // 2
    return [",".join(f"*->{name}" for name in half) for half in (names[:middle], names[middle:])]


def list_runs() -> list[Run]:
    """List all runs, the most valuable first."""
    runs = [Run("claims", "published", "msda-5"), Run("small", "shipped,inductive", OURS)]
    others = ("crisis,newsgroups,pairs*", "debt", "fdu-mtl .50")
    runs += [Run("trust", "natural", TRUST, tasks) for tasks in halve(NATURAL)]
    runs += [Run("trust", variants, TRUST) for variants in others]
    runs += [Run("peers", variant, PAIRS) for variant in PEERS]
    runs += [Run("multi", variant, OURS) for variant in ("20000 terms", "inductive")]
    runs += [Run("peers", "amazon*", "undrift"), Run("peers", "fdu-mtl*", "undrift")]
    runs += [Run("teachers", "fdu-mtl", "*", tasks) for tasks in halve(FDU)]
    runs += [Run("teachers", variants, "*") for variants in ("natural", "fdu-mtl .*")]
    for seed in (1, 2):
        runs.append(Run("small", "shipped,inductive", OURS, seed=seed))
        runs += [Run("peers", variants, EM, seed=seed) for variants in ("amazon*", "fdu-mtl*")]
        variants = ("20000 terms", "inductive")
        runs += [Run("multi", variant, "undrift-pair,batch-pair", seed=seed) for variant in variants]
    ours = "uncentred,uncentred-em,aligned,uncentred-self,uncentred-em-self,centred,undrift,oracle,balanced"
    shares = ("amazon .10,amazon .20", "amazon .35,amazon .50", "amazon .65,amazon .80", "amazon .90")
    runs += [Run("balance", variants, ours) for variants in (*shares, "fdu-mtl*")]
    runs.append(Run("beyond", "*", "undrift"))
    numbers = (10, 25, 50, 100, 200)
    updated = [f"{name}-{n}" for name in ("updated", "updated-asked") for n in numbers]
    with_labels = ",".join(["labels-0", *updated, "labels-50", "asked-50"])
    shares = ("amazon .50", "amazon .20", "fdu-mtl .50", "fdu-mtl .20")
    runs += [Run("labels", variant, with_labels) for variant in shares]
    plain = "nb-features,self-training,source-only"
    runs.append(Run("trust", "*", plain, kind="cpu"))
    for seed in (1, 2):
        runs.append(Run("peers", "*", f"{SVMS},self-training", seed=seed, kind="cpu"))
        runs.append(Run("small", "shipped,inductive", SVMS, seed=seed, kind="cpu"))
        runs.append(Run("multi", "20000 terms,inductive", SVMS, seed=seed, kind="cpu"))
    runs.append(Run("trust", "*", "skada-target-shift,skada-tca", kind="cpu"))
    return runs


def start(run: Run, folder: Path, device: str, threads: int) -> subprocess.Popen:
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
    command += ["--jobs", str(threads), "--device", device if run.kind == "gpu" else "cpu"]
    settings = {**os.environ, "OMP_NUM_THREADS": "1" if run.kind == "cpu" else str(threads)}
    with open(folder / f"{run.name}.log", "a", encoding="utf-8") as log:
        return subprocess.Popen(command, stderr=log, stdout=log, env=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kind", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--threads", type=int, default=2, help="of each run")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--list", action="store_true", help="show the runs, and begin none")
    options = parser.parse_args()
    left = [run for run in list_runs() if run.kind == options.kind]
    if options.list:
        print("\n".join(f"{run.name}: {run.methods}" for run in left))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    deadline, running = time.monotonic() + options.seconds, {}
    while (left or running) and time.monotonic() < deadline:
        while left and len(running) < options.jobs:
            run = left.pop(0)
            running[run.name] = start(run, options.folder, options.device, options.threads)
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
