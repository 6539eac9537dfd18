"""A labelling session: rows to label, labels that are saved at once, and a model that learns them.

The first rows are questions that decide between readings. Every other row is drawn with a known probability,
doubtful rows more often, and counts in the measured error by the inverse: its label teaches and measures.
"""

from __future__ import annotations

import copy
import csv
import io
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..errors import count
from ..files import write_text_atomically
from ..inputs import spell_label
from ..method import (
    N_QUESTIONS,
    MSDAClassifier,
    ReadingFacts,
    find_doubts,
    list_chances,
    predict_codes,
    weigh_draws,
)
from ..results import (
    Comparison,
    Mistake,
    Rates,
    Score,
    Target,
    confuse_labels,
    list_mistakes,
    measure_classes,
)
from ..text import TextAdapter, hash_text
from .labels import ESTIMATE, FEW_MEASURED, N_FOLDS, PREDICTIONS, read_labels
from .tables import open_table

LEARN_EVERY = 5  # labels
MOST_COMPARED = 1_000  # rows, drawn at random, that are asked for and whose predictions are compared
N_SHOWN = 5  # changed predictions that are listed
SNIPPET = 160  # characters of each
GOAL_WIDTH = 0.1  # half width of the interval that the goal of labels is set for
LEAST_GOAL, MOST_GOAL = 30, 100  # labels
MORE = 20  # labels, of which the advice says what they would add
N_MISTAKES = 5  # pairs of classes that are listed


class Answer(NamedTuple):
    """The label of a row, and its weight in the measured error: 0 for a question."""

    label: str
    weight: float


class Learnt(NamedTuple):
    """What a session learnt from its answers, and the labels of these."""

    labels: dict[int, str]
    classifier: MSDAClassifier
    codes: np.ndarray  # predicted classes of the rows that are compared
    doubts: np.ndarray  # of the same rows
    predicted: dict[int, int]  # class of every drawn row, by a model without its label


