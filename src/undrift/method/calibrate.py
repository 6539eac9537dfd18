"""Turn scores into probabilities for given class shares.

``p(class | x) = softmax(score(x) / temperature + offset)``. The temperature is learnt on held-out rows of the
source. The offset of a domain makes the mean probability of every class equal to its share there, so that
the largest probability is the prediction with the smallest expected error.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_softmax, logit, logsumexp, softmax

from .shares import LEAST_SHARE, thin_rows

_LARGEST_TEMPERATURE = 5.0  # over the root mean square of scores that say nothing of the classes
_LONGEST_STEP = 5.0  # of an offset, in one step of Newton's method
_OFFSET_ROWS = 1_000  # of two classes that an offset is computed from, at most


def as_logits(scores: np.ndarray) -> np.ndarray:
    """Return scores of every class, of shape (n, n_classes); for two classes those of the first are 0."""
    return np.column_stack([np.zeros(len(scores)), scores[:, 0]]) if scores.shape[1] == 1 else scores


def class_probabilities(scores: np.ndarray, temperature: float | np.ndarray) -> np.ndarray:
    """Return class probabilities of shape (n, n_classes) from scores of shape (n, n_outputs)."""
    return softmax(as_logits(scores) / temperature, axis=1)


def fit_temperature(scores: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """Find the temperature of least weighted log loss on held-out scores, with free offsets."""
    logits, n_classes = as_logits(scores), as_logits(scores).shape[1]
    weight, is_class = weight / weight.sum(), codes[:, None] == np.arange(n_classes)
    size = float(np.sqrt(np.mean(scores**2))) or 1.0

    def log_loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_slope, offset = parameters[0], parameters[1:]
        scaled = logits * (np.exp(log_slope) / size)
        log_p = log_softmax(scaled + offset, axis=1)
        error = weight[:, None] * (np.exp(log_p) - is_class)
        gradient = np.append((error * scaled).sum(), error.sum(axis=0))
        return -float(weight @ log_p[is_class]), gradient

    bounds = [(-np.log(_LARGEST_TEMPERATURE), 7.0)] + [(-30.0, 30.0)] * n_classes
    start = np.zeros(n_classes + 1)
    return size * float(np.exp(-minimize(log_loss, start, jac=True, bounds=bounds).x[0]))


def find_offset(logits: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Find one constant a class that makes the mean softmax of the logits equal to the shares.

    They minimise the convex function ``mean logsumexp(logits + offset) - shares @ offset``; for two classes
    they are where an increasing function crosses the share.
    """
    shares = np.maximum(shares, LEAST_SHARE)
    shares = shares / shares.sum()
    if len(shares) == 2:
        odds, wanted = logits[:, 1] - logits[:, 0], float(logit(shares[1]))
        low, high = wanted - odds.max() - 1e-9, wanted - odds.min() + 1e-9
        between = brentq(lambda between: expit(odds + between).mean() - shares[1], low, high, xtol=1e-10)
        return np.array([-between / 2, between / 2])

    offset = np.log(shares) - np.log(np.maximum(softmax(logits, axis=1).mean(axis=0), LEAST_SHARE))
    for _ in range(200):  # Newton's method: a few steps, where others take hundreds with fifty classes
        p = softmax(logits + offset, axis=1)
        gradient = p.mean(axis=0) - shares
        if np.abs(gradient).max() < 1e-8:
            break
        # plus a constant, along which the function does not change
        curvature = np.diag(p.mean(axis=0) + 1e-9) - p.T @ p / len(p) + 1 / len(shares)
        step = -np.linalg.solve(curvature, gradient)
        step /= max(1.0, np.abs(step).max() / _LONGEST_STEP)
        value, slope, size = _mean_logsumexp(logits, offset, shares), gradient @ step, 1.0
        while size > 1e-6 and (
            _mean_logsumexp(logits, offset + size * step, shares) > value + 1e-4 * size * slope + 1e-12
        ):
            size /= 2
        offset = offset + size * step
    return offset - offset.mean()


def _mean_logsumexp(logits: np.ndarray, offset: np.ndarray, shares: np.ndarray) -> float:
    return float(logsumexp(logits + offset, axis=1).mean() - shares @ offset)


def find_border(scores: np.ndarray, temperature: float, shares: np.ndarray) -> np.ndarray:
    """Find the shift of a domain's scores, of shape (n_outputs,), that its class shares ask for."""
    if scores.shape[1] == 1:  # rows of two classes have an order, so that few stand for all
        scores = thin_rows(scores, scores[:, 0], _OFFSET_ROWS)
    offset = temperature * find_offset(as_logits(scores) / temperature, shares)
    return offset[1:] - offset[:1] if scores.shape[1] == 1 else offset
