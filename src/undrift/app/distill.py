"""The distill job: a saved model and target files in, a small model of terms out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ..files import replace_file
from ..persist import save_model
from ..text import DistilledText, TextAdapter, load_adapter
from . import terminal
from .drift import describe_target
from .inputs import JobDomain, ShowStage, check_file, ignore_stage, read_domain, refuse_overwriting
from .options import Reading
from .predict import choose_text
from .tables import TableError, write_table


@dataclass(frozen=True, kw_only=True)
class DistillJob:
    """What to distill: the files and columns, as the user named them."""

    model: Path
    targets: list[Path]
    out: Path
    text: Sequence[str] = ()
    domains: Sequence[str] = ()  # the model's name for each target; by default the name of its file
    target_label: str | None = None
    terms: Path | None = None  # a table of terms and weights
    pipeline: Path | None = None  # the scikit-learn pipeline, pickled
    reading: Reading = field(default_factory=Reading)
    device: str | None = None
    seed: int = 0


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
    names = find_targets(adapter, job)
    text = choose_text(adapter, job.text, job.targets[0], job.reading)
    given = job.reading, text, job.target_label, show_stage
    targets = [read_domain(path, *given) for path in job.targets]
    show_stage("distilling", None)
    model = distill_domains(adapter, targets, names, job.seed)
    show_stage("writing", None)
    if job.terms is not None:
        write_terms(model, job.terms)
    if job.pipeline is not None:
        write_pipeline(model, names[0], job.pipeline)
    save_model(model, job.out)
    rows = {"rows": sum(target.n_rows for target in targets), "bad_rows": sum(t.n_bad for t in targets)}
    return {
        "model": str(job.model),
        **rows,
        **summarize_distilled(model, job.out),
        "terms": job.terms and str(job.terms),
        "pipeline": job.pipeline and str(job.pipeline),
    }


def find_targets(adapter: TextAdapter, job: DistillJob) -> list[str]:
    """Return the model's target that every file holds: by the names given, else by the file's name."""
    names = adapter.classifier_.target_names_
    if job.domains and len(job.domains) != len(job.targets):
        raise TableError(
            f"--domain is given {len(job.domains)} times for {len(job.targets)} targets: once for each"
        )
    if len(names) == 1 and not job.domains and len(job.targets) == 1:
        return names
    wanted = job.domains or [str(path) if str(path) in names else path.name for path in job.targets]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise TableError(
            f"the model has no target domain {unknown[0]!r}: its target domains are {', '.join(names)}; "
            "name one for each file with --domain"
        )
    return list(wanted)


def distill_domains(
    adapter: TextAdapter, domains: Sequence[JobDomain], names: Sequence[str], seed: int = 0
) -> DistilledText:
    """Distill a model from the documents of target domains, as many as are here."""
    documents: dict[str, list[str]] = {}  # several files may be of one target
    labels: dict[str, list[Any]] = {}
    for name, domain in zip(names, domains, strict=True):
        is_whole = domain.labels is not None and len(domain.labels) == len(domain.documents)
        documents.setdefault(name, []).extend(domain.documents)
        known = domain.labels if is_whole and domain.labels else [None] * len(domain.documents)
        labels.setdefault(name, []).extend(known)
    model = adapter.distill(documents, labels, random_state=seed)
    references = {name: describe_target(model, own) for name, own in documents.items()}
    model.remember(**{**adapter.facts_, "references": references})
    return model


def write_terms(model: DistilledText, path: Path) -> None:
    """Write the terms and their weights as a table."""
    frame = pd.DataFrame(model.term_weights())
    with write_table(path, {name: {str if name == "term" else float} for name in frame}) as write:
        write(frame)


def write_pipeline(model: DistilledText, target: str, path: Path) -> None:
    """Pickle the scikit-learn pipeline of a target."""
    import joblib

    pipeline = model.to_sklearn(target)
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


def show_distill(summary: dict[str, Any], *, as_json: bool) -> None:
    """Print where the model is, and how well it agrees with the full one."""
    if as_json:
        terminal.show_json(summary)
        return
    terminal.say(describe_distilled(summary))
    for name in ("terms", "pipeline"):
        if summary[name]:
            terminal.say_line(f"{name.capitalize()}: {summary[name]}")


def describe_distilled(summary: dict[str, Any]) -> str:
    """Say where a distilled model is, its size, and how well it agrees with the full one."""
    fidelity = summary["fidelity"]
    size, n_held_out = f"{summary['bytes'] / 1e6:.1f} MB", fidelity["n_held_out"]
    line = f"Distilled model: {summary['out']}, {size}, {summary['vocabulary']:,} terms; it agrees with the "
    line += f"full model on {fidelity['agreement']:.1%} of {n_held_out:,} held-out rows"
    if fidelity["n_scored"]:
        line += (
            f" and is wrong on {fidelity['error']:.1%} of the {fidelity['n_scored']:,} labelled ones, "
            f"the full model on {fidelity['adapted_error']:.1%}"
        )
    return f"{line}."
