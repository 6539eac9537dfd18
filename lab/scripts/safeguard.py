"""Diagnostics of the safeguard beside the true gain: real pairs, and cases where little can be gained.

Real pairs come as they are (balanced), and with uneven class shares in the source, the target, or both; so do
the cases in which nothing can be gained. Labels of the target are used to draw uneven targets, and for the
columns `source-only`, `adapted` and `gain`. A threshold is good if no real pair exceeds it, and if a case
that falls back had nothing to gain. A summary of both follows the table.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from harness import add_store, data_folder, draw_share, store

SIGNALS = (
    "n_target", "empty", "unseen", "sure_disagreement", "retained",
    "source_only_retained", "held_out_auc",
)  # fmt: skip
REAL, HOPELESS = "real pairs", "random labels or nothing in common"


class Case(NamedTuple):
    """Rows and labels of a source and a target, and the group in the summary that they belong to."""

    name: str
    X: sp.csr_array
    y: np.ndarray
    Z: sp.csr_array
    truth: np.ndarray
    group: str = ""


class Outcome(NamedTuple):
    """What the safeguard saw of a case and did, and what adaptation gained."""

    group: str
    name: str
    retained: float
    held_out_auc: float
    gain: float  # in points
    falls_back: bool


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="real pairs of fdu-mtl, drawn at random")
    parser.add_argument("--cases", nargs="*", default=["books:kitchen_housewares", "electronics:music"])
    parser.add_argument(
        "--source-shares", nargs="*", type=float, default=[0.2, 0.8], help="of class 1, beside balanced ones"
    )
    parser.add_argument("--target-shares", nargs="*", type=float, default=[0.1, 0.5, 0.9], help="the same")
    parser.add_argument("--uneven-pairs", type=int, help="how many of the real pairs; all by default")
    parser.add_argument("--rows", type=int, default=1000, help="rows of each domain")
    parser.add_argument("--terms", type=int, default=1500)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    add_store(parser)
    return parser.parse_args()


def texts_of(domain, n_rows: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Draw some of the domain's labelled documents."""
    known = np.random.default_rng(seed).permutation(np.flatnonzero(domain.y == domain.y))[:n_rows]
    return [domain.texts[i] for i in known], domain.y[known].astype(int)


def make_rows(source: list[str], target: list[str], n_terms: int) -> list[sp.csr_array]:
    from undrift.text import TermVectorizer

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


def vary_shares(args: argparse.Namespace, case: Case) -> Iterator[Case]:
    """Yield the case with every combination of shares; labelled `y` decides which source rows are left."""
    for source_share in [None, *args.source_shares]:
        i = np.arange(len(case.y))
        if source_share is not None:
            i = draw_share(case.y, i, source_share, len(i), args.seed)
        for target_share in args.target_shares:
            j = draw_share(case.truth, np.arange(len(case.truth)), target_share, len(case.truth), args.seed)
            shares = f"{0.5 if source_share is None else source_share:g} -> {target_share:g}"
            yield Case(f"{case.name}, {shares}", case.X[i], case.y[i], case.Z[j], case.truth[j], case.group)


def made_cases(args: argparse.Namespace, corpus, pair: str) -> Iterator[Case]:
    """Make one real pair difficult in many ways."""
    rng = np.random.default_rng(args.seed)
    source, target = pair.split(":")
    texts, y = texts_of(corpus.domains[source], args.rows, args.seed)
    others, truth = texts_of(corpus.domains[target], args.rows, args.seed)
    X, Z = make_rows(texts, others, args.terms)
    for n in (5, 20, 50, 100, 200):
        yield Case(f"{n} target rows", X, y, Z[:n], truth[:n])
    A, B = make_rows(texts, invent_words(others, 0.8, rng), args.terms)
    yield Case("80% of the target's words invented", A, y, B, truth)
    A, B = make_rows(texts, invent_words(others, 1.0, rng), args.terms)
    nothing_shared = Case("100% of the target's words invented", A, y, B, truth, HOPELESS)
    yield nothing_shared
    yield from vary_shares(args, nothing_shared)
    permuted = sp.csr_array(Z[:, rng.permutation(Z.shape[1])])
    yield Case("target's columns permuted", X, y, permuted, truth)
    A, B = make_rows(texts, shuffle_words(others, rng), args.terms)
    yield Case("words shuffled over the target", A, y, B, truth)
    random = Case("random source labels", X, rng.permutation(y), Z, truth, HOPELESS)
    yield random
    yield from vary_shares(args, random)
    yield Case("20% wrong source labels", X, np.where(rng.random(len(y)) < 0.2, 1 - y, y), Z, truth)
    lengths = np.array([len(text) for text in texts])
    yield Case("source labels are lengths", X, (lengths > np.median(lengths)).astype(int), Z, truth)
    for label in (0, 1):
        yield Case(f"target all {label}", X, y, Z[truth == label], truth[truth == label])
    for share in (0.5, 0.9):
        full = sp.diags_array((rng.random(Z.shape[0]) >= share).astype(Z.dtype))
        yield Case(f"{share:.0%} of target rows empty", X, y, sp.csr_array(full @ Z), truth)


