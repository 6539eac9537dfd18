"""The main job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._warnings import UndriftWarning
from .adapter import TextAdapter
from .baselines.svm import linear_svm
from .metrics import proxy_a_distance, transfer_error
from .persist import save_model
from .tables import Table, TableError, check_writable, open_table, union_of, with_added, write_table
from .text import unseen_share

FAR_APART = 0.5  # share of unseen words above which adaptation has little to hold on to


@dataclass(frozen=True)
class Labelled:
    """Documents of one source file."""

    path: Path
    documents: list[str]
    labels: list[Any]  # None where the file has none
    n_bad: int


@dataclass(frozen=True)
class Unlabelled:
    """Documents of one target file; `truth` is for scoring alone."""

    table: Table
    documents: list[str]
    truth: list[Any] | None
    has_label_column: bool

    @property
    def path(self) -> Path:
        """The file."""
        return self.table.path


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
    report: Path | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a report shows and a summary does not. Holds every document, so it is kept on request."""

    sources: list[Labelled]
    targets: list[Unlabelled]
    rows: list[Any]  # sparse: of all sources together, then of each target
    source_only: Any  # the fitted baseline, or None where nothing was scored


@dataclass
class Adapted:
    """What a job found; `summary` is JSON-ready, `evidence` is there if the job has a `report`."""

    adapter: TextAdapter
    summary: dict[str, Any] = field(default_factory=dict)
    evidence: Evidence | None = None


def read_source(path: Path, job: AdaptJob) -> Labelled:
    """Read a source file whole."""
    table = open_table(path, text=job.text, encoding=job.encoding, skip_bad=job.skip_bad)
    table.require_column(job.label)
    documents: list[str] = []
    labels: list[Any] = []
    for rows in table:
        documents += rows.texts(job.text)
        labels += [_label(value) for value in rows.column(job.label)]
    if not documents:
        table.require_rows()
    return Labelled(path, documents, labels, table.n_bad)


def _label(value: Any) -> Any:
    """Return a label, None where the cell is empty."""
    if isinstance(value, str):
        return value.strip() or None
    return None if value is None or value != value else value


def read_target(path: Path, job: AdaptJob) -> Unlabelled:
    """Read a target file whole."""
    table = open_table(path, text=job.text, encoding=job.encoding, skip_bad=job.skip_bad)
    if job.target_label is not None:
        table.require_column(job.target_label)
    documents: list[str] = []
    truth: list[Any] = []
    for rows in table:
        documents += rows.texts(job.text)
        truth += [_label(value) for value in rows.column(job.target_label)] if job.target_label else []
    if not documents:
        table.require_rows()
    has_label_column = job.target_label is None and job.label in table.columns
    return Unlabelled(table, documents, truth or None, has_label_column)


def one_kind(labels: Sequence[Any]) -> list[Any]:
    """Return labels as they are if they are all of one kind, else as text; None stays."""
    kinds = {type(label) for label in labels if label is not None}
    if len(kinds) <= 1:
        return list(labels)
    return [None if label is None else str(label) for label in labels]


