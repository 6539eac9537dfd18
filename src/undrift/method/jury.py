"""The jury: the readings of a target vote with their probabilities, and labels settle who was right.

Every reading has votes before any label. A label multiplies them by the probability that the reading gave to
it, a part of which, `doubt`, is spread over all classes, so that nobody is sure. The row to ask about is the
one with the largest mutual information between its label and the reading.

The mixture may be off as a whole. Its log odds are taken to be off by one constant for every class, with a
normal prior of standard deviation `spread`. Labels tell these constants. Their posterior gives intervals of
shares and the mix of classes that the labels show, however the labelled rows were chosen by what is known of
them without their labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logit, softmax
from scipy.stats import norm

from .settings import VoteSettings

_LEAST = 1e-6  # probability, so that logarithms stay finite
_N_DRAWS = 100  # of a correction
_CORRECTIONS = np.linspace(-10, 10, 401)  # of the log odds that a row is wrong


def weigh(votes: np.ndarray, p: np.ndarray, n_classes: int, doubt: float) -> np.ndarray:
    """Return the votes after labels, (n_readings,).

    `p`, (n_readings, n_labels), is the probability that every reading gave to every label.
    """
    return _normalize(_take_log(votes) + _doubt(p, n_classes, doubt).sum(axis=1))


def leave_one_out(votes: np.ndarray, p: np.ndarray, n_classes: int, doubt: float) -> np.ndarray:
    """Return the votes after all labels but one, for every label: (n_labels, n_readings)."""
    logs = _doubt(p, n_classes, doubt)
    total = _take_log(votes) + logs.sum(axis=1)
    return np.array([_normalize(total - single) for single in logs.T]).reshape(-1, len(votes))


def _doubt(p: np.ndarray, n_classes: int, doubt: float) -> np.ndarray:
    return np.log((1 - doubt) * p + doubt / n_classes)


def _take_log(votes: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(votes, 1e-300))


def _normalize(logs: np.ndarray) -> np.ndarray:
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def mix(votes: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the mixture's probabilities, (n_rows, n_classes), of the readings' `p`, which come first."""
    return np.einsum("r,rnc->nc", votes / votes.sum(), p)


def measure_information(votes: np.ndarray, p: np.ndarray, doubt: float) -> np.ndarray:
    """Return the mutual information between the label of every row and the reading that is right: (n_rows,).

    `p` are the readings' probabilities, (n_readings, n_rows, n_classes).
    """
    p = (1 - doubt) * p + doubt / p.shape[2]
    both = mix(votes, p)
    return -(both * np.log(both)).sum(axis=1) + votes / votes.sum() @ (p * np.log(p)).sum(axis=2)


@dataclass(frozen=True)
class Estimate:
    """What a mixture says of a target: class shares and the error of predictions, with 90% intervals."""

    shares: np.ndarray  # (n_classes,)
    shares_interval: np.ndarray  # (n_classes, 2)
    error: float
    low: float
    high: float
    confusion: np.ndarray  # (n_classes, n_classes) share of rows by true and predicted class


def estimate(
    p: np.ndarray,
    labelled: np.ndarray,
    codes: np.ndarray,
    settings: VoteSettings,
    *,
    is_balanced: bool = False,
) -> Estimate:
    """Estimate shares and error from a mixture's probabilities and from labels.

    `p` are those of the target's rows, and `labelled` those of labelled rows by votes and readings that have
    not seen their label. With `is_balanced` predictions are of classes that count alike.
    """
    draws = _draw_shares(p, labelled, codes, settings.spread, settings.interval_trust)
    shares = find_mix(p, labelled, codes, settings.spread) if len(codes) else p.mean(axis=0)
    ends = np.quantile(draws, [0.05, 0.95], axis=0).T
    ends = np.column_stack([np.minimum(ends[:, 0], shares), np.maximum(ends[:, 1], shares)])
    prior = np.maximum(shares, _LEAST) if is_balanced else np.ones(len(shares))
    guesses, told = (p / prior).argmax(axis=1), (labelled / prior).argmax(axis=1)
    doubt, labelled_doubt = 1 - p[np.arange(len(p)), guesses], 1 - labelled[np.arange(len(told)), told]
    corrected, low, high = _correct_doubt(doubt, labelled_doubt, told != codes, settings)
    is_guess = guesses[:, None] == np.arange(p.shape[1])
    rest = p * (corrected / np.maximum(doubt, _LEAST))[:, None]  # other classes share a doubt as before
    confusion = np.where(is_guess, 1 - corrected[:, None], rest).T @ is_guess / len(p)
    return Estimate(shares, ends, float(corrected.mean()), low, high, confusion)


