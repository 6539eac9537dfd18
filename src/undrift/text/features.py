"""Rows of numbers in place of documents: columns of a table, scaled for the layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from .._inputs import savable

CELL_SEPARATOR = "\t"
MOST_SKEW = 2.0  # of a column without negative values, above which its logarithm is taken
LARGEST = 5.0  # standard deviations that a value may be from the mean; others are cut off


@savable
class FeatureScaler(TransformerMixin, BaseEstimator):
    """Rows of numbers, written as text with a tab between cells, to rows that the layers take well.

    Counts (whole, none negative, at least half of them 0: baskets, events of a log) are weighted as terms
    are: ``(1 + log count) * idf``, each row scaled to `length`. Other numbers (spectra, measurements) get
    mean 0 and variance 1 in every column, where a column without negative values and with a long tail first
    becomes ``log(1 + x)``; rows then have about that length. Empty cells are 0, or the mean.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns, in the order of the cells.
    length : float, default=5.0
        Euclidean length of a row, exactly or on the mean.

    Attributes
    ----------
    kind_ : {"counts", "numbers"}
        How values are scaled.
    idf_, is_log_, mean_, scale_ : ndarray of shape (n_columns,)
        Weights of counts; which columns become logarithms, and their means and standard deviations.
    """

    def __init__(self, columns: Sequence[str] = (), length: float = 5.0):
        self.columns = columns
        self.length = length

    def fit(self, documents: Iterable[str], y: Any = None) -> FeatureScaler:
        """Learn how columns are scaled, from the rows of all domains."""
        X = parse_numbers(documents, self.columns)
        values = np.nan_to_num(X)
        is_count = bool((values >= 0).all() and (values == np.rint(values)).all())
        self.kind_ = "counts" if is_count and np.mean(values == 0) >= 0.5 else "numbers"
        self.idf_ = 1 + np.log((1 + len(X)) / (1 + (values > 0).sum(axis=0)))
        deviation = values - values.mean(axis=0)
        skewness = (deviation**3).mean(axis=0) / np.maximum(deviation.std(axis=0), 1e-12) ** 3
        self.is_log_ = (values.min(axis=0) >= 0) & (skewness > MOST_SKEW)
        X = self._take_logarithms(X)
        n_known = np.maximum((~np.isnan(X)).sum(axis=0), 1)
        self.mean_ = np.nansum(X, axis=0) / n_known
        self.scale_ = np.sqrt(np.nansum((X - self.mean_) ** 2, axis=0) / n_known)
        return self

    def _take_logarithms(self, X: np.ndarray) -> np.ndarray:
        return np.where(self.is_log_, np.log1p(np.maximum(X, 0)), X)

    def transform(self, documents: Iterable[str]) -> sparse.csr_array:
        """Return the scaled rows, of shape (n, n_columns)."""
        check_is_fitted(self, "kind_")
        X = parse_numbers(documents, self.columns)
        if self.kind_ == "counts":
            X = np.maximum(np.nan_to_num(X), 0)
            weighted = np.where(X > 0, (1 + np.log(np.maximum(X, 1))) * self.idf_, 0)
            return sparse.csr_array(normalize(weighted) * self.length).astype(np.float32)
        X = self._take_logarithms(X) - self.mean_
        X = np.divide(X, self.scale_, out=np.zeros_like(X), where=self.scale_ > 0)
        X = np.clip(np.nan_to_num(X), -LARGEST, LARGEST)
        return sparse.csr_array(X * (self.length / X.shape[1] ** 0.5)).astype(np.float32)

    def blocks(self, documents: Iterable[str]) -> Iterator[sparse.csr_array]:
        """Yield the rows of `transform`."""
        yield self.transform(documents)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns."""
        return np.asarray(list(self.columns), dtype=object)

    def build_analyser(self) -> Callable[[str], list[str]]:
        """Return a function that says that rows have no terms."""
        return lambda document: []


def parse_numbers(documents: Iterable[str], columns: Sequence[str], n_before: int = 0) -> np.ndarray:
    """Return the numbers of every row, NaN where a cell is empty; messages count rows from `n_before`."""
    rows = [document.split(CELL_SEPARATOR) for document in documents]
    X = np.full((len(rows), len(columns)), np.nan)
    for i, cells in enumerate(rows):
        if cells == [""]:
            continue
        if len(cells) != len(columns):
            text = CELL_SEPARATOR.join(cells)[:40]
            raise ValueError(
                f"this model was learnt from {len(columns)} columns of numbers, and got text: {text!r}"
            )
        try:
            X[i] = [float(cell) if cell.strip() else np.nan for cell in cells]
            is_good = not np.isinf(X[i]).any()
        except ValueError:
            is_good = False
        if not is_good:
            name, cell = next(pair for pair in zip(columns, cells, strict=True) if not _is_number(pair[1]))
            raise ValueError(
                f"row {n_before + i + 1}: column {name!r} holds {cell[:40]!r}, which is no finite number; "
                "leave the cell empty, or choose other columns with --features"
            )
    return X


def _is_number(cell: str) -> bool:
    try:
        return not np.isinf(float(cell or 0))
    except ValueError:
        return not cell.strip()
