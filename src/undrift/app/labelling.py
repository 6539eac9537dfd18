"""A labelling session: rows to label, labels that are saved at once, and a model that learns them."""

from __future__ import annotations

import copy
import csv
import io
import math
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..errors import count
from ..files import write_text_atomically
from ..inputs import spell_label
from ..method import predict_codes
from ..scoring import (
    confuse_labels,
    describe_shares,
    gain_interval,
    list_mistakes,
    measure_classes,
    measure_error,
    measure_margins,
)
from ..text import TextAdapter, hash_text
from .labels import ESTIMATE, N_FOLDS, PREDICTIONS, read_labels
from .tables import open_table

LEARN_EVERY = 5  # labels
N_ASKED, N_DOUBTFUL = 10, 200  # rows that are asked for at once, among the least certain ones
MOST_COMPARED = 1_000  # rows, drawn at random, whose predictions are compared before and after learning
N_SHOWN = 5  # changed predictions that are listed
SNIPPET = 160  # characters of each
GOAL_WIDTH = 0.1  # half width of the interval that the goal of labels is set for
LEAST_GOAL, MOST_GOAL = 30, 100  # labels
MORE = 20  # labels, of which the advice says what they would add
N_MISTAKES = 5  # pairs of classes that are listed


class Answer(NamedTuple):
    """The label of a row, and the purpose for which the row was shown."""

    label: str
    purpose: str


