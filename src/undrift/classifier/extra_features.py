"""Extra features: further columns of the same rows beside those of X, such as a user's embeddings.

Inner products of a concatenation add, whatever the columns are: ``K = sum_t K_t + sum_b K_b``. Extra features
are centred by domain like a layer, and scaled to the mean square norm that X has in that sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._core import Moments, Rows, array_ops, mean_square
from .._inputs import check_tensor, on_cluster, to_canonical, to_host, with_remedy
from ..errors import UndriftDeprecationWarning, warn
from .grams import RunningGram, Stack

Method = TypeVar("Method", bound=Callable[..., Any])
OLD_NAMES = {"blocks": "extra", "blocks_target": "extra_target"}


def accept_old_names(method: Method) -> Method:
    """Let a method take the old names of extra features for one more release, with a warning."""

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old, new in OLD_NAMES.items():
            if old in kwargs:
                message = f"{old} is now called {new}, and the old name will be gone in the next release"
                warn(message, UndriftDeprecationWarning)
                kwargs[new] = kwargs.pop(old)
        return method(*args, **kwargs)

    return call  # type: ignore[return-value]


def check_extra(
    extra: Any, n: int, *, dtype: Any, widths: Sequence[int] | None = None, of: str = "X", name: str = "extra"
) -> list[Rows]:
    """Validate extra features of n rows: one matrix, or a list of them.

    Parameters
    ----------
    widths : sequence of int, optional
        How many columns each of fit's matrices has, if they must match.
    of, name : str
        Whose rows they belong to, and the parameter that holds them, for messages.
    """
    given = _list_matrices(extra, name)
    if widths is not None and len(given) != len(widths):
        remedy = f"pass as many in {name}, in their order" if widths else f"leave {name} out"
        raise ValueError(
            f"fit saw {len(widths)} matrices of extra features with X, and {of} comes with {len(given)}: "
            f"{remedy}"
        )
    matrices = [_check_matrix(E, f"{name}[{i}] of {of}", n, dtype) for i, E in enumerate(given)]
    for i, (E, width) in enumerate(zip(matrices, widths or (), strict=False)):
        if E.shape[1] != width:
            raise ValueError(
                f"{name}[{i}] of {of} has {E.shape[1]} columns, but {width} in fit's X: "
                "pass the same columns, in their order"
            )
    return matrices


def _list_matrices(extra: Any, name: str) -> list[Any]:
    if extra is None:
        return []
    if hasattr(type(extra), "shape"):
        return [extra]
    if isinstance(extra, list | tuple):
        return list(extra)
    raise TypeError(f"{name} must be a matrix or a list of matrices, got a {type(extra).__name__}")


def _check_matrix(E: Any, name: str, n: int, dtype: Any) -> Rows:
    """Validate one matrix: finite numbers in two dimensions, one row for each row of X."""
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


def add_extra(
    gram: RunningGram,
    E: Rows,
    totals: Sequence[Moments],
    means: np.ndarray | None,
    domain: np.ndarray,
    norm: float,
) -> Stack:
    """Add extra features to a Gram matrix in which X has the mean square norm `norm`.

    Parameters
    ----------
    E : rows of shape (n_anchors, d)
        The extra features of the anchors.
    totals : sequence of Moments
        Of the extra features of all rows of every domain.
    means : array of shape (n_domains, d), or None
        What is subtracted from the rows of every domain.
    domain : int array of shape (n_anchors,)
        Position of each anchor's domain.
    """
    square = mean_square(totals, means is not None)
    share = norm / square if square > 0 else 0.0
    gram.add_rows(E if sp.issparse(E) else E + 0, means, domain, share)  # dense rows are overwritten
    return Stack((), None if means is None else (means,), (share,))
