"""Estimate the class shares of a target domain from scores alone, without a target label.

The model. Scores of a class against the rest are, in the target, two normal distributions with the standard
deviation ``s``: ``share`` of the rows in the upper one, midpoint ``mu``, half distance ``m``. Mean and
variance of the scores are known well, so that ``share`` and the separation ``d = m / s`` determine the rest:

    s^2 = variance / (1 + 4 share (1 - share) d^2),    m = d s,    mu = mean - (2 share - 1) m

Normal distributions that overlap can be separated only with prior knowledge. Three priors supply it:

    (log d - log d_source - log_separation_loss - separation_slope log(s / s_source)) / log_separation_spread
              ~  Student's t(TAIL)
              classes are less separated in another domain, now and then much less, and scores that are less
              spread separate them less; d_source counts as at most MOST_SEPARATED, since classes that come
              apart so far say nothing of another domain
    (mu - mu_source) / s  ~  N(0, midpoint_spread^2)
              another domain moves the midpoint a little, other class shares move the mean a lot
    share  ~  as in the source (within SAME_SPREAD) with probability SAME, else its log odds differ from the
              source's by SHARE_SHIFT times Student's t(TAIL)

With a flat prior on ``log s``, integrating over ``mu`` and ``s`` near the values above multiplies by their
posterior widths, which grow as ``s^2``, and by their prior densities, which fall as ``1 / s^2``: no power of
``s`` is left.

A second hypothesis has the prior probability UNSEPARATED: scores do not tell the classes apart. They are then
one normal distribution, and its mean may be far from the source's midpoint. Scores near those of one class
say either that the other class hardly occurs, or this. Where it is likely, the error is not known.

Scores are only nearly normal, so a target counts as at most `EFFECTIVE_ROWS` rows. The posterior is summed
over a grid of (share, d); nothing is maximised. Where scores say little the result is wide, and close to the
priors. `lab/pages/balance.md` says how the constants were chosen, and what they give on the corpus that they
were not chosen on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import expit, logit, logsumexp, ndtri
from scipy.stats import norm, t

from . import constants
from .constants import Transfer

_SHARES = np.linspace(0, 1, 101)
_STEP, _UP = 0.1, 1.0  # of the grid of log d, and its reach above the source's


def _find_odds(share: np.ndarray) -> np.ndarray:
    """Return log odds of shares, after shares near 0 and 1 are clipped."""
    return logit(np.clip(share, constants.LEAST_ODDS, 1 - constants.LEAST_ODDS))


@dataclass(frozen=True)
class Shares:
    """Posterior of a target's class shares, as equally likely draws, and where its classes meet."""

    draws: np.ndarray  # (n_draws, n_classes)
    midpoint: np.ndarray  # (n_outputs,) posterior mean of mu
    is_assumed: bool = False  # the source's, since there are too few rows to estimate them
    unseparated: float = 0.0  # posterior probability that scores do not tell the classes apart
    spread: float = constants.SHARE_SPREAD  # of log odds, beside that of the draws; 0 with labels
    correlation: float = 1.0  # of these scores with those of the source-only classifier
    unseen: float = 0.0  # share of the target's nonzero entries in features that no labelled row has
    shift: float = 0.0  # largest difference of log odds from the shares of the source

    @property
    def mean(self) -> np.ndarray:
        """Posterior mean of every class's share, of shape (n_classes,)."""
        return self.draws.mean(axis=0)

    def interval(self) -> np.ndarray:
        """Lower and upper end for every class, of shape (n_classes, 2)."""
        if self.is_assumed:
            return np.tile([0.0, 1.0], (self.draws.shape[1], 1))
        if len(self.draws) == 1:  # known
            return np.tile(self.mean[:, None], 2)
        odds, ends = _find_odds(self.mean[:, None]), _find_odds(self._ends())
        reach = np.hypot(ends - odds, ndtri(0.95) * self.spread)
        return expit(odds + reach * [-1, 1])

    def _ends(self) -> np.ndarray:
        """Lower and upper end of the posterior for every class, of shape (n_classes, 2)."""
        return np.quantile(self.draws, [0.05, 0.95], axis=0).T

    @property
    def is_contradicted(self) -> bool:
        """Tell whether source-only orders the rows another way, or many words are new."""
        return self.correlation < constants.LEAST_CORRELATION or self.unseen > constants.MANY_UNSEEN

    @property
    def is_unknown(self) -> bool:
        """Tell whether it is open if one class hardly occurs, or if its words have changed."""
        is_far = self.unseparated >= constants.MOST_DOUBT or self.shift > constants.FAR_SHIFT
        return self.is_contradicted and is_far

    @property
    def is_doubtful(self) -> bool:
        """Tell whether the error is not known: scores may not tell the classes apart."""
        least = constants.LEAST_DOUBT if self.shift > constants.FAR_SHIFT else constants.MOST_DOUBT
        return self.unseparated >= least or self.is_unknown

    def compare(self, source: np.ndarray, correlation: float, unseen: float) -> Shares:
        """Return the same beside the shares, the classifier and the features of the source."""
        shift = float(np.abs(_find_odds(self.mean) - _find_odds(source)).max())
        return replace(self, correlation=correlation, unseen=unseen, shift=shift)

    @property
    def is_uncertain(self) -> bool:
        """Tell whether the scores say little, so that the shares are mostly the prior's."""
        return self.is_assumed or bool((np.ptp(self._ends(), axis=1) > constants.WIDE).any())


