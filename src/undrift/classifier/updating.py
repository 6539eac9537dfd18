"""Learn labels of target rows at once: the state that a fitted classifier keeps, and what labels change.

Layers, alignment and pseudo-labels stay as they are. Labels tell more of the class shares (`shares`), and by
a weight that cross-validation chooses they correct the classifier (`posterior`). A fit with target labels
ends with the same step, so that updating equals fitting again with the same layers, alignment and
pseudo-labels.

Rows that are centred on their domain and moved are rows less a vector of their domain, `UpdateState.means`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .._core import Rows, primal_weights, row_slices
from .calibration import find_border
from .linear import signs
from .posterior import Conditioned, Posterior, choose_label_weight, remove_rows, solve_change
from .shares import Labelled, Shares, estimate_shares
from .targets import BorderOptions, HeldOut, Target, describe_target


@dataclass(frozen=True)
class LabelledRows:
    """Target rows whose labels are learnt."""

    columns: list[Rows]  # their input, hidden rows and extra features
    domain: np.ndarray  # (n,) position of their domain
    codes: np.ndarray  # (n,) classes
    anchor: np.ndarray  # (n,) the anchor that a row is, or -1
    products: np.ndarray  # (n_anchors, n) inner products with the anchors


@dataclass(frozen=True)
class UpdateState:
    """What is kept of a fit, so that labels can be added to it: training rows among it."""

    columns: list[Rows]  # of the anchors: input, hidden rows of every layer, extra features
    domain: np.ndarray  # (n_anchors,) position of each anchor's domain
    codes: np.ndarray  # (n_anchors,) classes, or pseudo-labels
    weight: np.ndarray  # (n_anchors,) 0 for anchors that were not trained on
    inverse: np.ndarray  # (n_train, n_train) P over the anchors that were
    means: list[np.ndarray]  # of every layer, (n_domains, d_t): what is subtracted from rows of a domain
    shares: list[float]  # of every layer, what its inner products are multiplied by
    C: float  # in units of the inner products
    n_classes: int
    weights: list[np.ndarray]  # of every layer, (d_t, n_outputs): the classifier without target labels
    intercept: np.ndarray
    first_weights: list[np.ndarray]  # the classifier trained on the source alone
    first_intercept: np.ndarray
    scores: np.ndarray  # (n_target_anchors, n_outputs) of the classifier without target labels
    first_scores: np.ndarray  # (n_target_anchors, n_outputs) of the classifier trained on the source alone
    held_out: HeldOut  # labelled rows
    target_positions: list[int]  # of the target domains
    temperature: float
    gain: float  # what self-training leaves of the errors
    is_aligned: bool  # center="classes"
    is_balanced: bool  # border="balanced"
    known_shares: list[list[float] | None]  # of every target; None where they are estimated
    labelled: LabelledRows | None = None

    def rows_of(self, k: int) -> np.ndarray:
        """Return which target anchors are of the domain at position k."""
        return self.domain[self.n_source :] == k

    @property
    def n_source(self) -> int:
        """Number of anchors of the sources, which come first."""
        return len(self.domain) - len(self.scores)

    def find_products(self, columns: Sequence[Rows], domain: np.ndarray) -> np.ndarray:
        """Inner products of the anchors with other rows, of shape (n_anchors, n), all moved."""
        K = np.zeros((len(self.domain), len(domain)))
        for A, B, means, share in zip(self.columns, columns, self.means, self.shares, strict=True):
            centred = _centre(B, means, domain)
            for rows in row_slices(len(self.domain), A.shape[1]):
                K[rows] += share * (_lift(A[rows]) @ centred.T)
            K -= share * (means @ centred.T)[self.domain]
        return K

    def find_products_among(self, columns: Sequence[Rows], domain: np.ndarray) -> np.ndarray:
        """Inner products of some rows among themselves, moved."""
        K = np.zeros((len(domain), len(domain)))
        for B, means, share in zip(columns, self.means, self.shares, strict=True):
            centred = _centre(B, means, domain)
            K += share * (centred @ centred.T)
        return K

    def combine(self, coef: np.ndarray, labelled: LabelledRows, g: np.ndarray) -> list[np.ndarray]:
        """Weights of every layer from coefficients of the anchors and of labelled rows."""
        weights, parts = [], zip(self.columns, labelled.columns, self.means, self.shares, strict=True)
        for A, B, means, share in parts:
            w = np.zeros((A.shape[1], coef.shape[1]))
            for rows in row_slices(len(coef), A.shape[1]):
                w += primal_weights(_lift(A[rows]), means, self.domain[rows], share * coef[rows])
            weights.append(w + share * (_centre(B, means, labelled.domain).T @ g))
        return weights


def _lift(A: Rows) -> Rows:
    """Rows as they can be multiplied: those of a file are in 16 bits."""
    return A.astype(np.float32) if A.dtype == np.float16 else A


def _centre(B: Rows, means: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Dense rows less the vector of their domain, in their precision."""
    dense = B.toarray() if sp.issparse(B) else B
    return dense - means.astype(dense.dtype)[domain]


@dataclass(frozen=True)
class Learnt:
    """A classifier that has learnt target labels."""

    weights: list[np.ndarray]
    intercept: np.ndarray
    offsets: np.ndarray  # (n_domains, n_outputs) to subtract from the intercept; without the targets' shifts
    targets: list[Target] | None
    label_weight: float  # of a target label, against a labelled source row


