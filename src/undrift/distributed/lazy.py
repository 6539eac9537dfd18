"""Fitted estimators on rows of a cluster: lazy, one block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from dask.delayed import Delayed

from .cluster import Stage, literal, persist
from .rows import lazy_blocks


def send_model(estimator: Any) -> Delayed:
    """Send a fitted estimator to the cluster."""
    (there,) = persist(literal(estimator, "model"))
    return there


def blockwise(
    estimator: Any,
    method: str,
    X: Any,
    *,
    shape: tuple[int, ...],
    dtype: Any,
    rows: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
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


def _split_options(rows: dict[str, Any], X: Any) -> list[dict[str, Any]]:
    """Return the values of the rows of every block of a Dask array."""
    sizes = X.chunks[0] if hasattr(type(X), "chunks") else [np.nan]
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
