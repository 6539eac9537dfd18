"""The adapt job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ..errors import UndriftWarning
from ..inputs import spell_label
from ..method import MSDAClassifier
from ..persist import measure_parts, round_layers, save_model
from ..text import N_TERMS, TextAdapter
from . import terminal
from .distill import distill_domains, summarize_distilled
from .domains import check_job, check_labels, find_text, match_shares
from .drift import describe_target
from .job import Job, ShowStage, ignore_stage, parse_settings
from .labels import (
    TrainingLabels,
    attach_labels,
    cross_fit,
    gather_labels,
    learn_labels,
    read_cells,
    read_teacher,
)
from .predict import list_added
from .rows import LocalRows, fit_baseline, sample_rows, share_labels, sum_mistakes
from .summary import (
    describe_summary,
    describe_teachers,
    keep_warnings,
    summarize_choices,
    summarize_domains,
    summarize_errors,
    summarize_shares,
    summarize_teacher,
)
from .tables import join_kinds, with_added

if TYPE_CHECKING:
    from ..report import Report

HALF_ROWS = 200  # target rows whose predictions half precision must not change
FIT_STAGES = {"counting terms": 0.6, "learning layers": 2.9, "fitting the classifier": 0.2}
MODEL_STAGES = {"describing the target": 0.8, "saving the model": 0.4}
REPORT_STAGES = {"writing the report": 2.6}  # seconds of each stage with 800 + 800 reviews, for the time left


def build_adapter(
    n_terms: int | None,
    tokens: str = "auto",
    is_fast: bool | None = None,
    border: str = "error",
    device: str = "cpu",
    settings: Sequence[str] | None = None,
) -> TextAdapter:
    """Return the adapter that options describe; `is_fast` None stands for neither fast nor thorough."""
    changes = {"border": border, "device": device, "random_state": 0}
    changes["n_pivots"] = {None: "auto", True: "few", False: "many"}[is_fast]
    changes |= parse_settings(settings, list(MSDAClassifier().get_params()))
    n_terms = n_terms or (2 * N_TERMS if is_fast is False else N_TERMS)
    return TextAdapter(n_terms, tokens=tokens, classifier=MSDAClassifier(**changes))


def show_adapt(job: Job, adapter: TextAdapter, *, cluster: str | None = None, as_json: bool) -> None:
    """Do the whole job with a progress bar, and show its summary."""
    run = partial(run_adapt, job, adapter, cluster=cluster)
    stages = FIT_STAGES | (MODEL_STAGES if job.model else {}) | (REPORT_STAGES if job.report else {})
    summary = terminal.run_job(run, adapter, {} if cluster else stages)
    describe = partial(describe_summary, is_verbose=terminal.output.is_verbose)
    terminal.show_summary(summary, describe, as_json=as_json)


def run_adapt(
    job: Job, adapter: TextAdapter, show_stage: ShowStage = ignore_stage, *, cluster: str | None = None
) -> dict[str, Any]:
    """Do the whole job, here or on a Dask cluster: fit `adapter`, and return a summary ready for JSON.

    Nothing is written unless all can be. `cluster` is ``local``, ``local:N`` or ``tcp://host:port``. Workers
    read and write the files themselves, under the same absolute paths.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_job(job, has_cluster=cluster is not None)
        if not job.text:
            others = job.label, job.target_label, job.teacher, job.teacher_confidence
            job = replace(job, text=find_text((job.sources or job.targets)[0], job.reading, others))
        if cluster is None:
            opened: Any = nullcontext(LocalRows(job, show_stage))
        else:
            from .on_dask import open_cluster_rows

            opened = open_cluster_rows(cluster, job, adapter.new_vectorizer(), show_stage)
        with opened as rows:
            summary = _adapt(job, adapter, rows)
    given = [item.message for item in caught if isinstance(item.message, UndriftWarning)]
    summary["warnings"] = keep_warnings(given, summary["targets"])
    summary["seconds"] = round(time.perf_counter() - start, 2)
    if job.report is not None:
        show_stage("writing the report", None)
        report_run(adapter, rows, summary).save(job.report)
    return summary


