"""X and extra features alike: their columns of the anchors and of all rows, and the stack on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._core import Rows
from .data import TrainingRows
from .grams import Stack
from .prediction import keep_rows
from .search import SearchResult


@dataclass(frozen=True)
class View:
    """X or extra features: the columns of the anchors and of all rows, and the stack on them."""

    anchors: Rows
    rows: TrainingRows
    stack: Stack
    first: Callable[[Rows], Rows]

    @property
    def widths(self) -> list[int]:
        """Columns of every layer, those of the input first."""
        return [self.anchors.shape[1], *(layer.coef.shape[1] for layer in self.stack.layers)]


def score_means(views: Sequence[View], weights: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """Return the scores of what is subtracted from the rows of every domain: (n_domains, n_outputs)."""
    scores = np.zeros((len(views[0].rows.domains), weights[0][0].shape[1]))
    for view, view_weights in zip(views, weights, strict=True):
        for means, w in zip(view.stack.means or [], view_weights, strict=False):
            scores += means @ w
    return scores


def list_views(result: SearchResult) -> list[View]:
    """Return X, then the extra features."""
    spec, chosen = result.spec, result.chosen
    X = View(spec.anchors.X, spec.rows, chosen.stack, spec.first_rows)
    extra = zip(spec.anchors.extra, spec.rows.extra, chosen.extra, strict=True)
    return [X, *(View(*parts, keep_rows) for parts in extra)]