@dataclass(frozen=True)
class Mixture:
    """Two normal distributions; every field is a number for each point of a grid."""

    share: np.ndarray  # of the upper one
    midpoint: np.ndarray
    half: np.ndarray  # half the distance of their means
    spread: np.ndarray  # standard deviation of each

    def log_densities(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log densities of scores in both, up to a constant, for every point of the grid."""

        def log_density(mean: np.ndarray) -> np.ndarray:
            deviation = (scores - mean[..., None]) / self.spread[..., None]
            return -(deviation**2) / 2 - np.log(self.spread)[..., None]

        return log_density(self.midpoint + self.half), log_density(self.midpoint - self.half)

    def log_likelihood(self, scores: np.ndarray) -> np.ndarray:
        """Return the log likelihood of scores, counted as at most `EFFECTIVE_ROWS` rows."""
        upper, lower = self.log_densities(thin_rows(scores, scores, constants.MOST_VALUES))
        with np.errstate(divide="ignore"):  # a share of 0 or 1 has log probability minus infinity
            upper, lower = upper + np.log(self.share)[..., None], lower + np.log(1 - self.share)[..., None]
        return min(len(scores), constants.EFFECTIVE_ROWS) * np.logaddexp(upper, lower).mean(axis=-1)


@dataclass(frozen=True)
class Labelled:
    """Target rows of known classes, and their scores by a classifier that has not seen them."""

    scores: np.ndarray  # (n, n_outputs)
    codes: np.ndarray  # (n,)

    def log_likelihood(self, mixture: Mixture, output: int, code: int) -> np.ndarray:
        """Return the log probability of the labels, of a class against the rest, at every point of a grid.

        It is given the scores, by which rows may have been chosen.
        """
        upper, lower = mixture.log_densities(self.scores[:, output])
        log_odds = upper - lower + _find_odds(mixture.share)[..., None]
        return _sum_log_probabilities(log_odds, self.codes == code)


@dataclass(frozen=True)
class Rescored(Labelled):
    """The same, with log odds of the classes by a classifier that has learnt all labels but that of the row.

    For every share, log odds are shifted until the mean probability of all target rows is that share.
    """

    target: np.ndarray  # (n_target, n_outputs) log odds of target rows

    def log_likelihood(self, mixture: Mixture, output: int, code: int) -> np.ndarray:
        """Return the log probability of the labels, of a class against the rest, at every point of a grid."""
        odds = self.target[:, output]
        odds, most = thin_rows(odds, odds, constants.MOST_VALUES), np.log(1 / constants.LEAST_ODDS)
        offsets = np.linspace(-most - odds.max(), most - odds.min(), constants.N_OFFSETS)
        offset = np.interp(mixture.share, expit(odds + offsets[:, None]).mean(axis=1), offsets)
        return _sum_log_probabilities(self.scores[:, output] + offset[..., None], self.codes == code)


def _sum_log_probabilities(log_odds: np.ndarray, is_upper: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0, np.where(is_upper, -log_odds, log_odds)).sum(axis=-1)


def estimate_shares(
    target_scores: np.ndarray,
    source_scores: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    known: Sequence[float] | None = None,
    labelled: Labelled | None = None,
    transfer: Transfer = constants.SEVERAL_DOMAINS,
    grids: dict[Any, Grid] | None = None,
    fitted: np.ndarray | None = None,
) -> Shares:
    """Estimate class shares of a target from the scores of a classifier trained on the source.

    With few rows on either side, or target scores that hardly differ, the source's shares are assumed.
    Target scores are not centred, and source scores are of held-out rows with classes `codes`. With `known`
    shares only the midpoint is estimated. `grids` keeps what labels do not change, for the next estimate.
    With `fitted`, scores of rows of the same target that a fit saw, the target is a later batch.
    """
    outputs = [(0, 1)] if n_classes == 2 else [(k, k) for k in range(n_classes)]
    grids = {} if grids is None else grids

    def posterior(output: int, code: int, share: float | None = None) -> tuple[np.ndarray, float]:
        if (output, share) not in grids:
            scores = target_scores[:, output], source_scores[:, output]
            grids[output, share] = make_grid(*scores, codes == code, share, transfer)
        grid = grids[output, share]
        if fitted is not None and share is None:
            before = make_grid(fitted[:, output], source_scores[:, output], codes == code, None, transfer)
            return weigh_batch(grid, before, target_scores[:, output], float(np.mean(codes == code)))
        return grid.weigh(0.0 if labelled is None else labelled.log_likelihood(grid.mixture, output, code))

    is_assumed = known is None and _says_little(target_scores, source_scores, codes, n_classes)
    if is_assumed:
        known = (np.bincount(codes, minlength=n_classes) / len(codes)).tolist()
    if known is not None:
        midpoint = [posterior(output, code, known[code])[1] for output, code in outputs]
        return Shares(np.array([known], dtype=float), np.array(midpoint), is_assumed)
    posteriors = [posterior(output, code) for output, code in outputs]
    doubt, spread = 0.0, 0.0  # labels measure both
    if labelled is None:
        doubt = float(np.mean([grids[output, None].unseparated for output, _ in outputs]))
        spread = constants.SHARE_SPREAD
    levels = np.tile((np.arange(constants.N_DRAWS) + 0.5) / constants.N_DRAWS, (len(outputs), 1))
    if n_classes > 2:  # draws of different classes are combined at random, then made to sum to one
        levels = np.random.default_rng(0).permuted(levels, axis=1)
    draws = np.column_stack(
        [find_quantiles(weight, level) for (weight, _), level in zip(posteriors, levels, strict=True)]
    )
    if n_classes == 2:
        return Shares(np.column_stack([1 - draws, draws]), np.array([posteriors[0][1]]), False, doubt, spread)
    draws = np.maximum(draws, 1e-6)
    draws /= draws.sum(axis=1, keepdims=True)
    means = draws.mean(axis=0)
    midpoint = [posterior(output, code, means[code])[1] for output, code in outputs]
    return Shares(draws, np.array(midpoint), False, doubt, spread)


def _says_little(target: np.ndarray, source: np.ndarray, codes: np.ndarray, n_classes: int) -> bool:
    """Tell whether rows are too few, or target scores too much alike, to estimate shares from."""
    if len(target) < constants.LEAST_ROWS or len(codes) < constants.LEAST_ROWS:
        return True
    counts = np.bincount(codes, minlength=n_classes)
    if counts.min() < constants.LEAST_OF_A_CLASS:
        return True
    class_means = np.array([source[codes == code].mean(axis=0) for code in range(n_classes)])
    spread = np.sqrt(np.mean((source - class_means[codes]) ** 2, axis=0))
    return bool((target.std(axis=0) < constants.LEAST_SPREAD * spread).any())


def find_quantiles(weight: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the shares at given levels of a distribution over all possible shares."""
    return np.interp(levels, np.cumsum(weight) - weight / 2, _SHARES)


@dataclass(frozen=True)
class Grid:
    """The posterior of one class's share before labels, at every point of a grid of (share, d)."""

    mixture: Mixture
    log_posterior: np.ndarray
    unseparated: float  # posterior probability that scores do not tell the classes apart

    def weigh(self, log_likelihood: np.ndarray | float = 0.0) -> tuple[np.ndarray, float]:
        """Return the posterior of the shares, and the posterior mean of the midpoint, given labels."""
        log_posterior = self.log_posterior + log_likelihood
        weight = np.exp(log_posterior - log_posterior.max())
        weight /= weight.sum()
        return weight.sum(axis=1), float((weight * self.mixture.midpoint).sum())


def make_grid(
    target: np.ndarray,
    source: np.ndarray,
    is_class: np.ndarray,
    known_share: float | None = None,
    transfer: Transfer = constants.SEVERAL_DOMAINS,
) -> Grid:
    """Multiply likelihood and priors of one class's share, from scores of the class against the rest.

    `is_class` tells which of the source's rows are of this class. A known share takes the place of the grid.
    """
    upper, lower = source[is_class], source[~is_class]
    source_midpoint = (upper.mean() + lower.mean()) / 2
    source_spread = np.sqrt((upper.var() + lower.var()) / 2) + 1e-12
    separation = max((upper.mean() - lower.mean()) / (2 * source_spread), 0.05)
    middle = np.log(min(separation, constants.MOST_SEPARATED))
    log_d = np.arange(np.log(constants.LEAST_SEPARATED), middle + _UP, _STEP)
    share, d = (_SHARES if known_share is None else np.array([known_share]))[:, None], np.exp(log_d)
    variance = target.var() + 1e-12
    s = np.sqrt(variance / (1 + 4 * share * (1 - share) * d**2))
    midpoint = target.mean() - (2 * share - 1) * d * s
    mixture = Mixture(share, midpoint, d * s, s)
    loss = transfer.log_separation_loss + transfer.separation_slope * np.log(s / source_spread)
    deviation = (log_d - middle - loss) / transfer.log_separation_spread
    log_posterior = mixture.log_likelihood(target)
    log_posterior += t.logpdf(deviation, constants.TAIL) + np.log(_STEP / transfer.log_separation_spread)
    log_posterior += norm.logpdf(midpoint - source_midpoint, scale=transfer.midpoint_spread * s) + np.log(s)
    if known_share is None:
        log_posterior += np.log(_share_prior(is_class.mean()))[:, None]
    one = Mixture(np.array(0.5), target.mean(), np.array(0.0), np.sqrt(variance))
    moved = (target.mean() - source_midpoint) / np.sqrt(variance)
    log_one = one.log_likelihood(target) + t.logpdf(moved, 2, scale=constants.UNSEPARATED_MIDPOINT)
    log_odds = logit(constants.UNSEPARATED) + log_one - logsumexp(log_posterior)
    return Grid(mixture, log_posterior, float(expit(log_odds)))


def weigh_batch(
    batch: Grid, fitted: Grid, scores: np.ndarray, source_share: float
) -> tuple[np.ndarray, float]:
    """Return the posterior of the shares of a later batch, and its mean midpoint if it is another domain.

    Either the classes of the batch are those of the rows of the fit, and only their shares differ. Or the
    batch is another domain. The second hypothesis takes mean and variance from the batch, and pays for these
    two numbers: the widths of their posteriors are inversely proportional to the root of the number of rows.
    """
    log_before = fitted.log_posterior - logsumexp(fitted.log_posterior)
    is_likely = log_before > log_before.max() - constants.LEAST_LIKELY
    mixture, n = fitted.mixture, min(len(scores), constants.EFFECTIVE_ROWS)
    parts = [
        np.broadcast_to(part, log_before.shape)[is_likely]
        for part in (mixture.share, mixture.midpoint, mixture.half, mixture.spread)
    ]
    upper, lower = Mixture(*parts).log_densities(thin_rows(scores, scores, constants.BATCH_VALUES))
    with np.errstate(divide="ignore"):  # a share of 0 or 1 has log probability minus infinity
        odds = zip(np.log(_SHARES), np.log(1 - _SHARES), strict=True)
    log_same = np.array([n * np.logaddexp(upper + one, lower + other).mean(axis=-1) for one, other in odds])
    log_same = logsumexp(log_same + log_before[is_likely], axis=1) + np.log(_share_prior(source_share))
    log_moved = logsumexp(batch.log_posterior, axis=1) - np.log(n)
    log_posterior = np.logaddexp(log_same, log_moved)
    return np.exp(log_posterior - logsumexp(log_posterior)), batch.weigh()[1]


def _share_prior(source_share: float) -> np.ndarray:
    """Return the prior probability of every share of the grid."""
    same = np.exp(-(((_SHARES - source_share) / constants.SAME_SPREAD) ** 2) / 2)
    edges = logit(np.concatenate([[0], (_SHARES[1:] + _SHARES[:-1]) / 2, [1]]))
    moved = np.diff(t.cdf((edges - logit(source_share)) / constants.SHARE_SHIFT, constants.TAIL))
    return constants.SAME * same / same.sum() + (1 - constants.SAME) * moved


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