def find_mix(p: np.ndarray, labelled: np.ndarray, codes: np.ndarray, spread: float) -> np.ndarray:
    """Return the class shares of a target that labels show; arguments as of `estimate`."""
    return _draw_shares(p, labelled, codes, spread, 1.0).mean(axis=0)


def _draw_shares(
    p: np.ndarray, labelled: np.ndarray, codes: np.ndarray, spread: float, trust: float
) -> np.ndarray:
    """Draw class shares from their posterior, (n_draws, n_classes), where a label counts `trust` times."""
    logs = np.log(np.maximum(p, _LEAST))
    given = np.log(np.maximum(labelled, _LEAST))
    middle, covariance = fit_correction(given, codes, p.shape[1], spread, trust)
    corrections = np.random.default_rng(0).multivariate_normal(middle, covariance, _N_DRAWS)
    return np.array([softmax(logs + correction, axis=1).mean(axis=0) for correction in corrections])


def fit_correction(
    logs: np.ndarray, codes: np.ndarray, n_classes: int, spread: float, trust: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return mode and covariance of the posterior of the constants by which log probabilities are off.

    The log posterior is concave: Newton's method with steps of at most 2 finds its mode.
    """
    correction, is_class = np.zeros(n_classes), codes[:, None] == np.arange(n_classes)
    while True:
        p = softmax(logs + correction, axis=1)
        slope = trust * (is_class - p).sum(axis=0) - correction / spread**2
        curvature = trust * (np.diag(p.sum(axis=0)) - p.T @ p) + np.eye(n_classes) / spread**2
        step = np.linalg.solve(curvature, slope)
        if np.abs(step).max() < 1e-8:
            return correction, np.linalg.inv(curvature)
        correction = correction + step / max(1.0, np.abs(step).max() / 2)


def _correct_doubt(
    doubt: np.ndarray, labelled_doubt: np.ndarray, is_wrong: np.ndarray, settings: VoteSettings
) -> tuple[np.ndarray, float, float]:
    """Return the probability of every row to be wrong, and the interval of their mean.

    A row is wrong with the log odds of its doubt plus a correction, the same for all rows, which labels tell.
    Before labels it is such that the log odds of the error are normal around those of the mean doubt.
    `labelled_doubt` are the doubts of labelled rows.
    """
    odds, labelled_odds = (logit(np.clip(each, 1e-3, 1 - 1e-3)) for each in (doubt, labelled_doubt))
    errors = np.array([expit(odds + correction).mean() for correction in _CORRECTIONS])
    likelihood = log_expit(np.where(is_wrong, 1, -1) * (labelled_odds + _CORRECTIONS[:, None])).sum(axis=1)
    gap = logit(errors) - logit(expit(odds).mean())
    prior = norm.logpdf(gap, scale=settings.error_spread) + np.log(np.gradient(gap))
    weights = _normalize(settings.interval_trust * likelihood + prior)
    low, high = np.interp([0.05, 0.95], np.cumsum(weights) - weights / 2, errors)
    if len(labelled_doubt):
        weights = _normalize(likelihood + prior)
        doubt = sum(w * expit(odds + correction) for w, correction in zip(weights, _CORRECTIONS, strict=True))
    return doubt, float(min(low, doubt.mean())), float(max(high, doubt.mean()))
