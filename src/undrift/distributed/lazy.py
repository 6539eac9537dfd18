"""Fitted estimators on rows of a cluster: lazy, one block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from ..core import Layer, Rows
from .cluster import Stage, literal, persist
from .rows import LazyRows, lazy_blocks


class Layered(Protocol):
    """A fitted stack of layers."""

    layers_: list[Layer]

    def hidden(self, X: Rows) -> Iterator[np.ndarray]:
        """Yield the rows after every layer."""
        ...


def send_model(estimator: object) -> Delayed:
    """Send a fitted estimator to the cluster."""
    (there,) = persist(literal(estimator, "model"))
    return there


def blockwise(
    estimator: BaseEstimator,
    method: str,
    X: LazyRows,
    *,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    rows: dict[str, np.ndarray] | None = None,
    **options: object,
) -> da.Array | list[Delayed]:
    """Apply a method of a fitted estimator to every row block, lazily, and return the form that `X` has.

    `shape` is that of the answer for one row: ``(width,)``, or ``()`` for a number or label. Options in
    `rows` have one value for each row.
    """
    stage, model, blocks = Stage(method.strip("_")), send_model(estimator), lazy_blocks(X)
    parts = _split_options(rows, X) if rows else [{}] * len(blocks)
    answers = [
        stage(_call_method, model, method, block, shape, np.dtype(dtype), options | part)
        for block, part in zip(blocks, parts, strict=True)
    ]
    return _match_form(answers, X, shape, dtype)


def _split_options(rows: dict[str, np.ndarray], X: LazyRows) -> list[dict[str, np.ndarray]]:
    """Return the values of the rows of every block of a Dask array."""
    sizes = X.chunks[0] if isinstance(X, da.Array) else (np.nan,)
    if np.isnan(sizes).any():
        raise ValueError(
            f"{next(iter(rows))} of rows of Dask needs a Dask array whose chunks have known sizes"
        )
    ends = np.cumsum(sizes)
    if any(len(values) != ends[-1] for values in rows.values()):
        raise ValueError(f"{next(iter(rows))} must have one entry for each of {ends[-1]} rows")
    return [
        {name: values[end - n : end] for name, values in rows.items()}
        for n, end in zip(sizes, ends.tolist(), strict=True)
    ]


def lazy_hidden(estimator: Layered, X: LazyRows) -> Iterator[da.Array | list[Delayed]]:
    """Yield h^1, ..., h^l of rows on a cluster, each a lazy value made from the one before."""
    model, blocks = send_model(estimator), lazy_blocks(X)
    for t, layer in enumerate(estimator.layers_):
        stage = Stage(f"hidden-{t + 1}")
        blocks = [stage(_apply_layer, model, t, block) for block in blocks]
        yield _match_form(blocks, X, layer.coef.shape[1:], layer.coef.dtype)


def _call_method(
    model: BaseEstimator, method: str, block: Rows, shape: tuple[int, ...], dtype: np.dtype, options: dict
) -> np.ndarray:
    """On a worker: the answer for one block."""
    if block.shape[0] == 0:
        return np.empty((0, *shape), dtype)
    return getattr(model, method)(block, **options)


def _apply_layer(model: Layered, t: int, block: Rows) -> np.ndarray:
    """On a worker: the rows of one block after layer `t`, from those before it."""
    if block.shape[0] == 0:
        return np.empty((0, model.layers_[t].coef.shape[1]), block.dtype)
    if t == 0:
        return next(iter(model.hidden(block)))
    return model.layers_[t](block).astype(block.dtype, copy=False)


def _match_form(
    blocks: Sequence[Delayed], X: LazyRows, shape: tuple[int, ...], dtype: DTypeLike
) -> da.Array | list[Delayed]:
    """Return lazy blocks in the form that `X` has."""
    if not isinstance(X, da.Array):
        return list(blocks)
    meta = np.empty((0, *shape), dtype)
    return da.concatenate(
        [da.from_delayed(block, (n, *shape), meta=meta) for block, n in zip(blocks, X.chunks[0], strict=True)]
    )
