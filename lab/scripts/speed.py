"""Five layers on amazon-bow: this library against a plain transcription of the paper's listing.

Each contender runs in a separate process, the best of `--repeats` counts, and reading the data is not
timed. `learn_seconds` ends with the weights of the last layer, for both. At full size the plain one needs
many gigabytes and minutes; `--rows` and `--columns` make a small problem of it. `share_of_sgemm` compares the
operations that no exact method can avoid with a large matrix product, measured in the same run.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from harness import add_store, amazon_presence, print_record, report, run_contender, store, time_call

RIDGE = 1e-5


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[27_677], help="rows to take, evenly spread")
    parser.add_argument("--columns", type=int, help="columns to take, the most frequent; all by default")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender; the best counts")
    parser.add_argument("--only", nargs="+", default=["undrift", "listing"], choices=["undrift", "listing"])
    parser.add_argument("--contender", choices=["undrift", "listing", "sgemm"], help=argparse.SUPPRESS)
    add_store(parser)
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
    X = amazon_presence(args.rows[0], args.columns, "float64")
    n, d = X.shape
    start = time.perf_counter()
    W, h = np.zeros((args.layers, d, d + 1)), np.zeros((args.layers + 1, d, n))
    h[0] = X.toarray().T
    for t in range(args.layers):
        W[t], extended = listing_layer(h[t], args.noise)
        learn_seconds = time.perf_counter() - start
        h[t + 1] = np.tanh(W[t] @ extended)
    print_record({"learn_seconds": learn_seconds, "with_last_hidden_seconds": time.perf_counter() - start})


def run_undrift(args: argparse.Namespace) -> None:
    from undrift import MSDA

    X = amazon_presence(args.rows[0], args.columns, "float32")
    _, seconds = time_call(lambda: MSDA(args.layers, args.noise, ridge=RIDGE).fit(X))
    print_record({"learn_seconds": seconds})


def run_sgemm(args: argparse.Namespace, n: int = 4096) -> None:
    """Measure the machine's rate of float32 products."""
    A = np.random.default_rng(0).random((n, n), dtype=np.float32)
    A @ A  # wake the threads
    print_record({"flops_per_second": 2 * n**3 / min(time_call(lambda: A @ A)[1] for _ in range(5))})


def useful_flops(n: int, d: int, n_layers: int) -> float:
    """Scatters of dense layers, their products but the last, and the inverses: 7.5e12 at full size.

    Few rows are fitted in the rows: inner products and products with the inverse of dense layers, inverses.
    """
    from undrift.core import hidden_form

    if hidden_form(n, d) == "rows":
        return (n_layers - 1) * 3 * n**2 * d + n_layers * n**3
    return (n_layers - 1) * n * d**2 + max(0, n_layers - 2) * 2 * n * d**2 + n_layers * d**3


def measure(args: argparse.Namespace, n: int) -> dict:
    """Time the contenders on n rows, and the machine's products in between."""
    d, options = args.columns or 5000, ["--layers", str(args.layers), "--noise", str(args.noise)]
    options += ["--rows", str(n)] + (["--columns", str(args.columns)] if args.columns else [])
    records = {name: run_contender(name, options, args.repeats, "learn_seconds") for name in args.only}
    rate = run_contender("sgemm", [], key="flops_per_second")["flops_per_second"]
    row = {"rows": n, "terms": d, "layers": args.layers}
    if "undrift" in records:
        seconds, flops = records["undrift"]["learn_seconds"], useful_flops(n, d, args.layers)
        row |= {"seconds": round(seconds, 1), "unavoidable Tflop": round(flops / 1e12, 2)}
        row["share of the rate of a large product"] = f"{flops / seconds / rate:.0%}"
    if len(records) == 2:
        row["times faster than the listing"] = round(records["listing"]["learn_seconds"] / seconds, 1)
    report(f"{args.layers} layers, {n} x {d}, best of {args.repeats}", records, **row)
    return row


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return globals()[f"run_{args.contender}"](args)
    store("speed", [measure(args, n) for n in args.rows])


if __name__ == "__main__":
    main()
