"""Predictions of rows of a target: labels, scores, probabilities, and the columns that they add."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from ..core import Rows as Matrix
from ..method import MSDAClassifier, predict_codes
from ..results import Counts, Label, measure_margins
from ..text import DistilledClassifier
from .job import AdaptJob, PredictJob

Classifier = MSDAClassifier | DistilledClassifier


def _nothing() -> np.ndarray:
    return np.empty(0, dtype=object)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of some rows of a target."""

    classes: Sequence[Label]
    codes: np.ndarray  # (n,) of the predicted classes
    score: np.ndarray  # (n,)
    probabilities: np.ndarray  # (n, n_classes)
    n_known: np.ndarray  # (n,) terms of every row that the model knows
    # where there is a teacher, (n,), else empty: labels without its scores, and their lead over the second
    # labels; whether it says another label, None where it is silent
    student: np.ndarray = field(default_factory=_nothing)
    student_margin: np.ndarray = field(default_factory=_nothing)
    disagrees: np.ndarray = field(default_factory=_nothing)

    @property
    def labels(self) -> list[Label]:
        """Predicted labels, those of doubtful rows among them."""
        return [self.classes[code] for code in self.codes]

    @property
    def probability(self) -> np.ndarray:
        """Probability of the predicted label, of shape (n,)."""
        return np.take_along_axis(self.probabilities, self.codes[:, None], axis=1)[:, 0]

    def columns(
        self,
        names: Sequence[str],
        min_confidence: float | None = None,
        *,
        domain: str | None = None,
        file: str | None = None,
    ) -> dict[str, Sequence[object] | np.ndarray]:
        """Return the columns to add; predictions that are doubtful or of no known term are left empty."""
        is_empty = (self.probability < (min_confidence or 0)) | (self.n_known == 0)
        predicted = np.array(self.labels, dtype=object)  # whole numbers stay so beside empty cells
        predicted[is_empty] = None
        values: dict[str, Sequence[object] | np.ndarray] = {
            "prediction": predicted,
            "score": self.score.tolist(),
            "probability": self.probability.tolist(),
            "domain": [domain] * len(self.codes),
            "file": [file] * len(self.codes),
            "known_terms": self.n_known.tolist(),
            "teacher_disagrees": self.disagrees,
        }
        for label, column in zip(self.classes, self.probabilities.T.tolist(), strict=True):
            values[f"p_{label}"] = column
        return {name: values[name] for name in names}

    def count(self, min_confidence: float | None = None) -> Counts:
        """Count the rows of every predicted class, the doubtful ones, and those of no known term."""
        is_known = self.n_known > 0
        per_class = np.bincount(self.codes[is_known], minlength=len(self.classes))
        is_doubtful = is_known & (self.probability < (min_confidence or 0))
        n_doubtful = None if min_confidence is None else int(is_doubtful.sum())
        return Counts(self.classes, per_class, n_doubtful, int((~is_known).sum()))


def list_added(
    job: AdaptJob | PredictJob,
    classes: Sequence[Label],
    *,
    has_domain: bool = False,
    has_file: bool = False,
    has_known_terms: bool = False,
) -> dict[str, set[Hashable]]:
    """Return the columns that predictions add, in order, and the type of each."""
    kind: type = type(classes[0])
    kinds: dict[str, set[Hashable]] = {"prediction": {kind}, "score": {float}, "probability": {float}}
    kinds |= {f"p_{label}": {float} for label in classes} if job.probabilities else {}
    kinds |= {"domain": {str}} if has_domain else {}
    kinds |= {"file": {str}} if has_file else {}
    kinds |= {"teacher_disagrees": {bool}} if isinstance(job, AdaptJob) and job.teacher else {}
    return kinds | ({"known_terms": {int}} if has_known_terms else {})


def predict_rows(
    classifier: Classifier, X: Matrix, target: str | None = None, scores: np.ndarray | None = None
) -> Predictions:
    """Predict rows of a target, in one pass through the layers; numbers have six digits.

    `scores` are those of `decision_function`, if they are known.
    """
    if scores is None:
        scores = classifier.decision_function(X, target=target)
    probabilities = classifier.scores_to_proba(scores, target=target).astype(float)
    probabilities = classifier.fill_unknown(probabilities, X, target).round(6)
    scores = np.asarray(scores, dtype=float).reshape(X.shape[0], -1)
    labels, score = classifier.classes_.tolist(), np.round(scores.max(axis=1), 6)
    return Predictions(labels, predict_codes(scores), score, probabilities, np.diff(X.indptr))


def predict_taught(
    X: Matrix, said: np.ndarray, classifier: MSDAClassifier, target: str, scores: np.ndarray | None = None
) -> Predictions:
    """Predict rows of a target by student and teacher together; without a teacher, `said` has no column.

    `scores` are those of the student, if they are known.
    """
    student = predict_rows(classifier, X, target, scores)
    if not said.shape[1]:
        return student
    scores = classifier.decision_function(X, target=target, **name_said(said))
    both = predict_rows(classifier, X, target, scores)
    labels = np.array(student.labels, dtype=object)
    is_silent = np.array([label is None for label in said[:, 0]], dtype=bool)
    disagrees = np.array((labels != said[:, 0]) & (student.n_known > 0), dtype=object)
    disagrees[is_silent] = None
    margin = measure_margins(student.probabilities)
    return replace(both, student=labels, student_margin=margin, disagrees=disagrees)


def name_said(said: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a teacher says of rows, by parameters of `decision_function`."""
    return dict(zip(("teacher", "teacher_confidence"), said.T, strict=False))


def join_predictions(parts: Sequence[Predictions]) -> Predictions:
    """Return the predictions of all parts, one after another."""
    names = [each.name for each in fields(Predictions) if each.name != "classes"]
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Predictions(parts[0].classes, **joined)
