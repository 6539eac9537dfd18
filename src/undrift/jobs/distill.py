"""The distill job: a saved model and target files in, a small model of terms out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replace_file
from ..persist import save_model
from ..tables import Rows, TableError, write_table
from ..text import DistilledText, TextAdapter, load_adapter
from .drift import add_predictions, describe_target
from .inputs import (
    DistillJob,
    JobDomain,
    ShowStage,
    check_file,
    ignore_stage,
    read_domain,
    refuse_overwriting,
)
from .predict import predict_rows


def run_distill(job: DistillJob, show_stage: ShowStage = ignore_stage) -> dict[str, Any]:
    """Do the whole job and return its summary, ready for JSON."""
    inputs = [job.model, *job.targets]
    for path in filter(None, (job.out, job.terms, job.pipeline)):
        refuse_overwriting(path, inputs)
        check_file(path)
        inputs.append(path)
    adapter = load_adapter(job.model)
    if job.device is not None:
        adapter.classifier_.set_params(device=job.device)
    numbers = find_domains(adapter, job)
    targets = [read_domain(path, job, job.target_label, show_stage) for path in job.targets]
    show_stage("distilling", None)
    model = distill_domains(adapter, targets, numbers, job.seed)
    show_stage("writing", None)
    if job.terms is not None:
        write_terms(model, job.terms)
    if job.pipeline is not None:
        write_pipeline(model, numbers, job.pipeline)
    save_model(model, job.out)
    rows = {"rows": sum(target.n_rows for target in targets), "bad_rows": sum(t.n_bad for t in targets)}
    return {
        "model": str(job.model),
        **rows,
        **summarize_distilled(model, job.out),
        "terms": job.terms and str(job.terms),
        "pipeline": job.pipeline and str(job.pipeline),
    }


def find_domains(adapter: TextAdapter, job: DistillJob) -> list[int]:
    """Return the number of every file's target: by the names given, else by the file's name."""
    names = getattr(adapter, "domain_names_", [])
    if job.domains and len(job.domains) != len(job.targets):
        raise TableError(
            f"--domain is given {len(job.domains)} times for {len(job.targets)} targets: once for each"
        )
    n_targets = sum(number < 0 for number in adapter.classifier_.domains_)
    if n_targets <= 1 and not job.domains and len(job.targets) == 1:
        return [-1]
    wanted = job.domains or [str(path) if str(path) in names else path.name for path in job.targets]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        known = f"its target domains are {', '.join(names)}" if names else "it does not name its domains"
        raise TableError(
            f"the model has no target domain {unknown[0]!r}: {known}; name one for each file with --domain"
        )
    return [-1 - names.index(name) for name in wanted]


def distill_domains(
    adapter: TextAdapter, domains: Sequence[JobDomain], numbers: Sequence[int], seed: int = 0
) -> DistilledText:
    """Distill a model from the documents of target domains, as many as are here."""
    every_document = [document for domain in domains for document in domain.documents]
    labels: list[Any] = []
    for domain in domains:
        is_whole = domain.labels is not None and len(domain.labels) == len(domain.documents)
        labels += (domain.labels or []) if is_whole else [None] * len(domain.documents)
    sample_domain = np.repeat(numbers, [len(domain.documents) for domain in domains])
    has_targets = any(number < 0 for number in adapter.classifier_.domains_)
    model = adapter.distill(
        every_document, labels, sample_domain=sample_domain if has_targets else None, random_state=seed
    )
    model.target_statistics_ = [None] * -min(numbers)
    for number in dict.fromkeys(numbers):  # several files may be of one target
        documents = list(compress(every_document, sample_domain == number))
        X = model.vectorizer_.transform(documents)
        statistics = describe_target(model, X, documents)
        counts = predict_rows(model, X, number if has_targets else None).count()
        model.target_statistics_[-1 - number] = add_predictions(statistics, counts, len(model.classes_))
    return model


def write_terms(model: DistilledText, path: Path) -> None:
    """Write the terms and their weights as a table."""
    columns = model.term_weights()
    kinds = {name: "str" if name == "term" else "float" for name in columns}
    with write_table(path, tuple(columns), kinds=kinds) as out:
        out.write(Rows(tuple(columns), tuple(columns.values())))


def write_pipeline(model: DistilledText, numbers: Sequence[int], path: Path) -> None:
    """Pickle the scikit-learn pipeline; for several targets, with the average of their intercepts."""
    import joblib

    pipeline = model.to_sklearn(numbers[0] if len(numbers) == 1 else None)
    with replace_file(path) as new:
        joblib.dump(pipeline, new)


def summarize_distilled(model: DistilledText, path: Path) -> dict[str, Any]:
    """Say where a distilled model is, how large, and how faithful."""
    return {
        "out": str(path),
        "bytes": path.stat().st_size,
        "vocabulary": len(model.terms_),
        "ridge": model.classifier_.ridge_,
        "fidelity": dict(model.fidelity_),
    }
