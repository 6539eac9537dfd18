"""Predictions as columns, and the job that applies a saved model to new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Rows as Matrix
from ..errors import count
from ..method import predict_codes
from ..text import DistilledText, TextAdapter, load_text_model
from . import terminal
from .batches import Group, align_groups, describe_groups
from .drift import Batch, start_check
from .inputs import AddedColumns, ShowStage, find_text, ignore_stage, open_rows, refuse_overwriting
from .options import Reading
from .tables import Table, list_texts, with_added, write_table
from .terminal import describe_file


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of some rows of a target."""

    classes: Sequence[Any]
    codes: np.ndarray  # (n,) of the predicted classes
    score: np.ndarray  # (n,)
    probabilities: np.ndarray  # (n, n_classes)
    n_known: np.ndarray  # (n,) terms of every row that the model knows

    @property
    def labels(self) -> list[Any]:
        """Predicted labels, those of doubtful rows among them."""
        return [self.classes[code] for code in self.codes]

    @property
    def probability(self) -> np.ndarray:
        """Probability of the predicted label, of shape (n,)."""
        return np.take_along_axis(self.probabilities, self.codes[:, None], axis=1)[:, 0]

    def is_doubtful(self, min_confidence: float | None) -> np.ndarray:
        """Tell which predictions are less probable than they should be; none of them without a limit."""
        if min_confidence is None:
            return np.zeros(len(self.codes), dtype=bool)
        return self.probability < min_confidence

    def columns(self, added: AddedColumns, domain: str | None = None) -> dict[str, list[Any]]:
        """Return the columns to add; predictions that are doubtful or of no known term are left empty."""
        is_empty = self.is_doubtful(added.min_confidence) | (self.n_known == 0)
        labels = zip(self.labels, is_empty.tolist(), strict=True)
        values = [[None if empty else label for label, empty in labels], self.score.tolist()]
        values += [self.probability.tolist()]
        values += self.probabilities.T.tolist() if added.has_probabilities else []
        values += [[domain] * len(self.codes)] if added.has_domain else []
        values += [self.n_known.tolist()] if added.has_known_terms else []
        return dict(zip(added.kinds, values, strict=True))

    def count(self, min_confidence: float | None = None) -> np.ndarray:
        """Count the rows of every predicted class, then the doubtful ones, then those of no known term.

        Rows of no known term have no prediction.
        """
        is_known = self.n_known > 0
        per_class = np.bincount(self.codes[is_known], minlength=len(self.classes))
        return np.array([*per_class, self.is_doubtful(min_confidence)[is_known].sum(), (~is_known).sum()])


def predict_rows(classifier: Any, X: Matrix, target: str | None = None, scores: Any = None) -> Predictions:
    """Predict rows of a target, in one pass through the layers; numbers have six digits.

    `scores` are those of `decision_function`, if they are known.
    """
    if scores is None:
        scores = classifier.decision_function(X, target=target)
    probabilities = classifier.scores_to_proba(scores, target=target).astype(float).round(6)
    scores = np.asarray(scores, dtype=float).reshape(X.shape[0], -1)
    labels, score = classifier.classes_.tolist(), np.round(scores.max(axis=1), 6)
    return Predictions(labels, predict_codes(scores), score, probabilities, np.diff(X.indptr))


@dataclass(frozen=True, eq=False)
class WrittenPredictions:
    """Predictions that were written for every target."""

    counts: list[np.ndarray]  # sums over its rows, as `Predictions.count` returns them
    predictions: Sequence[dict[str, Any]] = ()  # those that a report needs


@dataclass(frozen=True, kw_only=True)
class PredictJob:
    """Which rows to predict, and with which model."""

    model: Path
    input: Path
    out: Path
    text: Sequence[str] = ()  # default: the model's columns
    domain: str | None = None
    is_aligned: bool = True  # whether class shares and threshold follow the rows
    by: str | None = None  # a column: each of its values is aligned apart
    is_checked: bool = False
    probabilities: bool = False
    min_confidence: float | None = None
    reading: Reading = field(default_factory=Reading)
    device: str | None = None


