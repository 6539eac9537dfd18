"""What a job is given: files read as domains, labels checked, outputs checked before the work starts."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._inputs import spell_label
from ..classifier import check_shares
from ..tables import (
    NumberColumns,
    Rows,
    Table,
    TableError,
    check_writable,
    open_table,
    shard_paths,
    union_of,
    with_added,
)
from ..text import hash_text, parse_numbers

ShowStage = Callable[[str, float | None], None]  # name of the stage, and the share of it that is done
Watch = Callable[[Any], AbstractContextManager[Any]]  # follows a client of a cluster while it has work

MISSING = ("", "nan", "<na>")  # cells without a label, in small letters: as pandas writes them as text


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How the files of a job are read."""

    encoding: str | None = None
    skip_bad: bool = False
    sheet: str | None = None  # of spreadsheets that have several
    embedding: str | None = None  # a column of lists of numbers, which are features beside the terms

    def open_table(self, path: Path, text: str | Sequence[str] | None = None) -> Table:
        """Open a file of the job; the columns of `text` must be there."""
        return open_table(path, text=text, encoding=self.encoding, skip_bad=self.skip_bad, sheet=self.sheet)


@dataclass(frozen=True)
class AdaptJob(ReadOptions):
    """What to adapt: the files and columns, as the user named them."""

    sources: list[Path]
    targets: list[Path]
    text: str | Sequence[str]  # a column, or several, which are joined
    label: str
    out: Path  # with a cluster also a folder, where each shard of the targets gets a file of the same name
    model: Path | None = None
    target_label: str | None = None
    prefix: str = ""  # in front of the names of the columns added
    report: Path | None = None
    probabilities: bool = False  # a column with the probability of each class
    min_confidence: float | None = None  # predictions whose probability is below are left empty
    target_shares: Sequence[dict[str, float]] = ()  # label -> share: one for all targets, or one for each
    distilled: Path | None = None
    features: Sequence[str] = ()  # columns of numbers where there is no text, or patterns; empty: all
    task: str | None = None  # classes, rating or tags; None to guess
    separator: str = "|"  # of tags in a label
    tidy_labels: bool = False  # whether labels that differ in case and spaces alone are one
    labels: Path | None = None  # labelled target rows, matched by text
    use_labels: str = "score"  # labels of the target: "score", "train" or "both"
    update_state: bool = True  # whether the model holds what `update` needs

    @property
    def needs_state(self) -> bool:
        """Tell whether the fitted classifier is updated or asked, now or when it is loaded."""
        is_saved = self.model is not None and self.update_state
        return is_saved or self.report is not None or self.use_labels != "score"


@dataclass(frozen=True)
class DistillJob(ReadOptions):
    """What to distill: the files and columns, as the user named them."""

    model: Path
    targets: list[Path]
    text: str | Sequence[str]
    out: Path
    domains: Sequence[str] = ()  # the model's name for each target; by default the name of its file
    target_label: str | None = None
    terms: Path | None = None  # a table of terms and weights
    pipeline: Path | None = None  # the scikit-learn pipeline, pickled
    device: str | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class JobDomain:
    """One file of a job, or all files that a pattern matches, as one domain."""

    path: Path
    kinds: dict[str, Any]  # the columns, and what each holds
    n_rows: int
    n_empty: int  # documents without text
    n_bad: int  # rows that could not be read
    labels: list[Any] | None  # None where a row has none; None altogether if no label column was asked for
    documents: Sequence[str]  # all of them, or, on a cluster, the first of every shard
    table: Table | None = None  # to read again; on a cluster the workers have the files
    vectors: np.ndarray | None = None  # of shape (n_rows, d): the column of lists, if one was asked for

    weights: Sequence[float] | None = None  # of the labels in a score; 0 for rows that may not be scored
    stored_keys: Sequence[int] | None = None  # `keys`, where the documents are not here

    @cached_property
    def keys(self) -> Sequence[int]:
        """A number of every text, which texts share that differ in whitespace and case alone."""
        return [hash_text(text) for text in self.documents] if self.stored_keys is None else self.stored_keys

    @property
    def truth(self) -> np.ndarray:
        """Label of every row that may be scored, None for others, and weight; of shape (n_rows, 2)."""
        weights = self.weights or [1.0] * self.n_rows
        pairs = [[y if w else None, w] for y, w in zip(self.labels or [], weights, strict=True)]
        return np.array(pairs, dtype=object)

    @property
    def n_scored(self) -> int:
        """Labelled rows that may be scored."""
        return sum(label is not None for label in self.truth[:, 0]) if self.labels else 0

    @property
    def n_labelled(self) -> int:
        """Rows that have a label."""
        return sum(label is not None for label in self.labels or [])


