"""Labels of target rows: read from a file, also as labelling tools export it, and matched to rows by text.

Two texts are the same if they differ in whitespace and case alone. No row is scored whose label, or whose
duplicate's label, was learnt from; rows that were asked for to improve predictions are never scored.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._core import Rows as Matrix
from .._core import stack_rows
from .._inputs import gather_rows, spell_label
from ..classifier import MSDAClassifier, list_row_keys
from ..errors import count, warn
from ..tables import Rows, Table, TableError
from ..text import TextAdapter, hash_text
from .inputs import AdaptJob, JobDomain, parse_label, parse_vector

USES = ("score", "train", "both")
SAMPLED, WEIGHT = "sampled", "weight"
FOR_ESTIMATE, FOR_PREDICTIONS = "estimate", "predictions"
N_FOLDS = 5  # of cross-fitting
PRODIGY = {"accept", "options", "_input_hash", "_task_hash"}  # columns of an export besides `answer`


class GivenLabel(NamedTuple):
    """The label of a text, what it was asked for, and how many rows it stands for in an estimate."""

    text: str
    label: Any
    sampled: str | None = None
    weight: float = 1.0
    vector: Any = None  # its embedding


def read_labels(
    table: Table,
    text: str | Sequence[str],
    label: Sequence[str],
    classes: Sequence[Any],
    embedding: str | None = None,
) -> dict[int, GivenLabel]:
    """Read labelled texts, by their hash; of the columns that `label` names the first there is counts.

    Takes tables with a column of texts and one of labels, and what Label Studio (JSON) and Prodigy (JSON
    lines) export. Texts with contradicting labels are left out, and a warning counts them.
    """
    path = table.path
    column = next((name for name in label if name in table.columns), label[0])
    names = {spell_label(each): each for each in classes}
    labels: dict[int, GivenLabel] = {}
    contradicting: dict[int, str] = {}
    width: int | None = None
    for n_rows, given in enumerate(_list_labels(table, text, column, embedding), start=1):
        if given.label is None:
            continue
        known = names.get(spell_label(given.label))
        if known is None:
            listed = ", ".join(map(str, classes[:10]))
            raise TableError(f"{path}: row {n_rows} has the label {given.label!r}; the classes are {listed}")
        if embedding is not None:
            vector = parse_vector(given.vector, width, f"{path}: row {n_rows} of column {embedding!r}")
            given, width = given._replace(vector=vector), len(vector)
        key = hash_text(given.text)
        if key in labels and labels[key].label != known:
            contradicting[key] = given.text
        labels[key] = given._replace(label=known)
    for key in contradicting:
        del labels[key]
    if contradicting and not labels:
        raise TableError(f"{path}: all of its texts that have a label have contradicting ones: none is taken")
    if contradicting:
        some = " ".join(next(iter(contradicting.values())).split())[:40]
        warn(
            f"{path}: {count(len(contradicting), 'text')} with contradicting labels, none of which is taken, "
            f"such as {some!r}",
        )
    if not labels:
        raise TableError(f"{path}: no row has a label in column {column!r}")
    return labels


def _list_labels(
    table: Table, text: str | Sequence[str], label: str, embedding: str | None
) -> Iterator[GivenLabel]:
    """Yield every row's text and label, whoever wrote the table."""
    columns, needed = set(table.columns), [*([text] if isinstance(text, str) else text), label]
    read, tool = _read_plain, ""
    if {"data", "annotations"} <= columns and not set(needed) <= columns:
        read, tool = _read_label_studio, "Label Studio"
    elif "answer" in columns and columns & PRODIGY:
        read, tool = _read_prodigy, "Prodigy"
    else:
        for name in [*needed, *([] if embedding is None else [embedding])]:
            table.require_column(name)
    n_rows = 0
    for rows in table:
        try:
            for given in read(rows, text, label, embedding):
                yield given
                n_rows += 1
        except (AttributeError, KeyError, TypeError):
            if not tool:
                raise
            raise TableError(
                f"{table.path}: row {n_rows + 1} is not as {tool} exports it: export it again, or give a "
                f"table with the columns {', '.join(needed)}"
            ) from None


