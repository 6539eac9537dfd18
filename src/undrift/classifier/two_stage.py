"""In how many stages a classifier is learnt: all candidates with all anchors, or compared on fewer first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._inputs import Place, check_pivots
from ..representation import check_max_rows
from .data import TrainingRows
from .grid import Grid, no_choice
from .linear import SOLVERS
from .search import RULE_ROWS, Search, anchors, n_target_anchors, some_of_every_class, taken_of_targets
from .selection import NEED_TARGET, ONE_SE, Candidate, Problem, folds, scoring

GRAM_LIMIT = 20_000  # labelled rows above which the final classifier is solved in the primal
LARGE_GRAM = 8_000  # anchors above which candidates are compared on fewer
COMPARED_ROWS = 4_000  # labelled rows that they are compared on then


@dataclass
class Staged:
    """Compares candidates on few anchors, then learns the chosen one with all of them.

    One more stack, for Gram matrices that need not be large while several of them are held.
    """

    comparison: Search
    learn: Callable[[Grid], Search]
    last: Search | None = None
    _chosen: Candidate | None = None

    @property
    def chosen(self) -> Candidate:
        """The candidate that is chosen."""
        return self._chosen or self.comparison.chosen

    @property
    def default(self) -> tuple[float, int, float] | None:
        """As for the comparison."""
        return self.comparison.default

    @property
    def candidates(self) -> list[Candidate]:
        """All candidates, with their scores."""
        return self.comparison.candidates

    @property
    def final(self) -> Search:
        """The search whose stack is kept: the comparison's if a callback stopped before there was another."""
        return self.last or self.comparison

    @property
    def n_steps(self) -> int:
        """Number of layers to learn, at most."""
        return self.comparison.n_steps + max(self.comparison.grid.depths)

    def steps(self) -> Iterator[None]:
        """Explore the grid, and learn what was chosen; yields `n_steps` times."""
        yield from self.comparison.steps()
        self._chosen = chosen = self.comparison.chosen
        self.last = self.learn(no_choice(chosen.noise, chosen.n_layers, chosen.C))
        self.comparison.forget()  # stacks and Gram matrices of what was compared
        yield from self.last.steps()
        n_left = max(self.comparison.grid.depths) - chosen.n_layers  # shallower than it might have been
        for _ in range(n_left):
            yield


@dataclass(frozen=True)
class Setup:
    """What every search of a fit has in common."""

    classifier: Any
    rows: TrainingRows
    codes: np.ndarray  # (n,) classes of the labelled rows
    weight: np.ndarray  # (n,)
    options: dict[str, Any]  # of every layer: ridge, activation
    place: Place

    def search(self, grid: Grid, n_labelled: int, n_target: int) -> Search:
        """Set up a search with so many labelled rows and target rows as anchors."""
        classifier, rows, codes = self.classifier, self.rows, self.codes
        random_state = check_random_state(classifier.random_state)
        keep = np.arange(len(codes))
        if len(keep) > n_labelled:
            keep = some_of_every_class(codes, n_labelled, random_state)
        problem = Problem(
            codes[keep],
            len(classifier.classes_),
            self.weight[keep],
            folds(codes[keep], classifier.n_folds, random_state) if grid.n_candidates > 1 else [],
            SOLVERS[classifier.classifier],
        )
        pivots, width = classifier.n_pivots, classifier.n_features_in_
        return Search(
            rows=rows,
            anchors=anchors(rows, keep, n_target, random_state),
            problem=problem,
            grid=grid,
            rule=scoring(classifier.selection),
            center=classifier.center,
            binarize=classifier.binarize,
            options=self.options,
            n_pivots=None if pivots is None else check_pivots(pivots, width),
            random_state=random_state,
            place=self.place,
            max_upper_rows=check_max_rows(classifier.max_upper_rows, list(rows.domains.values())),
            balance=classifier.balance_layers,
            cautious=classifier.selection == ONE_SE,
        )


def planned(setup: Setup, grid: Grid) -> Search | Staged:
    """Return what is to be done to fit a classifier: one search, or two where Gram matrices are large."""
    classifier, rows = setup.classifier, setup.rows
    n_labelled = min(len(setup.codes), GRAM_LIMIT)
    n_target = n_target_anchors(classifier, rows, grid, n_labelled)
    if grid.n_candidates == 1 or n_labelled + sum(taken_of_targets(rows, n_target).values()) <= LARGE_GRAM:
        return setup.search(grid, n_labelled, n_target)
    n_looked_at = RULE_ROWS if classifier.selection in NEED_TARGET else 0
    comparison = setup.search(grid, min(n_labelled, COMPARED_ROWS), n_looked_at)
    return Staged(comparison, lambda chosen: setup.search(chosen, n_labelled, n_target))
