"""A teacher's labels of a target: how good they look, and where and why the student disagrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core import Rows
from ..errors import count
from ..explain import score_contributions
from ..inputs import gather_rows, spell_label
from ..results import Label, Score
from ..text import TextAdapter
from .domains import JobDomain
from .job import Facts
from .predictions import Predictions

EXPLAINED_ROWS, N_WORDS = 10, 5  # that say where and why a student disagrees with its teacher
FEW_TAUGHT = 400  # labels of a teacher below which the prior decides about their noise


@dataclass(frozen=True, kw_only=True)
class TeacherSummary(Facts):
    """A teacher's labels of a target, its probable mistakes, and the rows where the student disagrees.

    With true labels, also the errors of teacher, student and both on the rows that the teacher labelled.
    """

    n_labels: int
    n_disagreeing: int
    noise: float  # share of labels that look exchanged at random
    n_scored: int
    n_probably_wrong: int | None  # None where labels are too few
    surest_rows: Sequence[int]  # from 1, where the student disagrees
    words: Sequence[str]  # that decide these
    teacher_error: float | None = None
    student_error: float | None = None
    both_error: float | None = None

    def say(self, target: str) -> str:
        """Say how many labels the teacher gave and how many are probably wrong."""
        wrong = "too few to say how many are wrong"
        if self.n_probably_wrong is not None:
            wrong = f"about {self.n_probably_wrong:,} probably wrong"
        line = f"Teacher of {target}: {count(self.n_labels, 'label')}, {wrong}; "
        line += f"the student disagrees on {count(self.n_disagreeing, 'row')} (teacher_disagrees)."
        if self.words:
            surest = self.surest_rows[:3]
            rows = f"row{'s' if len(surest) > 1 else ''} {', '.join(f'{row:,}' for row in surest)}"
            line += f" It is surest in {rows}, by the words {', '.join(self.words)}."
        if self.n_scored:
            errors = f"teacher {self.teacher_error:.1%}, student {self.student_error:.1%}, both"
            line += f" Wrong on {count(self.n_scored, 'labelled row')}: {errors} {self.both_error:.1%}."
        return line


def summarize_teacher(
    adapter: TextAdapter, X: Rows, target: JobDomain, predicted: Predictions, *, noise: float, is_scored: bool
) -> TeacherSummary:
    """Count a teacher's labels, its probable mistakes, and the rows where the student disagrees.

    Labels that were exchanged at random are wrong, and half of the others that the student contradicts.
    """
    taught = [i for i, answer in enumerate(predicted.disagrees) if answer is not None]
    n_disagreeing, n_exchanged = sum(map(bool, predicted.disagrees)), noise * len(taught)
    truth = target.truth if is_scored and target.n_scored else np.full((target.n_rows, 2), None)
    scored = [i for i in taught if truth[i, 0] is not None]

    def measure(labels: Sequence[Label] | np.ndarray) -> float | None:
        if not scored:
            return None
        wrong = np.array([spell_label(labels[i]) != spell_label(truth[i, 0]) for i in scored])
        return Score.measure(wrong, truth[scored, 1].astype(float)).error

    n_wrong = round((n_exchanged + max(n_disagreeing, n_exchanged)) / 2)
    surest_rows, words = explain_disagreement(adapter, X, target, predicted)
    return TeacherSummary(
        n_labels=len(taught),
        n_disagreeing=n_disagreeing,
        noise=noise,
        n_scored=len(scored),
        n_probably_wrong=n_wrong if len(taught) >= FEW_TAUGHT else None,
        surest_rows=surest_rows,
        words=words,
        teacher_error=measure(target.teacher["teacher"]),
        student_error=measure(predicted.student),
        both_error=measure(predicted.labels),
    )


def explain_disagreement(
    adapter: TextAdapter, X: Rows, target: JobDomain, predicted: Predictions
) -> tuple[list[int], list[str]]:
    """Return the surest rows where the student disagrees with its teacher, and the words that decide them."""
    classifier, codes = adapter.classifier_, {label: k for k, label in enumerate(adapter.classes_.tolist())}
    rows = [i for i, answer in enumerate(predicted.disagrees) if answer]
    if not rows:
        return [], []
    surest = sorted(rows, key=lambda i: -predicted.student_margin[i])[:EXPLAINED_ROWS]
    taken = sorted(surest)  # rows of a cluster are taken in their order
    unit = np.array([[-1.0], [1.0]]) if len(codes) == 2 else np.eye(len(codes))
    views = predicted.student, target.teacher["teacher"]
    own, other = (unit[[codes[labels[i]] for i in taken]] for labels in views)
    X = gather_rows(X[taken])
    parts = score_contributions(classifier, X, own - other, target=target.name)[1].sum(axis=0)
    order = np.argsort(-parts.round(3), kind="stable")  # terms that always occur together differ by rounding
    words = [adapter.terms_[j] for j in order[:N_WORDS] if parts[j] > 0]
    return [i + 1 for i in surest], words
