"""Error with a few random labels of the target, and the error that is then told, on pairs of a corpus."""

from __future__ import annotations

import argparse
import warnings
from itertools import permutations

import numpy as np
from fallback import draw_rows


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="crisis")
    parser.add_argument("--labels", type=int, default=30)
    parser.add_argument("--draws", type=int, default=2, help="of the labels")
    parser.add_argument("--terms", type=int, default=5000)
    return parser.parse_args()


def measure_pair(source, target, seed: int, args: argparse.Namespace) -> tuple[float, dict]:
    """Return the error on target rows without a label, and the error that the model tells."""
    from undrift import MSDAClassifier, TextAdapter

    (texts, y), (target_texts, truth) = draw_rows(source, None, 1), draw_rows(target, None, 2)
    drawn = np.random.default_rng(100 + seed).permutation(len(truth))[: args.labels]
    given = np.full(len(truth), None, dtype=object)
    given[drawn] = truth[drawn]
    model = TextAdapter(args.terms, classifier=MSDAClassifier(random_state=0))
    model.fit(texts, y, target_texts, y_target=given)
    is_wrong = np.delete(model.predict(target_texts) != truth, drawn)
    return float(is_wrong.mean()), model.expected_error_[0]


def main() -> None:
    from undrift import UndriftWarning
    from undrift_lab.corpora import LOADERS

    warnings.simplefilter("ignore", UndriftWarning)
    args = parse_arguments()
    domains, found = LOADERS[args.corpus]().domains, []
    print("| task | draw | wrong | told | 90% interval |\n| --- | ---: | ---: | ---: | ---: |")
    for first, second in permutations(domains, 2):
        for seed in range(args.draws):
            error, told = measure_pair(domains[first], domains[second], seed, args)
            found.append((error, abs(error - told["error"]), told["low"] <= error <= told["high"]))
            ends = f"{told['low']:.1%} to {told['high']:.1%}"
            print(
                f"| {first} -> {second} | {seed} | {error:.1%} | {told['error']:.1%} | {ends} |", flush=True
            )
    error, off, is_held = np.mean(found, axis=0)
    print(f"\nOn the mean {error:.1%} wrong; told off by {off:.1%}; in the interval {is_held:.0%}.")


if __name__ == "__main__":
    main()
