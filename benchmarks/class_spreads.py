"""Why class shares of generated reviews are estimated low: in the target the classes spread unequally.

    python benchmarks/class_spreads.py [--shares 0.2,0.3,0.5] [--rows 2000] [--features 5000]

Books to each other product: the share of positives, what is estimated, the spread of the scores of positive
rows over that of negative ones in source and target, and what is estimated from normal scores with the means
of the target's classes, and with their spreads or equal ones.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from undrift import UndriftWarning, text_classifier
from undrift.classifier.shares import estimate_shares
from undrift.datasets import make_reviews
from undrift.text import TFIDF_LENGTH, TermVectorizer, TextAdapter


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--shares", type=lambda text: list(map(float, text.split(","))), default=[0.2, 0.3, 0.5]
    )
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--features", type=int, default=5000)
    return parser.parse_args()


def compare_spreads(options: argparse.Namespace, name: str, share: float) -> list[float]:
    """Return the columns of the table for one target."""
    corpus = make_reviews(options.rows, domains=["books", name], positive_share=share)
    books, target = corpus.domains["books"], corpus.domains[name]
    rows = np.concatenate([target.test, target.unlabelled])
    vectorizer = TermVectorizer(options.features, length=TFIDF_LENGTH)
    adapter = TextAdapter(vectorizer, text_classifier(fallback=False, random_state=0))
    adapter.fit([books.texts[i] for i in books.train], books.y[books.train], [target.texts[i] for i in rows])
    state = adapter.classifier_.update_state_
    held_out, scores = state.held_out, state.first_scores[: len(target.test), 0]
    classes = [scores[target.y[target.test] == label] for label in (0, 1)]
    means, spreads = [group.mean() for group in classes], [group.std() for group in classes]
    of_source = [held_out.scores[held_out.codes == code].std() for code in (0, 1)]
    codes = (np.arange(len(rows)) < share * len(rows)).astype(int)
    noise = np.random.default_rng(0).normal(size=len(rows))

    def estimate(spreads: list[float]) -> float:
        drawn = (np.take(means, codes) + np.take(spreads, codes) * noise)[:, None]
        given = drawn, held_out.scores, held_out.codes, 2
        return float(estimate_shares(*given, transfer=held_out.transfer).mean[1])

    equal = [float(np.sqrt(np.mean(np.square(spreads))))] * 2
    ratios = of_source[1] / of_source[0], spreads[1] / spreads[0]
    return [share, adapter.target_shares_[0][1.0], *ratios, estimate(spreads), estimate(equal)]


def main() -> None:
    """Measure, and print a table."""
    options = parse_arguments()
    warnings.simplefilter("ignore", UndriftWarning)
    print(
        "| target | share | estimated | spreads, source | spreads, target | normal scores | equal spreads |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for share in options.shares:
        for name in ("kitchen", "electronics", "camping"):
            share, estimated, *ratios, as_measured, equal = compare_spreads(options, name, share)
            ratios = [f"{ratio:.2f}" for ratio in ratios]
            cells = f"{share:.0%}", f"{estimated:.1%}", *ratios, f"{as_measured:.1%}", f"{equal:.1%}"
            print("|", " | ".join([name, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
