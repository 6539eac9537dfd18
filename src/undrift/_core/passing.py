"""What is wanted of hidden rows as they pass: their moments, and copies of some of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .array import Array, Rows
from .blocks import sum_in_place
from .scatter import Moments, moments


def take_rows(blocks: Iterable[Rows], rows: np.ndarray, out: Array, places: np.ndarray) -> Moments:
    """Copy the rows with the given ascending numbers into the `places` of `out`; moments of all rows.

    One pass over the blocks of one domain. `out` has shape (n, d), where n is at least ``len(rows)``.
    """

    def passed(block: Rows, start: int) -> Moments:
        first, last = np.searchsorted(rows, (start, start + block.shape[0]))
        if first < last:
            out[as_slice(places[first:last])] = block[as_slice(rows[first:last] - start)]
        return moments(block)

    return sum_in_place(passed(block, start) for block, start in blocks_with_offsets(blocks))


def blocks_with_offsets(blocks: Iterable[Rows]) -> Iterable[tuple[Rows, int]]:
    """Blocks with the number of their first row."""
    start = 0
    for block in blocks:
        yield block, start
        start += block.shape[0]


def as_slice(rows: np.ndarray) -> Any:
    """Ascending row numbers, as a slice where they leave no gap, which spares a copy."""
    if len(rows) == 0:
        return slice(0, 0)
    if rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