class LabelSession:
    """Rows of a file, their labels, and a model that learns them.

    Texts that are equal but for case and spaces are one row, the first. `path` is the file of labels: it is
    read at the start and written after every answer.
    """

    def __init__(
        self,
        adapter: TextAdapter,
        documents: Sequence[str],
        path: Path,
        *,
        columns: Sequence[str] = ("text",),
        target: str | None = None,
    ) -> None:
        self.adapter, self.documents, self.path, self.columns = adapter, documents, path, list(columns)
        self.target, self.classes = target, [spell_label(label) for label in adapter.classes_.tolist()]
        self._X = adapter.vectorizer_.transform(documents)
        first = {hash_text(text): i for i, text in reversed([*enumerate(documents)]) if text.strip()}
        if not first:
            raise ValueError("no row has a text to label")
        self._row_of = first
        self._order = np.random.default_rng(0).permutation(sorted(first.values())).tolist()
        self._compared = self._order[:MOST_COMPARED]
        self._place = {row: i for i, row in enumerate(self._compared)}
        self.answers: dict[int, Answer] = {}
        self._skipped: set[int] = set()
        self._others: list[list[str]] = []  # lines of the file of labels whose text is not in these rows
        self._history: list[tuple[str, int, Answer | None]] = []
        self._lent: dict[str, int] = {}  # the row that each tab shows
        self._read()
        self._base = self.classifier = adapter.classifier_
        self.can_learn = getattr(self._base, "memory_", None) is not None
        if self.can_learn:  # without labels that the model may have learnt in an earlier session
            rows = list(self.answers) or self._compared[:1]
            withdrawn = np.full(len(rows), None, dtype=object)
            self._base = copy_fitted(self._base).update(self._X[rows], withdrawn, target=target)
            self.classifier = self._base
        self._n_learnt = 0
        self._learnt: dict[int, str] = {}  # labels that the classifier has learnt
        self._asked: list[int] = []
        self._predicted: dict[int, int] = {}  # classes of rows drawn at random, each without its label
        self._first: dict[int, int] = {}  # the same by the model before any label
        self._expected = self._describe(self._base)["expected_error"]
        self.goal = set_goal(self._expected, len(self._order))
        self._codes = self._before = self._predict(self._base, self._compared)
        self.learn()

    # rows and answers

    def next_row(self, purpose: str = ESTIMATE, tab: str = "") -> dict[str, Any]:
        """Return the next row for a purpose; `row` is None where all are done. Tabs get different rows."""
        if purpose not in (ESTIMATE, PREDICTIONS):
            raise ValueError(f"the mode is {ESTIMATE} or {PREDICTIONS}; got {purpose!r}")
        order = self._order if purpose == ESTIMATE or not self.can_learn else self._list_doubtful()
        self._lent.pop(tab, None)
        free = [row for row in order if row not in self._skipped and row not in self.answers]
        if purpose == ESTIMATE and free:  # labelled rows that come first in the random order count as drawn
            drawn = [row for row in order[: order.index(free[0])] if row in self.answers]
            self.answers |= {row: self.answers[row]._replace(purpose=ESTIMATE) for row in drawn}
        row = next((row for row in free if row not in self._lent.values()), free[0] if free else None)
        if row is not None:
            self._lent[tab] = row
        text = None if row is None else self.documents[row]
        return {"row": row, "text": text, "mode": purpose, "classes": self.classes, "n_left": len(free)}

    def _list_doubtful(self) -> list[int]:
        """Return rows that are most worth learning, chosen anew when all of the last are done."""
        if not any(row not in self.answers and row not in self._skipped for row in self._asked):
            done, classifier = self.answers.keys() | self._skipped, self.classifier
            scores = self._score(classifier, self._compared)
            scores = scores[:, 0] if scores.shape[1] == 1 else scores
            margins = measure_margins(classifier.scores_to_proba(scores, target=self.target))
            order = [self._compared[i] for i in np.argsort(margins, kind="stable")]
            free = [row for row in order if row not in done][:N_DOUBTFUL]
            self._asked = []
            if free:
                asked = classifier.ask(self._X[free], N_ASKED, target=self.target, random_state=0)
                self._asked = [free[i] for i in asked.tolist()]
        return self._asked

    def answer(self, row: Any, label: Any, purpose: str = ESTIMATE, tab: str = "") -> None:
        """Save the label of a row, or skip the row where the label is None; learn after every few labels.

        Where it cannot be saved, the session stays as it was.
        """
        if isinstance(row, bool) or not isinstance(row, int) or row not in self._row_of.values():
            raise ValueError(f"row is a number that /api/next returned; got {row!r}")
        if label is not None and spell_label(label) not in self.classes:
            raise ValueError(f"the label is one of {', '.join(self.classes[:10])}, or null to skip")
        before = self.answers.get(row)
        if label is None:
            self._skipped.add(row)
        else:
            purpose = ESTIMATE if ESTIMATE in (purpose, before and before.purpose) else PREDICTIONS
            self._keep(row, Answer(spell_label(label), purpose))
            self._skipped.discard(row)
        self._history.append((tab, row, before))
        if before is not None or len(self.answers) - self._n_learnt >= LEARN_EVERY:
            self.learn()
        elif label is not None and purpose == ESTIMATE:  # the model has not learnt it yet
            self._predicted |= self._predict_rows(self.classifier, [row])
            self._first |= self._predict_rows(self._base, [row])

    def undo(self, tab: str = "") -> int | None:
        """Take back the last answer of a tab and return its row; None where there is none."""
        k = next((k for k in range(len(self._history) - 1, -1, -1) if self._history[k][0] == tab), None)
        if k is None:
            return None
        _, row, before = self._history[k]
        if row not in self._skipped:
            self._keep(row, before)
        self._skipped.discard(row)
        del self._history[k]
        self.learn()
        return row

    def _keep(self, row: int, answer: Answer | None) -> None:
        """Set or withdraw the answer of a row, and save; undone where it cannot be saved."""
        answers = dict(self.answers)
        answers.pop(row, None)
        self._save(answers if answer is None else answers | {row: answer})
        self.answers = answers if answer is None else answers | {row: answer}

    # the file of labels

    def _read(self) -> None:
        """Read answers that were saved before. Lines with unknown texts are kept as they are."""
        self._stamp = self._find_stamp()
        if self._stamp is None:
            return
        table = open_table(self.path)
        if next(iter(table), None) is None:  # all answers were taken back
            return
        for key, given in read_labels(table, self.columns, ["label"], self.classes).items():
            if key not in self._row_of:
                weight = "" if given.sampled == PREDICTIONS else f"{given.weight:g}"
                self._others.append([given.text, given.label, given.sampled or "", weight])
            else:
                purpose = PREDICTIONS if given.sampled == PREDICTIONS else ESTIMATE
                self.answers[self._row_of[key]] = Answer(given.label, purpose)

    def _save(self, answers: dict[int, Answer]) -> None:
        if self._find_stamp() != self._stamp:
            raise ValueError(f"another program changed {self.path.name}: run `undrift label` again")
        out = io.StringIO()
        write = csv.writer(out, lineterminator="\n").writerow
        empty = [""] * (len(self.columns) - 1)
        write([*self.columns, "label", "sampled", "weight"])
        for row, given in answers.items():
            weight = "1" if given.purpose == ESTIMATE else ""
            write([self.documents[row], *empty, given.label, given.purpose, weight])
        for text, *rest in self._others:
            write([text, *empty, *rest])
        write_text_atomically(self.path, out.getvalue())
        self._stamp = self._find_stamp()

    def _find_stamp(self) -> tuple[int, int] | None:
        """Return a stamp that changes when the file of labels is written; None without a file."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size

    # learning and measuring

    def learn(self) -> None:
        """Learn all labels, compare predictions with those before, and measure the error anew."""
        self._before = self._codes
        self.classifier = self._learn(list(self.answers))
        self._learnt = {row: given.label for row, given in self.answers.items() if self.can_learn}
        self._codes = self._predict(self.classifier, self._compared)
        self._n_learnt, self._asked = len(self.answers), []
        self._predicted = self._cross_fit()
        self._first = self._predict_rows(self._base, list(self._predicted))

    def _learn(self, rows: list[int]) -> Any:
        """Return a classifier that has learnt the labels of these rows, and no others."""
        if not rows or not self.can_learn:
            return self._base
        wanted = {row: self.answers[row].label for row in rows}
        changed = [row for row in {**self._learnt, **wanted} if wanted.get(row) != self._learnt.get(row)]
        if not changed:
            return self.classifier
        names = dict(zip(self.classes, self.adapter.classes_.tolist(), strict=True))
        y = np.array([names.get(wanted.get(row, "")) for row in changed], dtype=object)
        return copy_fitted(self.classifier).update(self._X[changed], y, target=self.target)

    def _score(self, classifier: Any, rows: list[int]) -> np.ndarray:
        """Return scores of shape (n, n_outputs)."""
        scores = classifier.decision_function(self._X[rows], target=self.target)
        return np.asarray(scores).reshape(len(rows), -1)

    def _predict(self, classifier: Any, rows: list[int]) -> np.ndarray:
        """Return the classes of rows, as positions among the classes."""
        return predict_codes(self._score(classifier, rows))

    def _predict_rows(self, classifier: Any, rows: list[int]) -> dict[int, int]:
        """Return the predicted class of each row."""
        return dict(zip(rows, self._predict(classifier, rows).tolist(), strict=True)) if rows else {}

    def _cross_fit(self) -> dict[int, int]:
        """Return the predicted classes of rows drawn at random, each without its own label."""
        rows = list(self.answers)
        drawn = [row for row in rows if self.answers[row].purpose == ESTIMATE]
        fold = {row: i % N_FOLDS for i, row in enumerate(drawn)}
        predicted: dict[int, int] = {}
        for k in sorted(set(fold.values())):
            classifier = self._learn([row for row in rows if fold.get(row) != k])
            predicted |= self._predict_rows(classifier, [row for row in drawn if fold[row] == k])
        return predicted

    def _measure(self) -> dict[str, Any]:
        """Return errors on rows drawn at random: now, before any label, their difference, and by class.

        All are None without such a row.
        """
        names = "error", "before", "difference", "by_class", "mistakes"
        if not self._predicted:
            return dict.fromkeys(names)
        rows, n = list(self._predicted), len(self._predicted)
        truth = np.array([self.classes.index(self.answers[row].label) for row in rows])
        before, after = (np.array([codes[row] for row in rows]) for codes in (self._first, self._predicted))
        corrected = float(np.mean((before != truth) & (after == truth)))
        spoilt = float(np.mean((before == truth) & (after != truth)))
        low, high = gain_interval(corrected, spoilt, n)
        confusion = confuse_labels(truth, after, np.ones(n), self.classes)
        errors = [
            measure_error(codes != truth, np.ones(n)) | {"n": n, "measured": True}
            for codes in (after, before)
        ]
        difference = {"gain": corrected - spoilt, "low": low, "high": high}
        by_class = measure_classes(truth, after, np.ones(n), self.classes)
        mistakes = list_mistakes(confusion, self.classes, N_MISTAKES)
        return dict(zip(names, (*errors, difference, by_class, mistakes), strict=True))

    def weigh_readings(self) -> list[dict[str, Any]]:
        """Return the readings of the target with their weights after all labels, the heaviest first.

        Shares are those of the fit. Empty where one reading alone votes.
        """
        name = self.classifier.target_names_[0] if self.target is None else self.target
        told = getattr(self._base, "readings_", {}).get(name, [])
        if sum(reading["weight"] > 0 for reading in told) < 2:
            return []
        weights = [reading["weight"] for reading in told]
        if self.answers:
            names = dict(zip(self.classes, self.adapter.classes_.tolist(), strict=True))
            labels = np.array([names[given.label] for given in self.answers.values()], dtype=object)
            found = self._base.weigh(self._X[list(self.answers)], labels, target=self.target)
            by_name = {reading["name"]: reading["weight"] for reading in found}
            weights = [by_name[reading["name"]] for reading in told]
        readings = [
            {
                "name": reading["name"],
                "story": reading["story"],
                "weight": float(weight),
                "shares": {spell_label(label): float(share) for label, share in reading["shares"].items()},
            }
            for reading, weight in zip(told, weights, strict=True)
        ]
        return sorted(readings, key=lambda reading: -reading["weight"])

    def _describe(self, classifier: Any) -> dict[str, Any]:
        """Return the class shares and the expected errors of the target."""
        names = classifier.target_names_
        known = describe_shares(classifier, names[0] if self.target is None else self.target)
        error = known["expected_error"]
        if error is not None:
            error = {key: error[key] for key in ("error", "low", "high")} | {"measured": False}
        return known | {"expected_error": error}

    def state(self) -> dict[str, Any]:
        """Return the state of the session, ready for JSON."""
        measured, known = self._measure(), self._describe(self.classifier)
        changed = np.flatnonzero(self._codes != self._before).tolist()
        counts = np.bincount(self._codes, minlength=len(self.classes)) / max(len(self._codes), 1)
        predicted = dict(zip(self.classes, counts.tolist(), strict=True))
        return {
            "n_labels": len(self.answers),
            "n_rows": len(self._order),
            "n_learnt": self._n_learnt if self.can_learn else 0,
            "goal": self.goal,
            "error": measured["error"] or known["expected_error"],
            "expected": self._expected,
            "before": measured["before"],
            "difference": measured["difference"],
            "by_class": {"expected": known["by_class"], "measured": measured["by_class"]},
            "mistakes": measured["mistakes"] or [],
            "readings": self.weigh_readings(),
            "advice": advise(measured["error"], self.goal, self.can_learn),
            "shares": known["target_shares"] or predicted,
            "shares_interval": (known["target_shares_interval"] or {}) if known["target_shares"] else None,
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


def copy_fitted(classifier: Any) -> Any:
    """Return a copy of a classifier with all that its last fit has at hand: it learns labels at once."""
    own = copy.copy(classifier)
    vars(own).update(vars(classifier))
    return own


def set_goal(expected: dict[str, Any] | None, n_rows: int) -> int:
    """Return how many rows to label, drawn at random, for an interval of about `GOAL_WIDTH` on either side.

    It is set once, from the error that was expected before any label: a goal that moves with the measured
    error would make the error look better than it is.
    """
    error = expected["error"] if expected else None
    p = 0.25 if error is None else min(max(error, 0.05), 0.5)
    n = stats.norm.ppf(0.975) ** 2 * p * (1 - p) / GOAL_WIDTH**2
    return min(max(LEAST_GOAL, min(MOST_GOAL, 10 * math.ceil(n / 10))), n_rows)


def advise(error: dict[str, Any] | None, goal: int, can_learn: bool) -> str:
    """Say how far the goal of labels is, or that it is reached and what more labels would add."""
    if error is None:
        return f"Label {count(goal, 'row')} drawn at random: they measure the error."
    n = error["n"]
    if n < goal:
        return f"{n} of {goal} rows are labelled. Go on to {goal}, whatever the numbers say until then."
    half = (error["high"] - error["low"]) / 2
    gain = 100 * half * (1 - math.sqrt(n / (n + MORE)))
    more = " Labels of doubtful rows can still lower the error." if can_learn else ""
    return (
        f"The goal of {count(goal, 'row')} is reached: you can stop. {MORE} more would narrow the interval "
        f"by {gain:.1f} points on either side.{more}"
    )
