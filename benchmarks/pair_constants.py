"""Estimate, with target labels of amazon-bow, what another domain does to scores where layers are of a pair.

For every pair of domains, at several class shares of the target, and at uneven ones of the source: how far
the classes come apart in the target against held-out rows of the source, how far their midpoint lies from
where it was there, the temperature under which scores explain the labels best, before and after
self-training, and what self-training with the right shares leaves of the errors. `classifier/shares.py` and
`classifier/calibration.py` have these constants, rounded; `balance_pairs.py` tries them on the other corpus.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
from balance_pairs import draw_share
from harness import data_folder

FACTORS = np.arange(0.5, 1.2, 0.01)  # of temperatures, inverted


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
    parser.add_argument("--source-shares", nargs="*", type=float, default=[0.2, 0.8])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def draw_pair(cell: tuple) -> tuple:
    """Draw rows of both domains of a pair: all of the source, labels (NaN: none), the target, its classes."""
    from undrift.bench.methods.baselines import weight_tfidf
    from undrift.datasets import load_amazon_bow
    from undrift.text import TFIDF_LENGTH

    source_name, target_name, source_share, target_share = cell
    corpus = weight_tfidf(load_amazon_bow(data_folder() / "amazon-bow"), TFIDF_LENGTH)
    source, target = corpus.domains[source_name], corpus.domains[target_name]
    train, y = source.train, (source.y > 0).astype(float)
    if source_share is not None:
        train = draw_share(y, train, source_share, len(train), 0)
    truth = (target.y > 0).astype(int)
    chosen = draw_share(truth, np.append(target.train, target.test), target_share, 1100, 0)
    rows = np.append(train, source.test[:2400])
    labels = np.append(y[train], np.full(len(rows) - len(train), np.nan))
    return source.X[rows], labels, target.X[chosen], truth[chosen]


def collect_scores(X, y, X_target, layers: int, device: str) -> tuple:
    """Fit the default; return the target's scores after and before self-training, and the held-out ones."""
    from undrift import text_classifier
    from undrift.classifier import targets

    warnings.simplefilter("ignore")
    seen: list[tuple] = []
    real = targets.describe_target

    def spy(*args):
        seen.append(args)
        return real(*args)

    with patch.object(targets, "describe_target", spy):
        text_classifier(n_layers=layers, device=device, random_state=0).fit(X, y, X_target)
    ((final, _, first, held_out, *_),) = seen
    return final, first, held_out


def fit_pair(cell: tuple, args: argparse.Namespace) -> dict[str, float]:
    """Fit one pair of domains, and compare the scores of its target with the labels."""
    X, y, X_target, truth = draw_pair(cell)
    final, first, held_out = collect_scores(X, y, X_target, args.layers, args.device)
    return measure(final[:, 0], first[:, 0], held_out, truth)


def measure(final: np.ndarray, first: np.ndarray, held_out, truth: np.ndarray) -> dict[str, float]:
    """Compare scores of a target, before and after self-training, with held-out ones of the source."""
    upper, lower = first[truth == 1], first[truth == 0]
    there = held_out.scores[:, 0][held_out.codes == 1], held_out.scores[:, 0][held_out.codes == 0]
    spread = np.sqrt((upper.var() + lower.var()) / 2)
    errors = [best_error(scores / held_out.temperature, truth) for scores in (first, final)]
    return {
        "log separation": float(np.log(separation(upper, lower) / separation(*there))),
        "midpoint": float((upper.mean() + lower.mean() - there[0].mean() - there[1].mean()) / 2 / spread),
        "before": fit_factor(first / held_out.temperature, truth),
        "after": fit_factor(final / held_out.temperature, truth),
        "gain": errors[1] / max(errors[0], 1e-9),
        "pseudo-labels per label": 0.45 * len(truth) / len(held_out.codes),
    }


def separation(upper: np.ndarray, lower: np.ndarray) -> float:
    return (upper.mean() - lower.mean()) / 2 / np.sqrt((upper.var() + lower.var()) / 2)


def probabilities(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Probabilities of class 1, shifted to have its true share as their mean."""
    from undrift.classifier.calibration import class_probabilities, find_border

    border = find_border(scores[:, None], 1.0, np.array([1 - truth.mean(), truth.mean()]))
    return class_probabilities(scores[:, None] + border, 1.0)[:, 1]


def best_error(scores: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean((probabilities(scores, truth) > 0.5) != truth))


def fit_factor(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return what to multiply scores by to explain the labels best."""
    losses = []
    for factor in FACTORS:
        p = np.clip(probabilities(scores * factor, truth), 1e-9, 1 - 1e-9)
        losses.append(-np.mean(np.where(truth == 1, np.log(p), np.log(1 - p))))
    return float(FACTORS[int(np.argmin(losses))])


def main() -> None:
    args = parse_arguments()
    names = ("books", "dvd", "electronics", "kitchen")
    pairs = [(a, b) for a in names for b in names if a != b][: args.pairs]
    cells = [(*pair, None, share) for pair in pairs for share in args.shares]
    cells += [(*pair, s, share) for pair in pairs for s in args.source_shares for share in args.shares[::3]]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        records = list(pool.map(partial(fit_pair, args=args), cells))
    for name, chosen in (("balanced sources", [c[2] is None for c in cells]), ("all", [True] * len(cells))):
        kept = [record for record, is_chosen in zip(records, chosen, strict=True) if is_chosen]
        values = {key: np.array([record[key] for record in kept]) for key in kept[0]}
        print(f"{name}, {len(kept)} fits")
        for key, column in values.items():
            root = np.sqrt(np.mean(column**2))
            print(f"  {key:<24} mean {column.mean():.3f}  sd {column.std():.3f}  root mean square {root:.3f}")


if __name__ == "__main__":
    main()