def _adapt(job: Job, adapter: TextAdapter, rows: LocalRows) -> dict[str, Any]:
    labels, notes = _settle_labels(job, rows)
    classes = sorted({label for label in labels if label is not None})
    added = list_added(job, classes, has_domain=len(rows.targets) > 1)
    for target in rows.targets:
        with_added(target.path, target.kinds, added)  # refuses names that clash
    rows.targets, more = attach_labels(job, rows.sources, rows.targets, classes)
    if job.teacher:
        rows.targets = [replace(t, teacher=read_teacher(job, t, classes)) for t in rows.targets]
    if job.target_shares:
        classifier = clone(adapter.classifier or MSDAClassifier())
        adapter.set_params(classifier=classifier.set_params(target_shares=match_shares(job, classes)))
    rows.fit(adapter, np.array(labels, dtype=object))
    rows.show_stage("comparing words", None)
    summary = summarize_domains(job, rows.sources, rows.targets, adapter.vectorizer_.tokens_)
    counts = Counter(spell_label(label) for label in labels if label is not None)
    summary |= {"labels": dict(counts), "updatable": job.updatable}
    summary["notes"] = [*notes, *more, *summary["notes"]]
    summary |= summarize_choices(adapter)
    learnt = None
    if job.use_labels != "score":
        learnt = gather_labels(rows.targets, rows.target_rows, adapter.classes_.tolist())
        summary["n_learnt"] = len(learnt.keys)
    _score_targets(summary["targets"], adapter, rows, labels, learnt)
    if learnt is not None:
        rows.show_stage("learning the target's labels", None)
        learn_labels(adapter.classifier_, learnt)
        summary["caution"] = dict(adapter.classifier_.caution_)  # labels end a fallback
    kinds = join_kinds(target.kinds for target in rows.targets) | added
    with rows.write_predictions(adapter, kinds, list(added)) as row_counts:
        summarize_shares(summary, adapter, row_counts, job)
        for i, target in enumerate(rows.targets if job.teacher else []):
            known = target if learnt is None else replace(target, labels=None)  # labels that were learnt
            said = summarize_teacher(rows.predictions[i], known, adapter.classifier_.teacher_noise_[i])
            summary["targets"][i]["teacher"] = said
        summary |= _save_models(job, adapter, rows)
    return summary


def _settle_labels(job: Job, rows: LocalRows) -> tuple[list[Any], list[str]]:
    """Return the labels of the source in one spelling, and notes; those of the targets are spelt alike."""
    sources = rows.sources
    if not sources:
        sources = [replace(target, labels=read_cells(job.teacher, target)) for target in rows.targets]
        job = replace(job, sources=job.targets, label=job.teacher or "")
    labels, rewritten, notes = check_labels(job, sources, rows.targets)
    for i, target in enumerate(rows.targets if rewritten else []):
        tidied = [rewritten.get(label, label) for label in target.labels or []]
        rows.targets[i] = replace(target, labels=tidied if target.labels is not None else None)
    return labels, notes


def _save_models(job: Job, adapter: TextAdapter, rows: LocalRows) -> dict[str, Any]:
    """Save the model and a distilled one, where they are asked for."""
    summary: dict[str, Any] = {}
    if job.model is None and job.distilled is None:
        return summary
    rows.show_stage("describing the target", None)
    references = {target.name: describe_target(adapter, target.documents) for target in rows.targets}
    adapter.remember(text_columns=list(job.text), references=references)
    if job.model is not None:
        summary["model_file"] = _save_adapter(adapter, job, rows)
    if job.distilled is not None:
        rows.show_stage("distilling", None)
        distilled = distill_domains(adapter, rows.targets)
        save_model(distilled, job.distilled)
        summary["distilled"] = summarize_distilled(distilled, job.distilled)
    return summary


