"""Ask for labels of target rows, and update a saved model by them or by a new batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replace_file
from ..errors import warn
from ..persist import save_model
from ..tables import Rows, Table, TableError, with_added, write_table
from ..text import TextAdapter, load_adapter
from .drift import add_predictions, describe_target
from .inputs import ReadOptions, ShowStage, ignore_stage, read_domain, refuse_overwriting
from .labels import (
    FOR_ESTIMATE,
    FOR_PREDICTIONS,
    SAMPLED,
    WEIGHT,
    GivenLabel,
    count_update_rows,
    list_consistent,
    read_labels,
)
from .predict import check_embedding, choose_columns, find_domain, predict_rows
from .scoring import error_interval, sample_rows, sum_mistakes
from .tasks import has_classes

PURPOSES = (FOR_PREDICTIONS, FOR_ESTIMATE)
RENEWED_ROWS = 500  # whose predictions are what later checks compare with
FEW_KNOWN = 0.5  # rows with a term that the model knows, below which a batch is not like the target
TOOLS = ("table", "label-studio", "prodigy")


@dataclass(frozen=True)
class AskJob(ReadOptions):
    """Which rows to ask for, and where to write them."""

    model: Path
    input: Path
    text: str | Sequence[str]
    out: Path
    n: int = 50
    purpose: str = FOR_PREDICTIONS
    tool: str = "table"
    domain: str | None = None
    prefix: str = ""
    device: str | None = None
    seed: int = 0


@dataclass(frozen=True)
class UpdateJob(ReadOptions):
    """What to update a model by: labelled texts, or a new batch of its target."""

    model: Path
    out: Path
    text: str | Sequence[str]
    labels: Path | None = None
    target: Path | None = None
    label: str = "label"
    domain: str | None = None
    update_state: bool = True
    device: str | None = None


def load_for(job: AskJob | UpdateJob) -> tuple[TextAdapter, int]:
    """Load a model that can be updated, and return the number of the target that is meant."""
    adapter = load_adapter(job.model)
    if not has_classes(adapter.classifier_):
        raise ValueError(
            f"{job.model} predicts ratings or tags, and `undrift ask` and `undrift update` are for classes"
        )
    check_embedding(adapter, job.embedding)
    if job.device is not None:
        adapter.classifier_.set_params(device=job.device)
    numbers = [number for number in adapter.classifier_.domains_ if number < 0]
    if job.domain is None and len(numbers) > 1:
        names = ", ".join(getattr(adapter, "domain_names_", []))
        raise ValueError(f"the model has {len(numbers)} target domains: choose one with --domain: {names}")
    if getattr(adapter.classifier_, "update_state_", None) is None:
        raise ValueError(
            f"{job.model} holds no training rows, which `undrift ask` and `undrift update` need: it was "
            "saved with --no-update-state, by an earlier version, without a target or with --classifier "
            "hinge; run `undrift adapt --model` again"
        )
    return adapter, find_domain(adapter, job.domain) or numbers[0]


def run_ask(job: AskJob, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Write the rows that are most worth labelling, with all their columns; returns a summary."""
    ending = {"label-studio": ".json", "prodigy": ".jsonl"}.get(job.tool, job.out.suffix)
    if job.out.suffix != ending:
        raise TableError(f"{job.out}: {job.tool} imports files that end in {ending}")
    adapter, number = load_for(job)
    job = replace(job, text=choose_columns(adapter, job.text))
    refuse_overwriting(job.out, [job.model, job.input])
    target = read_domain(job.input, job, None, show_stage)
    table, documents = target.table, target.documents
    assert table is not None
    added = [f"{job.prefix}{name}" for name in ("label", SAMPLED, WEIGHT)]
    columns = with_added(table.path, table.columns, added)
    show_stage("choosing rows", None)
    options = {"sample_domain": number, "extra": target.vectors, "random_state": job.seed}
    rows, weights = adapter.ask(documents, job.n, job.purpose, return_weights=True, **options)
    chosen = _take_rows(table, rows)
    weight = [round(float(w), 6) if w else None for w in weights]
    values: list[list[Any]] = [[None] * len(rows), [job.purpose] * len(rows), weight]
    chosen = chosen.with_columns(dict(zip(added, values, strict=True)))
    texts = [documents[row] for row in rows]
    if job.tool == "table":
        kinds = {**table.kinds, **dict(zip(added, ("str", "str", "float"), strict=True))}
        with write_table(job.out, columns, kinds=kinds) as out:
            out.write(chosen)
    else:
        _write_for_tool(job, chosen, texts, adapter.classes_.tolist())
    return {
        "input": str(job.input),
        "out": str(job.out),
        "rows": len(documents),
        "asked": len(rows),
        "purpose": job.purpose,
        "bad_rows": table.n_bad,
    }


