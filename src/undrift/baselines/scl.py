"""Structural correspondence learning (Blitzer et al. 2006, 2007)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_scalar
from sklearn.utils.extmath import svd_flip
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from .pivots import document_frequency, huber_predictors, ranked_by_information, ridge_predictors
from .rows import labelled_rows, one_label_per_row, presence, source_rows

RANKINGS = ("auto", "mutual-information", "frequency")
LOSSES = ("modified_huber", "ridge")


class SCL(TransformerMixin, BaseEstimator):
    """Structural correspondence learning: features that predict the same pivots share a direction.

    Pivots are features frequent in both domains (and, with labels, informative about them). A linear model
    predicts each pivot's presence from all other features; the leading left singular vectors of the
    predictors' weights are the shared directions. The result is ``[X, scale · z]`` with ``z`` the presence
    of features projected on these directions, centred and scaled to unit variance over the rows of `fit`.

    Parameters
    ----------
    n_components : int, default=50
        Number of directions kept; fewer where the predictors' weights have a smaller rank.
    n_pivots : int, default=500
        Number of pivots; fewer where there are fewer candidates.
    min_df : int, default=5
        A pivot occurs in at least so many rows of the source and of the target (of all rows, where
        `sample_domain` is not given).
    ranking : {"auto", "mutual-information", "frequency"}, default="auto"
        Order in which pivots are taken: by mutual information of their presence with the label of the
        labelled source rows, or by the smaller of their two document frequencies. "auto" is the former when
        labels are given, else the latter.
    loss : {"modified_huber", "ridge"}, default="modified_huber"
        Loss of the pivot predictors. "ridge" is in closed form, from one d × d factorisation for all pivots.
    ridge : float, default=5e-3
        Weight of ``|w|²`` against the *mean* loss of a predictor.
    clip_negative : bool, default=True
        Set negative predictor weights to zero before the decomposition.
    scale : float, default=1.0
        Standard deviation of each projected column in the result. It is read by `transform`, so
        ``set_params(scale=...)`` on a fitted SCL needs no new fit.
    binarize : bool, default=True
        Predict pivots from, and project, presence (x > 0); the input block stays as given.
    include_input : bool, default=True
        Put the input columns before the projected ones.

    Attributes
    ----------
    pivots_ : ndarray of shape (n_pivots,)
        Columns used as pivots, best first.
    components_ : ndarray of shape (n_features, n_components)
        Orthonormal directions.
    singular_values_ : ndarray of shape (n_components,)
    mean_, std_ : ndarray of shape (n_components,)
        Of the projections of all rows seen in `fit`.

    Notes
    -----
    Left open by the literature, and chosen here without target labels (docs/baselines.md has the numbers):
    predictors have an unpenalised intercept, which absorbs that nearly every pivot is nearly always absent;
    `ridge` is larger than the 1e-5 often used, because pivots of held-out rows are then predicted better;
    `scale` is 1 rather than 5, because cross-validation on the source prefers it.

    References
    ----------
    .. [1] Blitzer, McDonald and Pereira, "Domain adaptation with structural correspondence learning", 2006.
    .. [2] Blitzer, Dredze and Pereira, "Biographies, Bollywood, boom-boxes and blenders", 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.baselines import SCL
    >>> X = np.random.default_rng(0).poisson(0.5, size=(60, 12)).astype(float)
    >>> SCL(n_components=3).fit(X, sample_domain=[0] * 30 + [-1] * 30).transform(X).shape
    (60, 15)
    """

    def __init__(
        self,
        n_components: int = 50,
        *,
        n_pivots: int = 500,
        min_df: int = 5,
        ranking: str = "auto",
        loss: str = "modified_huber",
        ridge: float = 5e-3,
        clip_negative: bool = True,
        scale: float = 1.0,
        binarize: bool = True,
        include_input: bool = True,
    ) -> None:
        self.n_components = n_components
        self.n_pivots = n_pivots
        self.min_df = min_df
        self.ranking = ranking
        self.loss = loss
        self.ridge = ridge
        self.clip_negative = clip_negative
        self.scale = scale
        self.binarize = binarize
        self.include_input = include_input

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
        X = validate_data(
            self,
            X,
            accept_sparse=["csr"],
            dtype=[np.float64, np.float32],
            ensure_min_samples=2,
            ensure_min_features=2,
        )
        is_source = source_rows(sample_domain, X.shape[0])
        B = presence(X) if self.binarize else X
        self.pivots_ = self._chosen_pivots(presence(X), self._source_labels(X, y, is_source), is_source)
        solve = ridge_predictors if self.loss == "ridge" else huber_predictors
        weights = solve(B, self.pivots_, self.ridge)
        self.components_, self.singular_values_ = _directions(
            np.maximum(weights, 0) if self.clip_negative else weights, self.n_components
        )
        self.components_ = self.components_.astype(X.dtype)
        projected = B @ self.components_
        self.mean_, self.std_ = projected.mean(axis=0), projected.std(axis=0)
        self.std_[self.std_ == 0] = 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Append the scaled projections to the rows: sparse where `X` is and the input is included."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr"], dtype=[np.float64, np.float32], reset=False)
        B = presence(X) if self.binarize else X
        projected = (B @ self.components_ - self.mean_) * (self.scale / self.std_)
        if not self.include_input:
            return projected
        if sp.issparse(X):
            stack = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
            return stack(sp.hstack([X, stack(projected)], format="csr"))
        return np.hstack([X, projected])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns of the result: the input's, then ``scl0``, ``scl1``, ..."""
        check_is_fitted(self)
        own = [f"scl{i}" for i in range(self.components_.shape[1])]
        if not self.include_input:
            return np.array(own, dtype=object)
        return np.append(
            OneToOneFeatureMixin.get_feature_names_out(self, input_features), np.array(own, dtype=object)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_pivots", "min_df"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_scalar(self.ridge, "ridge", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.scale, "scale", Real, min_val=0, include_boundaries="neither")
        for name, allowed in (("ranking", RANKINGS), ("loss", LOSSES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, and is {getattr(self, name)!r}.")

    def _source_labels(
        self, X: Any, y: ArrayLike | None, is_source: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], NDArray[Any]] | None:
        """Which rows inform the ranking, and their labels; None for a ranking by frequency."""
        if y is None and self.ranking == "mutual-information":
            raise ValueError("ranking='mutual-information' needs the labels y of the source rows.")
        if y is None or self.ranking == "frequency":
            return None
        labels = one_label_per_row(X, y)
        known = labelled_rows(labels) if is_source is None else labelled_rows(labels) & is_source
        kept = labels[known]
        if kept.dtype.kind == "O" and len(kept):
            kept = np.array(kept.tolist())  # strings or numbers, once None and NaN are gone
        usable = len(kept) > 0 and not type_of_target(kept).startswith("continuous")
        if not usable and self.ranking == "mutual-information":
            raise ValueError(
                "ranking='mutual-information' needs class labels on some source rows; y holds none."
            )
        return (known, kept) if usable else None

    def _chosen_pivots(
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
            ranked = ranked_by_information(B[labels[0]], labels[1], candidates)
        return ranked[: self.n_pivots]


def _directions(weights: NDArray[Any], n_components: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Leading left singular vectors of the predictors' weights, without those of rank zero."""
    U, singular_values, V = scipy.linalg.svd(np.asarray(weights, dtype=np.float64), full_matrices=False)
    floor = singular_values[0] * max(weights.shape) * np.finfo(weights.dtype).eps
    rank = max(1, int(np.sum(singular_values > floor)))
    U, _ = svd_flip(U, V)
    return U[:, : min(rank, n_components)], singular_values[: min(rank, n_components)]
