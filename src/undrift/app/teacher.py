"""The teacher of an adapt job: columns of the target files with another model's labels and confidences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import count
from ..inputs import spell_label
from ..method import FEW_TAUGHT
from .domains import JobDomain, check_labels, parse_label
from .job import Job
from .predict import Predictions
from .tables import TableError, list_values, require_column


def check_teacher(job: Job, *, has_cluster: bool) -> None:
    """Refuse options that do not go with a teacher, or that need one."""
    if job.teacher is None and job.teacher_confidence is not None:
        raise TableError("--teacher-confidence needs the column of the teacher's labels: add --teacher COL")
    if job.teacher is not None and has_cluster:
        raise TableError("--teacher needs the rows here, and a cluster leaves them on workers: drop --device")
    if job.teacher is not None and job.use_labels == "both":
        raise TableError("--use-labels both cannot score a teacher: choose score or train")


def read_cells(column: str | None, target: JobDomain) -> list[Any]:
    """Return the cells of a column, None where they are empty: what a teacher says of the rows."""
    assert column is not None
    assert target.frame is not None
    require_column(target.path, list(target.kinds), column)
    return [parse_label(value) for value in list_values(target.frame, column)]


def read_teacher(job: Job, target: JobDomain, classes: Sequence[Any]) -> dict[str, list[Any]]:
    """Return a teacher's labels, spelt like the classes, and confidences, by parameters of `fit`."""
    given = replace(job, sources=[target.path], label=job.teacher or "")
    answers = check_labels(given, [replace(target, labels=read_cells(job.teacher, target))], [])[0]
    names = {_fold(label): label for label in classes}
    for i, answer in enumerate(answers, start=1):
        if answer is not None and _fold(answer) not in names:
            fault = f"row {i} has the label {answer!r}; the classes are {', '.join(map(str, classes[:10]))}"
            raise TableError(f"{target.path}: column {job.teacher!r}: {fault}")
    labels = [None if answer is None else names[_fold(answer)] for answer in answers]
    column = job.teacher_confidence
    return {"teacher": labels} | ({"teacher_confidence": _read_confidences(column, target)} if column else {})


def _fold(label: Any) -> str:
    """Return the same text for labels that differ in case or spaces alone."""
    return " ".join(spell_label(label).split()).casefold()


def _read_confidences(column: str, target: JobDomain) -> list[float]:
    """Return the numbers of a column, NaN for empty cells; refuse values that are no probability."""
    cells = read_cells(column, target)
    numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").tolist()
    for i, (cell, number) in enumerate(zip(cells, numbers, strict=True), start=1):
        if cell is not None and not 0 <= number <= 1:
            fault = f"row {i} has {cell!r}; a confidence is a number from 0 to 1"
            raise TableError(f"{target.path}: column {column!r}: {fault}")
    return numbers


def summarize_teacher(predicted: Predictions, target: JobDomain, noise: float) -> dict[str, Any]:
    """Count a teacher's labels, those that are probably wrong, and rows where the student disagrees.

    With true labels, measure the errors of teacher, student and both on the rows that the teacher labelled.
    """
    taught = [i for i, answer in enumerate(predicted.disagrees) if answer is not None]
    truth = target.truth if target.n_scored else np.full((target.n_rows, 2), None)
    scored = [i for i in taught if truth[i, 0] is not None]
    entry: dict[str, Any] = {"n_labels": len(taught), "n_disagreeing": sum(map(bool, predicted.disagrees))}
    entry |= {"noise": noise, "n_scored": len(scored)}
    entry["n_probably_wrong"] = round(noise * len(taught)) if len(taught) >= FEW_TAUGHT else None
    views = {"teacher": target.teacher["teacher"], "student": predicted.student, "both": predicted.labels}
    for name, labels in views.items() if scored else ():
        wrong = np.array([spell_label(labels[i]) != spell_label(truth[i, 0]) for i in scored])
        entry[f"{name}_error"] = float(np.average(wrong, weights=truth[scored, 1].astype(float)))
    return entry


def describe_teachers(summary: dict[str, Any]) -> Iterator[str]:
    """Say of every target how many labels the teacher gave, and how many are probably wrong."""
    for target in [entry for entry in summary["targets"] if "teacher" in entry]:
        said = target["teacher"]
        name, n_wrong = Path(target["file"]).name, said["n_probably_wrong"]
        wrong = (
            "too few to say how many are wrong" if n_wrong is None else f"about {n_wrong:,} probably wrong"
        )
        line = f"Teacher of {name}: {count(said['n_labels'], 'label')}, {wrong}; "
        line += f"the student disagrees on {count(said['n_disagreeing'], 'row')} (teacher_disagrees)."
        if said["n_scored"]:
            errors = [f"{who} {said[f'{who}_error']:.1%}" for who in ("teacher", "student", "both")]
            line += f" Wrong on {count(said['n_scored'], 'labelled row')}: {', '.join(errors)}."
        yield line
