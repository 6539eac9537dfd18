"""`MSDARegressor`: numbers such as star ratings, by least squares on the layers of the classifier."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .._inputs import (
    CallbackSupportMixin,
    on_cluster,
    savable,
    to_host,
    with_callbacks,
)
from ..errors import warn
from .data import check_training_rows
from .layered import LayeredModel, PreparedFit
from .linear import least_squares
from .outputs import fit_numbers
from .prediction import predict_lazily
from .selection import Problem
from .targets import BorderOptions
from .two_stage import GRAM_LIMIT, SearchPlan, plan_search

DEFAULT_CS = (0.03, 0.1, 0.3, 1.0, 3.0)


@savable
class MSDARegressor(CallbackSupportMixin, RegressorMixin, LayeredModel, BaseEstimator):
    """Regressor for a domain without labels, learnt from one with.

    Least squares on the layers of :class:`MSDAClassifier`: the same representation, learnt from all rows,
    the same Gram matrices, with C chosen by cross-validation on the source. Predictions stay within the range
    of the labels.

    Parameters
    ----------
    n_layers : int or list of int, default=5
        Number of layers; a list is chosen from by cross-validation.
    noise : float or list of float, default=0.7
        Probability that a feature is missing; a list is chosen from likewise.
    C : float or sequence of float, default=(0.03, 0.1, 0.3, 1, 3)
        Weight of the squared errors, on inner products scaled to a mean square norm of 1; several are chosen
        from likewise.
    center : bool, default=True
        Whether the mean over its domain is subtracted from every row of every layer, which assumes that
        numbers are about as high in all domains, unless `target_mean` says otherwise. A source of high, or
        of low, numbers alone is centred where it would be with both.
    target_mean : float or list of float, optional
        Mean of the numbers in the target, if it is known: one for all targets, or one for each. Needs
        ``center=True``.
    self_training : bool or SelfTraining, default=True
        Whether target rows join the training set with pseudo-labels: predictions, stretched to the spread of
        held-out predictions in the source, in a few rounds. Stops, or does not start, when numbers learnt
        from the pseudo-labels alone hardly agree with the source's labels.
    clip : bool, default=True
        Whether predictions are cut off at the smallest and the largest label.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the representation; "float32" takes half the time.
    ridge, activation, n_pivots, binarize, max_upper_rows, balance_layers, n_folds, device, precision, \
memory_budget, verbose, random_state
        As for :class:`MSDAClassifier`.

    Attributes
    ----------
    range_ : tuple of float
        The smallest and the largest label.
    representation_, coef_, extra_coef_, n_extra_features_in_, intercept_, centred_intercept_, domains_, \
