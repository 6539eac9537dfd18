"""Labels of target rows: those of a file, matched to rows by text, and those of a teacher, another model.

Two texts are the same if they differ in whitespace and case alone. No row is scored whose label, or whose
duplicate's label, was learnt from; rows that were asked for to improve predictions are never scored.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..core import Rows as Matrix
from ..core import stack_rows
from ..errors import count, warn
from ..inputs import gather_rows, spell_label
from ..method import MSDAClassifier, list_row_keys
from ..text import hash_text
from .classes import check_labels
from .domains import JobDomain, open_rows, parse_label
from .job import AdaptJob
from .tables import Table, TableError, write_text

SAMPLED, WEIGHT = "sampled", "weight"
ESTIMATE, PREDICTIONS = "estimate", "predictions"  # rows drawn at random; rows that are not measured
FEW_MEASURED = 20  # labels below which no error is measured
N_FOLDS = 5  # of cross-fitting


class GivenLabel(NamedTuple):
    """The label of a text, its purpose, and the number of rows that it represents in an estimate."""

    text: str
    label: Any
    sampled: str | None = None
    weight: float = 1.0


def read_labels(
    table: Table,
    text: Sequence[str],
    label: Sequence[str],
    classes: Sequence[Any],
    merges: Mapping[str, str] | None = None,
) -> dict[int, GivenLabel]:
    """Read labelled texts, by their hash; of the columns that `label` names the first there is counts.

    Texts with contradicting labels are left out, and a warning counts them. `merges` joins labels.
    """
    path = table.path
    column = next((name for name in label if name in table.columns), label[0])
    names = {spell_label(each): each for each in classes}
    labels: dict[int, GivenLabel] = {}
    rows: dict[int, int] = {}  # of every text, the last row that has it
    contradicting: dict[int, str] = {}
    for n_rows, given in enumerate(_list_labels(table, text, column), start=1):
        if given.label is None:
            continue
        spelt = spell_label(given.label)
        known = names.get((merges or {}).get(spelt, spelt))
        if known is None:
            raise _refuse_label(f"{path}: row {n_rows} has the label {given.label!r}", classes)
        key = hash_text(given.text)
        if key in labels and labels[key].label != known:
            shown = " ".join(given.text.split())[:40]
            contradicting[key] = f"rows {rows[key]} and {n_rows} ({shown!r})"
        labels[key], rows[key] = given._replace(label=known), n_rows
    for key in contradicting:
        del labels[key]
    if contradicting:
        some = ", ".join(list(contradicting.values())[:3])
        n_texts = count(len(contradicting), "text")
        what = f"{path}: {n_texts} with contradicting labels left out: {some}"
        if not labels:
            raise TableError(what)
        warn(what)
    if not labels:
        raise TableError(f"{path}: no row has a label in column {column!r}")
    return labels


def _refuse_label(what: str, classes: Sequence[Any]) -> TableError:
    """Return the error of a label that is no class."""
    return TableError(f"{what}; the classes are {', '.join(map(str, classes[:10]))}")


def _list_labels(table: Table, text: Sequence[str], label: str) -> Iterator[GivenLabel]:
    """Yield every row's text and label."""
    table.require_column([*text, label])
    rows = (row for frame in table for row in frame.to_dict("records"))
    for n_rows, row in enumerate(rows, start=1):
        sampled, given_weight = row.get(SAMPLED), row.get(WEIGHT)
        texts = [write_text(row[name]) for name in text]
        try:
            weight = float(write_text(given_weight) or "nan")
        except ValueError:
            fault = f"the column {WEIGHT!r} holds {given_weight!r}, which is not a number"
            raise TableError(f"{table.path}: row {n_rows}: {fault}") from None
        yield GivenLabel(
            "\n".join(filter(None, texts)),
            parse_label(row[label]),
            write_text(sampled).strip() or None,
            1.0 if np.isnan(weight) else weight,
        )