class LabelFile:
    """The file of labels: read at the start, and written after every answer.

    Lines with texts that are not among the rows are kept as they are.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, list(columns)
        self._others: list[list[str]] = []
        self._stamp = self._find_stamp()

    def read(self, row_of: Mapping[int, int], classes: Sequence[str]) -> dict[int, Answer]:
        """Return the answers that were saved before; `row_of` has the row of every text's hash."""
        answers: dict[int, Answer] = {}
        if self._stamp is None:
            return answers
        table = open_table(self.path)
        if next(iter(table), None) is None:  # all answers were taken back
            return answers
        for key, given in read_labels(table, self.columns, ["label"], classes).items():
            weight = 0.0 if given.sampled == PREDICTIONS else given.weight
            if key in row_of:
                answers[row_of[key]] = Answer(given.label, weight)
            else:
                written = "" if given.sampled == PREDICTIONS else f"{given.weight:g}"
                self._others.append([given.text, given.label, given.sampled or "", written])
        # elsewhere a weight is the number of rows that one stands for
        mean = np.mean([answer.weight for answer in answers.values() if answer.weight] or [1.0])
        return {row: Answer(label, weight / float(mean)) for row, (label, weight) in answers.items()}

    def save(self, answers: Mapping[int, Answer], documents: Sequence[str]) -> None:
        """Write all answers, and the other lines."""
        if self._find_stamp() != self._stamp:
            raise ValueError(f"another program changed {self.path.name}: run `undrift label` again")
        out = io.StringIO()
        write = csv.writer(out).writerow
        empty = [""] * (len(self.columns) - 1)
        write([*self.columns, "label", "sampled", "weight"])
        for row, (label, weight) in answers.items():
            drawn = [ESTIMATE, f"{weight:.6g}"] if weight else [PREDICTIONS, ""]
            write([documents[row], *empty, label, *drawn])
        for text, *rest in self._others:
            write([text, *empty, *rest])
        write_text_atomically(self.path, out.getvalue())
        self._stamp = self._find_stamp()

    def _find_stamp(self) -> tuple[int, int] | None:
        """Return a stamp that changes when the file is written; None without a file."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_size


class LabelSession:
    """Rows of a file, their labels, and a model that learns them.

    Texts that are equal but for case and spaces are one row, the first. `path` is the file of labels.
    With `learns_at_once=False`, answers leave learning to the caller, who may do it in another thread:
    `take(study())` where `is_due`.
    """

    def __init__(
        self,
        adapter: TextAdapter,
        documents: Sequence[str],
        path: Path,
        *,
        columns: Sequence[str] = ("text",),
        target: str | None = None,
        learns_at_once: bool = True,
    ) -> None:
        self.learns_at_once = learns_at_once
        self.adapter, self.documents, self.file = adapter, documents, LabelFile(path, columns)
        self.target = adapter.classifier_.target_names_[0] if target is None else target
        self.classes = [spell_label(label) for label in adapter.classes_.tolist()]
        self._X = adapter.vectorizer_.transform(documents)
        first = {hash_text(text): i for i, text in reversed([*enumerate(documents)]) if text.strip()}
        if not first:
            raise ValueError("no row has a text to label")
        self._rows = set(first.values())
        self._order = np.random.default_rng(0).permutation(sorted(self._rows)).tolist()
        self._compared = self._order[:MOST_COMPARED]
        self.answers = self.file.read(first, self.classes)
        self._skipped: set[int] = set()
        self._history: list[tuple[str, int, Answer | None]] = []
        self._shown: dict[str, list[int]] = {}  # rows that a tab shows, and those to which undo went back
        self._drawn: dict[int, float] = {}  # rows drawn by their chances, and their weights
        self._base = adapter.classifier_
        self.can_learn = self._base.memory_ is not None
        if self.can_learn:  # without labels that the model may have learnt in an earlier session
            rows = list(self.answers) or self._compared[:1]
            withdrawn = np.full(len(rows), None, dtype=object)
            self._base = copy.copy(self._base).update(self._X[rows], withdrawn, target=self.target)
        self.classifier = self._base
        self._learnt: dict[int, str] = {}  # labels that were there when the session last learnt
        self._questions = self._ask() if self.can_learn else []
        # predicted classes before any label: of rows that may be measured, and of those compared
        self._first = self._predict(self._base, [*dict.fromkeys([*self._compared, *self.answers])])
        self._codes = np.array([self._first[row] for row in self._compared])
        self._expected = Target.of(self._base, self.target).expected
        self.goal = set_goal(self._expected, len(self._order))
        self.least_measured = FEW_MEASURED  # labels below which people are told no error
        self.learn()

    # rows and answers

    def next_row(self, tab: str = "") -> dict[str, object]:
        """Return the next row of a tab; `row` is None where all are done. Tabs get different rows."""
        mine = [row for row in self._shown.get(tab, []) if self._is_free(row)]
        row = mine[-1] if mine else self._choose_row()
        if row is not None:
            self._shown[tab] = mine or [row]
        return {
            "row": row,
            "text": None if row is None else self.documents[row],
            "is_question": row in self._questions,
            "classes": self.classes,
            "n_left": sum(map(self._is_free, self._order)),
        }

    def _is_free(self, row: int) -> bool:
        return row not in self.answers and row not in self._skipped

    def _choose_row(self) -> int | None:
        """Return a question that is left, else a row that is drawn, else any; None where all are done."""
        shown = {row for rows in self._shown.values() for row in rows}
        question = next((row for row in self._questions if self._is_free(row) and row not in shown), None)
        if question is not None:
            return question
        free = [i for i, row in enumerate(self._compared) if self._is_free(row) and row not in shown]
        if not free:
            rest = [row for row in self._order if self._is_free(row)]
            return next((row for row in rest if row not in shown), rest[0] if rest else None)
        chances = list_chances(self._doubts[free], np.ones(len(free)))
        rng = np.random.default_rng([len(self.answers), len(self._skipped), len(free)])
        drawn = int(rng.choice(len(free), p=chances))
        row = self._compared[free[drawn]]
        self._drawn[row] = float(1 / (chances[drawn] * len(free)))
        return row

    def _ask(self) -> list[int]:
        """Return the rows whose labels decide most between readings, none where there is one reading."""
        n = N_QUESTIONS - len(self.answers)
        free = [row for row in self._compared if self._is_free(row)]
        if n <= 0 or not free or len(self.weigh_readings()) < 2:
            return []
        asked = self._base.ask(self._X[free], n, target=self.target, random_state=0)
        return [free[i] for i in asked.tolist()]

    def answer(self, row: object, label: object, tab: str = "") -> None:
        """Save the label of a row, or skip the row where the label is None; learn after every few labels.

        Where it cannot be saved, the session stays as it was.
        """
        if isinstance(row, bool) or not isinstance(row, int) or row not in self._rows:
            raise ValueError(f"row is a number that /api/next returned; got {row!r}")
        if label is not None and spell_label(label) not in self.classes:
            raise ValueError(f"the label is one of {', '.join(self.classes[:10])}, or null to skip")
        before = self.answers.get(row)
        if label is None:
            self._skipped.add(row)
        else:
            weight = before.weight if before else self._drawn.get(row, 0.0)
            self._keep(row, Answer(spell_label(label), weight))
            self._skipped.discard(row)
        self._history.append((tab, row, before))
        self._predict_new()
        if self.learns_at_once and self.is_due:
            self.learn()

    def undo(self, tab: str = "") -> int | None:
        """Take back the last answer of a tab and return its row; None where there is none."""
        k = next((k for k in range(len(self._history) - 1, -1, -1) if self._history[k][0] == tab), None)
        if k is None:
            return None
        _, row, before = self._history[k]
        if row not in self._skipped:
            self._keep(row, before)
        self._skipped.discard(row)
        self._shown[tab] = [*self._shown.get(tab, []), row]
        del self._history[k]
        self._predict_new()
        if self.learns_at_once and self.is_due:
            self.learn()
        return row

    def _keep(self, row: int, answer: Answer | None) -> None:
        """Set or withdraw the answer of a row, and save; undone where it cannot be saved."""
        answers = {key: value for key, value in self.answers.items() if key != row}
        answers |= {} if answer is None else {row: answer}
        self.file.save(answers, self.documents)
        self.answers = answers

    # learning and measuring

    @property
    def is_due(self) -> bool:
        """Whether to learn: a few labels are new, or one that was learnt is changed or withdrawn."""
        given = {row: answer.label for row, answer in self.answers.items()}
        is_changed = any(given.get(row) != label for row, label in self._learnt.items())
        return is_changed or len(given) - len(self._learnt) >= LEARN_EVERY

    def learn(self) -> None:
        """Learn all labels, compare predictions with those before, and measure the error anew."""
        self.take(self.study())

    def study(self) -> Learnt:
        """Learn the labels that are there now, and change nothing: answers may come meanwhile."""
        answers = self.answers  # every answer replaces it
        labels = {row: given.label for row, given in answers.items()}
        classifier = self._learn(labels)
        scores = np.asarray(classifier.decision_function(self._X[self._compared], target=self.target))
        codes = predict_codes(scores.reshape(len(scores), -1))
        doubts = find_doubts(classifier.scores_to_proba(scores, target=self.target), codes)
        return Learnt(labels, classifier, codes, doubts, self._cross_fit(answers))

    def take(self, learnt: Learnt) -> None:
        """Show what was learnt."""
        self._before = self._codes
        self._learnt, self.classifier, self._codes, self._doubts, self._predicted = learnt
        self._predict_new()

    def _predict_new(self) -> None:
        """Predict drawn rows whose labels the model has not learnt yet; forget those of withdrawn answers."""
        drawn = [row for row, given in self.answers.items() if given.weight]
        known = {row: self._predicted[row] for row in drawn if row in self._predicted}
        self._predicted = known | self._predict(self.classifier, [row for row in drawn if row not in known])

    def _learn(self, wanted: Mapping[int, str]) -> MSDAClassifier:
        """Return a classifier that has learnt these labels of rows, and no others."""
        if not wanted or not self.can_learn:
            return self._base
        changed = [row for row in {**self._learnt, **wanted} if wanted.get(row) != self._learnt.get(row)]
        if not changed:
            return self.classifier
        names = dict(zip(self.classes, self.adapter.classes_.tolist(), strict=True))
        y = np.array([names.get(wanted.get(row, "")) for row in changed], dtype=object)
        return copy.copy(self.classifier).update(self._X[changed], y, target=self.target)

    def _predict(self, classifier: MSDAClassifier, rows: list[int]) -> dict[int, int]:
        """Return the predicted class of each row, as its position among the classes."""
        if not rows:
            return {}
        scores = np.asarray(classifier.decision_function(self._X[rows], target=self.target))
        return dict(zip(rows, predict_codes(scores.reshape(len(rows), -1)).tolist(), strict=True))

    def _cross_fit(self, answers: Mapping[int, Answer]) -> dict[int, int]:
        """Return the predicted classes of rows drawn at random, each without its own label."""
        drawn = [row for row, given in answers.items() if given.weight]
        fold = {row: i % N_FOLDS for i, row in enumerate(drawn)}
        predicted: dict[int, int] = {}
        for k in sorted(set(fold.values())):
            kept = {row: given.label for row, given in answers.items() if fold.get(row) != k}
            predicted |= self._predict(self._learn(kept), [row for row in drawn if fold[row] == k])
        return predicted

    def _weigh(self, rows: list[int]) -> np.ndarray:
        """Return the weights of drawn rows in the measured error."""
        drawn = {row: given.weight for row, given in self.answers.items() if given.weight}
        n_left = sum(map(self._is_free, self._compared))
        counts = weigh_draws(np.array([*drawn.values()]), n_left)
        weight = dict(zip(drawn, counts.tolist(), strict=True))
        return np.array([weight[row] for row in rows])

    def measure(self) -> tuple[Comparison, dict[str, Rates], list[Mistake]] | None:
        """Compare the model before any label with the one now on drawn rows; None without such a row.

        Returns also the errors by class, and the most frequent mistakes.
        """
        rows = list(self._predicted)
        if not rows:
            return None
        truth = np.array([self.classes.index(self.answers[row].label) for row in rows])
        before, after = (np.array([codes[row] for row in rows]) for codes in (self._first, self._predicted))
        weight = self._weigh(rows)
        mistakes = list_mistakes(confuse_labels(truth, after, weight, self.classes), self.classes, N_MISTAKES)
        rates = measure_classes(truth, after, weight, self.classes)
        return Comparison.count(before != truth, after != truth, weight), rates, mistakes

    def weigh_readings(self) -> list[ReadingFacts]:
        """Return the readings of the target with their weights after all labels, the heaviest first.

        Shares are those of the fit. Empty where one reading alone votes.
        """
        told = list(Target.of(self._base, self.target).readings)
        if sum(reading["weight"] > 0 for reading in told) < 2:
            return []
        if self.answers:
            names = dict(zip(self.classes, self.adapter.classes_.tolist(), strict=True))
            labels = np.array([names[given.label] for given in self.answers.values()], dtype=object)
            found = self._base.weigh(self._X[list(self.answers)], labels, target=self.target)
            weights = {reading["name"]: reading["weight"] for reading in found}
            told = [{**reading, "weight": float(weights[reading["name"]])} for reading in told]
        return sorted(told, key=lambda reading: -reading["weight"])

    def state(self) -> dict[str, object]:
        """Return the state of the session, ready for JSON."""
        known = Target.of(self.classifier, self.target)
        compared, by_class, mistakes = self.measure() or (None, None, [])
        changed = np.flatnonzero(self._codes != self._before).tolist()
        n_questions = sum(map(self._is_free, self._questions))
        return {
            "n_labels": len(self.answers),
            "n_rows": len(self._order),
            "n_learnt": len(self._learnt) if self.can_learn else 0,
            "goal": self.goal,
            "n_questions": n_questions,
            "error": _write_score(compared.after if compared else known.expected),
            "expected": _write_score(self._expected),
            "before": compared and _write_score(compared.before),
            "difference": compared and asdict(compared.gain),
            "by_class": {"expected": known.by_class, "measured": by_class},
            "mistakes": [asdict(mistake) for mistake in mistakes],
            "readings": [
                {name: value for name, value in reading.items() if name != "agreement"}
                for reading in self.weigh_readings()
            ],
            "advice": advise(compared.after if compared else None, self.goal, n_questions),
            "shares": known.shares,
            "shares_interval": known.intervals,
            "changed": {
                "n": len(changed),
                "of": len(self._compared),
                "rows": [
                    {
                        "row": self._compared[i],
                        "text": textwrap.shorten(
                            self.documents[self._compared[i]], SNIPPET, placeholder=" …"
                        ),
                        "from": self.classes[int(self._before[i])],
                        "to": self.classes[int(self._codes[i])],
                    }
                    for i in changed[:N_SHOWN]
                ],
            },
        }


def _write_score(score: Score) -> dict[str, object]:
    """Return an error, ready for JSON: whether it is measured, and on how many rows."""
    n = {"n": score.n_rows} if score.n_rows else {}
    return {**score.to_dict(), **n, "measured": score.n_rows > 0}


def set_goal(expected: Score, n_rows: int) -> int:
    """Return how many rows to label, drawn at random, for an interval of about `GOAL_WIDTH` on either side.

    It is set once, from the error that was expected before any label: a goal that moves with the measured
    error would make the error look better than it is.
    """
    p = min(max(expected.error, 0.05), 0.5)
    n = stats.norm.ppf(0.975) ** 2 * p * (1 - p) / GOAL_WIDTH**2
    return min(max(LEAST_GOAL, min(MOST_GOAL, 10 * math.ceil(n / 10))), n_rows)


def advise(measured: Score | None, goal: int, n_questions: int = 0) -> str:
    """Say how far the goal of labels is, or that it is reached and what more labels would add.

    `n_questions` are left, which measure nothing.
    """
    if n_questions:
        begin = f"{count(n_questions, 'question')} to decide between the stories."
        return f"{begin} Then rows are drawn that measure the error and teach: {goal} are the goal."
    if measured is None:
        return f"Label {count(goal, 'row')}: each measures the error and teaches."
    n = measured.n_rows
    if n < goal:
        return f"{n} of {goal} rows are labelled. Go on to {goal}, whatever the numbers say until then."
    half = (measured.high - measured.low) / 2
    gain = 100 * half * (1 - math.sqrt(n / (n + MORE)))
    return (
        f"The goal of {count(goal, 'row')} is reached: you can stop. {MORE} more would narrow the interval "
        f"by {gain:.1f} points on either side."
    )
