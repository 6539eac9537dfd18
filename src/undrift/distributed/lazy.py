"""Fitted estimators on rows of a cluster: lazy, one block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from dask.delayed import Delayed
from sklearn.base import BaseEstimator

from .cluster import Stage, literal, persist
from .rows import lazy_blocks


def send_model(estimator: Any) -> Delayed:
    """Send a fitted estimator to the cluster."""
    (there,) = persist(literal(_strip_callbacks(estimator), "model"))
    return there


def _strip_callbacks(estimator: Any) -> Any:
    """Copy an estimator, and those inside it, without the callbacks that belong to this process."""
    model = copy(estimator)
    vars(model).pop("_skl_callbacks", None)
    for name, value in vars(model).items():
        if isinstance(value, BaseEstimator):
            setattr(model, name, _strip_callbacks(value))
    return model


def blockwise(
    estimator: Any, method: str, X: Any, *, shape: tuple[int, ...], dtype: Any, **options: Any
) -> Any:
    """Apply a method of a fitted estimator to every row block, lazily, and return the form that `X` has.

    `shape` is that of the answer for one row: ``(width,)``, or ``()`` for a number or label.
    """
    stage, model = Stage(method.strip("_")), send_model(estimator)
    answers = [
        stage(_call_method, model, method, block, shape, np.dtype(dtype), options) for block in lazy_blocks(X)
    ]
    return _match_form(answers, X, shape, dtype)


def lazy_hidden(estimator: Any, X: Any) -> Iterator[Any]:
    """Yield h^1, ..., h^l of rows on a cluster, each a lazy value made from the one before."""
    model, blocks = send_model(estimator), lazy_blocks(X)
    for t, layer in enumerate(estimator.layers_):
        stage = Stage(f"hidden-{t + 1}")
        blocks = [stage(_apply_layer, model, t, block) for block in blocks]
        yield _match_form(blocks, X, layer.coef.shape[1:], layer.coef.dtype)


def _call_method(
    model: Any, method: str, block: Any, shape: tuple[int, ...], dtype: np.dtype, options: dict
) -> np.ndarray:
    """On a worker: the answer for one block."""
    if block.shape[0] == 0:
        return np.empty((0, *shape), dtype)
    return getattr(model, method)(block, **options)


def _apply_layer(model: Any, t: int, block: Any) -> np.ndarray:
    """On a worker: the rows of one block after layer `t`, from those before it."""
    if block.shape[0] == 0:
        return np.empty((0, model.layers_[t].coef.shape[1]), block.dtype)
    if t == 0:
        return next(iter(model.hidden(block)))
    return model.layers_[t](block).astype(block.dtype, copy=False)


def _match_form(blocks: Sequence[Delayed], X: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return lazy blocks in the form that `X` has."""
    if not hasattr(type(X), "chunks"):
        return list(blocks)
    import dask.array as da

    meta = np.empty((0, *shape), dtype)
    return da.concatenate(
        [da.from_delayed(block, (n, *shape), meta=meta) for block, n in zip(blocks, X.chunks[0], strict=True)]
    )
