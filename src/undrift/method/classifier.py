"""`MSDAClassifier`: the method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self, TypeAlias, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..core import Rows, SingularSystem, array_ops
from ..errors import warn
from ..inputs import (
    Column,
    Place,
    all_or_nothing,
    check_choice,
    check_count,
    check_positive,
    choose_place,
    column_sums,
    on_cluster,
    to_host,
)
from ..msda import MSDA
from .asking import N_QUESTIONS, choose_for_estimate, choose_for_predictions, find_doubts
from .fit import (
    Fitted,
    Grid,
    Learnt,
    Memory,
    check_grid,
    fit_problem,
    learn_labels,
    list_unlabelled,
)
from .predictor import Predictor
from .problem import (
    UNLABELLED,
    KnownShares,
    Name,
    Problem,
    RowKey,
    Targets,
    check_problem,
    check_shares,
    check_target_labels,
    list_row_keys,
)
from .settings import Settings
from .targets import (
    ReadingFacts,
    describe_target,
    list_doubts,
    list_readings,
    measure_coverage,
    sum_rows,
)
from .teacher import ONE, Teacher, hear_teachers, name_words, take_taught_rows

Purpose: TypeAlias = Literal["predictions", "estimate"]
PURPOSES = ("predictions", "estimate")  # of asking for labels
_DEFAULTS = Settings()


class Given(TypedDict, total=False):
    """What may be given to :meth:`MSDAClassifier.fit` beside rows and labels."""

    y_target: Column | Mapping[str, Column] | None
    teacher: Teacher | None
    teacher_confidence: Column | Mapping[str, Column] | None
    sample_domain: ArrayLike | None
    sample_weight: ArrayLike | None


class MSDAClassifier(Predictor):
    """Classifier for a domain without labels, learnt from one with.

    Learns mSDA's representation from all rows, and a linear classifier on ``[x, h^1, ..., h^l]`` of the
    labelled ones (section 3.4). Then it reads every target under several stories of how it differs from the
    source, each with rounds of pseudo-labels. The readings vote. A few labels of target rows settle which
    reading is right. Rows should be like counts or tf-idf: not negative, many zeros, scaled alike in all
    domains.

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
        Which stories vote. "classes": all of them. "domains": only that of the same mix of classes, for which
        the mean of every domain is subtracted. False: only that of unmoved words.
    target_shares : dict or "source", optional
        Known shares: class -> share for all targets, or name of a target -> such a dict. "source" says that
        the mix of classes is that of the source. By default it is open. Needs ``center="classes"``.
    border : {"error", "balanced"}, default="error"
        Whether predictions minimise the expected error, or the mean of the classes'.
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
        -> (low, high)), the `expected_error` (fractions `error`, `low`, `high`; `known`), `by_class` (class
        -> expected `share`, `precision` and `recall`), `confusion` (expected share of rows by true and by
        predicted class), and lists of `warnings` and their `codes`.
    readings_ : dict
        For every target, by name, a list with one dict a reading: `name`, `story`, `weight` of its vote,
        `shares` (class -> share), and `agreement`, the share of rows on which it predicts as the jury does.
    target_shares_, target_shares_interval_, expected_error_ : list
        Of `targets_`, in the order of the targets.
    domains_ : list
        Names of the domains, `n_sources_` sources first; then the targets, `target_names_`.
    target_scores_ : list of ndarray, or None
        Of every target, the scores of the rows that `fit` saw; None after loading.
    coef_ : list of ndarray
        Weights of the input and of every layer, by all readings; log odds.
    intercept_ : ndarray of shape (n_domains, n_outputs)
        Intercepts of every domain; log odds.
    settings_ : Settings
        Every tuned number of the method, as the fit had it.
    source_shares_ : ndarray
        Share of every class among the labelled rows.
    model_ : Model
        Weights and votes of the readings.
    memory_ : Memory or None
        Rows that `update` fits again; None without a target, or where ``keeps_state=False``.
    representation_ : MSDA
        The fitted layers.
    best_params_ : dict
        Chosen `noise`, `n_layers` and `C`.
    selection_results_ : list of dict
        One per candidate: `noise`, `n_layers`, `C`, `score` (NaN if there was no choice), `chosen`.
    input_mean_ : ndarray of shape (d,)
        Mean of the target rows (source rows if there is no target); explanations are taken there.
    labelled_counts_ : ndarray of shape (d,)
        Number of labelled rows in which each feature is not zero.
    teacher_noise_ : list
        With a teacher, for every target: the share of its labels that look exchanged at random.

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

    n_features_in_: int
    memory_: Memory | None
    readings_: dict[Name, list[ReadingFacts]]

    def __init__(
        self,
        n_layers: int | Sequence[int] = _DEFAULTS.layers.n_layers,
        noise: float | Sequence[float] = _DEFAULTS.layers.noise,
        C: float | Sequence[float] = _DEFAULTS.layers.C,
        *,
        center: Literal["classes", "domains", False] = "classes",
        target_shares: KnownShares | Literal["source"] | None = None,
        border: Literal["error", "balanced"] = "error",
        self_training: bool = True,
        ridge: float = _DEFAULTS.layers.ridge,
        n_pivots: int | Literal["auto", "few", "many"] | None = "auto",
        device: str = "cpu",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
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

    _last: Fitted | None = None  # of this session, so that labels are learnt at once

    @all_or_nothing
    def fit(
        self,
        X: Rows | None,
        y: Column | None,
        X_target: Rows | Mapping[str, Rows] | None = None,
        *,
        y_target: Column | Mapping[str, Column] | None = None,
        teacher: Teacher | None = None,
        teacher_confidence: Column | Mapping[str, Column] | None = None,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        keeps_state: bool = True,
    ) -> Self:
        """Learn from labelled source rows and unlabelled rows of any domain, or from a teacher.

        A fit that fails leaves a fitted classifier as it was. In scikit-learn's cross-validation with
        `X_target`, the target's rows are those of every fold alike, and scores are of held-out source rows:
        they say nothing of the target.

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
            Labels of some rows of `X_target`, None or NaN for the others; a dict if that is one. They weigh
            the readings and are learnt. Of equal rows one counts, and those whose labels contradict are left
            out.
        teacher : array-like, or dict of array-likes, optional
            Labels of rows of `X_target` by another model, which may be wrong: None or NaN where it was
            silent; or probabilities of shape (n_target, n_classes). A dict if `X_target` is one. A dict of
            such by name is several teachers, each of which is a reading.
        teacher_confidence : array-like of shape (n_target,), or dict, optional
            Probabilities of the teacher's labels.
        sample_domain : int array of shape (n,), optional
            Domain of each row: sources >= 0, targets < 0. These numbers are then the names of the domains.
            Labels of target rows are ignored.
        sample_weight : array-like of shape (n,), optional
            Weight of each labelled row in the squared errors, at least 0; a row of weight 0 counts as one
            without a label. Layers, which see no labels, are learnt from all rows alike.
        keeps_state : bool, default=True
            Whether `update` will be called; without it the model is smaller.

        Returns
        -------
        MSDAClassifier
            Itself, fitted.
        """
        settings, grid = self.make_settings(), self._check_parameters()
        self._last = self._scores = None
        problem = self.make_problem(
            X,
            y,
            X_target,
            y_target=y_target,
            teacher=teacher,
            teacher_confidence=teacher_confidence,
            sample_domain=sample_domain,
            sample_weight=sample_weight,
        )
        self.classes_ = problem.classes
        rows = list(problem.rows.values())
        place = choose_place(rows, "cpu" if any(map(on_cluster, rows)) else self.device)
        try:
            seed, verbose = self.random_state, self.verbose
            fitted = fit_problem(problem, settings, place, grid=grid, seed=seed, verbose=verbose)
        except SingularSystem as error:
            names = getattr(self, "feature_names_in_", None)
            raise (error if names is None else error.with_names(names)) from None
        self.settings_ = settings
        self._keep_layers(problem, fitted.learnt, place)
        self._keep(fitted, problem, keeps_state=keeps_state)
        return self

    def make_problem(
        self, X: Rows | None, y: Column | None, X_target: Targets = None, **given: Unpack[Given]
    ) -> Problem:
        """Check the arguments of :meth:`fit`, which says what they are, and return the problem."""
        settings = self.make_settings()
        taught = name_words(given.get("teacher"), given.get("teacher_confidence"), X_target)
        has_source = not taught or (X is not None and np.shape(X)[0] > 0)
        if not has_source:
            X, y = take_taught_rows(self, X_target, taught, self._dtype, settings.teacher)
        rows, dtype = (X, y, X_target, given.get("y_target")), self._dtype
        problem = check_problem(
            self, *rows, given.get("sample_domain"), given.get("sample_weight"), dtype=dtype
        )
        known = check_shares(self.target_shares, problem.classes, problem.targets)
        by_name = zip(problem.targets, known, strict=True)
        return replace(
            problem,
            taught=hear_teachers(problem, taught, settings.teacher.least),
            has_source=has_source,
            shares={name: np.array(shares) for name, shares in by_name if shares is not None},
            assumes_same=self.target_shares == "source",
            is_balanced=self.border == "balanced",
        )

    def make_settings(self) -> Settings:
        """Return the settings of the method, which `center` and `self_training` narrow."""
        settings = _DEFAULTS
        votes = settings.votes
        if self.center != "classes":
            votes = replace(votes, only="same mix" if self.center == "domains" else "unmoved")
        rounds = settings.rounds if self.self_training else replace(settings.rounds, portions=())
        layers = replace(settings.layers, ridge=self.ridge, n_pivots=self.n_pivots)
        return replace(settings, layers=layers, rounds=rounds, votes=votes)

    def _check_parameters(self) -> Grid:
        """Return the grid to choose from; refuse impossible values."""
        check_choice(self.center, "center", ("classes", "domains", False))
        check_choice(self.border, "border", ("error", "balanced"))
        if self.center != "classes" and self.target_shares is not None:
            raise ValueError(f'target_shares needs center="classes", but center={self.center!r}')
        if not isinstance(self.self_training, bool | np.bool_):
            raise TypeError(f"self_training must be True or False, got {self.self_training!r}")
        check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5")
        return check_grid(self.noise, self.n_layers, self.C)

    def _keep_layers(self, problem: Problem, learnt: Learnt, place: Place) -> None:
        """Keep what labels of target rows do not change."""
        best, split = learnt.best, learnt.split
        self.domains_ = problem.names
        self.best_params_ = {"noise": best["noise"], "n_layers": best["n_layers"], "C": best["C"]}
        self.selection_results_ = [{**tried, "chosen": tried is best} for tried in learnt.candidates]
        n_pivots = None if split is None else len(split.pivots)
        msda = MSDA(best["n_layers"], best["noise"], n_pivots=n_pivots, ridge=self.ridge, device=self.device)
        msda.layers_ = [place.to_host(layer) for layer in learnt.level.stack.layers]
        msda.n_features_in_, msda.form_ = self.n_features_in_, learnt.level.form
        if hasattr(self, "feature_names_in_"):
            msda.feature_names_in_ = self.feature_names_in_
        if split is not None:
            msda.pivots_, msda.parts_ = split.pivots, split.parts
        self.representation_ = msda
        reference = [problem.rows[name] for name in problem.targets or problem.names]
        self.input_mean_ = np.mean([column_sums(X) / X.shape[0] for X in reference], axis=0)
        self.labelled_counts_ = to_host(array_ops(problem.labelled).nonzero_counts(problem.labelled))

    def _keep(self, fitted: Fitted, problem: Problem | None, *, keeps_state: bool = True) -> None:
        """Keep model and results; without the `problem`, the doubts of the fit before stay."""
        verdict, evidence, facts = fitted.verdict, fitted.evidence, fitted.memory.facts
        classes = self.classes_.tolist()
        self.model_, self.source_shares_ = fitted.model, facts.source_shares
        self.memory_ = fitted.memory if keeps_state and facts.targets else None
        self._last = fitted if self.memory_ is not None else None
        before = getattr(self, "targets_", {})
        labelled = np.zeros(0) if problem is None else sum_rows(problem.labelled)  # once: it may be remote
        self.readings_, self.targets_ = {}, {}
        names = [reading.story.name for reading in verdict.readings]
        sentences = [reading.story.sentence for reading in verdict.readings]
        for i, name in enumerate(facts.targets):
            readings = list_readings(classes, names, sentences, verdict.votes[i], verdict.p[i])
            self.readings_[name] = readings
            results = describe_target(classes, verdict.estimates[i])
            if problem is None:
                results = before[name] | results
            else:
                coverage = measure_coverage(problem.rows[name], labelled)
                doubts = list_doubts(coverage, evidence.source, classes, readings, verdict.mix(i))
                results |= {"warnings": list(doubts.values()), "codes": list(doubts)}
                for code, text in doubts.items():
                    warn(text, code=code)
            if lessons := evidence.lessons[i]:
                noises = {who: lesson.noise.share for who, lesson in lessons.items()}
                results["teacher_noise"] = noises[ONE] if list(noises) == [ONE] else noises
            self.targets_[name] = results
        scores = [fitted.model.decide(verdict.mix(i), self.n_sources_ + i) for i in range(len(facts.targets))]
        sizes = facts.sizes[self.n_sources_ :]
        self._scores = [each if len(each) == n else None for each, n in zip(scores, sizes, strict=True)]

    def list_rows(self, target: Name | None = None) -> Rows:
        """Return the rows of a target that are kept for `update`."""
        anchors, k = self._check_memory().anchors, self.find_target(target)
        return to_host(anchors.X)[np.flatnonzero(anchors.domain == k)]

    def predict_kept(self, target: Name | None = None) -> np.ndarray:
        """Predict the rows of `list_rows`; none is read again after a fit, an update or `recall`."""
        k = self.find_target(target)
        p = self.recall().verdict.mix(k - self.n_sources_)
        p = self.model_.move(p, k)
        return self.classes_[self.model_.weigh_classes(p, k).argmax(axis=1)]

    def list_labelled(self, target: Name | None = None) -> tuple[Rows, np.ndarray]:
        """Return the rows of a target whose labels are known, and these."""
        anchors, k = self._check_memory().anchors, self.find_target(target)
        is_known = (anchors.domain == k) & (anchors.codes != UNLABELLED)
        rows = np.flatnonzero(is_known)
        return to_host(anchors.X)[rows], self.classes_[anchors.codes[rows]]

    def predict_held_out(self, X: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Predict labelled rows of the source by classifiers that have not seen their labels.

        A row whose own label is improbable may be labelled wrongly. Equal rows are in one fold of five.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Rows of the source, which are recognised by their content.

        Returns
        -------
        y : ndarray of shape (n,)
            The labels that `fit` had; None for rows that were not among its labelled ones.
        p : ndarray of shape (n, n_classes)
            Class probabilities; NaN for these rows.
        """
        X, fitted = to_host(self._check_input(X)), self.recall()
        anchors = fitted.memory.anchors
        n, places = anchors.n_labelled, dict[RowKey, list[int]]()
        labelled = to_host(anchors.X)[:n].astype(X.dtype)
        for i, key in enumerate(list_row_keys(labelled, np.zeros(n, dtype=int))):
            places.setdefault(key, []).insert(0, i)
        found = [places.get(key, [-1]) for key in list_row_keys(X, np.zeros(X.shape[0], dtype=int))]
        place = np.array([equal.pop() if len(equal) > 1 else equal[0] for equal in found], dtype=int)
        is_known = place >= 0  # equal rows take turns
        y = self.classes_.astype(object)[anchors.codes[place]]
        y[~is_known] = None
        return y, np.where(is_known[:, None], fitted.evidence.held_out[place], np.nan)

    def update(
        self,
        X: Rows,
        y: Column | None,
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> Self:
        """Learn labels of a few target rows at once: they weigh the readings, which are then read again.

        Equals fitting again with these labels and the same layers. Rows that `fit` has seen are recognised
        by their content; others are added.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Target rows.
        y : array-like of shape (n,), or None
            Their labels; None or NaN withdraws the label that a row has. None withdraws them all. Labels of
            classes that the source lacks are left out, with a warning.
        target, sample_domain
            As for :meth:`decision_function`.

        Returns
        -------
        MSDAClassifier
            Itself.
        """
        self._check_memory()
        X = to_host(self._check_input(X))
        domain = self._find_positions(target, sample_domain, X.shape[0])
        codes = check_target_labels(y, len(domain), self.classes_, "y")
        self._keep(self._learn(X, domain, codes), None)
        return self

    @overload
    def ask(
        self,
        X: Rows,
        n: int,
        purpose: Purpose = ...,
        *,
        target: Name | None = ...,
        sample_domain: ArrayLike | None = ...,
        return_weights: Literal[False] = ...,
        random_state: int | np.random.RandomState | None = ...,
    ) -> np.ndarray: ...
    @overload
    def ask(
        self,
        X: Rows,
        n: int,
        purpose: Purpose = ...,
        *,
        target: Name | None = ...,
        sample_domain: ArrayLike | None = ...,
        return_weights: bool,
        random_state: int | np.random.RandomState | None = ...,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def ask(
        self,
        X: Rows,
        n: int,
        purpose: Purpose = "predictions",
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
        return_weights: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the positions of the n rows most worth labelling.

        Rows with a label are left out, and of equal rows all but the first.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (m, d)
            Target rows.
        n : int
            How many to label.
        purpose : {"predictions", "estimate"}, default="predictions"
            "predictions": rows that decide between readings, until there are five labels, then rows drawn at
            random, doubtful ones more often, which measure the error by weight. "estimate": drawn rows alone,
            half of them among those whose prediction differs from the source-only reading's.
        target, sample_domain
            As for :meth:`update`.
        return_weights : bool, default=False
            Whether to return also how many rows each one stands for; 0 where it decides between readings.
        random_state : int, RandomState or None, default=None
            Seed of the draws; by default that of the classifier.

        Returns
        -------
        ndarray of shape (n,)
            Positions; with `return_weights` a pair of these and of their weights.
        """
        check_is_fitted(self)
        check_choice(purpose, "purpose", PURPOSES)
        check_count(n, "n")
        X = self._check_input(X)
        domain = self._find_positions(target, sample_domain, X.shape[0])
        seed = self.random_state if random_state is None else random_state
        rng = check_random_state(0 if seed is None else seed)
        free, counts, n_known = list_unlabelled(self.memory_, to_host(X), domain)
        if not len(free):
            return (free, np.zeros(0)) if return_weights else free
        k, model = int(domain[0]), self.model_
        votes, p = model.votes[k], model.read(self._score_rows(X[free]), domain[free])
        mixed, n = model.mix(p, k), min(n, len(free))
        if purpose == "estimate":
            is_changed = None
            if model.source_only is not None:
                is_changed = p[model.source_only].argmax(axis=1) != mixed.argmax(axis=1)
            rows, weights = choose_for_estimate(is_changed, counts, n, rng)
        else:
            n_questions = min(n, max(0, N_QUESTIONS - n_known)) if np.sum(votes > 0) > 1 else 0
            codes = model.weigh_classes(mixed, k).argmax(axis=1)
            given = votes, p, find_doubts(mixed, codes), counts, self.settings_.votes.doubt
            rows, weights = choose_for_predictions(*given, n, n_questions, rng)
        return (free[rows], weights) if return_weights else free[rows]

    def recall(self) -> Fitted:
        """Return the fit of the kept rows; of a loaded model they are read again, once for all its copies."""
        if self._last is None:
            none = np.zeros(0, dtype=int)
            self._last = self._learn(to_host(self._check_memory().anchors.X)[:0], none, none)
        return self._last

    def _learn(self, X: Rows, domain: np.ndarray, codes: np.ndarray) -> Fitted:
        """Return the fit of the kept rows with labels of rows of these domains."""
        given = self._check_memory(), X, domain, codes, self.representation_.layers_
        return learn_labels(*given, self.settings_, self.device, self._last)

    def _check_memory(self) -> Memory:
        check_is_fitted(self)
        if self.memory_ is None:
            raise ValueError(
                "this model has no memory of its rows, so labels cannot be learnt: it was fitted without a "
                "target, or saved without them; fit it again, and save it with updatable=True"
            )
        return self.memory_

    def _find_positions(self, target: Name | None, sample_domain: ArrayLike | None, n: int) -> np.ndarray:
        """Return the position of the target domain of each of n rows."""
        domain = self._find_domains(target, sample_domain, n)
        if (domain < self.n_sources_).any():
            raise ValueError(f"sample_domain names a source, but the targets are {self.target_names_}")
        return domain

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_last", "_scores")}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
