"""The main job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Rows as Matrix
from .._inputs import spell_label
from ..baselines import fitted_svm
from ..classifier import stack_rows
from ..errors import UndriftWarning
from ..metrics import proxy_a_distance, transfer_error
from ..persist import save_model
from ..tables import Table, TableError, check_writable, shard_paths, union_of, with_added, write_table
from ..text import TextAdapter, unseen_shares
from .inputs import (
    AdaptJob,
    SourceFile,
    TargetFile,
    Tell,
    checked_labels,
    name_domains,
    read_source,
    read_target,
    silent,
)

FAR_APART = 0.5  # share of unseen words above which adaptation has little to hold on to
DISTANCE_ROWS = 4000  # rows of each side that the proxy A-distance is taken from, at most


@dataclass(frozen=True, eq=False)
class Kept:
    """What a report shows and a summary does not. It holds every document, so it is kept on request."""

    sources: Sequence[SourceFile]
    targets: Sequence[TargetFile]
    X: Sequence[Matrix]  # rows of every source, then of every target
    source_only: Any  # the fitted baseline; None where nothing was scored
    predicted: Sequence[dict[str, list[Any]]]  # `prediction` and `score` of every target


@dataclass
class Adapted:
    """What a job found; `summary` is JSON-ready, `kept` is there if the job has a `report`."""

    adapter: TextAdapter
    summary: dict[str, Any] = field(default_factory=dict)
    kept: Kept | None = None


def run_adapt(job: AdaptJob, adapter: TextAdapter, tell: Tell = silent) -> Adapted:
    """Do the whole job. Nothing is written unless all of it can be."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_outputs(job)
        sources = [read_source(path, job, tell) for path in job.sources]
        targets = [read_target(path, job, tell) for path in job.targets]
        columns = _output_columns(job, targets)
        labels = checked_labels(job, [source.labels for source in sources])
        summary = _told_apart(job, sources, targets, labels, tell)
        X = _fitted(adapter, labels, sources, targets, tell)
        adapter.domain_names_ = name_domains(job.targets)
        summary |= chosen(adapter)
        svm = _compare(summary, adapter, X, labels, targets, tell)
        predicted = _write_predictions(job, adapter, targets, X[len(sources) :], columns, tell)
    summary["warnings"] = [str(own.message) for own in caught if own.category is UndriftWarning]
    summary["seconds"] = round(time.perf_counter() - start, 2)
    kept = Kept(sources, targets, X, svm, predicted) if job.report else None
    return Adapted(adapter, summary, kept)


def check_outputs(job: AdaptJob) -> None:
    """Find out before the work, not after it, that its results cannot be kept."""
    refuse_overwriting(job.out, [*job.sources, *job.targets])
    check_writable(job.out)
    others = [*job.sources, *job.targets, job.out]
    for path in filter(None, (job.model, job.report)):
        refuse_overwriting(path, others)
        others.append(path)
        if path.is_dir():
            raise TableError(f"{path} is a folder; give the name of a file in it")
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise TableError(f"{path} cannot be written: {error.strerror}") from error


def refuse_overwriting(out: Path, others: Sequence[Path]) -> None:
    """Raise if writing `out` would replace one of the other files of the same job."""
    for other in chain.from_iterable(shard_paths(path) for path in others):
        if os.path.realpath(out) == os.path.realpath(other):
            raise TableError(f"{out} would replace another file of this job; give it another name")


def _output_columns(job: AdaptJob, targets: Sequence[TargetFile]) -> tuple[str, ...]:
    """Return the columns of the output, once they are known to be all different."""
    kinds = union_of(target.table.kinds for target in targets)
    for target in targets:
        with_added(target.table.path, target.table.columns, added_columns(job.prefix, len(targets)))
    return (*kinds, *added_columns(job.prefix, len(targets)))


def added_columns(prefix: str = "", n_targets: int = 1) -> list[str]:
    """Names of the columns that predictions add."""
    return [f"{prefix}{name}" for name in ("prediction", "score", *(["domain"] if n_targets > 1 else []))]