def _take_rows(table: Table, positions: Sequence[int]) -> Rows:
    """Return rows of a table, in the order of their positions."""
    place = {int(position): i for i, position in enumerate(positions)}
    values: list[list[Any]] = [[None] * len(place) for _ in table.columns]
    start = 0
    for block in table:
        mine = [(start + i, i) for i in range(len(block)) if start + i in place]
        if mine:
            for column, taken in zip(block.columns, values, strict=True):
                cells = block.column(column)
                for position, i in mine:
                    taken[place[position]] = cells[i]
        start += len(block)
    return Rows(table.columns, tuple(values))


def _write_for_tool(job: AskJob, rows: Rows, texts: Sequence[str], classes: Sequence[Any]) -> None:
    """Write tasks as Label Studio (a JSON array) or Prodigy (JSON lines) import them."""
    cells = zip(*(rows.column(name) for name in rows.columns), strict=True)
    tasks = [dict(zip(rows.columns, row, strict=True)) for row in cells]
    meta = [{name: task.pop(f"{job.prefix}{name}") for name in ("label", SAMPLED, WEIGHT)} for task in tasks]
    with replace_file(job.out) as new:
        if job.tool == "label-studio":
            items = [
                {"data": {**task, "text": text, **{name: m[name] for name in (SAMPLED, WEIGHT)}}}
                for task, text, m in zip(tasks, texts, meta, strict=True)
            ]
            content = json.dumps(items, ensure_ascii=False, indent=1, default=str) + "\n"
        else:
            options = [{"id": str(label), "text": str(label)} for label in classes]
            lines = [
                {**task, "text": text, "options": options, "meta": {SAMPLED: m[SAMPLED], WEIGHT: m[WEIGHT]}}
                for task, text, m in zip(tasks, texts, meta, strict=True)
            ]
            content = "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines)
        new.write_text(content, encoding="utf-8", errors="backslashreplace")


