"""Several sources: how much the labelled rows of each count, judged without a target label."""

from __future__ import annotations

import numpy as np

from .._core import domain_centred_gram
from .data import TrainingRows
from .search import RULE_ROWS, anchors
from .selection import target_odds

SOURCE_ROWS = 4000  # labelled rows that are looked at, an equal number of each source where there are more


def equal_rows(rows: TrainingRows, random_state: np.random.RandomState) -> np.ndarray:
    """Every labelled row alike: a source counts by its size."""
    del random_state
    return np.ones(len(rows.y))


def nearness(rows: TrainingRows, random_state: np.random.RandomState) -> np.ndarray:
    """Weight of each labelled row: how much its source looks like the target, 1 on the mean over rows.

    That is the mean, over rows of the source, of the odds of being a target row, given by a least-squares
    domain classifier on the input that has not seen the row. Rows of one source all count alike: the odds
    of single rows were measured to cost accuracy.
    """
    if not rows.targets:
        raise ValueError('source_weight="near" needs target rows: pass X_target, or source_weight="size"')
    sources = np.unique(rows.domain)
    if len(sources) == 1:
        return np.ones(len(rows.y))
    n_each = max(SOURCE_ROWS // len(sources), 1)
    drawn = [_some(np.flatnonzero(rows.domain == own), n_each, random_state) for own in sources]
    keep = np.sort(np.concatenate(drawn))
    looked_at = anchors(rows, keep, RULE_ROWS, random_state)
    K = domain_centred_gram(looked_at.X, None, looked_at.domain)
    odds = target_odds(K, len(keep), 1 / (float(K.diagonal().mean()) or 1.0))
    mean_odds = {own: odds[rows.domain[keep] == own].mean() for own in sources}
    weight = np.array([mean_odds[own] for own in rows.domain])
    return weight / weight.mean()


def _some(own: np.ndarray, n: int, random_state: np.random.RandomState) -> np.ndarray:
    return random_state.choice(own, n, replace=False) if len(own) > n else own


SOURCE_WEIGHTS = {"size": equal_rows, "near": nearness}
