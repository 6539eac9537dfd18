"""MSDAClassifier: representation and linear classifier in one, on running Gram matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._core.array import Rows, arithmetic
from ._core.blocks import row_slices
from ._core.denoise import ACTIVATIONS, SingularSystem
from ._core.gram import decision
from .estimators import MSDA
from .linear import SOLVERS, probabilities, winners
from .parameters import check_choice, check_count, check_memory, check_pivots, check_positive
from .placement import Place, check_place
from .progress import CallbackSupportMixin, tracked, with_callbacks
from .readout import calibrated_temperature, read_out
from .rows import binarized, checked_matrix, column_sums, on_cluster
from .sampling import check_limit
from .search import Grid, Search, anchors, checked_grid, n_target_anchors, some_of_every_class
from .selection import RULES, Problem, folds, notes_on_choice, warn_of_edges
from .self_training import SelfTraining
from .training import TrainingRows, checked_domain, training_rows

GRAM_LIMIT = 20_000  # labelled rows above which the final classifier is solved in the primal


class MSDAClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
        solved in the primal, without self-training, and the hinge is squared there.
    selection : str, default="source-cv"
        How to choose where there is a choice; no rule sees a target label. "source-cv" is the
        paper's: cross-validation on the labelled source. "reverse" labels the target, trains back
        and scores on held-out source rows. "margin" is the mean confidence on target rows, at one C.
        "importance-cv" weighs source rows by how much they look like the target. "agreement" is that of
        two parts of the source on target rows, "separation" how evenly confident those are. At most
        2,000 target rows are looked at.
    center : bool, default=True
        Whether to subtract from every layer's output the mean over the row's domain. Assumes that
        the classes are about equally frequent in the domains.
    ridge, activation, n_pivots, binarize, device, precision, memory_budget, verbose
        As for :class:`MSDA`.
    max_upper_rows : int, optional
        An approximation, for speed: layers from the second on are learnt from at most this many rows,
        drawn at random from the domains in proportion to their sizes (1,000 of each at least, where there
        is room); the first one sees all of them. What is subtracted from a domain's hidden rows is then
        the mean over its rows in the sample.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    probability : bool, default=False
        Whether to calibrate scores for `predict_proba`, on out-of-fold scores of the source.
    balance_layers : bool, default=False
        Whether the input and every layer count alike in the classifier, each scaled to a mean square
        norm of 1 over all rows, instead of as they come out.
    self_training : bool or SelfTraining, default=False
        Whether the most confident target rows, labelled as predicted, join the training set in a few
        rounds. Assumes that the classes come apart on the target; stops, or does not start, when a
        classifier trained on the target's predictions alone has lost half of what is known of the
        source. No target label is seen.
    n_folds : int, default=5
        Folds of cross-validation.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the representation.
    random_state : int, RandomState or None, default=None
        Seed of folds, random parts and random rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    representation_ : MSDA
        The fitted representation.
    coef_ : list of ndarray
        Weights of the input and of every layer, each of shape (d_t, n_outputs).
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
    self_training_rounds_ : list of dict
        For the start and each round of self-training: `n_labelled` target rows, `round_trip` accuracy,
        share of predictions `changed`, and whether the round was `kept`.
    temperature_ : float
        With `probability`: what scores are divided by to become log odds.
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

    __metadata_request__fit = {"sample_domain": True}
    __metadata_request__predict = {"sample_domain": True}
    __metadata_request__score = {"sample_domain": True}

    def __init__(
        self,
        n_layers=5,
        noise=0.7,
        C=0.3,
        *,
        classifier="least-squares",
        selection="source-cv",
        center=True,
        ridge=1e-5,
        activation="tanh",
        n_pivots=None,
        binarize=False,
        max_upper_rows=None,
        class_weight=None,
        probability=False,
        balance_layers=False,
        self_training=False,
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
        self.ridge = ridge
        self.activation = activation
        self.n_pivots = n_pivots
        self.binarize = binarize
        self.max_upper_rows = max_upper_rows
        self.class_weight = class_weight
        self.probability = probability
        self.balance_layers = balance_layers
        self.self_training = self_training
        self.n_folds = n_folds
        self.dtype = dtype
        self.device = device
        self.precision = precision
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y, X_target=None, *, sample_domain=None):
        """Learn from labelled source rows and unlabelled rows of any domain.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Source rows; or, with `sample_domain`, the rows of all domains. Also rows of Dask, as for
            :meth:`MSDA.fit`: the labelled ones come here, the others stay on the workers.
        y : array-like of shape (n,)
            Labels; None or NaN for rows that have none.
        X_target : matrix, or list of matrices, optional
            Unlabelled rows of the target domain, or of several.
        sample_domain : int array of shape (n,), optional
            Domain of each row: sources >= 0, targets < 0. Labels of target rows are ignored.
        """
        grid, options = self._check_parameters()
        rows = training_rows(self, X, y, X_target, sample_domain, dtype=self.dtype)
        self.classes_, codes = np.unique(rows.y, return_inverse=True)
        there = any(on_cluster(own) for own in rows.domains.values())  # then workers have the device
        place = check_place("cpu" if there else self.device, self.precision, self.memory_budget)
        search = self._search(rows, codes, grid, options, place)
        n_steps = len(grid.noises) * max(grid.depths)
        try:
            with place.precisely():
                for _ in tracked(self, search.steps(), n_steps, "layer", dict):
                    pass
                self._keep_choice(search)
                self._keep_classifier(rows, codes, search)
        except SingularSystem as error:
            names = getattr(self, "feature_names_in_", None)
            raise (error if names is None else error.renamed(names)) from None
        return self

    def _check_parameters(self) -> tuple[Grid, dict[str, Any]]:
        check_choice(self.classifier, "classifier", tuple(SOLVERS))
        check_choice(self.selection, "selection", tuple(RULES))
        check_choice(self.dtype, "dtype", ("float32", "float64"))
        if check_count(self.n_folds, "n_folds") < 2:
            raise ValueError(f"n_folds={self.n_folds!r} must be at least 2: a fold is scored by the others")
        if not isinstance(self.self_training, bool | SelfTraining):
            raise TypeError(
                f"self_training must be True, False or a SelfTraining, got {self.self_training!r}"
            )
        grid = checked_grid(self.noise, self.n_layers, self.C)
        options = {
            "ridge": check_positive(self.ridge, "ridge", zero=True, hint="the paper uses 1e-5"),
            "activation": check_choice(self.activation, "activation", ACTIVATIONS),
        }
        return grid, options

    def _search(
        self, rows: TrainingRows, codes: np.ndarray, grid: Grid, options: dict[str, Any], place: Place
    ) -> Search:
        random_state = check_random_state(self.random_state)
        keep = np.arange(len(codes))
        if len(keep) > GRAM_LIMIT:  # candidates are compared on as many rows as a Gram matrix can hold
            keep = some_of_every_class(codes, GRAM_LIMIT, random_state)
        needs_folds = grid.n_candidates > 1 or self.probability
        problem = Problem(
            codes[keep],
            len(self.classes_),
            compute_sample_weight(self.class_weight, rows.y)[keep],
            folds(codes[keep], self.n_folds, random_state) if needs_folds else [],
            SOLVERS[self.classifier],
        )
        return Search(
            rows,
            anchors(rows, keep, n_target_anchors(self, rows, grid, len(keep)), random_state),
            problem,
            grid,
            RULES[self.selection],
            self.center,
            self.binarize,
            options,
            None if self.n_pivots is None else check_pivots(self.n_pivots, self.n_features_in_),
            random_state,
            place,
            check_limit(self.max_upper_rows, list(rows.domains.values())),
            self.balance_layers,
        )

    def _keep_choice(self, search: Search) -> None:
        chosen = search.found.candidate
        self.best_params_ = {"noise": chosen.noise, "n_layers": chosen.n_layers, "C": chosen.C}
        self.selection_results_ = [
            {**vars(candidate), "chosen": candidate is chosen} for candidate in search.candidates
        ]
        self.selection_notes_ = notes_on_choice(chosen, search.candidates)
        warn_of_edges(self.selection_notes_)
        self.representation_ = self._representation(search)

    def _representation(self, search: Search) -> MSDA:
        """Return the chosen stack as a fitted MSDA."""
        names = ("ridge", "activation", "n_pivots", "binarize", "max_upper_rows")
        options = {name: getattr(self, name) for name in names}
        chosen = search.found.candidate
        msda = MSDA(chosen.n_layers, chosen.noise, **options, device=self.device, precision=self.precision)
        msda.layers_ = [search.place.fetched(layer) for layer in search.found.layers]
        msda.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            msda.feature_names_in_ = self.feature_names_in_
        if search.split is not None:
            msda.pivots_, msda.parts_ = search.split.pivots, search.split.parts
        return msda

    def _keep_classifier(self, rows: TrainingRows, codes: np.ndarray, search: Search) -> None:
        """Solve for the linear classifier and keep it as weights of every layer."""
        weight = compute_sample_weight(self.class_weight, rows.y)
        options = SelfTraining() if self.self_training is True else self.self_training or None
        readout = read_out(search, codes, weight, self.classifier, options, check_memory(self.memory_budget))
        self.coef_ = [own.astype(self.dtype) for own in readout.weights]
        self.centred_intercept_ = readout.intercept
        self.intercept_ = readout.intercept - readout.offsets
        self.self_training_rounds_ = [vars(own) for own in readout.rounds]
        self.domains_ = list(rows.domains)
        self.domain_sizes_ = [X.shape[0] for X in rows.domains.values()]
        reference = [self._first_rows(rows.domains[number]) for number in rows.targets or self.domains_]
        self.input_mean_ = np.mean([column_sums(X) / X.shape[0] for X in reference], axis=0)
        self.labelled_counts_ = arithmetic(rows.labelled).nonzero_counts(rows.labelled)
        if self.probability:
            self.temperature_ = calibrated_temperature(search)

    def _first_rows(self, X: Rows) -> Rows:
        return binarized(X) if self.binarize else X

    def _scores(self, X: Any, sample_domain: Any, recenter: bool) -> np.ndarray:
        """Scores of shape (n, n_outputs), in row blocks."""
        check_is_fitted(self)
        X = checked_matrix(self, X, reset=False).astype(self.dtype, copy=False)
        place = check_place(self.device, self.precision)
        layers, coef = place.here(self.representation_.layers_), [place.rows(w) for w in self.coef_]
        scores = np.empty((X.shape[0], self.intercept_.shape[1]))
        with place.precisely():
            for rows in row_slices(X.shape[0], max(layer.coef.shape[1] for layer in layers)):
                first = place.rows(self._first_rows(X[rows]))
                scores[rows] = decision(place.rows(X[rows]), first, layers, coef)
        if recenter:
            if not self.center:
                raise ValueError("recenter=True needs a classifier fitted with center=True")
            return scores - scores.mean(axis=0) + self.centred_intercept_
        return scores + self._intercepts(sample_domain, X.shape[0])

    def _intercepts(self, sample_domain: Any, n: int) -> np.ndarray:
        """Intercept of each row's domain; the target's where the user does not say."""
        if sample_domain is None:
            targets = [i for i, number in enumerate(self.domains_) if number < 0]
            pooled = targets or list(range(len(self.domains_)))
            sizes = np.array(self.domain_sizes_)[pooled]
            return sizes @ self.intercept_[pooled] / sizes.sum()
        domain = checked_domain(sample_domain, n)
        unknown = sorted(set(domain.tolist()) - set(self.domains_))
        if unknown:
            raise ValueError(
                f"sample_domain holds {unknown[:5]}, but fit saw only the domains {self.domains_}; "
                "leave it out to use the target's mean, or pass recenter=True"
            )
        position = {number: i for i, number in enumerate(self.domains_)}
        return self.intercept_[[position[number] for number in domain.tolist()]]

    def decision_function(self, X, *, sample_domain=None, recenter=False):
        """Scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Rows, of the target unless `sample_domain` says otherwise.
        sample_domain : int array of shape (n,), optional
            Domain of each row, as in `fit`; its stored mean is used for centring.
        recenter : bool, default=False
            Centre on the rows given instead. A row's score then depends on its neighbours.
        """
        if on_cluster(X):
            return self._lazily("decision_function", X, sample_domain, recenter)
        scores = self._scores(X, sample_domain, recenter)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _lazily(self, method: str, X: Any, sample_domain: Any, recenter: bool) -> Any:
        """Rows of Dask through a method of this classifier, block by block, when they are asked for."""
        from .distributed import blockwise

        check_is_fitted(self)
        if recenter or np.ndim(sample_domain) > 0:
            raise ValueError(
                "rows of Dask are predicted block by block: leave recenter out, and give one sample_domain"
            )
        n_classes = len(self.classes_)
        width = {"predict": 0, "predict_proba": n_classes}.get(method, n_classes if n_classes > 2 else 0)
        dtype = self.classes_.dtype if method == "predict" else np.dtype(np.float64)
        shape = (width,) if width else ()
        return blockwise(self, method, X, shape=shape, dtype=dtype, sample_domain=sample_domain)

    def predict(self, X, *, sample_domain=None, recenter=False):
        """Predict labels; the parameters are those of `decision_function`."""
        check_is_fitted(self)
        if on_cluster(X):
            return self._lazily("predict", X, sample_domain, recenter)
        return self.classes_[winners(self._scores(X, sample_domain, recenter))]

    def score(self, X, y, sample_weight=None, *, sample_domain=None):
        """Accuracy of `predict` on rows of the target, or of the domains in `sample_domain`."""
        return accuracy_score(y, self.predict(X, sample_domain=sample_domain), sample_weight=sample_weight)

    @available_if(lambda self: self.probability)
    def predict_proba(self, X, *, sample_domain=None, recenter=False):
        """Calibrated probabilities of the classes; needs ``probability=True``."""
        check_is_fitted(self)
        if on_cluster(X):
            return self._lazily("predict_proba", X, sample_domain, recenter)
        return probabilities(self._scores(X, sample_domain, recenter), self.temperature_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
