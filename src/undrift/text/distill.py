"""Distillation: a linear classifier on other features that imitates the scores of a fitted one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..core import Rows
from ..inputs import savable
from ..method import (
    DISTILL_RIDGES,
    DISTILL_ROWS,
    BatchReference,
    Name,
    TargetModel,
    class_probabilities,
    find_border,
    fit_temperature,
    predict_codes,
)

LEAST_ROWS = 10
TOLERANCE = 1e-5  # of the iterations


@dataclass(frozen=True)
class Taught:
    """Answers of a fitted classifier for some rows."""

    classes: np.ndarray
    scores: np.ndarray  # (n, n_outputs), 0 at the decision threshold of every domain
    probabilities: np.ndarray  # (n, n_classes)
    names: list[Name]  # of the target domains
    domain: np.ndarray  # (n,) of int: positions in `names`
    prior: np.ndarray  # (n_domains, n_outputs) of log odds that `probabilities` have and `scores` lack
    first: np.ndarray | None = None  # (n, n_outputs) scores of the classifier trained on the source alone
    batch: BatchReference | None = None

    def select(self, rows: np.ndarray) -> Taught:
        """Return the same of some of the rows."""
        return replace(
            self,
            scores=self.scores[rows],
            probabilities=self.probabilities[rows],
            domain=self.domain[rows],
            first=None if self.first is None else self.first[rows],
        )

    @property
    def predicted(self) -> np.ndarray:
        """Codes of the predicted classes, of shape (n,)."""
        return predict_codes(self.scores)


def ask_teacher(classifier: Any, X: Rows, target: Any = None) -> Taught:
    """Return the answers of a fitted `MSDAClassifier` for rows of its targets.

    `target` is the name of the target that the rows are of, or a list with one for each row.
    """
    X = classifier._check_input(X)
    names = list(target) if isinstance(target, list | np.ndarray) else [target] * X.shape[0]
    known = {name: classifier.find_target(name) for name in set(names)}
    positions = np.array([known[name] for name in names], dtype=int)
    first, batch = None, classifier.batch_
    if batch is None:
        scores = classifier._score_rows(X) + classifier.intercept_[positions]
    else:
        scores, first = classifier._score_both(X, positions)
    prior, temperature = classifier.prior_, classifier.temperatures_
    targets, domain = np.unique(positions, return_inverse=True)
    if batch is not None:
        batch = replace(batch, fitted=[batch.fitted[k - classifier.n_sources_] for k in targets])
    return Taught(
        classifier.classes_,
        scores,
        class_probabilities(scores + prior[positions], temperature[positions]),
        [classifier.domains_[k] for k in targets],
        domain,
        prior[targets] / classifier.temperature_,
        first,
        batch,
    )


@savable
class DistilledClassifier(ClassifierMixin, TargetModel, BaseEstimator):
    """Linear classifier of sparse rows, with an intercept for every target domain.

    :func:`distill` makes it. It predicts like :class:`MSDAClassifier`, and has no layers. Its attributes are
    those of the classifier that was distilled, for the targets alone; `coef_` is one array of shape
    (d, n_outputs), and `labelled_counts_` is -1 where a count is not known.
    """

    def fit(self, X: Rows, y: Any) -> DistilledClassifier:
        """Refuse: `distill` fits."""
        raise ValueError("a distilled classifier learns from another one: see TextAdapter.distill")

    n_sources_ = 0

    def _score_both(self, X: Rows, k: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of rows of the domain at position k, and those by the source alone."""
        assert self.batch_ is not None
        first = X @ self.batch_.weights[0] + self.batch_.intercept[k]
        return X @ self.coef_ + self.intercept_[k], first

    def decision_function(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Return scores: of shape (n,) for two classes (positive for the second), else (n, n_classes)."""
        check_is_fitted(self)
        scores = X @ self.coef_ + self.intercept_[self.find_target(target)]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Predict labels."""
        scores = self.decision_function(X, target=target)
        return self.classes_[predict_codes(scores.reshape(len(scores), -1))]

    def predict_proba(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Return probabilities of the classes."""
        return self.scores_to_proba(self.decision_function(X, target=target), target=target)

    def scores_to_proba(self, scores: np.ndarray, *, target: Name | None = None) -> np.ndarray:
        """Return `predict_proba` of rows from their `decision_function`."""
        scores = scores.reshape(len(scores), -1)
        return class_probabilities(scores + self.prior_[self.find_target(target)], self.temperature_)


def distill(X: Rows, taught: Taught, seed: int = 0) -> tuple[DistilledClassifier, np.ndarray, np.ndarray]:
    """Fit a linear classifier to the scores and probabilities of another one, on rows of length 1.

    The ridge is chosen on a tenth of the rows. Temperature and border are those under which its probabilities
    are closest to the other's, and its class shares equal. Returns the classifier, the positions of another
    tenth of the rows, and the codes that a classifier predicts there which was fitted without either tenth.
    """
    n = X.shape[0]
    if n < LEAST_ROWS:
        raise ValueError(f"distillation learns from documents, {LEAST_ROWS} at least; got {n}")
    order = np.random.default_rng(seed).permutation(n)[:DISTILL_ROWS]
    choosing, held_out, rest = np.split(order, [max(2, len(order) // 10), max(4, len(order) // 5)])
    ridge = _choose_ridge(X, taught, rest, choosing)
    trial = _fit_ridge(X[rest], taught.select(rest), ridge)
    unseen = np.concatenate([choosing, held_out])
    first, temperature = (
        _match_temperature(_scores(trial, X[rows], taught.domain[rows]), taught.probabilities[rows])
        for rows in (choosing, unseen)
    )
    _set_border(trial, X[rest], taught.select(rest), first)
    codes = predict_codes(_scores(trial, X[held_out], taught.domain[held_out]))
    model = _fit_ridge(X, taught, ridge)
    _set_border(model, X, taught, temperature)
    model.batch_ = None
    if taught.first is not None and taught.batch is not None:
        model.batch_ = _distill_batch(X, replace(taught, scores=taught.first), ridge, rest, unseen)
    return model, held_out, codes


def _distill_batch(
    X: Rows, taught: Taught, ridge: float, rows: np.ndarray, unseen: np.ndarray
) -> BatchReference:
    """Return the numbers that batches are aligned by.

    A ridge shrinks scores of unseen rows. They are stretched to the spread that class shares are read from.
    """
    assert taught.batch is not None
    trial, first = _fit_ridge(X[rows], taught.select(rows), ridge), _fit_ridge(X, taught, ridge)
    shrunk = _scores(trial, X[unseen], taught.domain[unseen]).std(axis=0)
    stretch = taught.scores[unseen].std(axis=0) / np.maximum(shrunk, 1e-12)
    sizes = np.bincount(taught.domain, minlength=len(taught.names))
    means = _domain_means(taught.scores, taught.domain, sizes)
    intercept = means + stretch * (first.intercept_ - means)
    return replace(taught.batch, weights=[stretch * first.coef_], intercept=intercept)


def _choose_ridge(X: Rows, taught: Taught, rows: np.ndarray, held_out: np.ndarray) -> float:
    """Return the ridge with the smallest squared error on held-out rows."""
    errors, start = [], None
    for ridge in DISTILL_RIDGES:
        model = _fit_ridge(X[rows], taught.select(rows), ridge, start)
        difference = _scores(model, X[held_out], taught.domain[held_out]) - taught.scores[held_out]
        errors.append(float(np.mean(difference**2)))
        start = model.coef_
    return DISTILL_RIDGES[int(np.argmin(errors))]


def _fit_ridge(X: Rows, taught: Taught, ridge: float, start: np.ndarray | None = None) -> DistilledClassifier:
    """Minimise ``|scores - X w - b|^2 + ridge |w|^2`` with an intercept b for every domain.

    The intercepts drop out of rows and scores less the means of their domains; the rows stay sparse.
    """
    sizes = np.bincount(taught.domain, minlength=len(taught.names))
    row_means = _domain_means(X, taught.domain, sizes)
    score_means = _domain_means(taught.scores, taught.domain, sizes)

    def multiply(w: np.ndarray) -> np.ndarray:
        return X @ w - (row_means @ w)[taught.domain]

    def multiply_transposed(u: np.ndarray) -> np.ndarray:
        return X.T @ u - row_means.T @ np.bincount(taught.domain, u.ravel(), len(sizes))

    centred = LinearOperator(X.shape, multiply, multiply_transposed, dtype=np.float64)
    targets = taught.scores - score_means[taught.domain]
    starts = [None] * targets.shape[1] if start is None else list(start.T)
    options = {"damp": np.sqrt(ridge), "atol": TOLERANCE, "btol": TOLERANCE}
    columns = [
        lsqr(centred, target, x0=first, **options)[0] for target, first in zip(targets.T, starts, strict=True)
    ]
    model = DistilledClassifier()
    model.coef_ = np.column_stack(columns).astype(np.float32)
    model.intercept_ = score_means - row_means @ model.coef_
    model.classes_, model.ridge_ = taught.classes, ridge
    model.domains_, model.domain_sizes_ = taught.names, sizes.tolist()
    return model


def _domain_means(values: Any, domain: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the mean row of every domain, of shape (n_domains, n_columns)."""
    sums = [np.asarray(values[domain == i].sum(axis=0)).ravel() for i in range(len(sizes))]
    return np.array(sums) / np.maximum(sizes, 1)[:, None]


def _scores(model: DistilledClassifier, X: Rows, domain: np.ndarray) -> np.ndarray:
    return X @ model.coef_ + model.intercept_[domain]


def _match_temperature(scores: np.ndarray, probabilities: np.ndarray) -> float:
    """Find the temperature that explains probabilities best; every row counts once for each class."""
    n, n_classes = probabilities.shape
    codes = np.repeat(np.arange(n_classes), n)
    return fit_temperature(np.tile(scores, (n_classes, 1)), codes, probabilities.T.ravel())


def _set_border(model: DistilledClassifier, X: Rows, taught: Taught, temperature: float) -> None:
    """Set temperature, prior and intercepts, for the mean probabilities of every domain that were taught."""
    scores = _scores(model, X, taught.domain)
    model.temperature_, model.prior_ = temperature, temperature * taught.prior
    for i in np.unique(taught.domain).tolist():
        rows = taught.domain == i
        border = find_border(scores[rows], temperature, taught.probabilities[rows].mean(axis=0))
        model.intercept_[i] += border - model.prior_[i]
