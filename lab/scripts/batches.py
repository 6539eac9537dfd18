"""Error of `undrift predict` on a later file: as fitted, aligned to the file, and of a tf-idf SVM.

A model is fitted on the labelled rows of one domain of fdu-mtl and the unlabelled rows of another. It then
predicts the 400 test rows of the other, all of them and at 20 and 80% positives, through the command line.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
from drift import PAIRS
from harness import data_folder, draw_share

SHARES = (None, 0.2, 0.8)  # of positives in a batch; None: as they are


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--rows", type=int, default=2000, help="of the source and of the target, at most")
    parser.add_argument("--terms", type=int, default=20_000)
    return parser.parse_args()


def run_undrift(*arguments: object) -> None:
    from undrift.app import main

    try:
        main([str(argument) for argument in (*arguments, "--quiet")])
    except SystemExit as done:
        if done.code:
            raise


def write_rows(path: Path, **columns: list) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def measure_pair(corpus, pair: str, args: argparse.Namespace, folder: Path) -> list[list[float]]:
    """Return, for every share, the errors of the SVM, as fitted and aligned."""
    from undrift import TermVectorizer
    from undrift.scoring import fitted_svm

    source, target = (corpus.domains[name] for name in pair.split(":"))
    rng = np.random.default_rng(0)
    train = rng.permutation(np.concatenate([source.train, source.test]))[: args.rows]
    texts, y = [source.texts[i] for i in train], source.y[train].astype(int)
    unlabelled = [target.texts[i] for i in rng.permutation(target.unlabelled)[: args.rows]]
    files = write_rows(folder / "source.csv", text=texts, label=y.tolist())
    rows = write_rows(folder / "target.csv", text=unlabelled)
    model, out = folder / "model", folder / "out.csv"
    given = "--label", "label", "--text", "text", "--max-features", args.terms, "--model", model
    run_undrift("adapt", files, rows, *given, "--out", out)
    terms = TermVectorizer(args.terms).fit(texts)
    svm, errors = fitted_svm(terms.transform(texts), y), []
    for share in SHARES:
        test = target.test if share is None else draw_share(target.y, target.test, share, 400, 0)
        truth, documents = target.y[test].astype(int), [target.texts[i] for i in test]
        batch = write_rows(folder / "batch.csv", text=documents)
        errors.append([float(np.mean(svm.predict(terms.transform(documents)) != truth))])
        for option in ("--as-fitted", None):
            run_undrift("predict", model, batch, "--out", out, *([option] if option else []))
            with out.open(encoding="utf-8") as file:
                predicted = [row["prediction"] for row in csv.DictReader(file)]
            wrong = [label != str(answer) for label, answer in zip(predicted, truth, strict=True)]
            errors[-1].append(float(np.mean(wrong)))
    return errors


def main() -> None:
    from undrift_lab.corpora import load_fdu_mtl

    args, found = parse_arguments(), []
    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    for pair in args.pairs:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure_pair(corpus, pair, args, Path(folder)))
        print(pair, " ".join("/".join(f"{error:.1%}" for error in each) for each in found[-1]), flush=True)
    errors = np.array(found)  # (pairs, shares, methods)
    print("\n| positives | SVM | as fitted | aligned | aligned worse than the SVM by over a point |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for i, share in enumerate(SHARES):
        worse = int((errors[:, i, 2] > errors[:, i, 0] + 0.01).sum())
        means = " | ".join(f"{error:.1%}" for error in errors[:, i].mean(axis=0))
        print(f"| {'as they are' if share is None else format(share, '.0%')} | {means} | {worse} |")


if __name__ == "__main__":
    main()
