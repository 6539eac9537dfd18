"""`MDA` and `MSDA`: one denoising layer, and a stack of them, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .core import (
    ACTIVATIONS,
    Array,
    Blocks,
    Layer,
    LayerOptions,
    LayerSolver,
    PivotSplit,
    Rows,
    SingularSystem,
    array_ops,
    choose_pivots,
    denoise,
    fit_layers,
    row_slices,
    scatter,
)
from .inputs import (
    Place,
    all_or_nothing,
    as_array,
    check_choice,
    check_count,
    check_fit_rows,
    check_matrix,
    check_noise,
    check_pivots,
    check_positive,
    check_rows,
    choose_place,
    dtype_of,
    load_cluster,
    on_cluster,
    place_rows,
)


class Denoiser(TransformerMixin, BaseEstimator):
    """What one layer and a stack share: parameters, outputs, tags and errors."""

    noise: float
    ridge: float
    activation: str
    include_input = False
    device = "cpu"
    _memory_budget: float | None = None  # bytes of hidden rows of a layer; None for a part of the memory

    def _check_denoiser(self) -> LayerOptions:
        return {
            "noise": check_noise(self.noise),
            "ridge": check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5"),
            "activation": check_choice(self.activation, "activation", ACTIVATIONS),
        }

    def _choose_place(self, rows: Rows) -> Place:
        """Return where to compute; for rows on a cluster, layers are computed in this process."""
        device = "cpu" if on_cluster(rows) else self.device
        return choose_place([rows], device, self._memory_budget)

    @property
    def _layers(self) -> list[Layer]:
        """The fitted layers."""
        raise NotImplementedError

    @overload
    def transform(self, X: np.ndarray) -> np.ndarray: ...
    @overload
    def transform(self, X: Rows) -> Array: ...
    def transform(self, X: Rows) -> Array:
        """Return the outputs of the layers, side by side; with `include_input`, `X` comes first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or rows of Dask
            Rows of any domain.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            Dense; lazy blocks for rows of Dask.
        """
        check_is_fitted(self)
        if on_cluster(X):
            shape = (len(self.get_feature_names_out()),)
            dtype = "float32" if getattr(X, "dtype", None) == np.float32 else "float64"
            return load_cluster().blockwise(self, "transform", X, shape=shape, dtype=dtype)
        X = check_rows(self, X, reset=False)
        place = self._choose_place(X)
        layers = place.move_layers(self._layers)
        widths = [len(layer.intercept) for layer in layers]
        if self.include_input:
            widths = [X.shape[1], *widths]
        out = np.empty((X.shape[0], sum(widths)), dtype=dtype_of(X))
        edges = np.cumsum([0, *widths])
        for rows in row_slices(X.shape[0], max(widths)):
            given = [as_array(X[rows])] if self.include_input else []
            for start, piece in zip(edges, chain(given, place.hidden(layers, X[rows])), strict=False):
                out[rows, start : start + piece.shape[1]] = piece
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return names of the output columns: ``x:`` of the input, ``h1:``, ``h2:``, ... of the layers.

        Parameters
        ----------
        input_features : array of str, default=None
            Names of the features, where `fit` saw none.

        Returns
        -------
        ndarray of str, of shape (n_outputs,)
            One name for each column of `transform`.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        reconstructed = names[self.pivots_] if hasattr(self, "pivots_") else names
        blocks = [("x", names)] if self.include_input else []
        blocks += [(f"h{t + 1}", reconstructed) for t in range(len(self._layers))]
        return np.array(
            [f"{block}:{name}" for block, block_names in blocks for name in block_names], dtype=object
        )

    def _name_features(self, error: SingularSystem, depth: int = 0) -> SingularSystem:
        """Return the error with its layer, and the features' names where `X` had them."""
        if depth > 0 and hasattr(self, "pivots_"):  # upper layers see pivots alone
            error = error.with_names(self.pivots_.tolist())
        if hasattr(self, "feature_names_in_"):
            error = error.with_names(self.feature_names_in_)
        cause = f"in layer {depth + 1}, {error.cause}" if depth else error.cause
        return SingularSystem(cause, error.features, error.remedy)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MDA(Denoiser):
    """Marginalised denoising autoencoder: one layer, in closed form.

    Learns the linear map that best reconstructs each row from a copy of it in which every feature
    is missing with probability `noise`, averaged over all such copies (sections 3.1-3.2), and
    applies `activation` to its output. Rows on a GPU are processed there, in full float32 or float64.

    Parameters
    ----------
    noise : float, default=0.5
        Probability that a feature is missing, in [0, 1).
    ridge : float, default=1e-5
        Added to the diagonal of the system, absolutely; the intercept is never penalised.
    activation : {"tanh", "sigmoid", "relu", "identity"}, default="tanh"
        Function applied to every entry of the output.

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

    def __init__(
        self,
        noise: float = 0.5,
        *,
        ridge: float = 1e-5,
        activation: str = "tanh",
    ) -> None:
        self.noise = noise
        self.ridge = ridge
        self.activation = activation

    @all_or_nothing
    def fit(self, X: Rows, y: object = None, *, sample_domain: object = None) -> Self:
        """Learn the layer from the rows of `X`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), re-iterable of such blocks, or rows of Dask
            Rows of all domains.
        y, sample_domain : object, default=None
            Not used.

        Returns
        -------
        MDA
            This estimator.
        """
        self._check_denoiser()
        rows = check_fit_rows(self, X)
        blocks = place_rows(rows, self._choose_place(rows))
        self.scatter_ = blocks.total(scatter).to_host()
        self._layer: Layer | None = self._solve()
        return self

    def partial_fit(self, X: Rows, y: object = None, *, sample_domain: object = None) -> Self:
        """Add rows to the rows seen so far; the result is that of one `fit` on all of them.

        Sums are kept in float64, whatever the rows. The layer is computed when it is next used.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            More rows.
        y, sample_domain : object, default=None
            Not used.

        Returns
        -------
        MDA
            This estimator.
        """
        self._check_denoiser()
        first = not hasattr(self, "scatter_")
        X = check_matrix(self, X, reset=first)
        blocks = place_rows(array_ops(X).cast(X, np.float64), self._choose_place(X))
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

    @property
    def _layers(self) -> list[Layer]:
        return [self.layer_]

    def _solve(self) -> Layer:
        try:
            return denoise(self.scatter_, **self._check_denoiser())
        except SingularSystem as error:
            raise self._name_features(error) from None


class MSDA(Denoiser):
    """Marginalised stacked denoising autoencoder: layers in closed form, one on another.

    Each layer is an :class:`MDA` fitted on the output of the one before (section 3.3). Fit it on all
    rows at hand, of every domain, labelled or not, and train a linear classifier on the output;
    :class:`MSDAClassifier` does both without ever building that output.

    Parameters
    ----------
    n_layers : int, default=5
        Number of layers.
    noise : float, default=0.5
        As of :class:`MDA`, the same in each layer.
    ridge : float, default=1e-5
        Added to the diagonal of each system, absolutely; the intercept is never penalised.
    activation : {"tanh", "sigmoid", "relu", "identity"}, default="tanh"
        Function applied to every entry of a layer's output.
    n_pivots : int, optional
        For many features: the first layer reconstructs only this many, the most frequent ones, from all
        features or from random parts of them (section 4). The upper layers are that wide.
    include_input : bool, default=True
        Whether `transform` puts the input in front of the hidden layers.
    device : str, default="cpu"
        Where to compute: "cpu" is NumPy; "cuda", "cuda:1" and the like are torch on that GPU, and "torch:cpu"
        is torch without one. Rows that are a tensor on a GPU are processed there. Hidden rows that do not fit
        into half of the memory go to a temporary file.
    random_state : int, RandomState or None, default=None
        Seed of the random parts; only `n_pivots` needs it.

    Attributes
    ----------
    layers_ : list of Layer
        Each has `coef` of shape (d_in, d_out), `intercept` of shape (d_out,), and is callable on rows.
    pivots_ : ndarray of int
        With `n_pivots`: the features that the first layer reconstructs.
    parts_ : list of ndarray of int
        With `n_pivots`: the random split of the features, which a layer of many rows averages over.
    form_ : {"rows", "parts", "terms"}
        How the first layer was solved for. The number of rows, features and pivots decides, and no device:
        "rows" where the square of the rows is at most features times reconstructed features, exactly; else
        "terms", exactly, or with fewer pivots than features "parts", by the random parts of section 4.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` had them.

    References
    ----------
    .. [1] M. Chen, Z. Xu, K. Weinberger, F. Sha, "Marginalized Denoising Autoencoders for Domain
       Adaptation", ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDA
    >>> X = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    >>> MSDA(n_layers=2).fit(X).transform(X).shape
    (3, 9)
    """

    __metadata_request__fit = {"sample_domain": True}

    def __init__(
        self,
        n_layers: int = 5,
        noise: float = 0.5,
        *,
        ridge: float = 1e-5,
        activation: str = "tanh",
        n_pivots: int | None = None,
        include_input: bool = True,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_layers = n_layers
        self.noise = noise
        self.ridge = ridge
        self.activation = activation
        self.n_pivots = n_pivots
        self.include_input = include_input
        self.device = device
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Rows, y: object = None, *, sample_domain: object = None) -> Self:
        """Learn the layers from the rows of `X`.

        Blocks are read once for each layer, and hidden rows of a cluster stay on its workers. Rows that are
        few enough for the form "rows" are gathered in memory for the first layer.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), re-iterable of such blocks, or rows of Dask
            Rows of all domains. Rows of Dask are an array cut into row blocks, dense or SciPy sparse, or a
            list of delayed values or futures.
        y, sample_domain : object, default=None
            Not used.

        Returns
        -------
        MSDA
            This estimator.
        """
        options = self._check_denoiser()
        n_layers = check_count(self.n_layers, "n_layers", hint="one layer is the least there is")
        random_state = check_random_state(self.random_state)
        rows = check_fit_rows(self, X)
        place = self._choose_place(rows)
        if self.n_pivots is not None:
            check_pivots(self.n_pivots, self.n_features_in_)
        blocks = place_rows(rows, place, self.n_pivots or 0)
        layers: list[Layer] = []
        try:
            with place.set_precision():
                first = LayerSolver([blocks], self._split_features(blocks, random_state)).fit(**options)
                self.form_ = first.form
                for fitted in fit_layers([blocks], n_layers, options, first):
                    layers.append(place.to_host(fitted.layer))
        except SingularSystem as error:
            raise self._name_features(error, len(layers)) from None
        self.layers_ = layers
        return self

    def _split_features(self, blocks: Blocks, random_state: np.random.RandomState) -> PivotSplit | None:
        """Choose the pivots of the first layer and the random parts of section 4; None without `n_pivots`."""
        if self.n_pivots is None:
            return None
        d = self.n_features_in_
        split = choose_pivots([blocks], d, check_pivots(self.n_pivots, d), random_state)
        self.pivots_, self.parts_ = split.pivots, split.parts
        return split

    @property
    def _layers(self) -> list[Layer]:
        return self.layers_

    def hidden(self, X: Rows) -> Iterator[Array]:
        """Yield the hidden rows h^1, ..., h^l of `X`, one layer at a time.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), or rows of Dask
            Rows of any domain.

        Returns
        -------
        iterator of ndarray
            One dense array for each layer; lazy blocks for rows of Dask.
        """
        check_is_fitted(self)
        if on_cluster(X):
            return load_cluster().lazy_hidden(self, X)
        X = check_rows(self, X, reset=False)
        place = self._choose_place(X)
        layers = place.move_layers(self.layers_)
        return (h.astype(dtype_of(X), copy=False) for h in place.hidden(layers, X))
