"""Stacked denoising autoencoders (Glorot, Bordes and Bengio 2011), what mSDA replaces by a closed form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from .._inputs import check_device
from .rows import SparseRowsMixin, check_baseline_rows, presence

DECODERS = ("sigmoid", "softplus")
N_REPORTS = 10  # calls of `callback` in an epoch
N_ROWS_AT_ONCE = 1024  # rows encoded at a time on a GPU


@dataclass(frozen=True)
class Progress:
    """Where training stands, for `callback`; `loss` is the mean of the epoch so far.

    Parameters
    ----------
    layer, epoch, n_epochs : int
        Which layer, which of how many epochs.
    done : float
        Share of the epoch that is done.
    loss : float
        Mean loss of the epoch so far.
    seconds : float
        Since the fit began.

    Examples
    --------
    >>> from undrift.baselines import Progress
    >>> Progress(layer=1, epoch=2, n_epochs=5, done=0.5, loss=0.25, seconds=3.0).done
    0.5
    """

    layer: int
    epoch: int
    n_epochs: int
    done: float
    loss: float
    seconds: float


@dataclass(frozen=True)
class Encoder:
    """One trained layer: ``h = max(0, x @ coef + intercept)``."""

    coef: NDArray[Any]  # (d_in, d_out)
    intercept: NDArray[Any]  # (d_out,)

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Hidden values of `rows`, dense or sparse."""
        return np.maximum(rows @ self.coef + self.intercept, 0)


