"""Distillation: a linear classifier on other features that imitates a fitted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr

from ..core import Rows
from ..inputs import Place
from ..method import (
    Model,
    MSDAClassifier,
    Name,
    Predictor,
    Settings,
    TargetFacts,
    find_border,
    fit_temperature,
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
    prior = classifier.model_.prior[targets]
    told = {classifier.domains_[k]: classifier.targets_[classifier.domains_[k]] for k in targets}
    given = classifier.source_shares_, classifier.settings_
    return Taught(classifier.classes_, probabilities, told, domain, prior, *given)


class DistilledClassifier(Predictor):
    """Linear classifier of sparse rows, with an intercept for every target domain.

    :func:`distill` makes it. It predicts like :class:`MSDAClassifier`, and has no layers: `model_` has one
    reading, of the input. Its attributes are those of the classifier that was distilled, for the targets
    alone; `labelled_counts_` is -1 where a count is not known.
    """

    _dtype = "float64"
    ridge_: float

    def fit(self, X: Rows, y: object) -> DistilledClassifier:
        """Refuse: `distill` fits."""
        raise ValueError("a distilled classifier learns from another one: see TextAdapter.distill")


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
    errors, trial = dict[float, float](), None  # squared, on held-out rows, by ridge
    for ridge in RIDGES:
        trial = _fit_ridge(X[rest], taught.select(rest), ridge, None if trial is None else trial.coef[0])
        difference = _score(trial, X[choosing], taught.domain[choosing]) - taught.scores[choosing]
        errors[ridge] = float(np.mean(difference**2))
    ridge = min(errors, key=lambda ridge: errors[ridge])
    trial = _fit_ridge(X[rest], taught.select(rest), ridge)
    unseen = np.concatenate([choosing, held_out])
    first, temperature = (
        _match_temperature(_score(trial, X[rows], taught.domain[rows]), taught.probabilities[rows])
        for rows in (choosing, unseen)
    )
    trial, domain = _set_border(trial, X[rest], taught.select(rest), first), taught.domain[held_out]
    p = trial.predict(trial.score(X[held_out], [], Place()), domain)
    codes = trial.weigh_classes(p, domain).argmax(axis=1)
    model = DistilledClassifier()
    model.model_ = _set_border(_fit_ridge(X, taught, ridge), X, taught, temperature)
    model.classes_, model.ridge_, model.n_features_in_ = taught.classes, ridge, X.shape[1]
    model.domains_, model.targets_ = list(taught.targets), dict(taught.targets)
    model.source_shares_, model.settings_ = taught.source_shares, taught.settings
    return model, held_out, codes


def _fit_ridge(X: Rows, taught: Taught, ridge: float, start: np.ndarray | None = None) -> Model:
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
    coef = np.column_stack(columns).astype(np.float32)
    n, no_source = len(sizes) + 1, ((0, 1), (0, 0))
    return Model(
        coef=[coef],
        intercept=np.pad(score_means - row_means @ coef, no_source)[None],
        temperature=np.ones(1),
        votes=np.ones((n, 1)),
        shift=np.zeros((n, len(taught.classes))),
        names=["distilled"],
        sentences=["Words mean what the adapter says."],
        prior=np.pad(taught.prior, no_source),
        teacher_weight=np.zeros(n),
    )


def _domain_means(values: Rows, domain: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the mean row of every domain, of shape (n_domains, n_columns)."""
    sums = [np.asarray(values[domain == i].sum(axis=0)).ravel() for i in range(len(sizes))]
    return np.array(sums) / np.maximum(sizes, 1)[:, None]


def _score(model: Model, X: Rows, domain: np.ndarray) -> np.ndarray:
    return X @ model.coef[0] + model.intercept[0, domain]


def _match_temperature(scores: np.ndarray, probabilities: np.ndarray) -> float:
    """Find the temperature that explains probabilities best; every row counts once for each class."""
    n, n_classes = probabilities.shape
    codes = np.repeat(np.arange(n_classes), n)
    return fit_temperature(np.tile(scores, (n_classes, 1)), codes, probabilities.T.ravel())


def _set_border(model: Model, X: Rows, taught: Taught, temperature: float) -> Model:
    """Return the model at a temperature, with the mean probabilities of every domain that were taught."""
    scores, intercept = _score(model, X, taught.domain), model.intercept.copy()
    for i in np.unique(taught.domain).tolist():
        rows = taught.domain == i
        shares = taught.probabilities[rows].mean(axis=0)
        intercept[0, i] += find_border(scores[rows], temperature, shares)
    return replace(model, temperature=np.array([temperature]), intercept=intercept)
