"""Check the rows that users pass, and turn them into blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..core import Blocks, Rows, array_ops, split_rows
from .device import Place, check_place, check_tensor, find_accelerator, to_host
from .estimators import load_cluster

# A mean this many times the spread, times the root of the rounding error, leaves about a hundredth of the
# precision of the differences between rows.
MEAN_OVER_SPREAD = 0.05
SPREAD_ENTRIES = 2**22  # entries of dense rows that are centred at once


def is_stream(X: Rows) -> bool:
    """Tell whether `X` is an iterable of row blocks rather than one matrix.

    A list or tuple counts as blocks only if its items are two-dimensional; anything with a
    shape, or that converts to an array, is a matrix.
    """
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(np.ndim(block) == 2 and hasattr(block, "shape") for block in X)
    is_matrix = isinstance(X, str | bytes | dict) or any(
        hasattr(X, name) for name in ("shape", "__array__", "__dataframe__", "__arrow_c_stream__")
    )
    return not is_matrix and isinstance(X, Iterable)


def on_cluster(X: Rows) -> bool:
    """Tell whether `X` is rows of Dask: an array, or a list of arrays, delayed values or futures."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(on_cluster(block) for block in X)
    root, _, rest = type(X).__module__.partition(".")  # by name, so that Dask is not imported
    return root in ("dask", "distributed") or (root == "undrift" and rest.startswith("distributed"))


# parts of scikit-learn's messages about rows that it refuses, and a remedy for each
_REMEDIES = {
    "contains NaN": "drop or replace such values (a term that a row lacks is a 0)",
    "contains infinity": "drop or replace such values",
    "could not convert string": "X must hold numbers: count the terms first, say with CountVectorizer",
    "Complex data not supported": "pass real numbers, say X.real",
    "0 sample(s)": "X needs at least one row",
    "0 feature(s)": "X needs at least one column",
    "Expected 2D": "Reshape your data into rows and columns: one row is X.reshape(1, -1)",
    "not 'complex'": "pass real numbers, say X.real",
    "features as input": "pass the columns of fit, in their order",
}


def check_matrix(estimator: BaseEstimator, X: Rows, *, reset: bool) -> Rows:
    """Return one matrix as finite float32 or float64, dense or canonical CSR, copied only if needed.

    Rows on a GPU stay there, as tensors.
    """
    if on_cluster(X):
        raise TypeError(f"X is a {type(X).__name__} of Dask, which is not accepted here: pass X.compute()")
    if is_stream(X):
        raise TypeError(
            f"X is a {type(X).__name__} of row blocks, which only fit of MDA and MSDA reads: "
            "pass one block at a time"
        )
    if isinstance(X, list | tuple) and not X:
        raise ValueError(f"X is an empty {type(X).__name__}; X needs at least one row")
    tensor = check_tensor(X)
    X = to_host(X) if tensor is None else tensor
    options = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}
    try:
        X = validate_data(estimator, X, reset=reset, skip_check_array=tensor is not None, **options)
    except (ValueError, TypeError) as error:
        raise with_remedy(error, X) from None
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def with_remedy(error: ValueError | TypeError, X: Rows) -> ValueError | TypeError:
    """Return an error as one line: the fact, the value seen, and a remedy."""
    symptom = next((symptom for symptom in _REMEDIES if symptom in str(error)), None)
    if symptom is None:
        return error
    fact = str(error).splitlines()[0].rstrip(".:")[:120]  # it may quote a whole document
    return ValueError(f"{fact}{_describe_value(X, symptom)}; {_REMEDIES[symptom]}")


def _describe_value(X: Rows, symptom: str) -> str:
    """Describe the value that caused `symptom`, where it can be located."""
    if symptom.startswith("Complex"):
        return f": X is {X.dtype}" if hasattr(X, "dtype") else ""
    if not symptom.startswith("contains"):
        return ""
    if sp.issparse(X):
        X = X.tocoo()
        bad = np.flatnonzero(~np.isfinite(X.data))[0]
        row, column = X.row[bad], X.col[bad]
    else:
        row, column = np.argwhere(~np.isfinite(np.asarray(X, dtype=float)))[0]
    return f" (row {row}, column {column})"


def dtype_of(X: Rows) -> np.dtype:
    """Return NumPy's name for the dtype of `X`."""
    return np.dtype(str(X.dtype).removeprefix("torch."))


def as_array(X: Rows) -> np.ndarray:
    """Return `X` as a dense NumPy array."""
    return X.toarray() if sp.issparse(X) else to_host(X)


def check_rows(estimator: BaseEstimator, X: Rows, *, reset: bool, dtype: DTypeLike | None = None) -> Rows:
    """Check rows that are one matrix, or on a cluster, where they stay."""
    if on_cluster(X):
        return load_cluster().cluster_rows(estimator, X, reset=reset, dtype=dtype)
    X = check_matrix(estimator, X, reset=reset)
    if dtype is not None:
        with np.errstate(over="ignore"):  # infinite values are refused
            X = array_ops(X).cast(X, dtype)
    if reset:
        check_precision(X)
    return X


