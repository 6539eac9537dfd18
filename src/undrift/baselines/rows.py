"""Checks of the rows that baselines are fitted on, and the presence of terms in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d


def presence(X: Any) -> Any:
    """1 where ``X > 0`` and 0 elsewhere, of the kind (sparse or dense) and dtype of `X`."""
    marks = (X > 0).astype(X.dtype)
    if sp.issparse(marks):
        marks.eliminate_zeros()
    return marks


def check_source_rows(sample_domain: ArrayLike | None, n_rows: int) -> NDArray[np.bool_] | None:
    """Tell which rows are source rows (domain >= 0, as in skada); None if `sample_domain` is."""
    if sample_domain is None:
        return None
    domain = column_or_1d(sample_domain)
    if len(domain) != n_rows:
        raise ValueError(
            f"sample_domain has {len(domain)} entries for {n_rows} rows; give one integer per row."
        )
    if domain.dtype.kind not in "iu":
        raise ValueError(
            f"sample_domain must hold integers (sources >= 0, targets < 0), and its dtype is {domain.dtype}."
        )
    return domain >= 0


def check_labels(X: Any, y: ArrayLike) -> NDArray[Any]:
    """Return `y` as one array, as long as `X`."""
    labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    return labels
