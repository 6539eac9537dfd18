"""MSDA: a stack of denoising layers as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._core import (
    Array,
    Blocks,
    Layer,
    Rows,
    SingularSystem,
    choose_pivots,
    denoise,
    fit_layers,
    fit_pivot_layer,
    row_slices,
    scatter,
    select_noise,
)
from .._inputs import (
    CallbackSupportMixin,
    Place,
    as_array,
    binarize_rows,
    check_count,
    check_fit_rows,
    check_memory,
    check_pivots,
    check_rows,
    choose_place,
    dtype_of,
    load_cluster,
    on_cluster,
    place_rows,
    savable,
    track_steps,
    with_callbacks,
)
from .mda import Denoiser
from .subsample import check_max_rows, draw_rows


@savable
class MSDA(CallbackSupportMixin, Denoiser):
    """Marginalised stacked denoising autoencoder: layers in closed form, one on another.

    Each layer is an :class:`MDA` fitted on the output of the one before (section 3.3). Fit it on all
    rows at hand, of every domain, labelled or not, and train a linear classifier on the output;
    :class:`MSDAClassifier` does both without ever building that output.

    Parameters
    ----------
    n_layers : int, default=5
        Number of layers.
    noise : float or array of shape (n_features,), default=0.5
        As of :class:`MDA`, the same in each layer: a hidden feature reconstructs the input of its column.
    ridge : float, default=1e-5
        Added to the diagonal of each system, absolutely; the intercept is never penalised.
    activation : {"tanh", "sigmoid", "relu", "identity"}, default="tanh"
        Function applied to every entry of a layer's output.
    n_pivots : int, optional
        For many features: the first layer reconstructs only this many, the most frequent ones, from
        random parts of all features (section 4). The upper layers are that wide.
    binarize : bool, default=False
        Feed the first layer with presence (x > 0), as the paper does; the input block of the output
        stays as given.
    max_upper_rows : int, optional
        An approximation, for speed: layers from the second on are learnt from at most this many rows,
        drawn at random; the first one sees all of them. 12,000 of 27,677 reviews (5,000 terms) are half
        of the arithmetic and moved mean errors by 0.12 points at most (`benchmarks/NOTES.md`).
        Needs the rows in one matrix.
    include_input : bool, default=True
        Whether `transform` puts the input in front of the hidden layers.
    dtype : {"float32", "float64"}, optional
        Precision to compute in; that of the rows by default. Float32 takes half of the time and memory.
    device : str, default="cpu"
        Where to compute: "cpu" is NumPy; "cuda", "cuda:1" and the like are torch on that GPU, and
        "torch:cpu" is torch without one. Layers and hidden rows are NumPy arrays in any case. Rows
        that are a tensor on a GPU are processed there.
    precision : {"high", "highest"}, default="high"
        On a GPU: whether float32 products may round their operands to 11 bits, as TF32 does (which moves
        the weights by a few in a thousand), or not. Float64 rows are float64 throughout.
    memory_budget : float or str, optional
        Bytes, or a size such as "2 GB", above which hidden rows go to a temporary file during `fit`;
        half of the machine's memory by default. On a GPU: bytes of it that rows may take before they
        stay on the host; most of what is free by default.
    verbose : bool, default=False
        Whether to print a line to standard error after each layer.
    random_state : int, RandomState or None, default=None
        Seed of the random parts and rows; only `n_pivots` and `max_upper_rows` need it.

    Attributes
    ----------
    layers_ : list of Layer
        Each has `coef` of shape (d_in, d_out) and `intercept` of shape (d_out,), and is callable on
        rows.
    pivots_ : ndarray of int
        With `n_pivots`: the features that the first layer reconstructs.
    parts_ : list of ndarray of int
        With `n_pivots`: the random split of the features.
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
        n_layers=5,
        noise=0.5,
        *,
        ridge=1e-5,
        activation="tanh",
        n_pivots=None,
        binarize=False,
        max_upper_rows=None,
        include_input=True,
        dtype=None,
        device="cpu",
        precision="high",
        memory_budget=None,
        verbose=False,
        random_state=None,
    ):
        self.n_layers = n_layers
        self.noise = noise
        self.ridge = ridge
        self.activation = activation
        self.n_pivots = n_pivots
        self.binarize = binarize
        self.max_upper_rows = max_upper_rows
        self.include_input = include_input
        self.dtype = dtype
        self.device = device
        self.precision = precision
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y=None, *, sample_domain=None):
        """Learn the layers from the rows of `X`; labels are not used.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d), or re-iterable of such blocks
            The rows. A re-iterable is read once per layer (with `n_pivots`, once per part for the
            first one) and never stored; a list counts as blocks only if its items are two-dimensional.
            Also a Dask array cut into row blocks, dense or SciPy sparse, or a list of delayed values or
            futures: the rows and the hidden rows then stay on the workers.
        y : ignored
        sample_domain : ignored
            Accepted so that the estimator can be used in a domain-aware pipeline.
        """
        self._check_denoiser()
        n_layers = check_count(self.n_layers, "n_layers", hint="one layer is the least there is")
        check_memory(self.memory_budget)
        random_state = check_random_state(self.random_state)
        rows = check_fit_rows(self, X, dtype=self.dtype, binarize=self.binarize)
        # for rows on a cluster, layers are computed in this process
        device = "cpu" if on_cluster(rows) else self.device
        place = choose_place([rows], device, self.precision, self.memory_budget)
        max_rows = check_max_rows(self.max_upper_rows, [rows])
        if self.n_pivots is not None:
            check_pivots(self.n_pivots, self.n_features_in_)
        options = self._check_denoiser(self.n_features_in_)
        blocks = place_rows(rows, place, self.n_pivots or 0)
        layers: list[Callable[[], Layer]] = []  # being copied from the device
        for name in ("pivots_", "parts_"):  # of an earlier fit
            self.__dict__.pop(name, None)

        def state() -> dict[str, Any]:
            return {"layers_": [wait_for_layer() for wait_for_layer in layers]}

        try:
            with place.set_precision():
                first = self._pivot_layer(blocks, options, random_state)
                drawn = draw_rows([rows], max_rows, random_state)
                if drawn is not None:
                    first = first or denoise(blocks.total(scatter), **options)
                    blocks = place_rows(drawn[0], place, self.n_pivots or 0)
                if self.n_pivots is not None:
                    options["noise"] = select_noise(options["noise"], self.pivots_)
                steps = fit_layers([blocks], n_layers, partial(denoise, **options), first)
                for fitted in track_steps(self, steps, n_layers, "layer", state):
                    layers.append(place.start_copy_to_host(fitted.layer))
        except SingularSystem as error:
            raise self._with_layer_and_names(len(layers), error) from None
        self.layers_ = state()["layers_"]
        return self

    def _pivot_layer(
        self, blocks: Blocks, options: dict[str, Any], random_state: np.random.RandomState
    ) -> Layer | None:
        """Fit the first layer for many features (section 4), with `n_pivots`; None without."""
        if self.n_pivots is None:
            return None
        d = self.n_features_in_
        split = choose_pivots([blocks], d, check_pivots(self.n_pivots, d), random_state)
        self.pivots_, self.parts_ = split.pivots, split.parts
        return fit_pivot_layer([blocks], self.pivots_, self.parts_, **options)

    def _with_layer_and_names(self, depth: int, error: SingularSystem) -> SingularSystem:
        """Return the error with its layer and the features' names; upper layers see pivots alone."""
        if depth == 0:
            return self._with_feature_names(error)
        if hasattr(self, "pivots_"):
            error = error.with_names(self.pivots_.tolist())
        return self._with_feature_names(
            SingularSystem(f"in layer {depth + 1}, {error.cause}", error.features)
        )

    def hidden(self, X) -> Iterator[Array]:
        """Yield the hidden rows h^1, ..., h^l of `X`, one layer at a time; lazy for rows of Dask."""
        check_is_fitted(self)
        if on_cluster(X):
            return load_cluster().lazy_hidden(self, X)
        X = check_rows(self, X, reset=False, dtype=self.dtype)
        place = choose_place([X], self.device, self.precision, self.memory_budget)
        return self._hidden(X, place, place.move_layers(self.layers_))

    def _hidden(self, X: Rows, place: Place, layers: Sequence[Layer]) -> Iterator[Array]:
        rows = binarize_rows(X) if self.binarize else X
        return (h.astype(dtype_of(X), copy=False) for h in place.hidden(layers, rows))

    def _output(self, X: Rows, place: Place, layers: Sequence[Layer]) -> Iterator[Array]:
        """Yield the groups of columns of `transform`."""
        if self.include_input:
            yield as_array(X)
        yield from self._hidden(X, place, layers)

    def transform(self, X):
        """``[X, h^1, ..., h^l]`` of the rows of `X`, always dense; without X if not `include_input`.

        Of rows of Dask: lazy, block by block.
        """
        check_is_fitted(self)
        if on_cluster(X):
            return self._apply_lazily("transform", X, len(self.get_feature_names_out()))
        X = check_rows(self, X, reset=False, dtype=self.dtype)
        place = choose_place([X], self.device, self.precision, self.memory_budget)
        layers = place.move_layers(self.layers_)
        widths = [layer.coef.shape[1] for layer in layers]
        if self.include_input:
            widths = [X.shape[1], *widths]
        out = np.empty((X.shape[0], sum(widths)), dtype=dtype_of(X))
        edges = np.cumsum([0, *widths])
        for rows in row_slices(X.shape[0], max(widths)):
            for start, piece in zip(edges, self._output(X[rows], place, layers), strict=False):
                out[rows, start : start + piece.shape[1]] = piece
        return out

    def get_feature_names_out(self, input_features=None):
        """Names of the output columns: ``x:`` for the input, ``h1:``, ``h2:``, ... for the layers."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        reconstructed = names[self.pivots_] if hasattr(self, "pivots_") else names
        blocks = [("x", names)] if self.include_input else []
        blocks += [(f"h{t + 1}", reconstructed) for t in range(len(self.layers_))]
        return np.array(
            [f"{block}:{name}" for block, block_names in blocks for name in block_names], dtype=object
        )
