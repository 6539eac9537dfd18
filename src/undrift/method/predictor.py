"""Predict by the votes of the readings: probabilities, labels, and one linear readout for explanations."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from ..core import Rows
from ..errors import count, warn
from ..inputs import Column, check_rows, choose_place, gather_rows, load_cluster, on_cluster, to_host
from ..msda import MSDA
from .model import Model
from .problem import UNLABELLED, Label, Name, check_domain_numbers, check_target_labels
from .settings import Settings
from .targets import ExpectedError, ReadingFacts, TargetFacts, describe_target, estimate_batch, list_readings
from .teacher import Given, read_words

_HARDER = 1.5  # expected error of a batch over the one before, for a warning


class Predictor(ClassifierMixin, BaseEstimator):
    """A fitted classifier: a `Model`, and what is known of the targets."""

    __metadata_request__predict = {"sample_domain": True}
    __metadata_request__score = {"sample_domain": True}

    _dtype = "float32"  # of the representation
    device: str = "cpu"
    classes_: np.ndarray
    domains_: list[Name]  # sources first
    source_shares_: np.ndarray  # (n_classes,) of the labelled rows
    targets_: dict[Name, TargetFacts]
    labelled_counts_: np.ndarray  # (d,)
    settings_: Settings  # of the fit
    model_: Model
    representation_: MSDA  # not of a distilled one
    _scores: list[np.ndarray | None] | None = None  # of this session

    @property
    def n_sources_(self) -> int:
        """Number of the source domains."""
        return len(self.domains_) - len(self.targets_)

    @property
    def target_names_(self) -> list[Name]:
        """Names of the target domains."""
        return self.domains_[self.n_sources_ :]

    @property
    def target_shares_(self) -> list[dict[Label, float]]:
        """Class shares of every target."""
        return [self.targets_[name]["shares"] for name in self.target_names_]

    @property
    def target_shares_interval_(self) -> list[dict[Label, tuple[float, float]]]:
        """90% intervals of the class shares of every target."""
        return [self.targets_[name]["shares_interval"] for name in self.target_names_]

    @property
    def expected_error_(self) -> list[ExpectedError]:
        """Expected error of every target."""
        return [self.targets_[name]["expected_error"] for name in self.target_names_]

    @property
    def teacher_noise_(self) -> list[float | dict[str, float] | None]:
        """Share of a teacher's labels that look exchanged at random, for every target; by name of several."""
        return [known.get("teacher_noise") for known in self.targets_.values()]

    def find_target(self, target: Name | None = None) -> int:
        """Return the position of a domain; the name may be left out if there is one target."""
        names = self.target_names_
        if target is None and len(names) == 1:
            return self.n_sources_
        if target not in self.domains_:
            seen = "name one of them: target=" if target is None else f"target={target!r} is not among them: "
            raise ValueError(
                f"the model has {count(len(names), 'target')}; {seen}{', '.join(map(repr, names))}"
            )
        return self.domains_.index(target)

    def fill_unknown(self, p: np.ndarray, X: Rows, target: Name | None = None) -> np.ndarray:
        """Give sparse rows without any known feature the class shares of their target as probabilities."""
        shares = self.source_shares_
        if self.target_names_ and self.find_target(target) >= self.n_sources_:
            shares = np.array(list(self.targets_[self.domains_[self.find_target(target)]]["shares"].values()))
        p[np.diff(X.indptr) == 0] = shares
        return p

    def _find_domains(self, target: Name | None, sample_domain: ArrayLike | None, n: int) -> np.ndarray:
        """Return the position of each row's domain; without targets -1, the mean of the sources."""
        if sample_domain is None:
            is_plain = target is None and not self.target_names_
            return np.full(n, -1 if is_plain else self.find_target(target))
        if target is not None:
            raise ValueError("pass either target or sample_domain, not both")
        numbers = check_domain_numbers(sample_domain, n).tolist()
        unknown = sorted(set(numbers) - set(self.domains_))
        if unknown:
            raise ValueError(
                f"sample_domain holds {unknown[:5]}, but fit saw only the domains {self.domains_}; "
                "leave it out for rows of the target"
            )
        return np.array([self.domains_.index(number) for number in numbers], dtype=int)

    def decision_function(
        self,
        X: Rows,
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
        teacher: Column | None = None,
        teacher_confidence: Column | None = None,
    ) -> np.ndarray:
        """Return scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        They are the log odds of `predict_proba`; with ``border="balanced"`` less those of the class shares.

        Parameters
        ----------
        X : {array, tensor, sparse matrix} of shape (n, d)
            Rows of the target.
        target : str, optional
            Name of the target that the rows are of; needed where `fit` had several. "source" is that of `X`.
        sample_domain : int array of shape (n,), optional
            Domain of each row, if `fit` had it too.
        teacher, teacher_confidence : array-like, optional
            What the teacher says of these rows, as for `fit`, if it had one: scores are then those of both.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
        """
        given = target, sample_domain, teacher, teacher_confidence
        if on_cluster(X):
            return self._answer_lazily("decision_function", X, *given)
        p, domain = self._find_probabilities(X, *given)
        return self.model_.decide(p, domain).astype(self._dtype)

    def predict(
        self,
        X: Rows,
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
        teacher: Column | None = None,
        teacher_confidence: Column | None = None,
    ) -> np.ndarray:
        """Predict labels; the parameters are those of `decision_function`.

        Returns
        -------
        ndarray of shape (n,)
        """
        given = target, sample_domain, teacher, teacher_confidence
        if on_cluster(X):
            return self._answer_lazily("predict", X, *given)
        p, domain = self._find_probabilities(X, *given)
        return self.classes_[self.model_.weigh_classes(p, domain).argmax(axis=1)]

    def predict_proba(
        self,
        X: Rows,
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
        teacher: Column | None = None,
        teacher_confidence: Column | None = None,
    ) -> np.ndarray:
        """Return class probabilities by all readings; the parameters are those of `decision_function`.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        given = target, sample_domain, teacher, teacher_confidence
        if on_cluster(X):
            return self._answer_lazily("predict_proba", X, *given)
        return self._find_probabilities(X, *given)[0].astype(self._dtype)

    def scores_to_proba(
        self, scores: ArrayLike, *, target: Name | None = None, sample_domain: ArrayLike | None = None
    ) -> np.ndarray:
        """Return `predict_proba` of rows from their `decision_function`, at no cost."""
        check_is_fitted(self)
        scores = np.asarray(scores, dtype=float)
        logs = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
        logs = logs + self.model_.prior[self._find_domains(target, sample_domain, len(logs))]
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True)).astype(self._dtype)

    def score(
        self,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        target: Name | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy of `predict` for labels `y`, each counted `sample_weight` times.

        Other parameters are those of `decision_function`.

        Returns
        -------
        float
        """
        predicted = self.predict(X, target=target, sample_domain=sample_domain)
        return float(accuracy_score(to_host(y), predicted, sample_weight=to_host(sample_weight)))

    @property
    def target_scores_(self) -> list[np.ndarray | None]:
        """Scores of the rows of every target that `fit` saw, as `decision_function` gives them.

        None where another pass through the layers is needed: after loading, and where not all rows are kept.
        """
        return [None] * len(self.target_names_) if self._scores is None else self._scores

    def _find_probabilities(
        self,
        X: Rows,
        target: Name | None,
        sample_domain: ArrayLike | None,
        teacher: Column | None,
        teacher_confidence: Column | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the jury's probabilities of rows, and the positions of their domains."""
        check_is_fitted(self)
        X = self._check_input(X)
        domain = self._find_domains(target, sample_domain, X.shape[0])
        p = self.model_.predict(self._score_rows(X), domain)
        if teacher is not None:
            if not self.model_.teacher_weight.any():
                raise ValueError("the model has not learnt from one teacher: leave teacher out")
            words = read_words(Given(teacher, teacher_confidence), len(p), self.classes_)
            weight = self.model_.teacher_weight[domain, None]
            scores = words.scores if len(self.classes_) > 2 else np.pad(words.scores, ((0, 0), (1, 0)))
            p = p * np.exp(weight * (scores - scores.max(axis=1, keepdims=True)))
            p /= p.sum(axis=1, keepdims=True)
        return p, domain

    def find_readings(self, X: Rows, *, target: Name | None = None) -> np.ndarray:
        """Return the class probabilities of every reading: (n_readings, n, n_classes).

        Readings are in the order of `model_`.
        """
        check_is_fitted(self)
        X = self._check_input(X)
        return self.model_.read(self._score_rows(X), self._find_domains(target, None, X.shape[0]))

    def _check_input(self, X: Rows) -> Rows:
        """Return rows as they are predicted."""
        return gather_rows(check_rows(self, X, reset=False, dtype=self._dtype))

    def _score_rows(self, X: Rows) -> np.ndarray:
        """Return the readings' scores of checked rows, without an intercept: (n_readings, n, n_outputs)."""
        layers = self.representation_.layers_ if hasattr(self, "representation_") else []
        return self.model_.score(X, layers, choose_place([X], self.device))

    def _answer_lazily(
        self,
        method: str,
        X: Rows,
        target: Name | None,
        sample_domain: ArrayLike | None,
        teacher: Column | None,
        teacher_confidence: Column | None,
    ) -> Rows:
        """Return a lazy Dask array: a method of this classifier on rows of Dask, block by block."""
        check_is_fitted(self)
        if sample_domain is not None and np.ndim(sample_domain) > 0:
            raise ValueError("rows of Dask are predicted block by block: give one sample_domain, or a target")
        said = {"teacher": teacher, "teacher_confidence": teacher_confidence}
        rows = {name: to_host(values) for name, values in said.items() if values is not None}
        n_classes, dtype = len(self.classes_), np.dtype(self._dtype)
        shape = {"predict": (), "predict_proba": (n_classes,)}.get(method, (n_classes,) * (n_classes > 2))
        dtype = self.classes_.dtype if method == "predict" else dtype
        place = {"target": target, "sample_domain": sample_domain}
        return load_cluster().blockwise(self, method, X, shape=shape, dtype=dtype, rows=rows, **place)

    @property
    def coef_(self) -> list[np.ndarray]:
        """Weights of the input and of every layer, (d_t, n_outputs): log odds, by all readings."""
        votes = self.model_.votes[-1 if not self.target_names_ else self.n_sources_]
        k = self.model_.n_outputs
        factors = votes / self.model_.temperature
        mixed = []
        for w in self.model_.coef:
            parts = w.reshape(len(w), -1, k)
            mixed.append(np.einsum("drk,r->dk", parts, factors[: parts.shape[1]]))
        return mixed

    @property
    def intercept_(self) -> np.ndarray:
        """One row for every domain, (n_domains, n_outputs), in units of log odds, by all readings."""
        factors = (self.model_.votes / self.model_.temperature)[:-1]
        return np.einsum("rdk,dr->dk", self.model_.intercept[:, :-1], factors)

    def weigh(self, X: Rows, y: ArrayLike, *, target: Name | None = None) -> list[ReadingFacts]:
        """Return the readings as `readings_` has them, with their votes after labels of some target rows.

        Nothing is learnt: this is instant, where :meth:`update` reads the target again.
        """
        X, k = self._check_input(X), self.find_target(target)
        codes = check_target_labels(y, X.shape[0], self.classes_, "y")
        rows = np.flatnonzero(codes != UNLABELLED)
        p = self.find_readings(X, target=target)
        votes = self.model_.weigh(p[:, rows], codes[rows], k, self.settings_.votes.doubt)
        return list_readings(self.classes_.tolist(), self.model_.names, self.model_.sentences, votes, p)

    def align(self, X: Rows, *, target: Name | None = None) -> Self:
        """Return a copy for a later batch of a target: its class shares, threshold and expected error.

        The classes look as they did, and only their shares differ.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n, d)
            Rows of the batch, or some that were drawn at random: 200 or more.
        target : str, optional
            Its name; needed where `fit` had several.

        Returns
        -------
        MSDAClassifier
        """
        X, k = self._check_input(X), self.find_target(target)
        name, votes, model = self.domains_[k], self.settings_.votes, self.model_
        p = model.mix(model.read(self._score_rows(X), np.full(X.shape[0], k)), k)
        shift, found = estimate_batch(p, self.targets_[name], votes, is_balanced=model.is_balanced)
        results = describe_target(self.classes_.tolist(), found)
        aligned = copy(self)
        aligned.model_, aligned._scores = model.align(k, shift, found.shares), None
        aligned.targets_ = {**self.targets_, name: self.targets_[name] | results}
        return aligned

    def update_target(self, X: Rows, *, target: Name | None = None) -> Self:
        """Set class shares, threshold and expected error of a target from a later batch, as :meth:`align`.

        Warns where that is not enough: where the error to expect is far above the one before.

        Parameters
        ----------
        X, target
            As for :meth:`align`.

        Returns
        -------
        MSDAClassifier
            Itself.
        """
        aligned, name = self.align(X, target=target), self.domains_[self.find_target(target)]
        before, after = (each.targets_[name]["expected_error"]["error"] for each in (self, aligned))
        if after > _HARDER * before:
            warn(
                f"the new batch is harder than the target of the fit: an error of {after:.1%} is expected, "
                f"{before:.1%} before; fit again with it"
            )
        self.__dict__.update(vars(aligned))
        return self
