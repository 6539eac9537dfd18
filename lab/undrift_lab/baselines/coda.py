"""Co-training for domain adaptation (Chen, Weinberger and Blitzer 2011), after its description."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils import assert_all_finite, check_random_state, check_scalar
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from .rounds import Round, Schedule, State, run_rounds
from .rows import check_baseline_rows, check_source_rows, take_known_labels

Floats = NDArray[np.floating[Any]]


class CODA(ClassifierMixin, BaseEstimator):
    """Co-training for domain adaptation: two views label target rows for each other, a few a round.

    Every round fits two logistic classifiers u and v on disjoint features (which feature goes to which is
    part of the problem), with a price on features that correlate differently with the labels of the labelled
    rows and with the predicted labels of the unlabelled ones. Rows on which exactly one of them is confident
    are then labelled by that one. The price falls from round to round, so that features of the target
    alone come in gradually. The prediction is that of ``w = u + v``. Two classes only. This is "CODA-style":
    no code of the authors is public, and some of their settings are not either.

    Parameters
    ----------
    penalty, decay : float, default=0.1 and 1.1
        Price of a weight (times its feature's cost) in the first round, against the *sum* of the losses, and
        its divisor after each round, down to 1e-4.
    threshold : float, default=0.8
        A row is confidently classified when the larger class probability is above. It is lowered by 0.05,
        down to 0.65, when no row qualifies.
    expandability : float, default=0.5
        Rows with one confident view are to be at least so many times those with two, or those with none,
        whichever are fewer.
    n_per_round : int, optional
        Rows labelled in a round at most, half of them in each class; default: 2 % of the unlabelled ones, but
        at least 20.
    max_rounds : int, default=50
    min_df : int, default=10
        Features in fewer rows of the task are left out; all are kept where none is in so many.
    random_state : int, RandomState or None, default=None
        Seed of the first split into views.

    Notes
    -----
    Left open by the description and chosen here: losses are averaged inside the soft maximum, and `penalty`
    is divided by the number of labelled rows to match; the price is put on ``|u|`` and ``|v|`` apart, which
    is that of ``|u + v|`` where the views are disjoint and keeps zeros exact; the counts of the expandability
    constraint are shares of the unlabelled rows; both constraints are penalties of weight 1, 10, ..., 10^4,
    with features at unit root mean square in the one that keeps views disjoint; feature costs come from the
    classifier of the round before; an intercept that is never priced and that both views may use.

    References
    ----------
    .. [1] Chen, Weinberger and Blitzer, "Co-training for domain adaptation", 2011.
    """

    def __init__(
        self,
        *,
        penalty: float = 0.1,
        decay: float = 1.1,
        threshold: float = 0.8,
        expandability: float = 0.5,
        n_per_round: int | None = None,
        max_rounds: int = 50,
        min_df: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.penalty = penalty
        self.decay = decay
        self.threshold = threshold
        self.expandability = expandability
        self.n_per_round = n_per_round
        self.max_rounds = max_rounds
        self.min_df = min_df
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, X_target: Any = None, *, sample_domain: ArrayLike | None = None
    ) -> CODA:
        """Learn from labelled rows, then label the unlabelled ones round by round.

        Labels are of two kinds; None and NaN mark unlabelled rows. `X_target` has unlabelled rows of the
        target, or of one target after the other; or all rows are in `X`, with sources >= 0 and targets < 0
        in `sample_domain`.
        """
        self._check_parameters()
        X = check_baseline_rows(self, X)
        labels = self._encode_labels(X, y, check_source_rows(sample_domain, X.shape[0]))
        others = [] if X_target is None else X_target if isinstance(X_target, list) else [X_target]
        others = [check_baseline_rows(self, rows, reset=False) for rows in others]
        rows = sp.vstack([sp.csr_array(part) for part in [X, *others]], format="csr")
        labels = np.concatenate([labels, np.zeros(rows.shape[0] - len(labels))])
        self._keep_features(rows)
        schedule = self._schedule(int(np.sum(labels == 0)))
        rng = check_random_state(self.random_state)
        self._store(*run_rounds(self._weight_rows(rows), labels, schedule, rng))
        return self

    def decision_function(self, X: Any) -> Floats:
        """``x'w`` + intercept: positive for ``classes_[1]``."""
        check_is_fitted(self)
        X = check_baseline_rows(self, X, reset=False)
        scores: Floats = self._weight_rows(sp.csr_array(X)) @ np.append(
            self.coef_[0, self._kept], self.intercept_
        )
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Give each row its class."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        check_scalar(self.penalty, "penalty", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.decay, "decay", Real, min_val=1)
        check_scalar(self.threshold, "threshold", Real, min_val=0.5, max_val=1, include_boundaries="left")
        check_scalar(self.expandability, "expandability", Real, min_val=0)
        check_scalar(self.max_rounds, "max_rounds", Integral, min_val=0)
        check_scalar(self.min_df, "min_df", Integral, min_val=1)
        if self.n_per_round is not None:
            check_scalar(self.n_per_round, "n_per_round", Integral, min_val=2)

    def _encode_labels(self, X: Any, y: ArrayLike, is_source: NDArray[np.bool_] | None) -> Floats:
        """Labels as -1 and +1, with 0 for rows that have none; sets `classes_`."""
        if y is None:
            raise ValueError("This CODA estimator requires y to be passed, but the target y is None.")
        known, kept = take_known_labels(X, y, is_source)
        if kept.dtype.kind == "f":
            assert_all_finite(kept, input_name="y")
        if not len(kept):
            raise ValueError("No row is labelled: give y on some source rows.")
        check_classification_targets(kept)
        self.classes_, position = np.unique(kept, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(kept)}: {len(self.classes_)} classes."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}), and CODA tells two apart.")
        labels = np.zeros(len(known))
        labels[known] = 2.0 * position - 1
        return labels

    def _keep_features(self, rows: Any) -> None:
        """Settle which features are used and how they are weighted."""
        frequency = np.bincount(rows.indices, weights=rows.data != 0, minlength=rows.shape[1])
        self._kept = np.flatnonzero(frequency >= self.min_df)
        if not len(self._kept):
            self._kept = np.arange(rows.shape[1])
        self._weighting = TfidfTransformer().fit(rows[:, self._kept])

    def _weight_rows(self, rows: Any) -> Any:
        """Weight the features in use, and add the constant as the last column."""
        kept = self._weighting.transform(rows[:, self._kept].astype(np.float64))
        return sp.hstack([sp.csr_array(kept), np.ones((rows.shape[0], 1))], format="csr")

    def _schedule(self, n_unlabelled: int) -> Schedule:
        given = {f.name: getattr(self, f.name) for f in fields(Schedule)}
        given["n_per_round"] = self.n_per_round or max(20, round(0.02 * n_unlabelled))
        return Schedule(**given)

    def _store(self, state: State, record: list[Round]) -> None:
        """Fitted attributes, in terms of all features."""

        def spread(values: Floats, empty: float) -> Floats:
            everywhere = np.full((len(values), self.n_features_in_), empty)
            everywhere[:, self._kept] = values[:, :-1]
            return everywhere

        w = state.views.sum(axis=0, keepdims=True)
        self.coef_, self.intercept_ = spread(w, 0.0), w[:, -1]
        self.views_, self.cost_ = spread(state.views, 0.0), spread(state.cost[None, :], np.nan)[0]
        self.rounds_ = record
