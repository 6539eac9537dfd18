"""Stacked denoising autoencoders (Glorot, Bordes and Bengio 2011), what mSDA replaces by a closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from undrift.inputs import check_device

from .rows import SparseRowsMixin, check_baseline_rows, presence

_PER_LAYER = {  # parameters with a value a layer: type, bounds
    "n_hidden": (Integral, 1, None, "left"),
    "noise": (Real, 0, 1, "left"),
    "learning_rate": (Real, 0, None, "neither"),
    "sparsity": (Real, 0, None, "left"),
    "n_epochs": (Integral, 1, None, "left"),
}


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

    Each layer is a rectifier encoder with an untied decoder, trained and used on the presence of features.
    The first decoder is a sigmoid with cross-entropy; those above are a softplus with squared error against
    the clean hidden values below. Trained greedily by plain stochastic gradient descent, with an L1 penalty
    on hidden values; labels are not used. The defaults are those of the first author's Amazon configuration.

    Parameters
    ----------
    n_layers : int, default=1
    n_hidden, noise, learning_rate, sparsity, n_epochs : number or tuple
        A value for all layers or one for each; the last serves any that follow. `noise` is the probability
        that an input of the layer is masked in training, `sparsity` the weight of the sum of hidden values.
    batch_size : int, default=10
    sampling : float, optional
        Share of the zeros that the first layer reconstructs, drawn anew for each row and weighted by its
        inverse (reconstruction sampling [2]_). Default: all of them.
    device : str, default="cpu"
    random_state : int, RandomState or None, default=None

    References
    ----------
    .. [1] Glorot, Bordes and Bengio, "Domain adaptation for large-scale sentiment classification", 2011.
    .. [2] Dauphin, Glorot and Bengio, "Large-scale learning of embeddings with reconstruction sampling",
       2011.
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
        device: str = "cpu",
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
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None, *, sample_domain: ArrayLike | None = None) -> SDA:
        """Train the layers one after the other on the rows of `X`, of whatever domain; `y` is not used."""
        self._check_parameters()
        X = sp.csr_array(presence(check_baseline_rows(self, X)))
        try:
            from .autoencoder import Recipe, train_layer
        except ImportError as error:
            raise ImportError("SDA needs the `torch` extra: pip install 'undrift-lab[torch]'") from error
        device, rng = check_device(str(self.device)), check_random_state(self.random_state)
        self.layers_: list[Encoder] = []
        self.losses_: list[NDArray[np.float64]] = []
        for position in range(self.n_layers):
            values = {name: _at(getattr(self, name), position) for name in _PER_LAYER}
            values |= (
                {"decoder": "softplus"} if position else {"decoder": "sigmoid", "sampling": self.sampling}
            )
            recipe = Recipe(**values, batch_size=self.batch_size)
            below = [(layer.coef, layer.intercept) for layer in self.layers_]
            coef, intercept, losses = train_layer(X, below, recipe, rng, device)
            if not np.all(np.isfinite(losses)):
                raise ValueError(
                    f"SDA diverged in layer {position + 1} (losses: {losses}); lower learning_rate"
                )
            self.layers_.append(Encoder(coef, intercept))
            self.losses_.append(losses)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Hidden values of the last layer, from unmasked rows."""
        return list(self.hidden(X))[-1]

    def hidden(self, X: Any) -> Iterator[NDArray[Any]]:
        """Hidden values of each layer in turn, from unmasked rows."""
        check_is_fitted(self)
        h: Any = sp.csr_array(presence(check_baseline_rows(self, X, reset=False)))
        for layer in self.layers_:
            h = layer(h)
            yield h

    @property
    def _n_features_out(self) -> int:
        return int(self.layers_[-1].coef.shape[1])

    def _check_parameters(self) -> None:
        check_scalar(self.n_layers, "n_layers", Integral, min_val=1)
        check_scalar(self.batch_size, "batch_size", Integral, min_val=1)
        if self.sampling is not None:
            check_scalar(self.sampling, "sampling", Real, min_val=0, max_val=1, include_boundaries="right")
        for name, (kind, low, high, bounds) in _PER_LAYER.items():
            for value in _as_tuple(getattr(self, name)):
                check_scalar(value, name, kind, min_val=low, max_val=high, include_boundaries=bounds)


def _at(setting: Any, position: int) -> Any:
    """Look up a setting for one layer: a tuple's last value serves all layers beyond it."""
    values = _as_tuple(setting)
    return values[min(position, len(values) - 1)]


def _as_tuple(setting: Any) -> tuple[Any, ...]:
    return tuple(setting) if isinstance(setting, tuple | list) else (setting,)
