"""Six pairs of fdu-mtl as CSV files through `undrift adapt`, against a tf-idf linear SVM of the source.

With `--against FOLDER` the same command is also run by another version, whose checkout is in the folder
(``git worktree add --detach FOLDER c155405``), pair by pair in turn: `time_ratio` is of the mean times,
and `cpu_time_ratio` of those that the processors worked, which other programs disturb less.
`--apart` writes the rows of the target that are scored, half and half positive, into a file, and the others,
mostly positive, into a second one: class shares are then estimated for each.
`gigaflops` are those of the layers: products of rows and inverses, counted from the sizes in the summary.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import data_folder, report

PAIRS = [
    "books:kitchen_housewares",
    "books:electronics",
    "dvd:kitchen_housewares",
    "electronics:books",
    "baby:music",
    "video:camera_photo",
]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--rows", type=int, help="rows of each file; all (about 4,000) by default")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write the files here instead of a temporary folder"
    )
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="checkout of another version")
    parser.add_argument(
        "--apart", action="store_true", help="the rows that are scored in a file, the others in a second one"
    )
    parser.add_argument("--without-svm", action="store_true", help="compare versions alone")
    parser.add_argument("--jobs", type=int, default=1, help="pairs at the same time, each with its cores")
    parser.add_argument("options", nargs="*", help="options for adapt, after --; none by default")
    return parser.parse_args()


def svm_error(source, target) -> float:
    """A linear SVM on the tf-idf of the source's words, its C by cross-validation: scikit-learn alone."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    train = [i for i, y in enumerate(source.y) if y == y]
    test = [i for i, y in enumerate(target.y) if y == y]
    vectorizer = TfidfVectorizer(max_features=5000, ngram_range=(1, 2), sublinear_tf=True)
    search = GridSearchCV(
        make_pipeline(vectorizer, LinearSVC()), {"linearsvc__C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}, cv=5
    )
    search.fit([source.texts[i] for i in train], source.y[train])
    return float(np.mean(search.predict([target.texts[i] for i in test]) != target.y[test]))


def write_rows(path: Path, rows: list[tuple], label: str) -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["text", label])
        out.writerows([text, "" if y != y else int(y)] for text, y in rows)


def count_flops(n: int, d: int, p: int, n_layers: int) -> float:
    """Multiplications and additions of layers of n rows, d terms and p pivots, without those of sparse rows.

    A system of m terms for p pivots takes ``m^3 / 3 + 2 m^2 p``; the first layer solves one for each part of
    p terms. Upper layers add ``n p^2`` for the scatter and ``2 n p^2`` for the rows; all anchors, n at most,
    ``n^2 p`` for their inner products.
    """
    n_parts = -(-d // p)
    first = n_parts * (7 / 3) * (d / n_parts) ** 2 * (d / n_parts if n_parts == 1 else p)
    return first + (n_layers - 1) * (7 / 3 * p**3 + 3 * n * p**2) + n_layers * n**2 * p


def run_adapt(folder: Path, options: list[str], version: Path | None = None) -> dict:
    """Run `undrift adapt` of this version, or of the checkout `version`."""
    source = (version or Path(__file__).parents[2]).resolve() / "src"
    command = [sys.executable, "-m", "undrift", "adapt", "--source", "source.csv", "--target", "target.csv"]
    command += ["--text", "text", "--label", "label", "--target-label", "truth", "--out", "out.csv", "--json"]
    start = time.perf_counter()
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        [*command, *options], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        summary = json.loads(process.stdout.read())
        _, process.returncode, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    n = sum(domain["rows"] for domain in (*summary["sources"], *summary["targets"]))
    d = summary["vocabulary"]
    n_stacks = summary["n_candidates"]  # by default one noise level for each
    flops = n_stacks * count_flops(n, d, summary.get("pivots", d), int(summary["chosen"]["n_layers"]))
    target = summary["targets"][0]
    return {
        "adapted_error": target["adapted_error"],
        "expected_error": (target.get("expected_error") or {}).get("error"),
        "shares": target.get("target_shares"),
        "n_scored": target["scored"],
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "gigaflops": flops / 1e9,
    }


def compare_pairs(args: argparse.Namespace, folder: Path) -> None:
    from undrift_lab.corpora import load_fdu_mtl

    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")

    def measure_pair(pair: str) -> dict:
        source, target = (corpus.domains[name] for name in pair.split(":"))
        pair_folder = folder / pair.replace(":", "-")
        pair_folder.mkdir(parents=True, exist_ok=True)
        rows, options = list(zip(target.texts, target.y, strict=True))[: args.rows], list(args.options)
        write_rows(
            pair_folder / "source.csv", list(zip(source.texts, source.y, strict=True))[: args.rows], "label"
        )
        if args.apart:
            write_rows(pair_folder / "others.csv", [(text, y) for text, y in rows if y != y], "truth")
            rows, options = [(text, y) for text, y in rows if y == y], [*options, "--target", "others.csv"]
        write_rows(pair_folder / "target.csv", rows, "truth")
        record = run_adapt(pair_folder, options)
        print(pair, record, file=sys.stderr)
        if args.against:
            other = run_adapt(pair_folder, options, args.against)
            record |= {f"other_{key}": value for key, value in other.items() if key != "n_scored"}
            print(pair, record, file=sys.stderr)
        return record if args.without_svm else {"svm_error": svm_error(source, target), **record}

    with ThreadPoolExecutor(args.jobs) as pool:
        records = dict(zip(args.pairs, pool.map(measure_pair, args.pairs), strict=True))
    names = ("adapted_error", "seconds", "cpu_seconds", "gigaflops")
    names += tuple(f"other_{name}" for name in names) if args.against else ()
    names += () if args.without_svm else ("svm_error",)
    means = {f"mean_{key}": sum(record[key] for record in records.values()) / len(records) for key in names}
    if args.against:
        means["time_ratio"] = means["mean_seconds"] / means["mean_other_seconds"]
        means["cpu_time_ratio"] = means["mean_cpu_seconds"] / means["mean_other_cpu_seconds"]
    report("adapt on fdu-mtl", records, **means, most_seconds=max(r["seconds"] for r in records.values()))


def main() -> None:
    args = parse_arguments()
    if args.keep:
        return compare_pairs(args, args.keep)
    with tempfile.TemporaryDirectory() as folder:
        return compare_pairs(args, Path(folder))


if __name__ == "__main__":
    main()
