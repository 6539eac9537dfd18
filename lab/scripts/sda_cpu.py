"""mSDA against SDA on the CPU, on the same rows: presence of 5,000 terms in the 27,677 reviews of amazon-bow.

mSDA is learnt in full: five layers, and the hidden rows of each. SDA (one layer, at its defaults) would take
an hour and more, so `--epochs-timed` whole epochs over all rows are timed, after a warm-up on a few, and
the time of all its epochs is *extrapolated*: every step of its gradient descent takes the same time.
Left out, in favour of SDA, are its hidden rows.
"""

from __future__ import annotations

import argparse
import sys

from harness import add_store, amazon_presence, print_record, report, run_contender, store, time_call


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="rows to take, evenly spread; all by default")
    parser.add_argument("--columns", type=int, help="columns to take, the most frequent; all by default")
    parser.add_argument("--layers", type=int, default=5, help="of mSDA")
    parser.add_argument("--noise", type=float, default=0.5, help="of mSDA")
    parser.add_argument("--repeats", type=int, default=3, help="runs of mSDA; the best counts")
    parser.add_argument("--epochs-timed", type=int, default=1, help="of SDA, each over all rows")
    parser.add_argument("--warm-up-rows", type=int, default=200, help="of SDA, before its epochs are timed")
    parser.add_argument("--contender", choices=["msda", "sda"], help=argparse.SUPPRESS)
    add_store(parser)
    return parser.parse_args()


def run_msda(args: argparse.Namespace) -> None:
    """Learn the stack of `undrift-lab`, and pass all rows through it."""
    import numpy as np

    from undrift_lab.corpora.corpus import Corpus, Domain
    from undrift_lab.methods.stacks import SharedStack

    X = amazon_presence(args.rows, args.columns, "float32")
    corpus = Corpus("amazon-bow", {"all": Domain("all", X=X, y=np.zeros(X.shape[0]))})
    for level in SharedStack(corpus).levels(args.noise, args.layers):
        seconds = level.seconds
    print_record({"n_rows": X.shape[0], "n_columns": X.shape[1], "seconds": seconds})


def run_sda(args: argparse.Namespace) -> None:
    """Time whole epochs."""
    from undrift_lab.baselines import SDA

    X = amazon_presence(args.rows, args.columns, "float32")
    n_hidden = min(SDA().n_hidden, X.shape[1])
    SDA(n_hidden=n_hidden, n_epochs=1, random_state=0).fit(X[: args.warm_up_rows])
    model = SDA(n_hidden=n_hidden, n_epochs=args.epochs_timed, random_state=0)
    _, seconds = time_call(lambda: model.fit(X))
    all_epochs = SDA().n_epochs[0]
    timed = {"timed_epochs": args.epochs_timed, "timed_rows": X.shape[0], "timed_seconds": seconds}
    print_record({**timed, "n_epochs": all_epochs, "seconds": seconds / args.epochs_timed * all_epochs})


def main() -> None:
    args = parse_arguments()
    if args.contender:
        globals()[f"run_{args.contender}"](args)
        return
    msda = run_contender("msda", sys.argv[1:], args.repeats)
    sda = run_contender("sda", sys.argv[1:])
    ratio = sda["seconds"] / msda["seconds"]
    says = f"SDA, 1 layer, extrapolated from {sda['timed_epochs']} of {sda['n_epochs']} epochs"
    rows = [
        {"learnt on the CPU": f"mSDA, {args.layers} layers", "seconds": f"{msda['seconds']:.3g}"},
        {"learnt on the CPU": says, "seconds": f"{sda['seconds']:.3g}"},
        {"learnt on the CPU": "SDA over mSDA", "seconds": f"{ratio:.3g} ×"},
    ]
    store("sda-cpu", rows)
    report("mSDA against SDA on the CPU", {"msda": msda, "sda": sda}, ratio=ratio)


if __name__ == "__main__":
    main()
