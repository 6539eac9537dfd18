"""Six pairs of fdu-mtl as CSV files through `undrift adapt`, against a tf-idf linear SVM of the source."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
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


def write_rows(path: Path, domain, label: str, n_rows: int | None) -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["text", label])
        for text, y in list(zip(domain.texts, domain.y, strict=True))[:n_rows]:
            out.writerow([text, "" if y != y else int(y)])


def run_adapt(folder: Path, options: list[str]) -> dict:
    command = [sys.executable, "-m", "undrift", "adapt", "--source", "source.csv", "--target", "target.csv"]
    command += ["--text", "text", "--label", "label", "--target-label", "truth", "--out", "out.csv", "--json"]
    start = time.perf_counter()
    done = subprocess.run([*command, *options], cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    summary = json.loads(done.stdout)
    return {
        "adapted_error": summary["targets"][0]["adapted_error"],
        "n_scored": summary["targets"][0]["scored"],
        "seconds": time.perf_counter() - start,
    }


def compare_pairs(args: argparse.Namespace, folder: Path) -> None:
    from undrift.datasets import load_fdu_mtl

    corpus, records = load_fdu_mtl(data_folder() / "fdu-mtl"), {}
    for pair in args.pairs:
        source, target = (corpus.domains[name] for name in pair.split(":"))
        pair_folder = folder / pair.replace(":", "-")
        pair_folder.mkdir(parents=True, exist_ok=True)
        write_rows(pair_folder / "source.csv", source, "label", args.rows)
        write_rows(pair_folder / "target.csv", target, "truth", args.rows)
        records[pair] = {"svm_error": svm_error(source, target), **run_adapt(pair_folder, args.options)}
        print(pair, records[pair], file=sys.stderr)
    means = {
        f"mean_{key}": sum(record[key] for record in records.values()) / len(records)
        for key in ("svm_error", "adapted_error", "seconds")
    }
    report("adapt on fdu-mtl", records, **means, most_seconds=max(r["seconds"] for r in records.values()))


def main() -> None:
    args = parse_arguments()
    if args.keep:
        return compare_pairs(args, args.keep)
    with tempfile.TemporaryDirectory() as folder:
        return compare_pairs(args, Path(folder))


if __name__ == "__main__":
    main()
