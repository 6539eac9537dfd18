"""Fewer rows for the upper layers: a scatter is an average over rows, and a sample's is nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import Rows
from .._inputs import CheckedStream, check_count

DOMAIN_ROWS = 1000  # of each domain where there are so many: its mean is taken over the sample


def check_max_rows(value: Any, domains: Sequence[Rows | CheckedStream]) -> int | None:
    """Return `max_upper_rows`, which must leave a row of each domain and needs rows to draw from."""
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


def sample_sizes(n_rows: Sequence[int], n_sampled: int) -> list[int]:
    """Share `n_sampled` rows among domains of `n_rows`, in proportion to their sizes.

    A domain whose share would be below `DOMAIN_ROWS` gets that many, or all it has, as far as an equal
    split allows, and the others share the rest.
    """
    sizes = np.asarray(n_rows)
    least = np.minimum(sizes, min(DOMAIN_ROWS, n_sampled // len(sizes)))
    small = np.zeros(len(sizes), dtype=bool)
    while True:
        room, total = n_sampled - least[small].sum(), sizes[~small].sum()
        short = ~small & (sizes * room < least * total)
        if not short.any():
            break
        small |= short
    exact = np.where(small, least, sizes * room / max(total, 1))
    whole = exact.astype(int)
    most_cut = np.argsort(whole - exact, kind="stable")[: n_sampled - whole.sum()]
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
        X[np.sort(random_state.choice(n, n_own, replace=False))]
        for X, n, n_own in zip(domains, n_rows, sample_sizes(n_rows, max_rows), strict=True)
    ]
