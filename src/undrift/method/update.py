"""Labels of target rows and a fitted classifier: ask for them, learn them, take another batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..core import Rows
from ..errors import warn
from ..inputs import check_choice, check_count, check_rows, choose_place, gather_rows, to_host
from ..msda import MSDA
from .calibrate import class_probabilities
from .constants import ASKED_ROWS, ASKED_WEIGHT, BATCH_ROWS, HARDER
from .domains import Name, check_target_labels
from .labels import learn_labels
from .solve import predict_codes, score_rows
from .state import UpdateState, score_columns
from .targets import TargetModel
from .train import Readout

PURPOSES = ("predictions", "estimate")  # of asking for labels


class LearnsTargetLabels(TargetModel):
    """A classifier of rows at every layer: it learns labels of target rows, asks for them, takes batches."""

    _dtype = "float32"  # of the representation
    representation_: MSDA
    coef_: list[np.ndarray]
    device: str
    update_state_: UpdateState | None
    center: str | bool
    temperatures_: np.ndarray
    caution_: dict[str, Any] | None
    target_scores_: list[np.ndarray | None] | None
    random_state: Any
    target_shares: Any
    teacher_weight_: np.ndarray

    def update(self, X: Rows, y: Any, *, target: Name | None = None, sample_domain: Any = None) -> Any:
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
        target, sample_domain
            As for :meth:`decision_function`.
        """
        state = self._check_state().lift()
        X = self._check_input(X)
        domain = self._find_positions(target, sample_domain, X.shape[0])
        codes = check_target_labels(y, len(domain), self.classes_, "y")
        anchor = state.find_anchors(to_host(X), domain)
        is_known = bool((anchor >= 0).all())  # then their hidden rows are known too
        columns = [A[anchor] for A in state.columns] if is_known else self._read_columns(X)
        state = state.set_labels(columns, domain, codes, anchor)
        has_fallen_back = self.caution_ is not None and self.caution_["fell_back"]
        if not has_fallen_back or state.labelled is not None:  # without a label nothing speaks for adapting
            self._keep_learnt(state)
        return self

    def update_target(self, X: Rows, *, target: Name | None = None) -> Any:
        """Set class shares, threshold and expected error of a target from a new unlabelled batch.

        No layer is learnt again. Warns where that is not enough: where the error to expect is above the
        interval that it had before.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Rows of one target.
        target : str, optional
            Its name; needed where `fit` had several.
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
        X, k = self._check_input(X), self.find_target(target)
        rows = np.sort(check_random_state(0).permutation(X.shape[0])[:BATCH_ROWS])
        i = state.target_positions.index(k)
        before = self.expected_error_[i]
        known = list(state.known_shares)
        if self.teacher_weight_[k, 0] and self.target_shares is None:
            known[i] = None  # the teacher told those of another batch
        state = replace(state, known_shares=known)
        self._keep_learnt(state.replace_target(k, self._read_columns(X[rows])))
        after = self.expected_error_[i]
        if after is not None and not after["known"]:
            warn(
                f"the error of the new batch is not known, from {after['low']:.1%} to {after['high']:.1%}: "
                "label about 30 of its rows drawn at random"
            )
        elif before and after and before["known"] and after["error"] > HARDER * before["error"]:
            warn(
                f"the new batch is harder than the target of the fit: an error of {after['error']:.1%} is "
                f"expected, {before['error']:.1%} before; fit again with it"
            )
        return self

    def ask(
        self,
        X: Rows,
        n: int,
        purpose: str = "predictions",
        *,
        target: Name | None = None,
        sample_domain: Any = None,
        return_weights: bool = False,
        random_state: Any = None,
    ) -> Any:
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
        target, sample_domain
            As for :meth:`update`.
        return_weights : bool, default=False
            Whether to return also how many rows each one stands for in an estimate, equal ones among them: 0
            with "predictions".
        random_state : int, RandomState or None, default=None
            Seed of the draws; by default that of the classifier.
        """
        state = self._check_state()
        check_choice(purpose, "purpose", PURPOSES)
        check_count(n, "n")
        X = self._check_input(X)
        domain = self._find_positions(target, sample_domain, X.shape[0])
        seed = self.random_state if random_state is None else random_state
        rng = check_random_state(0 if seed is None else seed)
        free, counts = state.list_unlabelled(to_host(X), domain)
        if not len(free):
            rows, weights = free, np.zeros(0)
        elif purpose == "estimate":
            rows, weights = choose_for_estimate(self._find_changed(X, domain, free), counts, n, rng)
        else:
            drawn = np.sort(rng.permutation(len(free))[: max(ASKED_ROWS, 2 * n)])
            chosen = free[drawn]
            columns, domain = self._read_columns(X[chosen]), domain[chosen]
            products = state.find_products(columns, domain, choose_place(columns, self.device, "high"))
            covariance = state.condition(products).covariance(state.find_products_among(columns, domain))
            scores = score_columns(columns, self.coef_) + self.intercept_[domain]
            p = class_probabilities(scores + self.prior_[domain], self.temperature_)
            rows = drawn[choose_for_predictions(covariance, p, 1 / (state.C * ASKED_WEIGHT), n)]
            weights = np.zeros(len(rows))
        return (free[rows], weights) if return_weights else free[rows]

    def _find_changed(self, X: Rows, domain: np.ndarray, free: np.ndarray) -> np.ndarray | None:
        """Tell which predictions differ from the source-only classifier's; None where there is none."""
        state = self.update_state_
        if state is None or state.baseline_weights is None or state.baseline_intercept is None:
            return None
        before = score_columns([to_host(X[free])], [state.baseline_weights]) + state.baseline_intercept
        after = self._score_rows(X[free]) + self.intercept_[domain[free]]
        return predict_codes(before) != predict_codes(after)

    def _check_input(self, X: Any) -> Rows:
        """Return rows as they are predicted."""
        return gather_rows(check_rows(self, X, reset=False, dtype=self._dtype))

    def _score_rows(self, X: Rows, weights: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Return scores ``sum_t h^t w_t`` of checked rows, without an intercept."""
        place = choose_place([X], self.device, "high")
        return score_rows(X, self.representation_.layers_, self.coef_ if weights is None else weights, place)

    def _score_both(self, X: Rows, k: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of rows of the domain at position k, and those by the source alone."""
        assert self.batch_ is not None
        both = [np.hstack(pair) for pair in zip(self.coef_, self.batch_.weights, strict=True)]
        last, first = np.split(self._score_rows(self._check_input(X), both), 2, axis=1)
        return last + self.intercept_[k], first + self.batch_.intercept

    def _read_columns(self, X: Rows) -> list[Rows]:
        """Return checked rows at every layer, on the host."""
        place = choose_place([X], self.device, "high")
        hidden = place.hidden(place.move_layers(self.representation_.layers_), X)
        return [to_host(X), *map(to_host, hidden)]

    def _check_state(self) -> UpdateState:
        check_is_fitted(self)
        if self.update_state_ is None:
            raise ValueError(
                "this model has no update state, so labels cannot be added: it was fitted without a target, "
                "or saved without it; fit it again"
            )
        return self.update_state_

    def _find_positions(self, target: Any, sample_domain: Any, n: int) -> np.ndarray:
        """Return the position of the target domain of each of n rows."""
        domain = self.find_domains(target, sample_domain, n)
        if (domain < self.n_sources_).any():
            raise ValueError(f"sample_domain names a source, but the targets are {self.target_names_}")
        return domain

    def _keep_learnt(self, state: UpdateState) -> None:
        """Learn the labels of a state, and keep both."""
        self.update_state_ = state
        self.target_scores_ = None  # those were of another classifier
        if self.caution_ is not None:
            self.caution_ = {**self.caution_, "fell_back": False}
        self._keep_readout(learn_labels(state))

    def _keep_readout(self, readout: Readout) -> None:
        """Keep weights, temperatures, and the results of every target."""
        self.coef_ = [weights.astype(self._dtype) for weights in readout.weights]
        self.intercept_ = readout.intercept - readout.offsets
        self.temperature_ = readout.temperature
        temperatures = [readout.source_temperature] * self.n_sources_
        temperatures += [readout.temperature] * len(self.target_names_)
        self.temperatures_ = np.array(temperatures)[:, None]
        self._keep_targets(readout.targets)


def choose_for_predictions(covariance: np.ndarray, p: np.ndarray, noise: float, n: int) -> np.ndarray:
    """Choose n rows, one after another: the labels of these would change predictions most.

    The worth of a label of row x is the square of the change of scores that is expected of it, summed over
    all rows z by how undecided they are: ``sum_z undecided_z S(z, x)^2 / (S(x, x) + noise)``, where S is the
    posterior covariance. Once a row is chosen its label counts as known, and S shrinks around it.
    """
    S, chosen = covariance.copy(), []
    undecided = 1 - (p**2).sum(axis=1)
    is_free = np.ones(len(p), dtype=bool)
    for _ in range(min(n, len(p))):
        variance = np.maximum(np.diagonal(S), 0) + noise
        worth = undecided @ S**2 / variance
        x = int(np.argmax(np.where(is_free, worth, -np.inf)))
        chosen.append(x)
        is_free[x] = False
        S -= np.outer(S[:, x], S[x]) / variance[x]
    return np.array(chosen, dtype=int)


def choose_for_estimate(
    is_changed: np.ndarray | None, counts: np.ndarray, n: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows at random, half of them among changed predictions, and return their weights.

    A weight is how many rows of the same kind a drawn one stands for, where `counts` says how many equal it.
    Without `is_changed` all rows are of one kind.
    """
    n_rows = len(counts)
    strata = [np.arange(n_rows)]
    if is_changed is not None and 0 < is_changed.sum() < n_rows and n > 1:
        strata = [np.flatnonzero(is_changed), np.flatnonzero(~is_changed)]
    n_drawn = [min(n, n_rows)]
    if len(strata) == 2:
        n_changed = min(max(n // 2, n - len(strata[1])), len(strata[0]))
        n_drawn = [n_changed, min(n - n_changed, len(strata[1]))]
    drawn = [random_state.choice(rows, k, replace=False) for rows, k in zip(strata, n_drawn, strict=True)]
    pairs = zip(strata, drawn, strict=True)
    weights = [counts[rows].sum() / max(counts[some].sum(), 1) * counts[some] for rows, some in pairs]
    order = random_state.permutation(sum(n_drawn))
    return np.concatenate(drawn)[order], np.concatenate(weights)[order]
