"""Choose two constants of the estimate of class shares on each corpus by itself, with its target labels.

Pairs of domains, the target at several class shares, and uneven sources. For every value of `EFFECTIVE_ROWS`
and `SAME` (classifier/shares.py), from the scores of one fit: how far the share is off, how often its 90%
interval holds the true one, and the error. Cells whose source and target have the same shares count as much
as all others together: the prior says that half of the users' problems are such, and no benchmark can tell.

The rule: the most rows whose intervals hold the true share in at least 90% of the cells, with `SAME` 1/2;
then the probability that puts the shares least off.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
from balance_pairs import make_cell
from harness import data_folder
from pair_constants import collect_scores, draw_pair

ROWS = (100, 300, 1000)
SAME = (0.25, 0.5, 0.75)
DOMAINS = ("books", "dvd", "electronics", "kitchen")
AMAZON_BOW = [(a, b) for a in DOMAINS for b in DOMAINS if a != b]
FDU_MTL = [
    "books:kitchen_housewares",
    "music:electronics",
    "baby:dvd",
    "electronics:baby",
    "kitchen_housewares:music",
    "health_personal_care:books",
    "dvd:camera_photo",
    "camera_photo:health_personal_care",
]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3, 0.5, 0.7, 0.9])
    parser.add_argument("--source-shares", nargs="*", type=float, default=[0.2, 0.8])
    parser.add_argument("--their-targets", nargs="*", type=float, default=[0.2, 0.5, 0.8])
    parser.add_argument("--pairs", type=int, default=12, help="of each corpus, at most")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--rows", type=int, help="rows of each source, and of each target, at most")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def fit_cell(cell: tuple, args: argparse.Namespace) -> dict:
    """Fit one cell; try every value of the constants on its scores."""
    pair, *shares = cell
    is_rows = isinstance(pair, tuple)
    X, y, X_target, truth = draw_pair((*pair, *shares)) if is_rows else draw_texts(cell, args)
    final, first, held_out = collect_scores(X, y, X_target, args.layers, args.device)
    return {
        "is_same": shares[1] == (shares[0] or 0.5),
        **{(rows, same): try_constants(rows, same, final, first, held_out, truth) for rows, same in values()},
    }


def values() -> list[tuple[int, float]]:
    return [(rows, same) for rows in ROWS for same in SAME]


def draw_texts(cell: tuple, args: argparse.Namespace) -> tuple:
    """Draw rows of a pair of fdu-mtl, as `draw_pair` does of amazon-bow."""
    from undrift.datasets import load_fdu_mtl
    from undrift.text import TermVectorizer

    drawn = make_cell(
        load_fdu_mtl(data_folder() / "fdu-mtl"), argparse.Namespace(seed=0, rows=args.rows), *cell
    )
    vectorizer = TermVectorizer(5000, length=5.0).fit([*drawn.documents, *drawn.target_documents])
    X, X_target = (vectorizer.transform(texts) for texts in (drawn.documents, drawn.target_documents))
    return X, drawn.y, X_target, drawn.truth.astype(int)


def try_constants(rows: int, same: float, final, first, held_out, truth: np.ndarray) -> tuple:
    """Return how far the share is off, whether its interval holds the true one, and the error, in points."""
    from undrift.classifier import shares
    from undrift.classifier.calibration import find_border

    with patch.multiple(shares, EFFECTIVE_ROWS=rows, SAME=same):
        estimate = shares.estimate_shares(
            first, held_out.scores, held_out.codes, 2, transfer=held_out.transfer
        )
    low, high = estimate.interval()[1]
    temperature = held_out.target_temperature(has_pseudo_labels=True)
    predicted = (final + find_border(final, temperature, estimate.mean))[:, 0] > 0
    share = truth.mean()
    return (
        100 * abs(estimate.mean[1] - share),
        100 * (low <= share <= high),
        100 * np.mean(predicted != truth),
    )


def average(records: list[dict], value: tuple[int, float]) -> np.ndarray:
    """Average over cells; those with the same shares on both sides have half of the weight."""
    groups = [
        [record[value] for record in records if record["is_same"] == is_same] for is_same in (True, False)
    ]
    return np.mean([np.mean(group, axis=0) for group in groups if group], axis=0)


def report(corpus: str, records: list[dict]) -> None:
    """Print a table of all values, and those that the rule chooses."""
    means = {value: average(records, value) for value in values()}
    print(f"{corpus}, {len(records)} fits, {sum(record['is_same'] for record in records)} of equal shares\n")
    print("| rows | probability of equal shares | share off by | 90% intervals that hold it, % | error, % |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for (rows, same), (off, held, error) in means.items():
        print(f"| {rows} | {same} | {off:.2f} | {held:.0f} | {error:.2f} |")
    enough = [rows for rows in ROWS if means[rows, 0.5][1] >= 90]
    rows = max(enough) if enough else min(ROWS)
    same = min(SAME, key=lambda value: means[rows, value][0])
    print(f"\nchosen on {corpus}: {rows} rows, probability {same}\n", flush=True)


def main() -> None:
    args = parse_arguments()
    for corpus, pairs in (("amazon-bow", AMAZON_BOW), ("fdu-mtl", FDU_MTL)):
        pairs = pairs[: args.pairs]
        cells = [(pair, None, share) for pair in pairs for share in args.shares]
        cells += [(pair, s, t) for pair in pairs for s in args.source_shares for t in args.their_targets]
        with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
            report(corpus, list(pool.map(partial(fit_cell, args=args), cells)))


if __name__ == "__main__":
    main()
