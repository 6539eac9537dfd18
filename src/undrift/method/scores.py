"""What scores say: of a row its class and probabilities, of a target its class shares.

*Probabilities for given class shares.* ``p(class | x) = softmax(score(x) / temperature + offset)``. The
temperature is learnt on held-out rows of the source. The offset of a domain makes the mean probability of
every class equal to its share there, so that the largest probability is the prediction with the smallest
expected error.

*Class shares from scores alone.* Scores of a class against the rest are, in the target, two normal
distributions with the standard deviation ``s``: ``share`` of the rows in the upper one, midpoint ``mu``, half
distance ``m``. Mean and variance of the scores are known well, so that ``share`` and the separation
``d = m / s`` determine the rest:

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

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_softmax, logit, logsumexp, softmax
from scipy.stats import norm, t
from sklearn.metrics import roc_auc_score

from .settings import ShareSettings

_LARGEST_TEMPERATURE = 5.0  # over the root mean square of scores that say nothing of the classes
_LONGEST_STEP = 5.0  # of an offset, in one step of Newton's method
_OFFSET_ROWS = 1_000  # of two classes that an offset is computed from, at most
SHARES = np.linspace(0, 1, 101)
_STEP, _UP = 0.1, 1.0  # of the grid of log d, and its reach above the source's
_VALUES = 500  # scores that a likelihood is computed from
LEAST_SHARE = 1e-6  # instead of 0, so that log odds stay finite
MOST_SEPARATED, LEAST_SEPARATED = 3.0, 0.1  # half distance of the classes, in standard deviations
_MOST_STEPS = 1_000  # of the shares of a batch


def signs(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Targets of +1 and -1: one column for two classes, else one per class against the rest."""
    if n_classes == 2:
        return np.where(codes[:, None] == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def predict_codes(scores: np.ndarray) -> np.ndarray:
    """Return the class codes that scores of shape (n, n_outputs) stand for."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else np.argmax(scores, axis=1)


def measure_auc(scores: np.ndarray, codes: np.ndarray) -> float:
    """Return the area under the ROC curve of a class against the rest, averaged over classes."""
    if scores.shape[1] == 1:
        return float(roc_auc_score(codes == 1, scores[:, 0]))
    return float(np.mean([roc_auc_score(codes == code, scores[:, code]) for code in np.unique(codes)]))


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


def shift_probabilities(p: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return probabilities whose logarithms are shifted."""
    return softmax(np.log(np.maximum(p, LEAST_SHARE)) + shift, axis=-1) if np.any(shift) else p


def find_shift(p: np.ndarray, shares: np.ndarray, n_prior: float) -> np.ndarray:
    """Return the shift of log probabilities under which a batch has the most probable mix of classes.

    Classes look as they did, and only their shares differ from `shares`, under which the probabilities `p` of
    the rows were found. Expectation maximisation finds the shares of the batch (Saerens, Latinne and
    Decaestecker, 2002), with `n_prior` rows of the mix before.
    """
    before = np.maximum(shares, LEAST_SHARE)
    current = before
    for _ in range(_MOST_STEPS):
        weighed = p * (current / before)
        after = (weighed / weighed.sum(axis=1, keepdims=True)).sum(axis=0) + n_prior * before
        after /= after.sum()
        if np.abs(after - current).max() < 1e-7:
            break
        current = after
    return np.log(current) - np.log(before)


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


def find_posteriors(target: np.ndarray, source: SourceScores, settings: ShareSettings) -> np.ndarray:
    """Return the posterior of every class's share over `SHARES`, of shape (n_classes, n_shares).

    `target` are scores of a target, of shape (n, n_outputs), by a classifier trained on the source. They are
    not centred.
    """
    posteriors = np.zeros((source.n_classes, len(SHARES)))
    for output, code in source.outputs:
        posteriors[code] = weigh_grid(target[:, output], source, output, code, None, settings)[0].sum(axis=1)
    if source.n_classes == 2:
        posteriors[0] = posteriors[1, ::-1]
    return posteriors


def find_midpoint(
    target: np.ndarray, source: SourceScores, shares: np.ndarray, settings: ShareSettings
) -> np.ndarray:
    """Return where the classes of a target meet if it has these shares: (n_outputs,) scores."""
    midpoints = []
    for output, code in source.outputs:
        given = target[:, output], source, output, code, float(shares[code]), settings
        weight, midpoint = weigh_grid(*given)
        midpoints.append(float((weight * midpoint).sum()))
    return np.array(midpoints)


def weigh_grid(
    target: np.ndarray,
    source: SourceScores,
    output: int,
    code: int,
    known_share: float | None,
    settings: ShareSettings,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior of one class's share on a grid of (share, d), and the midpoint at its points.

    Likelihood and priors are of scores of the class against the rest. A known share takes the place of the
    grid's.
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
    deviation = log_d - middle - settings.separation_slope * np.log(s / source_spread)
    n_rows = min(len(target), settings.effective_rows)
    log_posterior = n_rows * _mean_log_density(target, share, midpoint, d * s, s)
    log_posterior += t.logpdf(deviation / settings.separation_spread, settings.tail)
    log_posterior += norm.logpdf(midpoint - source_midpoint, scale=settings.midpoint_spread * s) + np.log(s)
    if known_share is None:
        source_share = is_class.mean()
        same = np.exp(-(((SHARES - source_share) / settings.same_spread) ** 2) / 2)
        edges = logit(np.concatenate([[0], (SHARES[1:] + SHARES[:-1]) / 2, [1]]))
        moved = np.diff(t.cdf((edges - logit(source_share)) / settings.shift, settings.tail))
        prior = settings.same * same / same.sum() + (1 - settings.same) * moved
        log_posterior += np.log(prior)[:, None]
    weight = np.exp(log_posterior - log_posterior.max())
    return weight / weight.sum(), midpoint


def _mean_log_density(
    scores: np.ndarray, share: np.ndarray, midpoint: np.ndarray, half: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Return the mean log density of scores under two normal distributions, at every point of a grid."""
    scores = thin_rows(scores, scores, _VALUES)

    def log_density(mean: np.ndarray) -> np.ndarray:
        deviation = (scores - mean[..., None]) / spread[..., None]
        return -(deviation**2) / 2 - np.log(spread)[..., None]

    with np.errstate(divide="ignore"):  # a share of 0 or 1 has log probability minus infinity
        upper = log_density(midpoint + half) + np.log(share)[..., None]
        lower = log_density(midpoint - half) + np.log(1 - share)[..., None]
    return np.logaddexp(upper, lower).mean(axis=-1)


def thin_rows(rows: np.ndarray, rank: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many of the rows, which stand for all of them: evenly spaced by their `rank`."""
    if len(rows) <= most:
        return rows
    order = np.argsort(rank, kind="stable")
    return rows[order[((np.arange(most) + 0.5) * len(rows) / most).astype(int)]]