def _read_plain(
    rows: Rows, text: str | Sequence[str], label: str, embedding: str | None
) -> Iterator[GivenLabel]:
    prefix, more = label[: -len("label")] if label.endswith("label") else "", []  # that `ask` was given
    for name in (SAMPLED, WEIGHT):
        names = [each for each in (prefix + name, name) if each in rows.columns]
        more.append(rows.column(names[0]) if names else [None] * len(rows))
    more.append(rows.column(embedding) if embedding else [None] * len(rows))
    for values in zip(rows.texts(text), rows.column(label), *more, strict=True):
        yield _make_label(*values)


def _read_label_studio(
    rows: Rows, text: str | Sequence[str], label: str, embedding: str | None
) -> Iterator[GivenLabel]:
    """Rows of a JSON export: `data` is what was imported, the last annotation has the choice."""
    for data, made in zip(rows.column("data"), rows.column("annotations"), strict=True):
        choice = None
        for annotation in made or []:
            for result in [] if annotation.get("was_cancelled") else annotation.get("result", []):
                choice = (result.get("value", {}).get("choices") or [choice])[0]
        more = (data.get(name) for name in (SAMPLED, WEIGHT, embedding))
        yield _make_label(_join_text(data, text), choice, *more)


def _read_prodigy(
    rows: Rows, text: str | Sequence[str], label: str, embedding: str | None
) -> Iterator[GivenLabel]:
    """Rows of an export: `accept` lists the options chosen, or `label` is accepted by the answer."""
    cells = [rows.column(name) for name in rows.columns]
    for values in zip(*cells, strict=True):
        row = {name: value for name, value in zip(rows.columns, values, strict=True) if value is not None}
        is_accepted, accepted, meta = row.get("answer") == "accept", row.get("accept"), row.get("meta") or {}
        choice = (accepted[0] if accepted else None) if "accept" in row else row.get(label, row.get("label"))
        more = meta.get(SAMPLED), meta.get(WEIGHT), row.get(embedding or "")
        yield _make_label(_join_text(row, text), choice if is_accepted else None, *more)


def _join_text(row: dict[str, Any], text: str | Sequence[str]) -> str:
    """Return the text of a row that is a dict; tools may call it "text", whatever it was called before."""
    names = [text] if isinstance(text, str) else list(text)
    if any(name not in row for name in names):
        return str(row.get("text", ""))
    columns = tuple(row)
    return Rows(columns, tuple([value] for value in row.values())).texts(text)[0]


def _make_label(text: str, label: Any, sampled: Any, weight: Any, vector: Any) -> GivenLabel:
    sampled = str(sampled).strip() or None if sampled is not None else None
    try:
        weight = float("nan" if weight in (None, "") else weight)
    except (TypeError, ValueError):
        raise TableError(f"the column {WEIGHT!r} holds {weight!r}, which is not a number") from None
    return GivenLabel(text, parse_label(label), sampled, 1.0 if np.isnan(weight) else weight, vector)


def attach_labels(
    job: AdaptJob, sources: Sequence[JobDomain], targets: Sequence[JobDomain], classes: Sequence[Any]
) -> tuple[list[JobDomain], list[str]]:
    """Return the targets with all labels that the job is given, and notes on those that are left out."""
    if job.target_label is None and job.labels is None:
        if job.use_labels != "score":
            raise TableError(
                f"--use-labels {job.use_labels} needs labels: add --labels FILE or --target-label COL"
            )
        return list(targets), []
    given: dict[int, GivenLabel] = {}
    if job.labels is not None:
        columns = [name for name in (job.target_label, "label", job.label) if name]
        given = read_labels(job.open_table(job.labels), job.text, columns, classes)
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
        raise TableError(f"{job.labels}: {n_texts}, none of which is in a target file")
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
    is_sample = any(label.sampled == FOR_ESTIMATE for label in given.values())
    labels, weights = list(target.labels or [None] * target.n_rows), []
    for i, key in enumerate(target.keys):
        weight, answer = 0.0 if is_sample else 1.0, given.get(key)
        if answer is not None:
            labels[i] = answer.label
            is_counted = answer.sampled == FOR_ESTIMATE if is_sample else answer.sampled != FOR_PREDICTIONS
            weight = answer.weight / (n_equal[key] if is_sample else 1) if is_counted else 0.0
        weights.append(0.0 if key in source_keys else weight)
    return replace(target, labels=labels, weights=weights)


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """Labelled rows of all targets, to learn from."""

    X: Matrix
    y: np.ndarray  # (n,) classes
    numbers: np.ndarray  # (n,) of the targets
    keys: list[int]  # of the texts
    weights: np.ndarray  # (n,) in a score
    extra: list[np.ndarray] = field(default_factory=list)  # their embeddings, if there are any


