"""The input of a report: a fitted classifier, the rows of every domain, and facts about the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..core import stack_rows
from ..explain import effective_weights
from ..inputs import spell_label
from ..method import MSDAClassifier, predict_codes
from ..scoring import describe_shares, fitted_svm

MOST_BASELINE_ROWS = 3_000  # labelled rows that the baseline is fitted on


@dataclass(frozen=True, eq=False)
class DomainRows:
    """Rows of one domain, with their documents and labels where there are any.

    Labels of a target only score. `prediction` and `probabilities` are given where they are known already.
    """

    name: str
    X: Any
    documents: Sequence[str] | None = None
    labels: Sequence[Any] | None = None
    prediction: Sequence[Any] | None = None
    probabilities: Any = None  # (n, n_classes)
    weights: Sequence[float] | None = None  # of labelled rows in a score; 0 for a row that is not scored
    n_rows: int | None = None  # of the domain, where `X` is a sample of it
    read: tuple[int, int] | None = None  # rows and labels of a file in another language, which labelled `X`
    unseen_share: float | None = None  # of a target's words, that the source lacks
    # where labels were learnt: mistakes of the baseline, of a classifier without the row's label, and weights
    cross_fitted: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    @cached_property
    def known(self) -> np.ndarray:
        """Mask of the rows that have a label."""
        labels = [None] * len(self) if self.labels is None else self.labels
        return np.array([label is not None and label == label for label in labels], dtype=bool)

    def known_labels(self) -> np.ndarray:
        """Return the labels of the rows that have one, in one spelling: 1, 1.0 and "1" are the same."""
        labels = [] if self.labels is None else self.labels
        return np.array([spell_label(labels[i]) for i in np.flatnonzero(self.known).tolist()], dtype=str)


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run that its rows do not tell."""

    command: str | None = None
    seconds: float | None = None
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    files: Sequence[dict[str, Any]] = ()  # `file`, `bytes`, `sha256`
    text_columns: Sequence[str] = ("text",)
    use_labels: str = "score"  # of a target: "score", "train" or "both"
    n_learnt: int = 0  # labels of the target that were learnt
    teachers: Sequence[str] = ()  # a sentence for the teacher of each target
    taught_by: str = "the source"  # what the baseline is trained on


@dataclass(frozen=True, eq=False)
class Target:
    """A target with its predictions; classes are positions among the classes of the classifier."""

    rows: DomainRows
    domain: Any  # its name as `predict` takes it; None where the fit had no target
    codes: np.ndarray  # (n,) predictions
    baseline: np.ndarray  # (n,) predictions of the baseline
    P: np.ndarray  # (n, n_classes) probabilities
    truth: np.ndarray  # (n,) -1 where a row is not scored, n_classes where the source lacks the label
    weight: np.ndarray  # (n,) in a score

    @property
    def is_scored(self) -> np.ndarray:
        """Mask of the rows whose true class is known."""
        return self.truth >= 0

    @property
    def is_changed(self) -> np.ndarray:
        """Mask of the rows whose prediction differs from the baseline's."""
        return self.codes != self.baseline

    @cached_property
    def certainty(self) -> np.ndarray:
        """Probability of the predicted class of each row."""
        return np.take_along_axis(self.P, self.codes[:, None], axis=1)[:, 0]


@dataclass(frozen=True, eq=False)
class ReportData:
    """A fitted classifier, the names of its columns, and the rows of every domain."""

    classifier: MSDAClassifier
    terms: Sequence[str]
    sources: Sequence[DomainRows]
    target_rows: Sequence[DomainRows]
    facts: RunFacts = field(default_factory=RunFacts)
    given_baseline: Any = None
    vectorizer: Any = None  # a TermVectorizer, for the box that scores a sentence

    @cached_property
    def classes(self) -> list[str]:
        """The labels as text, in the order of the scores."""
        return [spell_label(label) for label in self.classifier.classes_.tolist()]

    @property
    def doubts(self) -> dict[str, str]:
        """Doubts that the fit had about any target, and the code of each."""
        targets = self.classifier.targets_.values()
        return {text: code for t in targets for text, code in zip(t["warnings"], t["codes"], strict=True)}

    @cached_property
    def baseline(self) -> Any:
        """The baseline: a linear SVM trained on the labelled source rows."""
        if self.given_baseline is not None:
            return self.given_baseline
        X = stack_rows([domain.X[np.flatnonzero(domain.known)] for domain in self.sources])
        y = np.concatenate([domain.known_labels() for domain in self.sources])
        keep = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_BASELINE_ROWS])
        return fitted_svm(X[keep], y[keep])

    @cached_property
    def targets(self) -> list[Target]:
        """The targets, with their predictions."""
        names = self.classifier.target_names_ or [None] * len(self.target_rows)
        return [self._predict(rows, name) for rows, name in zip(self.target_rows, names, strict=True)]

    def _predict(self, rows: DomainRows, domain: Any) -> Target:
        if rows.prediction is not None and rows.probabilities is not None:
            codes, P = self._find_codes(rows.prediction), rows.probabilities
        else:
            scores = self.classifier.decision_function(rows.X, target=domain)
            codes = predict_codes(scores.reshape(len(rows), -1))
            P = self.classifier.scores_to_proba(scores, target=domain)
        weight = np.ones(len(rows)) if rows.weights is None else np.asarray(rows.weights, dtype=float)
        truth = np.full(len(rows), -1)
        truth[rows.known] = self._find_codes(rows.known_labels().tolist())
        truth[weight == 0] = -1
        baseline = self._find_codes(self.baseline.predict(rows.X).tolist())
        return Target(rows, domain, codes, baseline, P, truth, weight)

    def _find_codes(self, labels: Sequence[Any]) -> np.ndarray:
        position = {label: i for i, label in enumerate(self.classes)}
        return np.array([position.get(spell_label(label), len(position)) for label in labels], dtype=int)

    def estimates_of(self, target: Target) -> dict[str, Any]:
        """Return a target's class shares, their intervals, expected errors; None where unknown."""
        keys = "target_shares", "target_shares_interval", "expected_error", "by_class"
        nothing = dict.fromkeys(keys)
        known = nothing if target.domain is None else describe_shares(self.classifier, target.domain)
        shares, error = known["target_shares"], known["expected_error"]
        return known | {
            "are_shares_given": bool(shares) and self.classifier.target_shares is not None,
            "expected_error": error and {key: error[key] for key in ("error", "low", "high")},
        }

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every term for every class, through all layers: (d, n_classes)."""
        return _expand_classes(effective_weights(self.classifier))

    @cached_property
    def baseline_weights(self) -> np.ndarray:
        """Weight of every term for every class in the baseline: (d, n_classes)."""
        return _expand_classes(getattr(self.baseline, "best_estimator_", self.baseline).coef_.T)


def _expand_classes(weights: np.ndarray) -> np.ndarray:
    return np.hstack([-weights, weights]) if weights.shape[1] == 1 else weights
