"""Estimate the class shares of a target domain from scores alone, without a target label.

The model. Scores of a class against the rest are, in the target, two normal distributions with the standard
deviation ``s``: ``share`` of the rows in the upper one, midpoint ``mu``, half distance ``m``. Mean and
variance of the scores are known well, so that ``share`` and the separation ``d = m / s`` determine the rest:

    s^2 = variance / (1 + 4 share (1 - share) d^2),    m = d s,    mu = mean - (2 share - 1) m

Normal distributions that overlap can be separated only with prior knowledge. Three priors supply it:

    (log d - log d_source - slope log(s / s_source)) / separation_spread  ~  Student's t(tail)
              classes are less separated in another domain, now and then much less, and scores that are less
              spread separate them less; d_source counts as at most MOST_SEPARATED, since classes that come
              apart so far say nothing of another domain
    (mu - mu_source) / s  ~  N(0, midpoint_spread^2)
              another domain moves the midpoint a little, other class shares move the mean a lot
    share  ~  as in the source (within same_spread) with probability `same`, else its log odds differ from the
              source's by `shift` times Student's t(tail)

With a flat prior on ``log s``, integrating over ``mu`` and ``s`` near the values above multiplies by their
posterior widths, which grow as ``s^2``, and by their prior densities, which fall as ``1 / s^2``: no power of
``s`` is left.

Scores are only nearly normal, so a target counts as at most `effective_rows` rows. The posterior is summed
over a grid of (share, d); nothing is maximised. Where scores say little the result is close to the priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logit
from scipy.stats import norm, t

from .settings import ShareSettings

SHARES = np.linspace(0, 1, 101)
_STEP, _UP = 0.1, 1.0  # of the grid of log d, and its reach above the source's
_VALUES = 500  # scores that a likelihood is computed from
LEAST_SHARE = 1e-6  # instead of 0, so that log odds stay finite
MOST_SEPARATED, LEAST_SEPARATED = 3.0, 0.1  # half distance of the classes, in standard deviations


@dataclass(frozen=True)
class SourceScores:
    """Scores of labelled rows by classifiers that have not seen them."""

    scores: np.ndarray  # (n, n_outputs)
    codes: np.ndarray  # (n,)
    n_classes: int

    @property
    def shares(self) -> np.ndarray:
        """Share of every class among these rows."""
        return np.bincount(self.codes, minlength=self.n_classes) / len(self.codes)

    @property
    def outputs(self) -> list[tuple[int, int]]:
        """Every output with the class that it is for."""
        return [(0, 1)] if self.n_classes == 2 else [(k, k) for k in range(self.n_classes)]


def find_posteriors(
    target: np.ndarray,
    source: SourceScores,
    settings: ShareSettings,
) -> np.ndarray:
    """Return the posterior of every class's share over `SHARES`, of shape (n_classes, n_shares).

    `target` are scores of a target, of shape (n, n_outputs), by a classifier trained on the source. They are
    not centred.
    """
    posteriors = np.zeros((source.n_classes, len(SHARES)))
    for output, code in source.outputs:
        grid = make_grid(target[:, output], source, output, code, None, settings)
        posteriors[code] = grid.weight.sum(axis=1)
    if source.n_classes == 2:
        posteriors[0] = posteriors[1, ::-1]
    return posteriors


def find_midpoint(
    target: np.ndarray,
    source: SourceScores,
    shares: np.ndarray,
    settings: ShareSettings,
) -> np.ndarray:
    """Return where the classes of a target meet if it has these shares: (n_outputs,) scores."""
    grids = [
        make_grid(target[:, output], source, output, code, float(shares[code]), settings)
        for output, code in source.outputs
    ]
    return np.array([float((grid.weight * grid.mixture.midpoint).sum()) for grid in grids])


@dataclass(frozen=True)
class Mixture:
    """Two normal distributions; every field is a number for each point of a grid."""

    share: np.ndarray  # of the upper one
    midpoint: np.ndarray
    half: np.ndarray  # half the distance of their means
    spread: np.ndarray  # standard deviation of each

    def log_likelihood(self, scores: np.ndarray, n_rows: float) -> np.ndarray:
        """Return the log likelihood of scores that count as so many rows."""
        scores = thin_rows(scores, scores, _VALUES)

        def log_density(mean: np.ndarray) -> np.ndarray:
            deviation = (scores - mean[..., None]) / self.spread[..., None]
            return -(deviation**2) / 2 - np.log(self.spread)[..., None]

        with np.errstate(divide="ignore"):  # a share of 0 or 1 has log probability minus infinity
            upper = log_density(self.midpoint + self.half) + np.log(self.share)[..., None]
            lower = log_density(self.midpoint - self.half) + np.log(1 - self.share)[..., None]
        return n_rows * np.logaddexp(upper, lower).mean(axis=-1)


@dataclass(frozen=True)
class Grid:
    """The posterior of one class's share at every point of a grid of (share, d)."""

    mixture: Mixture
    weight: np.ndarray  # sums to 1