def check_precision(X: Rows, name: str = "X") -> None:
    """Refuse rows with squares that overflow, or with variation that rounding would hide."""
    ops, dtype, n = array_ops(X), np.finfo(dtype_of(X)), max(X.shape[0], 1)
    values = X.data if sp.issparse(X) else X
    largest = max(float(values.max()), -float(values.min())) if 0 not in values.shape else 0.0
    if largest > np.sqrt(float(dtype.max) / n) / 10:
        raise ValueError(
            f"the largest value of {name}, {largest:g}, is too large: sums of squares overflow "
            f"{dtype.dtype}; divide the columns by their largest values, or take logarithms"
        )
    if sp.issparse(X):
        return
    mean = to_host(ops.column_sums(X)) / n
    spread = _spread_around(X, mean)
    is_large = np.abs(mean) > MEAN_OVER_SPREAD / np.sqrt(dtype.eps) * spread
    if is_large.any():
        column = int(np.argmax(is_large))
        raise ValueError(
            f"column {column} of {name} has mean {mean[column]:g} and standard deviation "
            f"{spread[column]:g}, which {dtype.dtype} cannot resolve: subtract the columns' means, say with "
            "StandardScaler"
        )


def _spread_around(X: Rows, mean: np.ndarray) -> np.ndarray:
    """Return standard deviations of the columns of dense rows; infinite for constant columns."""
    ops = array_ops(X)
    centre, square, varies = ops.like(mean, X), np.zeros(X.shape[1]), np.zeros(X.shape[1], dtype=bool)
    for rows in split_rows(X, entries=SPREAD_ENTRIES):
        square += to_host(ops.column_sums((rows - centre) ** 2))
        varies |= to_host((rows != X[:1]).any(axis=0))
    return np.where(varies, np.sqrt(square / max(X.shape[0], 1)), np.inf)


@singledispatch
def gather_rows(X: Rows) -> Rows:
    """Return rows as one matrix of this process; `distributed` copies those on a cluster here."""
    return X


@singledispatch
def column_sums(X: Rows) -> np.ndarray:
    """Sum the columns in float64, of one matrix; `distributed` sums rows on a cluster there."""
    return to_host(array_ops(X).column_sums(X))


class CheckedStream:
    """The user's re-iterable blocks, each checked as it is read."""

    def __init__(self, estimator: BaseEstimator, source: Iterable[Rows], *, reset: bool) -> None:
        first = iter(source)
        if first is source or iter(source) is first:
            raise TypeError(
                f"X is a one-shot {type(source).__name__}, but each layer needs another pass over the rows: "
                "pass a list of blocks, or an object whose __iter__ starts from the beginning each time"
            )
        self._estimator, self._source = estimator, source
        self.dtype, self.accelerator = None, None
        first_block = next(self._matrices(reset))
        self.dtype = dtype_of(first_block)
        self.accelerator = find_accelerator(first_block)

    def _matrices(self, reset: bool = False) -> Iterator[Rows]:
        """Yield the blocks that have rows, checked; the others must be like the first one."""
        n_rows = 0
        for i, block in enumerate(self._source, start=1):
            if getattr(block, "shape", (1,))[0] == 0:
                continue
            try:
                X = check_matrix(self._estimator, block, reset=reset and n_rows == 0)
            except ValueError as error:
                raise ValueError(f"block {i} of X: {error}") from None
            n_rows += X.shape[0]
            if self.dtype is not None:  # that of the first block; and on the host if the first was
                X = to_host(X) if self.accelerator is None else X
                X = array_ops(X).cast(X, self.dtype)
            yield X
        if n_rows == 0:
            raise ValueError("X has no blocks with rows; at least one row is needed")

    def __iter__(self) -> Iterator[Rows]:
        """Yield the blocks, cut to a size that keeps hidden rows small."""
        for X in self._matrices():
            yield from split_rows(X)


def check_fit_rows(estimator: BaseEstimator, X: Rows) -> Rows | CheckedStream:
    """Check the rows of a fit: one matrix, rows on a cluster, or a stream of blocks."""
    validate = check_rows if on_cluster(X) or not is_stream(X) else CheckedStream
    return validate(estimator, X, reset=True)


def choose_place(
    rows: Sequence[Rows | CheckedStream], device: object, memory_budget: float | None = None
) -> Place:
    """Return where to compute on checked rows: on `device`, or else where some of them are already."""
    names = (X.accelerator if isinstance(X, CheckedStream) else find_accelerator(X) for X in rows)
    return check_place(device, memory_budget, next(filter(None, names), None))


@singledispatch
def place_rows(rows: Rows, place: Place, width: int = 0) -> Blocks:
    """Return checked rows as blocks; `width` is that of the hidden rows. Those on a cluster stay there."""
    return place.store_rows(rows, width)


@place_rows.register
def _(rows: CheckedStream, place: Place, width: int = 0) -> Blocks:
    return place.stream_rows(rows)