def _told_apart(
    job: AdaptJob,
    sources: Sequence[SourceFile],
    targets: Sequence[TargetFile],
    labels: Sequence[Any],
    tell: Tell,
) -> dict[str, Any]:
    """Begin a summary: what was read, and how much of the target the source has never seen."""
    tell("comparing words", None)
    shares = unseen_shares([own.documents for own in targets], chain(*(own.documents for own in sources)))
    notes = []
    for target, share in zip(targets, shares, strict=True):
        name = target.table.path.name
        if target.has_label_column:
            notes.append(f"{name} has a column {job.label!r}: ignored (score with --target-label)")
        if share > FAR_APART:
            warnings.warn(
                f"{share:.0%} of the words of {name} never occur in the source (overlap {1 - share:.0%}): "
                "the vocabularies hardly overlap, and adaptation has little to hold on to",
                UndriftWarning,
                stacklevel=2,
            )
    return {
        "sources": [
            _counted(own.table, own.documents)
            | {
                "labelled": sum(label is not None for label in own.labels),
                "unlabelled": sum(label is None for label in own.labels),
            }
            for own in sources
        ],
        "targets": [
            _counted(own.table, own.documents) | {"unseen_share": None if share != share else share}
            for own, share in zip(targets, shares, strict=True)
        ],
        "labels": dict(Counter(str(label) for label in labels if label is not None)),
        "notes": notes,
        "out": str(job.out),
        "model": None if job.model is None else str(job.model),
        "report": None if job.report is None else str(job.report),
    }


def _counted(table: Table, documents: Sequence[str]) -> dict[str, Any]:
    n_empty = sum(not document.strip() for document in documents)
    return {"file": str(table.path), "rows": len(documents), "empty": n_empty, "bad_rows": table.n_bad}


def _fitted(
    adapter: TextAdapter,
    labels: Sequence[Any],
    sources: Sequence[SourceFile],
    targets: Sequence[TargetFile],
    tell: Tell,
) -> list[Matrix]:
    """Fit the adapter on all files, each a domain; returns the rows of every file."""
    files = [own.documents for own in sources] + [own.documents for own in targets]
    tell("counting terms", None)
    adapter.fit_vocabulary(chain(*files))
    X = [adapter.vectorizer_.transform(documents) for documents in files]
    numbers = [*range(len(sources)), *(-1 - i for i in range(len(targets)))]
    domain = np.repeat(numbers, [len(documents) for documents in files])
    y = np.array([*labels, *[None] * (len(domain) - len(labels))], dtype=object)
    tell("learning", None)
    adapter.fit_rows(stack_rows(X), y, sample_domain=domain)
    return X


def chosen(adapter: TextAdapter) -> dict[str, Any]:
    """Say what was chosen, and by which rule."""
    classifier = adapter.classifier_
    return {
        "classes": classifier.classes_.tolist(),
        "vocabulary": len(adapter.terms_),
        "chosen": dict(classifier.best_params_),
        "rule": classifier.selection if len(classifier.selection_results_) > 1 else "fixed",
        "n_candidates": len(classifier.selection_results_),
        "selection_notes": list(classifier.selection_notes_),
        "caution": dict(classifier.caution_),
        "self_training": [dict(own) for own in classifier.self_training_rounds_],
    }


def _compare(
    summary: dict[str, Any],
    adapter: TextAdapter,
    X: Sequence[Matrix],
    labels: Sequence[Any],
    targets: Sequence[TargetFile],
    tell: Tell,
) -> Any:
    """Add to every target its distance and, where it has labels, both errors; returns the baseline used."""
    n_sources = len(X) - len(targets)
    X_source = stack_rows(list(X[:n_sources]))
    svm = None
    for i, (target, own) in enumerate(zip(targets, X[n_sources:], strict=True)):
        tell(f"measuring {target.table.path.name}", None)
        found = summary["targets"][i]
        found["distance_before"] = distance_of(X_source, own)
        found["fell_back"] = adapter.classifier_.caution_["fell_back"]
        if target.truth is not None:
            svm = svm or _source_only(X_source, labels)
            found |= _scored(adapter.classifier_, svm, own, target.truth, -1 - i)
            if not found["scored"]:
                summary["notes"].append(f"{target.table.path.name} has no label to score with")
    return svm


def distance_of(A: Matrix, B: Matrix) -> float | None:
    """Proxy A-distance of some of the rows; None where there are too few."""
    if min(A.shape[0], B.shape[0]) < 10:
        return None
    some = [X[np.random.default_rng(0).permutation(X.shape[0])[:DISTANCE_ROWS]] for X in (A, B)]
    return proxy_a_distance(*some, random_state=0)


def _source_only(X: Matrix, labels: Sequence[Any]) -> Any:
    """Return what one would do without adaptation: a linear SVM trained on the source's rows."""
    has_label = np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    return fitted_svm(X[has_label], y)


