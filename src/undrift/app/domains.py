"""Files of a job, read as domains; labels and outputs, checked before the work starts."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import UndriftError, count, warn
from ..inputs import spell_label
from ..method import check_shares
from ..results import Label
from ..text import hash_text
from .job import AdaptJob, ShowStage
from .options import Reading
from .streams import StreamPath
from .tables import (
    Style,
    Table,
    TableError,
    check_file,
    check_table,
    common_delimiter,
    list_texts,
    list_values,
    open_table,
    shard_paths,
)

MISSING = ("", "nan", "<na>")  # cells without a label, in small letters: as pandas writes them as text
WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")  # that fits 64 bits
RARE_CLASS = 0.05  # share of another class's labels below which a similar name may be a typo
LEAST_LABELLED, LEAST_TARGET = 20, 30  # rows below which a fit is refused
TEXT_WORDS = 3  # mean number of words from which a column counts as text
NO_NAMES = ("n/a", "n.a.", "na", "null", "none", "-", "--", "?", "missing", "unknown")  # of a class
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


def style_of(reading: Reading, tables: Sequence[Table]) -> Style:
    """Return how the rows of these tables are written as CSV: with their own delimiter."""
    return Style(common_delimiter(table.delimiter for table in tables), reading.safe_cells)


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


def merge_labels(domain: JobDomain, columns: Sequence[str | None], merges: Mapping[str, str]) -> JobDomain:
    """Return a domain with the labels in some columns joined into classes."""

    def merge(labels: list[Any]) -> list[Any]:
        return [label if label is None else merges.get(spell_label(label), label) for label in labels]

    cells = {name: merge(each) if name in columns else each for name, each in domain.cells.items()}
    return replace(domain, labels=None if domain.labels is None else merge(domain.labels), cells=cells)


def check_merges(merges: Mapping[str, str], domains: Sequence[JobDomain]) -> list[str]:
    """Refuse labels to join that no row has; return a note on the classes."""
    found = {spell_label(label) for each in domains for label in each.labels or [] if label is not None}
    unknown = [label for label in merges if label not in found]
    if unknown:
        listed = ", ".join(sorted(found)[:10])
        raise UndriftError(f"--merge: no row has the label {unknown[0]!r}; the labels are {listed}")
    names = dict.fromkeys(merges.values())
    joined = (f"{', '.join(label for label in merges if merges[label] == name)} = {name}" for name in names)
    return [f"labels joined: {'; '.join(joined)}"] if merges else []


def unify_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels in one spelling: all whole numbers, or all text; None stays.

    Whole numbers of a text file are numbers too, and 1.0 becomes 1. Where numbers and text are mixed, all
    become text.
    """
    if {type(label) for label in labels if label is not None} == {bool}:
        return list(labels)
    spelt = [None if label is None else spell_label(label) for label in labels]
    if all(text is None or WHOLE_NUMBER.fullmatch(text) for text in spelt):
        return [None if text is None else int(text) for text in spelt]
    return spelt


def list_classes(labels: Iterable[Label | None]) -> list[Label]:
    """Return the classes among labels of one spelling, in order."""

    def place(label: Label) -> tuple[float, str]:
        return (0.0, label) if isinstance(label, str) else (label, "")

    return sorted({label for label in labels if label is not None}, key=place)


def tidy_labels(labels: Sequence[Any]) -> tuple[dict[Any, Any], list[str]]:
    """Return the spelling that replaces each label, and a note on labels that differ in case or spaces."""
    counts = Counter(label for label in labels if isinstance(label, str))
    spellings: dict[str, list[str]] = {}
    for label, _ in counts.most_common():
        spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
    several = [names for names in spellings.values() if len(names) > 1]
    shown = "; ".join(", ".join(f"{name!r} ({counts[name]:,})" for name in names) for names in several[:3])
    notes = [f"labels that differ in case or spaces alone count as one: {shown}"] if several else []
    return {name: names[0] for names in several for name in names}, notes


def warn_of_similar(counts: Counter[Any]) -> None:
    """Warn of two classes that look like two spellings of one: a name and its beginning, or a rare typo."""
    names = sorted(label for label, _ in counts.most_common(50) if isinstance(label, str))
    pairs = [
        f"{first!r} ({counts[first]:,}) and {second!r} ({counts[second]:,})"
        for first, second in combinations(names, 2)
        if _is_beginning(first, second) or _is_typo(first, second, counts)
    ]
    if pairs:
        shown = "; ".join(pairs[:3])
        warn(f"labels that look alike count as two classes: {shown}. If they are one class, spell them alike")


