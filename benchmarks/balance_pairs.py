"""Pairs of fdu-mtl whose targets, then whose sources too, have uneven class shares: errors of each centring.

Layers are learnt from the two domains alone, as for a user with two files. The source has all its rows,
about 1,600 of them labelled, or fewer where its shares are made uneven; the target has at most 1,100 of its
labelled rows. Labels of the target choose its rows and score predictions; `known shares` is given its shares.
Nothing else sees them; the constants for pairs of domains are those of amazon-bow (`share_constants.py`). All
variants but the SVM are self-trained, `uncentred` (what --no-center does) too.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
from harness import data_folder

PAIRS = ["books:kitchen_housewares", "music:electronics", "baby:dvd"]
VARIANTS = ("uncentred", "domains", "default", "known shares")
N_TARGET = 1100


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--shares", nargs="*", type=float, default=[0.1, 0.5, 0.9], help="of class 1, target")
    parser.add_argument("--source-shares", nargs="*", type=float, default=[0.2, 0.8], help="of class 1")
    parser.add_argument(
        "--their-targets", nargs="*", type=float, default=[0.2, 0.5, 0.8], help="with uneven sources"
    )
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--rows", type=int, help="rows of each source, and of each target, at most")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="cells that are measured at once")
    return parser.parse_args()


@dataclass(frozen=True)
class Cell:
    """Documents of a source and a target, with labels; NaN where the source has none."""

    pair: str
    source_share: float | None  # None: as it comes
    target_share: float
    documents: list[str]
    y: np.ndarray
    target_documents: list[str]
    truth: np.ndarray


def draw_share(y: np.ndarray, rows: np.ndarray, share: float, most: int, seed: int) -> np.ndarray:
    """Draw as many of the rows as possible, at most `most`, of which `share` have label 1."""
    rows = np.random.default_rng(seed).permutation(rows)
    ones, zeros = rows[y[rows] == 1], rows[y[rows] == 0]
    n = int(min([most, *(len(part) / s for part, s in ((ones, share), (zeros, 1 - share)) if s > 0)]))
    n_ones = round(n * share)
    return np.sort(np.concatenate([ones[:n_ones], zeros[: n - n_ones]]))


def make_cell(corpus, args, pair: str, source_share: float | None, target_share: float) -> Cell:
    """Draw the rows of both domains; the unlabelled rows of the source stay as they are."""
    source, target = (corpus.domains[name] for name in pair.split(":"))
    train = source.train
    rest = np.concatenate([source.test, source.unlabelled])  # without the labels of the test part
    if args.rows:
        train = np.random.default_rng(args.seed).permutation(train)[: args.rows // 2]
        rest = rest[: args.rows // 2]
    if source_share is not None:
        train = draw_share(source.y, train, source_share, len(train), args.seed)
    known = np.concatenate([target.train, target.test])
    chosen = draw_share(target.y, known, target_share, min(N_TARGET, args.rows or N_TARGET), args.seed)
    return Cell(
        pair,
        source_share,
        target_share,
        [source.texts[i] for i in [*train, *rest]],
        np.append(source.y[train], np.full(len(rest), np.nan)),
        [target.texts[i] for i in chosen],
        target.y[chosen],
    )


def fit_variants(cell: Cell, X, Z, args: argparse.Namespace) -> dict:
    """Fit every variant; the layers, which are the same for all, are learnt once."""
    from scipy.sparse import vstack

    from undrift import text_classifier
    from undrift.classifier.layers import SharedLayers
    from undrift.classifier.together import _TaskFit

    shares = {0: 1 - cell.target_share, 1: cell.target_share}
    settings = {"n_layers": args.layers, "noise": 0.7, "device": args.device, "random_state": args.seed}
    changes = ({"center": False}, {"center": "domains"}, {}, {"target_shares": shares})
    y = np.append(cell.y, np.full(Z.shape[0], np.nan))
    domain = np.repeat([0, -2], [X.shape[0], Z.shape[0]])
    rows, shared, fitted = vstack([X, Z]).tocsr(), SharedLayers(), {}
    running = {
        name: _TaskFit(text_classifier(**settings, **change), shared, rows, y, domain, keeps_state=False)
        for name, change in zip(VARIANTS, changes, strict=True)
    }
    while running:
        for name in list(running):
            task = running[name].advance()
            if task is not None:
                fitted[name] = task.classifier
                del running[name]
    return fitted


def measure_cell(cell: Cell, args: argparse.Namespace) -> dict:
    """Return errors of all variants, and what the default expects without labels, in percent."""
    from undrift import TextAdapter, UndriftWarning
    from undrift.baselines import fitted_svm
    from undrift.text import TermVectorizer

    began = time.perf_counter()
    adapter = TextAdapter(TermVectorizer(args.terms, length=5.0))
    adapter.fit_vocabulary([*cell.documents, *cell.target_documents])
    X, Z = (adapter.vectorizer_.transform(part) for part in (cell.documents, cell.target_documents))
    is_labelled = ~np.isnan(cell.y)
    warnings.simplefilter("ignore", UndriftWarning)
    svm = fitted_svm(X[is_labelled], cell.y[is_labelled])
    fitted = fit_variants(cell, X, Z, args)
    record = {name: 100 * float(np.mean(c.predict(Z) != cell.truth)) for name, c in fitted.items()}
    return {
        "svm": 100 * float(np.mean(svm.predict(Z) != cell.truth)),
        **record,
        "says": read_estimates(fitted["default"]),
        "fell_back": fitted["default"].caution_["fell_back"],
        "seconds": time.perf_counter() - began,
    }


def measure_cells(cells: Sequence[Cell], args: argparse.Namespace) -> Iterator[dict]:
    """Yield the record of every cell, in their order."""
    if args.jobs == 1:
        yield from (measure_cell(cell, args) for cell in cells)
        return
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(measure_cell, args=args), cells)


def read_estimates(classifier) -> dict[str, tuple[float, float, float]]:
    """Share of class 1 and expected error, in percent, each with its interval; nothing after a fallback."""
    (shares,), (interval,) = classifier.target_shares_, classifier.target_shares_interval_
    (error,) = classifier.expected_error_
    if shares is None or error is None:
        return {}
    values = {"share": (shares[1], *interval[1]), "error": (error["error"], error["low"], error["high"])}
    return {key: tuple(100 * value for value in triple) for key, triple in values.items()}


def print_table(cells: Sequence[Cell], args: argparse.Namespace) -> None:
    """Print a row for every cell, then the means."""
    columns = ["pair", "1s in the source", "1s in the target"]
    columns += [f"{name}, %" for name in ("tf-idf SVM", *VARIANTS)]
    columns += ["estimated share, %", "expected error, %", "fell back"]
    print(f"| {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) - 2)} --- |", flush=True)
    names, records, truth = ("svm", *VARIANTS), [], []
    for cell, record in zip(cells, measure_cells(cells, args), strict=True):
        records.append(record)
        truth.append(100 * cell.target_share)
        source = f"{100 * np.nanmean(cell.y):.0f}%"
        errors = [f"{record[name]:.1f}" for name in names]
        said = [format_estimate(record["says"].get(key)) for key in ("share", "error")]
        start = [cell.pair.replace(":", " -> "), source, f"{100 * cell.target_share:.0f}%"]
        print(f"| {' | '.join([*start, *errors, *said, 'yes' if record['fell_back'] else ''])} |", flush=True)
    if records:
        means = [f"{np.mean([record[name] for record in records]):.2f}" for name in names]
        print(f"| mean of {len(records)} | | | {' | '.join(means)} | | | |\n")
        share = mean_difference([record["says"].get("share") for record in records], truth)
        errors = [record["default"] for record in records]
        error = mean_difference([record["says"].get("error") for record in records], errors)
        print(f"default: share off by {share:.1f}, expected error by {error:.1f} points on the mean")
        print(f"{sum(record['seconds'] for record in records):.0f} s\n", flush=True)


def format_estimate(estimate: tuple[float, float, float] | None) -> str:
    """Format an estimate with its 90% interval."""
    return "" if estimate is None else "{:.0f} ({:.0f} to {:.0f})".format(*estimate)


def mean_difference(estimates: Sequence[tuple | None], truth: Sequence[float]) -> float:
    """Mean absolute difference of estimates to the truth, where there is an estimate."""
    pairs = zip(estimates, truth, strict=True)
    differences = [abs(estimate[0] - value) for estimate, value in pairs if estimate is not None]
    return float(np.mean(differences)) if differences else float("nan")


def main() -> None:
    from undrift import UndriftWarning
    from undrift.datasets import load_fdu_mtl

    args = parse_arguments()
    warnings.simplefilter("ignore", UndriftWarning)
    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    print_table([make_cell(corpus, args, p, None, share) for p in args.pairs for share in args.shares], args)
    uneven = [(p, s, t) for p in args.pairs for s in args.source_shares for t in args.their_targets]
    if uneven:
        print_table([make_cell(corpus, args, *cell) for cell in uneven], args)


if __name__ == "__main__":
    main()