def run_predict(job: PredictJob, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Predict a file block by block, and return a summary."""
    adapter = load_text_model(job.model)
    if job.device is not None and "device" in adapter.classifier_.get_params():  # not if it is distilled
        adapter.classifier_.set_params(device=job.device)
    target = find_target(adapter, job.domain)
    batch = start_check(adapter, target) if job.is_checked else None
    refuse_overwriting(job.out, [job.input, job.model])
    text = choose_text(adapter, job.text, job.input, job.reading)
    table = open_rows(job.input, job.reading, text)
    if job.by is not None:
        table.require_column(job.by)
    table.require_rows()
    groups = align_groups(job, adapter, target, table, text, show_stage)
    counts = _write_predictions(job, adapter, target, table, text, groups, batch, show_stage)
    n_classes = len(adapter.classes_)
    n_rows = int(counts[:n_classes].sum() + counts[-1])
    summary: dict[str, Any] = {"input": str(job.input), "out": str(job.out), "rows": n_rows}
    summary |= {"bad_rows": table.n_bad, "unknown_rows": int(counts[-1])}
    labels = [str(label) for label in adapter.classes_.tolist()]
    shares = counts[:n_classes] / max(counts[:n_classes].sum(), 1)
    summary["predicted_shares"] = dict(zip(labels, shares.tolist(), strict=True))
    summary |= groups[None].describe(target)
    if job.by is not None:
        summary["groups"] = {
            name: group.describe(target) for name, group in groups.items() if name is not None
        }
        summary["aligned"] = any(each["aligned"] for each in summary["groups"].values())
    if job.min_confidence is not None:
        summary["n_doubtful"] = int(counts[n_classes])
    if batch is not None:
        summary["check"] = batch.check()
    return summary


def _write_predictions(
    job: PredictJob,
    adapter: TextAdapter | DistilledText,
    target: str,
    table: Table,
    text: Sequence[str],
    groups: dict[str | None, Group],
    batch: Batch | None,
    show_stage: ShowStage,
) -> Any:
    """Write the predictions of a table, and return their counts."""
    classes = adapter.classes_.tolist()
    added = AddedColumns(
        classes,
        has_probabilities=job.probabilities,
        has_known_terms=True,
        min_confidence=job.min_confidence,
    )
    kinds = with_added(table.path, table.kinds, added.kinds)
    counts: Any = np.zeros(len(classes) + 2, dtype=int)
    with write_table(job.out, kinds) as write:
        for frame in table:
            documents = list_texts(frame, text)
            X = adapter.vectorizer_.transform(documents)
            names: Sequence[str | None] = list_texts(frame, job.by) if job.by else [None] * len(frame)
            predictions = _predict_groups(groups, names, X, target)
            if batch is not None:
                batch.add(X, documents)
            write(frame.assign(**predictions.columns(added)))
            counts = counts + predictions.count(job.min_confidence)
            show_stage(f"predicting {table.path.name}", table.share_read)
    return counts


def _predict_groups(
    groups: dict[str | None, Group], names: Sequence[str | None], X: Matrix, target: str
) -> Predictions:
    """Predict rows, each by the classifier of its group."""
    present = list(dict.fromkeys(names))
    if len(present) == 1:
        return predict_rows(groups[present[0]].classifier, X, target)
    of_rows = np.array(names, dtype=object)
    places = [np.flatnonzero(of_rows == name) for name in present]
    parts = [
        predict_rows(groups[name].classifier, X[rows], target)
        for name, rows in zip(present, places, strict=True)
    ]
    order = np.argsort(np.concatenate(places))
    fields = ("codes", "score", "probabilities", "n_known")
    joined = [np.concatenate([getattr(part, name) for part in parts])[order] for name in fields]
    return Predictions(parts[0].classes, *joined)


def choose_text(
    adapter: TextAdapter | DistilledText, text: Sequence[str], path: Path, reading: Reading
) -> tuple[str, ...]:
    """Return the columns of the text: those given, those of the model, or the only one in the file."""
    return tuple(text or adapter.facts_.get("text_columns", ())) or find_text(path, reading, ())


def find_target(adapter: TextAdapter | DistilledText, name: str | None) -> str:
    """Return the name of a target of the model; it may be left out if there is one."""
    names = adapter.classifier_.target_names_
    if name is None and len(names) == 1:
        return names[0]
    listed = ", ".join(map(str, names))
    if name is None:
        raise ValueError(f"the model has {len(names)} target domains: choose one with --domain: {listed}")
    if name not in names:
        raise ValueError(f"the model has no target domain {name!r}: its target domains are {listed}")
    return name


def show_predict(summary: dict[str, Any], *, as_json: bool) -> None:
    """Print what was read, predicted and written, and what a check found."""
    if as_json:
        terminal.show_json(summary)
    else:
        for line in describe_predict(summary):
            terminal.say(line)
    for reason in summary.get("check", {}).get("reasons", []):
        terminal.show_warning(reason)


def describe_predict(summary: dict[str, Any]) -> list[str]:
    """Return the lines of a summary."""
    bad = f", {summary['bad_rows']:,} skipped as unreadable" if summary["bad_rows"] else ""
    unknown = summary["unknown_rows"]
    lines = [f"Read {summary['input']}: {count(summary['rows'], 'row')}{bad}."]
    if unknown:
        lines.append(f"Left empty, as they have no known word: {unknown:,} of {summary['rows']:,} rows.")
    if "n_doubtful" in summary:
        lines.append(format_doubtful(summary["n_doubtful"], summary["rows"], summary["input"]))
    lines += describe_groups(summary)
    lines.append(f"Wrote {describe_file(summary['out'])}.")
    if "check" in summary:
        is_drift = summary["check"]["drifted"]
        same = "No drift: the rows are like those that the model was adapted to."
        lines.append("Drift: the rows are not what the model was adapted to." if is_drift else same)
    return lines


def format_doubtful(n_doubtful: int, n_rows: int, file: str) -> str:
    """Say how many predictions were left empty."""
    return f"Left empty as doubtful (--min-confidence): {n_doubtful:,} of {n_rows:,} predictions for {file}."
