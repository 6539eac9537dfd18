"""`MSDAClassifier`: the method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
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
    track_steps,
)
from ..msda import MSDA
from .anchors import Anchors, draw_anchors, set_labels
from .asking import N_QUESTIONS, choose_for_estimate, choose_for_predictions, choose_questions
from .fit import Fitted, Grid, Learnt, Memory, Search, check_grid, fit_level, refit
from .judge import Facts
from .jury import mix
from .model import Model
from .predictor import JuryPredictor
from .problem import (
    UNLABELLED,
    Name,
    Problem,
    check_problem,
    check_target_labels,
    list_row_keys,
)
from .settings import Settings
from .shares import check_shares
from .targets import describe_target, list_doubts, list_readings, measure_coverage, sum_rows
from .teacher import ONE, add_words, name_words, take_taught_rows

PURPOSES = ("predictions", "estimate")  # of asking for labels
_ASKED_ROWS = 1_000  # among which `ask` chooses
_DEFAULTS = Settings()


class MSDAClassifier(JuryPredictor, ClassifierMixin, BaseEstimator):
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
        Names of the domains, `n_sources_` sources first.
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
    teacher_weight_, teacher_noise_ : list
        With a teacher, for every target: the factor of its log odds that is added to scores where predictions
        are of both; and the share of its labels that look exchanged at random.

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

    classes_: np.ndarray
    n_features_in_: int
    model_: Model
    memory_: Memory | None
    representation_: MSDA
    targets_: dict[Name, dict[str, Any]]
    readings_: dict[Name, list[dict[str, Any]]]

    def __init__(
        self,
        n_layers: int | Sequence[int] = _DEFAULTS.layers.n_layers,
        noise: float | Sequence[float] = _DEFAULTS.layers.noise,
        C: float | Sequence[float] = _DEFAULTS.layers.C,
        *,
        center: Literal["classes", "domains", False] = "classes",
        target_shares: Mapping[Any, Any] | Literal["source"] | None = None,
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
    _scores: list[np.ndarray | None] | None = None  # of this session

    @all_or_nothing
    def fit(
        self,
        X: Rows | None,
        y: Column | None,
        X_target: Rows | Mapping[str, Rows] | None = None,
        *,
        y_target: Column | Mapping[str, Column] | None = None,
        teacher: Column | Mapping[str, Any] | None = None,
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
        taught = name_words(teacher, teacher_confidence, X_target)
        has_source = not taught or (X is not None and np.shape(X)[0] > 0)
        if not has_source:
            X, y = take_taught_rows(self, X_target, taught, self._dtype, settings.teacher)
        given = {"y_target": y_target, "sample_domain": sample_domain, "sample_weight": sample_weight}
        problem = check_problem(self, X, y, X_target, **given, dtype=self._dtype)
        add_words(problem, taught, settings.teacher.least)
        self.classes_ = problem.classes
        rows = list(problem.rows.values())
        place = choose_place(rows, "cpu" if any(map(on_cluster, rows)) else self.device)
        anchors = draw_anchors(problem, settings.anchors, self.random_state)
        facts = self.list_facts(problem, anchors, has_source=has_source)
        search = Search(problem, anchors, grid, self.n_pivots, settings, place, self.random_state)
        n_entries = anchors.X.shape[0] * search.width * max(grid.depths)
        keeps_hidden = grid.n_candidates == 1 and n_entries <= settings.anchors.kept_entries
        try:
            with place.set_precision():
                steps = search.steps(keeps_hidden=keeps_hidden)
                for _ in track_steps(steps, grid.n_steps, verbose=self.verbose):
                    pass
                learnt = search.result()
                fitted = fit_level(anchors, learnt.level, learnt.candidate.C, facts, settings, place)
        except SingularSystem as error:
            names = getattr(self, "feature_names_in_", None)
            raise (error if names is None else error.with_names(names)) from None
        self._keep_layers(problem, learnt, place)
        labelled = sum_rows(problem.labelled)
        coverages = [measure_coverage(problem.rows[name], labelled) for name in problem.targets]
        self._keep(fitted, coverages, keeps_state=keeps_state)
        return self

    def make_settings(self) -> Settings:
        """Return the settings of the method, which `center` and `self_training` narrow."""
        settings = _DEFAULTS
        votes = settings.votes
        if self.center != "classes":
            centred, unmoved = (1.0, 0.0) if self.center == "domains" else (0.0, 1.0)
            votes = replace(
                votes, source_only=0.0, unmoved=unmoved, centred=centred, estimated=0.0, near=0.0, flat=0.0
            )
        rounds = settings.rounds if self.self_training else replace(settings.rounds, portions=())
        layers = replace(settings.layers, ridge=self.ridge)
        return replace(settings, layers=layers, rounds=rounds, votes=votes)

    def _check_parameters(self) -> Grid:
        """Return the grid to choose from; refuse impossible values."""
        if self.center is not False:
            check_choice(self.center, "center", ("classes", "domains"))
        check_choice(self.border, "border", ("error", "balanced"))
        if self.center != "classes" and self.target_shares is not None:
            raise ValueError(f'target_shares needs center="classes", but center={self.center!r}')
        if not isinstance(self.self_training, bool | np.bool_):
            raise TypeError(f"self_training must be True or False, got {self.self_training!r}")
        check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5")
        return check_grid(self.noise, self.n_layers, self.C)

    def list_facts(self, problem: Problem, anchors: Anchors, *, has_source: bool = True) -> Facts:
        """Return what is known of a problem beside its rows, by the parameters of this classifier."""
        assumes_same = isinstance(self.target_shares, str)
        if assumes_same and self.target_shares != "source":
            raise ValueError(f"target_shares must be a dict or 'source', got {self.target_shares!r}")
        known = check_shares(None if assumes_same else self.target_shares, problem.classes, problem.targets)
        n, taught = anchors.n_labelled, []
        for k, name in zip(problem.target_positions, problem.targets, strict=True):
            rows = anchors.position[n:][anchors.domain[n:] == k]
            told = problem.taught.get(name, {})
            taught.append({teacher: words.take(rows) for teacher, words in told.items()})
        return Facts(
            classes=problem.classes,
            names=problem.names,
            n_sources=problem.n_sources,
            sizes=problem.sizes,
            shares=[None if shares is None else np.array(shares) for shares in known],
            assumes_same=assumes_same,
            taught=taught,
            has_source=has_source,
            seed=0 if self.random_state is None else check_random_state(self.random_state).randint(2**31),
            is_balanced=self.border == "balanced",
        )

    def _keep_layers(self, problem: Problem, learnt: Learnt, place: Place) -> None:
        """Keep what labels of target rows do not change."""
        chosen, split = learnt.candidate, learnt.split
        self.domains_, self.n_sources_ = problem.names, problem.n_sources
        self.source_shares_ = np.bincount(problem.y, minlength=len(problem.classes)) / len(problem.y)
        self.best_params_ = {"noise": chosen.noise, "n_layers": chosen.n_layers, "C": chosen.C}
        self.selection_results_ = [{**vars(c), "chosen": c is chosen} for c in learnt.candidates]
        n_pivots = None if split is None else len(split.pivots)
        msda = MSDA(chosen.n_layers, chosen.noise, n_pivots=n_pivots, ridge=self.ridge, device=self.device)
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

    def _keep(self, fitted: Fitted, coverages: Sequence[Any] | None, *, keeps_state: bool = True) -> None:
        """Keep model and results; without `coverages`, the doubts of the fit before stay."""
        verdict, facts = fitted.verdict, fitted.memory.facts
        classes = self.classes_.tolist()
        self.model_ = fitted.model
        self.memory_ = fitted.memory if keeps_state and facts.targets else None
        self._last = fitted if self.memory_ is not None else None
        before = getattr(self, "targets_", {})
        self.readings_, self.targets_ = {}, {}
        names = [reading.story.name for reading in verdict.readings]
        sentences = [reading.story.sentence for reading in verdict.readings]
        for i, name in enumerate(facts.targets):
            readings = list_readings(classes, names, sentences, verdict.votes[i], verdict.p[i])
            self.readings_[name] = readings
            doubts = []
            if coverages is not None:
                doubts = list_doubts(coverages[i], fitted.evidence, classes, readings)
            self.targets_[name] = describe_target(classes, verdict.estimates[i], doubts)
            if coverages is None:
                self.targets_[name] |= {key: before[name][key] for key in ("warnings", "codes")}
            for doubt in doubts:
                warn(doubt.text, code=doubt.code)
        self._scores = self._score_targets(fitted)
        if any(verdict.lessons):
            self._keep_teachers(fitted)

    def _keep_teachers(self, fitted: Fitted) -> None:
        """Keep the noise of teachers, and how much they weigh beside the model."""
        self.teacher_noise_: list[Any] = []
        self.teacher_weight_: list[float] = []
        for lessons, group in zip(fitted.verdict.lessons, fitted.evidence.groups, strict=True):
            noises = {name: lesson.noise.share for name, lesson in lessons.items()}
            self.teacher_noise_.append(noises.get(ONE) if set(noises) <= {ONE} else noises)
            weight = 0.0
            if ONE in lessons:
                reading = next(r for r in fitted.verdict.readings if r.story.name == ONE)
                i = len(self.teacher_weight_)
                weight = lessons[ONE].weigh(reading.scores[group] + reading.borders[i]) / reading.temperature
            self.teacher_weight_.append(weight)

    @property
    def target_scores_(self) -> list[np.ndarray | None]:
        """Scores of the rows of every target that `fit` saw, as `decision_function` gives them.

        None where another pass through the layers is needed: after loading, and where not all rows are kept.
        """
        return [None] * len(self.target_names_) if self._scores is None else self._scores

    def _score_targets(self, fitted: Fitted) -> list[np.ndarray | None]:
        """Return the scores of the rows of every target; None where not all of them are anchors."""
        known: list[np.ndarray | None] = []
        verdict, sizes = fitted.verdict, fitted.memory.facts.sizes[self.n_sources_ :]
        given = verdict.votes, verdict.p, self.list_priors()[self.n_sources_ : -1], sizes
        for votes, p, prior, n in zip(*given, strict=True):
            logs = np.log(np.maximum(mix(votes, p), 1e-12)) - prior
            scores = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
            known.append(scores if len(scores) == n else None)
        return known

    def list_rows(self, target: Name | None = None) -> Rows:
        """Return the rows of a target that are kept for `update`."""
        anchors, k = self._check_memory().anchors, self.find_target(target)
        return to_host(anchors.X)[np.flatnonzero(anchors.domain == k)]

    def list_labelled(self, target: Name | None = None) -> tuple[Rows, np.ndarray]:
        """Return the rows of a target whose labels are known, and these."""
        anchors, k = self._check_memory().anchors, self.find_target(target)
        is_known = (anchors.domain == k) & (anchors.codes != UNLABELLED)
        rows = np.flatnonzero(is_known)
        return to_host(anchors.X)[rows], self.classes_[anchors.codes[rows]]

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
        memory = self._check_memory()
        X = to_host(self._check_input(X))
        domain = self._find_positions(target, sample_domain, X.shape[0])
        codes = check_target_labels(y, len(domain), self.classes_, "y")
        anchors = set_labels(memory.anchors, X, domain, codes)
        settings = self.make_settings()
        memory = replace(memory, anchors=anchors, facts=memory.facts.widen(anchors))
        last = self._last
        if last is not None and len(last.memory.anchors.codes) == len(anchors.codes):
            with last.place.set_precision():
                fitted = fit_level(anchors, last.level, memory.C, memory.facts, settings, last.place, last)
        else:
            place = choose_place([anchors.X], self.device)
            fitted = refit(memory, self.representation_.layers_, settings, place)
        self._keep(fitted, None)
        return self

    def ask(
        self,
        X: Rows,
        n: int,
        purpose: Literal["predictions", "estimate"] = "predictions",
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
        return_weights: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
            "predictions": first the rows that decide between readings, until there are five labels, then rows
            whose labels would change predictions most, each unlike those before it. "estimate": rows drawn at
            random, half of them among those whose prediction differs from the source-only reading's.
        target, sample_domain
            As for :meth:`update`.
        return_weights : bool, default=False
            Whether to return also how many rows each one stands for in an estimate, equal ones among them: 0
            with "predictions".
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
        free, counts, n_known = self._list_unlabelled(to_host(X), domain)
        if purpose == "predictions":
            drawn = np.sort(rng.permutation(len(free))[: max(_ASKED_ROWS, 2 * n)])
            free, counts = free[drawn], counts[drawn]
        if not len(free):
            rows, weights = free, np.zeros(0)
            return (rows, weights) if return_weights else rows
        k = int(domain[0])
        votes, p = self.model_.votes[k], self.model_.read(self._score_rows(X[free]), domain[free])
        n = min(n, len(free))
        if purpose == "estimate":
            rows, weights = choose_for_estimate(self._find_changed(votes, p), counts, n, rng)
        else:
            n_questions = min(n, max(0, N_QUESTIONS - n_known)) if np.sum(votes > 0) > 1 else 0
            rows = choose_questions(votes, p, _DEFAULTS.votes.doubt, n_questions, rng)
            mixed = mix(votes, p)
            rows = np.concatenate([rows, choose_for_predictions(X[free], mixed, n - len(rows), rows)])
            weights = np.zeros(len(rows))
        return (free[rows], weights) if return_weights else free[rows]

    def _find_changed(self, votes: np.ndarray, p: np.ndarray) -> np.ndarray | None:
        """Tell which predictions differ from those of the source-only reading; None where there is none."""
        names = self.model_.names
        if "source only" not in names:
            return None
        return p[names.index("source only")].argmax(axis=1) != mix(votes, p).argmax(axis=1)

    def _list_unlabelled(self, X: Rows, domain: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Return the rows without a label, of equal ones the first, how many equal each, and known labels."""
        known = set()
        if self.memory_ is not None:
            anchors = self.memory_.anchors
            rows = anchors.n_labelled + np.flatnonzero(anchors.target_codes != UNLABELLED)
            if len(rows):
                known = set(list_row_keys(to_host(anchors.X)[rows].astype(X.dtype), anchors.domain[rows]))
        groups: dict[Any, list[int]] = {}
        for row, key in enumerate(list_row_keys(X, domain)):
            if key not in known:
                groups.setdefault(key, []).append(row)
        first, counts = [group[0] for group in groups.values()], [len(group) for group in groups.values()]
        return np.array(first, dtype=int), np.array(counts, dtype=int), len(known)

    def _check_memory(self) -> Memory:
        check_is_fitted(self)
        if self.memory_ is None:
            raise ValueError(
                "this model has no memory of its rows, so labels cannot be learnt: it was fitted without a "
                "target, or saved without them; fit it again"
            )
        return self.memory_

    def _find_positions(self, target: Any, sample_domain: Any, n: int) -> np.ndarray:
        """Return the position of the target domain of each of n rows."""
        domain = self._find_domains(target, sample_domain, n)
        if (domain < self.n_sources_).any():
            raise ValueError(f"sample_domain names a source, but the targets are {self.target_names_}")
        return domain

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().__getstate__().items() if name not in ("_last", "_scores")
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
