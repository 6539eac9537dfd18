"""Turn scores into probabilities for given or estimated class shares, and compute the expected error.

``p(class | x) = softmax(score(x) / temperature + offset)``. The temperature is learnt on held-out rows of the
source. The offset of a domain makes the mean probability of every class equal to its share there, so that
the largest probability is the prediction with the smallest expected error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, logsumexp, softmax
from sklearn.utils import check_random_state

from ..inputs import savable
from . import constants
from .constants import Transfer
from .shares import Grid, Shares, thin_rows
from .solve import Labels, Posterior, predict_codes


@savable
@dataclass(frozen=True)
class HeldOut:
    """Scores of labelled rows by classifiers that have not seen them."""

    scores: np.ndarray  # (n, n_outputs)
    codes: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    n_domains: int = 3  # that the layers were learnt from

    @cached_property
    def temperature(self) -> float:
        """Divisor that turns these scores into log odds."""
        return fit_temperature(self.scores, self.codes, self.weight)

    @cached_property
    def grids(self) -> dict[Any, dict[Any, Grid]]:
        """Posteriors of the shares of every target before labels, by its position."""
        return {}

    @property
    def class_shares(self) -> np.ndarray:
        """Share of every class among these rows."""
        n_classes = max(2, self.scores.shape[1])
        return np.bincount(self.codes, minlength=n_classes) / len(self.codes)

    @property
    def error(self) -> float:
        """Share of these rows that are predicted wrong, with classes that count alike."""
        return float(np.mean(predict_codes(self.scores) != self.codes))

    @property
    def transfer(self) -> Transfer:
        """Effect of another domain on scores."""
        return constants.PAIR if self.n_domains <= 2 else constants.SEVERAL_DOMAINS

    def target_temperature(self, has_pseudo_labels: bool = False) -> float:
        """Return the temperature of target rows, before or after self-training."""
        transfer = self.transfer
        factor = transfer.after_self_training if has_pseudo_labels else transfer.before_self_training
        return self.temperature * factor


def score_held_out(
    posterior: Posterior, labels: Labels, scores: np.ndarray, seed: Any, n_domains: int = 3
) -> HeldOut:
    """Score labelled rows by classifiers that have not seen them.

    With a class of a single row there are no folds: `scores` on the training rows take their place.
    """
    folds = labels.draw_folds(check_random_state(seed))
    if folds is not None:
        scores = posterior.score_held_out(labels.Y, folds)
    return HeldOut(scores, labels.codes, labels.weight, n_domains)


@dataclass(frozen=True)
class Target:
    """Results of a fit for one target domain."""

    shares: Shares
    shift: np.ndarray  # (n_outputs,) added to its scores for predictions
    prior: np.ndarray  # (n_outputs,) log shares that border="balanced" ignores, for probabilities
    expected_error: ExpectedError | None  # None where there are too few rows to say


def describe_target(
    scores: np.ndarray,
    temperature: float,
    first_scores: np.ndarray,
    held_out: HeldOut,
    shares: Shares,
    error_ratio: float = 1.0,
    *,
    is_balanced: bool,
) -> Target:
    """Find the decision threshold of a target for its shares, and the error to expect of its predictions.

    The expected error comes from scores *before* self-training, which inflates margins, times `error_ratio`.
    """
    border = find_border(scores, temperature, shares.mean)
    added, prior = split_border(border, temperature, shares.mean, is_balanced)
    first_temperature = held_out.target_temperature()
    first_border = find_border(first_scores, first_temperature, shares.mean)
    first_border, _ = split_border(first_border, first_temperature, shares.mean, is_balanced)
    codes = predict_codes(first_scores + first_border)
    if shares.is_assumed:
        return Target(shares, added, prior, None)
    expected = expect_error(first_scores, first_temperature, shares, codes).scale(error_ratio)
    return Target(shares, added, prior, expected.allow_doubts(shares, codes, held_out))


def split_border(
    border: np.ndarray, temperature: float, shares: np.ndarray, is_balanced: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shift of scores for predictions, and the further shift for probabilities."""
    if not is_balanced:
        return border, np.zeros_like(border)
    prior = temperature * np.log(np.maximum(shares, constants.LEAST_SHARE))
    prior = prior[1:] - prior[:1] if len(border) == 1 else prior - prior.mean()
    return border - prior, prior


