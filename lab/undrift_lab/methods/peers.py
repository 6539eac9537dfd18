"""Peers: methods of scikit-learn, skada and adapt on the rows that the other methods have.

A peer sees the tf-idf rows of the source and of the target, labels of the source alone, and no other domain.
It is given a logistic regression whose C is chosen by cross-validation on the source's labels, on the rows
as the method has changed them. Packages that take no sparse rows get the leading singular components of both
domains' rows. Where skada can score settings without target labels, it chooses among those of `Peer.grid`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from undrift.core import Rows, stack_rows

from ..catalogue import PEERS, Peer
from ..parts import part_labels, part_rows
from .baselines import get_representation, tfidf
from .cells import Bench, Cell, Finding, Outcome
from .resources import measure_time

C_GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
WIDE_GRID = (0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5)  # for rows that a method may have scaled
EM_ROUNDS = 1000
SOURCE, TARGET = 1, -2  # numbers of the two domains for skada


class NaiveBayesFeatures(TransformerMixin, BaseEstimator):
    """Presence of terms times their log-count ratio between two classes (Wang and Manning, 2012).

    Several classes take one classifier each, against the others.
    """

    def fit(self, X: Rows, y: np.ndarray) -> NaiveBayesFeatures:
        """Learn the ratio of every column, with one count added."""
        classes = np.unique(y)
        if len(classes) != 2:
            raise ValueError(f"log-count ratios need two classes, but there are {len(classes)}")
        counts = [1 + np.asarray((X[y == label] > 0).sum(axis=0)).ravel() for label in classes]
        self.ratio_ = np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum())
        return self

    def transform(self, X: Rows) -> Rows:
        """Return the columns, weighted."""
        return (X > 0).multiply(self.ratio_[None, :]).tocsr()


class ChosenLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression with the C that is best in cross-validation, the smallest of several.

    Candidates are compared without sample weights, which only the final fit has.
    """

    def __init__(self, Cs: Sequence[float] = C_GRID) -> None:
        self.Cs = Cs

    def fit(self, X: Rows, y: np.ndarray, sample_weight: np.ndarray | None = None) -> ChosenLogistic:
        """Choose C, then learn with it."""
        scores = np.mean([self._score(X, y, *fold) for fold in StratifiedKFold(3).split(X, y)], axis=0)
        self.C_ = self.Cs[int(np.argmax(scores))]
        self.model_ = LogisticRegression(C=self.C_, max_iter=1000).fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def _score(self, X: Rows, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[float]:
        """Accuracy for each C; every fit starts at the weights of the C before it."""
        model, scores = LogisticRegression(max_iter=1000, warm_start=True), []
        for C in self.Cs:
            model.set_params(C=C).fit(X[train], y[train])
            scores.append(float(model.score(X[test], y[test])))
        return scores

    def predict(self, X: Rows) -> np.ndarray:
        """Return the most probable class of each row."""
        return self.model_.predict(X)

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return class probabilities."""
        return self.model_.predict_proba(X)


def estimate_prior_ratio(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Class shares of the target over those of the source, by EM (Saerens, Latinne and Decaestecker, 2002).

    Parameters
    ----------
    p : array of shape (n_target, n_classes)
        Probabilities of target rows by a classifier of the source.
    y : array of shape (n,)
        Labels of the source.
    """
    source = np.unique(y, return_counts=True)[1] / len(y)
    shares = source
    for _ in range(EM_ROUNDS):
        posterior = p * (shares / source)
        shares = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares / source


def fit_peers(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit every task in a process of its own, several at once."""
    rows = get_representation(tfidf, bench, None).candidates[0].rows
    return bench.spread([[cell] for cell in cells], partial(_fit_cell, bench.detach(), rows), processes=True)


def _fit_cell(bench: Bench, rows: Mapping[str, Rows], cells: Sequence[Cell]) -> Iterator[Outcome]:
    (cell,), corpus = cells, bench.corpus
    train, test = (part_rows(corpus, part) for part in ((cell.source, "train"), (cell.target, "test")))
    seen = np.arange(len(corpus.domains[cell.target]))
    if bench.setting.inductive:
        seen = np.setdiff1d(seen, test)
    X, y, target = rows[cell.source][train], part_labels(corpus, cell.source, "train"), rows[cell.target]
    yield Outcome(cell, *fit_task(PEERS[cell.method], X, y, target[seen], target[test], bench.seed))


def fit_task(
    peer: Peer, X: Rows, y: np.ndarray, X_target: Rows, X_test: Rows, seed: int
) -> tuple[np.ndarray, dict[str, Any], float, float]:
    """Fit a peer; return predictions of test rows, parameters, and the seconds of fit and prediction."""
    # skada needs the routing of metadata, and enables it on import for the whole process
    routing = config_context(enable_metadata_routing=peer.package == "skada")
    with routing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module(peer.package)  # before anything is timed
        fit = fit_sklearn if peer.package == "sklearn" else fit_dense
        (predict, params), fit_seconds = measure_time(fit, peer, X, y, X_target, seed)
        predicted, seconds = measure_time(predict, X_test)
    return np.asarray(predicted), params, fit_seconds, seconds


Predict = Callable[[Rows], np.ndarray]


def fit_sklearn(
    peer: Peer, X: Rows, y: np.ndarray, X_target: Rows, seed: int
) -> tuple[Predict, dict[str, Any]]:
    """Fit a method of scikit-learn on sparse rows, or on the components that others get."""
    if peer.n_components:
        n = peer.n_components[0]
        reduction, source, _ = reduce_rows(n, X, X_target, seed)
        model = ChosenLogistic(WIDE_GRID).fit(source, y)
        return lambda rows: model.predict(reduction.transform(rows)), {"C": model.C_, "components": n}
    if peer.name == "naive-bayes":
        weighted = OneVsRestClassifier(make_pipeline(NaiveBayesFeatures(), ChosenLogistic())).fit(X, y)
        Cs = [one[-1].C_ for one in weighted.estimators_]
        return weighted.predict, {"C": Cs[0] if len(Cs) == 1 else Cs}
    chosen = ChosenLogistic().fit(X, y)
    params = {"C": chosen.C_}
    if peer.name == "logistic-em":
        ratio = estimate_prior_ratio(chosen.predict_proba(X_target), y)
        return lambda rows: chosen.classes_[(chosen.predict_proba(rows) * ratio).argmax(axis=1)], params
    if peer.name != "self-training":
        return chosen.predict, params
    codes = np.unique(y, return_inverse=True)[1]
    labels = np.concatenate([codes, np.full(X_target.shape[0], -1)])  # -1: no label
    base = LogisticRegression(C=params["C"], max_iter=1000)
    model = SelfTrainingClassifier(base).fit(stack_rows([X, X_target]), labels)
    return lambda rows: np.unique(y)[model.predict(rows)], {**params, "n_rounds": int(model.n_iter_)}


def fit_dense(
    peer: Peer, X: Rows, y: np.ndarray, X_target: Rows, seed: int
) -> tuple[Predict, dict[str, Any]]:
    """Fit a method of skada or adapt on dense rows, with the best of its settings."""
    classes, codes = np.unique(y, return_inverse=True)
    reduction, source, target = reduce_rows(peer.n_components[0], X, X_target, seed)
    settings = [
        {**peer.settings, **dict(zip(peer.grid, values, strict=True))}
        for values in product(*peer.grid.values())
    ]
    scores = [0.0]
    if len(settings) > 1:
        scores = [_score_without_labels(_build(peer, s), codes, source, target, seed) for s in settings]
    setting = settings[int(np.argmax(scores))]
    fit = _fit_skada if peer.package == "skada" else _fit_adapt
    predict = fit(_build(peer, setting), codes, source, target)
    params = {"components": peer.n_components[0], **setting}
    return lambda rows: classes[np.asarray(predict(reduction.transform(rows))).astype(int)], params


def reduce_rows(n: int, X: Rows, X_target: Rows, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Leading singular components of the rows of both domains."""
    both = stack_rows([X, X_target]).astype(np.float64)
    reduction = TruncatedSVD(min(n, min(both.shape) - 1), random_state=seed).fit(both)
    return reduction, reduction.transform(X), reduction.transform(X_target)


def _build(peer: Peer, setting: Mapping[str, Any]) -> Any:
    """The estimator of a package around a logistic regression that chooses its C whenever it is fitted."""
    method = getattr(import_module(peer.package), peer.name)
    if peer.package != "skada":
        return method(ChosenLogistic(WIDE_GRID), verbose=0, random_state=0, **setting)
    if peer.name == "JDOTClassifier":  # fits it in every iteration, on rows as they are
        return method(LogisticRegression(C=10.0, max_iter=1000), **setting)
    return method(ChosenLogistic(WIDE_GRID).set_fit_request(sample_weight=True), **setting)


def _stack_domains(
    source: np.ndarray, codes: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels and domains as skada has them: labels of the target are masked by -1."""
    labels = np.concatenate([codes, np.full(len(target), -1)])
    domains = np.repeat([SOURCE, TARGET], [len(source), len(target)])
    return np.vstack([source, target]), labels, domains


def _fit_skada(model: Any, codes: np.ndarray, source: np.ndarray, target: np.ndarray) -> Predict:
    X, labels, domains = _stack_domains(source, codes, target)
    model.fit(X, labels, sample_domain=domains)
    return lambda rows: model.predict(rows, sample_domain=np.full(len(rows), TARGET))


def _fit_adapt(model: Any, codes: np.ndarray, source: np.ndarray, target: np.ndarray) -> Predict:
    model.fit(source, codes, target)
    return model.predict


def _score_without_labels(
    model: Any, codes: np.ndarray, source: np.ndarray, target: np.ndarray, seed: int
) -> float:
    """Score settings by skada's circular validation on held-out rows of both domains."""
    metrics, selection = import_module("skada.metrics"), import_module("skada.model_selection")
    X, labels, domains = _stack_domains(source, codes, target)
    cv = selection.SourceTargetShuffleSplit(n_splits=1, test_size=0.3, random_state=seed)
    scored = import_module("sklearn.model_selection").cross_validate(
        model, X, labels, params={"sample_domain": domains}, cv=cv,
        scoring=metrics.CircularValidation(), error_score=-np.inf,
    )  # fmt: skip
    return float(np.mean(scored["test_score"]))