def _save_adapter(adapter: TextAdapter, job: Job, rows: LocalRows) -> dict[str, Any]:
    """Save a model, in half precision if that changes no prediction of some target rows; say what it took."""
    n_each = -(-HALF_ROWS // len(rows.targets))
    rounded, n_checked, n_same = round_layers(adapter.classifier_), 0, 0
    for target, target_rows in zip(rows.targets, rows.target_rows, strict=True):
        X = sample_rows(target_rows, n_each)
        first, second = (model.predict(X, target=target.name) for model in (adapter.classifier_, rounded))
        n_checked, n_same = n_checked + len(first), n_same + int((first == second).sum())
    is_half = n_same == n_checked
    rows.show_stage("saving the model", None)
    save_model(adapter, job.model, updatable=job.updatable, half=is_half)
    check = {"half": is_half, "n_checked": n_checked, "n_same": n_same}
    return {"bytes": job.model.stat().st_size, "parts": measure_parts(job.model), **check}


def _score_targets(
    entries: list[dict[str, Any]],
    adapter: TextAdapter,
    rows: LocalRows,
    labels: Sequence[Any],
    learnt: TrainingLabels | None,
) -> None:
    """Add to every target's entry whether it fell back and, if it has labels, the errors.

    Labels that will be learnt from are scored by cross-fitting, or not at all. The rows keep the baseline and
    the mistakes of cross-fitting, for a report.
    """
    classifier = adapter.classifier_
    if rows.job.use_labels == "both" and learnt is not None:
        rows.show_stage("cross-fitting", None)
        cross_fitted = cross_fit(classifier, learnt)
    for i, (entry, target) in enumerate(zip(entries, rows.targets, strict=True)):
        rows.show_stage(f"measuring {target.path.name}", None)
        entry["fell_back"] = bool(classifier.caution_["fell_back"]) and learnt is None
        if target.labels is None:
            continue
        if target.n_scored == 0 or rows.job.use_labels == "train":
            entry |= summarize_errors()
            continue
        rows.baseline = rows.baseline or fit_baseline(rows.source_rows, labels)
        if learnt is None:
            counts = rows.count_mistakes(i, rows.baseline, classifier)
            entry["labelled_shares"] = share_labels(target.truth, classifier.classes_.tolist())
        else:
            mine = np.flatnonzero((learnt.names == target.name) & (learnt.weights > 0))
            first = rows.baseline.predict(learnt.X[mine]).tolist() if len(mine) else []
            second, truth, weight = cross_fitted[mine].tolist(), learnt.y[mine], learnt.weights[mine]
            counts = sum_mistakes(truth.tolist(), weight, first, second)
            wrong = (np.array(answers, dtype=object) != truth for answers in (first, second))
            rows.cross_fitted[i] = (*wrong, weight)
        entry |= summarize_errors(counts.tolist())


def report_run(adapter: TextAdapter, rows: LocalRows, summary: dict[str, Any]) -> Report:
    """Return the report of a finished job: the rows of every domain, predictions, and facts about the run."""
    from ..report import DomainRows, Report, ReportData, RunFacts, adaptation_data

    job, is_learnt = rows.job, "n_learnt" in summary
    sources = rows.sources or [
        replace(target, path=Path(f"teacher of {target.path.name}"), labels=target.teacher["teacher"])
        for target in rows.targets
    ]
    paths = [domain.path for domain in (*sources, *rows.targets)]
    names = [path.name.split(".")[0] or path.name for path in paths]
    names = names if len(set(names)) == len(names) else list(map(str, paths))
    target_rows = [
        DomainRows(
            name,
            rows.target_rows[k],
            target.documents,
            target.labels,
            rows.predictions[k].labels,
            rows.predictions[k].probabilities,
            [0.0] * target.n_rows if is_learnt else target.weights,  # no label that was learnt is scored
            unseen_share=summary["targets"][k]["unseen_share"],
            cross_fitted=rows.cross_fitted.get(k),
        )
        for k, (name, target) in enumerate(zip(names[len(sources) :], rows.targets, strict=True))
    ]
    facts = RunFacts(
        command=job.command,
        seconds=summary["seconds"],
        warnings=summary["warnings"],
        notes=[*summary["notes"], *describe_teachers(summary)],
        files=[_describe_file(path) for path in (*job.sources, *job.targets)],
        text_columns=list(job.text),
        use_labels=job.use_labels,
        n_learnt=summary.get("n_learnt", 0),
    )
    data = ReportData(
        adapter.classifier_,
        adapter.terms_,
        [
            DomainRows(name, X, source.documents, source.labels, weights=source.weights)
            for name, X, source in zip(names, rows.X, sources, strict=False)
        ],
        target_rows,
        facts,
        rows.baseline,
        adapter.vectorizer_,
    )
    return Report(adaptation_data(data))


def _describe_file(path: Path) -> dict[str, Any]:
    """Return name, size and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest}
