"""Six pairs of fdu-mtl as CSV files through `undrift adapt`, against a tf-idf linear SVM of the source.

A source or target may be several domains, ``books+dvd:baby+music``; `--rows` are then those of all together.
With `--against FOLDER` the same command is also run by another version, whose checkout is in the folder
(``git worktree add --detach FOLDER c155405``), pair by pair in turn: `time_ratio` is of the mean times,
and `cpu_time_ratio` of those that the processors worked, which other programs disturb less.
`--apart` writes the rows of the target that are scored, half and half positive, into a file, and the others,
mostly positive, into a second one: class shares are then estimated for each.
`gigaflops` are those of the layers: products of dense rows and inverses, counted by the form that ran.
`floor_seconds` are these at the rate of a large product on one core, measured beside every run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from harness import add_store, data_folder, report, run_undrift, store

from undrift.method import Settings

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
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[None], help="rows of each file; all (about 4,000) by default"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write the files here instead of a temporary folder"
    )
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="checkout of another version")
    parser.add_argument(
        "--apart", action="store_true", help="the rows that are scored in a file, the others in a second one"
    )
    parser.add_argument("--without-svm", action="store_true", help="compare versions alone")
    parser.add_argument("--jobs", type=int, default=1, help="pairs at the same time, each with its cores")
    add_store(parser)
    parser.add_argument("options", nargs="*", help="options for adapt, after --; none by default")
    return parser.parse_args()


def svm_error(source: list[tuple[str, float]], target: list[tuple[str, float]]) -> float:
    """A linear SVM on the tf-idf of the source's words, its C by cross-validation: scikit-learn alone."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts, labels = zip(*[pair for pair in source if pair[1] == pair[1]], strict=True)
    new, truth = zip(*[pair for pair in target if pair[1] == pair[1]], strict=True)
    vectorizer = TfidfVectorizer(max_features=5000, ngram_range=(1, 2), sublinear_tf=True)
    search = GridSearchCV(
        make_pipeline(vectorizer, LinearSVC()), {"linearsvc__C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}, cv=5
    )
    search.fit(texts, labels)
    return float(np.mean(search.predict(new) != np.array(truth)))


def write_rows(path: Path, rows: list[tuple], label: str) -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["text", label])
        out.writerows([text, "" if y != y else int(y)] for text, y in rows)


