"""Linear classifiers on inner products alone: the paper's SVM, and least squares for `source-only`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from undrift.core import Rows

from ..corpora.corpus import Corpus
from ..metrics import transfer_error
from ..parts import part_labels, part_rows
from .cells import Bench
from .stacks import row_products

N_FOLDS = 5
LINEAR_CS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class SourceProblem:
    """The labels of a source's train rows, whose inner products are known, and the folds of these rows."""

    y: np.ndarray
    folds: Sequence[tuple[np.ndarray, np.ndarray]]  # train and test rows


def check_source(corpus: Corpus, source: str) -> np.ndarray:
    """Return the labels of a source's train rows; fewer than two classes, or rows of one, are refused."""
    labels = part_labels(corpus, source, "train")
    classes, n_rows = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        seen = f"all {len(labels)} train rows are of class {classes[0]}" if len(labels) else "no train rows"
        raise ValueError(f"domain {source}: {seen}; a classifier needs rows of at least two classes")
    if n_rows.min() < 2:
        rare = classes[n_rows.argmin()]
        raise ValueError(f"domain {source}: only 1 train row is of class {rare}; cross-validation needs 2")
    return labels


def bench_problem(bench: Bench, source: str) -> SourceProblem:
    """Return the labelled problem of a source, whose folds the seed decides."""
    y = check_source(bench.corpus, source)
    n_folds = min(N_FOLDS, np.unique(y, return_counts=True)[1].min())
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=np.random.RandomState(bench.seed))
    return SourceProblem(y, list(folds.split(y, y)))


def authors_C(K: np.ndarray) -> float:
    """``1 / mean |x|^2`` of the training rows whose Gram matrix is `K`."""
    return 1 / (float(K.diagonal().mean()) or 1.0)


def fit_svm(K: np.ndarray, y: np.ndarray, C: float) -> OneVsRestClassifier:
    """Fit a linear SVM with the hinge loss on a Gram matrix, one class against the rest."""
    return OneVsRestClassifier(SVC(kernel="precomputed", C=C)).fit(K, y)


def cross_validate(K: np.ndarray, problem: SourceProblem, Cs: Sequence[float]) -> np.ndarray:
    """Accuracy of cross-validation on the source for each C, in units of the authors' rule."""
    is_right = np.zeros((len(Cs), len(problem.y)))
    for train, test in problem.folds:
        K_train, K_test = K[np.ix_(train, train)], K[np.ix_(test, train)]
        for i, C in enumerate(Cs):
            svm = fit_svm(K_train, problem.y[train], C * authors_C(K))
            is_right[i, test] = svm.predict(K_test) == problem.y[test]
    return is_right.mean(axis=1)


def choose_C(
    K: np.ndarray, problem: SourceProblem, Cs: Sequence[float], always: bool = False
) -> tuple[float, float]:
    """The C of highest cross-validated accuracy, the smallest of several, and that accuracy.

    A single C is not tried, unless its accuracy is wanted `always`; NaN then.
    """
    if len(Cs) == 1 and not always:
        return Cs[0], float("nan")
    scores = cross_validate(K, problem, Cs)
    return Cs[int(np.argmax(scores))], float(scores.max())


def choose_linear_C(X: Rows, y: np.ndarray) -> float:
    """Return a linear SVM's C that is best in cross-validation, 1 where a class has a single row."""
    smallest = np.unique(y, return_counts=True)[1].min()
    if smallest < 2:
        return 1.0
    folds = StratifiedKFold(min(5, smallest), shuffle=True, random_state=0)
    search = GridSearchCV(LinearSVC(), {"C": LINEAR_CS}, cv=folds, refit=False).fit(X, y)
    return float(search.best_params_["C"])


def predict_targets(
    K: np.ndarray, problem: SourceProblem, C: float, tests: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Train on the rows of `K`, and predict the test rows of each target by their inner products."""
    svm = fit_svm(K, problem.y, C * authors_C(K))
    return {target: svm.predict(K_test) for target, K_test in tests.items()}


@dataclass(frozen=True)
class Hyperplanes:
    """A linear SVM as weights of its training rows: a column for each class, or one for two classes."""

    classes: np.ndarray
    coef: np.ndarray  # (n_rows, n_columns)
    intercept: np.ndarray  # (n_columns,)

    @classmethod
    def fit(cls, K: np.ndarray, problem: SourceProblem, C: float) -> Hyperplanes:
        """Train on the rows whose inner products are given, with C in units of the authors' rule."""
        svm = fit_svm(K, problem.y, C * authors_C(K))
        coef = np.zeros((len(K), len(svm.estimators_)))
        for column, each in zip(coef.T, svm.estimators_, strict=True):
            column[each.support_] = each.dual_coef_[0]
        return cls(svm.classes_, coef, np.concatenate([each.intercept_ for each in svm.estimators_]))

    def predict(self, products: np.ndarray) -> np.ndarray:
        """Predict rows by their products with the sums of training rows that `coef` weighs."""
        scores = products + self.intercept
        is_single = scores.shape[1] == 1
        return self.classes[(scores[:, 0] > 0).astype(int) if is_single else scores.argmax(axis=1)]


def predict_by_least_squares(K: np.ndarray, y: np.ndarray, C: float, K_test: np.ndarray) -> np.ndarray:
    """Predict test rows by a least-squares SVM, whose intercept is not penalised.

    It minimises ``|w|^2 / 2 + C / 2 sum_i (y_i - f(x_i))^2`` with targets of +1 and -1; C is in units of the
    authors' rule.
    """
    classes, codes = np.unique(y, return_inverse=True)
    Y = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
    M = K.astype(np.float64) + np.eye(len(K)) / (C * authors_C(K))
    solved = solve(M, np.column_stack([np.ones(len(K)), Y]), assume_a="pos")
    intercept = solved[:, 1:].sum(axis=0) / solved[:, 0].sum()
    scores = K_test @ (solved[:, 1:] - solved[:, :1] * intercept) + intercept
    return classes[np.argmax(scores, axis=1)]


def in_domain_error(bench: Bench, target: str) -> float:
    """The baseline's error without transfer, e_b(T, T): a linear SVM on counts of the target's train rows.

    Tested on the test rows; where a corpus has no separate ones (train and test rows overlap), by
    cross-validation on the train rows.
    """
    domain, problem = bench.corpus.domains[target], bench_problem(bench, target)
    train, test = (part_rows(bench.corpus, (target, part)) for part in ("train", "test"))
    X = domain.X[train]
    K = row_products(X, X)
    C, _ = choose_C(K, problem, bench.setting.Cs)
    if np.intersect1d(train, test).size:
        return 1 - float(cross_validate(K, problem, [C])[0])
    predicted = predict_targets(K, problem, C, {target: row_products(domain.X[test], X)})
    return transfer_error(part_labels(bench.corpus, target, "test"), predicted[target])
