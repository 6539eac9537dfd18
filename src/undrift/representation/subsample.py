"""Draw the rows that upper layers are learnt from: the scatter of a sample is nearly that of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import Rows
from .._inputs import CheckedStream, check_count

DOMAIN_ROWS = 1000  # at least so many of each domain, if it has them: its mean is that of the sample


def check_max_rows(value: Any, domains: Sequence[Rows | CheckedStream]) -> int | None:
    """Return `max_upper_rows`, which must allow a row of each domain and needs the rows in one matrix."""
    if value is None:
        return None
    hint = "leave it None to learn every layer from all rows"
    max_rows = check_count(value, "max_upper_rows", hint=hint)
    if any(isinstance(rows, CheckedStream) for rows in domains):
        raise ValueError(
            f"max_upper_rows={max_rows} draws from one matrix, but X is a stream of row blocks: "
            "leave it None, or pass the rows as one matrix"
        )
    if max_rows < len(domains):
        raise ValueError(
            f"max_upper_rows={max_rows} is below the {len(domains)} domains, which need a row each; raise it"
        )
    return max_rows


def share_rows(n_rows: Sequence[int], n_drawn: int) -> list[int]:
    """Share `n_drawn` rows among domains of `n_rows`, in proportion to their sizes.

    A domain whose share would be below `DOMAIN_ROWS` gets that many, or all it has, as far as an equal
    split allows, and the others share the rest.
    """
    sizes = np.asarray(n_rows)
    least = np.minimum(sizes, min(DOMAIN_ROWS, n_drawn // len(sizes)))
    small = np.zeros(len(sizes), dtype=bool)
    while True:
        left, total = n_drawn - least[small].sum(), sizes[~small].sum()
        short = ~small & (sizes * left < least * total)
        if not short.any():
            break
        small |= short
    exact = np.where(small, least, sizes * left / max(total, 1))
    whole = exact.astype(int)
    most_cut = np.argsort(whole - exact, kind="stable")[: n_drawn - whole.sum()]
    whole[most_cut] += 1
    return whole.tolist()


def draw_rows(
    domains: Sequence[Rows], max_rows: int | None, random_state: np.random.RandomState
) -> list[Rows] | None:
    """Draw at most `max_rows` rows of all domains without replacement; None if that is all of them."""
    if max_rows is None:
        return None
    n_rows = [X.shape[0] for X in domains]
    if max_rows >= sum(n_rows):
        return None
    return [
        X[np.sort(random_state.choice(n, n_drawn, replace=False))]
        for X, n, n_drawn in zip(domains, n_rows, share_rows(n_rows, max_rows), strict=True)
    ]
