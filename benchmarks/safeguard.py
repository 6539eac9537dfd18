"""Diagnostics of the safeguard beside the true gain: real pairs, and cases where little can be gained.

Labels of the target are used for the columns `source-only`, `adapted` and `gain` alone. A threshold is good
if no real pair exceeds it, and if a case that falls back had nothing to gain.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from harness import data_folder

SIGNALS = (
    "n_target", "empty", "unseen", "disagreement", "sure_disagreement", "class_shift", "retained",
    "source_only_retained",
)  # fmt: skip
Case = tuple[str, sp.csr_array, np.ndarray, sp.csr_array, np.ndarray]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="real pairs of fdu-mtl, drawn at random")
    parser.add_argument("--cases", nargs="*", default=["books:kitchen_housewares", "electronics:music"])
    parser.add_argument("--rows", type=int, default=1000, help="rows of each domain")
    parser.add_argument("--terms", type=int, default=1500)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def texts_of(domain, n_rows: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Draw some of the domain's labelled documents."""
    known = np.random.default_rng(seed).permutation(np.flatnonzero(domain.y == domain.y))[:n_rows]
    return [domain.texts[i] for i in known], domain.y[known].astype(int)


def make_rows(source: list[str], target: list[str], n_terms: int) -> list[sp.csr_array]:
    from undrift.text.vectorizer import TermVectorizer

    vectorizer = TermVectorizer(n_terms, length=5.0).fit([*source, *target])
    return [vectorizer.transform(source), vectorizer.transform(target)]


def invent_words(texts: list[str], share: float, rng: np.random.Generator) -> list[str]:
    """Replace a share of the words by words that occur nowhere else."""
    words = sorted({word for text in texts for word in text.split()})
    new = dict(zip(words, rng.random(len(words)) < share, strict=True))
    return [" ".join(f"zq{word}" if new[word] else word for word in text.split()) for text in texts]


def shuffle_words(texts: list[str], rng: np.random.Generator) -> list[str]:
    """Distribute all words at random over texts of the same lengths: no words co-occur any more."""
    words = rng.permutation([word for text in texts for word in text.split()])
    edges = np.cumsum([len(text.split()) for text in texts])[:-1]
    return [" ".join(part) for part in np.split(words, edges)]


def made_cases(args: argparse.Namespace, corpus, pair: str) -> Iterator[Case]:
    """Make one real pair difficult in many ways."""
    rng = np.random.default_rng(args.seed)
    source, target = pair.split(":")
    texts, y = texts_of(corpus.domains[source], args.rows, args.seed)
    others, truth = texts_of(corpus.domains[target], args.rows, args.seed)
    X, Z = make_rows(texts, others, args.terms)
    for n in (5, 20, 50, 100, 200):
        yield f"{n} target rows", X, y, Z[:n], truth[:n]
    for share in (0.8, 1.0):
        A, B = make_rows(texts, invent_words(others, share, rng), args.terms)
        yield f"{share:.0%} of the target's words invented", A, y, B, truth
    yield "target's columns permuted", X, y, sp.csr_array(Z[:, rng.permutation(Z.shape[1])]), truth
    A, B = make_rows(texts, shuffle_words(others, rng), args.terms)
    yield "words shuffled over the target", A, y, B, truth
    yield "random source labels", X, rng.permutation(y), Z, truth
    yield "20% wrong source labels", X, np.where(rng.random(len(y)) < 0.2, 1 - y, y), Z, truth
    lengths = np.array([len(text) for text in texts])
    yield "source labels are lengths", X, (lengths > np.median(lengths)).astype(int), Z, truth
    for label in (0, 1):
        yield f"target all {label}", X, y, Z[truth == label], truth[truth == label]
    few = np.flatnonzero(truth == 0)[: (truth == 1).sum() // 9]
    keep = np.concatenate([np.flatnonzero(truth == 1), few])
    yield "target 90% 1", X, y, Z[keep], truth[keep]
    for share in (0.5, 0.9):
        full = sp.diags_array((rng.random(Z.shape[0]) >= share).astype(Z.dtype))
        yield f"{share:.0%} of target rows empty", X, y, sp.csr_array(full @ Z), truth


def real_cases(args: argparse.Namespace, corpus) -> Iterator[Case]:
    names = list(corpus.domains)
    pairs = [(a, b) for a in names for b in names if a != b]
    for i in np.random.default_rng(args.seed).permutation(len(pairs))[: args.pairs]:
        source, target = pairs[i]
        texts, y = texts_of(corpus.domains[source], args.rows, args.seed)
        others, truth = texts_of(corpus.domains[target], args.rows, args.seed)
        X, Z = make_rows(texts, others, args.terms)
        yield f"{source}->{target}", X, y, Z, truth


def format_case(case: Case, n_layers: int) -> str:
    """Format a row of the table: diagnostics, both errors, the outcome."""
    from undrift.text.adapter import text_classifier

    name, X, y, Z, truth = case
    settings = {"n_layers": n_layers, "random_state": 0}
    adapted = text_classifier(**settings, fallback=False).fit(X, y, Z)
    caution, error = adapted.caution_, float(np.mean(adapted.predict(Z) != truth))
    source_only = source_only_error(X, y, Z, truth)
    outcome = "falls back" if caution["blocking"] else "doubts" if caution["reasons"] else ""
    signals = [caution["signals"][signal] for signal in SIGNALS]
    cells = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in signals]
    errors = [f"{100 * value:.1f}" for value in (source_only, error)]
    return f"| {' | '.join([name, *cells, *errors, f'{100 * (source_only - error):+.1f}', outcome])} |"


def source_only_error(X, y, Z, truth) -> float:
    """Least squares on the source's rows: what a fallback predicts."""
    K = (X @ X.T).toarray().astype(float)
    mean = X.mean(axis=0)
    scale = float((K.diagonal() - 2 * (X @ mean) + mean @ mean).mean())
    n = len(y)
    system = np.block([[K + scale * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(np.where(y == 1, 1.0, -1.0), 0.0))
    scores = (Z @ (X.T @ solution[:n])) + solution[n]
    return float(np.mean((scores > 0) != (truth == 1)))


def main() -> None:
    from undrift import UndriftWarning
    from undrift.datasets import load_fdu_mtl

    args = parse_arguments()
    warnings.simplefilter("ignore", UndriftWarning)
    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    columns = ["case", *SIGNALS, "source-only, %", "adapted, %", "gain", "outcome"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    for case in real_cases(args, corpus):
        print(format_case(case, args.layers), flush=True)
    for pair in args.cases:
        for name, *rest in made_cases(args, corpus, pair):
            print(format_case((f"{pair}: {name}", *rest), args.layers), flush=True)


if __name__ == "__main__":
    main()
