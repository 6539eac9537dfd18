"""What the classifier and the regressor share: linear models on the layers of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core import ACTIVATIONS, Rows, SingularSystem
from .._inputs import (
    Place,
    binarize_rows,
    check_choice,
    check_count,
    check_memory,
    check_positive,
    check_rows,
    choose_place,
    column_sums,
    gather_rows,
    on_cluster,
    track_steps,
)
from .data import TrainingRows
from .extra_features import check_extra
from .prediction import Pass, domain_intercepts, row_scores
from .readout import Readout, ReadoutOptions
from .search import Search, SearchResult
from .selection import Edge, Grid, check_grid, note_ties_and_edges, warn_of_edges
from .self_training import check_self_training
from .targets import BorderOptions
from .two_stage import TwoStageSearch
from .weights import build_representation


@dataclass(frozen=True)
class PreparedFit:
    """A fit whose parameters and rows are checked: what is to be searched, and where."""

    rows: TrainingRows
    codes: np.ndarray  # (n,) classes of the labelled rows
    weight: np.ndarray  # (n,)
    place: Place
    known_shares: list[list[float]]  # of every target, in class order; empty to estimate them
    search: Search | TwoStageSearch
    keeps_state: bool = True  # whether labels of target rows can be added afterwards


class LayeredModel:
    """An estimator whose scores are ``sum_t h^t w_t`` and an intercept for every domain."""

    n_layers: Any
    noise: Any
    C: Any
    ridge: float
    activation: str
    dtype: str
    binarize: bool
    n_folds: int
    self_training: Any
    device: str
    precision: str
    memory_budget: Any
    random_state: Any
    center: str | bool

    def _finish(self, fit: PreparedFit) -> None:
        raise NotImplementedError

    def _check_layers(self) -> tuple[Grid, dict[str, Any]]:
        """Return the grid to choose from and the options of every layer; refuse what cannot be meant."""
        check_choice(self.dtype, "dtype", ("float32", "float64"))
        if check_count(self.n_folds, "n_folds") < 2:
            raise ValueError(f"n_folds={self.n_folds!r} must be at least 2: a fold is scored by the others")
        check_self_training(self.self_training)
        layer_options = {
            "ridge": check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5"),
            "activation": check_choice(self.activation, "activation", ACTIVATIONS),
        }
        return check_grid(self.noise, self.n_layers, self.C), layer_options

    def _readout_options(
        self, loss: str, border: BorderOptions, has_fallback: bool = False, keeps_state: bool = True
    ) -> ReadoutOptions:
        return ReadoutOptions(
            loss,
            check_self_training(self.self_training),
            border,
            has_fallback,
            check_memory(self.memory_budget),
            self.n_folds,
            0 if self.random_state is None else self.random_state,  # the same fit twice is the same model
            keeps_state,
        )

    def _choose_place(self, rows: TrainingRows) -> Place:
        """Return where to compute: rows on a cluster are worked on where they are."""
        is_remote = any(on_cluster(domain) for domain in rows.domains.values())
        device = "cpu" if is_remote else self.device
        return choose_place(rows.matrices, device, self.precision, self.memory_budget)

    def _run(self, fit: PreparedFit) -> None:
        """Search, then keep what was chosen; an error names columns where they have names."""
        try:
            with fit.place.set_precision():
                for _ in track_steps(self, fit.search.steps(), fit.search.n_steps, "layer", dict):
                    pass
                self._finish(fit)
        except SingularSystem as error:
            names = getattr(self, "feature_names_in_", None)
            raise (error if names is None else error.with_names(names)) from None

    def _keep_choice(self, result: SearchResult, *, warns_of_edges: bool = True) -> None:
        chosen = result.candidate
        self.best_params_ = {"noise": chosen.noise, "n_layers": chosen.n_layers, "C": chosen.C}
        self.selection_results_ = [
            {**vars(candidate), "chosen": candidate is chosen} for candidate in result.candidates
        ]
        notes = note_ties_and_edges(chosen, result.candidates, result.default)
        self.selection_notes_ = [str(note) for note in notes]
        self.selection_edges_ = [note.parameter for note in notes if isinstance(note, Edge)]
        if warns_of_edges:
            warn_of_edges(notes)
        self.representation_ = build_representation(self, result)

    def _keep_weights(self, rows: TrainingRows, readout: Readout) -> None:
        """Keep a linear model as weights of every layer, and what it was learnt from."""
        self.coef_ = [weights.astype(self.dtype) for weights in readout.weights]
        self.extra_coef_ = [weights.astype(self.dtype) for weights in readout.extra_weights]
        self.n_extra_features_in_ = [extra.labelled.shape[1] for extra in rows.extra]
        self.centred_intercept_ = readout.intercept
        self.intercept_ = readout.intercept - readout.offsets
        self.domains_ = list(rows.domains)
        self.domain_sizes_ = [X.shape[0] for X in rows.domains.values()]
        reference = [self._first_rows(rows.domains[number]) for number in rows.targets or self.domains_]
        self.input_mean_ = np.mean([column_sums(X) / X.shape[0] for X in reference], axis=0)
        self.labelled_counts_, self.caution_ = readout.labelled_counts, readout.caution
        self.self_training_rounds_ = [vars(r) for r in readout.rounds]

    def _first_rows(self, X: Rows) -> Rows:
        return binarize_rows(X) if self.binarize else X

    def _extra_passes(self, extra: list[Rows]) -> list[Pass]:
        """Return forward passes of extra features; in a model of an earlier version they may have layers."""
        layers = getattr(self, "extra_layers_", [[] for _ in extra])
        weights = [[w] if isinstance(w, np.ndarray) else w for w in self.extra_coef_]
        return list(map(Pass, extra, layers, weights))

    def _scores(self, X: Any, sample_domain: Any, recenter: bool, extra: Any) -> np.ndarray:
        """Scores of shape (n, n_outputs), in row blocks."""
        check_is_fitted(self)
        X, extra = self._check_input(X, extra)
        scores = self._score_rows(X, extra)
        if recenter:
            if self.center not in ("domains", True):
                raise ValueError('recenter=True needs a model fitted with center="domains"')
            return scores - scores.mean(axis=0) + self.centred_intercept_
        return scores + self._by_domain(self.intercept_, sample_domain, X.shape[0])

    def _check_input(self, X: Any, extra: Any) -> tuple[Rows, list[Rows]]:
        """Return rows as they are predicted, and their extra features."""
        X = gather_rows(check_rows(self, X, reset=False, dtype=self.dtype))
        return X, check_extra(extra, X.shape[0], dtype=self.dtype, widths=self.n_extra_features_in_)

    def _score_rows(self, X: Rows, extra: list[Rows]) -> np.ndarray:
        """Scores of checked rows, without an intercept."""
        stack = Pass(X, self.representation_.layers_, self.coef_, self._first_rows)
        place = choose_place([X, *extra], self.device, self.precision)
        return row_scores([stack, *self._extra_passes(extra)], place)

    def _by_domain(self, values: np.ndarray, sample_domain: Any, n: int) -> np.ndarray:
        """Return the row of `values` that belongs to each row's domain; by default the targets' mean."""
        return domain_intercepts(self.domains_, self.domain_sizes_, values, sample_domain, n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags
