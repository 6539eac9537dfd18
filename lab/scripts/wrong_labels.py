"""How many of the labels that look wrong are wrong? A tenth of a source's labels are exchanged on purpose.

    python lab/scripts/wrong_labels.py --pairs books:kitchen_housewares electronics:dvd music:baby

Prints for every pair the share of exchanged labels among the first 50, 100 and 160 rows that
`undrift ask --for source` lists. The labels of the corpus count as right.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

FIRST = (50, 100, 160)
PAIRS = ["books:kitchen_housewares", "electronics:dvd", "music:baby"]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", default="fdu-mtl")
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--rows", type=int, default=1600, help="of each domain, at most")
    parser.add_argument("--share", type=float, default=0.1, help="of the labels that are exchanged")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def measure_pair(corpus, pair: str, args: argparse.Namespace) -> np.ndarray:
    """Return which suspects have an exchanged label, the most doubtful first."""
    from undrift import TextAdapter
    from undrift.results import find_suspects

    rng = np.random.default_rng(args.seed)

    def draw(name: str) -> tuple[list[str], np.ndarray]:
        domain = corpus.domains[name]
        rows = rng.permutation(np.union1d(domain.train, domain.test))[: args.rows]
        return [domain.texts[i] for i in rows], np.asarray(domain.y)[rows]

    source, target = pair.split(":")
    (texts, y), (target_texts, _) = draw(source), draw(target)
    exchanged, given, classes = rng.permutation(len(y))[: round(args.share * len(y))], y.copy(), np.unique(y)
    given[exchanged] = [rng.choice(classes[classes != y[i]]) for i in exchanged]
    adapter = TextAdapter().fit(texts, given, target_texts)
    labels, p = adapter.predict_held_out(texts)
    return np.isin(find_suspects(labels.tolist(), p, adapter.classes_.tolist()), exchanged)


def main() -> None:
    from undrift import UndriftWarning
    from undrift_lab.corpora import LOADERS

    warnings.simplefilter("ignore", UndriftWarning)
    args = parse_arguments()
    corpus = LOADERS[args.corpus]()
    for pair in args.pairs:
        is_wrong = measure_pair(corpus, pair, args)
        found = ", ".join(f"first {n}: {is_wrong[:n].mean():.0%}" for n in FIRST)
        print(f"{pair}: {len(is_wrong)} suspects; exchanged among the {found}", flush=True)


if __name__ == "__main__":
    main()