def ignore_stage(stage: str, share: float | None = None) -> None:
    """Show nothing."""


def read_domain(path: Path, job: Any, label: str | None, show_stage: ShowStage) -> JobDomain:
    """Read a file of a job whole: its documents, and the column `label` if one is named."""
    table = job.open_table(path, job.text)
    if label is not None:
        table.require_column(label)
    embedding = job.embedding
    documents: list[str] = []
    labels: list[Any] = []
    vectors: list[np.ndarray] = []
    for rows in table:
        if embedding is not None:
            vectors.append(read_vectors(table, rows, embedding, len(documents)))
        documents += read_texts(table, rows, job.text, len(documents))
        labels += [] if label is None else map(parse_label, rows.column(label))
        show_stage(f"reading {path.name}", rows.share_read)
    if not documents:
        table.require_rows()
    n_empty = sum(not document.strip() for document in documents)
    kinds, known = dict(table.kinds), None if label is None else labels
    matrix = stack_vectors([path] * len(vectors), vectors) if vectors else None
    return JobDomain(path, kinds, len(documents), n_empty, table.n_bad, known, documents, table, matrix)


def read_texts(table: Table, rows: Rows, text: str | Sequence[str], n_before: int = 0) -> list[str]:
    """Return the documents of some rows; where they are numbers, all of them must be such."""
    documents = rows.texts(text)
    if isinstance(text, NumberColumns):
        try:
            parse_numbers(documents, text, n_before)
        except ValueError as error:
            raise TableError(f"{table.path}: {error}") from None
    return documents


def read_vectors(table: Table, rows: Rows, column: str, n_before: int = 0) -> np.ndarray:
    """Return a column of lists of numbers as a matrix; lists may also be written as JSON in text."""
    table.require_column(column)
    vectors: list[np.ndarray] = []
    for i, value in enumerate(rows.column(column), n_before + 1):
        wanted = len(vectors[0]) if vectors else None
        vectors.append(parse_vector(value, wanted, f"{table.path}: row {i} of column {column!r}"))
    return np.stack(vectors)


def parse_vector(value: Any, width: int | None, where: str) -> np.ndarray:
    """Return a list of numbers, which may be written as JSON, as an array; `width` is how many there are."""
    try:
        numbers = json.loads(value) if isinstance(value, str) else value
        vector = np.array(numbers, dtype=np.float32)
        is_good = isinstance(numbers, list) and vector.ndim == 1 and bool(np.isfinite(vector).all())
    except (TypeError, ValueError):
        is_good = False
    if not is_good or (width is not None and len(vector) != width):
        wanted = f"{width} numbers" if is_good else "numbers"
        raise TableError(f"{where} is no list of {wanted}: {str(value)[:40]}")
    return vector


