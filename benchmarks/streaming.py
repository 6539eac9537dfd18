"""One stack over rows in memory, spilled above a budget, or streamed: same weights, less memory."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from harness import (
    amazon_presence,
    print_record,
    relative_errors,
    report,
    run_contender,
    time_call,
    weights_of,
)

HOMES = ("memory", "spilled", "streamed")


class SavedBlocks:
    """Blocks of rows in files, read again for every pass."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("block-*.npz"))

    def __iter__(self):
        return (sp.load_npz(file) for file in self.files)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--budget", default="1 GB", help="memory budget of the spilled contender")
    parser.add_argument("--blocks", type=int, default=20, help="files of the streamed contender")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    parser.add_argument("--folder", type=Path, help="where blocks and weights go; a temporary one by default")
    parser.add_argument("--contender", choices=HOMES, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_home(args: argparse.Namespace) -> None:
    from undrift import MSDA

    rows = SavedBlocks(args.folder)
    if args.contender != "streamed":
        rows = sp.vstack(list(rows)).tocsr()
    budget = args.budget if args.contender == "spilled" else "1 TB"
    model, seconds = time_call(lambda: MSDA(args.layers, args.noise, memory_budget=budget).fit(rows))
    np.savez(args.folder / f"weights-{args.contender}.npz", **weights_of(model.layers_))
    print_record({"seconds": seconds})


def compare_homes(args: argparse.Namespace, folder: Path) -> None:
    X = amazon_presence(args.rows, args.columns, args.dtype)
    for i, rows in enumerate(np.array_split(np.arange(X.shape[0]), args.blocks)):
        sp.save_npz(folder / f"block-{i:03d}.npz", X[rows])
    records = {home: run_contender(home, [*sys.argv[1:], "--folder", str(folder)]) for home in HOMES}
    errors = {
        f"errors_{home}": relative_errors(folder / f"weights-{home}.npz", folder / "weights-memory.npz")
        for home in HOMES[1:]
    }
    hidden_gigabytes = X.shape[0] * X.shape[1] * X.dtype.itemsize / 1e9
    report(f"budget {args.budget}, {X.shape}", records, hidden_gigabytes=hidden_gigabytes, **errors)


def main() -> None:
    args = parse_arguments()
    if args.contender:
        run_home(args)
    elif args.folder:
        args.folder.mkdir(parents=True, exist_ok=True)
        compare_homes(args, args.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            compare_homes(args, Path(folder))


if __name__ == "__main__":
    main()
