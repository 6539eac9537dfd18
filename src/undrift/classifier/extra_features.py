"""Extra blocks: further columns of the same rows, a user's own embeddings say, beside those of X.

Inner products of a concatenation add, whatever the columns are: ``K = sum_t K_t + sum_b K_b``. A block is
centred by domain like a layer, and scaled to the mean square norm that X has in that sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._core import (
    Array,
    Blocks,
    Layer,
    Rows,
    add_domain_centred_gram,
    array_ops,
    domain_centred_gram,
    mean_square,
    moments,
)
from .._inputs import check_tensor, on_cluster, to_canonical, to_host, with_remedy


def checked_blocks(
    blocks: Any,
    n: int,
    *,
    dtype: Any,
    widths: Sequence[int] | None = None,
    of: str = "X",
    name: str = "blocks",
) -> list[Rows]:
    """Validate extra blocks of n rows: one matrix, or a list of them.

    Parameters
    ----------
    widths : sequence of int, optional
        How many columns each of fit's blocks has, if they must match.
    of, name : str
        Whose rows they belong to, and the parameter that holds them, for messages.
    """
    matrices = _listed(blocks, name)
    if widths is not None and len(matrices) != len(widths):
        remedy = f"pass as many in {name}, in their order" if widths else f"leave {name} out"
        raise ValueError(
            f"fit saw {len(widths)} extra block(s) with X, and {of} comes with {len(matrices)}: {remedy}"
        )
    checked = [_checked_block(E, f"block {b} of {of}", n, dtype) for b, E in enumerate(matrices, start=1)]
    for b, (E, width) in enumerate(zip(checked, widths or (), strict=False), start=1):
        if E.shape[1] != width:
            raise ValueError(
                f"block {b} of {of} has {E.shape[1]} columns, but {width} in fit's X: "
                "pass the same columns, in their order"
            )
    return checked


def _listed(blocks: Any, name: str) -> list[Any]:
    if blocks is None:
        return []
    if hasattr(type(blocks), "shape"):
        return [blocks]
    if isinstance(blocks, list | tuple):
        return list(blocks)
    raise TypeError(f"{name} must be a matrix or a list of matrices, got a {type(blocks).__name__}")


def _checked_block(E: Any, name: str, n: int, dtype: Any) -> Rows:
    """Validate one block: finite numbers in two dimensions, one row for each row of X."""
    if on_cluster(E):
        raise TypeError(f"{name} is a {type(E).__name__} of Dask, which is not accepted: compute it first")
    tensor = check_tensor(E)
    E = to_host(E) if tensor is None else tensor
    try:
        if tensor is None:
            E = check_array(E, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {with_remedy(error, E)}") from None
    if E.shape[0] != n:
        raise ValueError(f"{name} has {E.shape[0]} rows, but there are {n} to go with: pass one for each")
    return array_ops(E).cast(to_canonical(E), dtype)


def as_given(E: Rows) -> Rows:
    """What the first layer sees of rows that are not binarised: those of a block never are."""
    return E


@dataclass(frozen=True)
class Branch:
    """What the columns of X or of one extra block add to a classifier: themselves, and layers on them."""

    layers: list[Layer]
    means: list[np.ndarray] | None  # for the input and every layer: (n_domains, d_t)
    shares: list[float]  # what the inner products of each are multiplied by


def add_block(
    K: Array, E: Rows, domains: Sequence[Blocks], domain: np.ndarray, center: bool, norm: float
) -> tuple[Array, Branch]:
    """Add an extra block to `K`, in which X has the mean square norm `norm`.

    Parameters
    ----------
    E : rows of shape (n_anchors, d)
        The block's rows of the anchors.
    domains : sequence of Blocks
        Its rows of every domain.
    domain : int array of shape (n_anchors,)
        Position of each anchor's domain among `domains`.
    """
    totals = [blocks.total(moments) for blocks in domains]
    means = np.stack([total.mean for total in totals]) if center else None
    square = mean_square(totals, center)
    share = norm / square if square > 0 else 0.0
    if sp.issparse(E):
        K += share * domain_centred_gram(E, means, domain)
    else:
        K = add_domain_centred_gram(K, E + 0, means, domain, share)  # which overwrites its rows
    return K, Branch([], None if means is None else [means], [share])
