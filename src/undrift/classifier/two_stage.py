"""Two-stage selection: compare candidates on a subsample, refit the winner on all labelled rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._inputs import Place, check_choice, check_memory, check_pivots
from ..representation import check_max_rows
from .anchors import (
    CALIBRATION_ROWS,
    RULE_ROWS,
    allot_target_anchors,
    count_target_anchors,
    draw_anchors,
    draw_labelled_rows,
)
from .data import TrainingRows
from .layers import SharedLayers
from .search import Search, SearchResult, SearchSpec
from .selection import NEED_TARGET, Grid, Problem, draw_folds, single_candidate

GRAM_LIMIT = 20_000  # labelled rows above which the final classifier is solved in the primal
LARGE_GRAM = 8_000  # anchors above which candidates are compared on fewer
COMPARED_ROWS = 4_000  # labelled rows that they are compared on then
MOST_PIVOTS = {"auto": 5_000, "few": 2_500, "many": 8_000}
LEAST_PIVOTS, PIVOTS_PER_ROW = 2_500, 4  # fewer rows need fewer, but not in proportion


class TwoStageSearch:
    """Compares candidates on few anchors, then learns the chosen one with all of them.

    Costs one more stack, but only small Gram matrices are held while candidates are compared.
    """

    def __init__(self, comparison: Search, refit: Callable[[Grid], Search]) -> None:
        self._comparison: Search | None = comparison
        self._refit = refit
        self._max_depth = max(comparison.spec.grid.depths)
        self.n_steps = comparison.n_steps + self._max_depth  # at most
        self._result: Callable[[], SearchResult] = comparison.result

    def steps(self) -> Iterator[None]:
        """Explore the grid, and learn what was chosen; yields `n_steps` times."""
        assert self._comparison is not None
        yield from self._comparison.steps()
        compared = self._comparison.result()
        chosen, candidates, default = compared.candidate, compared.candidates, compared.default
        final = self._refit(single_candidate(*chosen.point))

        def result() -> SearchResult:
            last = final.result()
            kept = replace(last.chosen, candidate=chosen)
            return replace(last, chosen=kept, candidates=candidates, default=default)

        self._result = result
        self._comparison = None
        del compared  # with the comparison go its stacks and Gram matrices
        yield from final.steps()
        for _ in range(self._max_depth - chosen.n_layers):
            yield

    def result(self) -> SearchResult:
        """Return what is chosen, with all candidates that were compared."""
        return self._result()


@dataclass(frozen=True)
class SearchPlan:
    """What every search of a fit has in common."""

    classifier: Any
    rows: TrainingRows
    problem: Problem  # of all labelled rows, without folds
    layer_options: dict[str, Any]  # ridge, activation
    place: Place
    center: str | bool  # "classes", "domains" or False
    shared: SharedLayers | None = None

    def search(self, grid: Grid, n_labelled: int, n_target: int) -> Search:
        """Set up a search with so many labelled rows and target rows as anchors."""
        classifier, rows, codes = self.classifier, self.rows, self.problem.codes
        random_state = check_random_state(classifier.random_state)
        labelled = np.arange(len(codes))
        if len(labelled) > n_labelled:  # nothing else that is drawn depends on how many are
            labelled = draw_labelled_rows(codes, n_labelled, check_random_state(classifier.random_state))
        is_choice = grid.n_candidates > 1
        folds = draw_folds(codes[labelled], classifier.n_folds, random_state) if is_choice else []
        anchors, n_pivots = (
            draw_anchors(rows, labelled, n_target, random_state),
            count_pivots(classifier, rows),
        )
        n_hidden = anchors.X.shape[0] * (n_pivots or classifier.n_features_in_) * max(grid.depths)
        keeps_hidden = self.shared is None and not is_choice
        spec = SearchSpec(
            rows=rows,
            anchors=anchors,
            problem=self.problem.take(labelled, folds),
            grid=grid,
            selection=classifier.selection,
            center=self.center,
            balance=classifier.balance_layers,
            binarize=classifier.binarize,
            layer_options=self.layer_options,
            n_pivots=n_pivots,
            max_upper_rows=check_max_rows(classifier.max_upper_rows, list(rows.domains.values())),
            place=self.place,
            shared=self.shared,
            keeps_hidden=keeps_hidden and 8 * n_hidden < check_memory(classifier.memory_budget) / 4,
        )
        return Search(spec, random_state)


def count_pivots(classifier: Any, rows: TrainingRows) -> int | None:
    """Return the features that the first layer reconstructs; None if it reconstructs all of them."""
    d, n_pivots = classifier.n_features_in_, classifier.n_pivots
    if not isinstance(n_pivots, str):
        return None if n_pivots is None else check_pivots(n_pivots, d)
    n_layers = max(classifier.n_layers) if isinstance(classifier.n_layers, list) else classifier.n_layers
    n_rows = sum(X.shape[0] for X in rows.domains.values())
    most = MOST_PIVOTS[check_choice(n_pivots, "n_pivots", tuple(MOST_PIVOTS))]
    limit = limit_pivots(most, d, n_rows, n_layers, check_memory(classifier.memory_budget))
    return None if limit >= d else limit


def limit_pivots(most: int, d: int, n_rows: int, n_layers: int, memory: float) -> int:
    """Return the largest number of pivots, `most` at most, that the rows can use and the memory can hold.

    Layers of p pivots, the first of d features, and the systems that they solve are
    ``p (d + (n_layers + 3) p)`` numbers of four bytes, which may take half of the memory.
    """
    n_squares = n_layers + 3
    fitting = int((np.sqrt(d**2 + n_squares * memory / 2) - d) / (2 * n_squares))
    return max(1, min(most, fitting, max(LEAST_PIVOTS, PIVOTS_PER_ROW * n_rows)))


def plan_search(plan: SearchPlan, grid: Grid) -> Search | TwoStageSearch:
    """Return one search, or two stages where Gram matrices are large."""
    classifier, rows = plan.classifier, plan.rows
    n_labelled = len(plan.problem.codes)
    if n_labelled > GRAM_LIMIT:  # classes are then learnt from all rows, numbers and tags from the anchors
        is_sample = plan.problem.outputs is None
        n_labelled = min(CALIBRATION_ROWS, GRAM_LIMIT) if is_sample else GRAM_LIMIT
    n_target = count_target_anchors(classifier, rows, grid, n_labelled)
    n_anchors = n_labelled + sum(allot_target_anchors(rows, n_target).values())
    if grid.n_candidates == 1 or n_anchors <= LARGE_GRAM:
        return plan.search(grid, n_labelled, n_target)
    n_compared_with = RULE_ROWS if classifier.selection in NEED_TARGET else 0
    comparison = plan.search(grid, min(n_labelled, COMPARED_ROWS), n_compared_with)
    return TwoStageSearch(comparison, lambda chosen: plan.search(chosen, n_labelled, n_target))
