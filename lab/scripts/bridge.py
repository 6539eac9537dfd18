"""Labels of English reviews for reviews in Chinese and Arabic: the error of sentence vectors alone, of
`TextAdapter(bridge=True)` without a label and with ten that it asks for, and of a linear SVM trained on half
of the target's true labels. The mean of several draws of rows."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from harness import add_store, report, store

from undrift import MSDAClassifier, TextAdapter
from undrift.results import fitted_svm
from undrift.text.bridge import ask_vectors, read_source
from undrift.text.languages import encode_texts
from undrift_lab.corpora import load_fdu_mtl, load_named

SOURCES = ("electronics", "kitchen_housewares")
TARGETS = ("chinese_reviews", "arabic_binary")
N_ASKED = 10
COLUMNS = {
    "positive": "positive, %",
    "vectors": "vectors alone, %",
    "same_mix": "means removed, %",
    "bridge": "bridge, %",
    "asked": f"{N_ASKED} labels, %",
    "expected": "expected error, %",
    "own": "SVM on true labels, %",
    "seconds": "fit, s",
}
NAMES = np.array(["negative", "positive"])


def draw(texts: list[str], y: np.ndarray, n: int, seed: int) -> tuple[list[str], np.ndarray]:
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return [texts[i] for i in rows], NAMES[y[rows].astype(int)]


def draw_english(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    domains, texts, labels = load_fdu_mtl().domains, [], []
    for name in SOURCES:
        domain = domains[name]
        given = [domain.texts[i] for i in domain.train]
        more, y = draw(given, domain.y[domain.train], n // len(SOURCES), seed)
        texts += more
        labels.append(y)
    return texts, np.concatenate(labels)


def cross_fit_svm(X: Any, y: np.ndarray, seed: int) -> float:
    """Return the error of an SVM trained on one half and tested on the other, for both halves."""
    rows = np.random.default_rng(seed).permutation(len(y))
    halves = rows[: len(y) // 2], rows[len(y) // 2 :]
    wrong = [fitted_svm(X[a], y[a]).predict(X[b]) != y[b] for a, b in (halves, halves[::-1])]
    return float(np.mean(np.concatenate(wrong)))


def measure(target: tuple[list[str], np.ndarray], n: int, seed: int) -> dict[str, float]:
    source, (texts, truth) = draw_english(n, seed), draw(*target, n, seed)
    start = time.process_time()
    adapter = TextAdapter(classifier=MSDAClassifier(random_state=0), bridge=True).fit(*source, texts)
    seconds = time.process_time() - start
    rows = adapter.vectorizer_.transform(texts)
    told = ask_vectors(read_source(*source, "the source"), np.nan_to_num(encode_texts(texts)))
    vectors, same_mix = (float(np.mean(NAMES[p.argmax(axis=1)] != truth)) for p in told)
    record = {
        "positive": float(np.mean(truth == "positive")),
        "vectors": vectors,
        "same_mix": same_mix,
        "bridge": float(np.mean(adapter.predict(texts) != truth)),
        "expected": adapter.expected_error_[0]["error"],
        "own": cross_fit_svm(rows, truth, seed),
        "seconds": seconds,
    }
    asked = adapter.ask(texts, N_ASKED)
    adapter.update([texts[i] for i in asked], truth[asked])
    rest = np.setdiff1d(np.arange(len(texts)), asked)
    record["asked"] = float(np.mean(adapter.predict([texts[i] for i in rest]) != truth[rest]))
    return record


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=list(TARGETS))
    parser.add_argument("--domains", nargs="+", help="of every corpus; default: all")
    parser.add_argument("--rows", type=int, default=1_000, help="of the source, and of every target")
    parser.add_argument("--seeds", type=int, default=3)
    add_store(parser)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    warnings.simplefilter("ignore")
    table: dict[str, dict[str, float]] = {}
    for corpus in args.corpora:
        domains = {k: v for k, v in load_named(corpus).domains.items() if k in (args.domains or [k])}
        for name, domain in domains.items():
            records = [measure((domain.texts, domain.y), args.rows, seed) for seed in range(args.seeds)]
            table[f"{corpus}, {name}"] = average(records)
            print(f"{corpus}, {name}", table[f"{corpus}, {name}"], flush=True)
        table[f"{corpus}, mean"] = average([table[f"{corpus}, {name}"] for name in domains])
    rows = [
        {"target": name}
        | {says: f"{own[key] * (1 if key == 'seconds' else 100):.1f}" for key, says in COLUMNS.items()}
        for name, own in table.items()
    ]
    store("bridge", rows)
    report("Errors of labels that crossed from English", table, rows=args.rows, seeds=args.seeds)


def average(records: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([record[key] for record in records])) for key in COLUMNS}


if __name__ == "__main__":
    main()