def make_grid(
    target: np.ndarray,
    source: SourceScores,
    output: int,
    code: int,
    known_share: float | None,
    settings: ShareSettings,
) -> Grid:
    """Multiply likelihood and priors of one class's share, from scores of the class against the rest.

    A known share takes the place of the grid.
    """
    is_class, scores = source.codes == code, source.scores[:, output]
    upper, lower = scores[is_class], scores[~is_class]
    source_midpoint = (upper.mean() + lower.mean()) / 2
    source_spread = np.sqrt((upper.var() + lower.var()) / 2) + 1e-12
    separation = max((upper.mean() - lower.mean()) / (2 * source_spread), 0.05)
    middle = np.log(min(separation, MOST_SEPARATED))
    log_d = np.arange(np.log(LEAST_SEPARATED), middle + _UP, _STEP)
    share, d = (SHARES if known_share is None else np.array([known_share]))[:, None], np.exp(log_d)
    s = np.sqrt((target.var() + 1e-12) / (1 + 4 * share * (1 - share) * d**2))
    midpoint = target.mean() - (2 * share - 1) * d * s
    mixture = Mixture(share, midpoint, d * s, s)
    deviation = log_d - middle - settings.separation_slope * np.log(s / source_spread)
    log_posterior = mixture.log_likelihood(target, min(len(target), settings.effective_rows))
    log_posterior += t.logpdf(deviation / settings.separation_spread, settings.tail)
    log_posterior += norm.logpdf(midpoint - source_midpoint, scale=settings.midpoint_spread * s) + np.log(s)
    if known_share is None:
        log_posterior += np.log(_weigh_shares(is_class.mean(), settings))[:, None]
    weight = np.exp(log_posterior - log_posterior.max())
    return Grid(mixture, weight / weight.sum())


def _weigh_shares(source_share: float, settings: ShareSettings) -> np.ndarray:
    """Return the prior probability of every share of the grid."""
    same = np.exp(-(((SHARES - source_share) / settings.same_spread) ** 2) / 2)
    edges = logit(np.concatenate([[0], (SHARES[1:] + SHARES[:-1]) / 2, [1]]))
    moved = np.diff(t.cdf((edges - logit(source_share)) / settings.shift, settings.tail))
    return settings.same * same / same.sum() + (1 - settings.same) * moved


def thin_rows(rows: np.ndarray, rank: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many of the rows, which stand for all of them: evenly spaced by their `rank`."""
    if len(rows) <= most:
        return rows
    order = np.argsort(rank, kind="stable")
    return rows[order[((np.arange(most) + 0.5) * len(rows) / most).astype(int)]]


def check_shares(given: Any, classes: np.ndarray, targets: Sequence[Any]) -> list[list[float] | None]:
    """Return the known shares of every target in class order, None where they are to be estimated.

    They are given as class -> share for all targets, or name of a target -> such a dict for some of them.
    """
    if given is None:
        return [None] * len(targets)
    if not targets:
        raise ValueError(
            "target_shares needs target rows, and there are none: pass X_target, or leave it out"
        )
    if not isinstance(given, dict):
        raise TypeError(
            f"target_shares must be a dict, class -> share, or name of a target -> such a dict; got {given!r}"
        )
    if not any(isinstance(shares, dict) for shares in given.values()):
        return [_order_shares(given, classes.tolist())] * len(targets)
    unknown = [name for name in given if name not in targets]
    if unknown:
        names = ", ".join(map(repr, targets))
        raise ValueError(
            f"target_shares names {unknown[0]!r}, which is not a target; the targets are {names}"
        )
    return [_order_shares(given[name], classes.tolist()) if name in given else None for name in targets]


def _order_shares(shares: dict[Any, float], labels: list[Any]) -> list[float]:
    names = ", ".join(map(repr, labels))
    unknown = [label for label in shares if label not in labels]
    if unknown:
        raise ValueError(f"target_shares names {unknown[0]!r}, which is not a class; the classes are {names}")
    missing = [label for label in labels if label not in shares]
    if missing:
        raise ValueError(f"target_shares lacks {missing[0]!r}; give the share of every class: {names}")
    values = [shares[label] for label in labels]
    for label, value in zip(labels, values, strict=True):
        if not isinstance(value, Real) or not 0 <= value <= 1:
            raise ValueError(f"target_shares of {label!r} is {value!r}; shares are numbers between 0 and 1")
    if abs(sum(values) - 1) > 0.01:
        raise ValueError(f"target_shares sum to {sum(values):g}, not to 1: {shares!r}")
    return [float(value) / sum(values) for value in values]
