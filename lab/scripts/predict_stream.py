"""`undrift predict` on many short rows: time, and memory that does not grow with their number."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

from harness import peak_gigabytes, report, run_contender, time_call

COUNTS = ("few", "many")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=50_000, help="rows of the run it is compared with")
    parser.add_argument("--words", type=int, default=8, help="words a row")
    parser.add_argument("--terms", type=int, default=500, help="vocabulary of the model")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--pipe", action="store_true", help="from standard input to standard output")
    parser.add_argument("--distilled", action="store_true", help="with a distilled model")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=COUNTS, help=argparse.SUPPRESS)
    return parser.parse_args()


def write_inputs(args: argparse.Namespace, folder: Path) -> None:
    """Write a model and two inputs."""
    from undrift import MSDAClassifier, TextAdapter, save_model
    from undrift.datasets import make_reviews

    corpus = make_reviews(500, domains=["books", "kitchen"], random_state=0)
    source, target = corpus.domains["books"], corpus.domains["kitchen"]
    adapter = TextAdapter(args.terms, classifier=MSDAClassifier(args.layers))
    adapter.fit(source.texts, source.y, target.texts)
    model = adapter.distill(target.texts) if args.distilled else adapter
    save_model(model, folder / "model.safetensors")
    texts = [" ".join(text.split()[: args.words]).replace('"', "") for text in target.texts]
    for name, n in zip(COUNTS, (args.few, args.rows), strict=True):
        with (folder / f"{name}.csv").open("w", encoding="utf-8") as file:
            file.write("id,text\n")
            for i, text in enumerate(islice(cycle(texts), n)):
                file.write(f'{i},"{text}"\n')


def run_predict(args: argparse.Namespace) -> None:
    from undrift.app import main as undrift

    folder, rows = args.folder, args.folder / f"{args.contender}.csv"
    command = ["predict", "--model", folder / "model.safetensors", "--text", "text"]
    command += ["--input", "-" if args.pipe else rows, "--out", "-" if args.pipe else folder / "out.csv"]
    command += ["--format", "csv"] if args.pipe else []
    if args.pipe:
        sys.stdin = subprocess.Popen(["cat", rows], stdout=subprocess.PIPE, text=True).stdout

    def predict() -> None:
        printed = folder / ("out.csv" if args.pipe else "stdout.txt")
        stdout, sys.stdout = sys.stdout, printed.open("w")
        try:
            undrift([str(part) for part in command])
        except SystemExit as done:
            if done.code:
                raise
        finally:
            sys.stdout.close()
            sys.stdout = stdout

    _, seconds = time_call(predict)
    with (folder / "out.csv").open(encoding="utf-8") as file:
        n_rows = sum(1 for _ in file) - 1
    print(json.dumps({"seconds": seconds, "n_rows": n_rows, "peak_gigabytes": peak_gigabytes()}))


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return run_predict(args)
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(args, Path(folder))
        records = {name: run_contender(name, [*sys.argv[1:], "--folder", folder]) for name in COUNTS}
    few, many = (records[name] for name in COUNTS)
    return report(
        f"predict: {args.rows} rows of {args.words} words",
        records,
        memory_ratio=many["peak_gigabytes"] / few["peak_gigabytes"],
        rows_per_second=many["n_rows"] / many["seconds"],
    )


if __name__ == "__main__":
    main()