def learn_labels(state: UpdateState) -> Learnt:
    """Return the classifier of a state with its labels learnt: shares and borders, and the weights."""
    labelled, scores, shares = state.labelled, state.scores, _estimate_all(state)
    weights, intercept, chosen = state.weights, state.intercept, 0.0
    if labelled is not None and len(labelled.codes):
        train = np.flatnonzero(state.weight)
        posterior = Posterior(state.inverse)
        rows = posterior.condition(labelled.products[train])
        chosen, g = _choose_change(state, labelled, rows, shares)
        dual = rows.spread_change(posterior, g)
        coef = np.zeros((len(state.domain), g.shape[1]))
        coef[train] = dual.coef
        weights = [w + change for w, change in zip(weights, state.combine(coef, labelled, g), strict=True)]
        intercept = intercept + dual.intercept
        scores = _score_target_anchors(state, weights, intercept, coef)
    offsets = _find_offsets(state, weights)
    targets = None if shares is None else _describe_all(state, scores, shares)
    return Learnt(weights, intercept, offsets, targets, chosen)


def score_columns(columns: Sequence[Rows], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Scores of rows from their columns of every layer, without an intercept."""
    scores = np.zeros((columns[0].shape[0], weights[0].shape[1]))
    for A, w in zip(columns, weights, strict=True):
        for rows in row_slices(len(scores), A.shape[1]):
            block = _lift(A[rows])
            scores[rows] += block @ w.astype(block.dtype)
    return scores


def _find_offsets(state: UpdateState, weights: Sequence[np.ndarray]) -> np.ndarray:
    """Return the scores of what is subtracted from the rows of every domain."""
    return np.sum([means @ w for means, w in zip(state.means, weights, strict=True)], axis=0)


def _estimate_all(state: UpdateState) -> list[Shares] | None:
    """Estimate the shares of every target from the first scores and the labels; None without alignment."""
    if not state.is_aligned:
        return None
    held_out, labelled, estimates = state.held_out, state.labelled, []
    for k, known in zip(state.target_positions, state.known_shares, strict=True):
        seen = None
        if labelled is not None and (labelled.domain == k).any():
            chosen = labelled.domain == k
            columns = [B[chosen] for B in labelled.columns]
            scores = score_columns(columns, state.first_weights) + state.first_intercept
            seen = Labelled(scores, labelled.codes[chosen])
        first = state.first_scores[state.rows_of(k)]
        estimates.append(
            estimate_shares(first, held_out.scores, held_out.codes, state.n_classes, known, seen)
        )
    return estimates


def _choose_change(
    state: UpdateState, labelled: LabelledRows, rows: Conditioned, shares: Sequence[Shares] | None
) -> tuple[float, np.ndarray]:
    """Return the weight of the labels, and the coefficients of the labelled rows.

    A row with a label has no pseudo-label, whatever the weight of labels is.
    """
    K = state.find_products_among(labelled.columns, labelled.domain)
    covariance = rows.covariance(rows, K)
    scores = score_columns(labelled.columns, state.weights) + state.intercept
    scores -= _find_offsets(state, state.weights)[labelled.domain]
    is_anchor = labelled.anchor >= 0
    before = state.C * np.where(is_anchor, state.weight[labelled.anchor], 0.0)
    evidence = before[:, None] * signs(state.codes[labelled.anchor], state.n_classes)
    Y, border = signs(labelled.codes, state.n_classes), np.zeros(scores.shape)
    for k, target_shares in zip(state.target_positions, shares or [], strict=False):
        base = state.scores[state.rows_of(k)]
        border[labelled.domain == k] = find_border(base, state.temperature, target_shares.mean)
    apart = remove_rows(covariance, scores, before, evidence)
    weight = choose_label_weight(*apart, Y, labelled.codes, state.C, border, state.temperature)
    precision = state.C * weight - before
    return weight, solve_change(covariance, scores, precision, state.C * weight * Y - evidence)


def _score_target_anchors(
    state: UpdateState, weights: Sequence[np.ndarray], intercept: np.ndarray, change: np.ndarray
) -> np.ndarray:
    """Score the target anchors by new weights.

    With ``K + diag(1 / (C weight))`` times the `change` of dual coefficients known, scores of training rows
    change by ``-change / (C weight)``.
    """
    n, scores = state.n_source, state.scores.copy()
    weight, domain = state.weight[n:], state.domain[n:]
    is_trained = weight > 0
    scores[is_trained] -= change[n:][is_trained] / (state.C * weight[is_trained, None])
    others = np.flatnonzero(~is_trained)
    columns = [A[n + others] for A in state.columns]
    offsets = _find_offsets(state, weights)[domain[others]]
    scores[others] = score_columns(columns, weights) + intercept - offsets
    return scores


def _describe_all(state: UpdateState, scores: np.ndarray, shares: Sequence[Shares]) -> list[Target]:
    border, targets = BorderOptions(state.is_balanced), []
    for k, target_shares in zip(state.target_positions, shares, strict=True):
        rows, held_out = state.rows_of(k), state.held_out
        first, after = state.first_scores[rows], scores[rows]
        targets.append(
            describe_target(after, state.temperature, first, held_out, target_shares, border, state.gain)
        )
    return targets