def attach_labels(
    job: AdaptJob, sources: Sequence[JobDomain], targets: Sequence[JobDomain], classes: Sequence[Any]
) -> tuple[list[JobDomain], list[str]]:
    """Return the targets with all labels of the job, and notes on labels that were left out."""
    given: dict[int, GivenLabel] = {}
    if job.labels is not None:
        columns = [name for name in (job.target_label, "label", job.label) if name]
        given = read_labels(open_rows(job.labels, job.reading), job.target_text, columns, classes, job.merges)
    source_keys = {
        key
        for source in sources
        for key, label in zip(source.keys, source.labels or [], strict=True)
        if label is not None
    }
    matched, notes = [], []
    for target in targets:
        matched.append(_match_labels(target, given, source_keys))
        n_twice = sum(
            label is not None and key in source_keys
            for key, label in zip(target.keys, matched[-1].labels or [], strict=True)
        )
        if n_twice:
            twice = f"{count(n_twice, 'labelled row')} of {target.path.name} not scored"
            notes.append(f"{twice}: in the source too, whitespace and case aside")
    n_lost = len(given.keys() - {key for target in targets for key in target.keys})
    if given and n_lost == len(given):
        n_texts = count(len(given), "labelled text")
        raise TableError(f"{job.labels}: {n_texts}, none in a target file")
    if n_lost:
        n_texts = count(n_lost, "labelled text")
        notes.append(f"{n_texts} of {job.labels} left out: in no target file")
    return matched, notes


def _match_labels(target: JobDomain, given: dict[int, GivenLabel], source_keys: set[int]) -> JobDomain:
    """Give rows the labels of the file, by their texts, and weights in a score.

    Rows that stand in the labelled source too, and rows asked for to improve predictions, have the weight 0.
    If rows were drawn for an estimate, the others have it too; rows of one text share its weight.
    """
    n_equal = Counter(target.keys)
    is_sample = any(label.sampled == ESTIMATE for label in given.values())
    labels, weights = list(target.labels or [None] * target.n_rows), []
    for i, key in enumerate(target.keys):
        weight, answer = 0.0 if is_sample else 1.0, given.get(key)
        if answer is not None:
            labels[i] = answer.label
            is_counted = answer.sampled == ESTIMATE if is_sample else answer.sampled != PREDICTIONS
            weight = answer.weight / (n_equal[key] if is_sample else 1) if is_counted else 0.0
        weights.append(0.0 if key in source_keys else weight)
    return replace(target, labels=labels, weights=weights)


def read_teacher(job: AdaptJob, target: JobDomain, classes: Sequence[Any]) -> dict[str, list[Any]]:
    """Return a teacher's labels, spelt like the classes, and confidences, by parameters of `fit`."""
    answers = check_labels([target.path], job.teacher or "", target.cells[job.teacher])[0]
    names = {_fold(label): label for label in classes}
    for i, answer in enumerate(answers, start=1):
        if answer is not None and _fold(answer) not in names:
            where = f"{target.path}: column {job.teacher!r}: row {i}"
            raise _refuse_label(f"{where} has the label {answer!r}", classes)
    labels = [None if answer is None else names[_fold(answer)] for answer in answers]
    column = job.teacher_confidence
    return {"teacher": labels} | ({"teacher_confidence": _read_confidences(column, target)} if column else {})


def _fold(label: Any) -> str:
    """Return the same text for labels that differ in case or spaces alone."""
    return " ".join(spell_label(label).split()).casefold()


def _read_confidences(column: str, target: JobDomain) -> list[float]:
    """Return the numbers of a column, NaN for empty cells; refuse values that are no probability."""
    cells = target.cells[column]
    numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").tolist()
    for i, (cell, number) in enumerate(zip(cells, numbers, strict=True), start=1):
        if cell is not None and not 0 <= number <= 1:
            fault = f"row {i} has {cell!r}; a confidence is a number from 0 to 1"
            raise TableError(f"{target.path}: column {column!r}: {fault}")
    return numbers


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """Labelled rows of all targets, to learn from."""

    X: Matrix
    y: np.ndarray  # (n,) classes
    names: np.ndarray  # (n,) of the targets
    keys: Sequence[int]  # of the texts
    weights: np.ndarray  # (n,) in a score

    @classmethod
    def of_target(cls, target: str, X: Matrix, given: Mapping[int, GivenLabel]) -> TrainingLabels:
        """Return labels of one target, given by the hashes of their texts; `X` are the rows of these."""
        y = np.array([each.label for each in given.values()], dtype=object)
        weights = np.array([each.weight for each in given.values()])
        return cls(X, y, np.full(len(y), target, dtype=object), list(given), weights)


