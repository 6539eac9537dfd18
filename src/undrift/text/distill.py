"""Distillation: a linear classifier on other features that imitates a fitted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..core import Rows
from ..method import (
    MSDAClassifier,
    Name,
    Settings,
    TargetFacts,
    TargetResults,
    class_probabilities,
    find_border,
    fit_temperature,
    predict_codes,
    shift_probabilities,
)

LEAST_ROWS = 10
TOLERANCE = 1e-5  # of the iterations
RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # for rows of length 1; the larger of equals is chosen
MOST_ROWS = 20_000  # that the ridge is chosen and the fidelity is measured on
LEAST_PROBABILITY = 0.002  # so that scores of sure rows are bounded


@dataclass(frozen=True)
class Taught:
    """Answers of a fitted classifier for some rows."""

    classes: np.ndarray
    probabilities: np.ndarray  # (n, n_classes)
    targets: dict[Name, TargetFacts]  # what is known of the target domains
    domain: np.ndarray  # (n,) of int: positions among these
    prior: np.ndarray  # (n_domains, n_classes) log shares that predictions ignore
    source_shares: np.ndarray  # (n_classes,)
    settings: Settings  # of the fit

    @property
    def scores(self) -> np.ndarray:
        """Log odds of the second of two classes, or centred log probabilities: (n, n_outputs)."""
        logs = np.log(np.maximum(self.probabilities, LEAST_PROBABILITY))
        return logs[:, 1:] - logs[:, :1] if logs.shape[1] == 2 else logs - logs.mean(axis=1, keepdims=True)

    def select(self, rows: np.ndarray) -> Taught:
        """Return the same of some of the rows."""
        return replace(self, probabilities=self.probabilities[rows], domain=self.domain[rows])

    @property
    def predicted(self) -> np.ndarray:
        """Codes of the predicted classes, of shape (n,)."""
        return (np.log(np.maximum(self.probabilities, 1e-12)) - self.prior[self.domain]).argmax(axis=1)


def ask_teacher(classifier: MSDAClassifier, X: Rows, target: Name | Sequence[Name] | None = None) -> Taught:
    """Return the answers of a fitted `MSDAClassifier` for rows of its targets.

    `target` is the name of the target that the rows are of, or a list with one for each row.
    """
    names = list(target) if isinstance(target, list | np.ndarray) else [target] * X.shape[0]
    known = {name: classifier.find_target(name) for name in set(names)}
    positions = np.array([known[name] for name in names], dtype=int)
    probabilities = np.empty((len(positions), len(classifier.classes_)))
    for k in np.unique(positions):
        rows = np.flatnonzero(positions == k)
        probabilities[rows] = classifier.predict_proba(X[rows], target=classifier.domains_[k])
    targets, domain = np.unique(positions, return_inverse=True)
    prior = classifier.list_priors()[targets]
    told = {classifier.domains_[k]: classifier.targets_[classifier.domains_[k]] for k in targets}
    given = classifier.source_shares_, classifier.settings_
    return Taught(classifier.classes_, probabilities, told, domain, prior, *given)


class DistilledClassifier(ClassifierMixin, TargetResults, BaseEstimator):
    """Linear classifier of sparse rows, with an intercept for every target domain.

    :func:`distill` makes it. It predicts like :class:`MSDAClassifier`, and has no layers. Its attributes are
    those of the classifier that was distilled, for the targets alone; `coef_` is one array of shape
    (d, n_outputs), and `labelled_counts_` is -1 where a count is not known.
    """

    coef_: np.ndarray
    intercept_: np.ndarray  # (n_domains, n_outputs)
    temperature_: float
    shift_: np.ndarray  # (n_domains, n_classes) added to log probabilities
    prior_: np.ndarray  # (n_domains, n_classes) log shares that predictions ignore

    def fit(self, X: Rows, y: object) -> DistilledClassifier:
        """Refuse: `distill` fits."""
        raise ValueError("a distilled classifier learns from another one: see TextAdapter.distill")

    def decision_function(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Return scores: of shape (n,) for two classes (positive for the second), else (n, n_classes)."""
        logs = np.log(np.maximum(self.predict_proba(X, target=target), 1e-12))
        logs = logs - self.prior_[self.find_target(target)]
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Predict labels."""
        scores = self.decision_function(X, target=target)
        return self.classes_[predict_codes(scores.reshape(len(scores), -1))]

    def predict_proba(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Return probabilities of the classes."""
        check_is_fitted(self)
        k = self.find_target(target)
        return self._predict_aligned(X, k, self.shift_[k])

    def scores_to_proba(self, scores: np.ndarray, *, target: Name | None = None) -> np.ndarray:
        """Return `predict_proba` of rows from their `decision_function`."""
        logs = np.column_stack([np.zeros(len(scores)), scores]) if np.ndim(scores) == 1 else scores
        return softmax(logs + self.prior_[self.find_target(target)], axis=1)

    def _is_balanced(self) -> bool:
        return bool(self.prior_.any())

    def _predict_aligned(self, X: Rows, k: int, shift: np.ndarray) -> np.ndarray:
        p = class_probabilities(X @ self.coef_ + self.intercept_[k], self.temperature_)
        return shift_probabilities(p, shift)

    def _keep_shift(self, k: int, shift: np.ndarray) -> None:
        self.shift_ = self.shift_.copy()
        self.shift_[k] = shift