def run_update(job: UpdateJob, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Update a model by labels, or by a new batch, and save it; returns a summary."""
    if (job.labels is None) == (job.target is None):
        raise TableError("give either --labels FILE or --target FILE")
    adapter, number = load_for(job)
    job = replace(job, text=choose_columns(adapter, job.text))
    others = [path for path in (job.labels, job.target) if path]
    refuse_overwriting(job.out, others)
    position = -1 - number
    summary: dict[str, Any] = {"model": str(job.model), "out": str(job.out)}
    summary["expected_error_before"] = adapter.expected_error_[position]
    if job.labels is not None:
        summary |= _learn_labels(adapter, number, job, show_stage)
    else:
        summary |= _take_batch(adapter, number, job, show_stage)
    show_stage("saving the model", None)
    if not job.update_state:
        adapter.classifier_.update_state_ = None
    save_model(adapter, job.out)
    shares, interval = adapter.target_shares_[position], adapter.target_shares_interval_[position]
    return summary | {
        "expected_error": adapter.expected_error_[position],
        "target_shares": shares and {str(label): share for label, share in shares.items()},
        "target_shares_interval": None
        if interval is None
        else {str(c): [*ends] for c, ends in interval.items()},
        "update_rows": count_update_rows(adapter),
        "bytes": job.out.stat().st_size,
    }


def _learn_labels(adapter: TextAdapter, number: int, job: UpdateJob, show_stage: ShowStage) -> dict[str, Any]:
    """Learn the labels in a file; those drawn for an estimate measure the error of the model before that."""
    assert job.labels is not None
    show_stage(f"reading {job.labels.name}", None)
    table, classes = job.open_table(job.labels), adapter.classes_.tolist()
    given = list(read_labels(table, job.text, [job.label], classes, job.embedding).values())
    X = adapter.vectorizer_.transform([label.text for label in given])
    extra = [] if job.embedding is None else [np.stack([label.vector for label in given])]
    summary = {"n_labels": len(given), "measured": _measure_error(adapter, number, given, X, extra)}
    show_stage("learning the labels", None)
    y = np.array([label.label for label in given], dtype=object)
    keys = adapter.classifier_.update_state_.list_keys([X, *extra], np.full(len(y), number))
    kept = list_consistent(keys, y)
    adapter.classifier_.update(X[kept], y[kept], sample_domain=number, extra=[E[kept] for E in extra])
    _renew_statistics(adapter, number)
    return summary


def _renew_statistics(adapter: TextAdapter, number: int) -> None:
    """Let later checks compare with what the updated model predicts, for some of the rows that it holds."""
    stored, state = getattr(adapter, "target_statistics_", None), adapter.classifier_.update_state_
    X, *extra = state.input_of(adapter.classifier_.domains_.index(number), len(adapter.classifier_.coef_))
    if not stored or not X.shape[0]:
        return
    some = slice(None, None, -(-X.shape[0] // RENEWED_ROWS))
    predictions = predict_rows(adapter, X[some], number, extra[0][some] if extra else None)
    counts, n_classes = predictions.count(), len(adapter.classes_)
    stored[-1 - number] = add_predictions(stored[-1 - number], counts, n_classes)


def _measure_error(
    adapter: TextAdapter, number: int, given: Sequence[GivenLabel], X: Any, extra: list[np.ndarray]
) -> dict[str, Any] | None:
    """Return the error on labels drawn for an estimate which the model has not learnt; None without any."""
    classifier, is_drawn = adapter.classifier_, np.array([label.sampled == FOR_ESTIMATE for label in given])
    domain = np.full(len(given), classifier.domains_.index(number))
    new = np.flatnonzero(is_drawn & ~classifier.update_state_.find_labelled([X, *extra], domain))
    if not len(new):
        return None
    predicted = classifier.predict(X[new], sample_domain=number, extra=[E[new] for E in extra]).tolist()
    sample = [given[int(i)] for i in new]
    weight = np.array([label.weight for label in sample])
    n, total, squares, wrong, *_ = sum_mistakes(
        [label.label for label in sample], weight, predicted, predicted
    )
    if not total:  # rows that stand for none
        return None
    error = float(wrong / total)
    low, high = error_interval(error, total**2 / squares)
    return {"rows": int(n), "error": error, "low": low, "high": high}


def _take_batch(adapter: TextAdapter, number: int, job: UpdateJob, show_stage: ShowStage) -> dict[str, Any]:
    """Take a new batch of the target, and what a later check compares with."""
    assert job.target is not None
    target = read_domain(job.target, job, None, show_stage)
    show_stage("taking the batch", None)
    X = adapter.vectorizer_.transform(target.documents)
    known = float(np.mean(np.diff(X.indptr) > 0))  # rows of terms are sparse
    if not known:
        raise TableError(
            f"{job.target}: no row has a term that the model knows, so there is nothing to take from it: run "
            "`undrift adapt` with these rows as the target"
        )
    if known < FEW_KNOWN:
        warn(
            f"{job.target}: only {known:.0%} of the rows have a term that the model knows, and no layer is "
            "learnt again: run `undrift adapt` with these rows as the target",
        )
    adapter.classifier_.update_target(X, sample_domain=number, extra=target.vectors)
    if getattr(adapter, "target_statistics_", None):
        statistics = describe_target(adapter, sample_rows(X), target.documents)
        counts = predict_rows(adapter, X, number, target.vectors).count()
        n_classes = len(adapter.classes_)
        adapter.target_statistics_[-1 - number] = add_predictions(statistics, counts, n_classes)
    return {"target": str(job.target), "rows": target.n_rows, "bad_rows": target.n_bad}
