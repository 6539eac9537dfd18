"""The input of a report: a fitted classifier, the rows of every domain, and facts about the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..core import Rows, array_ops, stack_rows
from ..explain import effective_weights
from ..inputs import spell_label
from ..method import MSDAClassifier, Name, predict_codes
from ..results import Baseline, Comparison, Label, Target, fitted_svm
from ..text import TermVectorizer

MOST_BASELINE_ROWS = 3_000  # labelled rows that the baseline is fitted on
RARE = 0.25  # a term is rare if its share of labelled rows is below this part of its share of the target


@dataclass(frozen=True, eq=False)
class DomainRows:
    """Rows of one domain, with their documents and labels where there are any.

    Labels of a target only score. `prediction` and `probabilities` are given where they are known already.
    """

    name: str
    X: Rows
    documents: Sequence[str] | None = None
    labels: Sequence[Label | None] | None = None
    prediction: Sequence[Label] | None = None
    probabilities: np.ndarray | None = None  # (n, n_classes)
    weights: Sequence[float] | None = None  # of labelled rows in a score; 0 for a row that is not scored
    n_rows: int | None = None  # of the domain, where `X` is a sample of it
    read: tuple[int, int] | None = None  # rows and labels of a file in another language, which labelled `X`
    unseen_share: float | None = None  # of a target's words, that the source lacks
    # mistakes of baseline and classifier on labelled rows of a target, where they are known already
    errors: Comparison | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    @property
    def size(self) -> int:
        """Number of rows of the domain, with those that are not here."""
        return self.read[0] if self.read else self.n_rows or len(self)

    @property
    def n_labelled(self) -> int:
        """Number of labels that were read."""
        return self.read[1] if self.read else int(self.known.sum())

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
    files: Sequence[Mapping[str, object]] = ()  # name, size and SHA-256 of each
    text_columns: Sequence[str] = ("text",)
    use_labels: str = "score"  # of a target: "score", "train" or "both"
    n_learnt: int = 0  # labels of the target that were learnt
    teachers: Sequence[str] = ()  # a sentence for the teacher of each target
    taught_by: str = "the source"  # what the baseline is trained on


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """Rows of a target with their predictions; codes are positions among the classes of the classifier."""

    rows: DomainRows
    domain: Name | None  # as `predict` takes it; None where the fit had no target
    known: Target | None  # what the classifier knows of the target
    are_shares_given: bool
    classes: Sequence[str]
    codes: np.ndarray  # (n,) predictions
    baseline: np.ndarray  # (n,) predictions of the baseline
    P: np.ndarray  # (n, n_classes) probabilities
    truth: np.ndarray  # (n,) -1 where a row is not scored, n_classes where the source lacks the label
    weight: np.ndarray  # (n,) in a score

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.rows.name

    @property
    def is_scored(self) -> np.ndarray:
        """Mask of the rows whose true class is known."""
        return self.truth >= 0

    @property
    def is_changed(self) -> np.ndarray:
        """Mask of the rows whose prediction differs from the baseline's."""
        return self.codes != self.baseline

    @cached_property
    def errors(self) -> Comparison | None:
        """Mistakes of the baseline and of the predictions on labelled rows; None without such a row."""
        known = self.is_scored
        if self.rows.errors is not None or not known.any():
            return self.rows.errors
        before, after = (codes[known] != self.truth[known] for codes in (self.baseline, self.codes))
        return Comparison.count(before, after, self.weight[known])

    @cached_property
    def certainty(self) -> np.ndarray:
        """Probability of the predicted class of each row."""
        return np.take_along_axis(self.P, self.codes[:, None], axis=1)[:, 0]

    @cached_property
    def predicted_shares(self) -> dict[str, float]:
        """Class shares of the predictions."""
        shares = np.bincount(self.codes, minlength=len(self.classes)) / max(len(self.codes), 1)
        return dict(zip(self.classes, shares.tolist(), strict=True))

    @cached_property
    def labelled_shares(self) -> dict[str, float] | None:
        """Class shares of the scored rows; None without one that has a class of the source."""
        known, n_classes = self.is_scored, len(self.classes)
        sums = np.bincount(self.truth[known], self.weight[known], n_classes + 1)  # the last: other labels
        if not sums[:-1].sum():
            return None
        return dict(zip(self.classes, (sums[:-1] / sums.sum()).tolist(), strict=True))


