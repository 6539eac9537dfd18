"""Learn labels of target rows at once, from the state that a fitted classifier keeps.

Layers, alignment and pseudo-labels stay as they are. Labels tell more of the class shares (`shares`), and
they correct the classifier. A fit with target labels ends with the same step, so that updating equals fitting
again with the same layers, alignment and pseudo-labels.

Least squares is a Gaussian process with a posterior covariance S (`solve`). This tells how labels change
scores, and how much a label counts. Labels of rows J are learnt by their log loss. They change all scores by
``S(x, J) g``, where g is the slope of the log likelihood of the labels at the mode of the posterior.

Targets also have features of their own: their scores have a second part, which no other row informs. Its
covariance is `TARGET_PART` times the Gram matrix (the feature augmentation of Daume, 2007). For labels of
target rows S is then ``S(x, z) + TARGET_PART k(x, z)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit, logit
from scipy.stats import norm

from .calibrate import ExpectedError, Target, class_probabilities, describe_target, find_border
from .constants import CORRECTION_SPREAD, EXPECTED_HOLDS, LEARNT_WEIGHT, MOST_STEPS, TARGET_PART
from .layers import score_centres
from .shares import Labelled, Rescored, Shares, estimate_shares
from .solve import Conditioned, predict_codes, signs
from .state import LabelledRows, UpdateState, score_columns
from .train import Readout


def learn_labels(state: UpdateState) -> Readout:
    """Return the classifier of a state with its labels learnt: shares, thresholds and weights."""
    labelled, scores, readout, shares = state.labelled, state.scores, state.readout, _estimate_all(state)
    weights, intercept, left_out = readout.weights, readout.intercept, None
    if labelled is not None and len(labelled.codes):
        rows = state.condition(labelled.products)
        own, left_out, g = _find_change(state, labelled, rows, shares)
        particular = TARGET_PART * own
        dual = rows.spread_change(g)
        coef = np.zeros((len(state.domain), g.shape[1]))
        coef[state.train] = dual.coef
        changes = state.combine(coef, labelled, g + particular)
        weights = [w + change for w, change in zip(weights, changes, strict=True)]
        intercept = intercept + dual.intercept
        scores = _score_target_anchors(state, weights, intercept, coef, labelled.products @ particular)
    offsets, targets = score_centres(state.means, weights), None
    if shares is not None:
        groups = _score_targets(state, weights, intercept, scores)
        if left_out is not None:
            shares = _estimate_all(state, left_out, groups) or []
        targets = _describe_all(state, groups, shares, left_out)
        offsets[state.target_positions] -= [target.shift for target in targets]
    return replace(readout, weights=weights, intercept=intercept, offsets=offsets, targets=targets)


def _score_targets(
    state: UpdateState, weights: Sequence[np.ndarray], intercept: np.ndarray, scores: np.ndarray
) -> dict[int, np.ndarray]:
    """Return scores of rows that represent each target, by position: its last batch, else its anchors."""
    groups = {k: scores[state.rows_of(k)] for k in state.target_positions}
    if state.batches:
        offsets = score_centres(state.means, weights)
        groups |= {k: score_columns(A, weights) + intercept - offsets[k] for k, A in state.batches.items()}
    return groups


def _estimate_all(
    state: UpdateState, left_out: np.ndarray | None = None, groups: Mapping[int, np.ndarray] | None = None
) -> list[Shares] | None:
    """Estimate the shares of every target from the first scores and the labels; None without alignment.

    With `left_out`, labelled rows are scored by the classifier that has learnt the other labels, and the
    targets' rows as in `groups`; else by the classifier trained on the source alone.
    """
    if not state.is_aligned:
        return None
    held_out, labelled, estimates = state.held_out, state.labelled, []
    for k, known in zip(state.target_positions, state.known_shares, strict=True):
        seen = None
        if labelled is not None and (chosen := (labelled.domain == k) & labelled.is_current).any():
            if left_out is None or groups is None:
                seen = Labelled(_score_first(state, labelled, chosen), labelled.codes[chosen])
            else:
                scores = left_out[chosen], groups[k]
                odds, others = (_find_odds(each, state.readout.temperature) for each in scores)
                seen = Rescored(odds, labelled.codes[chosen], others)
        given = state.first_scores_of(k), held_out.scores, held_out.codes, state.n_classes, known, seen
        grids, fitted = held_out.grids.setdefault(k, {}), None
        if k in state.batches:
            grids, fitted = {}, state.first_scores[state.rows_of(k)] if seen is None else None
        estimates.append(estimate_shares(*given, held_out.transfer, grids, fitted))
    return estimates


def _score_first(state: UpdateState, labelled: LabelledRows, rows: np.ndarray) -> np.ndarray:
    return score_columns([B[rows] for B in labelled.columns], state.first_weights) + state.first_intercept


def _find_odds(scores: np.ndarray, temperature: float) -> np.ndarray:
    p = np.clip(class_probabilities(scores, temperature), 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))[:, -scores.shape[1] :]  # of two classes the second


def _find_change(
    state: UpdateState, labelled: LabelledRows, rows: Conditioned, shares: Sequence[Shares] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Learn the labels without pseudo-labels of their rows; return the result, and coefficients."""
    K, readout = state.find_products_among(labelled.columns, labelled.domain), state.readout
    covariance, temperature = rows.covariance(K), readout.temperature
    scores = score_columns(labelled.columns, readout.weights) + readout.intercept
    scores -= score_centres(state.means, readout.weights)[labelled.domain]
    is_anchor = labelled.anchor >= 0
    before = state.C * np.where(is_anchor, state.weight[labelled.anchor], 0.0)
    evidence = before[:, None] * signs(state.codes[labelled.anchor], state.n_classes)
    border = np.zeros(scores.shape)
    base = _score_targets(state, readout.weights, readout.intercept, state.scores)
    for k, target_shares in zip(state.target_positions, shares or [], strict=False):
        border[labelled.domain == k] = find_border(base[k], temperature, target_shares.mean)
    apart = remove_rows(covariance, scores, before, evidence)
    covariance = apart.covariance + TARGET_PART * K
    seen = Seen(covariance, apart.scores, border, labelled.codes, temperature)
    g, left_out = seen.learn(LEARNT_WEIGHT * state.C)
    return g, left_out, apart.restore(g)


