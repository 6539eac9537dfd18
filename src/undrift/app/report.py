"""The report of an adapt job: its files and predictions as the data that a page shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..report import DomainRows, ReportData, RunFacts, make_report
from ..text import TextAdapter
from .inputs import AdaptJob, JobDomain


def gather_report(
    adapter: TextAdapter,
    job: AdaptJob,
    sources: Sequence[JobDomain],
    targets: Sequence[JobDomain],
    X: Sequence[Any],
    predictions: Sequence[dict[str, Any]],
    cross_fitted: Mapping[int, Any],
) -> ReportData:
    """Return the rows of every domain with their predictions; `X` has the rows of sources, then targets."""
    names = _name_files([*job.sources, *job.targets])
    first, rest = len(sources), names[len(sources) :]
    learnt = [
        DomainRows(name, rows, source.documents, source.labels)
        for name, rows, source in zip(names, X, sources, strict=False)
    ]
    shown = [
        DomainRows(
            rest[k],
            X[first + k],
            target.documents,
            target.labels,
            weights=target.weights,
            cross_fitted=cross_fitted.get(k),
            **predictions[k],
        )
        for k, target in enumerate(targets)
    ]
    return ReportData(adapter.classifier_, adapter.terms_, learnt, shown, vectorizer=adapter.vectorizer_)


def write_report(job: AdaptJob, data: ReportData, summary: dict[str, Any]) -> None:
    """Write the page of a finished job."""
    facts = RunFacts(
        command=job.command,
        seconds=summary["seconds"],
        warnings=summary["warnings"],
        notes=summary["notes"],
        files=[_describe_file(path) for path in (*job.sources, *job.targets)],
        text_columns=[job.text] if isinstance(job.text, str) else list(job.text),
        use_labels=job.use_labels,
        n_learnt=summary.get("n_learnt", 0),
    )
    targets = [
        replace(rows, unseen_share=entry["unseen_share"])
        for rows, entry in zip(data.target_rows, summary["targets"], strict=True)
    ]
    assert job.report is not None
    make_report(replace(data, target_rows=targets, facts=facts)).save(job.report)


def _name_files(paths: list[Path]) -> list[str]:
    """Return the names of files without their endings, where that tells them apart."""
    short = [path.name.split(".")[0] or path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _describe_file(path: Path) -> dict[str, Any]:
    """Return name, size and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest}
