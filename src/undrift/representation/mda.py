"""MDA: one denoising layer as a scikit-learn estimator, and what it shares with a stack."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._core import ACTIVATIONS, Layer, SingularSystem, array_ops, denoise, scatter
from .._inputs import (
    Place,
    check_choice,
    check_feature_noise,
    check_fit_rows,
    check_matrix,
    check_positive,
    check_rows,
    choose_place,
    dtype_of,
    load_cluster,
    on_cluster,
    place_rows,
    savable,
)


class Denoiser(TransformerMixin, BaseEstimator):
    """Parameters, tags and errors that one layer and a stack share."""

    def _check_denoiser(self, d: int | None = None) -> dict[str, Any]:
        check_choice(self.dtype, "dtype", (None, "float32", "float64"))
        return {
            "noise": check_feature_noise(self.noise, d),
            "ridge": check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5"),
            "activation": check_choice(self.activation, "activation", ACTIVATIONS),
        }

    def _apply_lazily(self, method: str, X: Any, width: int) -> Any:
        """Apply a method of this estimator to rows of Dask, block by block, when they are computed."""
        given = "float32" if getattr(X, "dtype", None) == np.float32 else "float64"
        return load_cluster().blockwise(self, method, X, shape=(width,), dtype=self.dtype or given)

    def _with_feature_names(self, error: SingularSystem) -> SingularSystem:
        """Return the error with the features' names, where `X` had them."""
        return error.with_names(self.feature_names_in_) if hasattr(self, "feature_names_in_") else error

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = [self.dtype] if self.dtype else ["float64", "float32"]
        return tags


@savable
class MDA(Denoiser):
    """Marginalised denoising autoencoder: one layer, in closed form.

    Learns the linear map that best reconstructs each row from a copy of it in which every feature
    is missing with probability `noise`, averaged over all such copies (sections 3.1-3.2), and
    applies `activation` to its output. Rows on a GPU are processed there, in full float32 or float64.

    Parameters
    ----------
    noise : float or array of shape (n_features,), default=0.5
        Probability that a feature is missing, in [0, 1), or one for each feature.
    ridge : float, default=1e-5
        Added to the diagonal of the system, absolutely; the intercept is never penalised.
    activation : {"tanh", "sigmoid", "relu", "identity"}, default="tanh"
        Function applied to every entry of the output.
    dtype : {"float32", "float64"}, optional
        Precision to compute in; that of the rows by default. Sums of :meth:`partial_fit`
        are float64 in any case.

    Attributes
    ----------
    layer_ : Layer
        With `coef` of shape (d, d) and `intercept` of shape (d,); callable on rows.
    scatter_ : Scatter
        Second moments of all rows seen, to which :meth:`partial_fit` adds.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` had them.

    See Also
    --------
    MSDA : A stack of such layers.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MDA
    >>> X = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    >>> MDA(noise=0.5).fit_transform(X).shape
    (3, 3)
    """

    __metadata_request__fit = {"sample_domain": True}

    def __init__(self, noise=0.5, *, ridge=1e-5, activation="tanh", dtype=None):
        self.noise = noise
        self.ridge = ridge
        self.activation = activation
        self.dtype = dtype

    def fit(self, X, y=None, *, sample_domain=None):
        """Learn the layer from the rows of `X`; labels are not used.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d), or re-iterable of such blocks
            The rows.
        y : ignored
        sample_domain : ignored
            Accepted so that the estimator can be used in a domain-aware pipeline.
        """
        self._check_denoiser()
        rows = check_fit_rows(self, X, dtype=self.dtype)
        blocks = place_rows(rows, self._place(rows))
        self._check_denoiser(self.n_features_in_)
        self.scatter_ = blocks.total(scatter).to_host()
        self._layer: Layer | None = None  # the layer of an earlier fit, should solving fail
        self._layer = self._solve()
        return self

    def partial_fit(self, X, y=None, *, sample_domain=None):
        """Add the rows of `X` to those seen so far: exactly as if all had been given to `fit`.

        Sums are kept in float64, whatever the rows. The layer is computed when it is next used,
        so that many small batches cost no more than one large one.
        """
        self._check_denoiser()
        first = not hasattr(self, "scatter_")
        X = check_matrix(self, X, reset=first)
        blocks = place_rows(array_ops(X).cast(X, np.float64), self._place(X))
        self._check_denoiser(self.n_features_in_)
        batch = blocks.total(scatter).to_host()
        self.scatter_ = batch if first else self.scatter_ + batch
        self._layer = None
        return self

    @property
    def layer_(self) -> Layer:
        """The fitted layer."""
        check_is_fitted(self, "scatter_")
        if self._layer is None:
            self._layer = self._solve()
        return self._layer

    def _place(self, rows: Any) -> Place:
        """Return where the rows are; on a GPU in full float32, as there is no parameter for the precision."""
        return choose_place([rows], "cpu", "highest")

    def _solve(self) -> Layer:
        try:
            return denoise(self.scatter_, **self._check_denoiser(self.n_features_in_))
        except SingularSystem as error:
            raise self._with_feature_names(error) from None

    def transform(self, X):
        """Hidden rows of `X`, dense, of shape (n, d); lazy for rows of Dask."""
        check_is_fitted(self)
        if on_cluster(X):
            return self._apply_lazily("transform", X, self.layer_.coef.shape[1])
        X = check_rows(self, X, reset=False, dtype=self.dtype)
        place = self._place(X)
        (H,) = place.hidden(place.move_layers([self.layer_]), X)
        return H.astype(dtype_of(X), copy=False)

    def get_feature_names_out(self, input_features=None):
        """Names of the output columns: ``h1:`` and the feature that the column reconstructs."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([f"h1:{name}" for name in names], dtype=object)
