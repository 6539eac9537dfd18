"""Five layers on amazon-bow: this library against a plain transcription of the paper's listing.

Each contender runs in a separate process, the best of `--repeats` counts, and reading the data is not
timed. `learn_seconds` ends with the weights of the last layer, for both. At full size the plain one needs
many gigabytes and minutes; `--rows` and `--columns` make a small problem of it, and `--compare` checks that
both give the same weights. `--accuracy` measures float32 against float64 instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import (
    amazon_presence,
    print_record,
    relative_errors,
    report,
    run_contender,
    time_call,
    weights_of,
)

RIDGE = 1e-5


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="rows to take, evenly spread; all by default")
    parser.add_argument("--columns", type=int, help="columns to take, the most frequent; all by default")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender; the best counts")
    parser.add_argument("--only", nargs="+", default=["undrift", "listing"], choices=["undrift", "listing"])
    parser.add_argument("--compare", action="store_true", help="compare the weights of both (small sizes)")
    parser.add_argument("--accuracy", action="store_true", help="float32 against float64")
    parser.add_argument(
        "--contender", choices=["undrift", "listing", "sgemm", "accuracy"], help=argparse.SUPPRESS
    )
    parser.add_argument("--save", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def listing_layer(xx: np.ndarray, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 as printed, ridge off the constant feature: W, and the samples (columns) with it."""
    X = np.vstack([xx, np.ones((1, xx.shape[1]))])
    d = X.shape[0]
    q = np.full((d, 1), 1 - p)
    q[-1] = 1
    S = X @ X.T
    Q = S * (q @ q.T)
    Q[np.diag_indices(d)] = q[:, 0] * np.diag(S)
    P = S * q.T
    ridge = RIDGE * np.eye(d)
    ridge[-1, -1] = 0
    return np.linalg.solve((Q + ridge).T, P[:-1].T).T, X


def run_listing(args: argparse.Namespace) -> None:
    """Algorithm 2 as printed: dense, float64, every layer kept."""
    X = amazon_presence(args.rows, args.columns, "float64")
    n, d = X.shape
    start = time.perf_counter()
    W, h = np.zeros((args.layers, d, d + 1)), np.zeros((args.layers + 1, d, n))
    h[0] = X.toarray().T
    for t in range(args.layers):
        W[t], extended = listing_layer(h[t], args.noise)
        learn_seconds = time.perf_counter() - start
        h[t + 1] = np.tanh(W[t] @ extended)
    if args.save:
        np.savez(args.save, **{f"layer{t}": weights.T for t, weights in enumerate(W, start=1)})
    print_record({"learn_seconds": learn_seconds, "with_last_hidden_seconds": time.perf_counter() - start})


def run_undrift(args: argparse.Namespace) -> None:
    from undrift import MSDA

    X = amazon_presence(args.rows, args.columns, "float32")
    model, seconds = time_call(lambda: MSDA(args.layers, args.noise, ridge=RIDGE).fit(X))
    if args.save:
        np.savez(args.save, **weights_of(model.layers_))
    print_record({"learn_seconds": seconds})


def run_sgemm(args: argparse.Namespace, n: int = 4096) -> None:
    """Measure the machine's rate of float32 products."""
    A = np.random.default_rng(0).random((n, n), dtype=np.float32)
    A @ A  # wake the threads
    print_record({"flops_per_second": 2 * n**3 / min(time_call(lambda: A @ A)[1] for _ in range(5))})


def run_accuracy(args: argparse.Namespace, n_chunks: int = 8) -> None:
    """Errors of float32 weights and hidden values, layer by layer, over all rows."""
    from undrift import MSDA

    X = amazon_presence(args.rows, args.columns, "float64")
    single, double = (MSDA(args.layers, args.noise).fit(X.astype(kind)) for kind in ("float32", "float64"))
    ours, theirs = weights_of(single.layers_), weights_of(double.layers_)
    weights = [float(np.linalg.norm(ours[k] - theirs[k]) / np.linalg.norm(theirs[k])) for k in sorted(theirs)]
    squares = np.zeros((args.layers, 2))
    for rows in np.array_split(np.arange(X.shape[0]), n_chunks):
        pairs = zip(single.hidden(X[rows].astype("float32")), double.hidden(X[rows]), strict=True)
        for t, (a, b) in enumerate(pairs):
            squares[t] += np.linalg.norm(a - b) ** 2, np.linalg.norm(b) ** 2
    hidden = np.sqrt(squares[:, 0] / squares[:, 1]).tolist()
    print_record({"weight_errors": weights, "hidden_errors": hidden})


def useful_flops(n: int, d: int, n_layers: int) -> float:
    """Scatters of dense layers, their products but the last, and the inverses: 7.5e12 at full size.

    Few rows are fitted in the rows: inner products and products with the inverse of dense layers, inverses.
    """
    from undrift.core.row_form import prefers_rows

    if prefers_rows(n, d, d, 1.0):
        return (n_layers - 1) * 3 * n**2 * d + n_layers * n**3
    return (n_layers - 1) * n * d**2 + max(0, n_layers - 2) * 2 * n * d**2 + n_layers * d**3


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return globals()[f"run_{args.contender}"](args)
    if args.accuracy:
        record = run_contender("accuracy", sys.argv[1:], key="peak_gigabytes")
        return report("float32 against float64", {"accuracy": record})
    n, d = args.rows or 27677, args.columns or 5000
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.npz" for name in args.only}
        records = {
            name: run_contender(
                name,
                [*sys.argv[1:], *(["--save", str(file)] if args.compare else [])],
                args.repeats,
                "learn_seconds",
            )
            for name, file in files.items()
        }
        compared = relative_errors(*files.values()) if args.compare and len(files) == 2 else None
    summary: dict = {
        "sgemm_flops_per_second": run_contender("sgemm", [], key="flops_per_second")["flops_per_second"]
    }
    if "undrift" in records:
        rate = useful_flops(n, d, args.layers) / records["undrift"]["learn_seconds"]
        summary["share_of_sgemm"] = rate / summary["sgemm_flops_per_second"]
    if len(records) == 2:
        summary["ratio"] = records["listing"]["learn_seconds"] / records["undrift"]["learn_seconds"]
    if compared:
        summary["weight_errors"] = compared
    return report(f"{args.layers} layers, {n} x {d}, best of {args.repeats}", records, **summary)


if __name__ == "__main__":
    main()