def _score_target_anchors(
    state: UpdateState,
    weights: Sequence[np.ndarray],
    intercept: np.ndarray,
    change: np.ndarray,
    particular: np.ndarray,
) -> np.ndarray:
    """Score the target anchors by new weights.

    With ``K + diag(1 / (C weight))`` times the `change` of dual coefficients known, scores of training rows
    change by ``-change / (C weight)``, and by the part `particular` to targets, given for all anchors.
    """
    n, scores = state.n_source, state.scores.copy()
    weight, domain = state.weight[n:], state.domain[n:]
    is_trained = weight > 0
    scores[is_trained] += particular[n:][is_trained]
    scores[is_trained] -= change[n:][is_trained] / (state.C * weight[is_trained, None])
    others = np.flatnonzero(~is_trained)
    columns = [A[n + others] for A in state.columns]
    offsets = score_centres(state.means, weights)[domain[others]]
    scores[others] = score_columns(columns, weights) + intercept - offsets
    return scores


def _describe_all(
    state: UpdateState, groups: dict[int, np.ndarray], shares: Sequence[Shares], left_out: np.ndarray | None
) -> list[Target]:
    """Find decision threshold and error of every target, from its scores and its labels."""
    targets, labelled = [], state.labelled
    for k, target_shares in zip(state.target_positions, shares, strict=True):
        first = state.first_scores_of(k)
        parts = groups[k], state.readout.temperature, first, state.held_out, target_shares
        target = describe_target(*parts, state.readout.error_ratio, is_balanced=state.is_balanced)
        targets.append(target)
        if labelled is None or left_out is None or target.expected_error is None:
            continue
        rows = np.flatnonzero((labelled.domain == k) & labelled.is_current)
        if len(rows):
            temperature = state.held_out.target_temperature()
            border = find_border(first, temperature, target_shares.mean)
            own = _score_first(state, labelled, rows)
            p, own_p = (class_probabilities(each + border, temperature) for each in (first, own))
            is_wrong = predict_codes(left_out[rows] + target.shift) != labelled.codes[rows]
            doubts = 1 - p.max(axis=1), 1 - own_p.max(axis=1)
            measured = measure_error(target.expected_error, *doubts, is_wrong)
            targets[-1] = replace(target, expected_error=measured)
    return targets


