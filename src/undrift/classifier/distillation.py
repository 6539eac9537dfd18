"""Distillation: a linear classifier on other features that imitates the scores of a fitted one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._core import Rows
from .._inputs import savable
from .calibration import class_probabilities, find_border, fit_temperature
from .data import check_domain_numbers
from .linear import predict_codes
from .prediction import domain_intercepts

RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # for rows of length 1; the larger of equals is chosen
LEAST_ROWS = 10
SEARCH_ROWS = 20_000  # rows that the ridge is chosen and the fidelity is measured on, at most
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Taught:
    """What a fitted classifier says of some rows."""

    classes: np.ndarray
    scores: np.ndarray  # (n, n_outputs), with the border of every domain
    probabilities: np.ndarray  # (n, n_classes)
    numbers: list[int]  # of the target domains
    domain: np.ndarray  # (n,) of int: positions in `numbers`
    prior: np.ndarray  # (n_domains, n_outputs) of log odds that `probabilities` have and `scores` lack

    def select(self, rows: np.ndarray) -> Taught:
        """Return the same of some of the rows."""
        return replace(
            self, scores=self.scores[rows], probabilities=self.probabilities[rows], domain=self.domain[rows]
        )

    @property
    def predicted(self) -> np.ndarray:
        """Codes of the predicted classes, of shape (n,)."""
        return predict_codes(self.scores)


def ask_teacher(classifier: Any, X: Rows, sample_domain: Any) -> Taught:
    """Return what a fitted `MSDAClassifier` says of rows of its targets."""
    n, n_targets = X.shape[0], sum(number < 0 for number in classifier.domains_)
    if sample_domain is None and n_targets > 1:
        raise ValueError(
            f"the model has {n_targets} targets: give sample_domain, the number of each document's target, "
            f"from -1 to -{n_targets}"
        )
    domain = check_domain_numbers(-1 if sample_domain is None else sample_domain, n)
    numbers, positions = np.unique(domain, return_inverse=True)
    scores = classifier.decision_function(X, sample_domain=sample_domain)
    prior = domain_intercepts(
        classifier.domains_,
        classifier.domain_sizes_,
        classifier.prior_,
        None if sample_domain is None else numbers,
        len(numbers),
    )
    return Taught(
        classifier.classes_,
        scores.reshape(n, -1),
        classifier.scores_to_proba(scores, sample_domain),
        numbers.tolist(),
        positions,
        np.atleast_2d(prior) / classifier.temperature_,
    )


@savable
class DistilledClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier of sparse rows, with an intercept for every target domain.

    :func:`distill` makes it. It has what :class:`MSDAClassifier` needs to predict, and no layers.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray of shape (d, n_outputs)
    intercept_ : ndarray of shape (n_domains, n_outputs)
    domains_, domain_sizes_ : list of int
        Numbers of the target domains, -1, -2, ..., and how many rows each had.
    temperature_ : float
        What scores are divided by to become log odds.
    prior_ : ndarray of shape (n_domains, n_outputs)
        What probabilities add to scores; other than 0 with ``border="balanced"``.
    ridge_ : float
    labelled_counts_ : int array of shape (d,)
        In how many labelled rows each feature is not zero; -1 where that is not known.
    target_shares_, target_shares_interval_, expected_error_ : list
        As of the classifier that was distilled.
    """

    def fit(self, X: Rows, y: Any) -> DistilledClassifier:
        """Refuse: `distill` fits."""
        raise ValueError("a distilled classifier learns from another one: see TextAdapter.distill")

    def decision_function(self, X: Rows, *, sample_domain: Any = None) -> np.ndarray:
        """Scores: of shape (n,) for two classes (positive for the second), else (n, n_classes)."""
        check_is_fitted(self)
        intercept = domain_intercepts(
            self.domains_, self.domain_sizes_, self.intercept_, sample_domain, X.shape[0]
        )
        scores = X @ self.coef_ + intercept
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Rows, *, sample_domain: Any = None) -> np.ndarray:
        """Predict labels."""
        scores = self.decision_function(X, sample_domain=sample_domain)
        return self.classes_[predict_codes(scores.reshape(len(scores), -1))]

    def predict_proba(self, X: Rows, *, sample_domain: Any = None) -> np.ndarray:
        """Probabilities of the classes."""
        return self.scores_to_proba(self.decision_function(X, sample_domain=sample_domain), sample_domain)

    def scores_to_proba(self, scores: np.ndarray, sample_domain: Any = None) -> np.ndarray:
        """Return `predict_proba` of rows from what `decision_function` gave for them."""
        scores = scores.reshape(len(scores), -1)
        prior = domain_intercepts(self.domains_, self.domain_sizes_, self.prior_, sample_domain, len(scores))
        return class_probabilities(scores + prior, self.temperature_)


