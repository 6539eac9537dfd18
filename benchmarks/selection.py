"""Cost of choosing among noise x depth x C by cross-validation, against fitting the stacks alone.

The pair is books -> kitchen of fdu-mtl as `undrift adapt` sees it: tf-idf of uni- and bigrams, all rows of
both domains, the source's train and test parts labelled.
"""

from __future__ import annotations

import argparse
import sys
import warnings

from harness import contender, data_folder, report, timed, told

WAYS = ("stacks", "search")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="books")
    parser.add_argument("--target", default="kitchen_housewares")
    parser.add_argument("--rows", type=int, help="rows of each domain; all (about 4,000) by default")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--noises", type=float, nargs="+", default=[0.5, 0.6, 0.7, 0.8, 0.9])
    parser.add_argument("--layers", type=int, default=5, help="depths are 1 to this")
    parser.add_argument("--C", type=float, nargs="+", default=[0.03, 0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--classifier", default="least-squares", choices=["least-squares", "hinge"])
    parser.add_argument("--selection", default="source-cv", choices=["source-cv", "reverse"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--contender", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


def pair(args: argparse.Namespace):
    """Rows and labels of the source, rows of the target."""
    from undrift.datasets import load_fdu_mtl
    from undrift.text import TermVectorizer

    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    source, target = corpus.domains[args.source], corpus.domains[args.target]
    texts, others = source.texts[: args.rows], target.texts[: args.rows]
    vectorizer = TermVectorizer(args.terms, length=5.0).fit([*texts, *others])
    return vectorizer.transform(texts), source.y[: args.rows], vectorizer.transform(others)


def run(args: argparse.Namespace) -> None:
    import scipy.sparse as sp

    from undrift import MSDA, MSDAClassifier, UndriftWarning

    warnings.simplefilter("ignore", UndriftWarning)
    X, y, Z = pair(args)
    if args.contender == "stacks":
        rows = sp.vstack([X, Z], format="csr")

        def fitted() -> None:
            for noise in args.noises:
                MSDA(args.layers, noise).fit(rows)

        _, seconds = timed(fitted)
        return told({"seconds": seconds, "shape": str(rows.shape)})
    model = MSDAClassifier(
        list(range(1, args.layers + 1)),
        args.noises,
        args.C,
        n_folds=args.folds,
        classifier=args.classifier,
        selection=args.selection,
        random_state=0,
    )
    _, seconds = timed(lambda: model.fit(X, y, Z))
    return told(
        {
            "seconds": seconds,
            "n_labelled": int((y == y).sum()),
            "n_candidates": len(model.selection_results_),
            "chosen": str(model.best_params_),
        }
    )


def main() -> None:
    args = parsed()
    if args.contender:
        return run(args)
    records = {way: contender(way, sys.argv[1:], args.repeats) for way in WAYS}
    ratio = records["search"]["seconds"] / records["stacks"]["seconds"]
    title = f"{args.selection}, {args.classifier}: {len(args.noises)} x {args.layers} x {len(args.C)}"
    return report(title, records, ratio=ratio, allowed_ratio=1.3)


if __name__ == "__main__":
    main()
