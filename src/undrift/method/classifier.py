"""`MSDAClassifier`: the method, from rows of every domain to weights of every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..core import Rows, SingularSystem, array_ops, choose_pivots
from ..inputs import (
    all_or_nothing,
    check_choice,
    check_positive,
    choose_place,
    column_sums,
    half_of_memory,
    load_cluster,
    on_cluster,
    place_rows,
    refuse_cross_validation,
    savable,
    to_host,
    track_steps,
)
from ..msda import MSDA
from .align import align_targets
from .calibrate import class_probabilities, score_held_out
from .choose import Base, Grid, Search, check_grid
from .constants import N_LAYERS, NOISE, RIDGE, C
from .domains import UNLABELLED, Domains, Name, check_domains
from .doubts import judge_fit, measure_rows, warn_of_blocking
from .labels import learn_labels
from .layers import LayerFitter, count_pivots, draw_anchors
from .self_train import PLAN, keep_start, make_rule, self_train
from .shares import check_shares
from .solve import predict_codes
from .source_only import fall_back
from .state import draw_state_rows, keep_state
from .targets import keep_batch_reference
from .teacher import add_words, learn_teacher, name_words, read_words, take_taught_rows
from .train import Fit, Readout, list_target_scores, make_trainer, read_out
from .update import LearnsTargetLabels


@savable
class MSDAClassifier(ClassifierMixin, LearnsTargetLabels, BaseEstimator):
    """Classifier for a domain without labels, learnt from one with.

    Learns mSDA's representation from all rows, and a linear classifier on ``[x, h^1, ..., h^l]`` of the
    labelled ones (section 3.4). Then it estimates the class shares of every target, aligns its classes with
    the source's, and trains in rounds on target rows with pseudo-labels. Where label-free diagnostics say
    that adaptation will not help, it keeps the source-only classifier.

    Parameters
    ----------
    n_layers : int or list of int, default=5
        Number of layers. From a list, cross-validation on the labelled source chooses (the paper's rule).
    noise : float or list of float, default=0.7
        Probability that a feature is missing. A list as above.
    C : float or list of float, default=1.0
        Weight of the squared errors, on inner products scaled to a mean square norm of 1 (so C=1 is the
        authors' rule ``1 / mean |x|^2``). A list as above.
    center : {"classes", "domains", False}, default="classes"
        "classes" moves the rows of a target until its classes meet where the source's do. "domains" subtracts
        the mean of every domain, as if classes were equally frequent in all. False does neither.
    target_shares : dict, optional
        Known shares: class -> share for all targets, or name of a target -> such a dict. By default they are
        estimated. Needs ``center="classes"``.
    border : {"error", "balanced"}, default="error"
        Whether predictions minimise the expected error, or the mean of the classes' (``center="classes"``).
    self_training : bool, default=True
        Whether the most confident target rows join the training set with pseudo-labels, in a few rounds.
    ridge : float, default=1e-5
        Added to the diagonal of the system of each layer.
    n_pivots : int, "auto", "few", "many" or None, default="auto"
        Number of features that the first layer reconstructs, the most frequent ones (section 4). "auto" is
        5,000, "few" 2,500 and "many" 8,000, or fewer where there are fewer rows or less memory. None is all.
    device : str, default="cpu"
        Where to compute, as for :class:`MSDA`.
    verbose : bool, default=False
        Whether to print a line to standard error after each layer.
    random_state : int, RandomState or None, default=None
        Seed of folds, random parts and random rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    targets_ : dict
        For every target, by name: its `shares` (class -> share), their 90% interval `shares_interval` (class
        -> (low, high)), the `expected_error` (`error`, `low`, `high` as fractions) and a list of `warnings`.
        Estimates are None where the target was not aligned, or has too few rows. Where only bounds of the
        error can be said, its `known` is False and its `error` None.
    target_shares_, target_shares_interval_, expected_error_ : list
        The same as lists, in the order of the targets.
    domains_ : list
        Names of the domains, `n_sources_` sources first.
    representation_ : MSDA
        The fitted layers.
    coef_ : list of ndarray
        Weights of the input and of every layer, each of shape (d_t, n_outputs).
    intercept_ : ndarray of shape (n_domains, n_outputs)
        One row per domain in `domains_`.
    teacher_weight_ : ndarray of shape (n_domains, 1)
        Factor of the teacher's log odds that is added to scores where predictions are of both; 0 without one.
    teacher_noise_ : list
        With a teacher, for every target: the share of its labels that look exchanged at random.
    best_params_ : dict
        Chosen `noise`, `n_layers` and `C`.
    selection_results_ : list of dict
        One per candidate: `noise`, `n_layers`, `C`, `score` (NaN if there was no choice), `chosen`.
    self_training_rounds_ : list of dict
        For the start and each round: `n_labelled` target rows, `round_trip` AUC, share of
        predictions `changed`, and whether the round was `kept`.
    caution_ : dict or None
        With a target: `signals`, `reasons` against adapting and their `codes`, those that are `blocking`,
        and whether it `fell_back`.
    temperature_ : float
        Divisor that turns scores of target rows into log odds; `temperatures_` has one for every domain.
    input_mean_ : ndarray of shape (d,)
        Mean of the target rows (source rows if there is no target); explanations are taken there.
    labelled_counts_ : ndarray of shape (d,)
        Number of labelled rows in which each feature is not zero.
    target_scores_ : list of ndarray, or None
        Scores of the rows of every target that `fit` saw, as `decision_function` gives them up to rounding,
        where they are known without another pass. Model files do not hold them.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier
    >>> X = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    >>> target = np.array([[1, 0, 1], [0, 1, 1]])
    >>> MSDAClassifier(n_layers=1).fit(X, ["good", "good", "bad", "bad"], target).predict(target)
    array(['good', 'bad'], dtype='<U4')
    """

    __metadata_request__fit = {"sample_domain": True, "sample_weight": None}
    __metadata_request__predict = {"sample_domain": True}
    __metadata_request__score = {"sample_domain": True}

    _may_fall_back = True  # the lab measures the steps without it

    def __init__(
        self,
        n_layers=N_LAYERS,
        noise=NOISE,
        C=C,
        *,
        center="classes",
        target_shares=None,
        border="error",
        self_training=True,
        ridge=RIDGE,
        n_pivots="auto",
        device="cpu",
        verbose=False,
        random_state=None,
    ):
        self.n_layers = n_layers
        self.noise = noise
        self.C = C
        self.center = center
        self.target_shares = target_shares
        self.border = border
        self.self_training = self_training
        self.ridge = ridge
        self.n_pivots = n_pivots
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(
        self,
        X: Rows | None,
        y: ArrayLike | None,
        X_target: Rows | Mapping[str, Rows] | None = None,
        *,
        y_target: ArrayLike | Mapping[str, ArrayLike] | None = None,
        teacher: ArrayLike | Mapping[str, ArrayLike] | None = None,
        sample_domain: ArrayLike | None = None,
        **options: Any,
    ) -> MSDAClassifier:
        """Learn from labelled source rows and unlabelled rows of any domain, or from a teacher.

        A fit that fails leaves a fitted classifier as it was.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Source rows; or, with `sample_domain`, the rows of all domains. Also rows of Dask, as for
            :meth:`MSDA.fit`, or a torch tensor or any array of the array API; a GPU's stay there.
        y : array-like of shape (n,)
            Labels; None or NaN for rows that have none. With a teacher, X and y may be None.
        X_target : matrix, or dict of matrices, optional
            Unlabelled rows of the target domain, or of several: name -> rows.
        y_target : array-like, or dict of array-likes, optional
            Labels of some rows of `X_target`, None or NaN for the others; a dict if that is one. They are
            learnt from. Of equal rows one counts, and those whose labels contradict are left out.
        teacher : array-like, or dict of array-likes, optional
            Labels of rows of `X_target` by another model, which may be wrong: None or NaN where it was
            silent; or probabilities of shape (n_target, n_classes). A dict if `X_target` is one.
        teacher_confidence : array-like of shape (n_target,), or dict, optional
            Probabilities of the teacher's labels.
        sample_domain : int array of shape (n,), optional
            Domain of each row: sources >= 0, targets < 0. These numbers are then the names of the domains.
            Labels of target rows are ignored.
        sample_weight : array-like of shape (n,), optional
            Weight of each labelled row in the squared errors, at least 0; a row of weight 0 counts as one
            without a label. Layers, which see no labels, are learnt from all rows alike.
        keeps_state : bool, default=True
            Whether `update` and `ask` will be called; without it the model is smaller.
        """
        if X_target is not None:
            refuse_cross_validation()
        keeps_state, confidence = options.pop("keeps_state", True), options.pop("teacher_confidence", None)
        given = {"y_target": y_target, "sample_domain": sample_domain, "dtype": self._dtype}
        given["sample_weight"] = options.pop("sample_weight", None)
        if options:
            hint = ": the target's rows are X_target" if "target" in options else ""
            raise TypeError(f"fit got an unexpected keyword argument {next(iter(options))!r}{hint}")
        grid, taught = self._check_parameters(), name_words(teacher, confidence, X_target)
        has_source = not taught or (X is not None and np.shape(X)[0] > 0)
        if not has_source:
            X, y = take_taught_rows(self, X_target, taught, self._dtype)
        domains = replace(check_domains(self, X, y, X_target, **given), has_source=has_source)
        add_words(domains, taught)
        search = self._start_search(domains, grid)
        try:
            with search.place.set_precision():
                for _ in track_steps(search.steps(), search.n_steps, verbose=self.verbose):
                    pass
                self._adapt(search.result(), keeps_state=keeps_state)
        except SingularSystem as error:
            names = getattr(self, "feature_names_in_", None)
            raise (error if names is None else error.with_names(names)) from None
        return self

    def _check_parameters(self) -> Grid:
        """Return the grid to choose from; refuse impossible values."""
        if self.center is not False:
            check_choice(self.center, "center", ("classes", "domains"))
        check_choice(self.border, "border", ("error", "balanced"))
        if self.center != "classes" and (self.target_shares is not None or self.border != "error"):
            raise ValueError(
                f'target_shares and border="balanced" need center="classes", but center={self.center!r}'
            )
        if not isinstance(self.self_training, bool | np.bool_):
            raise TypeError(f"self_training must be True or False, got {self.self_training!r}")
        check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5")
        return check_grid(self.noise, self.n_layers, self.C)

    def _start_search(self, domains: Domains, grid: Grid, share_layers: Any = None) -> Search:
        """Draw anchors, and prepare the layers of every noise level.

        `share_layers` takes the names of the domains and a function that makes a `LayerFitter`, and returns
        one that several fits share.
        """
        check_shares(self.target_shares, domains.classes, domains.targets)
        rows, depth = list(domains.rows.values()), max(grid.depths)
        place = choose_place(rows, "cpu" if any(map(on_cluster, rows)) else self.device, "high")
        random_state, d = check_random_state(self.random_state), self.n_features_in_
        n_pivots = count_pivots(self.n_pivots, d, sum(domains.sizes), depth)
        width = n_pivots or d
        options = {"seed": self.random_state, "self_training": bool(self.self_training)}
        anchors = draw_anchors(domains, d + depth * width, random_state, **options)

        def make_layers() -> LayerFitter:
            blocks = [place_rows(X, place, n_pivots or 0) for X in rows]
            split = None if n_pivots is None else choose_pivots(blocks, d, n_pivots, random_state)
            return LayerFitter(blocks, split, ridge=self.ridge)

        is_small = 8 * anchors.X.shape[0] * width * depth < half_of_memory() / 4
        keeps_hidden = share_layers is None and grid.n_candidates == 1 and is_small
        center = self.center if self.center != "classes" or domains.targets else "domains"
        layers = make_layers if share_layers is None else partial(share_layers, domains.names, make_layers)
        return Search(domains, anchors, grid, center, place, layers, keeps_hidden, random_state)

    def _adapt(self, base: Base, *, keeps_state: bool = True) -> None:
        """Run the steps of the method, given layers and the Gram matrix of the anchors."""
        domains, seed = base.domains, 0 if self.random_state is None else self.random_state
        known_shares = check_shares(self.target_shares, domains.classes, domains.targets)

        # 1. Least squares on the labelled rows, and scores of rows that were held out.
        trainer = make_trainer(base)
        parts = trainer.posterior, base.labels, trainer.labelled_scores
        held_out = score_held_out(*parts, seed, len(domains.rows))

        # 2. Class shares of every target, and the move that aligns its classes with the source's.
        self.labelled_counts_ = to_host(array_ops(domains.labelled).nonzero_counts(domains.labelled))
        signals = measure_rows([domains.rows[name] for name in domains.targets], self.labelled_counts_)
        unseen = 0.0 if signals is None else signals.unseen
        lessons = learn_teacher(base, trainer, held_out, unseen)
        if lessons is not None:
            known_shares = lessons.fill_shares(known_shares)
        aligned = align_targets(base, trainer, held_out, known_shares, unseen)

        # 3. Self-training: rounds of pseudo-labels.
        trained = keep_start(trainer)
        if lessons is not None or self.self_training:
            plan = PLAN if lessons is None else lessons.plan_rounds(trainer.target_scores)
            trained = self_train(base, trainer, make_rule(held_out, aligned, lessons), plan)

        # 4. Weights of every layer, so that prediction is one pass; the rows that `update` needs.
        has_labels = bool((base.anchors.target_codes != UNLABELLED).any())
        drawn = draw_state_rows(base, seed) if domains.targets and (keeps_state or has_labels) else None
        weights = trainer.finish(trained.coef, None if drawn is None else drawn[0])

        # 5. Calibration: temperature, decision thresholds, expected errors.
        given = known_shares, self.border == "balanced", lessons is not None, seed
        fit = Fit(base, *given, held_out, trainer.labelled_scores, aligned, trained, weights)
        readout = calibrated = read_out(fit)

        # 6. Labels of target rows, and the words of a teacher.
        state = None
        if drawn is not None:
            state = keep_state(fit, readout, *drawn)
            readout = readout if state.labelled is None else learn_labels(state)
        self.teacher_weight_ = np.zeros((len(domains.rows), 1))
        if lessons is not None:
            readout = lessons.describe(readout)
            self.teacher_weight_[domains.target_positions, 0] = lessons.measure_weights(trained, readout)
            self.teacher_noise_ = [None if each is None else each.noise.share for each in lessons.lessons]

        # 7. Doubts: warnings, and the fallback to the source alone.
        self.caution_ = judge_fit(fit, readout.targets, signals)
        self.batch_ = keep_batch_reference(fit, readout.error_ratio, self._dtype)
        if self.caution_ is not None and self.caution_["fell_back"] and self._may_fall_back:
            keeps_shares = "not-known" in self.caution_["codes"]
            readout, self.batch_ = fall_back(fit, readout, keeps_shares=keeps_shares), None
        self.update_state_ = state if keeps_state else None
        self.target_scores_ = list_target_scores(fit, readout) if readout is calibrated else None
        self.self_training_rounds_ = [vars(r) for r in trained.rounds]
        self._keep(base, readout)

    def _keep(self, base: Base, readout: Readout) -> None:
        """Keep a fit as attributes."""
        domains, chosen = base.domains, base.chosen.candidate
        self.classes_, self.domains_, self.domain_sizes_ = domains.classes, domains.names, domains.sizes
        self.n_sources_, self.has_source_ = domains.n_sources, domains.has_source
        self.source_shares_ = np.bincount(domains.y, minlength=len(domains.classes)) / len(domains.y)
        self.best_params_ = {"noise": chosen.noise, "n_layers": chosen.n_layers, "C": chosen.C}
        self.selection_results_ = [{**vars(c), "chosen": c is chosen} for c in base.candidates]
        self.representation_ = self._build_representation(base)
        reference = [domains.rows[name] for name in domains.targets or domains.names]
        self.input_mean_ = np.mean([column_sums(X) / X.shape[0] for X in reference], axis=0)
        self._keep_readout(readout)
        warn_of_blocking(self.caution_)

    def _build_representation(self, base: Base) -> MSDA:
        """Return the chosen stack as a fitted MSDA."""
        chosen, split = base.chosen.candidate, base.split
        n_pivots = None if split is None else len(split.pivots)
        msda = MSDA(chosen.n_layers, chosen.noise, n_pivots=n_pivots, ridge=self.ridge, device=self.device)
        msda.layers_ = [base.place.to_host(layer) for layer in base.chosen.stack.layers]
        msda.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            msda.feature_names_in_ = self.feature_names_in_
        if split is not None:
            msda.pivots_, msda.parts_ = split.pivots, split.parts
        return msda

    def decision_function(
        self,
        X: Rows,
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
        teacher: ArrayLike | None = None,
        teacher_confidence: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        They are in float32, the precision of the layers, as are probabilities.

        Parameters
        ----------
        X : {array, tensor, sparse matrix} of shape (n, d)
            Rows of the target.
        target : str, optional
            Name of the target that the rows are of; needed where `fit` had several. "source" is that of `X`.
        sample_domain : int array of shape (n,), optional
            Domain of each row, if `fit` had it too.
        teacher, teacher_confidence
            What the teacher says of these rows, as for `fit`, if it had one: scores are then those of both.
        """
        if on_cluster(X):
            said = {"teacher": teacher, "teacher_confidence": teacher_confidence}
            return self._answer_lazily(
                "decision_function", X, target=target, sample_domain=sample_domain, **said
            )
        scores = self._score(X, target, sample_domain, teacher, teacher_confidence).astype(self._dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Rows, *, target: Name | None = None, **given: Any) -> np.ndarray:
        """Predict labels; the parameters are those of `decision_function`."""
        if on_cluster(X):
            return self._answer_lazily("predict", X, target=target, **given)
        codes = predict_codes(self._score(X, target, **given))
        return self.classes_[codes]

    def predict_proba(self, X: Rows, *, target: Name | None = None, **given: Any) -> np.ndarray:
        """Return calibrated probabilities of the classes; the parameters are those of `decision_function`."""
        if on_cluster(X):
            return self._answer_lazily("predict_proba", X, target=target, **given)
        scores = self._score(X, target, **given)
        return self.scores_to_proba(scores, target=target, sample_domain=given.get("sample_domain"))

    def scores_to_proba(self, scores, *, target=None, sample_domain=None):
        """Return `predict_proba` of rows from their `decision_function`, at no cost."""
        check_is_fitted(self)
        scores = np.asarray(scores).reshape(len(scores), -1)
        domain = target, sample_domain, len(scores)
        logits = scores + self.take_by_domain(self.prior_, *domain)
        p = class_probabilities(logits, self.take_by_domain(self.temperatures_, *domain))
        return p.astype(self._dtype)

    def score(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None, **given: Any) -> float:
        """Return the accuracy of `predict`; other parameters are those of `decision_function`."""
        return accuracy_score(to_host(y), self.predict(X, **given), sample_weight=to_host(sample_weight))

    def _score(
        self,
        X: Any,
        target: Name | None,
        sample_domain: Any = None,
        teacher: Any = None,
        teacher_confidence: Any = None,
    ) -> np.ndarray:
        check_is_fitted(self)
        X = self._check_input(X)
        scores, domain = self._score_rows(X), (target, sample_domain, X.shape[0])
        scores += self.take_by_domain(self.intercept_, *domain)
        if teacher is not None:
            words = read_words((teacher, teacher_confidence), len(scores), self.classes_)
            scores += self.take_by_domain(self.teacher_weight_, *domain) * words.scores
        return scores

    def _answer_lazily(self, method: str, X: Any, **given: Any) -> Any:
        """Return a lazy Dask array: a method of this classifier on rows of Dask, block by block."""
        check_is_fitted(self)
        if np.ndim(given.get("sample_domain", 0)) > 0:
            raise ValueError("rows of Dask are predicted block by block: give one sample_domain, or a target")
        said = {name: given.pop(name, None) for name in ("teacher", "teacher_confidence")}
        rows = {name: to_host(values) for name, values in said.items() if values is not None}
        n_classes, dtype = len(self.classes_), np.dtype(self._dtype)
        shape = {"predict": (), "predict_proba": (n_classes,)}.get(method, (n_classes,) * (n_classes > 2))
        dtype = self.classes_.dtype if method == "predict" else dtype
        return load_cluster().blockwise(self, method, X, shape=shape, dtype=dtype, rows=rows, **given)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