def expect_error_ratio(n_labelled: int, pseudo_weight: float) -> float:
    """Return the expected ratio of errors after self-training to errors before it.

    `pseudo_weight` is the sum of the weights of pseudo-labels, where a labelled row has weight 1.
    """
    return max(constants.LEAST_ERROR_RATIO, 1 - constants.GAIN_OF_PSEUDO_LABELS * pseudo_weight / n_labelled)


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

    bounds = [(-np.log(constants.LARGEST_TEMPERATURE), 7.0)] + [(-30.0, 30.0)] * n_classes
    start = np.zeros(n_classes + 1)
    return size * float(np.exp(-minimize(log_loss, start, jac=True, bounds=bounds).x[0]))


def find_offset(logits: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Find one constant a class that makes the mean softmax of the logits equal to the shares.

    They minimise the convex function ``mean logsumexp(logits + offset) - shares @ offset``; for two classes
    they are where an increasing function crosses the share.
    """
    shares = np.maximum(shares, constants.LEAST_SHARE)
    shares = shares / shares.sum()
    if len(shares) == 2:
        between = _find_between(logits[:, 1] - logits[:, 0], shares[1:])[0]
        return np.array([-between / 2, between / 2])

    offset = np.log(shares) - np.log(np.maximum(softmax(logits, axis=1).mean(axis=0), constants.LEAST_SHARE))
    for _ in range(200):  # Newton's method: a few steps, where others take hundreds with fifty classes
        p = softmax(logits + offset, axis=1)
        gradient = p.mean(axis=0) - shares
        if np.abs(gradient).max() < 1e-8:
            break
        # plus a constant, along which the function does not change
        curvature = np.diag(p.mean(axis=0) + 1e-9) - p.T @ p / len(p) + 1 / len(shares)
        step = -np.linalg.solve(curvature, gradient)
        step /= max(1.0, np.abs(step).max() / constants.LONGEST_STEP)
        value, slope, size = _mean_logsumexp(logits, offset, shares), gradient @ step, 1.0
        while size > 1e-6 and (
            _mean_logsumexp(logits, offset + size * step, shares) > value + 1e-4 * size * slope + 1e-12
        ):
            size /= 2
        offset = offset + size * step
    return offset - offset.mean()


def _find_between(odds: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Find constants that give log odds given mean probabilities, by Newton's method or bisection."""
    wanted = logit(share)
    low, high = wanted - odds.max() - 1e-9, wanted - odds.min() + 1e-9
    between = (low + high) / 2
    for _ in range(100):
        p = expit(odds + between[:, None])
        excess, slope = p.mean(axis=1) - share, (p * (1 - p)).mean(axis=1)
        low, high = np.where(excess < 0, between, low), np.where(excess > 0, between, high)
        step = between - excess / np.maximum(slope, 1e-300)
        step = np.where((step > low) & (step < high), step, (low + high) / 2)
        if np.abs(step - between).max() < 1e-10:
            return step
        between = step
    return between


def _mean_logsumexp(logits: np.ndarray, offset: np.ndarray, shares: np.ndarray) -> float:
    return float(logsumexp(logits + offset, axis=1).mean() - shares @ offset)


def find_border(scores: np.ndarray, temperature: float, shares: np.ndarray) -> np.ndarray:
    """Find the shift of a domain's scores, of shape (n_outputs,), that its class shares ask for."""
    offset = temperature * find_offset(_thin_logits(as_logits(scores) / temperature), shares)
    return offset[1:] - offset[:1] if scores.shape[1] == 1 else offset


def _thin_logits(logits: np.ndarray) -> np.ndarray:
    """Return at most `OFFSET_ROWS` rows that stand for all, by how much they favour the last class."""
    return thin_rows(logits, logits[:, -1] - logits[:, :-1].max(axis=1), constants.OFFSET_ROWS)


@dataclass(frozen=True)
class ExpectedError:
    """Share of a target's predictions that are expected to be wrong, with a 90% interval."""

    error: float | None  # None where only bounds are known
    low: float
    high: float

    def scale(self, error_ratio: float) -> ExpectedError:
        """Return the error after self-training; at the lower end it helps far more."""
        error = None if self.error is None else error_ratio * self.error
        low = constants.BEST_ERROR_RATIO * error_ratio * self.low
        return ExpectedError(error, low, error_ratio * self.high)

    def allow_doubts(self, shares: Shares, codes: np.ndarray, held_out: HeldOut) -> ExpectedError:
        """Return bounds that hold if scores mislead, and no estimate where that is probable.

        If scores do not tell the classes apart, the predictions `codes` are as wrong as chance. If only the
        shares are wrong and in truth the source's, as many more predictions are wrong as the shares differ.
        Without an estimate, they may be as right as held-out rows of the source.
        """
        middle, low, high, source = self.error, self.low, self.high, held_out.class_shares
        if shares.unseparated >= constants.LEAST_DOUBT:
            high = max(high, expect_chance(codes, source))
        if shares.is_contradicted and middle is not None:
            high = max(high, middle + float(np.abs(shares.mean - source).sum() / 2))
        if shares.is_doubtful:
            middle, low = None, min(low, held_out.error)
        return ExpectedError(middle, low, high)

    def describe(self) -> dict[str, Any]:
        """Return the values that estimators show."""
        return {**vars(self), "known": self.error is not None}


def expect_chance(codes: np.ndarray, shares: np.ndarray) -> float:
    """Return the error of predictions that do not depend on the class, at given class shares."""
    return float(1 - np.bincount(codes, minlength=len(shares)) / len(codes) @ shares)


def expect_error(scores: np.ndarray, temperature: float, shares: Shares, codes: np.ndarray) -> ExpectedError:
    """Average the probability of a class other than the predicted `codes`, over shares and temperatures.

    `scores` are of target rows, up to a constant per output.
    """
    logits = as_logits(scores)
    rows, sign = np.arange(len(codes)), np.where(codes == 1, 1, -1)
    factors = np.exp(constants.LOG_TEMPERATURE_SPREAD * np.sqrt(3) * np.array([-1.0, 0.0, 1.0]))
    masses = np.array([1, 4, 1]) / 6  # the three-point quadrature of a normal distribution
    errors = np.empty((len(factors), len(shares.draws)))
    for i, factor in enumerate(factors):
        scaled = logits / (temperature * factor)
        few = _thin_logits(scaled)
        if logits.shape[1] == 2:  # all draws at once
            draws = np.clip(shares.draws[:, 1], constants.LEAST_SHARE, 1 - constants.LEAST_SHARE)
            between = _find_between(few[:, 1] - few[:, 0], draws)[:, None]
            errors[i] = expit((scaled[:, 0] - scaled[:, 1] - between) * sign).mean(axis=1)
            continue
        for j, draw in enumerate(shares.draws):
            p = softmax(scaled + find_offset(few, draw), axis=1)
            errors[i, j] = 1 - p[rows, codes].mean()
    error = float(errors[1].mean())
    low, high = _find_quantiles(errors, masses, [0.05, 0.95])
    return ExpectedError(error, float(min(low, error)), float(max(high, error)))


def _find_quantiles(values: np.ndarray, masses: np.ndarray, levels: list[float]) -> np.ndarray:
    """Find quantiles of a mixture of distributions. Each row holds equally likely values of one."""
    n, points = values.shape[1], np.sort(values, axis=None)
    steps = np.linspace(0, 1, n) if n > 1 else [0.5]
    below = [np.interp(points, np.sort(row), steps, left=0, right=1) for row in values]
    return np.interp(levels, masses @ below, points)
