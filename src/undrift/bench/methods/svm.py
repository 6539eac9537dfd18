"""The classifier of the benchmark: the paper's linear SVM, on inner products alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..._inputs import check_memory
from ...classifier import Problem, draw_folds, hinge, predict_codes, signs, source_cv
from ...corpora import Corpus
from ...metrics import transfer_error
from ..corpora import part_labels, part_rows
from .cells import Bench
from .resources import check_bytes
from .stacks import row_products

_SVM_BYTES = 8  # libsvm has a Gram matrix in float64


def source_codes(corpus: Corpus, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a source and the codes of its train rows; a source with fewer than two is refused."""
    labels = part_labels(corpus, source, "train")
    classes, codes, n_rows = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        seen = f"all {len(labels)} train rows are of class {classes[0]}" if len(labels) else "no train rows"
        raise ValueError(f"domain {source}: {seen}; a classifier needs rows of at least two classes")
    if n_rows.min() < 2:
        rare = classes[n_rows.argmin()]
        raise ValueError(f"domain {source}: only 1 train row is of class {rare}; cross-validation needs 2")
    return classes, codes


def bench_problem(bench: Bench, source: str) -> tuple[Problem, np.ndarray]:
    """Return the labelled problem of a source, and its classes."""
    return source_problem(bench.corpus, source, bench.setting.n_folds, bench.seed)


def source_problem(corpus: Corpus, source: str, n_folds: int, seed: int) -> tuple[Problem, np.ndarray]:
    """Return the labelled problem of a source, whose folds the seed decides, and its classes."""
    classes, codes = source_codes(corpus, source)
    check_bytes(f"the train rows of domain {source}", _SVM_BYTES * len(codes) ** 2, check_memory(None))
    split = draw_folds(codes, n_folds, np.random.RandomState(seed))
    return Problem(codes, len(classes), np.ones(len(codes)), split, hinge), classes


def authors_C(K: np.ndarray) -> float:
    """``1 / mean |x|^2`` of the training rows whose Gram matrix is `K`."""
    return 1 / (float(K.diagonal().mean()) or 1.0)


def cross_validate(K: np.ndarray, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Accuracy of cross-validation on the source for each C, in units of the authors' rule."""
    return source_cv(K, problem, [C * authors_C(K) for C in Cs])


def choose_C(
    K: np.ndarray, problem: Problem, Cs: Sequence[float], *, always: bool = False
) -> tuple[float, float]:
    """The C of highest cross-validated accuracy, the smallest of several, and that accuracy.

    A single C is not tried, unless its accuracy is wanted `always`; NaN then.
    """
    if len(Cs) == 1 and not always:
        return Cs[0], float("nan")
    scores = cross_validate(K, problem, Cs)
    return Cs[int(np.argmax(scores))], float(scores.max())


def predict_targets(
    K: np.ndarray, problem: Problem, C: float, tests: Mapping[str, np.ndarray], classes: np.ndarray
) -> dict[str, np.ndarray]:
    """Train on the rows of `K`, and predict the test rows of each target by their inner products."""
    dual = hinge(K, signs(problem.codes, problem.n_classes), C * authors_C(K), problem.weight)
    return {target: classes[predict_codes(dual.scores(K_test))] for target, K_test in tests.items()}


def in_domain_error(bench: Bench, target: str) -> float:
    """The baseline's error without transfer, e_b(T, T): a linear SVM on counts of the target's train rows.

    Tested on the test rows; where a corpus has no separate ones (train and test rows overlap), by
    cross-validation on the train rows.
    """
    domain = bench.corpus.domains[target]
    problem, classes = bench_problem(bench, target)
    train, test = (part_rows(bench.corpus, (target, part)) for part in ("train", "test"))
    X = domain.X[train]
    K = row_products(X, X)
    C, _ = choose_C(K, problem, bench.setting.Cs)
    if np.intersect1d(train, test).size:
        return 1 - float(cross_validate(K, problem, [C])[0])
    predicted = predict_targets(K, problem, C, {target: row_products(domain.X[test], X)}, classes)
    return transfer_error(part_labels(bench.corpus, target, "test"), predicted[target])
