"""Peak memory and time of `undrift adapt` on generated reviews, at the size of the paper's benchmark."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from harness import peak_gigabytes, report, run_contender


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=27677, help="reviews in both files together")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument(
        "--labelled", type=float, default=1.0, help="share of the source's reviews that have a label"
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=["adapt"], help=argparse.SUPPRESS)
    return parser.parse_args()


def write_reviews(args: argparse.Namespace, folder: Path) -> None:
    import pandas as pd

    from undrift.datasets import make_reviews

    n_source = args.rows // 2
    options = {"test_share": 0.0, "random_state": 0}
    for name, n, share in (("books", n_source, args.labelled), ("kitchen", args.rows - n_source, 0.0)):
        corpus = make_reviews(n, domains=[name], unlabelled_share=1 - share, **options)
        domain = corpus.domains[name]
        labels = ["" if y != y else str(int(y)) for y in domain.y]
        pd.DataFrame({"text": domain.texts, "label": labels}).to_csv(folder / f"{name}.csv", index=False)


def run_adapt(args: argparse.Namespace) -> None:
    from undrift.app import main as undrift

    folder = args.folder
    command = ["adapt", "--source", folder / "books.csv", "--target", folder / "kitchen.csv"]
    command += ["--text", "text", "--label", "label", "--out", folder / "out.csv"]
    command += ["--model", folder / "model.safetensors", "--json"]
    command += ["--max-features", args.terms, "--layers", args.layers]
    stdout, sys.stdout = sys.stdout, (folder / "summary.json").open("w")
    try:
        undrift([str(part) for part in command])
    except SystemExit as done:
        if done.code:
            raise
    finally:
        sys.stdout.close()
        sys.stdout = stdout
    summary = json.loads((folder / "summary.json").read_text())
    record = {key: summary[key] for key in ("seconds", "vocabulary", "chosen")}
    record["n_labelled"] = summary["sources"][0]["labelled"]
    record["peak_gigabytes"] = peak_gigabytes()
    print(json.dumps(record))


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return run_adapt(args)
    with tempfile.TemporaryDirectory() as folder:
        write_reviews(args, Path(folder))
        record = run_contender("adapt", [*sys.argv[1:], "--folder", folder])
    return report(
        f"adapt: {args.rows} reviews, {args.layers} layers", {"adapt": record}, allowed_gigabytes=4.0
    )


if __name__ == "__main__":
    main()
