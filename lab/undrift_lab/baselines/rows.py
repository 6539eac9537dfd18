"""Checks of the rows that baselines are fitted on, and the presence of terms in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from undrift.inputs import missing_mask
from undrift.method import check_domain_numbers


def presence(X: Any) -> Any:
    """1 where ``X > 0`` and 0 elsewhere, of the kind (sparse or dense) and dtype of `X`."""
    marks = (X > 0).astype(X.dtype)
    if sp.issparse(marks):
        marks.eliminate_zeros()
    return marks


def check_source_rows(sample_domain: ArrayLike | None, n_rows: int) -> NDArray[np.bool_] | None:
    """Tell which rows are source rows (domain >= 0, as in skada); None if `sample_domain` is."""
    return None if sample_domain is None else check_domain_numbers(sample_domain, n_rows) >= 0


def check_baseline_rows(estimator: Any, X: Any, *, reset: bool = True, **least: int) -> Any:
    """Return rows as float64 or float32, dense or CSR; `least` says how many rows and features they need."""
    options: dict[str, Any] = {"accept_sparse": ["csr"], "dtype": [np.float64, np.float32], **least}
    return validate_data(estimator, X, reset=reset, **options)


def take_known_labels(
    X: Any, y: ArrayLike, is_source: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Tell which rows have a label to learn from, of source rows alone; and return these labels."""
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    known = ~missing_mask(labels)
    if is_source is not None:
        known &= is_source
    kept = labels[known]
    if kept.dtype.kind == "O" and len(kept):
        kept = np.array(kept.tolist())  # strings or numbers, once None and NaN are gone
    return known, kept


class SparseRowsMixin:
    """Tags of transformers that take sparse rows, of either precision."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
