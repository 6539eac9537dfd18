"""Files of a job, read as domains; texts and outputs, checked before the work starts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import UndriftError, count, warn
from ..text import hash_text
from .job import AdaptJob, ShowStage
from .options import Reading
from .streams import StreamPath
from .tables import (
    Table,
    TableError,
    check_file,
    check_table,
    list_texts,
    list_values,
    open_table,
    shard_paths,
)

MISSING = ("", "nan", "<na>")  # cells without a label, in small letters: as pandas writes them as text
TEXT_WORDS = 3  # mean number of words from which a column counts as text
FEW_VALUES = 0.1  # share of different values up to which a column of few words looks like labels
MANY_EMPTY = 0.5  # share of rows without a text from which that is said
TEXT_LENGTH = 20  # mean number of characters from which it does where words are not separated


@dataclass(frozen=True, eq=False)
class JobDomain:
    """One file of a job, or all files that a pattern matches, as one domain."""

    path: Path
    name: str  # as the model and the column `domain` call it
    kinds: dict[str, set[Any]]  # the columns, and the types of their cells
    n_rows: int
    n_empty: int  # documents without text
    n_bad: int  # rows that could not be read
    labels: list[Any] | None  # None where a row has none; None altogether if no label column was asked for
    documents: Sequence[str]  # all of them, or, on a cluster, the first of every shard
    frame: pd.DataFrame | None = None  # all columns, to be written with predictions; None on a cluster
    weights: Sequence[float] | None = None  # of the labels in a score; 0 for rows that may not be scored
    stored_keys: Sequence[int] | None = None  # `keys`, where the documents are not here
    cells: dict[str | None, list[Any]] = field(default_factory=dict)  # of the columns of labels
    teacher: dict[str, list[Any]] = field(default_factory=dict)  # parameters of `decision_function`
    delimiter: str = ","  # of a CSV file

    @cached_property
    def keys(self) -> Sequence[int]:
        """A number of every text, which texts share that differ in whitespace and case alone."""
        return [hash_text(text) for text in self.documents] if self.stored_keys is None else self.stored_keys

    @property
    def truth(self) -> np.ndarray:
        """Label of every row that may be scored, None for others, its weight, and `said`."""
        weights = self.weights or [1.0] * self.n_rows
        pairs = [[y if w else None, w] for y, w in zip(self.labels or [], weights, strict=True)]
        return np.hstack([np.array(pairs, dtype=object), self.said])

    @property
    def said(self) -> np.ndarray:
        """What a teacher says of every row, by the parameters of `teacher`; of shape (n_rows, 0 to 2)."""
        return np.array(list(self.teacher.values()), dtype=object).reshape(-1, self.n_rows).T

    @property
    def n_scored(self) -> int:
        """Labelled rows that may be scored."""
        return sum(label is not None for label in self.truth[:, 0]) if self.labels else 0

    @property
    def n_labelled(self) -> int:
        """Rows that have a label."""
        return sum(label is not None for label in self.labels or [])


def open_rows(
    path: Path,
    reading: Reading,
    text: Sequence[str] = (),
    columns: Sequence[str] = (),
    option: str = "--text",
) -> Table:
    """Open a file of rows; the columns of `text`, which an option names, and `columns` must be there."""
    return open_table(
        path,
        text=text,
        remedy=f"name the text with {option} COL",
        columns=columns,
        encoding=reading.encoding,
        sheet=reading.sheet,
        skip_bad=reading.skip_bad,
    )


def read_domains(
    paths: Sequence[Path],
    reading: Reading,
    text: Sequence[str],
    show_stage: ShowStage,
    *labels: str | None,
    option: str = "--text",
) -> list[JobDomain]:
    """Read files whole: documents, all columns, and columns of labels, the domain's own first."""
    domains, columns = [], [*filter(None, labels)]
    for path, name in zip(paths, name_domains(paths), strict=True):
        table = open_rows(path, reading, text, [*filter(None, labels[:1])], option)
        table.require_column(columns)  # a teacher's may be in some files of a pattern alone
        frames = []
        for block in table:
            frames.append(block)
            show_stage(f"reading {path.name}", table.share_read)
        if not frames:
            table.require_rows()
        frame = pd.concat(frames, ignore_index=True)
        documents = list_texts(frame, text)
        cells: Any = {column: [*map(parse_label, list_values(frame, column))] for column in columns}
        n_empty = sum(not document.strip() for document in documents)
        own = cells.get(labels[0]) if labels else None
        facts = dict(table.kinds), len(documents), n_empty, table.n_bad, own, documents, frame
        domains.append(JobDomain(path, name, *facts, cells=cells, delimiter=table.delimiter))
    return domains