def _is_beginning(first: str, second: str) -> bool:
    """Tell whether a name is the beginning of another, as in neg and negative, or in 5 and 5 stars."""
    is_short = len(first) >= 3 and first[-1].isalpha() and second.casefold().startswith(first.casefold())
    return is_short or (first.isdigit() and second.startswith(f"{first} "))


def _is_typo(first: str, second: str, counts: Counter[Any]) -> bool:
    """Tell whether a rare name has nearly the letters of a frequent one; digits make another name."""
    few, many = sorted((counts[first], counts[second]))
    digits = [[letter for letter in name if letter.isdigit()] for name in (first, second)]
    is_rare = few < RARE_CLASS * many and digits[0] == digits[1]
    return is_rare and SequenceMatcher(None, first, second).ratio() > 0.85


def check_labels(
    files: Sequence[Path], column: str, sources: Sequence[JobDomain], targets: Sequence[JobDomain]
) -> tuple[list[Any], dict[Any, Any], list[str]]:
    """Return the labels of all source rows, file by file, None for rows without.

    Also the spellings that were replaced, and notes on them. Refuses labels that make no classes, and files
    of too few rows to learn from.
    """
    labels = unify_labels(list(chain.from_iterable(source.labels or [] for source in sources)))
    rewritten, notes = tidy_labels(labels)
    labels = [rewritten.get(label, label) for label in labels]
    counts = Counter(label for label in labels if label is not None)
    n_labels, fault = counts.total(), None
    if len(counts) < 2:
        what = f"the label {next(iter(counts))!r} alone" if counts else "no label"
        fault = f"has {what}; at least two classes are needed"
    elif len(counts) > max(50, n_labels / 2):
        fault = f"has {len(counts):,} different labels in {n_labels:,} rows; is it the column of labels?"
    elif n_labels < LEAST_LABELLED:
        fault = f"has {count(n_labels, 'label')}; at least {LEAST_LABELLED} are needed: label more rows"
    if fault:
        raise TableError(f"{', '.join(map(str, files))}: column {column!r} {fault}")
    warn_of_similar(counts)
    for name in [label for label in counts if str(label).casefold() in NO_NAMES]:
        what = f"column {column!r}: the label {name!r} ({count(counts[name], 'row')}) counts as a class"
        warn(f"{what}: if these rows have no label, leave their cells empty")
    for target in targets:
        if target.n_rows < LEAST_TARGET:
            raise TableError(
                f"{target.path} has {count(target.n_rows, 'row')}; a target needs at least {LEAST_TARGET}: "
                "add unlabelled rows of the same kind, or predict them with a saved model"
            )
    return labels, rewritten, notes


def check_texts(domains: Sequence[JobDomain], text: Sequence[str], option: str) -> None:
    """Refuse files without any text in the columns of the text; warn where half of the rows have none."""
    for domain in domains:
        where = f"{domain.path}: column {' + '.join(text)}"
        if domain.n_empty == domain.n_rows:
            raise TableError(f"{where} is empty in every row; name the text with {option} COL")
        if domain.n_empty > MANY_EMPTY * domain.n_rows:
            n_empty = f"{domain.n_empty:,} of {count(domain.n_rows, 'row')}"
            warn(f"{where} is empty in {n_empty}: is it the text? Else name it with {option} COL")


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


def match_shares(job: AdaptJob, classes: Sequence[Any]) -> dict[str, dict[Any, float]] | Literal["source"]:
    """Return the class shares that the job is given, by target and class: 1, 1.0 and "1" are the same class.

    Refuses shares that do not sum to one, are negative, or name other classes.
    """
    if job.target_shares == "source":
        return "source"
    names = {spell_label(label): label for label in classes} | {str(label): label for label in classes}
    matched = []
    for given in job.target_shares:
        labels = [names.get(str(name), names.get(spell_label(name), name)) for name in given]
        matched.append(dict(zip(labels, given.values(), strict=True)))
    matched *= len(job.targets) if len(matched) == 1 else 1
    shares = dict(zip(name_domains(job.targets), matched, strict=True))
    try:
        check_shares(shares, np.array(classes, dtype=object), list(shares))
    except ValueError as error:
        raise TableError(f"--{str(error).replace('_', '-', 1)}") from None
    return shares


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