def measure_error(
    expected: ExpectedError, doubts: np.ndarray, labelled_doubts: np.ndarray, is_wrong: np.ndarray
) -> ExpectedError:
    """Correct the expected error by labelled rows, each of them predicted without its label.

    A row is wrong with log odds of its doubt, by scores alone, plus a correction, the same for all rows. It
    is within the interval of the expected error with probability `EXPECTED_HOLDS`, else within a few units of
    log odds. So labels win where they contradict.
    """
    odds, own = (logit(np.clip(each, 1e-3, 1 - 1e-3)) for each in (doubts, labelled_doubts))
    correction = np.linspace(-8, 8, 321)
    errors = expit(odds + correction[:, None]).mean(axis=1)
    low, high = np.interp([expected.low, expected.high], errors, correction)
    spread = max((high - low) / (2 * norm.ppf(0.95)), correction[1] - correction[0])
    holds, fails = (norm.pdf(correction, (low + high) / 2, each) for each in (spread, CORRECTION_SPREAD))
    log_likelihood = log_expit(np.where(is_wrong, 1, -1) * (own + correction[:, None])).sum(axis=1)
    prior = EXPECTED_HOLDS * holds + (1 - EXPECTED_HOLDS) * fails
    weight = np.exp(log_likelihood - log_likelihood.max()) * prior
    weight /= weight.sum()
    low, high = np.interp([0.05, 0.95], np.cumsum(weight), errors)
    return ExpectedError(float(weight @ errors), float(low), float(high))


@dataclass(frozen=True)
class Removed:
    """Rows among themselves, once their precision and evidence are removed."""

    covariance: np.ndarray  # (n, n)
    scores: np.ndarray  # (n, n_outputs)
    g: np.ndarray  # (n, n_outputs) change of their coefficients by removing them
    change: np.ndarray  # (n, n) from coefficients of removed rows to those in place, as a difference

    def restore(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients in terms of the covariance before, from `g` in terms of the one after."""
        return self.g + g + self.change @ g


def remove_rows(
    covariance: np.ndarray, scores: np.ndarray, precision: np.ndarray, evidence: np.ndarray
) -> Removed:
    """Remove precision, and evidence, precision times labels, of rows with given covariance and scores."""
    system = np.eye(len(precision)) - precision[:, None] * covariance
    change = np.linalg.solve(system, precision[:, None] * covariance)
    g = np.linalg.solve(system, precision[:, None] * scores - evidence)
    return Removed(covariance + covariance @ change, scores + covariance @ g, g, change)


@dataclass(frozen=True)
class Seen:
    """Labelled rows before any of their labels is learnt."""

    covariance: np.ndarray  # (n, n) of their scores
    scores: np.ndarray  # (n, n_outputs)
    border: np.ndarray  # (n, n_outputs) added to scores for the decision threshold of the row's target
    codes: np.ndarray  # (n,) classes
    temperature: float

    def learn(self, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of the rows, and scores of every row had the labels of all others been learnt.

        They are those of the mode of the posterior. The log loss of a label counts ``4 strength
        temperature^2`` times: its curvature is then `strength` for an undecided row of two classes, and at
        most `bound`. The loss is replaced by a parabola of that curvature, which lies above it, until nothing
        changes. The noise of rows left out is that of the mode's curvature, for every output by itself.
        """
        S, (n, n_outputs) = self.covariance, self.scores.shape
        g = np.zeros((n, n_outputs))
        bound = strength if n_outputs == 1 else 2 * strength
        damped = np.linalg.inv(S + np.eye(n) / bound)
        for _ in range(MOST_STEPS):
            p, slope = self._measure(self.scores + S @ g, strength)
            step = damped @ (slope - g) / bound
            g += step
            if np.abs(step).max() < 1e-10 * strength * self.temperature:
                break
        left_out = self.scores + S @ g
        for k, precision in enumerate((4 * strength * p * (1 - p)).T):
            root = np.sqrt(precision)
            noisy = np.eye(n) + root[:, None] * S * root
            inverse = root[:, None] * np.linalg.inv(noisy) * root
            variance = np.diagonal(S) - ((S @ inverse) * S).sum(axis=1)
            left_out[:, k] -= g[:, k] * variance / (1 - precision * variance)
        return g, left_out

    def _measure(self, scores: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities of the classes that outputs stand for, and slopes of the log likelihood."""
        p = class_probabilities(scores + self.border, self.temperature)
        error = (self.codes[:, None] == np.arange(p.shape[1])) - p
        k = scores.shape[1]  # of two classes the second
        return p[:, -k:], 4 * strength * self.temperature * error[:, -k:]
