"""Tweets of one event as the source of another, without labels of the target and with 30 random ones.

    python lab/scripts/tweets.py [--rows 800] [--labels 30] [--draws 3] [--store]

Tasks are the six pairs of the corpus crisis. Errors are of the target's rows without a label.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
from harness import add_store, data_folder, store

Judged = dict[str, float | None]  # error, and the expected one with its interval
Rows = tuple[np.ndarray, np.ndarray]  # texts and labels


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=800, help="of each event")
    parser.add_argument("--labels", type=int, default=30, help="of the target")
    parser.add_argument("--draws", type=int, default=3, help="of rows and labels, for each pair")
    add_store(parser)
    return parser.parse_args()


def draw_rows(texts: list[str], y: np.ndarray, n: int, rng: np.random.Generator) -> Rows:
    """Draw some rows of an event at random."""
    drawn = rng.permutation(len(y))[:n]
    return np.array(texts, dtype=object)[drawn], np.asarray(y)[drawn]


def judge(source: Rows, target: Rows, labelled: np.ndarray) -> Judged:
    """Fit with some labels of the target; return the error of the other rows, and the one expected."""
    from undrift import TextAdapter

    texts, y = target
    known = np.full(len(y), None, dtype=object)
    known[labelled] = y[labelled]
    given = {"y_target": known} if len(labelled) else {}
    model = TextAdapter().fit(list(source[0]), source[1], list(texts), **given)
    others = np.setdiff1d(np.arange(len(y)), labelled)
    expected = model.expected_error_[0]
    wrong = model.predict(list(texts))[others] != y[others]
    return {"wrong": float(wrong.mean()), **{name: expected[name] for name in ("error", "low", "high")}}


def average(pair: str, n_labels: int, found: Sequence[Judged]) -> dict[str, str]:
    """Write the row of the means over some fits."""
    gaps = [abs(each["error"] - each["wrong"]) for each in found if each["error"] is not None]
    n_held = sum(each["low"] <= each["wrong"] <= each["high"] for each in found)
    low, high = (100 * np.mean([each[end] for each in found]) for end in ("low", "high"))
    return {
        "pair": pair,
        "labels": str(n_labels),
        "fits": str(len(found)),
        "error, %": f"{100 * np.mean([each['wrong'] for each in found]):.1f}",
        "not known": str(len(found) - len(gaps)),
        "expected error off by": f"{100 * np.mean(gaps):.1f}" if gaps else "",
        "90% interval, %": f"{low:.1f} to {high:.1f}",
        "interval holds": f"{n_held} of {len(found)}",
    }


def main() -> None:
    from undrift import UndriftWarning
    from undrift_lab.corpora import LOADERS

    warnings.simplefilter("ignore", UndriftWarning)
    args, rng = parse_arguments(), np.random.default_rng(0)
    domains = LOADERS["crisis"](data_folder() / "crisis").domains
    found: dict[tuple[str, int], list[Judged]] = {}
    for _, names in product(range(args.draws), permutations(domains, 2)):
        source, target = (draw_rows(domains[name].texts, domains[name].y, args.rows, rng) for name in names)
        labelled = rng.permutation(len(target[1]))[: args.labels]
        for n_labels in (0, args.labels):
            key = "->".join(names), n_labels
            found.setdefault(key, []).append(judge(source, target, labelled[:n_labels]))
            print(*key, found[key][-1], flush=True)
    rows = [average(*key, judged) for key, judged in found.items()]
    for n_labels in (0, args.labels):
        judged = [each for key, own in found.items() if key[1] == n_labels for each in own]
        rows.append(average("all", n_labels, judged))
    store("tweets", rows)
    print(*rows[-2:], sep="\n")


if __name__ == "__main__":
    main()
