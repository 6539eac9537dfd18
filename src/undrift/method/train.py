"""Train on the labelled rows and on target rows with pseudo-labels: one interface for every number of rows.

`GramTrainer` works on inner products of all labelled rows. `SumsTrainer` works on sums over them (`solve`),
where they are too many for a Gram matrix; the anchors are then a sample of them. In both, target rows with
pseudo-labels are further rows of a Gaussian process, which needs their covariance and no other row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ..core import Array, Rows, array_ops, hidden_rows, primal_weights
from ..inputs import savable, to_host
from .align import Alignment, move_rows, undo_moves
from .calibrate import HeldOut, Target, describe_target, expect_error_ratio
from .choose import Base
from .constants import PSEUDO_WEIGHT
from .layers import score_centres
from .self_train import Trained
from .solve import NormalEquations, Posterior, multiply, read_layers, score_rows, signs


@dataclass(frozen=True)
class Weights:
    """Two classifiers by layer, the directions of alignment, and rows that `update` keeps."""

    last: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    intercept: np.ndarray  # of rows that are centred
    first: list[np.ndarray]  # of the classifier that was trained on the labelled rows alone
    first_intercept: np.ndarray
    moves: list[np.ndarray] | None  # (d_t, n_domains) that are added to the rows of each domain
    columns: list[Rows]  # some of the anchors at every layer, on the host


class Trainer:
    """Trains on the labelled rows, then on target anchors with pseudo-labels as well.

    `labelled_scores` and `target_scores` of the anchors, and `mean_scores` of the centres of all domains, of
    shape (n_domains, n_outputs), are by the classifier of the labelled rows alone.
    """

    _intercept: np.ndarray  # of that classifier

    def __init__(self, base: Base) -> None:
        self._base, self._chosen, self._domain = base, base.chosen, base.anchors.domain
        self._n, labels = base.anchors.n_labelled, base.labels
        self._moves: np.ndarray | None = None
        self._covariance: Array = None  # of the target anchors, once it is needed
        scores, self.mean_scores = self._start()
        self.labelled_scores, self.target_scores = scores[: self._n], scores[self._n :]
        self.posterior = Posterior.invert(self._chosen.K[: self._n, : self._n], self._chosen.C, labels.weight)

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """Train on the labelled rows, and return the scores of all anchors and of all domains' centres."""
        raise NotImplementedError

    def _find_covariance(self) -> Array:
        """Return the covariance of the scores of the target anchors, given the labelled rows."""
        raise NotImplementedError

    def move(self, moves: np.ndarray) -> None:
        """Add a combination of labelled anchors to the rows of every domain: (n, n_domains)."""
        move_rows(self._chosen.K, moves, self._domain)
        change = moves.T @ (self.labelled_scores - self._intercept)
        self.target_scores = self.target_scores + change[self._domain[self._n :]]
        self._moves = moves

    def retrain(self, codes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Train with classes and weights of the target anchors: their coefficients, and their scores."""
        if self._covariance is None:
            with array_ops(self._chosen.K).full_precision():
                self._covariance = self._find_covariance()
        S, gaps = self._covariance, signs(codes, self._base.labels.n_classes) - self.target_scores
        counted, coef = np.flatnonzero(weight), np.zeros(gaps.shape)
        if len(counted):
            shift = 1 / (self._chosen.C * weight[counted])
            coef[counted] = array_ops(S).shifted_solve(S, shift, gaps[counted], counted)
        return coef, self.target_scores + multiply(S, coef)

    def finish(self, coef: np.ndarray, kept: np.ndarray | None) -> Weights:
        """Return the classifier of coefficients of `retrain`, by layer, with the anchors `kept`."""
        raise NotImplementedError

    def _read_anchors(self, rows: Any) -> Iterator[Rows]:
        """Yield some of the anchors at every layer, from memory where they were kept."""
        X, hidden = self._base.anchors.X[rows], self._chosen.hidden
        if hidden is not None:
            return chain([X], (H[rows] for H in hidden))
        return chain([X], hidden_rows(self._chosen.stack.layers, self._base.place.move_rows(X)))


def make_trainer(base: Base) -> Trainer:
    """Return the trainer for the number of labelled rows."""
    return SumsTrainer(base) if base.anchors.needs_sums else GramTrainer(base)


class GramTrainer(Trainer):
    """Trains on the inner products of the anchors, which `move` changes in place."""

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        chosen, n = self._chosen, self._n
        self._dual = self._base.labels.fit(chosen.K, chosen.C)
        self._intercept = self._dual.intercept
        return self._dual.scores(chosen.K[:, :n]), chosen.mean_products[:n].T @ self._dual.coef

    def _find_covariance(self) -> Array:
        K, n = self._chosen.K, self._n
        self._targets = self.posterior.condition(K[:n, n:])
        return self._targets.covariance(K[n:, n:])

    def finish(self, coef: np.ndarray, kept: np.ndarray | None) -> Weights:
        """Sum ``w_t = sum_i coef_i h^t(x_i)`` for every layer; prediction then needs no training row."""
        stack, first, intercept = self._chosen.stack, self._dual.coef, self._intercept
        last = np.vstack([first, coef])
        if coef.any():
            change = self._targets.spread_change(coef)
            last[: self._n] += change.coef
            intercept = intercept + change.intercept
        moves = np.zeros((self._n, 0)) if self._moves is None else self._moves
        last = undo_moves(last, moves, self._domain)
        n = len(last) if coef.any() or kept is not None else self._n
        labelled = np.pad(np.hstack([first, moves]), ((0, n - self._n), (0, 0)))
        joined, k = np.hstack([last[:n], labelled]), first.shape[1]
        sums, columns = [], []
        for H, means in zip(self._read_anchors(slice(n)), stack.means, strict=True):
            sums.append(primal_weights(H, means, self._domain[:n], joined))
            if kept is not None:
                columns.append(to_host(H if len(kept) == n else H[kept]))
        pairs = list(zip(sums, stack.shares, strict=True))
        weights = [[share * w[:, part] for w, share in pairs] for part in (slice(k), slice(k, 2 * k))]
        vectors = None if self._moves is None else [w[:, 2 * k :] for w in sums]
        return Weights(weights[0], intercept, weights[1], self._intercept, vectors, columns)


class SumsTrainer(Trainer):
    """Trains on all labelled rows by sums over them, and on target anchors."""

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        base, stack = self._base, self._chosen.stack
        rows = read_layers(base.domains.labelled, base.domains.domain, stack, base.place)
        Y = signs(base.domains.y, base.labels.n_classes)
        self._equations = NormalEquations(rows, Y, self._chosen.C, base.weight)
        self._weights, self._intercept = self._equations.solve()
        self._vectors: list[np.ndarray] | None = None  # of `move`, by layer
        centres = score_centres(stack.means, self._weights)
        scores = score_rows(base.anchors.X, stack.layers, self._weights, base.place) + self._intercept
        return scores - centres[self._domain], centres

    def _find_covariance(self) -> Array:
        X, domain = self._base.anchors.X[self._n :], self._domain[self._n :]
        moved = read_layers(X, domain, self._chosen.stack, self._base.place, self._vectors)
        return self._equations.add_rows(moved)

    def move(self, moves: np.ndarray) -> None:
        """Add a combination of labelled anchors to the rows of every domain: (n, n_domains)."""
        super().move(moves)
        rows, domain = self._read_anchors(slice(self._n)), self._domain[: self._n]
        pairs = zip(rows, self._chosen.stack.means, strict=True)
        self._vectors = [primal_weights(H, means, domain, moves) for H, means in pairs]

    def finish(self, coef: np.ndarray, kept: np.ndarray | None) -> Weights:
        """Return the classifier of coefficients of `retrain`, by layer, with the anchors `kept`."""
        first = self._weights, self._intercept
        last = self._equations.solve(coef) if coef.any() else first
        del self._equations  # the largest of all, and not needed afterwards
        columns = [] if kept is None else [to_host(H) for H in self._read_anchors(kept)]
        return Weights(*last, *first, self._vectors, columns)


@dataclass(frozen=True)
class Fit:
    """Everything that a fit found before calibration."""

    base: Base
    known_shares: Sequence[Sequence[float] | None]  # of every target; None where they are estimated
    is_balanced: bool  # border="balanced"
    has_teacher: bool
    seed: Any
    held_out: HeldOut
    labelled_scores: np.ndarray  # (n, n_outputs) of the labelled anchors, by the source alone
    aligned: Alignment | None
    trained: Trained
    weights: Weights


@savable
@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows less the centre of their domain."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs) to subtract: scores of the centres, less the thresholds
    temperature: float  # of target rows
    source_temperature: float
    targets: list[Target] | None = None  # None where they are not aligned
    error_ratio: float = 1.0  # errors after self-training over errors before it


def read_out(fit: Fit) -> Readout:
    """Find temperature, decision thresholds and expected errors for the weights of every layer."""
    base, held_out, aligned, trained = fit.base, fit.held_out, fit.aligned, fit.trained
    weights = fit.weights
    offsets = score_centres(base.chosen.stack.move_means(weights.moves), weights.last)
    if aligned is None:
        temperature = held_out.temperature
        return Readout(weights.last, weights.intercept, offsets, temperature, temperature)
    temperature = held_out.target_temperature(trained.n_pseudo_labels > 0)
    error_ratio = expect_error_ratio(len(base.domains.y), PSEUDO_WEIGHT * trained.n_pseudo_labels)
    targets = []
    for k, group, shares in zip(base.domains.target_positions, aligned.groups, aligned.shares, strict=True):
        scores = trained.scores[group], temperature, aligned.scores[group]
        targets.append(describe_target(*scores, held_out, shares, error_ratio, is_balanced=fit.is_balanced))
        offsets[k] -= targets[-1].shift
    source_temperature = temperature / held_out.transfer.before_self_training
    return Readout(
        weights.last, weights.intercept, offsets, temperature, source_temperature, targets, error_ratio
    )


def list_target_scores(fit: Fit, readout: Readout) -> list[np.ndarray | None]:
    """Return the scores of all rows of every target, as prediction gives them; None where some are unknown.

    They are known from the inner products: rows of the fit need no pass through the layers.
    """
    domains, anchors = fit.base.domains, fit.base.anchors
    scores: list[np.ndarray | None] = []
    for i, (k, name) in enumerate(zip(domains.target_positions, domains.targets, strict=True)):
        own = fit.trained.scores[anchors.domain[anchors.n_labelled :] == k]
        shift = 0.0 if readout.targets is None else readout.targets[i].shift
        scores.append(own + shift if len(own) == len(domains.codes[name]) else None)
    return scores
