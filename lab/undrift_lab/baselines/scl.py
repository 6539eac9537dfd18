"""Structural correspondence learning (Blitzer et al. 2006, 2007)."""

from __future__ import annotations

from itertools import chain, zip_longest
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.extmath import svd_flip
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .rows import SparseRowsMixin, check_baseline_rows, check_source_rows, presence, take_known_labels

N_AT_ONCE = 128  # predictors solved together: their margins (n_rows, 128) stay in cache
Floats = NDArray[np.floating[Any]]


class SCL(SparseRowsMixin, TransformerMixin, BaseEstimator):
    """Structural correspondence learning: features that predict the same pivots share a direction.

    Pivots are features frequent in both domains, those first that are informative about the labels of the
    source (without labels, the most frequent ones). A linear model with the modified Huber loss predicts each
    pivot's presence from all other features; the leading left singular vectors of the predictors' weights are
    the shared directions. The result is ``[X, scale · z]`` with ``z`` the presence of features projected on
    these directions, centred and scaled to unit variance over the rows of `fit`.

    Parameters
    ----------
    n_components, n_pivots : int, default=50 and 500
        Numbers of directions and of pivots, at most.
    min_df : int, default=5
        A pivot occurs in at least so many rows of the source and of the target (of all rows, where
        `sample_domain` is not given).
    ridge : float, default=5e-3
        Weight of ``|w|²`` against the *mean* loss of a predictor.
    clip_negative : bool, default=True
        Set negative predictor weights to zero before the decomposition.
    scale : float, default=1.0
        Standard deviation of each projected column, read by `transform`.

    Notes
    -----
    Left open by the literature, and chosen here without target labels (numbers: lab/pages/baselines.md):
    predictors have an unpenalised intercept, which absorbs that nearly every pivot is nearly always absent;
    `ridge` is larger than the 1e-5 often used, because pivots of held-out rows are then predicted better;
    `scale` is 1 rather than 5, because cross-validation on the source prefers it.

    References
    ----------
    .. [1] Blitzer, McDonald and Pereira, "Domain adaptation with structural correspondence learning", 2006.
    .. [2] Blitzer, Dredze and Pereira, "Biographies, Bollywood, boom-boxes and blenders", 2007.
    """

    def __init__(
        self,
        n_components: int = 50,
        *,
        n_pivots: int = 500,
        min_df: int = 5,
        ridge: float = 5e-3,
        clip_negative: bool = True,
        scale: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.n_pivots = n_pivots
        self.min_df = min_df
        self.ridge = ridge
        self.clip_negative = clip_negative
        self.scale = scale

    def fit(self, X: Any, y: ArrayLike | None = None, *, sample_domain: ArrayLike | None = None) -> SCL:
        """Choose pivots, learn to predict them, and keep the directions their predictors share.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_rows, n_features)
            Rows of both domains, labelled or not.
        y : array of shape (n_rows,), optional
            Labels; those of target rows, and those that are None or NaN, are not looked at.
        sample_domain : array of int of shape (n_rows,), optional
            Sources >= 0, targets < 0.
        """
        self._check_parameters()
        X = check_baseline_rows(self, X, ensure_min_samples=2, ensure_min_features=2)
        is_source = check_source_rows(sample_domain, X.shape[0])
        B = presence(X)
        self.pivots_ = self._choose_pivots(B, self._source_labels(X, y, is_source), is_source)
        weights = huber_predictors(B, self.pivots_, self.ridge)
        self.components_, self.singular_values_ = _shared_directions(
            np.maximum(weights, 0) if self.clip_negative else weights, self.n_components
        )
        self.components_ = self.components_.astype(X.dtype)
        projected = B @ self.components_
        self.mean_, self.std_ = projected.mean(axis=0), projected.std(axis=0)
        self.std_[self.std_ == 0] = 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Append the scaled projections to the rows: sparse where `X` is."""
        check_is_fitted(self)
        X = check_baseline_rows(self, X, reset=False)
        projected = (presence(X) @ self.components_ - self.mean_) * (self.scale / self.std_)
        if sp.issparse(X):
            stack = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
            return stack(sp.hstack([X, stack(projected)], format="csr"))
        return np.hstack([X, projected])

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_pivots", "min_df"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_scalar(self.ridge, "ridge", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.scale, "scale", Real, min_val=0, include_boundaries="neither")

    def _source_labels(
        self, X: Any, y: ArrayLike | None, is_source: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], NDArray[Any]] | None:
        """Which rows inform the ranking, and their labels; None for a ranking by frequency."""
        if y is None:
            return None
        known, kept = take_known_labels(X, y, is_source)
        is_usable = len(kept) > 0 and not type_of_target(kept).startswith("continuous")
        return (known, kept) if is_usable else None

    def _choose_pivots(
        self,
        B: Any,
        labels: tuple[NDArray[np.bool_], NDArray[Any]] | None,
        is_source: NDArray[np.bool_] | None,
    ) -> NDArray[np.intp]:
        """Choose the `n_pivots` best candidates."""
        sides = [B] if is_source is None else [B[side] for side in (is_source, ~is_source) if side.any()]
        frequency = np.min([document_frequency(side) for side in sides], axis=0)
        candidates = np.flatnonzero(frequency >= self.min_df)
        if not len(candidates):
            raise ValueError(
                f"None of the {B.shape[1]} feature(s) occurs in at least min_df={self.min_df} rows of every "
                "domain, so there is no pivot; lower min_df or give more rows."
            )
        if labels is None:
            ranked = candidates[np.argsort(-frequency[candidates], kind="stable")]
        else:
            ranked = rank_by_information(B[labels[0]], labels[1], candidates)
        return ranked[: self.n_pivots]


def _shared_directions(weights: NDArray[Any], n_components: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Leading left singular vectors of the predictors' weights, without those of rank zero."""
    U, singular_values, V = scipy.linalg.svd(np.asarray(weights, dtype=np.float64), full_matrices=False)
    floor = singular_values[0] * max(weights.shape) * np.finfo(weights.dtype).eps
    rank = max(1, int(np.sum(singular_values > floor)))
    U, _ = svd_flip(U, V)
    return U[:, : min(rank, n_components)], singular_values[: min(rank, n_components)]


def document_frequency(B: Any) -> NDArray[np.int64]:
    """In how many rows each column of the 0/1 matrix `B` is present."""
    return np.asarray(B.sum(axis=0), dtype=np.float64).ravel().round().astype(np.int64)


def mutual_information(B: Any, positive: NDArray[np.bool_]) -> Floats:
    """Bits that the presence of each column tells about a yes-or-no label, with one added to every count.

    The added count keeps the logarithm finite in empty cells of the 2 × 2 table.
    """
    n_present, n_both = document_frequency(B), document_frequency(B[positive])
    n_positive, n_rows = int(positive.sum()), len(positive)
    table = np.array(
        [[n_both, n_present - n_both], [n_positive - n_both, n_rows - n_positive - n_present + n_both]],
        dtype=float,
    )
    joint = (table + 1) / (n_rows + 4)  # (presence, label, column)
    independent = joint.sum(axis=0, keepdims=True) * joint.sum(axis=1, keepdims=True)
    information: Floats = (joint * np.log2(joint / independent)).sum(axis=(0, 1))
    return information


def rank_by_information(B: Any, labels: NDArray[Any], candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Candidates by falling mutual information; beyond two classes one-against-rest rankings take turns."""
    classes = np.unique(labels)
    singled_out = classes[1:] if len(classes) == 2 else classes
    rankings = [
        candidates[np.argsort(-mutual_information(B, labels == c)[candidates], kind="stable")]
        for c in singled_out
    ]
    in_turn = chain.from_iterable(zip_longest(*rankings))
    return np.array(list(dict.fromkeys(in_turn)), dtype=np.intp)


def huber_predictors(
    B: Any, pivots: NDArray[np.intp], ridge: float, tol: float = 1e-2, max_iter: int = 100
) -> Floats:
    """Modified-Huber predictors of every pivot's ±1 presence from all other columns.

    Minimises ``mean(loss(y (w'x + b))) + ridge |w|²``, where the loss is 0 from 1 on, ``(1 - z)²`` down to
    -1 and ``-4 z`` below, until the gradient has shrunk by `tol` (or `max_iter` steps).
    """
    batches = [pivots[i : i + N_AT_ONCE] for i in range(0, len(pivots), N_AT_ONCE)]
    return np.hstack([_huber_batch(B, batch, ridge, tol, max_iter) for batch in batches])


def _huber_batch(B: Any, pivots: NDArray[np.intp], ridge: float, tol: float, max_iter: int) -> Floats:
    """Preconditioned nonlinear conjugate gradients, one independent problem per column."""
    present = B[:, pivots]
    y = 2 * (present.toarray() if hasattr(present, "toarray") else present) - 1  # (n, m)
    n_rows, diagonal = len(y), (pivots, np.arange(len(pivots)))
    curvature = 2 * (np.append(document_frequency(B) / n_rows, 1.0) + ridge)[:, None].astype(y.dtype)
    penalty = np.append(np.full(B.shape[1], 2 * ridge), 0.0)[:, None].astype(y.dtype)
    # weights, gradient and direction are (d + 1, m): the last row is the intercept, never penalised
    weights = np.zeros((B.shape[1] + 1, len(pivots)), dtype=y.dtype)
    z, direction, previous, first = np.zeros_like(y), np.zeros_like(weights), weights, None
    for _ in range(max_iter):
        pull = -2 * y * np.clip(1 - z, 0, 2) / n_rows
        gradient = np.vstack([B.T @ pull, pull.sum(axis=0)]) + penalty * weights
        gradient[diagonal] = 0.0  # a pivot never predicts itself
        size = np.sum(gradient**2 / curvature, axis=0)
        first = size if first is None else first
        if np.all(size <= tol**2 * first):
            break
        direction = _conjugate(gradient, previous, direction, curvature)
        along = y * (B @ direction[:-1] + direction[-1])
        step = _minimize_along(
            z, along, np.sum(penalty * weights * direction, axis=0), np.sum(penalty * direction**2, axis=0)
        )
        weights, z, previous = weights + step * direction, z + step * along, gradient
    return weights[:-1]


def _conjugate(gradient: Floats, previous: Floats, direction: Floats, curvature: Floats) -> Floats:
    """Polak-Ribière direction of each column, steepest descent where that would not descend."""
    before = np.sum(previous**2 / curvature, axis=0)
    rise = np.sum(gradient * (gradient - previous) / curvature, axis=0)
    beta = np.maximum(0, np.divide(rise, before, out=np.zeros_like(rise), where=before > 0))
    steepest = -gradient / curvature
    conjugate = steepest + beta * direction
    return np.where(np.sum(conjugate * gradient, axis=0) < 0, conjugate, steepest)


def _minimize_along(z: Floats, along: Floats, slope: Floats, bend: Floats, n_steps: int = 5) -> Floats:
    """Where each column's convex objective is least along its line: Newton steps kept inside a bracket.

    The slope at t is piecewise linear and rising: ``mean(along · loss'(z + t along)) + slope + t bend``.
    """
    n_rows = len(z)
    t, low, high = np.zeros_like(slope), np.zeros_like(slope), np.full_like(slope, np.inf)
    for _ in range(n_steps):
        shortfall = 1 - z - t * along
        curved = np.sum(along**2 * ((shortfall > 0) & (shortfall < 2)), axis=0)
        rising = -2 * np.sum(along * np.clip(shortfall, 0, 2), axis=0) / n_rows + slope + t * bend
        low, high = np.where(rising < 0, t, low), np.where(rising < 0, high, t)
        steepness = 2 * curved / n_rows + bend
        newton = t - np.divide(rising, steepness, out=np.zeros_like(t), where=steepness > 0)
        halfway = np.where(np.isinf(high), 2 * low + 1, (low + high) / 2)
        t = np.where((newton >= low) & (newton <= high), newton, halfway)
    return t
