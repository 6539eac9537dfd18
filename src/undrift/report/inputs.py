"""What a report of an adaptation is made from: rows of every domain, and two classifiers' word on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._core import stack_rows
from .._inputs import spell_label
from ..baselines import fitted_svm
from ..classifier import MSDAClassifier, predict_codes
from ..explain import effective_weights

MOST_BASELINE_ROWS = 3_000  # labelled rows that the source-only classifier is fitted on, at most


@dataclass(frozen=True, eq=False)
class DomainRows:
    """Rows of one domain, with their documents and labels where there are any.

    Labels of a target (`number` < 0) are for scoring alone. `prediction` and `probabilities` are the adapted
    classifier's, where they are known already; `n_rows` is what the rows are a sample of.
    """

    name: str
    number: int
    X: Any
    documents: Sequence[str] | None = None
    labels: Sequence[Any] | None = None
    prediction: Sequence[Any] | None = None
    probabilities: Any = None  # of shape (n, n_classes)
    weights: Sequence[float] | None = None  # of labelled rows in a score; 0 for those that are not scored
    n_rows: int | None = None
    # of rows whose labels were learnt: the baseline's mistakes, those without the row's label, and weights
    cross_fitted: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    @cached_property
    def known(self) -> np.ndarray:
        """Which rows have a label."""
        if self.labels is None:
            return np.zeros(len(self), dtype=bool)
        return np.array([label is not None and label == label for label in self.labels], dtype=bool)

    def known_labels(self) -> np.ndarray:
        """Labels of the rows that have one, spelt out: files may write 1, 1.0 and "1" for the same."""
        labels = [] if self.labels is None else self.labels
        return np.array([spell_label(labels[i]) for i in np.flatnonzero(self.known).tolist()], dtype=str)


@dataclass(frozen=True, eq=False)
class Evidence:
    """A fitted classifier and the rows it was fitted on.

    `about` holds what the rows do not tell: seconds, warnings, notes, command, files.
    """

    classifier: MSDAClassifier
    terms: Sequence[str]
    domains: Sequence[DomainRows]
    source_only: Any = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> list[DomainRows]:
        """Domains with labels to learn from."""
        return [domain for domain in self.domains if domain.number >= 0]

    @property
    def targets(self) -> list[DomainRows]:
        """Domains to predict."""
        return [domain for domain in self.domains if domain.number < 0]

    @cached_property
    def classes(self) -> list[str]:
        """The labels, spelt out, in the order of the scores."""
        return [spell_label(label) for label in self.classifier.classes_.tolist()]

    @property
    def fell_back(self) -> bool:
        """Whether the classifier did not adapt, so that its predictions are those of the source alone."""
        return bool((self.classifier.caution_ or {}).get("fell_back"))

    @cached_property
    def baseline(self) -> Any:
        """The baseline: a linear SVM trained on the labelled source rows."""
        if self.source_only is not None:
            return self.source_only
        X, y = self.labelled()
        if len(y) > MOST_BASELINE_ROWS:
            keep = np.sort(np.random.default_rng(0).choice(len(y), MOST_BASELINE_ROWS, replace=False))
            X, y = X[keep], y[keep]
        return fitted_svm(X, y)

    def labelled(self) -> tuple[Any, np.ndarray]:
        """Labelled source rows, and their labels."""
        X = stack_rows([domain.X[np.flatnonzero(domain.known)] for domain in self.sources])
        return X, np.concatenate([domain.known_labels() for domain in self.sources])

    @cached_property
    def truth(self) -> dict[int, np.ndarray]:
        """True classes of each target's rows: -1 where a row is not scored, `n_classes` for other labels."""
        codes = {target.number: np.full(len(target), -1) for target in self.targets}
        for target in self.targets:
            codes[target.number][target.known] = self._find_codes(target.known_labels().tolist())
            codes[target.number][self.weight_of(target) == 0] = -1
        return codes

    def weight_of(self, target: DomainRows) -> np.ndarray:
        """Return how many rows each row of a target stands for in a score."""
        return np.ones(len(target)) if target.weights is None else np.asarray(target.weights, dtype=float)

    @cached_property
    def adapted_codes(self) -> dict[int, np.ndarray]:
        """Adapted predictions by target, as positions among the classes."""
        return {number: codes for number, (codes, _) in self._predicted.items()}

    @cached_property
    def probabilities(self) -> dict[int, np.ndarray]:
        """Probability of every class, by target."""
        return {number: P for number, (_, P) in self._predicted.items()}

    def certainty(self, number: int) -> np.ndarray:
        """How sure the prediction of each row of a target is: the probability of its label."""
        codes = self.adapted_codes[number]
        return np.take_along_axis(self.probabilities[number], codes[:, None], axis=1)[:, 0]

    @cached_property
    def _predicted(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        return {target.number: self._predict(target) for target in self.targets}

    def _predict(self, target: DomainRows) -> tuple[np.ndarray, np.ndarray]:
        if target.prediction is not None and target.probabilities is not None:
            return self._find_codes(target.prediction), target.probabilities
        number = self.domain_of(target)
        scores = self.classifier.decision_function(target.X, sample_domain=number)
        codes = predict_codes(scores.reshape(len(target), -1))
        return codes, self.classifier.scores_to_proba(scores, number)

    def _find_codes(self, labels: Sequence[Any]) -> np.ndarray:
        position = {label: i for i, label in enumerate(self.classes)}
        return np.array([position.get(spell_label(label), len(position)) for label in labels], dtype=int)

    def domain_of(self, target: DomainRows, n: int | None = None) -> np.ndarray | None:
        """Return what to pass as `sample_domain` for `n` rows of a target, all of them by default."""
        is_known = target.number in self.classifier.domains_
        return np.full(len(target) if n is None else n, target.number) if is_known else None

    @cached_property
    def source_only_codes(self) -> dict[int, np.ndarray]:
        """The same of the source-only classifier."""
        return {
            target.number: self._find_codes(self.baseline.predict(target.X).tolist())
            for target in self.targets
        }

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every term for every class, through all layers; shape (d, n_classes)."""
        return _of_every_class(effective_weights(self.classifier))

    @cached_property
    def source_only_weights(self) -> np.ndarray:
        """The same of the source-only classifier."""
        return _of_every_class(getattr(self.baseline, "best_estimator_", self.baseline).coef_.T)


def _of_every_class(weights: np.ndarray) -> np.ndarray:
    return np.hstack([-weights, weights]) if weights.shape[1] == 1 else weights
