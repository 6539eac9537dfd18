"""How the cost of a stack grows: synthetic rows with the sparsity of amazon-bow, n and d swept.

Rows have 77 terms on average, of Zipf frequencies, in float32. Every size is fitted in a separate process;
making the rows is not timed. Hidden rows above `--budget` go to a temporary file (`TMPDIR` says where).
Results go to FOLDER as `scaling.json`, which a later run with other sizes adds to, and as figures of them.
Slopes over rows are taken from n = 10 d on, where the solves (d^3) no longer count for much.

    python lab/scripts/scaling.py FOLDER                           10^4 to 10^6 rows, 1,000 to 10,000 terms
    python lab/scripts/scaling.py FOLDER --rows 10000 20000 --columns 500 --layers 1 3
    python lab/scripts/scaling.py FOLDER --million                 10^6 x 5,000, three layers, spilled to disk

`--entries` leaves out sizes with more hidden entries (rows x columns) than that.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from harness import print_record, report, run_contender, time_call

N_TERMS = 77  # of a row, on average, as in amazon-bow


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results and plots go")
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 30_000, 10**5, 300_000, 10**6])
    parser.add_argument("--columns", type=int, nargs="+", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--layers", type=int, nargs="+", default=[3])
    parser.add_argument("--entries", type=float, default=1.1e9, help="most hidden entries of a size")
    parser.add_argument("--budget", default="4 GB", help="memory for hidden rows; more is spilled to disk")
    parser.add_argument(
        "--max-upper-rows", type=int, help="learn layers from the second on from so many rows"
    )
    parser.add_argument("--repeats", type=int, default=1, help="runs of each size; the best counts")
    parser.add_argument("--million", action="store_true", help="10^6 x 5,000, three layers, and nothing else")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.million:
        args.rows, args.columns, args.layers, args.entries = [10**6], [5000], [3], float("inf")
    return args


def n_draws(frequency: np.ndarray, n_terms: int) -> int:
    """How often to draw a term for a row to hold `n_terms` distinct ones on average."""
    low, high = n_terms, 100 * n_terms
    while low < high:
        middle = (low + high) // 2
        enough = (1 - (1 - frequency) ** middle).sum() >= n_terms
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def synthetic_rows(
    n: int, d: int, n_terms: int = N_TERMS, seed: int = 0, n_block: int = 50_000
) -> sp.csr_array:
    """Presence of terms in n rows, float32: the j-th of d terms is drawn with a frequency of 1/j."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, d + 1)
    frequency /= frequency.sum()
    width, edges = n_draws(frequency, min(n_terms, d // 2)), np.cumsum(frequency)[:-1]
    columns, counts = [], []
    for start in range(0, n, n_block):
        drawn = np.searchsorted(edges, rng.random((min(n_block, n - start), width))).astype(np.int32)
        drawn.sort(axis=1)
        fresh = np.diff(drawn, axis=1, prepend=-1) != 0
        columns.append(drawn[fresh])
        counts.append(fresh.sum(axis=1))
    indices, indptr = np.concatenate(columns), np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return sp.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(n, d))


def run_size(args: argparse.Namespace) -> None:
    """Fit one size, n:d:layers, and print what it took."""
    from undrift import MSDA

    n, d, n_layers = map(int, args.contender.split(":"))
    X = synthetic_rows(n, d)
    model = MSDA(n_layers, memory_budget=args.budget, max_upper_rows=args.max_upper_rows, random_state=0)
    _, seconds = time_call(lambda: model.fit(X))
    print_record(
        {
            "n_rows": n,
            "n_columns": d,
            "n_layers": n_layers,
            "max_upper_rows": args.max_upper_rows,
            "n_entries_a_row": X.nnz / n,
            "hidden_gigabytes": min(n, args.max_upper_rows or n) * d * 4 / 1e9,
            "seconds": seconds,
        }
    )


def measure_sizes(args: argparse.Namespace) -> dict[str, dict]:
    """Measure all requested sizes, each from a separate process."""
    records = {}
    for n_layers, d, n in product(args.layers, args.columns, args.rows):
        name = f"{n:,} x {d:,}, {n_layers} layers" + (
            f", {args.max_upper_rows:,} above" if args.max_upper_rows else ""
        )
        if n * d > args.entries:
            print(f"{name}: left out, more than {args.entries:g} entries", file=sys.stderr)
            continue
        print(name, file=sys.stderr)
        records[name] = run_contender(f"{n}:{d}:{n_layers}", sys.argv[1:], args.repeats)
    return records


def group_curves(records: dict[str, dict], along: str) -> dict[str, list[dict]]:
    """Group records by what is constant on a curve, sorted along `along`; single points are left out."""
    others = {"n_rows": "rows", "n_columns": "terms", "n_layers": "layers", "max_upper_rows": "rows above"}
    del others[along]
    groups: dict[str, list[dict]] = {}
    for record in sorted(records.values(), key=lambda r: [r[key] or 0 for key in others]):
        fixed = (f"{record[key]:,} {word}" for key, word in others.items() if record[key] is not None)
        groups.setdefault(", ".join(fixed), []).append(record)
    return {k: sorted(group, key=lambda r: r[along]) for k, group in groups.items() if len(group) > 1}


def slope(points: list[dict], along: str) -> float | None:
    """Exponent of the growth, by least squares on logarithms; None if too few points have n >= 10 d."""
    far = [p for p in points if p["n_rows"] >= 10 * p["n_columns"]] if along == "n_rows" else points
    if len(far) < 2:
        return None
    x, y = (np.log([p[key] for p in far]) for key in (along, "seconds"))
    return float(np.polyfit(x, y, 1)[0])


def plot(records: dict[str, dict], folder: Path) -> dict[str, float]:
    """Draw the growth of time and memory, one figure each, and return the slopes."""
    from undrift_lab.report import write_figure

    slopes: dict[str, float] = {}
    words = {
        "n_rows": "rows",
        "n_columns": "terms",
        "seconds": "seconds to fit",
        "peak_gigabytes": "peak memory, GB",
    }
    for name, along, key in (
        ("scaling", "n_rows", "seconds"),
        ("scaling-terms", "n_columns", "seconds"),
        ("scaling-memory", "n_rows", "peak_gigabytes"),
    ):
        series = []
        for fixed, points in group_curves(records, along).items():
            label = fixed.removesuffix(", 3 layers")
            growth = slope(points, along) if key == "seconds" else None
            if growth is not None:
                slopes[f"{words[along]}, {fixed}"] = growth
                label += f": slope {growth:.2f}"
            series.append(
                {
                    "label": label,
                    **{axis: [p[k] for p in points] for axis, k in zip("xy", (along, key), strict=True)},
                }
            )
        if series:
            title = f"{words[key][0].upper()}{words[key][1:]} against {words[along]}"
            labels = {"x_label": f"{words[along]}, log scale", "y_label": f"{words[key]}, log scale"}
            figure = {"name": name, "kind": "lines", "title": title, "x_log": True, "y_log": True, **labels}
            write_figure(figure | {"series": series, "note": "three layers, two cores"}, folder, ["svg"])
    return slopes


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return run_size(args)
    args.folder.mkdir(parents=True, exist_ok=True)
    file = args.folder / "scaling.json"
    records = json.loads(file.read_text()) if file.exists() else {}
    records |= measure_sizes(args)
    file.write_text(json.dumps(records, indent=1) + "\n")
    slopes = {f"slope over {name}": value for name, value in plot(records, args.folder).items()}
    return report("growth of cost", records, **slopes)


if __name__ == "__main__":
    main()