def real_cases(args: argparse.Namespace, corpus) -> Iterator[Case]:
    """Yield real pairs as they are, each followed by the same with uneven shares."""
    names = list(corpus.domains)
    pairs = [(a, b) for a in names for b in names if a != b]
    n_uneven = args.pairs if args.uneven_pairs is None else args.uneven_pairs
    for k, i in enumerate(np.random.default_rng(args.seed).permutation(len(pairs))[: args.pairs]):
        source, target = pairs[i]
        texts, y = texts_of(corpus.domains[source], args.rows, args.seed)
        others, truth = texts_of(corpus.domains[target], args.rows, args.seed)
        X, Z = make_rows(texts, others, args.terms)
        case = Case(f"{source}->{target}", X, y, Z, truth, REAL)
        yield case
        if k < n_uneven:
            yield from vary_shares(args, case)


def measure_case(case: Case, n_layers: int) -> tuple[Outcome, str]:
    """Return the outcome of a case, and its row of the table: diagnostics, both errors, what was done."""
    from undrift_lab.methods.undrift import WithoutFallback

    adapted = WithoutFallback(n_layers, random_state=0).fit(case.X, case.y, case.Z)
    caution, error = adapted.caution_, float(np.mean(adapted.predict(case.Z) != case.truth))
    source_only = source_only_error(case.X, case.y, case.Z, case.truth)
    done = "falls back" if caution["blocking"] else "doubts" if caution["reasons"] else ""
    signals, gain = caution["signals"], 100 * (source_only - error)
    cells = [signals[name] for name in SIGNALS]
    cells = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in cells]
    errors = [f"{100 * value:.1f}" for value in (source_only, error)]
    row = f"| {' | '.join([case.name, *cells, *errors, f'{gain:+.1f}', done])} |"
    seen = (signals["retained"], signals["held_out_auc"])
    return Outcome(case.group, case.name, *seen, gain, bool(caution["blocking"])), row


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
    from undrift_lab.corpora import load_fdu_mtl

    args = parse_arguments()
    warnings.simplefilter("ignore", UndriftWarning)
    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    columns = ["case", *SIGNALS, "source-only, %", "adapted, %", "gain", "outcome"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    outcomes = []
    for case in all_cases(args, corpus):
        outcome, row = measure_case(case, args.layers)
        outcomes.append(outcome)
        print(row, flush=True)
    rows = summarise(outcomes)
    store("safeguard", rows)
    print("\n".join(f"| {' | '.join(map(str, row.values()))} |" for row in rows))


def all_cases(args: argparse.Namespace, corpus) -> Iterator[Case]:
    """Yield real pairs, then cases made of some of them."""
    yield from real_cases(args, corpus)
    for pair in args.cases:
        for case in made_cases(args, corpus, pair):
            yield case._replace(name=f"{pair}: {case.name}")


def summarise(outcomes: Sequence[Outcome]) -> list[dict]:
    """Say for either group how many cases fall back, the range of the signals, and the gains."""
    rows = []
    for group in (REAL, HOPELESS):
        members = [outcome for outcome in outcomes if outcome.group == group]
        if not members:
            continue
        gains = [outcome.gain for outcome in members]
        row = {"cases": group, "number": len(members), "fall back": sum(o.falls_back for o in members)}
        for name in ("retained", "held_out_auc"):
            row[f"`{name}`"] = format_range([getattr(outcome, name) for outcome in members])
        rows.append(row | {"mean gain, points": f"{np.mean(gains):+.1f}", "worst gain": f"{min(gains):+.1f}"})
    return rows


def format_range(values: Sequence[float | None]) -> str:
    """Format the smallest and largest of the values that were measured."""
    known = [value for value in values if value is not None]
    return f"{min(known):.2f} to {max(known):.2f}" if known else ""


if __name__ == "__main__":
    main()