def _scored(
    classifier: Any, svm: Any, X: Matrix, truth: Sequence[Any], number: int
) -> dict[str, int | float | None]:
    """Errors of source-only and adapted classifiers on the rows that have a label."""
    known = np.array([label is not None for label in truth])
    if not known.any():
        return {"scored": 0, **error_entries(None, None)}
    y = np.array([spell_label(label) for label in truth if label is not None])
    classes = [spell_label(label) for label in classifier.classes_.tolist()]
    if not set(y) & set(classes):
        warnings.warn(
            f"none of the target's labels ({_some(sorted(set(y)))}) is one of the source's "
            f"({_some(classes)}): every prediction counts as wrong",
            UndriftWarning,
            stacklevel=2,
        )
    guesses = svm.predict(X[known]), classifier.predict(X[known], sample_domain=number)
    errors = [transfer_error(y, np.array([spell_label(label) for label in own.tolist()])) for own in guesses]
    return {"scored": int(known.sum()), **error_entries(*errors)}


def error_entries(baseline: float | None, adapted: float | None) -> dict[str, float | None]:
    """Return both errors as a summary has them; `source_only_error` is the older name of the baseline's."""
    return {"baseline_error": baseline, "source_only_error": baseline, "adapted_error": adapted}


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def predictions(
    adapter: TextAdapter, X: Matrix, number: int | None = None, prefix: str = ""
) -> dict[str, list[Any]]:
    """Columns `prediction` and `score` for rows of the domain `number` (the target by default)."""
    scores = adapter.classifier_.decision_function(X, sample_domain=number)
    if scores.ndim == 1:
        winners = (scores > 0).astype(int)
    else:
        winners = scores.argmax(axis=1)
        scores = scores.max(axis=1)
    names = added_columns(prefix)
    return {names[0]: adapter.classes_[winners].tolist(), names[1]: np.round(scores, 6).tolist()}


def _write_predictions(
    job: AdaptJob,
    adapter: TextAdapter,
    targets: Sequence[TargetFile],
    X: Sequence[Matrix],
    columns: Sequence[str],
    tell: Tell,
) -> list[dict[str, list[Any]]]:
    """Write predictions and model: both, or neither. Returns the predictions if there is to be a report."""
    kinds = union_of(target.table.kinds for target in targets)
    kept: list[dict[str, list[Any]]] = [{"prediction": [], "score": []} for _ in targets]
    with write_table(job.out, columns, kinds=kinds) as out:
        for i, (target, own) in enumerate(zip(targets, X, strict=True)):
            start = 0
            for rows in target.table:
                more = predictions(adapter, own[start : start + len(rows)], -1 - i, job.prefix)
                if job.report:
                    for name, column in kept[i].items():
                        column += more[f"{job.prefix}{name}"]
                if len(targets) > 1:
                    more[f"{job.prefix}domain"] = [adapter.domain_names_[i]] * len(rows)
                out.write(rows.with_columns(more))
                start += len(rows)
                tell("writing predictions", rows.share_read)
        if job.model is not None:
            tell("saving the model", None)
            save_model(adapter, job.model)
    return kept


def find_domain(adapter: TextAdapter, name: str) -> int:
    """Return the number of the target domain that a model calls `name`."""
    names = getattr(adapter, "domain_names_", [])
    if name in names:
        return -1 - names.index(name)
    known = f"its target domains are {', '.join(names)}" if names else "it does not name its domains"
    raise ValueError(f"the model has no target domain {name!r}: {known}")


def run_predict(
    adapter: TextAdapter, table: Table, text: str, out: Path, prefix: str = "", domain: str | None = None
) -> Iterator[tuple[int, float]]:
    """Predict a table block by block; yields the rows written so far and the share of the table read.

    Rows are predicted as those of the target `domain`. Without it, a model of several targets uses their
    average intercept, and a warning says so.
    """
    number = None if domain is None else find_domain(adapter, domain)
    n_targets = sum(number < 0 for number in adapter.classifier_.domains_)
    if number is None and n_targets > 1:
        names = getattr(adapter, "domain_names_", [])
        warnings.warn(
            f"the model was adapted to {n_targets} target domains, and the rows are predicted with the "
            "average of their intercepts; "
            + (f"choose one with --domain: {', '.join(names)}" if names else "it does not name them"),
            UndriftWarning,
            stacklevel=2,
        )
    refuse_overwriting(out, [table.path])
    columns = with_added(table.path, table.columns, added_columns(prefix))
    with write_table(out, columns, kinds=table.kinds) as writer:
        for rows in table:
            X = adapter.vectorizer_.transform(rows.texts(text))
            writer.write(rows.with_columns(predictions(adapter, X, number, prefix)))
            yield writer.n_rows, rows.share_read
