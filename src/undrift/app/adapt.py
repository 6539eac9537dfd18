"""The adapt job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ..errors import UndriftWarning
from ..method import MSDAClassifier
from ..persist import measure_parts, round_layers, save_model
from ..text import N_TERMS, TextAdapter
from .distill import distill_domains, summarize_distilled
from .domains import check_labels, check_outputs, find_text, match_shares
from .drift import describe_target
from .job import Job, ShowStage, ignore_stage
from .labels import TrainingLabels, attach_labels, cross_fit, gather_labels, learn_labels
from .options import parse_settings
from .predict import list_added
from .rows import LocalRows, fit_baseline, sample_rows, share_labels, sum_mistakes
from .summary import (
    count_labels,
    keep_warnings,
    summarize_choices,
    summarize_domains,
    summarize_errors,
    summarize_shares,
)
from .tables import join_kinds, with_added
from .teacher import check_teacher, describe_teachers, read_cells, read_teacher, summarize_teacher

if TYPE_CHECKING:
    from ..report import ReportData

HALF_ROWS = 200  # target rows whose predictions half precision must not change
FIT_STAGES = {"counting terms": 0.6, "learning layers": 2.9, "fitting the classifier": 0.2}
MODEL_STAGES = {"describing the target": 0.8, "saving the model": 0.4}
REPORT_STAGES = {"writing the report": 2.6}  # seconds of each stage with 800 + 800 reviews, for the time left
Mistakes = dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]  # by target: two models' mistakes, weights


@dataclass(frozen=True, eq=False)
class AdaptResult:
    """The fitted model, a summary ready for JSON and, if the job has a `report`, its data."""

    adapter: TextAdapter
    summary: dict[str, Any]
    report_data: ReportData | None = None


def list_stages(job: Job) -> dict[str, float]:
    """Return the stages of a job that take time, in order, with their usual seconds."""
    return {**FIT_STAGES, **(MODEL_STAGES if job.model else {}), **(REPORT_STAGES if job.report else {})}


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


def run_adapt(
    job: Job,
    adapter: TextAdapter,
    show_stage: ShowStage = ignore_stage,
    *,
    cluster: str | None = None,
) -> AdaptResult:
    """Do the whole job, here or on a Dask cluster, and fit `adapter`. Nothing is written unless all can be.

    `cluster` is ``local``, ``local:N`` or ``tcp://host:port``. Workers read and write the files themselves,
    under the same absolute paths.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_outputs(job, has_cluster=cluster is not None)
        check_teacher(job, has_cluster=cluster is not None)
        if not job.text:
            others = job.label, job.target_label, job.teacher, job.teacher_confidence
            job = replace(job, text=find_text((job.sources or job.targets)[0], job.reading, others))
        if cluster is None:
            result = _adapt(job, adapter, LocalRows(job, show_stage))
        else:
            from .on_dask import open_cluster_rows

            with open_cluster_rows(cluster, job, adapter.new_vectorizer(), show_stage) as rows:
                result = _adapt(job, adapter, rows)
    given = [item.message for item in caught if isinstance(item.message, UndriftWarning)]
    result.summary["warnings"] = keep_warnings(given, result.summary["targets"])
    result.summary["seconds"] = round(time.perf_counter() - start, 2)
    if job.report is not None and result.report_data is not None:
        show_stage("writing the report", None)
        write_report(job, result.report_data, result.summary)
    return result


