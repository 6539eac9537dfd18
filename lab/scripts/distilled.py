"""Distilled models on new rows of six pairs of fdu-mtl: error, agreement, size of the file.

With the error of a linear SVM trained on the source's labels, on the same rows.

Of every target 30% of the labelled rows are new: neither the adaptation nor the distillation sees them. The
interval of the difference of errors is paired: both models predict the same rows, which are drawn again
1,000 times.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from harness import add_store, check_device, data_folder, store

PAIRS = ["books:kitchen_housewares", "books:electronics", "dvd:kitchen_housewares", "electronics:books"]
PAIRS += ["baby:music", "video:camera_photo"]
NEW_SHARE = 0.3


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--rows", type=int, help="rows of each domain; all (about 4,000) by default")
    parser.add_argument("--max-features", type=int, default=20_000)
    parser.add_argument("--device", default="cpu")
    add_store(parser)
    return parser.parse_args()


def measure_pair(args: argparse.Namespace, corpus, pair: str, rng: np.random.Generator) -> tuple[dict, list]:
    """Adapt, distill and predict new rows; also return the errors of both models, row by row."""
    from undrift import MSDAClassifier, TermVectorizer, TextAdapter
    from undrift.results import fitted_svm

    source, target = (corpus.domains[name] for name in pair.split(":"))
    texts, truth = target.texts[: args.rows], np.asarray(target.y, dtype=float)[: args.rows]
    labelled = np.flatnonzero(~np.isnan(truth))
    new = rng.permutation(labelled)[: int(NEW_SHARE * len(labelled))]
    seen = [texts[i] for i in np.setdiff1d(np.arange(len(texts)), new)]
    unseen = [texts[i] for i in new]
    given, y = source.texts[: args.rows], np.asarray(source.y, dtype=float)[: args.rows]
    known = np.flatnonzero(~np.isnan(y))
    terms = TermVectorizer(args.max_features).fit([given[i] for i in known])
    svm = fitted_svm(terms.transform([given[i] for i in known]), y[known])
    adapter = TextAdapter(args.max_features, classifier=MSDAClassifier(device=args.device, random_state=0))
    adapter.fit(given, y, seen)
    distilled = adapter.distill(seen)
    scores = [model.decision_function(unseen) for model in (adapter, distilled)]
    wrong = [(s > 0) != (truth[new] == max(truth[labelled])) for s in scores]
    return {
        "SVM, %": 100 * float(np.mean(svm.predict(terms.transform(unseen)) != truth[new])),
        "full model, %": 100 * float(wrong[0].mean()),
        "distilled, %": 100 * float(wrong[1].mean()),
        "agree, %": 100 * float(np.mean((scores[0] > 0) == (scores[1] > 0))),
        "file, MB": measure_size(distilled),
    }, wrong


def measure_size(model) -> float:
    from undrift import save_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(model, path)
        return path.stat().st_size / 1e6


def difference_interval(wrong: list[list[np.ndarray]], rng: np.random.Generator) -> list[float]:
    """95% interval of the mean over pairs of the distilled error less the adapted, rows drawn again."""
    differences = [distilled.astype(float) - adapted for adapted, distilled in wrong]
    means = [np.mean([rng.choice(d, len(d)).mean() for d in differences]) for _ in range(1000)]
    return np.quantile(means, [0.025, 0.975]).tolist()


def main() -> None:
    from undrift_lab.corpora import load_fdu_mtl

    args = parse_arguments()
    check_device(args.device)
    corpus, rng = load_fdu_mtl(data_folder() / "fdu-mtl"), np.random.default_rng(0)
    records, wrong = {}, []
    for pair in args.pairs:
        records[pair], errors = measure_pair(args, corpus, pair, rng)
        wrong.append(errors)
        print(pair, records[pair], file=sys.stderr)
    names = list(next(iter(records.values())))
    records["mean"] = {name: float(np.mean([r[name] for r in records.values()])) for name in names}
    rows = [{"pair": pair, **{n: f"{value:.3g}" for n, value in r.items()}} for pair, r in records.items()]
    low, high = (f"{100 * end:+.2f}" for end in difference_interval(wrong, rng))
    gap = records["mean"]["distilled, %"] - records["mean"]["full model, %"]
    note = {"pair": f"distilled less full: {gap:+.2f} points ({low} to {high})", **dict.fromkeys(names, "")}
    store("distilled", [*rows, note], args.device)
    for row in (*rows, note):
        print(" | ".join(row.values()))


if __name__ == "__main__":
    main()
