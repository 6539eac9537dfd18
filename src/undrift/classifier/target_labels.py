"""What a fitted classifier does with labels of target rows: ask for them, learn them, take another batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import Rows
from .._inputs import check_choice, check_count, choose_place, to_host
from ..errors import warn
from .asking import COMPARED, PURPOSES, choose_for_estimate, choose_for_predictions
from .calibration import class_probabilities
from .data import check_domain_numbers, check_target_labels
from .layered import LayeredModel
from .linear import predict_codes
from .targets import Target
from .updating import Learnt, UpdateState, learn_labels, score_columns

ASKED_WEIGHT = 2.0  # of a label, when it is asked how much it would change
BATCH_ROWS = 1000  # of a new batch that are kept, drawn at random where there are more


class LearnsTargetLabels(LayeredModel):
    """A classifier that can be updated."""

    update_state_: UpdateState | None
    classes_: np.ndarray
    temperature_: float
    temperatures_: np.ndarray
    caution_: dict[str, Any] | None
    label_weight_: float | None
    expected_error_: list[dict[str, float] | None]
    prior_: np.ndarray
    random_state: Any

    def update(self, X, y, *, sample_domain=None, extra=None):
        """Learn labels of a few target rows, at once: layers, alignment and pseudo-labels stay.

        Equals fitting again with these labels and the same layers, alignment and pseudo-labels. Rows that
        `fit` has seen are recognised by their content; others are added.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Target rows.
        y : array-like of shape (n,), or None
            Their labels; None or NaN withdraws the label that a row has. None withdraws them all. Labels end
            a fallback, for good.
        sample_domain : int, or int array of shape (n,), optional
            The target that rows are of; needed where `fit` had several.
        extra : matrix, or list of matrices, optional
            Extra features of these rows, if `fit` had them.
        """
        state = self._check_state()
        X, extra = self._check_input(X, extra)
        domain = self._find_positions(sample_domain, X.shape[0])
        codes = check_target_labels(y, len(domain), self.classes_, "y")
        anchor = state.find_anchors([to_host(rows) for rows in (X, *extra)], domain)
        is_known = bool((anchor >= 0).all())  # then their hidden rows are known too
        columns = [A[anchor] for A in state.columns] if is_known else self._read_columns(X, extra)
        state = state.set_labels(columns, domain, codes, anchor, 1 + len(extra))
        has_fallen_back = self.caution_ is not None and self.caution_["fell_back"]
        if not has_fallen_back or state.labelled is not None:  # without a label nothing speaks for adapting
            self._keep_learnt(state)
        return self

    def update_target(self, X, *, sample_domain=None, extra=None):
        """Take a new batch of unlabelled rows for a target: its class shares, border and expected error.

        No layer is learnt again. Warns where that is not enough: where the error to expect is above the
        interval that it had before.

        Parameters
        ----------
        X, sample_domain, extra
            As for :meth:`update`; all rows are of one target.
        """
        state = self._check_state()
        if not state.is_aligned:
            raise ValueError(
                f'a new batch is aligned by its class shares: fit with center="classes", not {self.center!r}'
            )
        if self.caution_ is not None and self.caution_["fell_back"]:
            raise ValueError(
                "the model fell back to the source-only classifier, and a new batch is no reason to adapt "
                "it: fit again with the batch"
            )
        X, extra = self._check_input(X, extra)
        positions = np.unique(self._find_positions(sample_domain, X.shape[0]))
        if len(positions) != 1:
            raise ValueError("a new batch is of one target: give one sample_domain")
        k, rows = int(positions[0]), np.sort(check_random_state(0).permutation(X.shape[0])[:BATCH_ROWS])
        i = state.target_positions.index(k)
        before = self.expected_error_[i]
        self._keep_learnt(state.replace_target(k, self._read_columns(X[rows], [E[rows] for E in extra])))
        after = self.expected_error_[i]
        if before is not None and after is not None and after["error"] > before["high"]:
            warn(
                f"the new batch is harder than the target of the fit: an error of {after['error']:.1%} is "
                f"expected, {before['error']:.1%} before; fit again with it",
            )
        return self

    def ask(
        self,
        X,
        n,
        purpose="predictions",
        *,
        sample_domain=None,
        extra=None,
        return_weights=False,
        random_state=None,
    ):
        """Return the positions of the n rows most worth labelling.

        Rows with a label are left out, and of equal rows all but the first.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (m, d)
            Target rows.
        n : int
            How many to label.
        purpose : {"predictions", "estimate"}, default="predictions"
            "predictions": rows whose labels would change predictions most, each unlike those before it; they
            say nothing of the error. "estimate": rows drawn at random, half of them among those whose
            prediction differs from the source-only classifier's.
        sample_domain, extra
            As for :meth:`update`.
        return_weights : bool, default=False
            Whether to return also how many rows each one stands for in an estimate, equal ones among them: 0
            with "predictions".
        random_state : int, RandomState or None, default=None
            Seed of what is drawn; by default that of the classifier.
        """
        state = self._check_state()
        check_choice(purpose, "purpose", PURPOSES)
        check_count(n, "n")
        X, extra = self._check_input(X, extra)
        domain = self._find_positions(sample_domain, X.shape[0])
        seed = self.random_state if random_state is None else random_state
        rng = check_random_state(0 if seed is None else seed)
        free, counts = state.list_unlabelled([to_host(rows) for rows in (X, *extra)], domain)
        if not len(free):
            rows, weights = free, np.zeros(0)
        elif purpose == "estimate":
            rows, weights = choose_for_estimate(self._find_changed(X, domain, extra, free), counts, n, rng)
        else:
            drawn = np.sort(rng.permutation(len(free))[: max(COMPARED, 2 * n)])
            chosen = free[drawn]
            columns = self._read_columns(X[chosen], [E[chosen] for E in extra])
            rows = drawn[self._compare_worth(state, columns, domain[chosen], n)]
            weights = np.zeros(len(rows))
        return (free[rows], weights) if return_weights else free[rows]

    def _compare_worth(
        self, state: UpdateState, columns: list[Rows], domain: np.ndarray, n: int
    ) -> np.ndarray:
        place = choose_place(columns, self.device, self.precision)
        covariance = state.find_covariance(columns, domain, state.find_products(columns, domain, place))
        return self._choose_rows(covariance, self._score_columns(columns, domain), domain, n)

    def _score_columns(self, columns: list[Rows], domain: np.ndarray) -> np.ndarray:
        return score_columns(columns, [*self.coef_, *self.extra_coef_]) + self.intercept_[domain]

    def _choose_rows(
        self, covariance: np.ndarray, scores: np.ndarray, domain: np.ndarray, n: int
    ) -> np.ndarray:
        p = class_probabilities(scores + self.prior_[domain], self.temperature_)
        return choose_for_predictions(covariance, p, 1 / (self._check_state().C * ASKED_WEIGHT), n)

    def _find_changed(
        self, X: Rows, domain: np.ndarray, extra: list[Rows], free: np.ndarray
    ) -> np.ndarray | None:
        """Tell which predictions differ from the source-only classifier's; None where there is none."""
        state = self.update_state_
        if state is None or state.baseline_weights is None or state.baseline_intercept is None:
            return None
        before = score_columns([to_host(X[free])], [state.baseline_weights]) + state.baseline_intercept
        after = self._score_rows(X[free], [E[free] for E in extra]) + self.intercept_[domain[free]]
        return predict_codes(before) != predict_codes(after)

    def _check_state(self) -> UpdateState:
        check_is_fitted(self)
        state = getattr(self, "update_state_", None)
        if getattr(self, "multilabel_", False):
            raise ValueError(
                "a model of tags cannot learn labels of target rows: fit it again with them in X and y"
            )
        if state is None:
            raise ValueError(
                "this model has no update state, so labels cannot be added: it was fitted without a target, "
                'with classifier="hinge", or saved without it or by an earlier version; fit it again'
            )
        return state

    def _find_positions(self, sample_domain: Any, n: int) -> np.ndarray:
        """Return the position of the target domain of each of n rows."""
        targets = [number for number in self.domains_ if number < 0]
        if sample_domain is None:
            if len(targets) > 1:
                raise ValueError(
                    f"the model has {len(targets)} targets, {targets}: say by sample_domain which one the "
                    "rows are of"
                )
            sample_domain = targets[0]
        numbers = check_domain_numbers(sample_domain, n)
        unknown = sorted(set(numbers.tolist()) - set(targets))
        if unknown:
            raise ValueError(f"sample_domain holds {unknown[:5]}, but the targets are {targets}")
        return np.array([self.domains_.index(number) for number in numbers.tolist()], dtype=int)

    def _read_columns(self, X: Rows, extra: Sequence[Rows]) -> list[Rows]:
        """Return rows at every layer, and their extra features, on the host."""
        place = choose_place([X, *extra], self.device, self.precision)
        layers = place.move_layers(self.representation_.layers_)
        hidden = place.hidden(layers, self._first_rows(X))
        return [to_host(X), *map(to_host, hidden), *map(to_host, extra)]

    def _keep_learnt(self, state: UpdateState) -> None:
        """Learn the labels of a state, and keep both."""
        learnt: Learnt = learn_labels(state)
        n_layers = len(self.coef_)
        self.coef_ = [w.astype(self.dtype) for w in learnt.weights[:n_layers]]
        self.extra_coef_ = [w.astype(self.dtype) for w in learnt.weights[n_layers:]]
        self.centred_intercept_ = learnt.intercept
        self.intercept_ = learnt.intercept - learnt.shifted_offsets(state)
        self.update_state_, self.label_weight_ = state, learnt.label_weight
        self.temperature_ = state.temperature  # another one where the model had fallen back
        self.temperatures_ = self.temperatures_.copy()  # of this model, not of one that it was copied from
        self.temperatures_[state.target_positions] = state.temperature
        if self.caution_ is not None:
            self.caution_ = {**self.caution_, "fell_back": False}
        self._keep_targets(learnt.targets or [None] * len(state.target_positions))

    def _keep_targets(self, targets: Sequence[Target | None]) -> None:
        raise NotImplementedError
