"""The files of a job, read whole: documents and labels, with whatever is wrong said in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from .._inputs import spell_label
from ..tables import Table, TableError, open_table

Tell = Callable[[str, float | None], None]  # what is being done, and which share of it is


@dataclass(frozen=True)
class AdaptJob:
    """What to adapt: the files and columns, as the user named them."""

    sources: list[Path]
    targets: list[Path]
    text: str
    label: str
    out: Path
    model: Path | None = None
    target_label: str | None = None
    encoding: str | None = None
    skip_bad: bool = False
    prefix: str = ""  # in front of the names of the columns added
    report: Path | None = None


@dataclass(frozen=True)
class SourceFile:
    """Documents of one source file."""

    table: Table
    documents: list[str]
    labels: list[Any]  # None where the file has none


@dataclass(frozen=True)
class TargetFile:
    """Documents of one target file; `truth` is for scoring alone."""

    table: Table
    documents: list[str]
    truth: list[Any] | None
    has_label_column: bool


def name_domains(paths: Sequence[Path]) -> list[str]:
    """Name every file as the column `domain` does: its name, or its path where two have one name."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def silent(stage: str, share: float | None = None) -> None:
    """Tell nobody."""


def read_source(path: Path, job: AdaptJob, tell: Tell = silent) -> SourceFile:
    """Read a source file whole."""
    table = open_table(path, text=job.text, encoding=job.encoding, skip_bad=job.skip_bad)
    table.require_column(job.label)
    documents: list[str] = []
    labels: list[Any] = []
    for rows in table:
        documents += rows.texts(job.text)
        labels += [label_of(value) for value in rows.column(job.label)]
        tell(f"reading {path.name}", rows.share_read)
    if not documents:
        table.require_rows()
    return SourceFile(table, documents, labels)


def read_target(path: Path, job: AdaptJob, tell: Tell = silent) -> TargetFile:
    """Read a target file whole."""
    table = open_table(path, text=job.text, encoding=job.encoding, skip_bad=job.skip_bad)
    if job.target_label is not None:
        table.require_column(job.target_label)
    documents: list[str] = []
    truth: list[Any] = []
    for rows in table:
        documents += rows.texts(job.text)
        truth += [label_of(value) for value in rows.column(job.target_label)] if job.target_label else []
        tell(f"reading {path.name}", rows.share_read)
    if not documents:
        table.require_rows()
    has_label_column = job.target_label is None and job.label in table.columns
    return TargetFile(table, documents, truth if job.target_label else None, has_label_column)


def label_of(value: Any) -> Any:
    """Return a label, None where the cell is empty; text is stripped, and what is no scalar is text."""
    if isinstance(value, str):
        return value.strip() or None
    if value is None or value != value:
        return None
    return value if isinstance(value, bool | int | float) else str(value)


def one_kind(labels: Sequence[Any]) -> list[Any]:
    """Return labels as they are if all are whole numbers or all text, else as text; None stays.

    Where numbers and text are mixed, 1.0 and "1" become one label.
    """
    kinds = {type(label) for label in labels if label is not None}
    if kinds <= {int, float} and all(float(label).is_integer() for label in labels if label is not None):
        return [None if label is None else int(label) for label in labels]
    if len(kinds) == 1 and kinds != {float}:
        return list(labels)
    spell = str if kinds == {float} else spell_label
    return [None if label is None else spell(label) for label in labels]


def checked_labels(job: AdaptJob, of_files: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the labels of all source rows, file by file, None for rows without."""
    labels = one_kind(list(chain.from_iterable(of_files)))
    counts = Counter(label for label in labels if label is not None)
    names = ", ".join(str(path) for path in job.sources)
    if not counts:
        raise TableError(
            f"{names}: no row has a label in column {job.label!r}; at least two classes are needed"
        )
    if len(counts) == 1:
        raise TableError(
            f"{names}: every label in column {job.label!r} is {next(iter(counts))!r}; "
            "at least two classes are needed"
        )
    if len(counts) > max(50, counts.total() / 2):
        raise TableError(
            f"{names}: column {job.label!r} has {len(counts):,} different labels in {counts.total():,} rows; "
            "is it the column of labels?"
        )
    return labels
