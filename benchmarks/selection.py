"""Cost of choosing among noise x depth x C by cross-validation, against fitting the stacks alone.

    python benchmarks/selection.py [--data FOLDER] [--device cuda] [--target all]

FOLDER holds fdu-mtl's files. The pair is books -> kitchen as `undrift adapt` sees it: tf-idf of uni- and
bigrams, all rows of both domains, the source's train and test parts labelled. Each way runs in a separate
process: on a device several times, and the first time, which includes setting the device up, is reported
separately.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from harness import check_device, data_folder, print_record, report, run_contender, time_call

WAYS = ("stacks", "search")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of fdu-mtl's files; below UNDRIFT_DATA by default")
    parser.add_argument("--source", default="books")
    parser.add_argument("--target", default="kitchen_housewares", help="a domain, or all: every other one")
    parser.add_argument("--rows", type=int, help="rows of each domain; all (about 4,000) by default")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--noises", type=float, nargs="+", default=[0.5, 0.6, 0.7, 0.8, 0.9])
    parser.add_argument("--layers", type=int, default=5, help="depths are 1 to this")
    parser.add_argument("--C", type=float, nargs="+", default=[0.03, 0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--classifier", default="least-squares", choices=["least-squares", "hinge"])
    parser.add_argument("--selection", default="source-cv", choices=["source-cv", "reverse"])
    parser.add_argument("--device", default="cpu", help="of MSDA and MSDAClassifier: cpu, cuda, ...")
    parser.add_argument("--precision", default="high", choices=["high", "highest"])
    parser.add_argument("--runs", type=int, help="in each process; 1 on the CPU, 3 elsewhere by default")
    parser.add_argument("--repeats", type=int, default=1, help="processes of each way; the best counts")
    parser.add_argument("--contender", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.runs = given.runs or (1 if given.device == "cpu" else 3)
    return given


def rows_and_labels(args: argparse.Namespace):
    """Rows and labels of the source, rows of every target."""
    from undrift.datasets import load_fdu_mtl
    from undrift.text.vectorizer import TermVectorizer

    domains = load_fdu_mtl(args.data or data_folder() / "fdu-mtl").domains
    targets = [name for name in domains if name != args.source] if args.target == "all" else [args.target]
    texts = {name: domains[name].texts[: args.rows] for name in (args.source, *targets)}
    documents = [text for domain_texts in texts.values() for text in domain_texts]
    vectorizer = TermVectorizer(args.terms, length=5.0).fit(documents)
    X, *others = map(vectorizer.transform, texts.values())
    return X, domains[args.source].y[: args.rows], others


def time_runs(args: argparse.Namespace, action) -> dict[str, float]:
    """Measure the seconds of the best run in this process, and of the first."""
    seconds = [time_call(action)[1] for _ in range(args.runs)]
    return {"seconds": min(seconds), "first_seconds": seconds[0]}


def run(args: argparse.Namespace) -> None:
    import scipy.sparse as sp

    from undrift import MSDA, MSDAClassifier, UndriftWarning

    warnings.simplefilter("ignore", UndriftWarning)
    where = {"device": args.device, "precision": args.precision}
    X, y, others = rows_and_labels(args)
    if args.contender == "stacks":
        rows = sp.vstack([X, *others], format="csr")

        def stacks() -> None:
            for noise in args.noises:
                MSDA(args.layers, noise, **where).fit(rows)

        return print_record({**time_runs(args, stacks), "shape": str(rows.shape)})
    model = MSDAClassifier(
        list(range(1, args.layers + 1)),
        args.noises,
        args.C,
        n_folds=args.folds,
        classifier=args.classifier,
        selection=args.selection,
        random_state=0,
        **where,
    )
    return print_record(
        {
            **time_runs(args, lambda: model.fit(X, y, others)),
            "n_labelled": int((y == y).sum()),
            "n_candidates": len(model.selection_results_),
            "chosen": str(model.best_params_),
        }
    )


def main() -> None:
    args = parse_arguments()
    if args.contender:
        return run(args)
    check_device(args.device)
    records = {way: run_contender(way, sys.argv[1:], args.repeats) for way in WAYS}
    ratio = records["search"]["seconds"] / records["stacks"]["seconds"]
    title = f"{args.selection}, {args.classifier}: {len(args.noises)} x {args.layers} x {len(args.C)}"
    allowed = {"allowed_ratio": 1.3} if args.device == "cpu" else {"allowed_seconds": 5}
    return report(f"{title}, on {args.device}", records, ratio=ratio, **allowed)


if __name__ == "__main__":
    main()