def _adapt(job: Job, adapter: TextAdapter, rows: LocalRows) -> AdaptResult:
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
    summary |= {"labels": count_labels(labels), "updatable": job.updatable}
    summary["notes"] = [*notes, *more, *summary["notes"]]
    summary |= summarize_choices(adapter)
    learnt = None
    if job.use_labels != "score":
        learnt = gather_labels(rows.targets, rows.target_rows, adapter.classes_.tolist())
        summary["n_learnt"] = len(learnt.keys)
    baseline, mistakes = _score_targets(summary["targets"], adapter, rows, labels, learnt)
    if learnt is not None:
        rows.show_stage("learning the target's labels", None)
        learn_labels(adapter.classifier_, learnt)
        summary["caution"] = dict(adapter.classifier_.caution_)  # labels end a fallback
    kinds = join_kinds(target.kinds for target in rows.targets) | added
    with rows.write_predictions(adapter, kinds, list(added)) as counts:
        summarize_shares(summary, adapter, counts, job)
        for i, target in enumerate(rows.targets if job.teacher else []):
            known = target if learnt is None else replace(target, labels=None)  # labels that were learnt
            said = summarize_teacher(rows.predictions[i], known, adapter.classifier_.teacher_noise_[i])
            summary["targets"][i]["teacher"] = said
        summary |= _save_models(job, adapter, rows)
    if job.report is None:
        return AdaptResult(adapter, summary)
    if learnt is not None:  # a report scores no prediction of a label that was learnt
        rows.targets = [replace(target, weights=[0.0] * target.n_rows) for target in rows.targets]
    return AdaptResult(adapter, summary, gather_report(adapter, rows, baseline, mistakes))


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
) -> tuple[Any, Mistakes]:
    """Add to every target's entry whether it fell back and, if it has labels, the errors.

    Labels that will be learnt from are scored by cross-fitting, or not at all. Returns the baseline, None if
    no target is scored, and the mistakes of cross-fitting.
    """
    baseline, classifier, mistakes = None, adapter.classifier_, {}
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
        baseline = baseline or fit_baseline(rows.source_rows, labels)
        if learnt is None:
            counts = rows.count_mistakes(i, baseline, classifier)
            entry["labelled_shares"] = share_labels(target.truth, classifier.classes_.tolist())
        else:
            mine = np.flatnonzero((learnt.names == target.name) & (learnt.weights > 0))
            first = baseline.predict(learnt.X[mine]).tolist() if len(mine) else []
            second, truth, weight = cross_fitted[mine].tolist(), learnt.y[mine], learnt.weights[mine]
            counts = sum_mistakes(truth.tolist(), weight, first, second)
            wrong = (np.array(answers, dtype=object) != truth for answers in (first, second))
            mistakes[i] = (*wrong, weight)
        entry |= summarize_errors(counts.tolist())
    return baseline, mistakes


def gather_report(adapter: TextAdapter, rows: LocalRows, baseline: Any, cross_fitted: Mistakes) -> ReportData:
    """Return the rows of every domain with their predictions."""
    from ..report import DomainRows, ReportData

    sources = rows.sources or [
        replace(target, path=Path(f"teacher of {target.path.name}"), labels=target.teacher["teacher"])
        for target in rows.targets
    ]
    domains = [*sources, *rows.targets]
    short = [domain.path.name.split(".")[0] or domain.path.name for domain in domains]
    names = short if len(set(short)) == len(short) else [str(domain.path) for domain in domains]
    shown = [
        DomainRows(name, X, domain.documents, domain.labels, weights=domain.weights)
        for name, X, domain in zip(names, [*rows.X[: len(sources)], *rows.target_rows], domains, strict=True)
    ]
    targets = [
        replace(
            each,
            prediction=predicted.labels,
            probabilities=predicted.probabilities,
            cross_fitted=cross_fitted.get(k),
        )
        for k, (each, predicted) in enumerate(zip(shown[len(sources) :], rows.predictions, strict=True))
    ]
    return ReportData(
        adapter.classifier_,
        adapter.terms_,
        shown[: len(sources)],
        targets,
        given_baseline=baseline,
        vectorizer=adapter.vectorizer_,
    )


def write_report(job: Job, data: ReportData, summary: dict[str, Any]) -> None:
    """Write the page of a finished job."""
    from ..report import RunFacts, make_report

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
    targets = [
        replace(rows, unseen_share=entry["unseen_share"])
        for rows, entry in zip(data.target_rows, summary["targets"], strict=True)
    ]
    assert job.report is not None
    make_report(replace(data, target_rows=targets, facts=facts)).save(job.report)


def _describe_file(path: Path) -> dict[str, Any]:
    """Return name, size and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest}