def gather_labels(
    targets: Sequence[JobDomain], rows: Sequence[Any], classes: Sequence[Any]
) -> TrainingLabels:
    """Bring the labelled rows of the targets here; texts with contradicting labels are left out.

    `rows` has the rows of every target, here or on a cluster.
    """
    spellings = {spell_label(label): label for label in classes}
    tables = []
    for target in targets:
        weights = target.weights or [1.0] * target.n_rows
        table = pd.DataFrame({"key": target.keys, "y": target.labels, "weight": weights, "name": target.name})
        tables.append(table[table["y"].notna()].assign(y=lambda t: t["y"].map(spell_label)))
        unknown = tables[-1]["y"][~tables[-1]["y"].isin(spellings)]
        if len(unknown):
            what = f"{target.path}: the label {unknown.iloc[0]!r} cannot be learnt"
            raise _refuse_label(what, classes)
    n_answers = pd.concat(tables).groupby("key")["y"].nunique()
    odd = n_answers.index[n_answers > 1]
    if len(odd):
        warn(f"{count(len(odd), 'text')} with contradicting labels left out")
    tables = [table[~table["key"].isin(odd)] for table in tables]
    parts = [gather_rows(X[t.index.to_numpy()]) for X, t in zip(rows, tables, strict=True) if len(t)]
    if not parts:
        files = ", ".join(str(target.path) for target in targets)
        raise TableError(f"{files}: no row has a label to learn from")
    whole = pd.concat(tables)
    y = np.array([spellings[label] for label in whole["y"]], dtype=object)
    names, weights = whole["name"].to_numpy(dtype=object), whole["weight"].to_numpy(dtype=float)
    return TrainingLabels(stack_rows(parts), y, names, whole["key"].tolist(), weights)


def key_rows(X: Matrix, dtype: np.dtype | None = None) -> list[tuple[int | bytes, ...]]:
    """Return a key for every row: rows with equal content, as numbers of `dtype`, have equal keys."""
    return list_row_keys(X.astype(dtype or X.dtype), np.zeros(X.shape[0], dtype=int))


def learn_labels(
    classifier: MSDAClassifier, labels: TrainingLabels, rows: Any = slice(None)
) -> MSDAClassifier:
    """Let a fitted classifier learn the labels of some of the rows; those of equal rows must agree."""
    X, y, names = labels.X[rows], labels.y[rows], labels.names[rows]
    for name in dict.fromkeys(names.tolist()):
        mine = np.flatnonzero(names == name)
        groups = pd.factorize(pd.Series(key_rows(X[mine])))[0]
        n_answers = pd.Series(y[mine]).groupby(groups).transform("nunique")
        kept = mine[(n_answers == 1).to_numpy()]
        if len(kept):
            classifier.update(X[kept], y[kept], target=name)
    return classifier


def cross_fit(classifier: MSDAClassifier, labels: TrainingLabels) -> np.ndarray:
    """Predict every row by a classifier that has learnt the labels of other folds; a text is in one fold."""
    distinct, place = np.unique(np.array(labels.keys, dtype=np.uint64), return_inverse=True)
    fold = (np.random.default_rng(0).permutation(len(distinct)) % min(N_FOLDS, len(distinct)))[place]
    predicted = np.empty(len(fold), dtype=object)
    for number in np.unique(fold):
        out = np.flatnonzero(fold == number)
        rest = np.flatnonzero(fold != number)
        fitted = learn_labels(copy.copy(classifier), labels, rest) if len(rest) else classifier
        for name in set(labels.names[out].tolist()):
            mine = out[labels.names[out] == name]
            predicted[mine] = fitted.predict(labels.X[mine], target=name)
    return predicted
