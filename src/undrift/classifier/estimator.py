"""`MSDAClassifier`: representation and linear classifier in one, on running Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from .._inputs import (
    CallbackSupportMixin,
    check_choice,
    check_positive,
    on_cluster,
    savable,
    to_host,
    with_callbacks,
)
from .calibration import class_probabilities
from .data import TrainingRows, check_training_rows
from .extra_features import accept_old_names
from .layered import PreparedFit
from .layers import SharedLayers
from .linear import SOLVERS, predict_codes
from .outputs import fit_tags
from .prediction import predict_lazily
from .readout import Readout
from .safeguard import warn_of_blocking
from .selection import SELECTIONS, TINY, Grid, Problem, restrict_grid
from .shares import check_shares
from .target_labels import LearnsTargetLabels
from .targets import BorderOptions, Target
from .two_stage import SearchPlan, plan_search
from .weights import fit_readout


@savable
class MSDAClassifier(CallbackSupportMixin, ClassifierMixin, LearnsTargetLabels, BaseEstimator):
    """Classifier for a domain without labels, learnt from one with.

    Learns mSDA's representation from all rows, labelled or not, and a linear classifier on
    ``[x, h^1, ..., h^l]`` of the labelled ones (section 3.4). The concatenation is never built:
    inner products of the layers add up, so one pass gives the Gram matrix of every depth.

    Parameters
    ----------
    n_layers : int or list of int, default=5
        Number of layers; a list is chosen from by `selection`.
    noise : float or list of float, default=0.7
        Probability that a feature is missing; a list is chosen from by `selection`.
    C : float or list of float, default=0.3
        Weight of the losses, on inner products scaled to a mean square norm of 1 (so C=1 is the
        authors' rule ``1 / mean |x|^2``); a list is chosen from by `selection`.
    classifier : {"least-squares", "hinge"}, default="least-squares"
        Least-squares SVM in closed form, or the paper's linear SVM. Above 20,000 labelled rows both are
        solved in the primal, by sums over rows, and the hinge is squared there.
    selection : str, default="source-cv"
        How to choose where there is a choice; no rule sees a target label. "source-cv" is the
        paper's: cross-validation on the labelled source. "one-se" is the same, but keeps the first value of
        every list unless another candidate is better by more than one standard error. "reverse" labels the
        target, trains back and scores on held-out source rows. "importance-cv" weighs source rows by how
        much they look like the target. At most 2,000 target rows are looked at; with large Gram matrices,
        4,000 labelled ones.
    center : {"classes", "domains", False}, default="classes"
        How domains are brought together. "classes" moves the rows of a target until its classes meet where
        the source's do, whatever the classes' shares, which are estimated; all classes of the source count
        alike. "domains" subtracts from every layer's output the mean over the row's domain, which assumes
        that the classes are about equally frequent in the domains. With both, a source that lacks a class is
        centred where it would be with all classes. False does neither.
    target_shares : dict or list of dict, optional
        Share of every class in the target, if it is known: one dict for all targets, or one for each. By
        default shares are estimated. Needs ``center="classes"``.
    border : {"error", "balanced"}, default="error"
        Whether predictions for a target minimise the expected error under its class shares, or the mean of
        the classes' errors. Needs ``center="classes"``.
    ridge, activation, binarize, device, precision, memory_budget, verbose
        As for :class:`MSDA`.
    n_pivots : int, "auto", "few" or "many", optional
        As for :class:`MSDA`. "auto" is 5,000, "few" 2,500 and "many" 8,000; or fewer where there are fewer
        rows or less memory, and every feature where there are no more than that.
    max_upper_rows : int, optional
        An approximation, for speed: layers from the second on are learnt from at most this many rows,
        drawn at random from the domains in proportion to their sizes (1,000 of each at least, where there
        is room); the first one sees all of them. Hidden rows are centred on the mean over the sample.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn; with ``center="classes"`` classes are balanced in any case.
    balance_layers : bool, default=False
        Whether the input and every layer, each scaled to a mean square norm of 1, count alike.
    self_training : bool or SelfTraining, default=False
        Whether the most confident target rows join the training set with pseudo-labels, in a few rounds.
        Assumes that the classes come apart on the target; stops, or does not start, when a classifier
        trained on the target's predictions alone keeps less than 65% of the source's area under the ROC
        curve above chance. No target label is seen.
    fallback : bool, default=False
        Whether to keep the source-only classifier, and warn, where label-free diagnostics say that
        adaptation will not help. Not with extra features.
    n_folds : int, default=5
        Folds of cross-validation.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the representation.
    random_state : int, RandomState or None, default=None
        Seed of folds, random parts and random rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels; the columns of an indicator matrix, 0, 1, ...
    multilabel_ : bool
        Whether `fit` saw an indicator matrix. Each column is then a problem of two classes;
        ``center="classes"`` predicts every tag as often in a target as in the source, which `target_shares_`
        say; `temperature_` is an array, `target_shares_interval_` and `expected_error_` hold None, and
        nothing falls back.
    representation_ : MSDA
        The fitted representation.
    coef_ : list of ndarray
        Weights of the input and of every layer, each of shape (d_t, n_outputs).
    extra_coef_ : list of ndarray
        Weights of every matrix of extra features, each of shape (d_b, n_outputs).
    n_extra_features_in_ : list of int
        Columns of every matrix of extra features.
    intercept_ : ndarray of shape (n_domains, n_outputs)
        One row per domain in `domains_`; they differ only with `center`.
    centred_intercept_ : ndarray of shape (n_outputs,)
        Intercept of rows that have been centred.
    domains_, domain_sizes_ : list of int
        Domain numbers, sources from 0 upwards, targets negative; and how many rows each had.
    best_params_ : dict
        Chosen `noise`, `n_layers` and `C`.
    selection_results_ : list of dict
        One per candidate: `noise`, `n_layers`, `C`, `score` (NaN if there was no choice), `chosen`.
    selection_notes_ : list of str
        Ties, and choices at the edge of the grid.
    selection_edges_ : list of str
        Parameters whose chosen value lies at the edge of the grid.
    self_training_rounds_ : list of dict
        For the start and each round: `n_labelled` target rows, `round_trip` AUC, share of
        predictions `changed`, and whether the round was `kept`.
    caution_ : dict or None
        With a target: `signals`, `reasons` against adapting and their `codes`, those that are `blocking`,
        and whether it `fell_back`.
    temperature_ : float
        What scores of target rows are divided by to become log odds.
    temperatures_ : ndarray of shape (n_domains, 1)
        The same for every domain in `domains_`.
    target_shares_, target_shares_interval_ : list of dict
        For every target: the estimated (or given) share of every class, and a 90% interval (low, high). None
        for targets that were not aligned.
    expected_error_ : list of dict
        For every target: `error` expected of its predictions, without its labels, and a 90% interval from
        `low` to `high`, as fractions. None for targets that were not aligned, or have too few rows.
    input_mean_ : ndarray of shape (d,)
        Mean of what the first layer sees of target rows (source rows if there is no target);
        explanations are taken there.
    labelled_counts_ : ndarray of shape (d,)
        In how many labelled rows each feature is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> X = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> target = np.array([[1, 0, 1], [0, 1, 1]])
    >>> MSDAClassifier(n_layers=1).fit(X, ["good", "good", "bad", "bad"], target).predict(target)
    array(['good', 'bad'], dtype='<U4')
    """

    __metadata_request__fit = {"sample_domain": True, "sample_weight": None, "extra": True, "blocks": True}
    __metadata_request__predict = {"sample_domain": True, "extra": True, "blocks": True}
    __metadata_request__score = {"sample_domain": True, "extra": True, "blocks": True}

    def __init__(
        self,
        n_layers=5,
        noise=0.7,
        C=0.3,
        *,
        classifier="least-squares",
        selection="source-cv",
        center="classes",
        target_shares=None,
        border="error",
        ridge=1e-5,
        activation="tanh",
        n_pivots=None,
        binarize=False,
        max_upper_rows=None,
        class_weight=None,
        balance_layers=False,
        self_training=False,
        fallback=False,
        n_folds=5,
        dtype="float32",
        device="cpu",
        precision="high",
        memory_budget=None,
        verbose=False,
        random_state=None,
    ):
        self.n_layers = n_layers
        self.noise = noise
        self.C = C
        self.classifier = classifier
        self.selection = selection
        self.center = center
        self.target_shares = target_shares
        self.border = border
        self.ridge = ridge
        self.activation = activation
        self.n_pivots = n_pivots
        self.binarize = binarize
        self.max_upper_rows = max_upper_rows
        self.class_weight = class_weight
        self.balance_layers = balance_layers
        self.self_training = self_training
        self.fallback = fallback
        self.n_folds = n_folds
        self.dtype = dtype
        self.device = device
        self.precision = precision
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    @accept_old_names
    def fit(
        self,
        X,
        y,
        X_target=None,
        *,
        y_target=None,
        sample_domain=None,
        extra=None,
        extra_target=None,
        **weights,
    ):
        """Learn from labelled source rows and unlabelled rows of any domain.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Source rows; or, with `sample_domain`, the rows of all domains. Also rows of Dask, as for
            :meth:`MSDA.fit`: the labelled ones come here, the others stay on the workers. Also a torch
            tensor or any array of the array API; what is on a GPU stays there and is worked on there,
            unless `device` names another. Where only some of `X` and `X_target` is, all of it comes here.
        y : array-like of shape (n,)
            Labels; None or NaN for rows that have none. Or tags: an indicator matrix of shape (n, n_tags), 0
            and 1, whose rows are NaN where there are no labels; predictions then have this shape. Labels,
            domains, weights and extra features may be tensors too; attributes and predictions are NumPy
            arrays in any case.
        X_target : matrix, or list of matrices, optional
            Unlabelled rows of the target domain, or of several.
        y_target : array-like, or list of array-likes, optional
            Labels of some rows of `X_target`, None or NaN for the others; if `X_target` is a list, a list
            with an entry for each, None for a target without labels. They are learnt from; of equal rows one
            counts, and those whose labels contradict are left out.
        sample_domain : int array of shape (n,), optional
            Domain of each row: sources >= 0, targets < 0. Labels of target rows are ignored.
        sample_weight : array-like of shape (n,), optional
            Weight of each labelled row in the classifier's loss, at least 0; those of other rows are ignored.
            Layers, which see no labels, are learnt from all rows alike. So a weight of 2 is not quite the
            same as the row twice; that is why the signature, which promises as much to scikit-learn, has no
            such parameter.
        extra : matrix, or list of matrices, optional
            Further columns of the rows of `X`, such as embeddings of the same documents, dense or sparse.
            Each matrix is scaled to count as much as X does.
        extra_target : optional
            The same for the rows of `X_target`; if that is a list, a list with an entry for each.
        """
        if y_target is not None and sample_domain is not None:
            raise ValueError(
                "y_target goes with X_target, not with sample_domain: pass target rows as X_target"
            )
        sample_weight = weights.pop("sample_weight", None)
        keeps_state = weights.pop("keeps_state", True)  # whether `update` and `ask` will be called
        if weights:
            raise TypeError(f"fit got an unexpected keyword argument {next(iter(weights))!r}")
        labels = {"y_target": y_target, "sample_weight": sample_weight}
        fit = self._prepare(X, y, X_target, sample_domain, extra, extra_target, **labels)
        self._run(replace(fit, keeps_state=keeps_state))
        return self

    def _prepare(
        self,
        X: Any,
        y: Any,
        X_target: Any = None,
        sample_domain: Any = None,
        extra: Any = None,
        extra_target: Any = None,
        shared: SharedLayers | None = None,
        y_target: Any = None,
        sample_weight: Any = None,
    ) -> PreparedFit:
        """Check parameters and rows, and plan the search; layers may be shared with other classifiers."""
        grid, layer_options = self._check_parameters()
        given = X, y, X_target, sample_domain, self.dtype, extra, extra_target, y_target, sample_weight
        rows = check_training_rows(self, *given)
        self.multilabel_ = rows.y.ndim == 2
        if self.multilabel_:
            if sample_weight is not None:
                raise ValueError("with an indicator matrix of tags, leave sample_weight out")
            return self._prepare_tags(rows, grid, layer_options)
        self.classes_, codes = np.unique(rows.y, return_inverse=True)
        place = self._choose_place(rows)
        known_shares = check_shares(self.target_shares, self.classes_, len(rows.targets))
        center = self._choose_centring(rows)
        weight = self._weigh_rows(codes, rows, is_balanced=center == "classes")
        grid = restrict_grid(grid, self.selection, codes, bool(rows.targets))
        problem = Problem(codes, len(self.classes_), weight, [], SOLVERS[self.classifier])
        plan = SearchPlan(self, rows, problem, layer_options, place, center, shared)
        return PreparedFit(rows, codes, weight, place, known_shares, plan_search(plan, grid))

    def _weigh_rows(self, codes: np.ndarray, rows: TrainingRows, is_balanced: bool) -> np.ndarray:
        """Return the weights of the labelled rows: theirs, times those of their classes."""
        weight = rows.weight
        if isinstance(self.class_weight, dict):
            weight = weight * compute_sample_weight(self.class_weight, rows.y)
        if is_balanced or self.class_weight == "balanced":
            totals = np.bincount(codes, rows.weight)
            weight = weight * (rows.weight.sum() / (len(totals) * np.maximum(totals, TINY)))[codes]
        return weight

    def _prepare_tags(self, rows: TrainingRows, grid: Grid, layer_options: dict[str, Any]) -> PreparedFit:
        """Plan one search for all tags, the columns of an indicator matrix."""
        if self.target_shares or isinstance(self.class_weight, dict) or self.border != "error":
            raise ValueError(
                "with an indicator matrix of tags, leave out target_shares, border and a dict of class_weight"
            )
        n, n_tags = rows.y.shape
        self.classes_ = np.arange(n_tags)
        place = self._choose_place(rows)
        # rows are of one class as far as folds and samples go
        problem = Problem(
            np.zeros(n, dtype=int), 1, np.ones(n), [], SOLVERS[self.classifier], np.where(rows.y, 1.0, -1.0)
        )
        plan = SearchPlan(self, rows, problem, layer_options, place, self._choose_centring(rows))
        return PreparedFit(rows, problem.codes, problem.weight, place, [], plan_search(plan, grid))

    def _finish(self, fit: PreparedFit) -> None:
        """Keep what the search chose, and solve for the classifier."""
        result = fit.search.result()
        self._keep_choice(result)
        border = BorderOptions(self.border == "balanced", fit.known_shares)
        options = self._readout_options(self.classifier, border, self.fallback, fit.keeps_state)
        if self.multilabel_:
            self._keep_tags(fit.rows, fit_tags(result, options, self.class_weight))
        else:
            self._keep_classifier(fit.rows, fit_readout(result, fit.codes, fit.weight, options))

    def _keep_tags(self, rows: TrainingRows, readout: Readout) -> None:
        """Keep the classifiers of all tags, and the shares that predictions assume."""
        self._keep_weights(rows, readout)
        self.temperature_ = readout.temperature
        self.temperatures_ = np.tile(readout.temperature, (len(self.domains_), 1))
        self.prior_ = np.zeros_like(self.intercept_)
        self.label_weight_ = self.update_state_ = None
        n_targets = len(rows.targets)
        self.expected_error_: list[Any] = [None] * n_targets
        self.target_shares_interval_: list[Any] = [None] * n_targets
        shares = dict(enumerate(rows.y.mean(axis=0).tolist())) if self.center == "classes" else None
        self.target_shares_: list[Any] = [shares] * n_targets
        if self.fallback:
            warn_of_blocking(readout.caution)

    def _check_parameters(self) -> tuple[Grid, dict[str, Any]]:
        """Return the grid to choose from and the options of every layer; refuse what cannot be meant."""
        check_choice(self.classifier, "classifier", tuple(SOLVERS))
        check_choice(self.selection, "selection", SELECTIONS)
        if not isinstance(self.center, bool | np.bool_):
            check_choice(self.center, "center", ("classes", "domains", False))
        check_choice(self.border, "border", ("error", "balanced"))
        if self.center != "classes" and (self.target_shares is not None or self.border != "error"):
            raise ValueError(
                f'target_shares and border="balanced" need center="classes", but center={self.center!r}'
            )
        if isinstance(self.class_weight, dict):
            for label, weight in self.class_weight.items():
                check_positive(weight, f"class_weight of {label!r}", zero=True)
        elif self.class_weight is not None:
            check_choice(self.class_weight, "class_weight", ("balanced",))
        return self._check_layers()

    def _choose_centring(self, rows: TrainingRows) -> str | bool:
        """Return "classes", "domains" or False: without a target there is nothing to align."""
        if self.center == "classes" and rows.targets:
            return "classes"
        return "domains" if self.center else False

    def _keep_classifier(self, rows: TrainingRows, readout: Readout) -> None:
        """Keep the linear classifier as weights of every layer."""
        self._keep_weights(rows, readout)
        self.temperature_ = readout.temperature
        is_target = np.array(self.domains_)[:, None] < 0
        self.temperatures_ = np.where(is_target, readout.temperature, readout.source_temperature)
        self.label_weight_, self.update_state_ = readout.label_weight, readout.state
        self._keep_targets(readout.targets or [None] * len(rows.targets))
        if self.fallback:
            warn_of_blocking(readout.caution)

    def _keep_targets(self, targets: Sequence[Target | None]) -> None:
        """Keep what is known of every target; None where it was not aligned."""
        labels = self.classes_.tolist()
        self.target_shares_, self.target_shares_interval_, self.expected_error_ = [], [], []
        self.prior_ = np.zeros_like(self.intercept_)  # what probabilities add back when border="balanced"
        first = len(self.domains_) - len(targets)
        for k, target in enumerate(targets, start=first):
            if target is None:
                shares = interval = expected = None
            else:
                shares = dict(zip(labels, target.shares.mean.tolist(), strict=True))
                interval = dict(zip(labels, map(tuple, target.shares.interval().tolist()), strict=True))
                expected = None if target.expected_error is None else vars(target.expected_error)
                self.prior_[k] = target.prior
            self.target_shares_.append(shares)
            self.target_shares_interval_.append(interval)
            self.expected_error_.append(expected)

    @staticmethod
    def _upgrade_saved(params: dict[str, Any], fitted: dict[str, Any]) -> tuple[dict, dict]:
        """Bring the parameters and attributes of an earlier version's model file up to date."""
        for name in ("source_weight", "probability", "block_share", "denoise_blocks"):
            params.pop(name, None)
        if params.get("center") is True:
            params["center"] = "domains"
        fitted.pop("source_weights_", None)
        n_targets = sum(number < 0 for number in fitted.get("domains_", []))
        for name in ("target_shares_", "target_shares_interval_", "expected_error_"):
            fitted.setdefault(name, [None] * n_targets)
        fitted.setdefault("selection_edges_", [])
        if "intercept_" in fitted:
            fitted.setdefault("prior_", np.zeros_like(fitted["intercept_"]))
        if "temperature_" in fitted:
            n_domains = len(fitted["domains_"])
            fitted.setdefault("temperatures_", np.full((n_domains, 1), fitted["temperature_"]))
        for old in ("block_coef_", "block_layers_", "n_block_features_in_"):
            fitted.setdefault(old.replace("block", "extra"), fitted.pop(old, []))  # format 1 has none
        caution = fitted.get("caution_")
        if caution and "grave" in caution:
            caution["blocking"] = caution.pop("grave")
        return params, fitted

    @accept_old_names
    def decision_function(self, X, *, sample_domain=None, recenter=False, extra=None):
        """Scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        X : {array, tensor, sparse matrix} of shape (n, d)
            Rows, of the target unless `sample_domain` says otherwise.
        sample_domain : int array of shape (n,), optional
            Domain of each row, as in `fit`; its stored mean is used for centring.
        recenter : bool, default=False
            Centre on the rows given instead. A row's score then depends on its neighbours. Needs
            ``center="domains"``.
        extra : matrix, or list of matrices, optional
            Extra features of these rows, if `fit` had them: as many, with the same columns.
        """
        check_is_fitted(self)
        if on_cluster(X):
            return predict_lazily(self, "decision_function", X, sample_domain, recenter, extra)
        scores = self._scores(X, sample_domain, recenter, extra)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @accept_old_names
    def predict(self, X, *, sample_domain=None, recenter=False, extra=None):
        """Predict labels; the parameters are those of `decision_function`."""
        check_is_fitted(self)
        if on_cluster(X):
            return predict_lazily(self, "predict", X, sample_domain, recenter, extra)
        scores = self._scores(X, sample_domain, recenter, extra)
        return (scores > 0).astype(int) if self._has_tags else self.classes_[predict_codes(scores)]

    @accept_old_names
    def score(self, X, y, sample_weight=None, *, sample_domain=None, extra=None):
        """Accuracy of `predict` on rows of the target, or of the domains in `sample_domain`."""
        predicted = self.predict(X, sample_domain=sample_domain, extra=extra)
        return accuracy_score(to_host(y), predicted, sample_weight=to_host(sample_weight))

    @accept_old_names
    def predict_proba(self, X, *, sample_domain=None, recenter=False, extra=None):
        """Calibrated probabilities of the classes; the parameters are those of `decision_function`."""
        check_is_fitted(self)
        if on_cluster(X):
            return predict_lazily(self, "predict_proba", X, sample_domain, recenter, extra)
        return self.scores_to_proba(self._scores(X, sample_domain, recenter, extra), sample_domain)

    def scores_to_proba(self, scores, sample_domain=None):
        """Return `predict_proba` of rows from what `decision_function` gave for them, at no cost.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, n_classes)
        sample_domain : int array of shape (n,), optional
            As for `decision_function`.
        """
        check_is_fitted(self)
        if not hasattr(self, "temperature_"):
            raise ValueError("this model was saved by an earlier version without probabilities: fit it again")
        scores = np.asarray(scores).reshape(len(scores), -1)
        prior = self._by_domain(self.prior_, sample_domain, len(scores))
        temperature = self._by_domain(self.temperatures_, sample_domain, len(scores))
        if self._has_tags:
            return expit((scores + prior) / temperature)
        return class_probabilities(scores + prior, temperature)

    @property
    def _has_tags(self) -> bool:
        """Whether `fit` saw an indicator matrix; models of earlier versions did not."""
        return getattr(self, "multilabel_", False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
