"""Time a row and largest memory of `undrift predict` on files of more and more rows: generated reviews.

The model is small, so that reading, counting terms and writing are most of the time.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import warnings
from pathlib import Path

from harness import add_store, report, run_undrift, store

from undrift import MSDAClassifier, TextAdapter, save_model
from undrift.datasets import make_reviews


def predict(folder: Path, texts: list[str], n: int) -> dict[str, float]:
    """Write a file of n rows, texts again and again, and predict it."""
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["text"])
        out.writerows([texts[i % len(texts)]] for i in range(n))
    _, cost = run_undrift(
        folder, ["predict", "small.model", "rows.csv", "--text", "text", "--out", "out.csv"]
    )
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    add_store(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    domains = make_reviews(300, domains=("books", "kitchen"), random_state=0).domains
    books, texts = domains["books"], list(domains["kitchen"].texts)
    adapter = TextAdapter(400, classifier=MSDAClassifier(2, random_state=0))
    adapter.fit([books.texts[i] for i in books.train], books.y[books.train], texts)
    records = {}
    with tempfile.TemporaryDirectory() as folder:
        save_model(adapter, Path(folder) / "small.model")
        for n in args.rows:
            records[f"{n:,}"] = predict(Path(folder), texts, n)
    rows = [
        {
            "rows": name,
            "processor, s": f"{record['cpu_seconds']:.1f}",
            "largest memory, MB": f"{1000 * record['gigabytes']:.0f}",
        }
        for name, record in records.items()
    ]
    store("predicting", rows)
    report("undrift predict, a small model", records)


if __name__ == "__main__":
    main()
