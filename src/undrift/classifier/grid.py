"""What there is to choose from: values of noise, depth and C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._inputs import check_count, check_noise, check_positive
from .selection import NEED_TARGET, ONE_SE


@dataclass(frozen=True)
class Grid:
    """Values in ascending order, and those that were named first."""

    noises: tuple[float, ...]
    depths: tuple[int, ...]
    Cs: tuple[float, ...]
    preferred: tuple[float, int, float]  # noise, depth, C

    @property
    def n_candidates(self) -> int:
        """Number of points."""
        return len(self.noises) * len(self.depths) * len(self.Cs)


def checked_grid(noise: Any, n_layers: Any, C: Any) -> Grid:
    """Return a grid from what a user gave: for each parameter a value, or a list to choose from."""
    noises = [check_noise(value) for value in _values(noise, "noise")]
    depths = [check_count(value, "n_layers") for value in _values(n_layers, "n_layers")]
    Cs = [check_positive(value, "C") for value in _values(C, "C")]
    preferred = noises[0], depths[0], Cs[0]
    return Grid(tuple(sorted(noises)), tuple(sorted(depths)), tuple(sorted(Cs)), preferred)


def no_choice(noise: float, n_layers: int, C: float) -> Grid:
    """Return the grid of a single candidate."""
    return Grid((noise,), (n_layers,), (C,), (noise, n_layers, C))


def _values(value: Any, name: str) -> Sequence[Any]:
    """Return the values to choose from: a list, or the one value given."""
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) == 0:
            raise ValueError(f"{name}={value!r} is empty; give a value or a list of values")
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return [value]


def offered(grid: Grid, selection: str, codes: np.ndarray, has_target: bool) -> Grid:
    """Return what a rule can choose from; refuse what it cannot compare.

    With a single row of a class there is no cross-validation, and what is preferred is all there is.
    """
    if grid.n_candidates > 1 and selection in NEED_TARGET and not has_target:
        raise ValueError(
            f'selection="{selection}" needs target rows: pass X_target, or selection="source-cv"'
        )
    lonely = selection == ONE_SE and np.bincount(codes).min() < 2
    return no_choice(*grid.preferred) if lonely else grid
