"""Ratings, tags and many classes: adapted against source-only, on generated documents.

Stars from 1 to 5 of four domains: mean absolute error of source-only ridge on tf-idf, of five unrelated
classes, and of a rating. Tags: macro F1 of a linear SVM for each tag, and adapted. Fifty classes: error, and
seconds over those of two classes on the same rows.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import permutations

import harness  # noqa: F401 (what is measured is the library beside this folder)
import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import RidgeCV
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

DOMAINS = ("books", "kitchen", "electronics", "camping")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000, help="of every domain")
    parser.add_argument("--terms", type=int, default=3000)
    parser.add_argument("--pairs", type=int, default=12, help="of domains, at most 12")
    parser.add_argument("--parts", nargs="+", default=["stars", "tags", "classes"])
    return parser.parse_args()


def list_pairs(n: int) -> list[tuple[str, str]]:
    """Every domain is a source before one is twice."""
    pairs = sorted(permutations(DOMAINS, 2), key=lambda p: (DOMAINS.index(p[1]) - DOMAINS.index(p[0])) % 4)
    return pairs[:n]


def vectorize(source: list[str], target: list[str], n_terms: int):
    """Rows of both domains over one vocabulary, and tf-idf rows over that of the source alone."""
    from undrift import TermVectorizer

    shared = TermVectorizer(n_terms, length=5.0).fit([*source, *target])
    alone = TermVectorizer(n_terms).fit(source)
    return [v.transform(texts) for v in (shared, alone) for texts in (source, target)]


def compare_stars(options: argparse.Namespace) -> dict:
    """Mean absolute error and rank correlation on every pair."""
    from undrift import text_classifier, text_regressor
    from undrift.datasets import make_reviews

    corpus, records = make_reviews(options.rows, labels="stars"), []
    for source, target in list_pairs(options.pairs):
        A, B = corpus.domains[source], corpus.domains[target]
        texts = [A.texts[i] for i in A.train], [B.texts[i] for i in (*B.unlabelled, *B.test)]
        X, Z, X_alone, Z_alone = vectorize(*texts, options.terms)
        y, truth, test = A.y[A.train], B.y[B.test], slice(len(B.unlabelled), None)
        predicted = {
            "ridge": np.clip(RidgeCV(np.logspace(-2, 3, 11)).fit(X_alone, y).predict(Z_alone), 1, 5),
            "five classes": text_classifier(random_state=0).fit(X, y, Z).predict(Z),
            "plain rating": text_regressor(self_training=False, random_state=0).fit(X, y, Z).predict(Z),
            "rating": text_regressor(random_state=0).fit(X, y, Z).predict(Z),
        }
        record = {"source": source, "target": target}
        for name, values in predicted.items():
            record[f"{name} mae"] = float(np.abs(values[test] - truth).mean())
            record[f"{name} rho"] = float(spearmanr(values[test], truth)[0])
        records.append(record)
        show(record)
    return average(records)


def make_tagged(domain: str, n: int, n_tags: int = 8, scale: float = 1.0) -> tuple[list[str], np.ndarray]:
    """Documents of pseudo-words and their tags: some words of a tag are used everywhere, most in one domain.

    The frequency of tags runs from 10% to 40%, times `scale`.
    """
    rng = np.random.default_rng([*map(ord, domain)])
    tags = (rng.random((n, n_tags)) < np.linspace(0.1, 0.4, n_tags) * scale).astype(int)
    documents = []
    for row in tags:
        words = [f"word{rng.integers(200)}" for _ in range(8)]
        words += [f"{domain}fact{rng.integers(40)}" for _ in range(3)]
        for tag in np.flatnonzero(row):
            words += [f"tag{tag}shared{rng.integers(8)}" for _ in range(rng.choice([0, 0, 1, 2]))]
            words += [f"{domain}tag{tag}term{rng.integers(10)}" for _ in range(rng.integers(1, 4))]
        documents.append(" ".join(rng.permutation(words)))
    return documents, tags


def compare_tags(options: argparse.Namespace) -> dict:
    """Macro and micro F1 on every pair; targets in which tags are as frequent, rarer and more frequent."""
    from undrift import text_classifier

    records, n = [], options.rows // 2
    for (source, target), scale in zip(list_pairs(options.pairs), [1.0, 0.6, 1.6] * 4, strict=False):
        (texts, tags), (target_texts, truth) = make_tagged(source, n), make_tagged(target, n, scale=scale)
        X, Z, X_alone, Z_alone = vectorize(texts, target_texts, options.terms)
        svm = OneVsRestClassifier(LinearSVC(random_state=0)).fit(X_alone, tags)
        model = text_classifier(random_state=0).fit(X, tags, Z)
        record = {"source": source, "target": target, "scale": scale}
        for name, predicted in (("svm", svm.predict(Z_alone)), ("adapted", model.predict(Z))):
            for average_by in ("macro", "micro"):
                score = f1_score(truth, predicted, average=average_by, zero_division=0)
                record[f"{name} {average_by}"] = float(score)
        records.append(record)
        show(record)
    return average(records)


def compare_classes(options: argparse.Namespace) -> dict:
    """Seconds and error of fifty classes and of two, on the same rows."""
    from undrift import text_classifier

    n, records = options.rows, []
    for n_classes in (2, 50):
        domains = [make_classes(name, n, n_classes) for name in DOMAINS[:2]]
        X, Z, X_alone, Z_alone = vectorize(domains[0][0], domains[1][0], options.terms)
        y, truth = domains[0][1], domains[1][1]
        began = time.process_time()  # of all threads: other programs do not count
        model = text_classifier(random_state=0).fit(X, y, Z)
        predicted = model.predict(Z)
        seconds = time.process_time() - began
        svm = LinearSVC(random_state=0).fit(X_alone, y).predict(Z_alone)
        record = {"n_classes": n_classes, "seconds": seconds, "error": float(np.mean(predicted != truth))}
        records.append(record | {"svm error": float(np.mean(svm != truth))})
        show(records[-1])
    return {
        "fifty classes": records[1],
        "time over two classes": records[1]["seconds"] / records[0]["seconds"],
    }


def make_classes(domain: str, n: int, n_classes: int) -> tuple[list[str], np.ndarray]:
    """Documents of pseudo-words, each of one of several classes."""
    rng = np.random.default_rng([*map(ord, domain), n_classes])
    labels, documents = rng.integers(n_classes, size=n), []
    for label in labels:
        words = [f"word{rng.integers(200)}" for _ in range(8)]
        words += [f"class{label}shared{rng.integers(5)}" for _ in range(rng.integers(0, 3))]
        words += [f"{domain}class{label}term{rng.integers(5)}" for _ in range(rng.integers(1, 4))]
        documents.append(" ".join(rng.permutation(words)))
    return documents, labels


def average(records: list[dict]) -> dict:
    """Means over the pairs of what is a number, and on how many pairs the adapted model is better."""
    names = [name for name, value in records[0].items() if isinstance(value, float)]
    return {name: float(np.mean([record[name] for record in records])) for name in names}


def show(record: dict) -> None:
    print({name: round(v, 3) if isinstance(v, float) else v for name, v in record.items()}, flush=True)


def main() -> None:
    options = parse_arguments()
    parts = {"stars": compare_stars, "tags": compare_tags, "classes": compare_classes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps({name: parts[name](options) for name in options.parts}))


if __name__ == "__main__":
    main()