def settle_text(job: AdaptJob) -> AdaptJob:
    """Return the job with the columns of the text of sources and targets, found where they are not named.

    Where neither is named, and a target lacks the column of the source, its own only column of text is taken.
    """
    others, first = [job.label, *job.target_labels], (job.sources or job.targets)[0]
    if job.sources and job.label is None:
        listed = ", ".join(open_rows(first, job.reading).columns)
        raise UndriftError(f"Missing option '--label': {first} has the columns {listed}")
    given = tuple(job.text) or (() if job.sources else tuple(job.target_text))
    text = given or find_text(first, job.reading, others)
    target_text = tuple(job.target_text) or text
    if job.sources and not (job.text or job.target_text):
        columns = open_rows(job.targets[0], job.reading).columns
        is_there = set(text) <= set(columns)
        target_text = text if is_there else find_text(job.targets[0], job.reading, others, "--target-text")
    return replace(job, text=text, target_text=target_text)


def find_text(
    path: Path, reading: Reading, others: Sequence[str | None], option: str = "--text"
) -> tuple[str, ...]:
    """Return the only column of a file that holds text, `others` aside; refuse where there is not one."""
    table = open_rows(path, reading)
    frame = next(iter(table), None)
    if frame is None:
        table.require_rows()
        return ()
    columns = {name: list_texts(frame, name) for name in table.columns if name not in others}
    if not any(cell.strip() for cells in columns.values() for cell in cells):
        raise TableError(f"{path} has no text: every row is empty")
    texts = [name for name, cells in columns.items() if _holds_text(cells)]
    if len(texts) != 1:
        what = f"columns of text: {', '.join(texts)}" if texts else f"no column of text: {', '.join(columns)}"
        raise TableError(f"{path} has {what}; name the text with {option} COL")
    return (texts[0],)


def _holds_text(cells: Sequence[str]) -> bool:
    """Tell whether cells hold sentences rather than names, numbers or labels."""
    filled = [cell for cell in cells if cell.strip()]
    n_words = sum(len(cell.split()) for cell in filled)
    return bool(filled) and (
        n_words >= TEXT_WORDS * len(filled)
        or (sum(map(len, filled)) >= TEXT_LENGTH * len(filled) and not "".join(filled).isascii())
    )


def parse_label(value: Any) -> Any:
    """Return the label in a cell, None where there is none; text is stripped, other objects become text."""
    if isinstance(value, str):
        value = value.strip()
        return None if value.lower() in MISSING else value
    if value is None or value != value:
        return None
    return value if isinstance(value, bool | int | float) else str(value)


def check_texts(domains: Sequence[JobDomain], text: Sequence[str], option: str) -> None:
    """Refuse files without any text in the columns of the text.

    Warns where half of the rows have none, and where the texts look like labels.
    """
    for domain in domains:
        where = f"{domain.path}: column {' + '.join(text)}"
        if domain.n_empty == domain.n_rows:
            raise TableError(f"{where} is empty in every row; name the text with {option} COL")
        if domain.n_empty > MANY_EMPTY * domain.n_rows:
            n_empty = f"{domain.n_empty:,} of {count(domain.n_rows, 'row')}"
            warn(f"{where} is empty in {n_empty}: is it the text? Else name it with {option} COL")
        filled = [cell for cell in domain.documents if cell.strip()]
        values = Counter(filled)
        if len(values) <= FEW_VALUES * len(filled) and not _holds_text(filled):
            shown = ", ".join(repr(value) for value, _ in values.most_common(3))
            what = f"looks like labels ({count(len(values), 'value')}, such as {shown})"
            warn(f"{where} {what}: is it the text? Else name it with {option} COL")


