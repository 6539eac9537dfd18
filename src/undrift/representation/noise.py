"""What `noise` may be for `MDA` and `MSDA` beside one probability: one per feature, or another noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import Blocks, Gaussian, Masking, Noise, Poisson, Rows
from .._inputs import check_noise, check_positive

__all__ = ["Gaussian", "Poisson"]

SIGNED = ("tanh", "identity")  # activations whose outputs can be negative


def check_any_noise(value: Any, d: int | None = None) -> Noise:
    """Return a probability, one for each of d features, or one of the other noises; d None is any number."""
    if isinstance(value, Gaussian):
        check_positive(value.scale, "scale of Gaussian noise", zero=True)
        return value
    if isinstance(value, Poisson):
        return value
    if isinstance(value, list | tuple):
        raise TypeError(
            f"noise must be a number, or an array with one for each feature, got {repr(value)[:60]} of type "
            f"{type(value).__name__}: pass np.array(...); MSDAClassifier chooses among the values of a list"
        )
    if getattr(value, "ndim", 0) > 0:
        return Masking(_check_probabilities(value, d))
    return check_noise(value)


def _check_probabilities(value: Any, d: int | None) -> np.ndarray:
    probability = np.asarray(value)
    if probability.dtype.kind not in "fiu":
        raise TypeError(f"noise must be an array of numbers, got one of dtype {probability.dtype}")
    if probability.ndim != 1 or (d is not None and len(probability) != d):
        wanted = "(n_features,)" if d is None else f"({d},)"
        raise ValueError(
            f"noise has shape {probability.shape}, not {wanted}: give one probability for each feature"
        )
    bad = np.flatnonzero(~((probability >= 0) & (probability < 1)))
    if len(bad):
        raise ValueError(
            f"noise[{bad[0]}]={probability[bad[0]]:g} must be at least 0 and below 1"
            + (f", and so must {len(bad) - 1} more" if len(bad) > 1 else "")
        )
    return probability.astype(np.float64)


def check_signs(noise: Noise, rows: Blocks, n_layers: int = 1, activation: str = "tanh") -> None:
    """Refuse rows that are no counts where the noise is of counts: a pass over the rows for those alone."""
    if not isinstance(noise, Poisson):
        return
    if n_layers > 1 and activation in SIGNED:
        raise ValueError(
            f"noise=Poisson() needs rows without negative values, and those after the first layer have some "
            f"with activation={activation!r}: pass n_layers=1, or activation='relu' or 'sigmoid'"
        )
    n_bad = rows.total(n_negative)
    if n_bad:
        raise ValueError(
            f"noise=Poisson() needs counts, but {n_bad} values of X are below 0; take another noise"
        )


def n_negative(X: Rows) -> int:
    """Count the negative entries of `X`."""
    return int(((X.data if sp.issparse(X) else X) < 0).sum())
