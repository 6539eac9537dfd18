"""Task error against precision: the twelve tasks of amazon-bow at each precision of a device.

    python benchmarks/precision.py --data FOLDER [--device cuda] [--max-features 5000]

FOLDER holds amazon-bow's files. For method `undrift` at its first noise, and for the paper's mSDA-5 at noise
0.5 with least squares, prints the mean transfer error at each precision and how far it is from float64's.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np

from undrift import SelfTraining
from undrift._inputs.device import check_place
from undrift._inputs.rows import binarize_rows
from undrift.bench.corpora import part_labels, part_rows, take_rows
from undrift.bench.methods.baselines import weight_tfidf
from undrift.bench.methods.candidates import predict_target_codes
from undrift.bench.methods.stacks import RunningGrams, SharedStack, join_blocks
from undrift.bench.methods.svm import authors_C
from undrift.classifier.estimator import MSDAClassifier
from undrift.classifier.linear import least_squares
from undrift.classifier.selection import Problem
from undrift.datasets import load_amazon_bow
from undrift.text.adapter import TFIDF_LENGTH, text_classifier

PRECISIONS = (("high", "float32"), ("highest", "float32"), ("highest", "float64"))


def take_columns(corpus, d, dtype):
    """The corpus with its first `d` columns, in `dtype`."""
    domains = {
        name: replace(domain, X=domain.X[:, :d].astype(dtype)) for name, domain in corpus.domains.items()
    }
    return replace(corpus, domains=domains, terms=None)


def mean_error(corpus, model, place, first=lambda X: X):
    """Mean transfer error over all tasks, one stack for all of them."""
    stack = SharedStack(corpus, first=first, center=model.center, place=place)
    names = list(corpus.domains)
    cells = [(s, t) for s in names for t in names if s != t]
    parts = {cell: ((cell[0], "train"), (cell[1], "all")) for cell in cells}
    pairs = [p for s, t in parts.values() for p in ((s, s), (t, s), (t, t))]
    grams = RunningGrams(corpus, dict.fromkeys(pairs))
    with place.set_precision():
        for level in stack.levels(model.noise, model.n_layers):
            grams.add(level, balance=model.balance_layers)
    errors = []
    for cell, (s, t) in parts.items():
        classes, codes = np.unique(part_labels(corpus, cell[0], "train"), return_inverse=True)
        problem = Problem(codes, len(classes), np.ones(len(codes)), [], least_squares)
        K = join_blocks(*(grams.peek(pair) for pair in ((s, s), (t, s), (t, t))))
        test = part_rows(corpus, (cell[1], "test"))
        n, options = len(codes), SelfTraining() if model.self_training else None
        C = model.C * authors_C(K[:n, :n])
        predicted = classes[predict_target_codes(K, problem, C, test, options)]
        errors.append(np.mean(predicted != part_labels(corpus, cell[1], "test")))
    return float(np.mean(errors))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of amazon-bow's files")
    parser.add_argument("--device", default="cuda", help="a device of torch, or cpu for NumPy")
    parser.add_argument("--max-features", type=int, default=5000)
    parser.add_argument("--rows", type=int, help="of each part of each domain; all by default. For trials")
    given = parser.parse_args()
    counts = take_rows(load_amazon_bow(given.data), given.rows)
    ours = text_classifier()
    paper = MSDAClassifier(5, 0.5, 1.0, center=False, binarize=True)
    tfidf = weight_tfidf(take_columns(counts, given.max_features, "float64"), TFIDF_LENGTH)
    results = {}
    for precision, dtype in PRECISIONS:
        place = check_place(given.device, precision)
        rows = take_columns(counts, given.max_features, dtype)
        weighted = take_columns(tfidf, given.max_features, dtype)
        errors = {
            "undrift": mean_error(weighted, ours, place),
            "msda-5": mean_error(rows, paper, place, binarize_rows),
        }
        results[f"{precision}, {dtype}"] = errors
        print(f"{precision:8s} {dtype:8s}", {k: round(100 * v, 3) for k, v in errors.items()}, flush=True)
    exact = results["highest, float64"]
    for name, errors in results.items():
        away = {method: round(100 * abs(errors[method] - exact[method]), 3) for method in exact}
        print(f"{name}: {away} points from float64")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