@dataclass(frozen=True)
class Word:
    """A term, the class that it speaks for, and how much."""

    term: str
    code: int  # of the class
    effect: float  # a weight, a part of what changed predictions, or what it adds to a score
    n_labelled: int  # labelled source rows with it
    rarity: int  # 2 in no labelled row, 1 in few, else 0
    source: float  # share of the rows that have it
    target: float


@dataclass(frozen=True, eq=False)
class ReportData:
    """A fitted classifier, the names of its columns, and the rows of every domain."""

    classifier: MSDAClassifier
    terms: Sequence[str]
    sources: Sequence[DomainRows]
    target_rows: Sequence[DomainRows]
    facts: RunFacts = field(default_factory=RunFacts)
    given_baseline: Baseline | None = None
    vectorizer: TermVectorizer | None = None  # for the box that scores a sentence

    @cached_property
    def classes(self) -> list[str]:
        """The labels as text, in the order of the scores."""
        return [spell_label(label) for label in self.classifier.classes_.tolist()]

    @cached_property
    def labelled_rows(self) -> tuple[Rows, np.ndarray]:
        """The labelled rows of all sources, and their labels as text."""
        X = stack_rows([domain.X[np.flatnonzero(domain.known)] for domain in self.sources])
        return X, np.concatenate([domain.known_labels() for domain in self.sources])

    @cached_property
    def baseline(self) -> Baseline:
        """The baseline: a linear SVM trained on the labelled source rows."""
        if self.given_baseline is not None:
            return self.given_baseline
        X, y = self.labelled_rows
        keep = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_BASELINE_ROWS])
        return fitted_svm(X[keep], y[keep])

    @cached_property
    def targets(self) -> list[PredictedRows]:
        """The targets, with their predictions."""
        names = self.classifier.target_names_ or [None] * len(self.target_rows)
        return [self._predict(rows, name) for rows, name in zip(self.target_rows, names, strict=True)]

    def _predict(self, rows: DomainRows, domain: Name | None) -> PredictedRows:
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
        return PredictedRows(
            rows,
            domain,
            known=None if domain is None else Target.of(self.classifier, domain),
            are_shares_given=domain is not None and self.classifier.target_shares is not None,
            classes=self.classes,
            codes=codes,
            baseline=self._find_codes(self.baseline.predict(rows.X).tolist()),
            P=P,
            truth=truth,
            weight=weight,
        )

    def _find_codes(self, labels: Sequence[Label]) -> np.ndarray:
        position = {label: i for i, label in enumerate(self.classes)}
        return np.array([position.get(spell_label(label), len(position)) for label in labels], dtype=int)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every term for every class, through all layers: (d, n_classes)."""
        return _expand_classes(effective_weights(self.classifier))

    @cached_property
    def baseline_weights(self) -> np.ndarray:
        """Weight of every term for every class in the baseline: (d, n_classes)."""
        return _expand_classes(getattr(self.baseline, "best_estimator_", self.baseline).coef_.T)

    @cached_property
    def statistics(self) -> Mapping[str, np.ndarray]:
        """What the rows say of every term: its shares of them, its labelled rows, and how rare these are."""
        source, target = (
            shares(stack_rows([domain.X for domain in domains]))
            for domains in (self.sources, self.target_rows)
        )
        n_labelled = np.asarray(self.classifier.labelled_counts_)
        labelled = n_labelled / max(sum(int(domain.known.sum()) for domain in self.sources), 1)
        rarity = np.where(n_labelled == 0, 2, np.where(labelled < RARE * target, 1, 0))
        return {"source": source, "target": target, "n_labelled": n_labelled, "rarity": rarity}

    def word(self, j: int, code: int, effect: float) -> Word:
        """Return a term as a word of the page."""
        n_labelled, rarity = (int(self.statistics[name][j]) for name in ("n_labelled", "rarity"))
        source, target = (round(float(self.statistics[name][j]), 6) for name in ("source", "target"))
        return Word(self.terms[j], code, effect, n_labelled, rarity, source, target)


def shares(X: Rows) -> np.ndarray:
    """Return the share of rows with each term."""
    return array_ops(X).nonzero_counts(X) / max(X.shape[0], 1)


def _expand_classes(weights: np.ndarray) -> np.ndarray:
    return np.hstack([-weights, weights]) if weights.shape[1] == 1 else weights