def distill(X: Rows, taught: Taught, seed: int = 0) -> tuple[DistilledClassifier, np.ndarray, np.ndarray]:
    """Fit a linear classifier to the log odds of another one, on rows of length 1.

    The ridge is chosen on a tenth of the rows. Temperature and border are those under which its probabilities
    are closest to the other's, and its class shares equal. Returns the classifier, the positions of another
    tenth of the rows, and the codes that a classifier predicts there which was fitted without either tenth.
    """
    n = X.shape[0]
    if n < LEAST_ROWS:
        raise ValueError(f"distillation learns from documents, {LEAST_ROWS} at least; got {n}")
    order = np.random.default_rng(seed).permutation(n)[:MOST_ROWS]
    choosing, held_out, rest = np.split(order, [max(2, len(order) // 10), max(4, len(order) // 5)])
    trials: list[tuple[float, DistilledClassifier]] = []  # squared errors on held-out rows, and models
    for ridge in RIDGES:
        trial = _fit_ridge(X[rest], taught.select(rest), ridge, trials[-1][1].coef_ if trials else None)
        difference = _scores(trial, X[choosing], taught.domain[choosing]) - taught.scores[choosing]
        trials.append((float(np.mean(difference**2)), trial))
    ridge = min(trials, key=itemgetter(0))[1].ridge_
    trial = _fit_ridge(X[rest], taught.select(rest), ridge)
    unseen = np.concatenate([choosing, held_out])
    first, temperature = (
        _match_temperature(_scores(trial, X[rows], taught.domain[rows]), taught.probabilities[rows])
        for rows in (choosing, unseen)
    )
    _set_border(trial, X[rest], taught.select(rest), first)
    p = class_probabilities(_scores(trial, X[held_out], taught.domain[held_out]), first)
    codes = (np.log(np.maximum(p, 1e-12)) - taught.prior[taught.domain[held_out]]).argmax(axis=1)
    model = _fit_ridge(X, taught, ridge)
    _set_border(model, X, taught, temperature)
    return model, held_out, codes


def _fit_ridge(X: Rows, taught: Taught, ridge: float, start: np.ndarray | None = None) -> DistilledClassifier:
    """Minimise ``|scores - X w - b|^2 + ridge |w|^2`` with an intercept b for every domain.

    The intercepts drop out of rows and scores less the means of their domains; the rows stay sparse.
    """
    sizes = np.bincount(taught.domain, minlength=len(taught.targets))
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
    model.domains_, model.targets_ = list(taught.targets), dict(taught.targets)
    model.source_shares_, model.settings_ = taught.source_shares, taught.settings
    return model


def _domain_means(values: Rows, domain: np.ndarray, sizes: np.ndarray) -> np.ndarray:
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
    """Set temperature and intercepts, for the mean probabilities of every domain that were taught."""
    scores = _scores(model, X, taught.domain)
    model.temperature_, model.prior_ = temperature, taught.prior
    model.shift_ = np.zeros(taught.prior.shape)
    for i in np.unique(taught.domain).tolist():
        rows = taught.domain == i
        shares = taught.probabilities[rows].mean(axis=0)
        model.intercept_[i] += find_border(scores[rows], temperature, shares)