def warn_of_repeated(job: AdaptJob) -> None:
    """Refuse a file that is given twice on one side; warn of one that is source and target."""
    sources, targets = ([*chain.from_iterable(map(_list_files, each))] for each in (job.sources, job.targets))
    for option, paths in (("--source", sources), ("--target", targets)):
        counts = Counter(map(os.path.realpath, paths))
        twice = next((path for path in paths if counts[os.path.realpath(path)] > 1), None)
        if twice is not None:
            raise UndriftError(f"{option} has {twice} twice: give it once")
    taken = set(map(os.path.realpath, sources))
    both = [str(path) for path in targets if os.path.realpath(path) in taken]
    if both:
        verb = "is" if len(both) == 1 else "are"
        warn(
            f"{', '.join(both)} {verb} source and target: there is nothing to adapt to, and an error "
            "measured there is too low. Give the unlabelled rows as the target"
        )


def name_domains(paths: Sequence[Path]) -> list[str]:
    """Name every target as the column `domain` does: its file name, or its path where two share a name."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def check_job(job: AdaptJob) -> None:
    """Refuse, before the work starts, options of `adapt` that do not go together, and outputs.

    An output is refused that cannot be written or would replace another file.
    """
    n_targets, fault = len(job.targets), None
    n_shares = 0 if job.target_shares == "source" else len(job.target_shares)
    files = [*job.sources, *job.targets, *filter(None, [job.labels])]
    if job.out is None and not job.dry_run:
        fault = "Missing option '--out'."
    elif job.on_cluster and any(isinstance(path, StreamPath) for path in (*files, job.out)):
        fault = "workers of --device cannot read or write -; give files"
    elif job.on_cluster and job.report is not None:
        fault = "--report needs the documents here, and a cluster leaves them on workers: drop it"
    elif job.target_shares == "source" and not job.sources:
        fault = "--target-shares same needs a source: add --source FILE, or give the shares"
    elif job.bridge and job.on_cluster:
        fault = "--bridge needs the documents here, and a cluster leaves them on workers: drop --device"
    elif job.bridge and job.teacher is not None:
        fault = "--bridge makes a teacher itself: drop --teacher"
    elif n_shares > 1 and n_shares != n_targets:
        times = f"--target-shares is given {n_shares} times and --target {n_targets} times"
        fault = f"{times}: give it once for all, or once for each --target, in their order"
    elif job.teacher is None and job.teacher_confidence is not None:
        fault = "--teacher-confidence needs the column of the teacher's labels: add --teacher COL"
    elif job.teacher is not None and job.use_labels == "both":
        fault = "--use-labels both cannot score a teacher: choose score or train"
    elif job.use_labels != "score" and not (job.target_label or job.labels):
        fault = f"--use-labels {job.use_labels} needs labels: add --labels FILE or --target-label COL"
    if fault:
        raise UndriftError(fault)
    warn_of_repeated(job)
    for path in filter(None, (job.out, job.model, job.distilled, job.report)):
        refuse_overwriting(path, files)
        files.append(path)
        if path is job.out:
            check_table(path)
        else:
            check_file(path)


def _list_files(path: Path) -> list[Path]:
    """List the files that a pattern matches, or the path itself where none does."""
    try:
        return shard_paths(path)
    except TableError:
        return [path]


def refuse_overwriting(out: Path, others: Sequence[Path]) -> None:
    """Raise if writing `out` would replace one of the other files of the same job."""
    for other in chain.from_iterable(_list_files(path) for path in others):
        if os.path.realpath(out) == os.path.realpath(other):
            raise TableError(f"{out} would replace another file of this job; give it another name")