def distill(X: Rows, taught: Taught, seed: int = 0) -> tuple[DistilledClassifier, np.ndarray, np.ndarray]:
    """Fit a linear classifier to the scores and probabilities of another one.

    The ridge is chosen on a tenth of the rows. Temperature and border are those under which its probabilities
    are closest to the other's, and its class shares equal.

    Parameters
    ----------
    X : sparse matrix of shape (n, d)
        Rows of length 1.
    taught : Taught
        Of the same rows.

    Returns
    -------
    DistilledClassifier, held_out, codes
        Fitted on all rows; the positions of another tenth of them; and what a classifier fitted without
        either tenth predicts there.
    """
    n = X.shape[0]
    if n < LEAST_ROWS:
        raise ValueError(f"distillation learns from documents, {LEAST_ROWS} at least; got {n}")
    order = np.random.default_rng(seed).permutation(n)[:SEARCH_ROWS]
    choosing, held_out, rest = np.split(order, [max(2, len(order) // 10), max(4, len(order) // 5)])
    ridge = _choose_ridge(X, taught, rest, choosing)
    trial = _fit_ridge(X[rest], taught.select(rest), ridge)
    unseen = np.concatenate([choosing, held_out])
    scores = _scores(trial, X[unseen], taught.domain[unseen])
    temperature = _match_temperature(scores, taught.probabilities[unseen])
    _set_border(trial, X[unseen], taught.select(unseen), temperature)
    codes = predict_codes(_scores(trial, X[held_out], taught.domain[held_out]))
    model = _fit_ridge(X, taught, ridge)
    _set_border(model, X, taught, temperature)
    return model, held_out, codes


def _choose_ridge(X: Rows, taught: Taught, rows: np.ndarray, held_out: np.ndarray) -> float:
    """Return the ridge with the smallest squared error on held-out rows."""
    errors, start = [], None
    for ridge in RIDGES:
        model = _fit_ridge(X[rows], taught.select(rows), ridge, start)
        difference = _scores(model, X[held_out], taught.domain[held_out]) - taught.scores[held_out]
        errors.append(float(np.mean(difference**2)))
        start = model.coef_
    return RIDGES[int(np.argmin(errors))]


def _fit_ridge(X: Rows, taught: Taught, ridge: float, start: np.ndarray | None = None) -> DistilledClassifier:
    """Minimise ``|scores - X w - b|^2 + ridge |w|^2`` with an intercept b for every domain.

    The intercepts drop out of rows and scores less the means of their domains; the rows stay sparse.
    """
    sizes = np.bincount(taught.domain, minlength=len(taught.numbers))
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
    model.domains_, model.domain_sizes_ = taught.numbers, sizes.tolist()
    return model


def _domain_means(values: Any, domain: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Mean row of every domain, of shape (n_domains, n_columns)."""
    sums = [np.asarray(values[domain == i].sum(axis=0)).ravel() for i in range(len(sizes))]
    return np.array(sums) / np.maximum(sizes, 1)[:, None]


def _scores(model: DistilledClassifier, X: Rows, domain: np.ndarray) -> np.ndarray:
    return X @ model.coef_ + model.intercept_[domain]


def _match_temperature(scores: np.ndarray, probabilities: np.ndarray) -> float:
    """Temperature under which scores explain probabilities best: every row counts once for each class."""
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