def run_adapt(job: AdaptJob, adapter: TextAdapter) -> Adapted:
    """Do the whole job. Nothing is written unless all of it can be."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        sources = [read_source(path, job) for path in job.sources]
        targets = [read_target(path, job) for path in job.targets]
        check_writable(job.out)
        for path in filter(None, (job.model, job.report)):
            _check_folder(path)
        adapted = _fitted(job, adapter, sources, targets)
        _write_predictions(job, adapted.adapter, targets)
        if job.model is not None:
            save_model(adapted.adapter, job.model)
    adapted.summary["warnings"] = [str(own.message) for own in caught if own.category is UndriftWarning]
    adapted.summary["seconds"] = round(time.perf_counter() - start, 2)
    return adapted


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise TableError(f"cannot write {path}: the folder {path.parent} does not exist")


def _fitted(
    job: AdaptJob, adapter: TextAdapter, sources: list[Labelled], targets: list[Unlabelled]
) -> Adapted:
    labels = one_kind([label for source in sources for label in source.labels])
    if not any(label is not None for label in labels):
        names = ", ".join(str(source.path) for source in sources)
        raise TableError(
            f"no row of {names} has a label in column {job.label!r}; at least two classes are needed"
        )
    files: list[Labelled | Unlabelled] = [*sources, *targets]
    documents = [document for own in files for document in own.documents]
    numbers = [*range(len(sources)), *(-1 - i for i in range(len(targets)))]
    domain = np.repeat(numbers, [len(own.documents) for own in files])
    n_target = len(documents) - len(labels)
    _warn_if_far_apart(sources, targets)
    adapter.fit(documents, [*labels, *[None] * n_target], sample_domain=domain)
    adapted = Adapted(adapter)
    _summarise(adapted, job, sources, targets, labels)
    return adapted


def _warn_if_far_apart(sources: list[Labelled], targets: list[Unlabelled]) -> None:
    for target in targets:
        share = unseen_share(target.documents, (d for source in sources for d in source.documents))
        if share > FAR_APART:
            warnings.warn(
                f"{share:.0%} of the words of {target.path.name} never occur in the source: "
                "the vocabularies hardly overlap, and adaptation has little to hold on to",
                UndriftWarning,
                stacklevel=2,
            )


def _summarise(
    adapted: Adapted,
    job: AdaptJob,
    sources: list[Labelled],
    targets: list[Unlabelled],
    labels: list[Any],
) -> None:
    """Say what was read, how far apart the domains are, and what was chosen by which rule."""
    adapter, classifier = adapted.adapter, adapted.adapter.classifier_
    X_source = adapter.vectorizer_.transform(d for source in sources for d in source.documents)
    has_label = np.array([label is not None for label in labels])
    summary: dict[str, Any] = {
        "sources": [
            {
                "file": str(source.path),
                "rows": len(source.documents),
                "labelled": sum(label is not None for label in source.labels),
                "bad_rows": source.n_bad,
            }
            for source in sources
        ],
        "targets": [],
        "classes": classifier.classes_.tolist(),
        "vocabulary": len(adapter.vectorizer_.terms_),
        "chosen": dict(classifier.best_params_),
        "rule": classifier.selection if len(classifier.selection_results_) > 1 else "fixed",
        "n_candidates": len(classifier.selection_results_),
        "notes": list(classifier.selection_notes_),
        "out": str(job.out),
        "model": None if job.model is None else str(job.model),
        "report": None if job.report is None else str(job.report),
    }
    svm, rows = None, [X_source]
    for i, target in enumerate(targets):
        X = adapter.vectorizer_.transform(target.documents)
        rows += [X] if job.report else []
        own = {
            "file": str(target.path),
            "rows": len(target.documents),
            "bad_rows": target.table.n_bad,
            "unseen_share": unseen_share(target.documents, (d for s in sources for d in s.documents)),
            "distance_before": proxy_a_distance(X_source, X, random_state=0),
        }
        if target.has_label_column:
            summary["notes"].append(
                f"{target.path.name} has a column {job.label!r}: ignored (score with --target-label)"
            )
        if target.truth is not None:
            if svm is None:
                known = np.array([label for label in labels if label is not None])
                svm = linear_svm(random_state=0).fit(X_source[has_label], known)
            own |= _scored(classifier, svm, X, target.truth, -1 - i)
        summary["targets"].append(own)
    adapted.summary = summary
    adapted.evidence = Evidence(sources, targets, rows, svm) if job.report else None


def _scored(classifier: Any, svm: Any, X: Any, truth: list[Any], number: int) -> dict[str, Any]:
    """Errors of source-only and adapted classifiers on the rows that have a label."""
    known = np.array([label is not None for label in truth])
    kind = classifier.classes_.dtype.type
    y = np.array([label for label in truth if label is not None]).astype(kind)
    domain = np.full(int(known.sum()), number)
    return {
        "scored": int(known.sum()),
        "source_only_error": transfer_error(y, svm.predict(X[known])),
        "adapted_error": transfer_error(y, classifier.predict(X[known], sample_domain=domain)),
    }


def predictions(
    adapter: TextAdapter, documents: Sequence[str], number: int | None = None
) -> dict[str, list[Any]]:
    """Columns `prediction` and `score` for documents of the domain `number` (the target by default)."""
    X = adapter.vectorizer_.transform(documents)
    domain = None if number is None else np.full(X.shape[0], number)
    scores = adapter.classifier_.decision_function(X, sample_domain=domain)
    if scores.ndim == 1:
        winners = (scores > 0).astype(int)
    else:
        winners = scores.argmax(axis=1)
        scores = scores.max(axis=1)
    return {"prediction": adapter.classes_[winners].tolist(), "score": np.round(scores, 6).tolist()}


def _write_predictions(job: AdaptJob, adapter: TextAdapter, targets: list[Unlabelled]) -> None:
    tables = [target.table for target in targets]
    added = ["prediction", "score", *(["domain"] if len(targets) > 1 else [])]
    kinds = union_of(table.kinds for table in tables)
    columns = with_added(tables[0].path, list(kinds), added)
    with write_table(job.out, columns, kinds=kinds) as out:
        for i, table in enumerate(tables):
            for rows in table:
                more = predictions(adapter, rows.texts(job.text), -1 - i)
                if len(targets) > 1:
                    more["domain"] = [table.path.name] * len(rows)
                out.write(rows.with_columns(more))


def run_predict(adapter: TextAdapter, table: Table, text: str, out: Path) -> Iterator[tuple[int, float]]:
    """Predict a table block by block; yields the rows written so far and the share of the table read."""
    columns = with_added(table.path, table.columns, ["prediction", "score"])
    with write_table(out, columns, kinds=table.kinds) as writer:
        for rows in table:
            writer.write(rows.with_columns(predictions(adapter, rows.texts(text))))
            yield writer.n_rows, rows.share_read