def count_flops(n: int, n_anchors: int, d: int, p: int, n_layers: int, form: str) -> float:
    """Multiplications and additions of layers of n rows, d terms and p pivots, without those of sparse rows.

    The table of `undrift.core.form` says how many. Inner products of the anchors are added at every layer.
    """
    from undrift.core import hidden_form

    n_parts = -(-d // p)
    w = d / n_parts
    first = {"rows": n**3, "parts": n_parts * (w**3 / 3 + 2 * w**2 * p), "terms": d**3}[form]
    upper = 3 * n**2 * p + n**3 if hidden_form(n, p) == "rows" else 3 * n * p**2 + p**3
    return first + (n_layers - 1) * upper + n_layers * n_anchors**2 * p


def measure_rate(n: int = 3000) -> float:
    """Return the flops of a large product in a second of one core."""
    A = np.random.default_rng(0).random((n, n), dtype=np.float32)
    start = time.process_time()
    A @ A
    return 2 * n**3 / (time.process_time() - start)


def run_adapt(folder: Path, options: list[str], version: Path | None = None) -> dict:
    """Run `undrift adapt` of this version, or of the checkout `version`."""
    command = ["adapt", "--source", "source.csv", "--target", "target.csv", "--text", "text"]
    command += ["--label", "label", "--target-label", "truth", "--out", "out.csv", *options]
    summary, cost = run_undrift(folder, command, version)
    target = summary["targets"][0]
    record = {
        "adapted_error": target["adapted_error"],
        "expected_error": (target.get("expected_error") or {}).get("error"),
        "shares": target.get("target_shares"),
        "n_scored": target["scored"],
        **cost,
    }
    if "form" not in summary:  # an earlier version
        return record
    settings = Settings().anchors
    n_labelled = min(sum(domain["labelled"] for domain in summary["sources"]), settings.labelled)
    n_targets = sum(domain["rows"] for domain in summary["targets"])
    n = sum(domain["rows"] for domain in summary["sources"]) + n_targets
    d = summary["vocabulary"]
    flops = count_flops(
        n,
        n_labelled + min(n_targets, settings.targets),
        d,
        summary.get("pivots", d),
        int(summary["chosen"]["n_layers"]),
        summary["form"],
    )
    return {**record, "form": summary["form"], "gigaflops": flops / 1e9}


def join_domains(corpus, names: str, n: int | None) -> list[tuple[str, float]]:
    """Return n texts of domains, as many of each, and their labels; NaN where there is none."""
    domains = [corpus.domains[name] for name in names.split("+")]
    most = n and n // len(domains)
    return [pair for each in domains for pair in list(zip(each.texts, each.y, strict=True))[:most]]


def compare_pairs(args: argparse.Namespace, folder: Path, n_rows: int | None) -> dict[str, float]:
    """Measure all pairs of files of so many rows; return the means."""
    from undrift_lab.corpora import load_fdu_mtl

    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")

    def measure_pair(pair: str) -> dict:
        given, rows = (join_domains(corpus, names, n_rows) for names in pair.split(":"))
        pair_folder, options = folder / pair.replace(":", "-"), list(args.options)
        pair_folder.mkdir(parents=True, exist_ok=True)
        write_rows(pair_folder / "source.csv", given, "label")
        if args.apart:
            write_rows(pair_folder / "others.csv", [(text, y) for text, y in rows if y != y], "truth")
            rows, options = [(text, y) for text, y in rows if y == y], [*options, "--target", "others.csv"]
        write_rows(pair_folder / "target.csv", rows, "truth")
        rates = [measure_rate()]
        record = run_adapt(pair_folder, options)
        rates.append(measure_rate())
        if args.against:
            other = run_adapt(pair_folder, options, args.against)
            record |= {f"other_{key}": value for key, value in other.items() if key != "n_scored"}
            rates.append(measure_rate())
        record["floor_seconds"] = record["gigaflops"] * 1e9 / float(np.mean(rates))
        print(pair, record, file=sys.stderr)
        return record if args.without_svm else {"svm_error": svm_error(given, rows), **record}

    with ThreadPoolExecutor(args.jobs) as pool:
        records = dict(zip(args.pairs, pool.map(measure_pair, args.pairs), strict=True))
    names = ("adapted_error", "seconds", "cpu_seconds", "gigabytes")
    names += tuple(f"other_{name}" for name in names) if args.against else ()
    names += "gigaflops", "floor_seconds"
    names += () if args.without_svm else ("svm_error",)
    means = {f"mean_{key}": sum(record[key] for record in records.values()) / len(records) for key in names}
    if args.against:
        means["time_ratio"] = means["mean_seconds"] / means["mean_other_seconds"]
        means["cpu_time_ratio"] = means["mean_cpu_seconds"] / means["mean_other_cpu_seconds"]
        means["memory_ratio"] = means["mean_gigabytes"] / means["mean_other_gigabytes"]
    report("adapt on fdu-mtl", records, **means, most_seconds=max(r["seconds"] for r in records.values()))
    return means


def make_row(n: int | None, means: dict[str, float], other: Path | None) -> dict[str, str]:
    """Return a row of the stored table."""
    seconds = means["mean_cpu_seconds"]
    row = {"rows of each file": f"{n:,}" if n else "all", "processor, s": f"{seconds:.1f}"}
    row["times the floor"] = f"{seconds / means['mean_floor_seconds']:.2f}"
    if other:
        row[f"times {other.name}"] = f"{means['cpu_time_ratio']:.2f}"
    row["memory, GB"] = f"{means['mean_gigabytes']:.2f}"
    if other:
        row[f"memory, times {other.name}"] = f"{means['memory_ratio']:.2f}"
    return row


def main() -> None:
    args, rows = parse_arguments(), []
    for n in args.rows:
        with tempfile.TemporaryDirectory() as temporary:
            means = compare_pairs(args, args.keep or Path(temporary), n)
        rows.append(make_row(n, means, args.against))
        store("pairs", rows)


if __name__ == "__main__":
    main()
