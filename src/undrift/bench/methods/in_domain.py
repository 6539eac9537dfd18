"""The yardstick of all transfer: the baseline's error at home, e_b(T, T)."""

from __future__ import annotations

import numpy as np

from ...metrics import transfer_error
from .cells import Bench
from .classify import best_C, cross_validated, labels, predicted
from .stacks import inner_products, part_rows


def in_domain_error(bench: Bench, target: str) -> float:
    """Error of a linear SVM on counts, trained on the target's train rows and tested on its test rows.

    Where a corpus has no test part of its own (train and test rows overlap), the error is that of
    cross-validation on the train rows.
    """
    domain = bench.corpus.domains[target]
    problem, classes = bench.problem(target)
    train, test = (part_rows(bench.corpus, (target, part)) for part in ("train", "test"))
    X = domain.X[train]
    K = inner_products(X, X)
    C, _ = best_C(K, problem, bench.setting.Cs)
    if np.intersect1d(train, test).size:
        return 1 - float(cross_validated(K, problem, [C])[0])
    found = predicted(K, problem, C, {target: inner_products(domain.X[test], X)}, classes)[target]
    return transfer_error(labels(bench.corpus, target, "test"), found)