domain_sizes_, best_params_, selection_results_, selection_notes_, selection_edges_, input_mean_, \
labelled_counts_
        As of :class:`MSDAClassifier`, with one output; the score of a candidate is its R^2.
    self_training_rounds_ : list of dict
        For the start and each round: `n_labelled` target rows, `round_trip` correlation, how far predictions
        `changed` on the mean, over their spread, and whether the round was `kept`.
    target_shares_, target_shares_interval_, expected_error_ : list of None
        One for every target: these are known of classes alone.
    caution_ : dict or None
        With a target: what its rows say against adapting. There is no fallback.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDARegressor
    >>> X = np.array([[2, 0, 1], [1, 0, 0], [0, 1, 1], [0, 2, 0]])
    >>> target = np.array([[2, 0, 1], [0, 2, 1]])
    >>> MSDARegressor(n_layers=1, C=10.0).fit(X, [5, 4, 2, 1], target).predict(target).round(1)
    array([4.7, 1.3])
    """

    __metadata_request__fit = {"sample_domain": True, "extra": True}
    __metadata_request__predict = {"sample_domain": True, "extra": True}
    __metadata_request__score = {"sample_domain": True, "extra": True}

    # what the classifier chooses by parameters, and a regressor does not have
    selection, fallback = "source-cv", False

    def __init__(
        self,
        n_layers=5,
        noise=0.7,
        C=DEFAULT_CS,
        *,
        center=True,
        target_mean=None,
        self_training=True,
        clip=True,
        ridge=1e-5,
        activation="tanh",
        n_pivots=None,
        binarize=False,
        max_upper_rows=None,
        balance_layers=False,
        n_folds=5,
        dtype="float64",
        device="cpu",
        precision="high",
        memory_budget=None,
        verbose=False,
        random_state=None,
    ):
        self.n_layers = n_layers
        self.noise = noise
        self.C = C
        self.center = center
        self.target_mean = target_mean
        self.self_training = self_training
        self.clip = clip
        self.ridge = ridge
        self.activation = activation
        self.n_pivots = n_pivots
        self.binarize = binarize
        self.max_upper_rows = max_upper_rows
        self.balance_layers = balance_layers
        self.n_folds = n_folds
        self.dtype = dtype
        self.device = device
        self.precision = precision
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y, X_target=None, *, sample_domain=None, extra=None, extra_target=None):
        """Learn from labelled source rows and unlabelled rows of any domain.

        Parameters
        ----------
        y : array-like of shape (n,)
            Numbers; None or NaN for rows that have none.
        X, X_target, sample_domain, extra, extra_target
            As for :class:`MSDAClassifier`.
        """
        grid, layer_options = self._check_layers()
        rows = check_training_rows(
            self, X, y, X_target, sample_domain, self.dtype, extra, extra_target, is_numeric=True
        )
        self.range_ = float(rows.y.min()), float(rows.y.max())
        self._check_means(len(rows.targets))
        n = len(rows.y)
        if n > GRAM_LIMIT:
            message = f"of {n:,} labelled rows {GRAM_LIMIT:,} drawn at random are learnt from"
            warn(message)
        place = self._choose_place(rows)
        # rows are of one class as far as folds and samples go
        problem = Problem(np.zeros(n, dtype=int), 1, np.ones(n), [], least_squares, rows.y[:, None])
        plan = SearchPlan(self, rows, problem, layer_options, place, "domains" if self.center else False)
        self._run(PreparedFit(rows, problem.codes, problem.weight, place, [], plan_search(plan, grid)))
        return self

    def _finish(self, fit: PreparedFit) -> None:
        result = fit.search.result()
        is_default = isinstance(self.C, tuple) and self.C == DEFAULT_CS  # not chosen by the user
        self._keep_choice(result, warns_of_edges=not is_default)
        options = self._readout_options("least-squares", BorderOptions())
        readout = fit_numbers(result, options, self._check_means(len(fit.rows.targets)))
        self._keep_weights(fit.rows, readout)
        for name in ("target_shares_", "target_shares_interval_", "expected_error_"):  # of classes alone
            setattr(self, name, [None] * len(fit.rows.targets))

    def _check_means(self, n_targets: int) -> list[float]:
        """Return the mean of every target if the user knows them, else an empty list."""
        if self.target_mean is None:
            return []
        if not self.center:
            raise ValueError("target_mean needs center=True, but center=False")
        if n_targets == 0:
            raise ValueError("target_mean needs target rows, and there are none: pass X_target")
        means = self.target_mean if isinstance(self.target_mean, list | tuple) else [self.target_mean]
        means = [*means] * n_targets if len(means) == 1 else [*means]
        if len(means) != n_targets:
            raise ValueError(
                f"target_mean has {len(means)} entries for {n_targets} targets: give one for each"
            )
        for mean in means:
            if not isinstance(mean, Real) or not self.range_[0] <= float(mean) <= self.range_[1]:
                low, high = self.range_
                raise ValueError(f"target_mean={mean!r} is not between the labels {low:g} and {high:g}")
        return means

    def predict(self, X, *, sample_domain=None, recenter=False, extra=None):
        """Predict numbers.

        Parameters
        ----------
        X : {array, tensor, sparse matrix} of shape (n, d)
            Rows, of the target unless `sample_domain` says otherwise.
        sample_domain, recenter, extra
            As for :class:`MSDAClassifier`.
        """
        check_is_fitted(self)
        if on_cluster(X):
            return predict_lazily(self, "predict", X, sample_domain, recenter, extra)
        scores = self._scores(X, sample_domain, recenter, extra)[:, 0]
        return np.clip(scores, *self.range_) if self.clip else scores

    def score(self, X, y, sample_weight=None, *, sample_domain=None, extra=None):
        """R^2 of `predict` on rows of the target, or of the domains in `sample_domain`."""
        predicted = self.predict(X, sample_domain=sample_domain, extra=extra)
        return r2_score(to_host(y), predicted, sample_weight=to_host(sample_weight))