def stack_vectors(paths: Sequence[Path], matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Return matrices one below the other; they must be equally wide."""
    for path, matrix in zip(paths, matrices, strict=True):
        if matrix.shape[1] != matrices[0].shape[1]:
            raise TableError(
                f"{path} has embeddings of {matrix.shape[1]} numbers and {paths[0]} of "
                f"{matrices[0].shape[1]}: all must come from one model"
            )
    return np.vstack(matrices)


def find_features(job: AdaptJob) -> NumberColumns:
    """Return the columns of numbers that every file has: those that patterns match, or all but the labels."""
    labels, chosen = {job.label, job.target_label}, None
    for path in (*job.sources, *job.targets):
        table = job.open_table(path)
        rows = next(iter(table), None)
        names = [name for name in table.columns if name not in labels]
        if job.features:
            names = [name for name in names if any(fnmatchcase(name, pattern) for pattern in job.features)]
        elif rows is not None:
            names = [name for name in names if _holds_numbers(rows.texts(name))]
        chosen = names if chosen is None else [name for name in chosen if name in names]
        if not chosen:
            what = f"column like {', '.join(job.features)}" if job.features else "column of numbers"
            hint = "name others" if job.features else "name the column of text with --text"
            raise TableError(f"{path} has no {what} besides the labels that all files have: {hint}")
    return NumberColumns(chosen or ())


def _holds_numbers(cells: Sequence[str]) -> bool:
    """Tell whether all cells that are not empty are numbers, and there are such."""
    try:
        return len([float(cell) for cell in cells if cell.strip()]) > 0
    except ValueError:
        return False


def parse_label(value: Any) -> Any:
    """Return the label in a cell, None where there is none; text is stripped, other objects become text."""
    if isinstance(value, str):
        value = value.strip()
        return None if value.lower() in MISSING else value
    if value is None or value != value:
        return None
    return value if isinstance(value, bool | int | float) else str(value)


def unify_labels(labels: Sequence[Any]) -> list[Any]:
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


def check_labels(job: AdaptJob, sources: Sequence[JobDomain]) -> list[Any]:
    """Return the labels of all source rows, file by file, None for rows without."""
    labels = unify_labels(list(chain.from_iterable(source.labels or [] for source in sources)))
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
    return labels


def refuse_many_classes(job: AdaptJob, labels: Sequence[Any]) -> None:
    """Raise where labels are so many that they are hardly classes."""
    counts = Counter(label for label in labels if label is not None)
    if len(counts) > max(50, counts.total() / 2):
        names = ", ".join(str(path) for path in job.sources)
        raise TableError(
            f"{names}: column {job.label!r} has {len(counts):,} different labels in {counts.total():,} rows; "
            "is it the column of labels? (--task rating is for numbers, --task tags for several in a label)"
        )


def name_domains(paths: Sequence[Path]) -> list[str]:
    """Name every target as the column `domain` does: its file name, or its path where two share a name."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def number_rows(sources: Sequence[JobDomain], targets: Sequence[JobDomain]) -> np.ndarray:
    """Return the domain of every row: sources 0, 1, ..., then targets -1, -2, ..."""
    numbers = [*range(len(sources)), *(-1 - i for i in range(len(targets)))]
    return np.repeat(numbers, [domain.n_rows for domain in (*sources, *targets)])


def match_shares(job: AdaptJob, classes: Sequence[Any]) -> list[dict[Any, float]]:
    """Return the class shares that the job is given, by class: 1, 1.0 and "1" name the same one.

    Refuses shares that do not sum to one, are negative, or name other classes.
    """
    names = {spell_label(label): label for label in classes} | {str(label): label for label in classes}
    matched = []
    for given in job.target_shares:
        labels = [names.get(str(name), names.get(spell_label(name), name)) for name in given]
        repeated = [label for label in labels if labels.count(label) > 1]
        if repeated:
            raise TableError(f"target_shares names {repeated[0]!r} twice: {given!r}")
        matched.append(dict(zip(labels, given.values(), strict=True)))
    matched *= len(job.targets) if len(matched) == 1 else 1
    check_shares(matched or None, np.array(classes, dtype=object), len(job.targets))
    return matched


@dataclass(frozen=True)
class AddedColumns:
    """The columns that predictions add: what they are called, and which predictions are left empty."""

    classes: Sequence[Any]
    prefix: str = ""
    has_probability: bool = True  # of the predicted label; models of an early version have none
    has_probabilities: bool = False  # one of each class besides
    has_domain: bool = False
    min_confidence: float | None = None
    has_known_terms: bool = False  # how many terms of a row the model knows
    needs_known_terms: bool = False  # predictions of rows without any are left empty
    kind: str | None = None  # of the predictions, if not that of the classes

    @property
    def kinds(self) -> dict[str, str]:
        """Names of the columns, in order, and what each holds."""
        names = {bool: "bool", int: "int"}
        kinds = {"prediction": self.kind or names.get(type(self.classes[0]), "str"), "score": "float"}
        kinds |= {"probability": "float"} if self.has_probability else {}
        kinds |= {f"p_{label}": "float" for label in self.classes} if self.has_probabilities else {}
        kinds |= {"domain": "str"} if self.has_domain else {}
        kinds |= {"known_terms": "int"} if self.has_known_terms else {}
        return {f"{self.prefix}{name}": kind for name, kind in kinds.items()}


def plan_columns(
    job: AdaptJob, targets: Sequence[JobDomain], classes: Sequence[Any], task: str = "classes"
) -> tuple[AddedColumns, dict[str, Any]]:
    """Return the columns that are added, and all columns of the output with what they hold.

    Refuses names that clash.
    """
    added = AddedColumns(
        classes,
        job.prefix,
        has_probability=task != "rating",
        kind="float" if task == "rating" else None,
        has_probabilities=job.probabilities,
        has_domain=len(targets) > 1,
        min_confidence=job.min_confidence,
    )
    for target in targets:
        with_added(target.path, tuple(target.kinds), list(added.kinds))
    return added, union_of(target.kinds for target in targets) | added.kinds


def is_folder(path: Path) -> bool:
    """Tell whether an output path means a folder: it is one, or has no ending."""
    return path.is_dir() or path.suffix == ""


def check_outputs(job: AdaptJob, *, has_cluster: bool = False) -> None:
    """Refuse, before the work starts, outputs that cannot be written or would replace another file."""
    if has_cluster and job.report is not None:
        raise TableError("--report needs the documents here, and --dask leaves them on the workers; drop one")
    if job.embedding is not None and (has_cluster or job.report or job.distilled):
        other = "--dask" if has_cluster else "--report" if job.report else "--distilled"
        raise TableError(f"--embedding and {other} do not go together: {other} knows terms alone; drop one")
    inputs, outputs = [*job.sources, *job.targets, *([job.labels] if job.labels else [])], [job.out]
    if has_cluster and is_folder(job.out):
        outputs = [job.out / shard.name for path in job.targets for shard in shard_paths(path)]
    for path in outputs:
        refuse_overwriting(path, inputs)
    others = [*inputs, *outputs]
    for path in filter(None, (job.model, job.distilled, job.report)):
        refuse_overwriting(path, others)
        others.append(path)
        check_file(path)
    if outputs != [job.out]:
        job.out.mkdir(parents=True, exist_ok=True)
    check_writable(outputs[0])


def check_file(path: Path) -> None:
    """Refuse a path where no file can be written."""
    if path.is_dir():
        raise TableError(f"{path} is a folder; give the name of a file in it")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror}") from error


def _list_files(path: Path) -> list[Path]:
    """List the files of an input, or the one of an output, whose name may look like a pattern."""
    try:
        return shard_paths(path)
    except TableError:
        return [path]


def refuse_overwriting(out: Path, others: Sequence[Path]) -> None:
    """Raise if writing `out` would replace one of the other files of the same job."""
    for other in chain.from_iterable(_list_files(path) for path in others):
        if os.path.realpath(out) == os.path.realpath(other):
            raise TableError(f"{out} would replace another file of this job; give it another name")
