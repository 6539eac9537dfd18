"""Estimates of class shares and errors by other papers and packages, from the same probabilities.

Held-out rows of the source calibrate them: probabilities are ``softmax(score / temperature)``.

confidence
    The mean probability of the classes that are not predicted.
doc
    Difference of confidences (Guillory et al., 2021): the source's error plus its mean confidence less the
    target's.
atc
    Average thresholded confidence (Garg et al., 2022): the share of target rows below a threshold of
    confidence. As many held-out rows are below it as are wrong.
em, dys, kdey
    Class shares by QuaPy: expectation maximisation (Saerens et al., 2002), DyS (Maletzke et al., 2019) and
    KDEy (Moreo et al., 2025), at their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from undrift.method.calibrate import HeldOut, class_probabilities

EM_ROUNDS = 1000
NO_SHARE = dict.fromkeys(("estimated_share", "share_low", "share_high"))
NO_ERROR = dict.fromkeys(("expected_error", "expected_low", "expected_high"))
QUANTIFIERS = {"em": "EMQ", "dys": "DyS", "kdey": "KDEyML"}

Estimate = Callable[[HeldOut, np.ndarray], dict[str, Any]]


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


def _expect(error: float) -> dict[str, Any]:
    return {**NO_SHARE, **NO_ERROR, "expected_error": float(np.clip(error, 0, 1)), "known": True}


def _probabilities(held_out: HeldOut) -> np.ndarray:
    return class_probabilities(held_out.scores, held_out.temperature)


def expect_by_confidence(held_out: HeldOut, p: np.ndarray) -> dict[str, Any]:
    """Return one less the mean confidence."""
    return _expect(1 - p.max(axis=1).mean())


def expect_by_difference(held_out: HeldOut, p: np.ndarray) -> dict[str, Any]:
    """Return the source's error plus the difference of the mean confidences."""
    there = _probabilities(held_out)
    error = np.mean(there.argmax(axis=1) != held_out.codes)
    return _expect(error + there.max(axis=1).mean() - p.max(axis=1).mean())


def expect_by_threshold(held_out: HeldOut, p: np.ndarray) -> dict[str, Any]:
    """Return the share of rows that are less confident than the threshold of the source."""
    there = _probabilities(held_out)
    error = np.mean(there.argmax(axis=1) != held_out.codes)
    return _expect(np.mean(p.max(axis=1) < np.quantile(there.max(axis=1), error)))


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are class probabilities."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> GivenProbabilities:
        """Keep the classes."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the rows."""
        return X


def quantify(name: str, held_out: HeldOut, p: np.ndarray) -> dict[str, Any]:
    """Return the class shares that a quantifier of QuaPy estimates from probabilities."""
    from quapy.method import aggregative

    there, y = _probabilities(held_out), held_out.codes
    given = GivenProbabilities().fit(there, y)
    quantifier = getattr(aggregative, name)(given, fit_classifier=False, val_split=None)
    shares = quantifier.fit(there, y).predict(np.asarray(p, dtype=np.float64))
    return {**NO_SHARE, **NO_ERROR, "estimated_share": float(shares[-1]), "known": False}


ESTIMATES: Mapping[str, Estimate] = {
    "confidence": expect_by_confidence,
    "doc": expect_by_difference,
    "atc": expect_by_threshold,
    **{name: partial(quantify, kind) for name, kind in QUANTIFIERS.items()},
}