def gather_labels(
    targets: Sequence[JobDomain], rows: Sequence[Any], classes: Sequence[Any]
) -> TrainingLabels:
    """Bring the labelled rows of the targets here; texts with contradicting labels are left out.

    `rows` has the rows of every target, here or on a cluster.
    """
    names = {spell_label(label): label for label in classes}
    answers: dict[int, set[Any]] = {}
    for target in targets:
        for key, label in zip(target.keys, target.labels or [], strict=True):
            if label is None:
                continue
            if spell_label(label) not in names:
                listed = ", ".join(map(str, classes[:10]))
                raise TableError(
                    f"{target.path}: the label {label!r} cannot be learnt; the classes are {listed}"
                )
            answers.setdefault(key, set()).add(names[spell_label(label)])
    n_odd = sum(len(labels) > 1 for labels in answers.values())
    if n_odd:
        warn(
            f"{count(n_odd, 'text')} with contradicting labels, none of which is taken",
        )
    parts, vectors, y, numbers, keys, weights = [], [], [], [], [], []
    for i, target in enumerate(targets):
        positions = [
            row
            for row, (key, label) in enumerate(zip(target.keys, target.labels or [], strict=True))
            if label is not None and len(answers[key]) == 1
        ]
        if positions:
            parts.append(gather_rows(rows[i][np.array(positions)]))
            vectors += [] if target.vectors is None else [target.vectors[positions]]
        keys += [target.keys[row] for row in positions]
        y += [next(iter(answers[target.keys[row]])) for row in positions]
        weights += [(target.weights or [1.0] * target.n_rows)[row] for row in positions]
        numbers += [-1 - i] * len(positions)
    if not parts:
        names_of_targets = ", ".join(str(target.path) for target in targets)
        raise TableError(f"{names_of_targets}: no row has a label to learn from")
    extra = [np.vstack(vectors)] if vectors else []
    given = stack_rows(parts), np.array(y, dtype=object), np.array(numbers), keys, np.array(weights)
    return TrainingLabels(*given, extra)


def learn_labels(
    classifier: MSDAClassifier, labels: TrainingLabels, rows: Any = slice(None)
) -> MSDAClassifier:
    """Return a copy of a fitted classifier that has learnt the labels of some of the rows."""
    learnt = copy.copy(classifier)
    X, y, numbers = labels.X[rows], labels.y[rows], labels.numbers[rows]
    extra = [E[rows] for E in labels.extra]
    kept = list_consistent(list_row_keys([X, *extra], numbers), y)
    return learnt.update(X[kept], y[kept], sample_domain=numbers[kept], extra=[E[kept] for E in extra])


def list_consistent(keys: Sequence[Any], y: np.ndarray) -> np.ndarray:
    """Return the rows that no other row equals, by the keys of rows, whose label is another."""
    answers = dict[Any, set[Any]]()
    for key, label in zip(keys, y.tolist(), strict=True):
        answers.setdefault(key, set()).add(label)
    return np.array([i for i, key in enumerate(keys) if len(answers[key]) == 1], dtype=int)


def cross_fit(classifier: MSDAClassifier, labels: TrainingLabels) -> np.ndarray:
    """Predict every row by a classifier that has learnt the labels of other folds; a text is in one fold."""
    distinct = sorted(set(labels.keys))
    order = np.random.default_rng(0).permutation(len(distinct)) % min(N_FOLDS, len(distinct))
    fold_of = dict(zip(distinct, order.tolist(), strict=True))
    fold = np.array([fold_of[key] for key in labels.keys])
    predicted = np.empty(len(fold), dtype=object)
    for number in np.unique(fold):
        out = np.flatnonzero(fold == number)
        rest = np.flatnonzero(fold != number)
        fitted = learn_labels(classifier, labels, rest) if len(rest) else classifier
        extra = [E[out] for E in labels.extra]
        predicted[out] = fitted.predict(labels.X[out], sample_domain=labels.numbers[out], extra=extra)
    return predicted


def count_update_rows(adapter: TextAdapter) -> int:
    """Count the training rows that a model holds to be updated."""
    state = getattr(adapter.classifier_, "update_state_", None)
    return 0 if state is None else len(state.weight)
