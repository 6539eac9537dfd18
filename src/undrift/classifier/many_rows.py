"""Fit the classifier to its targets where the labelled rows are more than a Gram matrix can hold.

The steps are those of `targets` and `self_training`, on sums over all labelled rows (`primal`). The anchors
are here a sample of the labelled rows, and target rows: held-out scores, moves, round trips and the safeguard
need no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._core import Layer
from .._inputs import OnHost, to_host
from .alignment import combine_midpoints, move_rows
from .anchors import draw_labelled_rows
from .data import UNLABELLED
from .grams import Stack
from .linear import signs
from .primal import LayerRows, Primal, concatenate_columns, layer_rows, needs_minimisation, train_on_rows
from .search import SearchResult
from .self_training import (
    LABEL_WEIGHT,
    ChoosePseudoLabels,
    SelfTraining,
    Trained,
    train_classes_in_rounds,
)
from .views import View, score_means

MIDPOINT_ROWS = 32_000  # labelled rows that sources are centred by, at most


class RowReader:
    """Reads labelled rows and anchors at every layer, block by block, where the computation takes place."""

    def __init__(self, views: Sequence[View], result: SearchResult, loss: str, memory_budget: float) -> None:
        self.views, self._result = views, result
        widths = [width for view in views for width in view.widths]
        # what reads rows many times works on the host, and keeps hidden rows
        self._is_on_host = needs_minimisation(loss, widths)
        self._memory_budget = memory_budget if self._is_on_host else None

    def read_labelled(self) -> LayerRows:
        """Return all labelled rows."""
        matrices = [view.rows.labelled for view in self.views]
        return self._read(matrices, _list_positions(self._result), None, self._memory_budget)

    def measure_midpoints(self, codes: np.ndarray) -> list[list[np.ndarray]]:
        """Return, by view and layer, how far the class midpoints of sources are from what centres them.

        Of at most `MIDPOINT_ROWS` labelled rows; each of shape (n_domains, d_t), 0 for other domains.
        """
        spec = self._result.spec
        rows = draw_labelled_rows(codes, min(len(codes), MIDPOINT_ROWS), check_random_state(0))
        domain, coef = _list_positions(self._result)[rows], np.zeros((len(rows), len(spec.rows.domains)))
        for k, average in combine_midpoints(codes[rows], domain, counts_alike=True).items():
            coef[:, k] = average
        sums = self._read([view.rows.labelled[rows] for view in self.views], domain, None).combine(coef)
        # rows are read less what centres their sources; a midpoint may combine rows of several sources
        mixed = np.array([coef[domain == k].sum(axis=0) for k in range(coef.shape[1])])
        mixed -= np.diag(mixed.sum(axis=0))
        parts = iter(sums)
        return [
            [
                next(parts).T / (np.sqrt(share) or 1.0) + mixed.T @ means
                for share, means in zip(view.stack.shares, view.stack.means or (), strict=True)
            ]
            for view in self.views
        ]

    def read_anchors(self, rows: slice, vectors: Sequence[np.ndarray] | None = None) -> LayerRows:
        """Return some of the anchors; `vectors`, for every layer (d_t, n_domains), are added by domain."""
        domain = self._result.spec.anchors.domain[rows]
        return self._read([view.anchors[rows] for view in self.views], domain, vectors)

    def _read(
        self,
        matrices: Sequence[Any],
        domain: np.ndarray,
        vectors: Sequence[np.ndarray] | None,
        memory_budget: float | None = None,
    ) -> LayerRows:
        place, parts, added = self._result.spec.place, [], iter(vectors or ())
        for X, view in zip(matrices, self.views, strict=True):
            layers: Sequence[Layer] = view.stack.layers
            means: Any = view.stack.means
            if self._is_on_host:
                X, layers = to_host(X), [place.copy_to_host(layer) for layer in layers]
            if vectors is not None:  # rows that are moved are rows less a mean that is moved the other way
                moves = [next(added).T / (np.sqrt(share) or 1.0) for share in view.stack.shares]
                means = [mean - move for mean, move in zip(means or [0.0] * len(moves), moves, strict=True)]
            where = OnHost() if self._is_on_host else place
            parts.append(
                layer_rows(X, domain, view.first, layers, means, view.stack.shares, where, memory_budget)
            )
        return concatenate_columns(parts)

    def split_weights(self, primal: Primal) -> list[list[np.ndarray]]:
        """Return the weights of every layer for rows that are not scaled: for X, then for extra features."""
        parts = iter(primal.weights)
        return [[next(parts) * np.sqrt(share) for share in view.stack.shares] for view in self.views]


def _list_positions(result: SearchResult) -> np.ndarray:
    """Return the position of the domain of every labelled row."""
    rows = result.spec.rows
    position = {number: k for k, number in enumerate(rows.domains)}
    return np.array([position[number] for number in rows.domain])


def recentre_sources(result: SearchResult, reader: RowReader, codes: np.ndarray) -> SearchResult:
    """Return the result with sources centred on the classes of more labelled rows than the anchors."""
    if result.spec.center != "classes":
        return result

    def move(stack: Stack, changes: list[np.ndarray]) -> Stack:
        assert stack.means is not None
        return replace(stack, means=tuple(m + c for m, c in zip(stack.means, changes, strict=True)))

    stacks = result.chosen.stack, *result.chosen.extra
    stack, *extra = map(move, stacks, reader.measure_midpoints(codes))
    return replace(result, chosen=replace(result.chosen, stack=stack, extra=tuple(extra)))


class ManyRowsTrainer:
    """Trains on all labelled rows by sums over them, and on target anchors; a `Trainer` of `targets`."""

    def __init__(
        self, result: SearchResult, reader: RowReader, codes: np.ndarray, weight: np.ndarray, loss: str
    ) -> None:
        self._result, self._reader, self._n = result, reader, len(result.spec.problem.codes)
        Y = signs(codes, result.spec.problem.n_classes)
        self._training = train_on_rows(reader.read_labelled(), Y, result.chosen.C, weight, loss)
        self._labelled = reader.read_anchors(slice(0, self._n))
        self.vectors: list[np.ndarray] | None = None  # what is added to the rows of each domain
        self.start = self._training.start
        self.labelled_scores = self._labelled.score(self.start)
        n_anchors = result.spec.anchors.X.shape[0]
        self._targets = slice(self._n, n_anchors)
        self._scores = reader.read_anchors(self._targets).score(self.start) if n_anchors > self._n else Y[:0]

    def score_targets(self) -> np.ndarray:
        """Scores of the target anchors by `start`."""
        return self._scores

    def score_means(self) -> np.ndarray:
        """Scores by `start` of what is subtracted from the rows of every domain: (n_domains, n_outputs)."""
        return score_means(self._reader.views, self._reader.split_weights(self.start))

    def move(self, moves: np.ndarray) -> None:
        """Add a combination of labelled anchors to the rows of every domain: (n, n_domains)."""
        domain = self._result.spec.anchors.domain
        move_rows(self._result.chosen.K, moves, domain)
        self.vectors = self._labelled.combine(moves)
        change = moves.T @ (self.labelled_scores - self.start.intercept)
        self._scores = self._scores + change[domain[self._n :]]

    def train(self, self_training: SelfTraining | None, choose: ChoosePseudoLabels) -> Trained:
        """Train, once, with or without self-training; labels of target rows are learnt in any case."""
        spec, chosen, training, scores = self._result.spec, self._result.chosen, self._training, self._scores
        del self._training  # the largest of all, and not needed afterwards
        problem, target_codes = spec.problem, spec.anchors.target_codes
        is_known = target_codes != UNLABELLED
        if not len(scores) or (self_training is None and not is_known.any()):
            return Trained(self.start, scores, target_codes, np.zeros(len(scores)), [])
        training.add_rows(self._reader.read_anchors(self._targets, self.vectors), scores)

        def retrain(codes: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray]:
            return training.retrain(signs(codes, problem.n_classes), weight)

        start = self.labelled_scores, scores
        trained = train_classes_in_rounds(
            chosen.K, problem, chosen.C, *start, self_training, choose, retrain, target_codes
        )
        return replace(
            trained,
            model=self.start if trained.model is None else training.finish(trained.model),
            codes=np.where(is_known, target_codes, trained.codes),
            weight=np.where(is_known, LABEL_WEIGHT, trained.weight),
        )

    def score_labelled(self, model: Primal) -> np.ndarray:
        """Scores of the labelled anchors, by a classifier that `train` returned."""
        return self.labelled_scores if model is self.start else self._labelled.score(model)
