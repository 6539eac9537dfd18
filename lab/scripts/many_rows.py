"""More labelled rows than a Gram matrix holds: agreement with the dual, error against rows, peak memory.

Rows are generated, with the sparsity of amazon-bow (77 terms a row, Zipf frequencies): words of either class
and of either domain, and a target whose words of the classes are half of them others. Every fit is a process.
`agree` trains on the same rows by inner products and by sums over rows; `error` on ever more labelled rows,
which also serve the layers; `memory` on very many. Flops are counted, beside the times. `--divide 6` does the
same with a sixth of all rows, where samples are drawn from as large a part of them. `--blocks 64` sums over
one block of rows in 64, and everything else is as it is: the same memory in a fifth of the time.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from harness import print_record, report, run_contender, time_call

WORDS = 77  # in a row
LIMITS = ("SAMPLED_ROWS", "TARGET_ROWS", "COMPARED_ROWS", "ANCHOR_LIMIT", "GRAM_LIMIT")  # of the library


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["agree", "error", "memory"])
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--agree-rows", type=int, default=15_000)
    parser.add_argument("--error-rows", type=int, nargs="+", default=[15_000, 40_000])
    parser.add_argument("--memory-rows", type=int, default=200_000)
    parser.add_argument("--target-rows", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=0.7, help="of class 1 in the target")
    parser.add_argument("--signal", type=float, default=0.12, help="spread of the classes' log frequencies")
    parser.add_argument(
        "--divide", type=int, default=1, help="all numbers of rows, and the library's limits on them, by this"
    )
    parser.add_argument(
        "--blocks",
        type=int,
        default=1,
        metavar="K",
        help="sum over one block of rows in K: memory, not results",
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    return parser.parse_args()


def draw_rows(
    n: int, classes: np.ndarray, domain: np.ndarray, signal: np.ndarray, rng: np.random.Generator
) -> tuple[sp.csr_array, np.ndarray]:
    """Draw tf-idf rows of length 5 and their classes; `domain` and `signal` are log frequencies of terms."""
    d = len(signal)
    y = rng.permutation((np.arange(n) < round(n * classes[1])).astype(int))
    words = np.empty((n, WORDS), dtype=np.int32)
    for code in (0, 1):
        p = np.exp(domain + (2 * code - 1) * signal)
        words[y == code] = np.searchsorted(np.cumsum(p) / p.sum(), rng.random((np.sum(y == code), WORDS)))
    words = np.minimum(words, d - 1)
    rows = np.repeat(np.arange(n), WORDS)
    X = sp.csr_array((np.ones(words.size, np.float32), (rows, words.ravel())), shape=(n, d))
    X.sum_duplicates()
    X.data = 1 + np.log(X.data)
    norms = np.sqrt(np.maximum(X.multiply(X).sum(axis=1), 1e-12))
    X.data *= np.repeat((5 / norms).astype(np.float32), np.diff(X.indptr))
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # sorted, as a vectoriser's are
    return sp.csr_array((X.data, indices, indptr), shape=X.shape), y


def make_pair(args: argparse.Namespace, n: int) -> tuple:
    """Return rows and classes of the source, then of the target; the first rows are the same for any n."""
    rng = np.random.default_rng(args.seed)
    zipf = -np.log(np.arange(1, args.terms + 1) + 5)
    signal, other = args.signal * rng.normal(size=(2, args.terms))
    shift = 0.5 * rng.normal(size=args.terms)
    Z, z = draw_rows(
        args.target_rows, np.array([1 - args.share, args.share]), zipf + shift, (signal + other) / 2**0.5, rng
    )
    X, y = draw_rows(n, np.array([0.5, 0.5]), zipf, signal, rng)
    return X, y, Z, z


def count_flops(args: argparse.Namespace, n: int, way: str, n_target: int) -> float:
    """Count multiplications and additions: of the layers, then of the classifier, five rounds of training."""
    d, layers = args.terms, args.layers
    width, rows = d * (layers + 1), n + args.target_rows
    representation = layers * d**3 + rows * (3 * layers - 5) * d**2 if layers > 1 else d**3
    if way == "dual":
        return representation + (n + n_target) ** 2 * width + 6 * (n + n_target) ** 3 / 3
    forward = 2 * (n + 3 * n_target) * layers * d**2
    return representation + forward + n * width**2 + width**3 / 3 + n_target * width**2 + 6 * n_target**3 / 3


def skip_blocks(k: int):
    """Return a patch by which sums over rows take one block in k, where there are many."""
    from undrift.method.solve import NormalEquations

    sum_all = NormalEquations.__init__

    def sum_some(self, rows, *arguments) -> None:
        sum_all(
            self, replace(rows, blocks=rows.blocks[::k] if len(rows.blocks) > k else rows.blocks), *arguments
        )

    return patch.object(NormalEquations, "__init__", sum_some)


def fit(args: argparse.Namespace, n: int, way: str) -> dict:
    """Fit by inner products ("dual"), by sums over rows ("primal"), or as a user would ("default")."""
    from undrift import MSDAClassifier
    from undrift.method import constants

    X, y, Z, z = make_pair(args, n)
    model = MSDAClassifier(n_layers=args.layers, device=args.device, random_state=args.seed)
    limits = {name: getattr(constants, name) // args.divide for name in LIMITS}
    n_target = min(limits["TARGET_ROWS"], args.target_rows)
    if way != "default":  # both ways get as many target rows
        limits |= {"GRAM_LIMIT": n if way == "dual" else n - 1, "ANCHOR_LIMIT": n + n_target}
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(constants, **limits))
        if args.blocks > 1:
            stack.enter_context(skip_blocks(args.blocks))
        _, seconds = time_call(lambda: model.fit(X, y, Z))
    flops = count_flops(args, n, "dual" if n <= limits["GRAM_LIMIT"] else "primal", n_target)
    scores = model.decision_function(Z)
    predicted, is_above = scores > 0, scores > np.quantile(scores, 1 - args.share)
    return {
        "labelled": n,
        "error": 100 * float(np.mean(predicted != z)),
        "error_at_share": 100 * float(np.mean(is_above != z)),  # with as many rows of class 1 as there are
        "expected_error": 100 * (model.expected_error_[0] or {"error": np.nan})["error"],
        "share": (model.target_shares_[0] or {1: np.nan})[1],
        "rounds": len(model.self_training_rounds_),
        "fell_back": model.caution_["fell_back"],
        "seconds": seconds,
        "teraflop": flops / 1e12,
        "predicted": np.packbits(predicted).tolist(),
    }


def take_predictions(record: dict, n: int) -> np.ndarray:
    return np.unpackbits(np.array(record.pop("predicted"), dtype=np.uint8))[:n]


def main() -> None:
    args = parse_arguments()
    args.target_rows //= args.divide
    if args.contender:
        way, n = args.contender.split(":")
        print_record(fit(args, int(n), way))
        return
    cells = {
        "agree": [f"{way}:{args.agree_rows // args.divide}" for way in ("dual", "primal")],
        "error": [f"default:{n // args.divide}" for n in args.error_rows],
        "memory": [f"default:{args.memory_rows // args.divide}"],
    }
    for part in args.parts:
        records = {name: run_contender(name, sys.argv[1:]) for name in cells[part]}
        labels = [take_predictions(record, args.target_rows) for record in records.values()]
        summary = {"agreement": float(np.mean(labels[0] == labels[1]))} if part == "agree" else {}
        title = f"{part}: {args.terms} terms, {args.layers} layers, {args.target_rows} target rows"
        report(title, records, **summary)


if __name__ == "__main__":
    main()