class SDA(SparseRowsMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Stacked denoising autoencoders: hidden values trained to restore masked input (torch extra).

    Each layer is a rectifier encoder with an untied decoder. The first decoder is a sigmoid with
    cross-entropy; those above are a softplus with squared error against the clean hidden values below.
    Trained greedily by plain stochastic gradient descent, with an L1 penalty on hidden values; labels are
    not used.

    Parameters
    ----------
    n_layers : int, default=1
    n_hidden : int or tuple, default=5000
    noise : float or tuple, default=(0.8, 0.3, 0.1)
        Probability that an input of the layer is masked in training.
    learning_rate : float or tuple, default=(5e-3, 5e-4, 3e-4)
    sparsity : float or tuple, default=(1e-4, 1e-3, 1e-3)
        Weight of the sum of hidden values.
    n_epochs : int or tuple, default=(30, 30, 15)
        This and the four above take a value for all layers or one for each; the last serves any that follow.
    batch_size : int, default=10
    sampling : float, optional
        Share of the zeros that the first layer reconstructs, drawn anew for each row and weighted by its
        inverse (reconstruction sampling). Default: all of them.
    decoder : {"sigmoid", "softplus"}, default="sigmoid"
        Decoder of the first layer; "sigmoid" needs values in [0, 1].
    binarize : bool, default=True
        Train on, and encode, presence (x > 0).
    device : str, default="cpu"
        Where to train and encode: "cpu", "cuda", "cuda:1" and the like.
    callback : callable, optional
        Called with a `Progress` ten times an epoch.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    layers_ : list of Encoder
    losses_ : list of ndarray
        Mean training loss of each epoch, one array a layer.
    seconds_ : list of float
        Time spent training each layer.

    Notes
    -----
    The defaults are those of the first author's Amazon configuration. Left open and chosen here: the squared
    error is not halved; sampled zeros are weighted (the released code leaves that off by default); weights
    have the input's precision, and float32 products on a GPU use TF32.

    References
    ----------
    .. [1] Glorot, Bordes and Bengio, "Domain adaptation for large-scale sentiment classification", 2011.
    .. [2] Dauphin, Glorot and Bengio, "Large-scale learning of embeddings with reconstruction sampling",
       2011.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.baselines import SDA
    >>> X = np.random.default_rng(0).poisson(0.5, size=(40, 12)).astype(np.float32)
    >>> SDA(n_hidden=8, n_epochs=2, random_state=0).fit_transform(X).shape
    (40, 8)
    """

    def __init__(
        self,
        n_layers: int = 1,
        *,
        n_hidden: int | tuple[int, ...] = 5000,
        noise: float | tuple[float, ...] = (0.8, 0.3, 0.1),
        learning_rate: float | tuple[float, ...] = (5e-3, 5e-4, 3e-4),
        sparsity: float | tuple[float, ...] = (1e-4, 1e-3, 1e-3),
        n_epochs: int | tuple[int, ...] = (30, 30, 15),
        batch_size: int = 10,
        sampling: float | None = None,
        decoder: str = "sigmoid",
        binarize: bool = True,
        device: str = "cpu",
        callback: Callable[[Progress], None] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_layers = n_layers
        self.n_hidden = n_hidden
        self.noise = noise
        self.learning_rate = learning_rate
        self.sparsity = sparsity
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.sampling = sampling
        self.decoder = decoder
        self.binarize = binarize
        self.device = device
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None, *, sample_domain: ArrayLike | None = None) -> SDA:
        """Train the layers one after the other on the rows of `X`, of whatever domain; `y` is not used.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_rows, n_features)
        y : ignored
        sample_domain : ignored
        """
        self._check_parameters()
        X = self._rows(X, reset=True)
        if self.decoder == "sigmoid" and X.nnz and not (X.data.min() >= 0 and X.data.max() <= 1):
            raise ValueError(
                f"decoder='sigmoid' needs values in [0, 1], and they reach from {X.data.min():g} to "
                f"{X.data.max():g}; use binarize=True or decoder='softplus'."
            )
        torch_part, device = _import_torch_part(self.device)
        rng = check_random_state(self.random_state)
        rows = torch_part.move_rows(X, device)
        self.layers_: list[Encoder] = []
        self.losses_: list[NDArray[np.float64]] = []
        self.seconds_: list[float] = []
        with torch_part.allow_tf32(device):
            for position in range(self.n_layers):
                self._train_layer(torch_part, rows, position, rng)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Hidden values of the last layer, from unmasked rows."""
        for hidden in self.hidden(X):  # noqa: B007 (the last one is wanted)
            pass
        return hidden

    def hidden(self, X: Any) -> Iterator[NDArray[Any]]:
        """Hidden values of each layer in turn, from unmasked rows."""
        check_is_fitted(self)
        h: Any = self._rows(X, reset=False)
        for layer in self.layers_:
            h = layer(h) if self.device == "cpu" else self._encode_on_device(layer, h)
            yield h

    def _encode_on_device(self, layer: Encoder, h: Any) -> NDArray[Any]:
        torch_part, device = _import_torch_part(self.device)
        with torch_part.allow_tf32(device):
            rows = torch_part.move_rows(sp.csr_array(h), device)
            return torch_part.encode_rows(rows, layer.coef, layer.intercept, N_ROWS_AT_ONCE)

    @property
    def _n_features_out(self) -> int:
        return int(self.layers_[-1].coef.shape[1])

    def _rows(self, X: Any, *, reset: bool) -> Any:
        X = check_baseline_rows(self, X, reset=reset)
        return sp.csr_array(presence(X) if self.binarize else X)

    def _check_parameters(self) -> None:
        check_scalar(self.n_layers, "n_layers", Integral, min_val=1)
        check_scalar(self.batch_size, "batch_size", Integral, min_val=1)
        for name, kind, low, high, bounds in (
            ("n_hidden", Integral, 1, None, "left"),
            ("n_epochs", Integral, 1, None, "left"),
            ("noise", Real, 0, 1, "left"),
            ("learning_rate", Real, 0, None, "neither"),
            ("sparsity", Real, 0, None, "left"),
        ):
            for value in _as_tuple(getattr(self, name)):
                check_scalar(value, name, kind, min_val=low, max_val=high, include_boundaries=bounds)
        if self.sampling is not None:
            check_scalar(self.sampling, "sampling", Real, min_val=0, max_val=1, include_boundaries="right")
        if self.decoder not in DECODERS:
            raise ValueError(f"decoder must be one of {DECODERS}, and is {self.decoder!r}.")

    def _recipe(self, torch_part: ModuleType, position: int) -> Any:
        per_layer = {
            name: _at(getattr(self, name), position)
            for name in ("n_hidden", "noise", "learning_rate", "sparsity", "n_epochs")
        }
        first = position == 0
        return torch_part.Recipe(
            **per_layer,
            batch_size=self.batch_size,
            decoder=self.decoder if first else "softplus",
            sampling=self.sampling if first else None,
        )

    def _train_layer(self, torch_part: ModuleType, rows: Any, position: int, rng: Any) -> None:
        """Train one layer on what those below make of the rows; append its encoder and its losses."""
        began = time.perf_counter()
        trained = torch_part.train_layer(
            rows,
            [(layer.coef, layer.intercept) for layer in self.layers_],
            self._recipe(torch_part, position),
            rng,
            self._build_reporter(position, rows.n_rows, began),
        )
        coef, intercept, losses = trained
        if not np.all(np.isfinite(losses)):
            raise ValueError(
                f"SDA diverged in layer {position + 1} (loss of the epochs: {losses}); lower learning_rate."
            )
        self.layers_.append(Encoder(coef, intercept))
        self.losses_.append(losses)
        self.seconds_.append(time.perf_counter() - began)

    def _build_reporter(self, position: int, n_rows: int, began: float) -> Callable[[int, int, Any], None]:
        """Tells `callback` how an epoch goes, and reads the loss from the device only then."""
        due = {int(np.ceil(n_rows * part / N_REPORTS)) for part in range(1, N_REPORTS + 1)}

        def report(epoch: int, n_done: int, total: Any) -> None:
            if self.callback is None or due.isdisjoint(range(n_done - self.batch_size + 1, n_done + 1)):
                return
            seconds = time.perf_counter() - began
            n_epochs = _at(self.n_epochs, position)
            mean = float(total) / n_done
            self.callback(Progress(position, epoch, n_epochs, n_done / n_rows, mean, seconds))

        return report


def _at(setting: Any, position: int) -> Any:
    """Look up a setting for one layer: a tuple's last value serves all layers beyond it."""
    values = _as_tuple(setting)
    return values[min(position, len(values) - 1)]


def _as_tuple(setting: Any) -> tuple[Any, ...]:
    return tuple(setting) if isinstance(setting, tuple | list) else (setting,)


def _import_torch_part(device: Any) -> tuple[ModuleType, str]:
    """Import the module that needs torch; also return torch's name of `device`, which is there."""
    try:
        from . import autoencoder
    except ImportError as error:
        raise ImportError("SDA needs the `torch` extra: pip install 'undrift[torch]'") from error
    return autoencoder, check_device(str(device))
